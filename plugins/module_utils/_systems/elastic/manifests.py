# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An elastic PyTorch job: an Indexed Job whose completions and parallelism are scaled together, and its Service.

Pod <name>-<i> keeps its index and its DNS name when it is replaced; the highest indexes go first when the job shrinks.
"""

from __future__ import annotations

import dataclasses
import json
import posixpath
import typing as t
from collections.abc import Mapping, Sequence

from ..._core.errors import InvalidInput
from ..._manifests.merge import apply_overrides
from ..._manifests.meta import (
    ANNOTATION_CONFIG_HASH,
    ANNOTATION_SPEC_PARTS,
    LABEL_ELASTIC_JOB,
    LABEL_GROUP,
    LABEL_ROLE,
    Manifest,
    check_count,
    check_files,
    check_name,
    check_port,
    compact,
    fingerprint,
    quantity,
)
from ..._manifests.network_policy import Flow, labelled, network_policy
from ..._manifests.pods import RESTRICTED_CONTAINER, PodSettings, field_env, merge_env, pod_template
from ..._manifests.storage import Storage, storage_claim
from .launch import EXIT_MISCONFIGURED, EXIT_SCRIPT_FAILED, FETCH_SCRIPT, LAUNCHER

CONFIG_PATH = "/etc/muster/elastic"
FETCHED_PATH = "/run/muster/script"
GROUP = "worker"
C10D_PORT = 29400
# A Job's pods are <name>-<index>-<5 characters> and their host names <name>-<index>, which must be a DNS label.
NAME_MAX = 52
RUN_UID_FIELD = "metadata.labels['batch.kubernetes.io/controller-uid']"
Backend = t.Literal["native", "pytorchjob"]
Rendezvous = t.Literal["c10d", "etcd-v2"]
BACKOFF_LIMIT = 6
REMOTE = ("s3://", "gs://")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ElasticJob:
    """What torchrun is to run, on how many pods, and how they meet."""

    name: str
    namespace: str
    pod: PodSettings
    script: str
    replicas: int
    min_replicas: int
    max_replicas: int
    backend: Backend = "native"
    nproc_per_node: str = "1"
    rdzv_backend: Rendezvous = "c10d"
    rdzv_endpoint: str | None = None
    rdzv_conf: Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    join_timeout: int = 600
    last_call_timeout: int = 30
    keep_alive_interval: int = 5
    keep_alive_max_attempt: int = 3
    monitor_interval: float = 0.5
    max_restarts: int = 3
    warm_start: bool = True
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    files_path: str = "/workspace/scripts"
    storage: Storage | None = None
    backoff_limit: int = BACKOFF_LIMIT
    ttl_seconds_after_finished: int | None = None
    active_deadline_seconds: int | None = None
    overrides: Mapping[str, t.Any] | None = None
    network_policy: bool = True
    network_policy_from: Sequence[Mapping[str, t.Any]] = ()

    @property
    def selector(self) -> dict[str, str]:
        """What tells the job's pods from all others."""
        return {LABEL_ELASTIC_JOB: self.name, LABEL_GROUP: GROUP}

    @property
    def labels(self) -> dict[str, str]:
        """On every object and pod of the job."""
        more = {"app.kubernetes.io/name": "elastic", "app.kubernetes.io/instance": self.name, LABEL_ROLE: GROUP}
        return {**self.selector, **more}

    @property
    def config_name(self) -> str:
        """ConfigMap of the launcher."""
        return f"{self.name}-elastic"

    @property
    def files_name(self) -> str:
        """ConfigMap of the user's files."""
        return f"{self.name}-elastic-files"

    @property
    def policy_name(self) -> str:
        """NetworkPolicy of its pods."""
        return f"{self.name}-elastic"

    @property
    def endpoint(self) -> str:
        """Where the pods meet: with c10d the name of pod 0, whatever node it runs on."""
        return self.rdzv_endpoint or f"{self.name}-0.{self.name}.{self.namespace}.svc:{C10D_PORT}"

    @property
    def script_path(self) -> str:
        """The script as the pods see it."""
        if self.script.startswith(REMOTE):
            return f"{FETCHED_PATH}/{posixpath.basename(self.script)}"
        return self.script if self.script.startswith("/") else f"{self.files_path}/{self.script}"

    @property
    def spec_parts(self) -> dict[str, str]:
        """A hash per option that says something, without replicas, which may change while it runs."""
        spec = dataclasses.asdict(self)
        # Who may connect is not what is trained.
        del spec["replicas"], spec["network_policy"], spec["network_policy_from"]
        if self.backend == "native":
            del spec["backend"]  # which jobs of earlier versions do not name
        pod = spec.pop("pod")
        return {
            key: fingerprint(value) for key, value in {**spec, **pod}.items() if value not in (None, (), [], {}, "")
        }


def from_params(params: Mapping[str, t.Any]) -> ElasticJob:
    """The job that module options describe, checked."""
    names = {field.name for field in dataclasses.fields(ElasticJob)} - {"pod", "storage"}
    plain = {key: value for key, value in params.items() if key in names and value is not None}
    replicas = plain.get("replicas")
    storage = {key: value for key, value in (params.get("storage") or {}).items() if value is not None}
    job = ElasticJob(
        **{"min_replicas": replicas, "max_replicas": replicas, **plain},
        pod=PodSettings.from_params(params),
        storage=Storage(**storage) if storage else None,
    )
    check(job)
    return job


def check(job: ElasticJob) -> None:
    """Refuse everything that is known not to work."""
    check_name(job.name, "name", limit=NAME_MAX, service=True)
    check_count(job.min_replicas, "min_replicas", minimum=1)
    if not job.min_replicas <= job.replicas <= job.max_replicas:
        raise InvalidInput(
            f"replicas: {job.replicas} is not between min_replicas {job.min_replicas} and max_replicas {job.max_replicas}.",
            "The pods would wait for each other in vain, or be turned away.",
        )
    for name in ("join_timeout", "keep_alive_interval", "keep_alive_max_attempt"):
        check_count(getattr(job, name), name, minimum=1)
    for name in ("last_call_timeout", "max_restarts", "backoff_limit"):
        check_count(getattr(job, name), name)
    for name in ("ttl_seconds_after_finished", "active_deadline_seconds"):
        if getattr(job, name) is not None:
            check_count(getattr(job, name), name)
    if not (job.nproc_per_node in ("auto", "cpu", "gpu") or (job.nproc_per_node.isdigit() and int(job.nproc_per_node))):
        raise InvalidInput(f"nproc_per_node: '{job.nproc_per_node}' is neither a number nor auto, cpu or gpu.")
    _check_endpoint(job)
    _check_script(job)
    _check_backend(job)
    if job.storage and job.storage.size is not None:
        quantity(job.storage.size, "storage.size")


def _check_endpoint(job: ElasticJob) -> None:
    if job.rdzv_backend == "c10d":
        if job.rdzv_endpoint:
            raise InvalidInput("rdzv_endpoint: with c10d the pods meet at pod 0.", "Leave it out.")
        return
    host, _colon, port = (job.rdzv_endpoint or "").rpartition(":")
    if not host or not port.isdigit():
        raise InvalidInput(
            f"rdzv_endpoint: '{job.rdzv_endpoint or ''}' is not HOST:PORT, which etcd-v2 needs.", "Example: etcd:2379"
        )
    check_port(int(port), "rdzv_endpoint")


def _check_backend(job: ElasticJob) -> None:
    """What training-operator cannot do is refused, rather than ignored."""
    if job.backend == "native":
        return
    # Each of its pods has a Service of its own name.
    check_name(f"{job.name}-worker-{job.max_replicas - 1}", "name of the last pod", service=True)
    if job.backoff_limit != BACKOFF_LIMIT:
        raise InvalidInput(
            "backoff_limit: with backend pytorchjob, pods that are lost are made again and not counted.",
            "Leave it out.",
        )


def _check_script(job: ElasticJob) -> None:
    if job.script.startswith(REMOTE):
        if not job.script.partition("://")[2].partition("/")[2]:
            raise InvalidInput(f"script: '{job.script}' names no object in its bucket.")
    elif not job.script.startswith("/") and job.script not in job.files:
        known = ", ".join(sorted(job.files)) or "none"
        raise InvalidInput(
            f"script: '{job.script}' is not among files ({known}).", "Or give a path in the pods, s3://... or gs://..."
        )
    check_files(job.files)


def manifests(job: ElasticJob) -> list[Manifest]:
    """All objects of JOB."""
    return [*around(job), apply_overrides(_job(job), job.overrides)]


def around(job: ElasticJob) -> list[Manifest]:
    """What the pods need of either backend: the launcher, the user's files, storage, and the name that finds them all."""
    check(job)
    config = _config_map(job, job.config_name, _launcher())
    config["metadata"]["annotations"] = {ANNOTATION_SPEC_PARTS: json.dumps(job.spec_parts, sort_keys=True)}
    files = [_config_map(job, job.files_name, job.files)] if job.files else []
    return [config, *files, *storage_claim(job), _service(job), *_ingress(job)]


def metadata(job: ElasticJob, name: str) -> Manifest:
    """Of an object of the job."""
    return {"name": name, "namespace": job.namespace, "labels": job.labels}


def _launcher() -> dict[str, str]:
    return {"launch.py": LAUNCHER, "fetch.sh": FETCH_SCRIPT}


def _config_map(job: ElasticJob, name: str, data: Mapping[str, str]) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(job, name), "data": dict(data)}


def _service(job: ElasticJob) -> Manifest:
    """Gives every pod its DNS name; not-ready ones too, because pods meet while they start."""
    spec: Manifest = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": job.selector,
        "ports": [{"name": "c10d", "port": C10D_PORT, "targetPort": C10D_PORT, "protocol": "TCP"}],
    }
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata(job, job.name), "spec": spec}


def _ingress(job: ElasticJob) -> list[Manifest]:
    """Who may connect, where somebody cares: the job's own pods, on every port, because the processes of torch choose theirs."""
    if not job.network_policy:
        return []
    flow = Flow([labelled(job.selector), *job.network_policy_from])
    return [network_policy(metadata(job, job.policy_name), job.selector, [flow])]


def rendezvous_conf(job: ElasticJob) -> dict[str, t.Any]:
    """torchrun's --rdzv-conf."""
    return {
        "join_timeout": job.join_timeout,
        "last_call_timeout": job.last_call_timeout,
        "keep_alive_interval": job.keep_alive_interval,
        "keep_alive_max_attempt": job.keep_alive_max_attempt,
        **job.rdzv_conf,
    }


def launcher_env(job: ElasticJob) -> dict[str, str]:
    """What the launcher and the script read besides the variables of the rendezvous."""
    values = {
        "PET_MONITOR_INTERVAL": f"{job.monitor_interval:g}",
        "MUSTER_SERVICE": job.name,
        "MUSTER_WARM_START": str(int(job.warm_start)),
    }
    if job.storage:
        values["MUSTER_RUN_DIR"] = f"{job.storage.mount_path}/{job.name}"
    return values


def torchrun_env(job: ElasticJob) -> list[Manifest]:
    """torchrun's own variables. The run's id is that of the Job object: scaling keeps it, a new run has a new one."""
    values = {
        "PET_NNODES": f"{job.min_replicas}:{job.max_replicas}",
        "PET_NPROC_PER_NODE": job.nproc_per_node,
        "PET_RDZV_BACKEND": job.rdzv_backend,
        "PET_RDZV_ENDPOINT": job.endpoint,
        "PET_RDZV_CONF": ",".join(f"{key}={value}" for key, value in rendezvous_conf(job).items()),
        "PET_MAX_RESTARTS": str(job.max_restarts),
        "PYTHONUNBUFFERED": "1",
        **launcher_env(job),
    }
    run = [
        field_env("MUSTER_RUN_UID", RUN_UID_FIELD),
        {"name": "PET_RDZV_ID", "value": f"{job.name}-$(MUSTER_RUN_UID)"},
    ]
    return [*run, *({"name": name, "value": value} for name, value in values.items())]


def template(job: ElasticJob, container: str, env: Sequence[Manifest], port: str = "c10d") -> Manifest:
    """The pod template, with the container and the port named as the backend wants them."""
    return pod_template(
        _pod(job, port),
        container=container,
        labels=job.labels,
        selector=job.selector,
        env=env,
        annotations={ANNOTATION_CONFIG_HASH: fingerprint([_launcher(), dict(job.files)])},
    )


def _pod(job: ElasticJob, port: str) -> PodSettings:
    """What the user chose, with what torchrun needs around it."""
    volumes: list[Manifest] = [{"name": "muster-config", "configMap": {"name": job.config_name}}]
    mounts: list[Manifest] = [{"name": "muster-config", "mountPath": CONFIG_PATH, "readOnly": True}]
    first: list[Mapping[str, t.Any]] = []
    if job.files:
        volumes.append({"name": "muster-files", "configMap": {"name": job.files_name}})
        mounts.append({"name": "muster-files", "mountPath": job.files_path, "readOnly": True})
    if job.storage:
        volumes.append({"name": "muster-storage", "persistentVolumeClaim": {"claimName": job.storage.claim_name}})
        mounts.append({"name": "muster-storage", "mountPath": job.storage.mount_path})
    if job.script.startswith(REMOTE):
        volumes.append({"name": "muster-script", "emptyDir": {}})
        mounts.append({"name": "muster-script", "mountPath": FETCHED_PATH})
        first.append(_fetch(job, [mounts[0], mounts[-1]]))
    return dataclasses.replace(
        job.pod,
        command=("python3", "-u", f"{CONFIG_PATH}/launch.py", job.script_path),
        volumes=(*job.pod.volumes, *volumes),
        volume_mounts=(*job.pod.volume_mounts, *mounts),
        init_containers=(*first, *job.pod.init_containers),
        ports=({"name": port, "container_port": C10D_PORT}, *job.pod.ports),
    )


def _fetch(job: ElasticJob, mounts: Sequence[Manifest]) -> Manifest:
    """The step that brings the script from its bucket, with the pod's own credentials and the image's own client."""
    security = RESTRICTED_CONTAINER if job.pod.security_context is None else dict(job.pod.security_context)
    return compact(
        {
            "name": "fetch-script",
            "image": job.pod.image,
            "imagePullPolicy": job.pod.image_pull_policy,
            "command": ["sh", f"{CONFIG_PATH}/fetch.sh", job.script, job.script_path],
            "env": merge_env(job.pod.env),
            "volumeMounts": list(mounts),
            "securityContext": security,
            "terminationMessagePolicy": "FallbackToLogsOnError",
        }
    )


def _job(job: ElasticJob) -> Manifest:
    pods = template(job, GROUP, torchrun_env(job))
    pods["spec"] |= {"restartPolicy": "Never", "subdomain": job.name}
    rules = [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        # Asked to end, by a scale-down or by whoever deleted the pod.
        _on_exit("Ignore", 143),
        _on_exit("FailJob", EXIT_SCRIPT_FAILED),
        _on_exit("FailJob", EXIT_MISCONFIGURED),
    ]
    spec = compact(
        {
            "completionMode": "Indexed",
            "completions": job.replicas,
            "parallelism": job.replicas,
            "backoffLimit": job.backoff_limit,
            # Counted by index, too, because Kubernetes then delays only that index' next pod, and not that of all others:
            # 10 seconds, twice as long after each loss, up to ten minutes.
            "backoffLimitPerIndex": job.backoff_limit,
            "ttlSecondsAfterFinished": job.ttl_seconds_after_finished,
            "activeDeadlineSeconds": job.active_deadline_seconds,
            "podFailurePolicy": {"rules": rules},
            # Agents end together, and a pod that came too late for that must not keep the job from ending.
            "successPolicy": {"rules": [{"succeededIndexes": "0"}]},
            "template": pods,
        }
    )
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata(job, job.name), "spec": spec}


def _on_exit(action: str, code: int) -> Manifest:
    return {"action": action, "onExitCodes": {"containerName": GROUP, "operator": "In", "values": [code]}}

# SPDX-License-Identifier: GPL-3.0-or-later
"""An elastic PyTorch job: an Indexed Job whose completions and parallelism are scaled together, and its Service.

Pod <name>-<i> keeps its index and its DNS name when it is replaced; the highest indexes are removed first when the job shrinks.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Mapping, Sequence

from ..._manifests.merge import apply_overrides
from ..._manifests.meta import ANNOTATION_CONFIG_HASH, Manifest, compact, spec_hash
from ..._manifests.pods import RESTRICTED_CONTAINER, field_env, merge_env, on_disruption, on_exit, pod_template
from ..._manifests.programs import program
from ..._manifests.servers import headless_service
from ..._manifests.shared import config_map, files_config_map, mounted
from ..._pod_programs import dataset_fetch, elastic_launch
from ..._pod_programs.dataset_fetch import EXIT_PERMANENT
from ..._pod_programs.elastic_launch import EXIT_MISCONFIGURED, EXIT_SCRIPT_FAILED, EXIT_STOPPED
from .spec import FETCHED_PATH, GROUP, ElasticJob

CONFIG_PATH = "/etc/muster/elastic"
_GRACE = 30
"""Kubernetes' default of terminationGracePeriodSeconds."""
_MARGIN = 3
C10D_PORT = 29400
FETCH = "fetch-script"
RUN_UID_FIELD = "metadata.labels['batch.kubernetes.io/controller-uid']"
RENDEZVOUS = "PET_RDZV_BACKEND"
# The taints of a node that is not ready or does not answer.
NODE_LOST = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
PROGRAMS = {"launch.py": program(elastic_launch), "fetch.py": program(dataset_fetch)}


def manifests(job: ElasticJob) -> list[Manifest]:
    """All objects of JOB."""
    ends = {"ttlSecondsAfterFinished": job.ttl_seconds_after_finished, "activeDeadlineSeconds": job.active_deadline_seconds}
    spec = {**job_spec(job, GROUP, job.name), **compact(ends)}
    described = job.metadata(job.name, in_queue=True)
    if job.queue_name and job.min_replicas < job.max_replicas:
        # Kueue then asks for the quota of more pods while the others run on, where it would stop the Job otherwise (its KEP 77).
        described["annotations"] = {"kueue.x-k8s.io/elastic-job": "true"}
    item = {"apiVersion": "batch/v1", "kind": "Job", "metadata": described, "spec": spec}
    return [*shared_objects(job), apply_overrides(item, job.overrides)]


def shared_objects(job: ElasticJob) -> list[Manifest]:
    """The objects that all backends need: launcher, the user's files, storage, the Service for the DNS names, and the NetworkPolicy."""
    config = config_map(job.metadata(job.objects_name), PROGRAMS)
    files = [files_config_map(job.metadata(job.files_name), job.files)] if job.files else []
    service = headless_service(job.metadata(job.name), job.selector, {"c10d": C10D_PORT})
    return [*job.shared_objects(config), *files, service]


def launcher_env(job: ElasticJob) -> dict[str, str]:
    """The variables of the launcher and the script, besides those of the rendezvous."""
    grace = job.pod.termination_grace_period_seconds
    return {
        "PET_MONITOR_INTERVAL": f"{job.monitor_interval:g}",
        "MUSTER_SERVICE": job.name,
        "MUSTER_WARM_START": str(int(job.warm_start)),
        # Kubernetes kills the launcher, too, when the period is over, and it has yet to end with the status of a pod that was stopped.
        "MUSTER_GRACE": str(max(1, (_GRACE if grace is None else grace) - _MARGIN)),
        **job.run_dir,
    }


def template(job: ElasticJob, container: str, env: Sequence[Manifest], port: str = "c10d") -> Manifest:
    """The pod template: the user's settings and those that torchrun needs; the backend determines the names of container and port."""
    maps = {"config": (job.objects_name, CONFIG_PATH)}
    if job.files:
        maps["files"] = (job.files_name, job.files_path)
    volumes, mounts = mounted("muster", maps, job.storage, job.files)
    first: list[Mapping[str, t.Any]] = []
    if job.is_remote:
        volumes.append({"name": "muster-script", "emptyDir": {}})
        mounts.append({"name": "muster-script", "mountPath": FETCHED_PATH})
        first.append(_fetch(job, [mounts[0], mounts[-1]]))
    pod = dataclasses.replace(
        job.pod,
        command=("python3", "-u", f"{CONFIG_PATH}/launch.py", job.script_path),
        volumes=(*job.pod.volumes, *volumes),
        volume_mounts=(*job.pod.volume_mounts, *mounts),
        init_containers=(*first, *job.pod.init_containers),
        tolerations=(*job.pod.tolerations, *_lost_node(job.pod.tolerations, job.unreachable_toleration_seconds)),
        ports=({"name": port, "container_port": C10D_PORT}, *job.pod.ports),
    )
    return pod_template(
        pod,
        container=container,
        labels=job.labels,
        selector=job.selector,
        env=env,
        annotations={ANNOTATION_CONFIG_HASH: spec_hash([PROGRAMS, dict(job.files)])},
    )


def _lost_node(tolerations: Sequence[Mapping[str, t.Any]], seconds: int) -> list[Manifest]:
    """TOLERATIONS with a limit for how long a pod stays bound to a lost node, unless they have one; Kubernetes' default is 300 seconds."""
    given = {entry.get("key") or "" for entry in tolerations if entry.get("effect") in (None, "", "NoExecute")}
    return [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
        for key in NODE_LOST
        if not given & {key, ""}
    ]


def _fetch(job: ElasticJob, mounts: Sequence[Manifest]) -> Manifest:
    """The init container that fetches the script from its bucket, with the pod's own credentials. Any image with Python will do."""
    security = RESTRICTED_CONTAINER if job.pod.security_context is None else dict(job.pod.security_context)
    store = [{"name": "DATASET_ENDPOINT_URL", "value": job.script_endpoint_url}] if job.script_endpoint_url else []
    keys = [{"secretRef": {"name": job.script_credentials_secret}}] if job.script_credentials_secret else []
    return compact(
        {
            "name": FETCH,
            "image": job.pod.image,
            "imagePullPolicy": job.pod.image_pull_policy,
            "command": [
                "python3",
                f"{CONFIG_PATH}/fetch.py",
                job.script,
                job.script_path,
                *([job.script_sha256] if job.script_sha256 else []),
            ],
            "env": merge_env(job.pod.env, store),
            "envFrom": keys,
            "volumeMounts": list(mounts),
            "securityContext": security,
            "terminationMessagePolicy": "FallbackToLogsOnError",
        }
    )


def job_spec(job: ElasticJob, container: str, name: str) -> Manifest:
    """The Indexed Job NAME, whose pods run the launcher in CONTAINER.

    torchrun's ID of a run is the uid of the Job: scaling keeps it, and a new run has a new one.
    """
    values = {
        "PET_NNODES": f"{job.min_replicas}:{job.max_replicas}",
        "PET_NPROC_PER_NODE": job.nproc_per_node,
        RENDEZVOUS: job.rdzv_backend,
        # With c10d the DNS name of pod 0, which begins as that of the Job, and stays when the pod moves to another node.
        "PET_RDZV_ENDPOINT": job.rdzv_endpoint or f"{name}-0.{job.name}.{job.namespace}.svc:{C10D_PORT}",
        "PET_RDZV_CONF": ",".join(f"{key}={value}" for key, value in job.rendezvous.items()),
        "PET_MAX_RESTARTS": str(job.max_restarts),
        "PYTHONUNBUFFERED": "1",
        **launcher_env(job),
    }
    run = [field_env("MUSTER_RUN_UID", RUN_UID_FIELD), {"name": "PET_RDZV_ID", "value": f"{job.name}-$(MUSTER_RUN_UID)"}]
    pods = template(job, container, [*run, *({"name": key, "value": value} for key, value in values.items())])
    pods["spec"] |= {"restartPolicy": "Never", "subdomain": job.name}
    rules = [
        *([on_exit("FailJob", FETCH, EXIT_PERMANENT)] if job.is_remote else []),
        on_disruption("Ignore"),
        # The pod was stopped, by a scale-down or because it was deleted.
        on_exit("Ignore", container, EXIT_STOPPED),
        on_exit("FailJob", container, EXIT_SCRIPT_FAILED),
        on_exit("FailJob", container, EXIT_MISCONFIGURED),
    ]
    return {
        "completionMode": "Indexed",
        "completions": job.replicas,
        "parallelism": job.replicas,
        "backoffLimit": job.backoff_limit,
        # Counted by index, too, because Kubernetes then delays only the next pod of that index, and not those of all others: 10
        # seconds, doubled after each loss, up to ten minutes.
        "backoffLimitPerIndex": job.backoff_limit,
        "podFailurePolicy": {"rules": rules},
        # Agents end together, and a pod that was too late to end with them must not keep the job from ending.
        "successPolicy": {"rules": [{"succeededIndexes": "0"}]},
        "template": pods,
    }

# SPDX-License-Identifier: GPL-3.0-or-later
"""A PERSIA training as the user describes it: the values, their checks, and the objects that both backends share."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import typing as t
from collections.abc import Mapping, Sequence

from ..._core.errors import InvalidInput
from ..._manifests.meta import (
    ANNOTATION_SPEC_PARTS,
    LABEL_GROUP,
    LABEL_JOB,
    STATEFULSET_NAME_MAX,
    Manifest,
    check_count,
    check_name,
    chosen,
    metadata,
    number,
    spec_hash,
)
from ..._manifests.network_policy import own_pods
from ..._manifests.pods import PodSettings, refuse_variables
from ..._manifests.programs import program
from ..._manifests.shared import File, check_files, config_map, files_config_map, mounted
from ..._manifests.storage import Storage, storage_claim
from ..._manifests.yaml_text import to_yaml
from ..._pod_programs import persia_program
from ..._pod_programs.persia_launch import PROGRAM
from . import gpus
from .config import check_embedding_config, check_global_config, current_names

CONFIG_PATH = "/etc/persia"
GATEWAY_PORT = 9091
_ADDRESS = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?:[1-9][0-9]{0,4}")
NATS_ADDRESS = re.compile(rf"nats://([^@/\s]+@)?{_ADDRESS.pattern}/?")

Role = t.Literal["nn_worker", "dataloader", "embedding_worker", "embedding_parameter_server"]


class Words(t.NamedTuple):
    """The words of PERSIA for one role.

    ``group``: of its Google Cloud document, which existing dashboards use, and so our default names of groups; ``launcher``: sub-commands
    of the current persia-launcher; ``script``: of the launch script of that document; ``section`` and ``former_section``: fields of a
    PersiaJob, now and before 24 November 2021; ``pod``: the part in the names of the operator's pods, <job>-<part>-<index>.
    """

    group: str
    launcher: str
    script: str
    section: str
    former_section: str
    pod: str


WORDS: dict[Role, Words] = {
    "embedding_parameter_server": Words(
        "emb-server", "embedding-parameter-server", "embserver", "embeddingParameterServer", "embeddingServer", "embedding-ps"
    ),
    "embedding_worker": Words("middleware", "embedding-worker", "middleware", "embeddingWorker", "middlewareServer", "embedding-worker"),
    "dataloader": Words("data-compose", "data-loader", "datacompose", "dataloader", "dataloader", "dataloader"),
    "nn_worker": Words("trainer", "nn-worker", "trainer", "nnWorker", "trainer", "nn-worker"),
}
NATS_ENV = "PERSIA_NATS_URL"
"""The variable with the address of NATS for PERSIA's processes."""
_OWNED = {
    NATS_ENV: "Use option nats_url.",
    "LOG_LEVEL": "Use option log_level.",
    "NPROC_PER_NODE": "Use option nn_worker.nproc_per_node.",
    "PERSIA_NN_WORKER_ENTRY": "Use option nn_worker.entry.",
    "PERSIA_DATALOADER_ENTRY": "Use option dataloader.entry.",
    "PERSIA_GLOBAL_CONFIG": "Use option global_config or global_config_path.",
    "PERSIA_EMBEDDING_CONFIG": "Use option embedding_config or embedding_config_path.",
    "PERSIA_METRICS_GATEWAY_ADDR": "Use option metrics.address.",
    **dict.fromkeys(("REPLICA_INDEX", "REPLICA_SIZE"), "It differs by pod, and is set for each."),
}
"""Variables of PERSIA's launcher -> the option that has their value."""
LogLevel = t.Literal["trace", "debug", "info", "warn", "error"]
# Options that a group inherits from the job unless it has them itself; lists and dicts as a whole.
_INHERITED = (
    "image",
    "image_pull_policy",
    "image_pull_secrets",
    "node_selector",
    "tolerations",
    "priority_class_name",
    "service_account_name",
    "pod_security_context",
    "security_context",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Group:
    """One kind of process of the training, and its pods."""

    role: Role
    group_name: str
    replicas: int
    pod: PodSettings
    nproc_per_node: int = 1
    entry: str | None = None
    pod_disruption_budget: Mapping[str, t.Any] | None = None
    overrides: Mapping[str, t.Any] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Metrics:
    """The gateway that PERSIA's short-lived processes push their metrics to."""

    enabled: bool = True
    image: str = "prom/pushgateway:v1.11.1"
    resources: Mapping[str, t.Any] | None = None
    address: str | None = None

    def __post_init__(self) -> None:
        """Refuse a gateway to which PERSIA's processes could not push."""
        if self.address is not None and not _ADDRESS.fullmatch(self.address):
            raise InvalidInput(f"metrics.address: '{self.address}' is not HOST:PORT.", "Example: pushgateway.monitoring:9091.")

    @property
    def makes_gateway(self) -> bool:
        """Whether the gateway is the training's own."""
        return self.enabled and self.address is None


@dataclasses.dataclass(frozen=True, kw_only=True)
class PersiaJob:
    """A training: its groups, its configuration, and when to give up."""

    name: str
    namespace: str
    groups: Mapping[Role, Group]
    backend: t.Literal["native", "operator"] = "native"
    global_config: Mapping[str, t.Any] | None = None
    global_config_path: str | None = None
    embedding_config: Mapping[str, t.Any] | None = None
    embedding_config_path: str | None = None
    files: Mapping[str, File] = dataclasses.field(default_factory=dict)
    files_path: str = "/workspace/scripts"
    nats_url: str = "nats://persia-nats-service:4222"
    launch_script: str | None = None
    log_level: LogLevel = "info"
    metrics: Metrics = dataclasses.field(default_factory=Metrics)
    storage: Storage | None = None
    completion: bool = True
    backoff_limit: int = 6
    active_deadline_seconds: int | None = None
    peer_timeout: int = 600
    queue_name: str | None = None
    queue_priority_class: str | None = None
    network_policy: bool = True
    network_policy_from: Sequence[Mapping[str, t.Any]] = ()

    def __post_init__(self) -> None:
        """Refuse every option that is known not to work."""
        check_name(self.name, "name", limit=STATEFULSET_NAME_MAX, service=True)
        _check_groups(self.name, self.groups, self.files, self.files_path)
        _check_config("global_config", self.global_config, self.global_config_path, check_global_config)
        _check_config("embedding_config", self.embedding_config, self.embedding_config_path, check_embedding_config)
        check_files(self.files)
        _check_program("launch_script", self.launch_script or "", self.files, self.files_path)
        own = f"{self.gateway}-service"
        if (self.metrics.address or "").split(":")[0] in (own, f"{own}.{self.namespace}"):
            raise InvalidInput(f"metrics.address: '{self.metrics.address}' is the gateway that the training makes itself.", "Leave it out.")
        if not NATS_ADDRESS.fullmatch(self.nats_url):
            raise InvalidInput(f"nats_url: '{self.nats_url}' is not nats://HOST:PORT.", "Example: nats://persia-nats-service:4222")
        check_count(self.backoff_limit, "backoff_limit")
        for name in ("active_deadline_seconds", "peer_timeout"):
            if getattr(self, name) is not None:
                check_count(getattr(self, name), name, minimum=1)

    @functools.cached_property
    def labels(self) -> dict[str, str]:
        """The labels of every object and pod of the job."""
        return {"app.kubernetes.io/name": "persia", "app.kubernetes.io/instance": self.name, LABEL_JOB: self.name}

    def selector(self, group_name: str) -> dict[str, str]:
        """The labels that select one group's pods."""
        return {LABEL_JOB: self.name, LABEL_GROUP: group_name}

    def object_name(self, group: Group) -> str:
        """Name of the group's workload and of its Service."""
        return f"{self.name}-{group.group_name}"

    @property
    def config_name(self) -> str:
        """The name of the ConfigMap with configuration and launch script."""
        return f"{self.name}-config"

    @property
    def files_name(self) -> str:
        """The name of the ConfigMap with the user's files."""
        return f"{self.name}-files"

    @property
    def policy_name(self) -> str:
        """The name of the NetworkPolicy of all its pods."""
        return f"{self.name}-persia"

    @property
    def gateway(self) -> str:
        """The name of the metrics gateway's Deployment, the same as that of the pod of PERSIA's operator."""
        return f"{self.name}-metrics-gateway"

    @property
    def gateway_address(self) -> str | None:
        """The address to which PERSIA's processes push their metrics."""
        return (self.metrics.address or f"{self.gateway}-service:{GATEWAY_PORT}") if self.metrics.enabled else None

    @functools.cached_property
    def parts(self) -> dict[str, str]:
        """A hash per option, by which trainings are compared."""
        # The NetworkPolicy does not affect the training.
        spec = {key: value for key, value in chosen(self).items() if not key.startswith("network_policy")}
        # Settings of the gateway do not, either: only whether there is one, and its address.
        address = {"address": self.metrics.address} if self.metrics.address else {}
        spec["metrics"] = {"enabled": self.metrics.enabled, **address}
        for role, group in spec.pop("groups").items():
            pod = group.pop("pod")
            spec |= {f"{role}.{key}": value for key, value in {**group, **pod}.items()}
        return {key: spec_hash(value) for key, value in spec.items()}


def from_params(params: Mapping[str, t.Any]) -> PersiaJob:
    """The job that module options describe, checked."""
    common = {key: params[key] for key in _INHERITED if params.get(key) is not None}
    groups = {role: _group(role, given, params, common) for role in WORDS if (given := params.get(role)) is not None}
    names = {field.name for field in dataclasses.fields(PersiaJob)} - {"groups", "metrics", "storage"}
    plain = {key: value for key, value in params.items() if key in names and value is not None}
    if "global_config" in plain:
        plain["global_config"] = current_names(plain["global_config"])
    if "launch_script" in plain:
        plain["launch_script"] = _in_pod(plain["launch_script"], params)
    return PersiaJob(
        **plain, groups=groups, metrics=Metrics(**_given(params.get("metrics") or {})), storage=Storage.from_params(params.get("storage"))
    )


def _given(mapping: Mapping[str, t.Any]) -> dict[str, t.Any]:
    return {key: value for key, value in mapping.items() if value is not None}


def _in_pod(path: str | None, params: Mapping[str, t.Any]) -> str | None:
    """The path in the pods of a program that is among the files or has a path of its own."""
    return path if not path or path.startswith("/") else f"{params.get('files_path') or PersiaJob.files_path}/{path}"


def _group(role: Role, given: Mapping[str, t.Any], params: Mapping[str, t.Any], common: Mapping[str, t.Any]) -> Group:
    pod = PodSettings.from_params(
        {
            **common,
            **_given(given),
            "name": f"{params['name']}-{given.get('group_name') or WORDS[role].group}",
            "env": [*(params.get("env") or []), *(given.get("env") or [])],
            "volumes": params.get("volumes") or [],
            "volume_mounts": [*(params.get("volume_mounts") or []), *(given.get("volume_mounts") or [])],
        }
    )
    return Group(
        role=role,
        group_name=given.get("group_name") or WORDS[role].group,
        replicas=given["replicas"],
        pod=pod,
        nproc_per_node=number(str(given.get("nproc_per_node", 1))),
        entry=_in_pod(given.get("entry"), params),
        pod_disruption_budget=_given(given.get("pod_disruption_budget") or {}) or None,
        overrides=given.get("overrides"),
    )


def _check_groups(job: str, groups: Mapping[Role, Group], files: Mapping[str, File], files_path: str) -> None:
    seen: dict[str, str] = {}
    for role, group in groups.items():
        check_count(group.replicas, f"{role}.replicas", minimum=0 if role == "dataloader" else 1)
        check_count(group.nproc_per_node, f"{role}.nproc_per_node", minimum=1)
        refuse_variables(group.pod.env, _OWNED, f"env of {role}")
        check_name(f"{job}-{group.group_name}", f"{role}: job and group name together",
                   limit=STATEFULSET_NAME_MAX, service=True)  # fmt: skip
        if role == "nn_worker":
            gpus.check(group.pod.resources, group.nproc_per_node, group.pod.image, role)
        if role in ("nn_worker", "dataloader"):
            if not group.entry:
                raise InvalidInput(f"{role}.entry: missing.", "Name the Python file to run, for example train.py.")
            _check_program(f"{role}.entry", group.entry, files, files_path)
        if group.group_name in seen:
            raise InvalidInput(f"{role}.group_name: '{group.group_name}' is {seen[group.group_name]}'s name too.")
        seen[group.group_name] = role


def _check_program(option: str, path: str, files: Mapping[str, File], files_path: str) -> None:
    inside = path.removeprefix(f"{files_path}/")
    # Another volume may be mounted in a folder that no file is in.
    known = "/" not in inside or any(name.partition("/")[0] == inside.partition("/")[0] for name in files)
    if inside != path and known and files and inside not in files:
        raise InvalidInput(f"{option}: '{inside}' is not among files.", f"There: {', '.join(sorted(files))}.")


def _check_config(name: str, value: t.Any, path: str | None, check: t.Callable[[t.Any], None]) -> None:
    if path is None:
        check(value)
    elif not path.startswith("/"):
        raise InvalidInput(f"{name}_path: '{path}' must be a path inside the pods, beginning with '/'.")


def config_paths(job: PersiaJob) -> tuple[str, str]:
    """The paths of global and embedding configuration in the pods."""
    return (
        job.global_config_path or f"{CONFIG_PATH}/global_config.yml",
        job.embedding_config_path or f"{CONFIG_PATH}/embedding_config.yml",
    )


def script_program() -> dict[str, str]:
    """The program that runs the scripts of trainers and data loaders, by its name beside the configuration."""
    return {PROGRAM: program(persia_program)}


def metrics_config(job: PersiaJob) -> Manifest:
    """The user's settings for metrics; what they leave out follows the job."""
    given = ((job.global_config or {}).get("common_config") or {}).get("metrics_config") or {}
    return {"enable_metrics": job.metrics.enabled, "job_name": job.name, **given}


def _global_config(job: PersiaJob) -> Manifest:
    """The user's global configuration, with the settings for metrics."""
    config = dict(job.global_config or {})
    return {**config, "common_config": {**(config.get("common_config") or {}), "metrics_config": metrics_config(job)}}


def shared_objects(job: PersiaJob, selector: Mapping[str, str], programs: Mapping[str, str]) -> list[Manifest]:
    """The objects that both backends need: configuration with PROGRAMS, the user's files, storage, and the NetworkPolicy for SELECTOR."""
    of, data = functools.partial(metadata, namespace=job.namespace, labels=job.labels), dict(programs)
    if job.global_config is not None:
        data["global_config.yml"] = to_yaml(_global_config(job))
    if job.embedding_config is not None:
        data["embedding_config.yml"] = to_yaml(job.embedding_config)
    config = config_map(of(job.config_name), data)
    # The record of the options is on this ConfigMap, because it must outlive each of the workloads.
    config["metadata"]["annotations"] = {ANNOTATION_SPEC_PARTS: json.dumps(job.parts, sort_keys=True)}
    files = [files_config_map(of(job.files_name), job.files)] if job.files else []
    claim = storage_claim(job.storage, job.namespace, job.labels)
    policy = own_pods(of(job.policy_name), selector, job.network_policy_from)
    return [config, *files, *claim, *([policy] if job.network_policy else [])]


def shared_volumes(job: PersiaJob) -> tuple[list[Manifest], list[Manifest]]:
    """Volumes and mounts that every group has: configuration, files, storage."""
    maps = {"config": (job.config_name, CONFIG_PATH)}
    if job.files:
        maps["files"] = (job.files_name, job.files_path)
    return mounted("persia", maps, job.storage, job.files)

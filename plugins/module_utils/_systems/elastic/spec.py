# SPDX-License-Identifier: GPL-3.0-or-later
"""An elastic PyTorch job as the user describes it: valid options, whichever backend runs it.

Objects that this collection creates for an elastic job, as options of the job: an etcd for the rendezvous, and a data set.
"""

from __future__ import annotations

import dataclasses
import functools
import posixpath
import re
import typing as t
from collections.abc import Mapping

from ..._core.errors import InvalidInput
from ..._manifests.meta import Manifest, check_count, check_name, check_port, check_sha256
from ..._manifests.pods import refuse_variables
from ..._manifests.program_training import ProgramTraining

Params = Mapping[str, t.Any]

CLIENT_PORT = 2379
TLS_PATH = "/etc/etcd-tls"
# Variables of torchrun's etcd-v2 client; the files are those of the Secret that etcd_cluster creates for clients.
TLS_CONF = {"protocol": "https", "ca_cert": f"{TLS_PATH}/ca.crt", "ssl_cert": f"{TLS_PATH}/tls.crt", "ssl_cert_key": f"{TLS_PATH}/tls.key"}
DATA_DIR = "MUSTER_DATA_DIR"


def with_etcd(given: Params, etcd: Mapping[str, t.Any]) -> Params:
    """The options with the etcd as endpoint, certificate and rendezvous settings. Options of the user win."""
    if given["rdzv_backend"] == "c10d":
        raise InvalidInput("etcd: with c10d pod 0 hosts the rendezvous.", "Leave it out, or set rdzv_backend to etcd-v2.")
    met: Params = {**given, "rdzv_endpoint": f"{etcd['name']}:{CLIENT_PORT}"}
    if not etcd["tls"]:
        return met
    volume = {"name": "etcd-tls", "secret": {"secretName": f"{etcd['name']}-client-tls"}}
    return {**_mounted(met, volume, TLS_PATH), "rdzv_conf": {**TLS_CONF, **(given["rdzv_conf"] or {})}}


def with_dataset(given: Params, dataset: Mapping[str, t.Any]) -> Params:
    """The options with the data set as volume and environment. A data set in a folder of the claim for checkpoints is mounted already."""
    storage = given.get("storage")
    shared = storage and storage["claim_name"] == dataset["claim_name"]
    root = storage["mount_path"] if storage and shared else dataset["mount_path"]
    if not shared:
        volume = {"name": "dataset", "persistentVolumeClaim": {"claimName": dataset["claim_name"]}}
        given = _mounted(given, volume, root)
    env = given.get("env") or []
    if any(variable["name"] == DATA_DIR for variable in env):
        return given
    return {**given, "env": [{"name": DATA_DIR, "value": f"{root}/{dataset['path']}"}, *env]}


def _mounted(given: Params, volume: Manifest, path: str) -> Params:
    mount = {"name": volume["name"], "mountPath": path, "readOnly": True}
    return {**given, "volumes": [*(given.get("volumes") or []), volume], "volume_mounts": [*(given.get("volume_mounts") or []), mount]}


FETCHED_PATH = "/run/muster/script"
GROUP = "worker"
# A Job's pods are <name>-<index>-<5 characters> and their host names <name>-<index>, which must be a DNS label.
NAME_MAX = 52
# Kubeflow Trainer's name for the replicated job with the trainers, and for their container.
TRAINER_NODE = "node"
REMOTE = ("s3://", "gs://")
_ENDPOINT = re.compile(r"([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")
_NO_PROGRAMS = (".sh", ".bash", ".ipynb", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".whl", ".pt", ".yml", ".yaml")
"""Ends of names of files that Python cannot run. It runs folders and ZIP archives that have __main__.py."""
_TORCHRUN = {
    "PET_NNODES": "replicas, min_replicas and max_replicas",
    "PET_NPROC_PER_NODE": "nproc_per_node",
    "PET_RDZV_BACKEND": "rdzv_backend",
    "PET_RDZV_ENDPOINT": "rdzv_endpoint",
    "PET_RDZV_CONF": "rdzv_conf",
    "PET_RDZV_ID": "name",
    "PET_MAX_RESTARTS": "max_restarts",
    "PET_MONITOR_INTERVAL": "monitor_interval",
    "PET_STANDALONE": "replicas: 1",
    "PET_NODE_RANK": "replicas",
    "PET_MASTER_ADDR": "rdzv_backend",
    "PET_MASTER_PORT": "rdzv_backend",
}
"""Variable of torchrun, which is also the flag --nnodes and so on -> the option that has its value."""
_SET = ("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
        "JOB_COMPLETION_INDEX", "MUSTER_RUN_UID", "MUSTER_SERVICE", "MUSTER_GRACE", "MUSTER_EXIT_AGAIN")  # fmt: skip
_OWNED = {
    **{name: f"Use option {option}." for name, option in _TORCHRUN.items()},
    "MUSTER_WARM_START": "Use option warm_start.",
    **dict.fromkeys(("PET_MODULE", "PET_NO_PYTHON", "PET_RUN_PATH"), "torchrun would not run a file of Python. Leave it out."),
    **dict.fromkeys(_SET, "It differs by pod or process, and is set for each."),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ElasticJob(ProgramTraining):
    """An elastic PyTorch job: the script, the number of pods, and the rendezvous."""

    app, label, group = "elastic", "muster.ml/elastic-job", GROUP
    changeable = ProgramTraining.changeable | {"replicas"}

    script: str
    script_sha256: str | None = None
    script_endpoint_url: str | None = None
    script_credentials_secret: str | None = None
    replicas: int
    min_replicas: int
    max_replicas: int
    backend: t.Literal["native", "pytorchjob", "trainjob"] = "native"
    nproc_per_node: str = "1"
    rdzv_backend: t.Literal["c10d", "etcd-v2"] = "c10d"
    rdzv_endpoint: str | None = None
    rdzv_conf: Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    join_timeout: int = 600
    last_call_timeout: int = 30
    keep_alive_interval: int = 5
    keep_alive_max_attempt: int = 3
    monitor_interval: float = 0.5
    warm_start: bool = True
    backoff_limit: int = 6
    unreachable_toleration_seconds: int = 30
    active_deadline_seconds: int | None = None

    def __post_init__(self) -> None:
        """Refuse every option that is known not to work."""
        super().__post_init__()
        check_name(self.name, "name", limit=NAME_MAX, service=True)
        check_count(self.min_replicas, "min_replicas", minimum=1)
        if not self.min_replicas <= self.replicas <= self.max_replicas:
            raise InvalidInput(
                f"replicas: {self.replicas} is not between min_replicas {self.min_replicas} and max_replicas {self.max_replicas}.",
                "The pods would wait for each other in vain, or be refused.",
            )
        for name in ("join_timeout", "keep_alive_interval", "keep_alive_max_attempt"):
            check_count(getattr(self, name), name, minimum=1)
        for name in ("last_call_timeout", "backoff_limit", "unreachable_toleration_seconds"):
            check_count(getattr(self, name), name)
        if self.active_deadline_seconds is not None:
            check_count(self.active_deadline_seconds, "active_deadline_seconds")
        nproc = self.nproc_per_node
        if not (nproc in ("auto", "cpu", "gpu") or (nproc.isdecimal() and int(nproc))):
            raise InvalidInput(f"nproc_per_node: '{nproc}' is neither a number nor auto, cpu or gpu.")
        refuse_variables(self.pod.env, _OWNED)
        _check_rendezvous(self)
        _check_program(self)
        for name in ("script_sha256", "script_endpoint_url", "script_credentials_secret"):
            if getattr(self, name) and not self.is_remote:
                raise InvalidInput(f"{name}: '{self.script}' is in no bucket.", "Leave it out, or give s3://... or gs://...")
        if self.script_sha256 is not None:
            check_sha256(self.script_sha256, "script_sha256")
        if self.backend != "native":
            _check_backend(self)

    @property
    def files_name(self) -> str:
        """The name of the ConfigMap with the user's files."""
        return f"{self.objects_name}-files"

    @functools.cached_property
    def is_remote(self) -> bool:
        """Whether the script comes from a bucket."""
        return self.script.startswith(REMOTE)

    @functools.cached_property
    def script_path(self) -> str:
        """The script as the pods see it."""
        if self.is_remote:
            return f"{FETCHED_PATH}/{posixpath.basename(self.script)}"
        return self.script if self.script.startswith("/") else f"{self.files_path}/{self.script}"

    @functools.cached_property
    def rendezvous(self) -> dict[str, t.Any]:
        """torchrun's --rdzv-conf."""
        return {
            "join_timeout": self.join_timeout,
            "last_call_timeout": self.last_call_timeout,
            "keep_alive_interval": self.keep_alive_interval,
            "keep_alive_max_attempt": self.keep_alive_max_attempt,
            **self.rdzv_conf,
        }


def from_params(params: Mapping[str, t.Any]) -> ElasticJob:
    """The job that module options describe."""
    if etcd := params.get("etcd"):
        params = with_etcd(params, etcd)
    if dataset := params.get("dataset"):
        params = with_dataset(params, dataset)
    given = {key: value for key, value in params.items() if value is not None}
    replicas = given.get("replicas")
    return ElasticJob.from_params({"min_replicas": replicas, "max_replicas": replicas, **given})


def _check_rendezvous(job: ElasticJob) -> None:
    """Refuse what torchrun's --rdzv-conf, KEY=VALUE with commas between them, would take for something else, and a wrong address."""
    for key, value in job.rdzv_conf.items():
        if "," in f"{key}{value}" or "=" in str(key):
            raise InvalidInput(f"rdzv_conf: {key} has a comma or '=', which separate settings.", "torchrun has no way to quote it.")
        if key in ElasticJob.__dataclass_fields__:
            raise InvalidInput(f"rdzv_conf: {key} is set by an option of its own.", f"Use option {key}.")
    endpoint = job.rdzv_endpoint or ""
    if job.rdzv_backend != "c10d":
        found = _ENDPOINT.fullmatch(endpoint)
        if not found:
            hint = "Example: etcd:2379. With TLS: option etcd, or rdzv_conf: {protocol: https}."
            raise InvalidInput(f"rdzv_endpoint: '{endpoint}' is not HOST:PORT, which etcd-v2 needs.", hint)
        check_port(int(found[3]), "rdzv_endpoint")
    elif endpoint:
        raise InvalidInput("rdzv_endpoint: with c10d pod 0 hosts the rendezvous.", "Leave it out.")


def _check_program(job: ElasticJob) -> None:
    """Refuse flags of torchrun, which would reach the script, and a script that is not there or not in Python."""
    for arg in map(str, job.pod.args):
        variable = "PET_" + arg.partition("=")[0].removeprefix("--").replace("-", "_").upper()
        if arg.startswith("--") and variable in _TORCHRUN:
            raise InvalidInput(
                f"args: {arg} is a flag of torchrun, and args are those of the script.", f"Use option {_TORCHRUN[variable]}."
            )
    script, files = job.script, job.files
    if script.endswith(_NO_PROGRAMS):
        raise InvalidInput(
            f"script: '{script}' is no Python program.",
            "Several files are a folder of storage, files, or a ZIP archive, with __main__.py where none of them is named.",
        )
    if job.is_remote:
        if not script.partition("://")[2].partition("/")[2]:
            raise InvalidInput(f"script: '{script}' names no object in its bucket.")
    elif not script.startswith("/") and script not in files:
        known = ", ".join(sorted(files)) or "none"
        raise InvalidInput(f"script: '{script}' is not among files ({known}).", "Or give a path in the pods, s3://... or gs://...")
    first = text.partition("\n")[0] if isinstance(text := files.get(script), str) else ""
    if first.startswith("#!") and "python" not in first:
        raise InvalidInput(f"script: '{script}' is for {first[2:].strip()}, not for Python.", "Name a Python program.")


def _check_backend(job: ElasticJob) -> None:
    """Refuse what training-operator and Trainer cannot do, rather than ignore it."""
    last = job.max_replicas - 1
    if job.backend == "pytorchjob":
        # The operator creates a Service for each pod, with the same name.
        check_name(f"{job.name}-worker-{last}", "name of the last pod", service=True)
        if job.backoff_limit != ElasticJob.backoff_limit:
            raise InvalidInput("backoff_limit: with backend pytorchjob, lost pods are created again and not counted.", "Leave it out.")
    if job.backend == "trainjob":
        if job.min_replicas != job.max_replicas:
            raise InvalidInput(
                f"min_replicas: {job.min_replicas} with max_replicas {job.max_replicas}, and the size of a TrainJob is fixed.",
                "Leave out both, or use backend: native.",
            )
        # JobSet 0.12 refuses longer names of pods.
        check_name(f"{job.name}-{TRAINER_NODE}-0-{last}-abcde", "name of the last pod")

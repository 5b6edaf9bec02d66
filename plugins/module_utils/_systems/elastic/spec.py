# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""An elastic PyTorch job as the user describes it: valid options, whichever backend runs it."""

from __future__ import annotations

import dataclasses
import functools
import posixpath
import typing as t
from collections.abc import Mapping

from ..._core.errors import InvalidInput
from ..._manifests.meta import check_count, check_name, check_port
from ..._manifests.program_training import ProgramTraining
from ..._manifests.shared import File
from .attachments import with_dataset, with_etcd

FETCHED_PATH = "/run/muster/script"
GROUP = "worker"
# A Job's pods are <name>-<index>-<5 characters> and their host names <name>-<index>, which must be a DNS label.
NAME_MAX = 52
REMOTE = ("s3://", "gs://")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ElasticJob(ProgramTraining):
    """What torchrun runs, on how many pods, and how they meet."""

    app, label, group = "elastic", "muster.ml/elastic-job", GROUP
    changeable = ProgramTraining.changeable | {"replicas"}

    script: str
    script_endpoint_url: str | None = None
    script_credentials_secret: str | None = None
    replicas: int
    min_replicas: int
    max_replicas: int
    backend: t.Literal["native", "pytorchjob"] = "native"
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
                f"replicas: {self.replicas} is not between min_replicas {self.min_replicas} and max_replicas "
                f"{self.max_replicas}.",
                "The pods would wait for each other in vain, or be refused.",
            )
        for name in ("join_timeout", "keep_alive_interval", "keep_alive_max_attempt"):
            check_count(getattr(self, name), name, minimum=1)
        for name in ("last_call_timeout", "backoff_limit", "unreachable_toleration_seconds"):
            check_count(getattr(self, name), name)
        if self.active_deadline_seconds is not None:
            check_count(self.active_deadline_seconds, "active_deadline_seconds")
        _check_nproc(self.nproc_per_node)
        _check_endpoint(self.rdzv_backend, self.rdzv_endpoint or "")
        _check_script(self.script, self.files)
        for name in ("script_endpoint_url", "script_credentials_secret"):
            if getattr(self, name) and not self.is_remote:
                raise InvalidInput(
                    f"{name}: '{self.script}' is in no bucket.", "Leave it out, or give s3://... or gs://..."
                )
        if self.backend == "pytorchjob":
            _check_pytorchjob(self.name, self.max_replicas, self.backoff_limit)

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


def _check_nproc(nproc: str) -> None:
    if not (nproc in ("auto", "cpu", "gpu") or (nproc.isdigit() and int(nproc))):
        raise InvalidInput(f"nproc_per_node: '{nproc}' is neither a number nor auto, cpu or gpu.")


def _check_endpoint(backend: str, endpoint: str) -> None:
    if backend == "c10d":
        if endpoint:
            raise InvalidInput("rdzv_endpoint: with c10d pod 0 hosts the rendezvous.", "Leave it out.")
        return
    host, _colon, port = endpoint.rpartition(":")
    if not host or not port.isdigit():
        raise InvalidInput(f"rdzv_endpoint: '{endpoint}' is not HOST:PORT, which etcd-v2 needs.", "Example: etcd:2379")
    check_port(int(port), "rdzv_endpoint")


def _check_script(script: str, files: Mapping[str, File]) -> None:
    if script.startswith(REMOTE):
        if not script.partition("://")[2].partition("/")[2]:
            raise InvalidInput(f"script: '{script}' names no object in its bucket.")
    elif not script.startswith("/") and script not in files:
        known = ", ".join(sorted(files)) or "none"
        raise InvalidInput(
            f"script: '{script}' is not among files ({known}).", "Or give a path in the pods, s3://... or gs://..."
        )


def _check_pytorchjob(name: str, max_replicas: int, backoff_limit: int) -> None:
    """Refuse what training-operator cannot do, rather than ignore it."""
    # The operator creates a Service for each pod, with the same name.
    check_name(f"{name}-worker-{max_replicas - 1}", "name of the last pod", service=True)
    if backoff_limit != ElasticJob.backoff_limit:
        raise InvalidInput(
            "backoff_limit: with backend pytorchjob, lost pods are created again and not counted.",
            "Leave it out.",
        )

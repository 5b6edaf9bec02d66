# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A training as a JobSet, as the user describes it: valid options."""

from __future__ import annotations

import dataclasses
import functools
import typing as t
from collections.abc import Mapping, Sequence

from ..._core.errors import InvalidInput
from ..._manifests.meta import (
    LABEL_GROUP,
    LABEL_JOBSET,
    LABEL_ROLE,
    check_count,
    check_name,
    check_port,
    hashes,
)
from ..._manifests.pods import PodSettings
from ..._manifests.shared import File, check_files
from ..._manifests.storage import Storage
from .slices import with_tpu

GROUP = "slice"
# What may change while it runs, or does not affect the training.
_CHANGEABLE = ("suspend", "ttl_seconds_after_finished", "network_policy", "network_policy_from")


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobSet:
    """What the pods run, how many there are, and when the whole has succeeded or failed."""

    name: str
    namespace: str
    pod: PodSettings
    hosts: int
    slices: int = 1
    exclusive_topology: str | None = None
    coordinator_port: int = 8476
    success_operator: t.Literal["All", "Any"] = "All"
    max_restarts: int = 3
    restart_strategy: t.Literal["BlockingRecreate", "Recreate"] = "BlockingRecreate"
    suspend: bool | None = None
    ttl_seconds_after_finished: int | None = None
    queue_name: str | None = None
    queue_priority_class: str | None = None
    files: Mapping[str, File] = dataclasses.field(default_factory=dict)
    files_path: str = "/workspace/scripts"
    pod_annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)
    storage: Storage | None = None
    overrides: Mapping[str, t.Any] | None = None
    network_policy: bool = True
    network_policy_from: Sequence[Mapping[str, t.Any]] = ()

    def __post_init__(self) -> None:
        """Refuse every option that is known not to work."""
        check_count(self.hosts, "hosts", minimum=1)
        check_count(self.slices, "slices", minimum=1)
        check_name(self.name, "name", service=True)
        check_name(f"{self.name}-{GROUP}-{self.slices - 1}-{self.hosts - 1}-abcde", "name of the last pod")
        check_port(self.coordinator_port, "coordinator_port")
        check_count(self.max_restarts, "max_restarts")
        if self.ttl_seconds_after_finished is not None:
            check_count(self.ttl_seconds_after_finished, "ttl_seconds_after_finished")
        if self.queue_priority_class and not self.queue_name:
            raise InvalidInput("queue_priority_class: there is no queue without queue_name.")
        check_files(self.files)

    @functools.cached_property
    def selector(self) -> dict[str, str]:
        """The labels that select the pods."""
        return {LABEL_JOBSET: self.name, LABEL_GROUP: GROUP}

    @functools.cached_property
    def labels(self) -> dict[str, str]:
        """The labels of every object and pod."""
        more = {"app.kubernetes.io/name": "jobset", "app.kubernetes.io/instance": self.name, LABEL_ROLE: GROUP}
        return {**self.selector, **more}

    @functools.cached_property
    def objects_name(self) -> str:
        """The name of the ConfigMap and of the NetworkPolicy."""
        return f"{self.name}-jobset"

    @functools.cached_property
    def parts(self) -> dict[str, str]:
        """A hash for each option that cannot change while it runs."""
        spec = {key: value for key, value in dataclasses.asdict(self).items() if key not in _CHANGEABLE}
        pod = spec.pop("pod")
        return hashes({**spec, **pod})


def from_params(params: Mapping[str, t.Any]) -> JobSet:
    """The training that module options describe."""
    if tpu := params.get("tpu"):
        params = with_tpu(params, tpu)
    elif params.get("hosts") is None:
        raise InvalidInput("hosts: missing.", "Give the number of pods of each slice, or the option tpu.")
    names = {field.name for field in dataclasses.fields(JobSet)} - {"pod", "storage"}
    plain = {key: value for key, value in params.items() if key in names and value is not None}
    return JobSet(**plain, pod=PodSettings.from_params(params), storage=Storage.from_params(params.get("storage")))

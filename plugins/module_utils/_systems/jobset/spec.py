# SPDX-License-Identifier: GPL-3.0-or-later
"""A training as a JobSet, as the user describes it: valid options."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Mapping

from ..._manifests.meta import check_count, check_name, check_port
from ..._manifests.program_training import ProgramTraining
from .slices import with_tpu

GROUP = "slice"


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobSet(ProgramTraining):
    """A training as a JobSet: its program, its number of pods, and its success and restart policy."""

    app, label, group = "jobset", "muster.ml/jobset", GROUP
    changeable = ProgramTraining.changeable | {"suspend", "ttl_seconds_after_finished"}

    hosts: int
    slices: int = 1
    exclusive_topology: str | None = None
    coordinator_port: int = 8476
    success_operator: t.Literal["All", "Any"] = "All"
    restart_strategy: t.Literal["BlockingRecreate", "Recreate"] = "BlockingRecreate"
    suspend: bool | None = None
    pod_annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse every option that is known not to work."""
        super().__post_init__()
        check_count(self.hosts, "hosts", minimum=1)
        check_count(self.slices, "slices", minimum=1)
        check_name(self.name, "name", service=True)
        check_name(f"{self.name}-{GROUP}-{self.slices - 1}-{self.hosts - 1}-abcde", "name of the last pod")
        check_port(self.coordinator_port, "coordinator_port")


def from_params(params: Mapping[str, t.Any]) -> JobSet:
    """The training that module options describe."""
    if tpu := params.get("tpu"):
        params = with_tpu(params, tpu)
    return JobSet.from_params(params)

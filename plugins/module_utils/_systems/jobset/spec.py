# SPDX-License-Identifier: GPL-3.0-or-later
"""A training as a JobSet, as the user describes it: valid options.

TPU slices as options of a JobSet: the pods of each slice, their nodes and their chips.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Mapping

from ..._core.errors import InvalidInput
from ..._gcp.tpu_slices import RESOURCE, Slice, tpu_slice
from ..._manifests.meta import check_count, check_name, check_port
from ..._manifests.program_training import ProgramTraining

NODE_POOL = "cloud.google.com/gke-nodepool"


def with_tpu(params: Mapping[str, t.Any], tpu: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return PARAMS with the option tpu resolved: one Job for each slice, and in it one pod for each of its machines."""
    try:
        found = tpu_slice(tpu["type"], tpu.get("topology"), tpu.get("machine_type"))
    except InvalidInput as error:
        raise InvalidInput(f"tpu: {error.message}", error.hint) from error
    if params.get("hosts") not in (None, found.hosts):
        raise InvalidInput(f"hosts: {params['hosts']}, and a slice of {_named(found)} has {found.hosts}.", "Leave out hosts.")
    slices = params.get("slices") or 1
    if slices > 1 and found.hosts == 1:
        # "Deploy TPU Multislices in GKE": only slices of several hosts can be connected.
        raise InvalidInput(
            f"slices: {slices} slices of {_named(found)} cannot train together, because each is one machine.",
            "Take one larger slice, or a topology with several machines.",
        )
    own = NODE_POOL if found.hosts > 1 else None
    topology = params.get("exclusive_topology")
    return {
        **params,
        "hosts": found.hosts,
        "node_selector": _merged(params.get("node_selector"), found.labels, "node_selector"),
        "resources": _resources(params.get("resources"), found),
        "exclusive_topology": own if topology is None else topology,
    }


def _resources(given: Mapping[str, t.Any] | None, found: Slice) -> dict[str, t.Any]:
    """Return resources with all chips of a node, because GKE does not share the chips of a slice's node between pods."""
    chips = {RESOURCE: found.chips_per_host}
    sides = {side: _merged((given or {}).get(side), chips, f"resources.{side}") for side in ("requests", "limits")}
    return {**(given or {}), **sides}


def _merged(given: Mapping[str, t.Any] | None, ours: Mapping[str, t.Any], where: str) -> dict[str, t.Any]:
    for key, value in ours.items():
        other = (given or {}).get(key, value)
        if str(other) != str(value):
            raise InvalidInput(f"{where}: {key} is {other}, and the option tpu means {value}.", "Leave it out.")
    return {**(given or {}), **ours}


def _named(found: Slice) -> str:
    return f"{found.generation.name} with topology {found.topology}"


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

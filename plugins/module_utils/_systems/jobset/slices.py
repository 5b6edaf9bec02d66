# SPDX-License-Identifier: GPL-3.0-or-later
"""TPU slices as options of a JobSet: the pods of each slice, their nodes and their chips. No I/O."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..._core.errors import InvalidInput
from ..._gcp.tpu_slices import RESOURCE, Slice, tpu_slice

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

# SPDX-License-Identifier: GPL-3.0-or-later
"""Node objects whose kubelet kwok simulates. No I/O."""

from __future__ import annotations

import json
import typing as t
from collections.abc import Mapping, Sequence

from .._core.errors import InvalidInput
from .._manifests.meta import Manifest
from .simulation import CAPACITY_ANNOTATION, TAINTS_ANNOTATION

TAINT = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
CAPACITY = {"cpu": "8", "memory": "32Gi", "pods": "110"}


def simulated_nodes(groups: Sequence[Mapping[str, t.Any]]) -> list[Manifest]:
    """The nodes of all groups, whose keys the role's argument spec validates, each named by the prefix of its group and a number."""
    prefixes = [group["name_prefix"] for group in groups]
    if len(set(prefixes)) < len(prefixes):
        raise InvalidInput(f"Groups of simulated nodes need different name_prefix values; got {prefixes}.")
    return [_node(group, number) for group in groups for number in range(group["count"])]


def _node(group: Mapping[str, t.Any], number: int) -> Manifest:
    name = f"{group['name_prefix']}-{number}"
    capacity = {key: str(value) for key, value in {**CAPACITY, **group.get("capacity", {})}.items()}
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**labels, **group.get("labels", {}), "type": "kwok"},
            "annotations": {
                CAPACITY_ANNOTATION: json.dumps(capacity, sort_keys=True),
                TAINTS_ANNOTATION: json.dumps([TAINT, *group.get("taints", [])], sort_keys=True),
            },
        },
    }

# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs of the trainers: requested only where a process can use them, because idle GPUs are the most expensive part of a cluster."""

from __future__ import annotations

import re
import typing as t
from collections.abc import Mapping

from ..._core.errors import InvalidInput
from ..._core.quantity import parse
from ..._manifests import pods

RESOURCE = "nvidia.com/gpu"
# The last part of an image's name, without tag and digest.
_NAME = re.compile(r"([^/:@]+)(?::[^/@]*)?(?:@.*)?$")


def count(resources: Mapping[str, t.Any] | None) -> int:
    """Return how many GPUs each pod requests."""
    asked = pods.resources(resources, "resources").get("limits") or {}
    return int(parse(asked.get(RESOURCE, 0)))


def check(resources: Mapping[str, t.Any] | None, nproc_per_node: int, image: str, where: str) -> None:
    """Refuse GPUs that no process would use: those beyond one for each process, and those of an image for CPUs.

    Images are judged by name only. launch.py checks the programs in the image before it starts them.
    """
    pods.resources(resources, f"{where}.resources")
    asked = count(resources)
    if not asked:
        return
    if asked != nproc_per_node:
        raise InvalidInput(
            f"{where}: {asked} {RESOURCE} for nproc_per_node {nproc_per_node}.", "Each process uses one GPU: give both the same number."
        )
    name = _NAME.search(image)
    words = set(re.split(r"[-_.]", name[1])) if name else set()
    if "cpu" in words and not words & {"cuda", "gpu"}:
        raise InvalidInput(
            f"{where}: {asked} {RESOURCE} for image {image}, which is one for CPUs by its name.",
            "Name an image whose PERSIA and torch are built for CUDA, or leave out the GPUs.",
        )

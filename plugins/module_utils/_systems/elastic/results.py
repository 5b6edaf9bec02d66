# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The results of an elastic job: values for programs, lines for people."""

from __future__ import annotations

import typing as t

from ..._training.status import JobStatus
from .world import World


def summary(status: JobStatus, world: World, rendezvous: str) -> dict[str, t.Any]:
    """The values. Logs vanish with their pods, so a later run may know less than the one that trained."""
    return {
        **status.summary(),
        "accuracy": world.accuracy,
        "nodes": world.nodes,
        "world_size": world.world_size,
        "epochs": None if world.epoch is None else world.epoch + 1,
        "rounds": None if world.round is None else world.round + 1,
        "steps": world.step,
        "backend": rendezvous,
    }


def table(summed: dict[str, t.Any]) -> list[str]:
    """The same values as lines."""
    shown = {key: "?" if value in (None, "") else value for key, value in summed.items()}
    accuracy = "" if summed["accuracy"] is None else f", accuracy {summed['accuracy']} on held-out data"
    return [
        f"Elastic PyTorch {shown['job']}: {shown['state']}{accuracy}",
        f"world: {shown['world_size']} processes in {shown['nodes']} pods; "
        f"rounds of the rendezvous by {shown['backend']}: {shown['rounds']}",
        f"trained: {shown['epochs']} epochs, {shown['steps']} steps",
    ]

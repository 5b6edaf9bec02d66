# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the logs of a PERSIA training tell about its ranks: who was started as what, and what each trainer had in the end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

STARTED = re.compile(r"starting: persia-launcher (\S+) (.*)")
FLAG = re.compile(r"--(\S+) (\d+)")
ENDED = re.compile(r"MUSTER rank=(\d+) world_size=(\d+) loss=([\d.]+) auc=([\d.]+) weights=(\w+)")
# One metric of the embedding servers, and one of the embedding workers.
METRICS = {"servers": "index_miss_count", "workers": "staleness"}


def persia_ranks(logs: Iterable[str]) -> list[str]:
    """Each pod as launch.py started it, such as 'data-loader 2 of 3'."""
    found = set()
    for role, arguments in (match for log in logs for match in STARTED.findall(log)):
        flags = dict(FLAG.findall(arguments))
        index, size = flags.get("node-rank", flags.get("replica-index")), flags.get("nnodes", flags.get("replica-size"))
        found.add(f"{role} {index} of {size}")
    return sorted(found)


def persia_endings(logs: Iterable[str]) -> list[dict[str, Any]]:
    """What each rank of the trainers measured in the end, with a hash of its dense weights."""
    return [
        {"rank": int(rank), "world_size": int(world), "loss": float(loss), "auc": float(auc), "weights": weights}
        for rank, world, loss, auc, weights in sorted(match for log in logs for match in ENDED.findall(log))
    ]


def persia_metrics(text: str) -> dict[str, list[int]]:
    """Which embedding servers and workers the metrics gateway has heard from, by their index."""
    return {
        who: sorted({int(index) for index in re.findall(rf'^{name}\w*{{.*instance="rep_(\d+)"', text, re.MULTILINE)})
        for who, name in METRICS.items()
    }


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"persia_ranks": persia_ranks, "persia_endings": persia_endings, "persia_metrics": persia_metrics}

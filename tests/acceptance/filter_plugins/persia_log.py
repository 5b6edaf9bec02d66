# SPDX-License-Identifier: GPL-3.0-or-later
"""What the logs of a PERSIA training tell: who was started as what, what was trained when, and what each trainer had in the end."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

STARTED = re.compile(r"starting: persia-launcher (\S+) (.*)")
FLAG = re.compile(r"--(\S+) (\d+)")
ENDED = re.compile(r"MUSTER rank=(\d+) world_size=(\d+) loss=([\d.]+) auc=([\d.]+) weights=(\w+)")
# Of the survey in roles/persia/files/example: 5,093 rows to train on, 64 a batch.
BATCHES_AN_EPOCH = 79
FIRST_STEP = re.compile(r"MUSTER attempt=(?P<attempt>\w+) step=\d+ time=(?P<time>[\d.]+)")
TRAINED = re.compile(r"MUSTER trained attempt=(?P<attempt>\w+) epoch=(?P<epoch>\d+) batches=(?P<batches>\S*) time=(?P<time>[\d.]+)")


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


def persia_lost(logs: Iterable[str], epochs: int | str, batches: int = BATCHES_AN_EPOCH) -> list[str]:
    """What is wrong with the steps that the model is made of; nothing where each batch of each epoch was trained once."""
    parts = [match for log in logs for match in TRAINED.finditer(log)]
    trained = Counter((int(part["epoch"]), number) for part in parts for number in _numbers(part["batches"]))
    desired = {(epoch, number) for epoch in range(1, int(epochs) + 1) for number in range(batches)}
    wrong = [f"epoch {epoch}: batch {number} was lost" for epoch, number in sorted(desired - trained.keys())]
    twice = sorted(place for place, times in trained.items() if times > 1 or place not in desired)
    return wrong + [f"epoch {epoch}: batch {number} was trained {trained[epoch, number]} times" for epoch, number in twice]


def _numbers(text: str) -> list[int]:
    """0-2,7 as 0, 1, 2, 7."""
    ends = [part.split("-") for part in text.split(",") if part]
    return [number for each in ends for number in range(int(each[0]), int(each[-1]) + 1)]


def persia_event(logs: list[str], since: float | str) -> dict[str, Any]:
    """The longest time without progress after an event, how many attempts began after it, and how many epochs were trained."""
    began: dict[str, float] = {}
    marks = {float(since)}
    for part in (match for log in logs for pattern in (TRAINED, FIRST_STEP) for match in pattern.finditer(log)):
        time = float(part["time"])
        began[part["attempt"]] = min(time, began.get(part["attempt"], time))
        marks.add(time)
    longest = max((later - earlier for earlier, later in pairwise(sorted(marks)) if earlier >= float(since)), default=0)
    epochs = sum(1 for log in logs for part in TRAINED.finditer(log) if float(part["time"]) > float(since))
    return {"seconds": round(longest, 1), "attempts": sum(1 for time in began.values() if time > float(since)), "epochs": epochs}


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"persia_endings": persia_endings, "persia_event": persia_event, "persia_lost": persia_lost, "persia_ranks": persia_ranks}

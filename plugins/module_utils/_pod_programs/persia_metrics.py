# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask the push gateway what it has of a PERSIA training: metrics.py SECONDS

PERSIA's processes only log that they could not push. This program therefore asks from where they push, and writes one line: MUSTER
metrics {...} with the number of processes that have pushed within the last SECONDS and the mean of each of their metrics, or the error.

Python 3.7 and its standard library are enough: PERSIA's wheels are made for 3.7 to 3.9.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import time
import typing as t
import urllib.request
from email.utils import parsedate_to_datetime
from pathlib import Path

SAMPLE = re.compile(r"(\w+)\{(.*)\} (\S+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
# Beside this program: the job by its name at the gateway, how many of its processes push, and the seconds between two pushes.
SETTINGS = "metrics.json"
# The gateway's own: when a process pushed last.
PUSHED = "push_time_seconds"
# Seconds that an answer may take, and for which a push may be late.
PATIENCE = 5.0


class Sample(t.NamedTuple):
    """One value of one process of the training."""

    metric: str
    process: tuple[str, str]
    value: float


def samples(text: str, job: str) -> t.Iterator[Sample]:
    """Everything in the answer of a gateway that is of this job; others may push there, too."""
    for line in text.splitlines():
        match = SAMPLE.match(line)
        labels = dict(LABEL.findall(match.group(2))) if match else {}
        if match and labels.get("job") == job:
            yield Sample(match.group(1), (labels.get("instance", ""), labels.get("ip_addr", "")), float(match.group(3)))


def figures(text: str, job: str, since: float) -> dict[str, float]:
    """How many processes have pushed since then, and the mean of each metric over them. What is older is an earlier run's."""
    found = list(samples(text, job))
    recent = {sample.process for sample in found if sample.metric == PUSHED and sample.value >= since}
    values: dict[str, list[float]] = {}
    for metric, process, value in found:
        if process in recent and math.isfinite(value) and not metric.startswith("push_") and not metric.endswith("_bucket"):
            values.setdefault(metric, []).append(value)
    return {"processes": len(recent), **{name: round(sum(of) / len(of), 6) for name, of in sorted(values.items())}}


def ask(address: str, job: str, seconds: float) -> dict[str, float]:
    """The figures of the last SECONDS, by the clock of the gateway."""
    # Inside of the cluster a proxy of the environment leads nowhere.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://{address}/metrics", timeout=PATIENCE) as answer:
        date, text = answer.headers["Date"], answer.read().decode()
    now = parsedate_to_datetime(date).timestamp() if date else time.time()
    return figures(text, job, now - seconds)


def main() -> None:
    """Ask until every process of this training that pushes has done so, or had the time to."""
    settings = json.loads(Path(__file__).with_name(SETTINGS).read_text())
    address, job = os.environ["PERSIA_METRICS_GATEWAY_ADDR"], settings["job"]
    began, ran, patience = time.monotonic(), float(sys.argv[1]), settings["seconds"] + PATIENCE
    while True:
        passed = time.monotonic() - began
        found: dict[str, t.Any] = {"error": f"the gateway {address} has no metrics of job {job} that this training pushed"}
        try:
            answer = ask(address, job, ran + passed)
            found = answer if answer["processes"] else found
        except (OSError, ValueError) as error:
            found = {"error": f"the gateway {address} does not answer: {error}"}
        if found.get("processes", 0) >= settings["processes"] or passed > patience:
            break
        time.sleep(1)
    sys.stdout.write(f"MUSTER metrics {json.dumps(found)}\n")


if __name__ == "__main__":
    main()

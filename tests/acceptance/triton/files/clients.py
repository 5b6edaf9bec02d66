# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks a Gateway for model add without a pause until there is a file, and prints what came of it. Each request has a connection of its own.

clients.py ADDRESS HOSTNAME STOP
"""

from __future__ import annotations

import collections
import http.client
import json
import pathlib
import sys
import threading
import time

ADDRESS, HOSTNAME, STOP = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
LONGEST_S = 1800
CLIENTS = 4
BODY = json.dumps(
    {
        "inputs": [
            {"name": "A", "datatype": "FP32", "shape": [1, 2], "data": [1.5, 2.0]},
            {"name": "B", "datatype": "FP32", "shape": [1, 2], "data": [1.0, 1.0]},
        ]
    }
)
found: collections.Counter[str] = collections.Counter()
times: list[float] = []
guard = threading.Lock()


def ask() -> str:
    connection = http.client.HTTPConnection(ADDRESS, timeout=30)
    try:
        connection.request("POST", "/v2/models/add/infer", BODY, {"Host": HOSTNAME, "Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            return f"status {answer.status}"
        return "good" if json.loads(text)["outputs"][0]["data"] == [2.5, 3.0] else "wrong"
    except (OSError, ValueError, http.client.HTTPException) as exc:
        return f"{type(exc).__name__} {exc}"
    finally:
        connection.close()


def work(end: float) -> None:
    while time.monotonic() < end and not STOP.exists():
        began = time.monotonic()
        what = ask()
        took = time.monotonic() - began
        with guard:
            found[what] += 1
            times.append(took)
        time.sleep(max(0.0, 0.05 - took))


began = time.monotonic()
threads = [threading.Thread(target=work, args=(began + LONGEST_S,)) for _number in range(CLIENTS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
seconds = time.monotonic() - began
times.sort()
print(  # noqa: T201
    json.dumps(
        {
            "good": found["good"],
            "failed": sum(found.values()) - found["good"],
            "seen": found,
            "seconds": round(seconds),
            "per_second": round(len(times) / seconds, 1),
            "p50_ms": round(1000 * times[len(times) // 2], 1),
            "p99_ms": round(1000 * times[len(times) * 99 // 100], 1),
        }
    )
)

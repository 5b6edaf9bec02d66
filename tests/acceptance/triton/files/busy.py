# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps Triton's model slow busy until there is a file: more clients at a time than three replicas have instances. Prints what came of it.

Each request has a connection of its own, so that a new replica gets some of them.
"""

from __future__ import annotations

import collections
import http.client
import json
import pathlib
import sys
import threading
import time

HOST, STOP = sys.argv[1], pathlib.Path(sys.argv[2])
CLIENTS, SECONDS, LONGEST_S = 24, 1.0, 1200
BODY = json.dumps({"inputs": [{"name": "SECONDS", "datatype": "FP32", "shape": [1], "data": [SECONDS]}]})
found: collections.Counter[str] = collections.Counter()
guard = threading.Lock()


def ask() -> str:
    connection = http.client.HTTPConnection(HOST, 8000, timeout=60)
    try:
        connection.request("POST", "/v2/models/slow/infer", BODY)
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException) as exc:
        return f"{type(exc).__name__} {exc}"
    finally:
        connection.close()
    return "good" if answer.status == 200 else f"status {answer.status}"


def work(end: float) -> None:
    while time.monotonic() < end and not STOP.exists():
        came = ask()
        with guard:
            found[came] += 1


threads = [threading.Thread(target=work, args=(time.monotonic() + LONGEST_S,)) for _number in range(CLIENTS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps({"good": found["good"], "failed": sum(found.values()) - found["good"], "seen": found}))  # noqa: T201

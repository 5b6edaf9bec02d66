# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks Triton without a pause until there is a file, and prints what came of it: many short requests, and some that take seconds.

Each request has a connection of its own, as the requests of many clients have.
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
LONGEST_S = 900
SHORT = {
    "inputs": [
        {"name": "A", "datatype": "FP32", "shape": [1, 2], "data": [1.5, 2.0]},
        {"name": "B", "datatype": "FP32", "shape": [1, 2], "data": [1.0, 1.0]},
    ]
}
LONG = {"inputs": [{"name": "SECONDS", "datatype": "FP32", "shape": [1], "data": [4.0]}]}
WORK = [("add", SHORT, [2.5, 3.0])] * 4 + [("slow", LONG, [4.0])] * 2
found: collections.Counter[str] = collections.Counter()
guard = threading.Lock()


def ask(model: str, body: dict, expected: list[float]) -> str:
    connection = http.client.HTTPConnection(HOST, 8000, timeout=30)
    try:
        connection.request("POST", f"/v2/models/{model}/infer", json.dumps(body))
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            return f"{model}: status {answer.status}"
        return "" if json.loads(text)["outputs"][0]["data"] == expected else f"{model}: wrong"
    except (OSError, http.client.HTTPException) as exc:
        return f"{model}: {type(exc).__name__} {exc}"
    finally:
        connection.close()


def work(model: str, body: dict, expected: list[float], end: float) -> None:
    while time.monotonic() < end and not STOP.exists():
        wrong = ask(model, body, expected)
        with guard:
            found[wrong or f"good {model}"] += 1
        time.sleep(0.02)


threads = [threading.Thread(target=work, args=(*row, time.monotonic() + LONGEST_S)) for row in WORK]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
good = sum(number for what, number in found.items() if what.startswith("good"))
print(json.dumps({"good": good, "failed": sum(found.values()) - good, "seen": found}))  # noqa: T201

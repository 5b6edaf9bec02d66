# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks for a model without a pause until there is the file /tmp/stop, and prints what came of it: clients.py ADDRESS HOSTNAME MODEL

Each request has a connection of its own, so that a new replica gets some of them. MODEL is one of the two below, which Triton serves, or a
language model, which OpenAI's client asks for the completion in the variable CLIENTS_TEXT: its parameters, and in "expected" the text.
"""

from __future__ import annotations

import collections
import dataclasses
import http.client
import json
import os
import pathlib
import sys
import threading
import time


@dataclasses.dataclass
class Work:
    """Clients that ask at the same time, each at most once in so many seconds, with these inputs, for these values."""

    clients: int
    every_s: float
    inputs: dict[str, tuple[list[int], list[float]]]
    expected: list[float]

    def ask(self, number: int) -> str:
        rows = [{"name": name, "datatype": "FP32", "shape": shape, "data": data} for name, (shape, data) in self.inputs.items()]
        connection = http.client.HTTPConnection(ADDRESS, timeout=60)
        try:
            headers = {"Host": HOSTNAME, "Content-Type": "application/json"}
            connection.request("POST", f"/v2/models/{MODEL}/infer", json.dumps({"inputs": rows}), headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200:
                return f"status {answer.status}"
            return "good" if json.loads(text)["outputs"][0]["data"] == self.expected else "wrong"
        finally:
            connection.close()


@dataclasses.dataclass
class Texts:
    """Clients of OpenAI's API, which never try again. Every second request is for a stream."""

    clients: int
    every_s: float

    def ask(self, number: int) -> str:
        import openai

        wanted = {"model": MODEL, **json.loads(os.environ["CLIENTS_TEXT"])}
        expected = wanted.pop("expected")
        with openai.OpenAI(base_url=f"http://{ADDRESS}/v1", api_key="none", max_retries=0, timeout=60) as client:
            try:
                answer = client.completions.create(**wanted, stream=number % 2 == 1)
                texts = [part.choices[0].text for part in answer] if number % 2 else [answer.choices[0].text]
            except openai.OpenAIError as exc:
                return f"{type(exc).__name__} {exc}"
        return "good" if "".join(texts) == expected else "wrong"


ADDRESS, HOSTNAME, MODEL = sys.argv[1:]
STOP = pathlib.Path("/tmp/stop")
LONGEST_S = 1800
WORK = {
    "add": Work(4, 0.05, {"A": ([1, 2], [1.5, 2.0]), "B": ([1, 2], [1.0, 1.0])}, [2.5, 3.0]),
    # More at a time than three replicas have instances.
    "slow": Work(24, 0.0, {"SECONDS": ([1], [1.0])}, [1.0]),
}.get(MODEL) or Texts(4, 0.0)
found: collections.Counter[str] = collections.Counter()
times: list[float] = []
guard = threading.Lock()


def ask(number: int) -> str:
    try:
        return WORK.ask(number)
    except (OSError, ValueError, http.client.HTTPException) as exc:
        return f"{type(exc).__name__} {exc}"


def work(end: float) -> None:
    while time.monotonic() < end and not STOP.exists():
        began = time.monotonic()
        what = ask(len(times))
        took = time.monotonic() - began
        with guard:
            found[what] += 1
            times.append(took)
        time.sleep(max(0.0, WORK.every_s - took))


began = time.monotonic()
threads = [threading.Thread(target=work, args=(began + LONGEST_S,)) for _number in range(WORK.clients)]
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

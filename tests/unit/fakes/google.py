# SPDX-License-Identifier: GPL-3.0-or-later
"""A project of Google Cloud in memory, as a session shows it.

It knows paths, labels, operations that take a look or two, and which requests are refused. ``tests/simulators/google`` judges requests
against Google's own description; this does not.
"""

import itertools
import typing as t

from ansible_collections.muster.ml.tests.unit.fakes.copies import copied

Body = dict[str, t.Any]
Answer = tuple[int, t.Any]
PROJECT = "muster-test"


def error(http: int, reason: str, message: str = "no", **more: t.Any) -> Answer:
    """An answer in the shape of compute and Cloud Storage; ``status`` and ``details`` make it one of the newer APIs."""
    rows = [{"reason": reason, "message": message, "domain": "global"}]
    return http, {"error": {"code": http, "message": message, "errors": rows, **more}}


class Google:
    """Things by path."""

    def __init__(self) -> None:
        self.things: dict[str, Body] = {}
        self.writes: list[tuple[str, str, Body]] = []
        self.operations: dict[str, list[Body]] = {}
        self.refusals: list[tuple[str, Answer]] = []  # (a part of "VERB path", what is answered instead, once)
        self.ends: list[Body] = []  # how the next operations end
        self.asked: list[str] = []
        self._ids = itertools.count(1)

    def request(self, verb: str, url: str, *, json: Body | None, params: Body) -> Answer:
        path = url.split("/v1/", 1)[-1]
        self.asked.append(f"{verb} {path}")
        for index, (part, answer) in enumerate(self.refusals):
            if part in f"{verb} {path}":
                del self.refusals[index]
                return answer
        if verb == "GET":
            return self._get(path, params)
        done = self._write(verb, path, copied(json or {}), params)
        if done[0] < 400:
            self.writes.append((verb, path, json or {}))
        return done

    def _get(self, path: str, _params: Body) -> Answer:
        if path in self.operations:
            states = self.operations[path]
            return 200, states.pop(0) if len(states) > 1 else states[0]
        if path in self.things:
            return 200, copied(self.things[path])
        return error(404, "notFound", f"{path} was not found")

    def _write(self, verb: str, path: str, body: Body, _params: Body) -> Answer:
        if verb == "DELETE":
            if path not in self.things:
                return error(404, "notFound")
            if not (self.ends and "error" in self.ends[0]):
                del self.things[path]
            return 200, self.operation(path)
        if verb == "POST" and path.rsplit("/", 1)[0] not in self.things:
            place = f"{path}/{body['name']}"
            if place in self.things:
                return error(409, "alreadyExists", f"{place} already exists")
            self.things[place] = {"id": str(next(self._ids)), "fingerprint": "f1", "labelFingerprint": "l1", **body}
            return 200, self.operation(path)
        owner = path if path in self.things else path.rsplit("/", 1)[0]
        self.things[owner].update(body)
        return 200, self.operation(path)

    def operation(self, path: str) -> Body:
        """One of compute that has to be looked at twice."""
        name = f"operation-{next(self._ids)}"
        started = {"kind": "compute#operation", "name": name, "status": "RUNNING", "progress": 40}
        parts = path.split("/")
        where = "global" if parts[2] == "global" else f"{parts[2]}/{parts[3]}"
        if where != "global":
            started[parts[2].removesuffix("s")] = f"https://www.googleapis.com/compute/v1/projects/{PROJECT}/{where}"
        end = self.ends.pop(0) if self.ends else {}
        self.operations[f"projects/{PROJECT}/{where}/operations/{name}"] = [started, {**started, "status": "DONE", "progress": 100, **end}]
        return started

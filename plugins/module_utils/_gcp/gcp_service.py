# SPDX-License-Identifier: GPL-3.0-or-later
"""APIs of a project as values."""

from __future__ import annotations

import dataclasses
import typing as t

from .._cloud.plan import Body, Plan, State
from .api import Api
from .plan import Step
from .resource import Resource

MOST = 20
"""The most APIs that one request may enable; one that reads may name fewer than 30 (BatchEnableServicesRequest, services.batchGet)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GcpServices(Resource):
    """APIs that are enabled; they are never disabled. A live value has the state of each by its name: ENABLED, DISABLED."""

    MARK = "name"
    LABEL = "APIs of Google project {project}"

    services: t.Sequence[str]

    @property
    def _wanted(self) -> list[str]:
        return sorted(set(self.services))

    def read(self, api: Api) -> Body:
        found: Body = {}
        for some in _batches(self._wanted):
            names = [f"projects/{self.project}/services/{name}" for name in some]
            answer = api.read(self.label, "serviceusage", f"projects/{self.project}/services:batchGet", names=names)
            rows = (answer or {}).get("services") or ()
            found |= {row["name"].rsplit("/", 1)[-1]: row.get("state", "DISABLED") for row in rows}
        return found

    def state(self, live: Body | None) -> State:  # noqa: ARG002  # enabling is waited for through its operation
        return State(stable=True, seen="there")

    def marks(self, live: Body) -> dict[str, str]:  # noqa: ARG002  # APIs have no owner label
        return {}

    def plan(self, live: Body | None) -> Plan:
        before = {name: (live or {}).get(name, "DISABLED") for name in self._wanted}
        missing = [name for name, state in before.items() if state != "ENABLED"]
        path = f"projects/{self.project}/services:batchEnable"
        steps = [
            Step("services.batchEnable", {"serviceIds": some}, f"enable {', '.join(some)}", "serviceusage", "update", path=path)
            for some in _batches(missing)
        ]  # fmt: skip
        return Plan(tuple(steps), {name: before[name] for name in missing}, dict.fromkeys(missing, "ENABLED"))


def _batches(names: t.Sequence[str]) -> list[list[str]]:
    return [list(names[start : start + MOST]) for start in range(0, len(names), MOST)]

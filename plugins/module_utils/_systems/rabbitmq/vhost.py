# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Virtual hosts of the broker, with their limits.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Mapping

from ..._core.deletion import Candidate
from .api import ManagementApi
from .plan import Comparison, Live, Plan, Step

_NAMED = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class Vhost:
    """A desired vhost; None leaves a field as it is."""

    name: str
    description: str | None = None
    tags: tuple[str, ...] | None = None
    tracing: bool | None = None
    limits: Mapping[str, int | None] = dataclasses.field(default_factory=dict)
    delete_queues: bool = False
    data_option: t.ClassVar[str] = "delete_queues: true"

    @property
    def label(self) -> str:
        return f"vhost {self.name}"

    @property
    def delete_data(self) -> bool:
        return self.delete_queues

    def read(self, api: ManagementApi) -> Live | None:
        found = api.get("vhosts", self.name)
        if found is None:
            return None
        limits = api.get("vhost-limits", self.name) or []
        queues = api.get("queues", self.name, columns="name") or []
        default = found.get("default_queue_type")
        return {
            "name": self.name,
            "description": found.get("description", ""),
            "tags": sorted(found.get("tags", [])),
            "tracing": found["tracing"],
            # 3.10 says "undefined" for what it does not have.
            "default_queue_type": None if default == "undefined" else default,
            "limits": limits[0]["value"] if limits else {},
            "queues": sorted(row["name"] for row in queues),
            "state": sorted(set(found.get("cluster_state", {}).values())),
        }

    def unready(self, live: Live | None) -> str | None:
        states = [state for state in (live or {}).get("state", []) if state != "running"]
        return f"it is {', '.join(states)}" if states else None

    def plan(self, live: Live | None) -> Plan:
        compare = Comparison()
        desired = {
            "description": self.description,
            "tags": None if self.tags is None else sorted(set(self.tags)),
            "tracing": self.tracing,
        }
        have: Live = live or {"description": "", "tags": [], "tracing": False, "limits": {}}
        if live is None:
            compare.before["vhost"], compare.after["vhost"] = None, self.name
        differing = [field for field, value in desired.items() if compare.differs(field, have[field], value)]
        if live is None or differing:
            # A PUT replaces the vhost's metadata: what it does not name would be emptied.
            body: Live = {field: have[field] if value is None else value for field, value in desired.items()}
            if have.get("default_queue_type"):
                body["default_queue_type"] = have["default_queue_type"]
            body["tags"] = ",".join(body["tags"])
            says = f"change {', '.join(differing)} of vhost {self.name}" if live else f"create vhost {self.name}"
            compare.steps.append(Step("PUT", ("vhosts", self.name), says, body))
        compare.limits("vhost", self.name, have["limits"], self.limits)
        return compare.plan()

    def plan_absent(self, live: Live) -> Plan:
        queues = live["queues"]
        more = f" and {len(queues) - _NAMED} more" if len(queues) > _NAMED else ""
        # The numbers of messages are seconds old; whether there is a queue is known exactly.
        data = f"has queues ({', '.join(queues[:_NAMED])}{more}), which may hold messages" if queues else ""
        step = Step("DELETE", ("vhosts", self.name), f"delete vhost {self.name}")
        return Plan((step,), dict(live), {}, Candidate(self.label, marked=True, recorded=True, data=data))

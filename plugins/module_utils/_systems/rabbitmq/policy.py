# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Policies of the broker: what queues and exchanges with certain names get, and what can be changed later.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Mapping

from ..._core.deletion import Candidate
from .api import ManagementApi
from .plan import Comparison, Live, Plan, Step

_FIELDS = ("pattern", "definition", "priority", "apply-to")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Policy:
    """A desired policy of one vhost. Names belong to their owners: others of the vhost are not touched."""

    name: str
    vhost: str
    pattern: str = ""
    definition: Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    priority: int = 0
    apply_to: str = "all"
    data_option: t.ClassVar[str] = ""
    delete_data: t.ClassVar[bool] = False

    @property
    def label(self) -> str:
        return f"policy {self.name} in vhost {self.vhost}"

    @property
    def path(self) -> tuple[str, ...]:
        return ("policies", self.vhost, self.name)

    def unready(self, _live: Live | None) -> str | None:
        return None

    def read(self, api: ManagementApi) -> Live | None:
        found = api.get(*self.path)
        return found and {key: found[key] for key in ("vhost", "name", *_FIELDS)}

    def plan(self, live: Live | None) -> Plan:
        compare = Comparison()
        body = {
            "pattern": self.pattern,
            "definition": dict(self.definition),
            "priority": self.priority,
            "apply-to": self.apply_to,
        }
        differing = [field for field in _FIELDS if compare.differs(field, (live or {}).get(field), body[field])]
        if differing:
            says = f"change {', '.join(differing)} of {self.label}" if live else f"create {self.label}"
            compare.steps.append(Step("PUT", self.path, says, body, vhost="" if live else self.vhost))
        return compare.plan()

    def plan_absent(self, live: Live) -> Plan:
        step = Step("DELETE", self.path, f"delete {self.label}")
        return Plan((step,), dict(live), {}, Candidate(self.label, marked=True, recorded=True))

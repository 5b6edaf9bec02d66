# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Queues of the broker. Their type and arguments are decided when they are created.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Mapping

from ..._core.deletion import Candidate
from ..._core.errors import Immutable, InvalidInput
from .api import ManagementApi
from .plan import Comparison, Live, Plan, Step
from .publish import EXCHANGE_OF_STUDIOML, STUDIOML

_TYPE = "x-queue-type"
_READ = ("name", "vhost", "type", "durable", "auto_delete", "arguments", "messages", "consumers", "state")
_NOT_EMPTY = "not empty"
"""What the broker says of a classic queue that it does not delete with if-empty."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Queue:
    """A desired queue. ARGUMENTS of None accepts any."""

    name: str
    vhost: str
    type: str = "classic"
    durable: bool = True
    auto_delete: bool = False
    arguments: Mapping[str, t.Any] | None = None
    delete_messages: bool = False
    studioml: bool = False
    """Whether it is bound to the exchange of StudioML, by which runners find it."""
    data_option: t.ClassVar[str] = "delete_messages: true"

    @property
    def label(self) -> str:
        return f"queue {self.name} in vhost {self.vhost}"

    @property
    def path(self) -> tuple[str, ...]:
        return ("queues", self.vhost, self.name)

    @property
    def delete_data(self) -> bool:
        return self.delete_messages

    @property
    def _routing_key(self) -> str:
        return f"StudioML.{self.name}"

    def check(self) -> None:
        """Refuse what no broker would declare."""
        if self.type != "classic" and (not self.durable or self.auto_delete):
            raise InvalidInput(
                f"type: a {self.type} queue is always durable and never deleted by itself.",
                "Leave durable and auto_delete out, or choose type: classic.",
            )
        if _TYPE in (self.arguments or {}):
            raise InvalidInput(f"arguments: the type of a queue is the option type, not {_TYPE}.")

    def read(self, api: ManagementApi) -> Live | None:
        found = api.get(*self.path, columns=",".join(_READ))
        if found is None:
            return None
        arguments = {key: value for key, value in (found.get("arguments") or {}).items() if key != _TYPE}
        # A queue that was just declared has no numbers yet.
        live = {**{key: found.get(key) for key in _READ}, "arguments": arguments}
        if self.studioml:
            bound = (STUDIOML, self._routing_key)
            rows = api.get(*self.path, "bindings") or []
            live["studioml"] = any((row["source"], row["routing_key"]) == bound for row in rows)
        return live

    def unready(self, _live: Live | None) -> str | None:
        return None

    def plan(self, live: Live | None) -> Plan:
        compare = Comparison()
        desired = {"type": self.type, "durable": self.durable, "auto_delete": self.auto_delete}
        fields = {**desired, "arguments": None if self.arguments is None else dict(self.arguments)}
        for field, value in fields.items():
            compare.differs(field, (live or {}).get(field), value)
        if live is not None and compare.after:
            raise Immutable(
                f"{self.label} exists with {_difference(compare.before)}, and {_difference(compare.after)} is desired: "
                "a queue keeps what it was created with.",
                "Limits and such can be set by a policy (muster.ml.rabbitmq_policy). For the rest delete the queue first (state: absent; "
                "its messages go with delete_messages: true), or choose another name.",
                details={"before": compare.before, "after": compare.after},
            )
        if live is None:
            # With the type, or the vhost's default type would decide.
            body = {"durable": self.durable, "auto_delete": self.auto_delete}
            arguments = {**(self.arguments or {}), _TYPE: self.type}
            says = f"create {self.type} {self.label}"
            compare.steps.append(Step("PUT", self.path, says, {**body, "arguments": arguments}, vhost=self.vhost))
        if self.studioml and compare.differs("studioml", (live or {}).get("studioml", False), True):
            compare.steps += self._binding()
        return compare.plan()

    def _binding(self) -> list[Step]:
        """Declare the exchange, which the broker deletes with its last binding, and bind the queue to it."""
        exchange, where = ("exchanges", self.vhost, STUDIOML), ("bindings", self.vhost, "e", STUDIOML, "q", self.name)
        return [
            Step("PUT", exchange, f"declare exchange {STUDIOML}", dict(EXCHANGE_OF_STUDIOML), vhost=self.vhost),
            Step(
                "POST", where, f"bind {self.label} to {STUDIOML}", {"routing_key": self._routing_key, "arguments": {}}
            ),
        ]

    def plan_absent(self, live: Live) -> Plan:
        """A classic queue is deleted only if it is empty, which the broker decides at that moment.

        Other types have no such deletion: the numbers decide, which the broker renews every 5 seconds.
        """
        messages, classic = live["messages"], live["type"] == "classic"
        data = f"holds {messages} messages" if messages else ""
        unknown = "" if classic or messages is not None or self.delete_messages else "its messages were not counted yet"
        guarded = classic and not self.delete_messages
        step = Step(
            "DELETE", self.path, f"delete {self.label}",
            query={"if-empty": "true"} if guarded else {}, kept_if=_NOT_EMPTY if guarded else "",
        )  # fmt: skip
        candidate = Candidate(self.label, marked=True, recorded=True, data=data, unknown=unknown)
        return Plan((step,), dict(live), {}, candidate)


def _difference(fields: Live) -> str:
    words = []
    for field, value in fields.items():
        if field == "arguments":
            words.append(" ".join(f"{key}={item}" for key, item in sorted(value.items())) or "no arguments")
        else:
            words.append(f"{field} {str(value).lower() if isinstance(value, bool) else value}")
    return ", ".join(words)

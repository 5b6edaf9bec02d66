# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans: the requests to the broker, and the changes that a user sees. Pure values, from a comparison of desired and live.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ..._core.deletion import Candidate
from ..._core.sensitive import Sensitive

if t.TYPE_CHECKING:
    from .api import ManagementApi

Live = dict[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Step:
    """One request that changes something; ``says`` is for people."""

    method: t.Literal["PUT", "POST", "DELETE"]
    path: tuple[str, ...]
    says: str
    body: dict[str, t.Any] | None = None
    query: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    password: Sensitive | None = None
    """The new password of the user that we log in as: requests after this one need it."""
    locks_out: bool = False
    """After it nothing can be asked any more as the user that we log in as, which the task allows."""
    vhost: str = ""
    """A vhost that must exist before."""
    kept_if: str = ""
    """Words of a refusal that mean that the broker keeps the object, and that is in order."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """The steps, and the fields they change, before and after. A deletion has ``candidate``, which decides whether it may be."""

    steps: tuple[Step, ...] = ()
    before: Live = dataclasses.field(default_factory=dict)
    after: Live = dataclasses.field(default_factory=dict)
    candidate: Candidate | None = None


class Comparison:
    """Collects steps and differences. A desired value of None accepts any live value."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.before: Live = {}
        self.after: Live = {}

    def differs(self, field: str, current: t.Any, desired: t.Any) -> bool:
        if desired is None or current == desired:
            return False
        self.before[field], self.after[field] = current, desired
        return True

    def limits(self, kind: str, name: str, live: t.Mapping[str, int], desired: t.Mapping[str, int | None]) -> None:
        """Limits of a user or vhost: None accepts any, a negative one means none (as the broker reads it)."""
        for limit, value in sorted(desired.items()):
            wanted = None if value is None or value < 0 else value
            if value is None or live.get(limit) == wanted:
                continue
            self.before[limit], self.after[limit] = live.get(limit), wanted
            path = (f"{kind}-limits", name, limit)
            if wanted is None:
                self.steps.append(Step("DELETE", path, f"remove {limit}"))
            else:
                self.steps.append(Step("PUT", path, f"{limit} {wanted}", {"value": wanted}))

    def plan(self) -> Plan:
        return Plan(tuple(self.steps), self.before, self.after)


class Resource(t.Protocol):
    """One desired object of the broker. Only ``read`` sends requests; the rest is pure."""

    data_option: t.ClassVar[str]
    """The option, with its value, that allows deleting its data; empty if it has none."""

    @property
    def label(self) -> str:
        """The name for messages: ``queue x in vhost /``."""

    @property
    def delete_data(self) -> bool:
        """Whether the user allowed deleting its data."""

    def read(self, api: ManagementApi) -> Live | None:
        """The live object, None if there is none."""

    def plan(self, live: Live | None) -> Plan:
        """The steps from the live to the desired object."""

    def plan_absent(self, live: Live) -> Plan:
        """The steps that delete it."""

    def unready(self, live: Live | None) -> str | None:
        """Why the object cannot be used yet, None when it can."""

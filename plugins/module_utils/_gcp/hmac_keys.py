# SPDX-License-Identifier: GPL-3.0-or-later
"""HMAC keys of a service account as values: which one is used, which ones are to go.

Google chooses the ID of a key and shows its secret once, both only in the answer to its creation, and keys have no labels (discovery
document of storage v1, projects.hmacKeys.create). So a key is this module's only if its ID was written into the Secret; nothing else is
ever deleted. Before a key is made, the keys that there are then are noted in the Secret. After a run that was killed, a later key may be
the one that it made in vain, or one of another cluster with the same service account: it is kept, and named.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .._cloud.plan import Body
from .api import Api
from .plan import Step

ACTIVE = "ACTIVE"


@dataclasses.dataclass(frozen=True)
class Note:
    """The note in the Secret: the ID of the key in use, the keys before a new one is created (None: none is), the keys that it replaced."""

    access_id: str = ""
    before: tuple[str, ...] | None = None
    replaced: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Decision:
    """Whether to make a key, which ones to delete, and whether the note of a run that was killed is to go.

    ``unknown`` are the keys that appeared after that note, and whose creator is unknown.
    """

    make: bool = False
    remove: tuple[str, ...] = ()
    clear: bool = False
    unknown: tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        return self.make or bool(self.remove) or self.clear


@dataclasses.dataclass(frozen=True)
class HmacKeys:
    """The keys of one service account."""

    project: str
    email: str

    @property
    def label(self) -> str:
        return f"HMAC key of Google service account {self.email}"

    def read(self, api: Api) -> dict[str, str]:
        """The state of each by its ID."""
        place = f"projects/{self.project}/hmacKeys"
        rows = api.pages(self.label, "storage", place, "items", serviceAccountEmail=self.email)
        return {row["accessId"]: row["state"] for row in rows}

    def creation(self) -> Step:
        return self._step("create", "create", "POST", "", params={"serviceAccountEmail": self.email})

    def removal(self, access_id: str, state: str) -> list[Step]:
        """Google deletes no key that is active."""
        request = {"state": "INACTIVE"}
        off = self._step("update", f"deactivate {access_id}", "PUT", f"/{access_id}", request)
        gone = self._step("delete", f"delete {access_id}", "DELETE", f"/{access_id}")
        return [off, gone] if state == ACTIVE else [gone]

    def _step(self, method: str, says: str, verb: str, below: str, request: Body | None = None, params: Body | None = None) -> Step:
        path = f"projects/{self.project}/hmacKeys{below}"
        operation = f"projects.hmacKeys.{method}"
        return Step(operation, request or {}, says, "storage", verb=verb, path=path, params=params or {})


def decide(states: t.Mapping[str, str], note: Note, *, rotate: bool) -> Decision:
    """Decide which steps lead to one key that is used and kept."""
    current = note.access_id if note.access_id in states else ""
    make = rotate or not current
    remove = [*_replaced(states, note), *([current] if make and current else [])]
    return Decision(make, tuple(remove), note.before is not None and not make, _unknown(states, note))


def decide_absent(states: t.Mapping[str, str], note: Note) -> Decision:
    current = [note.access_id] if note.access_id in states else []
    return Decision(remove=(*_replaced(states, note), *current), unknown=_unknown(states, note))


def _replaced(states: t.Mapping[str, str], note: Note) -> list[str]:
    """Keys that a run which was killed replaced, and could not delete any more."""
    return sorted(one for one in note.replaced if one in states and one != note.access_id)


def _unknown(states: t.Mapping[str, str], note: Note) -> tuple[str, ...]:
    if note.before is None:
        return ()
    return tuple(sorted(states.keys() - {*note.before, *note.replaced, note.access_id}))

# SPDX-License-Identifier: GPL-3.0-or-later
"""Long-running work, as compute, GKE and the newer services each describe it. An operation moves when somebody looks."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .api import Asked, Refused, handles
from .discovery import Body
from .journal import JOURNAL
from .state import SETTINGS, now


class Failed(Exception):
    """How an operation ends where it does not succeed. ``code`` is compute's word or, as a number, google.rpc.Code."""

    def __init__(self, code: Any, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code, self.message, self.status = code, message, status


def nothing() -> None:
    """No more than what was done when the request came."""


def unharmed(_failed: Failed) -> None:
    """The resource stays as it is when the operation fails."""


@dataclass
class Operation:
    """Of the resource ``target``, a path such as projects/p/global/networks/n. ``finish`` may raise Failed."""

    body: Body
    target: str
    left: int
    finish: Callable[[], None]
    fail: Callable[[Failed], None]
    ends: Callable[[Body, Failed | None], None]
    failed: Failed | None = None
    over: bool = False
    extra: dict[str, Any] = field(default_factory=dict)

    def look(self) -> None:
        """Somebody reads it."""
        if self.over:
            return
        self.left -= 1
        if self.left > 0:
            return
        self.over = True
        try:
            if self.failed:
                raise self.failed
            self.finish()
        except Failed as failed:
            self.failed = failed
            self.fail(failed)
        self.body["endTime"] = now()
        self.ends(self.body, self.failed)


OPERATIONS: dict[str, Operation] = {}


def begin(
    asked: Asked,
    key: str,
    body: Body,
    target: str,
    ends: Callable[[Body, Failed | None], None],
    finish: Callable[[], None] = nothing,
    fail: Callable[[Failed], None] = unharmed,
    failed: Failed | None = None,
) -> Operation:
    """The faults `slow` (polls) and `operation_error` (code, message) are taken here."""
    left = SETTINGS.polls
    if slow := JOURNAL.fault("slow", asked.id):
        left += int(slow.detail.get("polls", 5))
    if wrong := JOURNAL.fault("operation_error", asked.id):
        failed = Failed(wrong.detail["code"], wrong.detail["message"], wrong.detail.get("status", 400))
    made = Operation(body, target, max(left, 1), finish, fail, ends, failed)
    OPERATIONS[key] = made
    return made


def running(target: str) -> list[Operation]:
    """Operations of a resource, or of one inside of it, that are not over."""
    return [o for o in OPERATIONS.values() if not o.over and (o.target == target or o.target.startswith(f"{target}/"))]


def look_at(target: str) -> None:
    """Somebody reads the state of a resource: that is a look at what is being done to it, too."""
    for operation in running(target):
        operation.look()


def ends(body: Body, failed: Failed | None) -> None:
    """As google.longrunning.Operation says it."""
    body["done"] = True
    if failed:
        body.pop("response", None)
        body["error"] = {"code": failed.code, "message": str(failed)}


@handles("artifactregistry.projects.locations.operations.get", "serviceusage.operations.get")
def _get(asked: Asked) -> Body:
    operation = OPERATIONS.get(str(asked.params["name"]))
    if operation is None:
        raise Refused(404, "Requested entity was not found.")
    operation.look()
    return operation.body

# SPDX-License-Identifier: GPL-3.0-or-later
"""The messages of several queues: count them, and wait until the queues are empty."""

from __future__ import annotations

import re
import typing as t

from ..._core.brief import listed
from ..._core.clock import Deadline
from ..._core.pool import OnProgress, Progress
from ..._core.waiting import fixed_interval, wait_for
from .api import ManagementApi

FIELDS = ("vhost", "name", "messages", "messages_ready", "messages_unacknowledged", "consumers")
SETTLED_S = 6.0
"""The time for which a queue must be reported as empty: the broker counts its messages every five seconds."""
_PAUSE = 1.0

Row = dict[str, t.Any]


def rows(api: ManagementApi, vhost: str | None, names: re.Pattern[str]) -> list[Row]:
    """The queues of one vhost, or of all that the user may see, whose names match."""
    where = ("queues", vhost) if vhost else ("queues",)
    found = api.get(*where, columns=",".join(FIELDS)) or []
    picked = [{field: row.get(field) for field in FIELDS} for row in found if names.search(row["name"])]
    return sorted(picked, key=lambda row: (row["vhost"], row["name"]))


def wait_empty(api: ManagementApi, vhost: str | None, names: re.Pattern[str], timeout: float, progress: OnProgress) -> list[Row]:
    """Wait until none of them has a message, unacknowledged ones included, for as long as a count may be stale."""
    empty_since: float | None = None

    def observe() -> tuple[list[Row], str | None]:
        nonlocal empty_since
        found = rows(api, vhost, names)
        filled = [f"queue {row['name']} in vhost {row['vhost']} has {_messages(row)}" for row in found if row["messages"] != 0]
        now = api.clock.monotonic()
        empty_since = None if filled else now if empty_since is None else empty_since
        if empty_since is not None and now - empty_since >= SETTLED_S:
            return found, None
        return found, listed(filled) or "the numbers of messages, all 0, are not certain yet"

    return wait_for(
        observe, goal=f"Messages wait at the broker at {api.address}", deadline=Deadline(timeout, api.clock),
        pause=fixed_interval(_PAUSE, api.clock), progress=Progress(progress, api.clock),
        hint="Nothing was changed. Are there consumers, and do they take the messages?",
    )  # fmt: skip


def _messages(row: Row) -> str:
    if row["messages"] is None:
        return "a number of messages that is not known yet"
    return f"{row['messages']} messages, {row['messages_unacknowledged'] or 0} of them held by consumers"

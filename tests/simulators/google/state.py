# SPDX-License-Identifier: GPL-3.0-or-later
"""The project: what it has, kind by kind, and what becomes of it.

Real services take minutes. Here a change is over after its operation was read a few times: whoever waits must look again, and whoever
does not wait finds it unfinished.
"""

import datetime as dt
import hashlib
import ipaddress
import itertools
from dataclasses import dataclass, field
from typing import Any

from .api import Refused, error_info
from .discovery import Body

PROJECT = "muster-test"
NUMBER = "123456789012"
EXTERNAL = ipaddress.IPv4Network("203.0.113.0/24")  # documentation's


@dataclass
class Settings:
    # How often an operation is read before it ends.
    polls: int = 2
    endpoint: str = ""
    certificate_authority: str = ""
    # The address from which the tests reach the internet.
    caller_address: str = "203.0.113.7"
    # What external addresses are taken from.
    addresses: ipaddress.IPv4Network = EXTERNAL
    # What the caller may; patterns such as container.* are allowed. None: everything.
    permissions: list[str] | None = None


SETTINGS = Settings()
LATE = 1
"""How often what was just made is not seen yet where Google says that it takes a while to get around."""


@dataclass
class Thing:
    """A resource as its service describes it. ``etag`` moves with every change."""

    body: Body
    # The viewers to whom it is late yet, and how often each still does not see it.
    unseen: dict[str, int] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)


def see(thing: Thing | None, viewer: str) -> bool:
    """Whether a service sees a resource of another by now (or the same one, asked elsewhere)."""
    if thing is None:
        return False
    left = thing.unseen.setdefault(viewer, LATE)
    if left:
        thing.unseen[viewer] = left - 1
    return not left


@dataclass
class Project:
    id: str
    number: str
    # Service: how many requests to it are still refused because it is not enabled everywhere yet.
    services: dict[str, int] = field(default_factory=dict)
    policy: Body = field(default_factory=dict)
    shelves: dict[str, dict[str, Thing]] = field(default_factory=dict)

    def shelf(self, kind: str) -> dict[str, Thing]:
        return self.shelves.setdefault(kind, {})


PROJECTS: dict[str, Project] = {}
# Names that are unique in all of Google Cloud.
BUCKETS: dict[str, Thing] = {}
_numbers = itertools.count(1)


def number() -> int:
    """Different every time, alike in every run."""
    return next(_numbers)


def long_id() -> str:
    """As compute numbers its resources."""
    return str(4_000_000_000_000_000_000 + number())


def digest(*words: object, length: int = 8) -> str:
    """As Google's names have them at their end."""
    return hashlib.sha256("/".join(map(str, words)).encode()).hexdigest()[:length]


def now(offset_days: float = 0) -> str:
    moment = dt.datetime.now(dt.UTC) + dt.timedelta(days=offset_days)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def project(name: str) -> Project:
    """By its id or its number. One that is not there cannot be told from one that may not be seen."""
    for found in PROJECTS.values():
        if name in (found.id, found.number):
            return found
    info = error_info("CONSUMER_INVALID", "googleapis.com", consumer=f"projects/{name}")
    raise Refused(403, f"Permission denied on resource project {name}.", details=[info])

# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts what a run wrote, and what it listed, asked of the API server's audit log and of nobody else.

    python tests/support/audit.py /var/log/muster/audit.log --since 2026-11-21T10:00:00Z

prints every write request that a person or a tool sent since then, and how many there were; then every list that Muster asked for, and
how often.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

WRITING = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True)
class Request:
    """One request; ``dry_run``: of a write that stores nothing."""

    when: datetime
    verb: str
    uri: str
    user: str
    agent: str
    status: int
    dry_run: bool

    def __str__(self) -> str:
        word = f"{self.verb} (dry run)" if self.dry_run else self.verb
        return f"{self.when:%H:%M:%S.%f} {word} {self.uri} -> {self.status} by {self.user} ({self.agent})"


def parse_time(text: str) -> datetime:
    """An audit event's time; its nanoseconds are more than Python keeps."""
    return datetime.fromisoformat(text).astimezone(UTC)


def is_ours(event: dict[str, Any]) -> bool:
    """Whether a person or a tool asked: what controllers, nodes and operators do of themselves is not a run's doing."""
    return not event.get("user", {}).get("username", "").startswith("system:")


def is_write(event: dict[str, Any]) -> bool:
    """Whether the request changes stored objects; the access reviews are questions in the form of a create."""
    resource = event.get("objectRef", {}).get("resource", "")
    return event.get("verb") in WRITING and not resource.endswith("reviews")


def is_list_of_muster(event: dict[str, Any]) -> bool:
    """Whether the collection asked for a list. Its operators and other tools have names of their own."""
    return event.get("verb") == "list" and event.get("userAgent", "").startswith("muster")


def requests(
    lines: Iterable[str], since: datetime, until: datetime, desired: Callable[[dict[str, Any]], bool], user: str = ""
) -> Iterator[Request]:
    """The wanted requests between two times, of one user or of all, dry runs among them and marked."""
    for line in lines:
        if '"stage":"ResponseComplete"' not in line:
            continue
        event = json.loads(line)
        when = parse_time(event["requestReceivedTimestamp"])
        if not (since <= when <= until and is_ours(event) and desired(event)):
            continue
        if user and event["user"]["username"] != user:
            continue
        yield Request(
            when=when,
            verb=event["verb"],
            uri=event["requestURI"],
            user=event["user"]["username"],
            agent=event.get("userAgent", ""),
            status=event.get("responseStatus", {}).get("code", 0),
            dry_run="dryRun" in parse_qs(urlsplit(event["requestURI"]).query),
        )


def written(log: Path, since: datetime, until: datetime | None = None, user: str = "") -> list[Request]:
    """The write requests of a run, dry runs left out. A log that is not there is an error: it would prove anything.

    ``user``: where several write at once, the Kubernetes user of the run.
    """
    with lines_of(log) as lines:
        return [r for r in requests(lines, since, until or datetime.now(UTC), is_write, user) if not r.dry_run]


def listed(log: Path, since: datetime, until: datetime | None = None, user: str = "") -> Counter[str]:
    """How often Muster asked for each list: of a kind, in a namespace, by a selector."""
    with lines_of(log) as lines:
        return Counter(r.uri for r in requests(lines, since, until or datetime.now(UTC), is_list_of_muster, user))


@contextmanager
def lines_of(log: Path) -> Iterator[Iterable[str]]:
    """The log belongs to root; a plain user who may use sudo reads it that way."""
    if log.parent.exists() and not os.access(log, os.R_OK) and os.geteuid() != 0:
        yield subprocess.run(["sudo", "-n", "cat", log], check=True, capture_output=True, text=True).stdout.splitlines()
    else:
        with log.open(encoding="utf-8") as lines:
            yield lines


def main() -> int:
    parser = argparse.ArgumentParser(description="List and count the write and list requests in an audit log.")
    parser.add_argument("log", type=Path)
    parser.add_argument("--since", type=parse_time, required=True)
    parser.add_argument("--until", type=parse_time, default=None)
    options = parser.parse_args()
    found = written(options.log, options.since, options.until)
    for request in found:
        print(request)
    print(f"{len(found)} write requests")
    lists = listed(options.log, options.since, options.until)
    for uri, times in lists.most_common():
        print(f"{times} x list {uri}")
    print(f"{lists.total()} lists, {len(lists)} of them different")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

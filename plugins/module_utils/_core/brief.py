# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages about missing things: in full for the error that ends a wait, and in one short line for its progress. Counts with their noun."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Sequence

LONGEST = 120
"""Letters of a line of progress. The name of its task stands before it, the time after it."""
_LISTED = 4
"""The number of blocking things that are listed in full."""


class Missing(str):
    """A message about what is still missing, in full; ``brief`` is the same in one short line. ``more`` asks for its end late."""

    __slots__ = ("brief", "more")
    brief: str
    more: Callable[[], str] | None

    def __new__(cls, text: str, brief: str, more: Callable[[], str] | None = None) -> Missing:
        made = super().__new__(cls, text)
        made.brief, made.more = brief, more
        return made

    @classmethod
    def ending(cls, text: str, more: Callable[[], str]) -> Missing:
        """A message that is TEXT with the answer of MORE at its end."""
        return cls(text, text.brief if isinstance(text, cls) else text, more)

    def told(self) -> Missing:
        """The whole message."""
        said = self.more() if self.more else ""
        return Missing(f"{self}; {said}", f"{self.brief}; {said}") if said else self


def plural(number: int, noun: str) -> str:
    """1 pod, 2 pods; for nouns whose plural ends so."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(clauses: Sequence[str]) -> Missing | None:
    """Clauses like ``n-1: has no leader`` as one text; None where there are none."""
    if not clauses:
        return None
    more = f" (and {len(clauses) - _LISTED} more)" if len(clauses) > _LISTED else ""
    return Missing("; ".join(clauses[:_LISTED]) + more, grouped(clauses))


def as_diff(rows: Iterable[object]) -> dict[str, str]:
    """Return the diff that names each change on a line, as Ansible shows it with --diff."""
    return {"prepared": "".join(f"{row}\n" for row in rows)}


def grouped(clauses: Sequence[str]) -> str:
    """The reason that most of the clauses give, with the first that gives it and the number of the others."""
    subject, reason = most_common([(clause.partition(": ")[0], clause.partition(": ")[2]) for clause in clauses])
    return f"{subject}: {reason}" if reason else subject


def most_common(rows: Sequence[tuple[object, str]]) -> tuple[str, str]:
    """Return the most frequent reason of rows of subject and reason, with its first subject and the number of the others."""
    subjects = collections.defaultdict[str, list[object]](list)
    for subject, reason in rows:
        subjects[reason].append(subject)
    reason, alike = max(subjects.items(), key=lambda item: len(item[1]), default=("", [""]))
    return f"{alike[0]} and {len(alike) - 1} more" if len(alike) > 1 else str(alike[0]), reason


def in_brief(text: str, longest: int = LONGEST) -> str:
    """TEXT as one line of progress. A long one is cut between words in its middle: it begins with the object, and ends with the cause."""
    line = " ".join((text.told().brief if isinstance(text, Missing) else text).split())
    if len(line) <= longest:
        return line
    half = (longest - len(" ... ")) // 2
    head, tail = line[:half], line[-half:]
    return f"{(head.rpartition(' ')[0] or head).rstrip(' ,;:(')} ... {tail.partition(' ')[2] or tail}"

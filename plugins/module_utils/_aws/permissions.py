# SPDX-License-Identifier: GPL-3.0-or-later
"""A refusal of AWS for a missing permission, with the line of the published policy that gives it."""

from __future__ import annotations

import json
import re
import typing as t
from fnmatch import fnmatchcase
from pathlib import Path

from .api import DENIES

# The messages of AWS, and those of our modules where AWS has none; not of what another policy denies.
_LACKS = re.compile(r"(?:not authorized to perform:|the caller lacks) ((?:[a-z0-9-]+:[A-Za-z]+)(?: (?:or|and) [a-z0-9-]+:[A-Za-z]+)*)"
                    rf"(?!(?:(?!not authorized)[^\n])*(?:{DENIES.pattern}))")  # fmt: skip
NAMES = ("check", "apply", "teardown")


def missing_actions(text: str) -> list[str]:
    """The actions that a message says are missing, each once."""
    found = [action for match in _LACKS.findall(text) for action in re.split(r" (?:or|and) ", match)]
    return list(dict.fromkeys(found))


def explained(text: str, folder: Path) -> list[str]:
    """A line for each missing action, which names the policy that grants it."""
    lines = []
    for action in missing_actions(text):
        places = [place for name in NAMES for place in _places(action, folder / f"{name}.json")]
        lines.append(f"{action}: " + ("; ".join(places) or f"in none of the policies of {folder}"))
    return lines


def _places(action: str, path: Path) -> t.Iterator[str]:
    text = path.read_text(encoding="utf-8")
    numbered = list(enumerate(text.splitlines(), start=1))
    for statement in json.loads(text)["Statement"]:
        [first] = [number for number, line in numbered if f'"Sid": "{statement["Sid"]}"' in line]
        for pattern in statement["Action"]:
            if fnmatchcase(action.lower(), pattern.lower()):
                lines = [number for number, line in numbered if number > first and f'"{pattern}"' in line]
                yield f"{path}, line {lines[0]} (statement {statement['Sid']})"
                break

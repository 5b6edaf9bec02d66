# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters of lists, as the descriptions of `filter` in compute's discovery document have them, as far as clients use them.

`name = x`, `name != x`, `name eq REGEX`, `labels.owner:*`, joined by AND, spaces or brackets. Anything else is refused rather than guessed.
"""

from __future__ import annotations

import re
from typing import Any

from ..api import Refused
from ..discovery import Body

TERM = re.compile(r"\(*\s*([\w.-]+)\s*(=|!=|:|eq|ne)\s*(\"[^\"]*\"|'[^']*'|[^\s()]+)\s*\)*\s*(?:AND\s+)?")


def chosen(rows: list[Body], text: str) -> list[Body]:
    terms, at, text = [], 0, text.strip()
    while at < len(text):
        match = TERM.match(text, at)
        if match is None or text[at:].upper().startswith("OR "):
            raise Refused(400, f"Invalid value for field 'filter': '{text}'. Invalid list filter expression.", reason="invalid")
        terms.append((match[1], match[2], match[3].strip("\"'")))
        at = match.end()
    return [row for row in rows if all(_holds(_value(row, name), operator, wanted) for name, operator, wanted in terms)]


def _value(row: Any, name: str) -> Any:
    for word in name.split("."):
        row = row.get(word) if isinstance(row, dict) else None
    return row


def _holds(value: Any, operator: str, wanted: str) -> bool:
    shown = (
        {True: "true", False: "false", None: ""}.get(value, str(value))
        if not isinstance(value, int | list) or isinstance(value, bool)
        else str(value)
    )
    if operator == ":":
        return value is not None if wanted == "*" else wanted.rstrip("*") in shown
    if operator in ("eq", "ne"):
        return bool(re.fullmatch(wanted, shown)) == (operator == "eq")
    return (shown == wanted) == (operator == "=")

# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters of lists, as the descriptions of `filter` in compute's discovery document have them, as far as the collection uses them.

`labels.owner=x` and `name eq REGEX`. Anything else is refused rather than guessed.
"""

import re
from typing import Any

from ..api import Refused
from ..discovery import Body

TERM = re.compile(r"([\w.-]+)\s*(=|eq)\s*(\"[^\"]*\"|[^\s()\"]+)")


def chosen(rows: list[Body], text: str) -> list[Body]:
    if not text:
        return rows
    match = TERM.fullmatch(text)
    if match is None:
        raise Refused(400, f"Invalid value for field 'filter': '{text}'. Invalid list filter expression.", reason="invalid")
    wanted = match[3].strip('"')
    pattern = wanted if match[2] == "eq" else re.escape(wanted)
    return [row for row in rows if re.fullmatch(pattern, str(_value(row, match[1]) or ""))]


def _value(row: Any, name: str) -> Any:
    for word in name.split("."):
        row = row.get(word) if isinstance(row, dict) else None
    return row

# SPDX-License-Identifier: GPL-3.0-or-later
"""Write docs/operating/faults.md from build/test/faults.json, which the check `faults` leaves."""

import json
import sys
import typing as t
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "build" / "test" / "faults.json"
PAGE = ROOT / "docs" / "operating" / "faults.md"
BEGIN, END = "<!-- begin: tests/faults/table.py -->", "<!-- end -->"


def table(rows: t.Iterable[t.Mapping[str, t.Any]]) -> str:
    """The rows as Markdown."""
    lines = ["| fault | where | what happens | message |", "|---|---|---|---|"]
    lines += [f"| {row['fault']} | {row['where']} | {row['does']} | {row['message'] or 'none'} |" for row in rows]
    return "\n".join(lines)


def in_page() -> str:
    """The table as the page has it."""
    return PAGE.read_text(encoding="utf-8").split(BEGIN, 1)[1].split(END, 1)[0].strip()


def main() -> int:
    rows = json.loads(RESULTS.read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(BEGIN, 1)[0], text.split(END, 1)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{table(rows)}\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

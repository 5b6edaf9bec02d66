# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of what has become of each step of the documents name claims, scenarios and tests that exist, in every row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.docs.shown import exists
from support.places import ROOT

HEAD = "| the document has | Muster | seen | shown by |"
SEEN = {"runs here", "simulator", "rendered"}
# Pages with such a table.
TABLES = sorted(page for page in (ROOT / "docs").rglob("*.md") if HEAD in page.read_text(encoding="utf-8"))

Row = list[str]


def rows(text: str) -> list[Row]:
    """The cells of each row of the tables with that head."""
    found = []
    for table in text.split(HEAD)[1:]:
        for line in table.splitlines()[2:]:
            if not line.startswith("|"):
                break
            found.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return found


def named(shown: str) -> list[tuple[str, str]]:
    """Kind and name of what shows a row."""
    return [(kind.strip() or "test", name) for kind, name in re.findall(r"(claim |scenario |)`([^`]+)`", shown)]


def mistakes(row: Row) -> list[str]:
    if len(row) != 4:
        return [f"{len(row)} cells"]
    seen, shown = row[2:]
    wrong = [
        f"{kind} {name} does not exist".removeprefix("test ") for kind, name in named(shown) if not exists(kind, name)
    ]
    return [
        *([] if seen in SEEN else [f"seen: {seen}"]),
        *([] if named(shown) else ["names nothing that shows it"]),
        *wrong,
    ]


def test_there_are_tables() -> None:
    assert [page.name for page in TABLES if len(rows(page.read_text(encoding="utf-8"))) < 5] == []
    assert TABLES
    texts = [page.read_text(encoding="utf-8") for page in TABLES]
    assert len([item for text in texts for row in rows(text) for item in named(row[3])]) > 20, (
        "the check would hold for nothing"
    )


@pytest.mark.parametrize("page", TABLES, ids=lambda page: page.stem)
def test_every_row_names_what_shows_it(page: Path) -> None:
    wrong = {row[0]: mistakes(row) for row in rows(page.read_text(encoding="utf-8"))}
    assert {step: found for step, found in wrong.items() if found} == {}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("| a | b | runs here | claim `elastic/trains`, scenario `elastic`, `test_there_are_tables` |", []),
        ("| a | b | believed | `test_there_are_tables` |", ["seen: believed"]),
        ("| a | b | rendered | somebody |", ["names nothing that shows it"]),
        ("| a | b | rendered | claim `elastic/none` |", ["claim elastic/none does not exist"]),
        ("| a | b | rendered | `test_none` |", ["test_none does not exist"]),
        ("| a | b | rendered |", ["3 cells"]),
    ],
)
def test_what_a_row_must_have(line: str, expected: list[str]) -> None:
    (row,) = rows(f"{HEAD}\n|---|---|---|---|\n{line}\n")
    assert mistakes(row) == expected

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables "what is different from the document": each row names what shows it, and that exists and is of the kind that the row says."""

from __future__ import annotations

import re

import pytest
from support.docs.shown import exists
from support.places import ROOT

SHOWN = re.compile(r"(claim|scenario|test) `([\w/]+)`")
LEVELS = ("runs", "simulator", "rendered")
# What a level needs at least: a cluster that ran it, simulated nodes or a simulated account, or code that was checked.
BY = {"runs": {"claim", "scenario"}, "simulator": {"claim", "test"}, "rendered": {"test"}}


def rows() -> list[tuple[str, str]]:
    """Page and row of every table whose last column is 'shown'."""
    found = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for part in page.read_text(encoding="utf-8").split(
            "| the document | here | why | shown |\n|---|---|---|---|\n"
        )[1:]:
            table = part.split("\n\n")[0].splitlines()
            found += [(page.stem, row) for row in table]
    return found


def problems(page: str, row: str) -> list[str]:
    """What is wrong with a row."""
    cells = [cell.strip() for cell in row.strip("|").split(" | ")]
    if len(cells) != 4:
        return [f"{len(cells)} cells"]
    wrong = []
    for part in cells[3].split("; "):
        level, _colon, names = part.partition(": ")
        shown = SHOWN.findall(names)
        if level not in LEVELS or not shown or names != ", ".join(f"{kind} `{name}`" for kind, name in shown):
            wrong.append(f"'{part}' is not LEVEL: claim, scenario or test")
        wrong += [f"{kind} {name} does not exist" for kind, name in shown if not exists(kind, name, page)]
        wrong += [f"{level} is not shown by {kind} {name}" for kind, name in shown if kind not in BY.get(level, set())]
    return wrong


def test_there_are_tables() -> None:
    assert len(rows()) > 20, "the check below would hold for nothing"


@pytest.mark.parametrize(
    ("page", "row"), rows(), ids=lambda text: text.split("|")[1].strip()[:40] if "|" in text else text
)
def test_what_shows_a_row_exists(page: str, row: str) -> None:
    assert problems(page, row) == []


@pytest.mark.parametrize(
    ("shown", "problem"),
    [
        ("runs: claim `trians`", "claim trians does not exist"),
        ("runs: claim `elastic/seed_scale`", "claim elastic/seed_scale does not exist"),
        ("runs: scenario `persian`", "scenario persian does not exist"),
        ("rendered: test `test_nothing_at_all`", "test test_nothing_at_all does not exist"),
        ("runs: test `test_native`", "runs is not shown by test test_native"),
        ("works: claim `trains`", "is not LEVEL"),
        ("runs", "is not LEVEL"),
    ],
)
def test_a_row_that_shows_nothing_is_found(shown: str, problem: str) -> None:
    assert problem in " ".join(problems("persia", f"| a | b | c | {shown} |"))

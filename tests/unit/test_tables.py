# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of the documentation name in each row the claims, scenarios and tests that show it: they exist, and can show what the row says.

The rows of documents have numbers, and one of the proofs of a row carries its number: it is about this row.
"""

import dataclasses
import itertools
import re

import pytest
from faults.cases import ROWS
from faults.table import in_page, table
from support import cluster, static
from support.docs.shown import exists, is_about
from support.places import ROOT

# The head of a table, and how many rows there are at least in all tables with it.
DOCUMENT, STEPS, CLIENTS = (
    "| row | the document | here | why | shown |",
    "| row | the document has | Muster | seen | shown by |",
    "| feature | kubectl | Muster | test |",
)
REPORTS = "| row | kind of fault | test | red |"
NEWCOMERS = "| row | a newcomer | is told, or gets | shown by |"
LEAST = {DOCUMENT: 20, STEPS: 20, CLIENTS: 40}
# What a level needs at least: a cluster that ran it, simulated nodes or a simulated account, or code that was checked.
BY = {"runs": {"claim", "scenario"}, "simulator": {"claim", "test"}, "rendered": {"test"}}
SEEN = {"runs here", "simulator", "rendered"}
NAMED = re.compile(r"(claim |scenario |test |)`([\w/]+)`")


def rows(text: str, head: str) -> list[str]:
    """The rows of the tables of a text with that head."""
    return [line for part in text.split(f"{head}\n")[1:] for line in part.split("\n\n")[0].splitlines()[1:]]


def named(cell: str) -> list[tuple[str, str]]:
    """Kind and name of what shows a row."""
    return [(kind.strip() or "test", name) for kind, name in NAMED.findall(cell)]


def problems(head: str, row: str, page: str = "") -> list[str]:
    """What is wrong with a row."""
    cells = [cell.strip() for cell in row.strip("|").split(" | ")]
    number = cells.pop(0) if head in (DOCUMENT, STEPS) else ""
    if len(cells) != 4:
        return [f"{len(cells)} cells"]
    found = [] if not number or any(is_about(number, *proof, page) for proof in named(cells[3])) else [f"nothing carries row {number}"]
    found += [f"{kind} {name} does not exist" for kind, name in named(cells[3]) if not exists(kind, name, page)]
    if head == DOCUMENT:
        found += [problem for part in cells[3].split("; ") for problem in _level(part)]
    if head == STEPS and cells[2] not in SEEN:
        found.append(f"seen: {cells[2]}")
    return found if named(cells[3]) else [*found, "names nothing that shows it"]


def _level(part: str) -> list[str]:
    """What is wrong with "LEVEL: claim `a`, test `b`"."""
    level, _colon, names = part.partition(": ")
    if level not in BY or not names or names != ", ".join(f"{kind} `{name}`" for kind, name in named(names)):
        return [f"'{part}' is not LEVEL: claim, scenario or test"]
    return [f"{level} is not shown by {kind} {name}" for kind, name in named(names) if kind not in BY[level]]


@pytest.mark.parametrize("head", LEAST)
def test_what_shows_a_row_exists(head: str) -> None:
    pages = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))}
    found = {(page, row): problems(head, row, page) for page, text in pages.items() for row in rows(text, head)}
    assert len(found) >= LEAST[head]
    assert {key: wrong for key, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("head", "cells", "problem"),
    [
        (DOCUMENT, "c | runs: claim `trains`; rendered: test `test_each_difference_of_the_document_is_told`", ""),
        (DOCUMENT, "c | runs: claim `unchanged`", "nothing carries row 000.8"),
        (DOCUMENT, "c | runs: claim `trians`", "claim trians does not exist"),
        (DOCUMENT, "c | runs: claim `elastic/seed_scale`", "claim elastic/seed_scale does not exist"),
        (DOCUMENT, "c | runs: scenario `persian`", "scenario persian does not exist"),
        (DOCUMENT, "c | rendered: test `test_nothing_at_all`", "test test_nothing_at_all does not exist"),
        (DOCUMENT, "c | runs: test `test_native`", "runs is not shown by test test_native"),
        (DOCUMENT, "c | works: claim `trains`", "is not LEVEL"),
        (DOCUMENT, "c | runs", "is not LEVEL"),
        (STEPS, "runs here | claim `elastic/trains`, scenario `elastic`, `test_each_difference_of_the_document_is_told`", ""),
        (STEPS, "believed | `test_native`", "seen: believed"),
        (STEPS, "rendered | somebody", "names nothing that shows it"),
        (STEPS, "rendered", "3 cells"),
        (CLIENTS, "c | `test_none`", "test test_none does not exist"),
    ],
)
def test_a_row_that_shows_nothing_is_found(head: str, cells: str, problem: str) -> None:
    # That of one row that a test is about; claim unchanged is about none.
    number = "| 000.8 " if head in (DOCUMENT, STEPS) else ""
    (row,) = rows(f"{head}\n|---|---|---|---|\n{number}| a | b | {cells} |\n", head)
    found = problems(head, row, "persia")
    assert bool(found) == bool(problem)
    assert problem in " ".join(found)


def test_what_newcomers_are_told_is_asserted() -> None:
    """A text of the page stands in a test, and what the last column names exists."""
    told = "\n".join(path.read_text(encoding="utf-8") for kind in ("py", "yml") for path in (ROOT / "tests").rglob(f"*.{kind}"))
    page = rows((ROOT / "docs/operating/newcomers.md").read_text(encoding="utf-8"), NEWCOMERS)
    assert len(page) == 18
    for row in page:
        _row, _does, prints, shown = row.strip("| ").split(" | ")
        assert [text for text in re.findall("`(.+?)`", prints) if text not in told] == []
        assert [name for name in re.findall("`(test_.+?)`", shown) if not exists("test", name)] == []
        assert "`" in shown


def test_every_check_that_a_page_names_exists() -> None:
    checks = {check.name for check in (*static.CHECKS, *cluster.machine_checks(), *itertools.chain(*cluster.checks()))}
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")]
    lists = [said for page in pages for said in re.findall(r"\bchecks? ((?:`[\w-]+`(?:, | and )?)+)", page)]
    named = {name for said in lists for name in said.split("`")[1::2]}
    assert {"readme", "sanity", "unit"} < named
    assert named - checks == set()


def test_the_fault_matrix_is_the_one_that_runs() -> None:
    assert in_page() == table(map(dataclasses.asdict, ROWS)), "run the check faults, then python tests/faults/table.py"


def test_the_tests_of_reports_exist() -> None:
    """Each row of the page names files, and tests of each of them."""
    found = rows((ROOT / "docs" / "architecture" / "reports.md").read_text(encoding="utf-8"), REPORTS)
    assert len(found) > 60
    for row in found:
        for part in row.split(" | ")[2].split("; "):
            file, *tests = re.findall(r"`([^`]+)`", part)
            text = (ROOT / file).read_text(encoding="utf-8")
            assert tests, row
            assert [name for name in tests if f"def {name}(" not in text] == [], row


def test_the_rows_of_all_five_documents_have_numbers_of_their_own() -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))]
    numbers = [row.split(" | ")[0] for text in texts for head in (DOCUMENT, STEPS) for row in rows(text, head)]
    assert len(numbers) == len(set(numbers))
    assert {number[2:5] for number in numbers} == {"000", "001", "002", "003", "004"}
    assert all(re.fullmatch(r"\| [0-9]{3}\.[0-9]+", number) for number in numbers)

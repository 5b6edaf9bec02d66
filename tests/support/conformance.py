# SPDX-License-Identifier: GPL-3.0-or-later

"""Results of Kubernetes' conformance tests, from the JUnit files of all passes: how many of how many pass, and which do not and why."""

from __future__ import annotations

import json
import sys
import typing as t
import xml.etree.ElementTree as ET
from pathlib import Path

MARK = "[Conformance]"
# What Ginkgo says of a test that was not chosen; one that ends itself gives its reason.
LEFT_OUT = "skipped"


class Result(t.NamedTuple):
    """A test in one pass. Each pass lists every test, also those that it was told to leave out, which count as skipped."""

    state: t.Literal["failed", "passed", "skipped"]
    said: str


def results(files: t.Iterable[Path]) -> dict[str, Result]:
    """Each conformance test by name; what a pass ran is worth more than that another one left it out, and a failure most."""
    found: dict[str, Result] = {}
    for file in files:
        for case in ET.parse(file).getroot().iter("testcase"):  # noqa: S314 (written by the tests that were just run)
            name = case.get("name", "").removeprefix("[It] ")
            if MARK in name:
                one = of(case)
                found[name] = min(one, found.get(name, one), key=lambda result: (result.state, result.said == LEFT_OUT))
    return dict(sorted(found.items()))


def of(case: ET.Element) -> Result:
    for outcome in case:
        if outcome.tag in {"failure", "error"}:
            return Result("failed", (outcome.text or outcome.get("message") or "").strip())
        if outcome.tag == "skipped":
            return Result("skipped", outcome.get("message") or "")
    return Result("passed", "")


def summary(found: t.Mapping[str, Result]) -> list[str]:
    """The number that pass, and a line for each that ran and does not, with the beginning of what it says."""
    ran = {name: one for name, one in found.items() if one.said != LEFT_OUT}
    others = {name: one for name, one in ran.items() if one.state != "passed"}
    lines = [f"{one.state}: {name.replace(f' {MARK}', '')}: {' '.join(one.said.split())[:300]}" for name, one in others.items()]
    return [f"{len(ran) - len(others)} of {len(found)} conformance tests pass; {len(found) - len(ran)} were left out.", *lines]


def unexpected(found: t.Mapping[str, Result], known: t.Sequence[str]) -> list[str]:
    """The tests that failed and whose names have none of the KNOWN words."""
    return [name for name, one in found.items() if one.state == "failed" and not any(words in name for words in known)]


def main(folder: str, version: str, *known: str) -> None:
    found = results(sorted(Path(folder).glob("junit_*.xml")))
    page = {"kubernetes": version, "tests": {name: one._asdict() for name, one in found.items()}}
    (Path(folder) / "results.json").write_text(json.dumps(page, indent=1) + "\n", encoding="utf-8")
    print("\n".join(summary(found)))
    sys.exit(1 if unexpected(found, known) else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])

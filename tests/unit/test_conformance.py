# SPDX-License-Identifier: GPL-3.0-or-later

"""What make conformance says of Kubernetes' tests is what their JUnit files say."""

from __future__ import annotations

from pathlib import Path

from support import conformance

PAGE = '<testsuites><testsuite name="Kubernetes e2e suite">{}</testsuite></testsuites>'


def case(name: str, outcome: str = "") -> str:
    return f'<testcase name="[It] {name} [Conformance]">{outcome}</testcase>'


LEFT_OUT = '<skipped message="skipped"/>'
FAILED = '<failure message="short">no answer\n  after 30 s</failure>'


def test_each_test_counts_once_and_what_did_not_run_does_not_pass(tmp_path: Path) -> None:
    other = '<testcase name="[It] no conformance test"><failure>x</failure></testcase>'
    files = {
        "junit_parallel_01.xml": case("a") + case("b", FAILED) + case("c", LEFT_OUT) + case("d", LEFT_OUT) + case("e", LEFT_OUT) + other,
        "junit_serial_01.xml": case("a", LEFT_OUT) + case("b", LEFT_OUT) + case("c") + case("d", '<skipped message="needs 3 nodes"/>'),
    }
    for name, cases in files.items():
        (tmp_path / name).write_text(PAGE.format(cases), encoding="utf-8")
    found = conformance.results(sorted(tmp_path.glob("junit_*.xml")))
    assert {name[0]: one.state for name, one in found.items()} == {
        "a": "passed",
        "b": "failed",
        "c": "passed",
        "d": "skipped",
        "e": "skipped",
    }
    assert conformance.summary(found) == [
        "2 of 5 conformance tests pass; 1 were left out.",
        "failed: b: no answer after 30 s",
        "skipped: d: needs 3 nodes",
    ]
    assert conformance.unexpected(found, ["a [", "c ["]) == ["b [Conformance]"]
    assert conformance.unexpected(found, ["b ["]) == []

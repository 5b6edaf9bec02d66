# SPDX-License-Identifier: GPL-3.0-or-later
"""Which checks a change makes run again: too few would hide a fault."""

from pathlib import Path

import pytest
from support import cluster, inputs, static
from support.inputs import Green, key, matching, reached
from support.lanes import Check


def checks() -> dict[str, Check]:
    lanes = [static.CHECKS, cluster.machine_checks(), *cluster.checks()]
    return {check.name: check for lane in lanes for check in lane}


def reads(check: Check) -> set[str]:
    return reached(check.reads) if check.names else matching(check.reads)


@pytest.fixture(scope="module")
def read() -> dict[str, set[str]]:
    return {name: reads(check) for name, check in checks().items() if name not in cluster.GROUND}


def test_a_scenario_reads_the_roles_that_it_names_and_what_these_name(read: dict[str, set[str]]) -> None:
    found = read["molecule-studioml_client"]
    for name in (
        "extensions/molecule/studioml_client/verify.yml",
        "extensions/molecule/config.yml",
        "roles/studioml/tasks/main.yml",
        "roles/studioml_runner/defaults/main.yml",
        "plugins/modules/studioml_runner.py",
        "plugins/module_utils/_kube/engine.py",
    ):
        assert name in found
    assert "roles/kueue/tasks/main.yml" not in found


@pytest.mark.parametrize(
    ("file", "again", "not_again"),
    [
        ("plugins/module_utils/_kube/engine.py", ["unit", "molecule-persia", "differential", "simulator-aws"], []),
        ("roles/triton/tasks/main.yml", ["unit", "molecule-triton", "ansible-lint"], ["molecule-persia", "simulator-aws", "sanity"]),
        ("roles/eks_cluster/tasks/main.yml", ["unit", "simulator-aws"], ["simulator-google", "molecule-persia"]),
        ("roles/gke_network/tasks/main.yml", ["unit", "simulator-google"], ["simulator-aws", "molecule-persia"]),
        ("roles/local_images/vars/main.yml", ["molecule-persia", "molecule-triton", "studioml"], ["simulator-aws"]),
        ("roles/elastic/files/example/digits.csv.gz", ["unit", "simulator-aws", "studioml", "molecule-elastic"], ["molecule-persia"]),
        ("docs/platforms/eks.md", ["unit", "simulator-aws", "docs"], ["molecule-persia", "histories"]),
        ("tests/scheduler/cases.py", ["unit", "scheduler"], ["molecule-persia", "differential"]),
    ],
)  # fmt: skip
def test_a_change_runs_what_reads_it(read: dict[str, set[str]], file: str, again: list[str], not_again: list[str]) -> None:
    assert file in inputs.contents()
    assert [name for name in again if file not in read[name]] == []
    assert [name for name in not_again if file in read.get(name, ())] == []


def test_every_source_file_is_read_by_a_check(read: dict[str, set[str]]) -> None:
    assert set(inputs.contents()) == set().union(*read.values())


def test_the_key_changes_with_a_file_and_with_the_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key({"site.yml"})
    contents = inputs.contents()
    for name, changed in (("site.yml", True), ("constraints.txt", True), ("README.md", False)):
        monkeypatch.setattr(inputs, "contents", lambda name=name: {**contents, name: "another"})
        assert (key({"site.yml"}) != before) is changed


def test_a_check_is_green_with_the_inputs_of_its_last_pass_only(tmp_path: Path) -> None:
    path = tmp_path / "build" / "green.json"
    green = Green(path)
    assert green.since("unit", "k1") == ""
    green.note("unit", "k1", passed=True)
    assert Green(path).since("unit", "k1") == inputs.commit()
    assert Green(path).since("unit", "k2") == ""
    green.note("unit", "k1", passed=False)
    assert Green(path).since("unit", "k1") == ""

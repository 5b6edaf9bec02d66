# SPDX-License-Identifier: GPL-3.0-or-later
"""What Prometheus' own promtool makes of the alerts: their syntax, when they fire, and when not."""

from __future__ import annotations

import json
import os
import subprocess
import typing as t
from pathlib import Path

import pytest
import yaml
from support.places import ROOT, cache_home

from ansible_collections.muster.ml.plugins.module_utils._local.gobuild import GoBuild, architecture, ensure
from ansible_collections.muster.ml.tests.unit.fakes import alerts

CASES = yaml.safe_load((Path(__file__).parent / "cases.yml").read_text(encoding="utf-8"))
MINUTES = 120


@pytest.fixture(scope="module", name="promtool")
def built() -> Path:
    """Built once per machine, of the module and mostly of the packages that role local_images builds prometheus from."""
    pins = ROOT / "roles" / "local_images" / "files" / "go" / "prometheus"
    tool = GoBuild(name="promtool", module_dir=pins, package="github.com/prometheus/prometheus/cmd/promtool", cache_dir=cache_home(),
                   tags=("remove_all_sd", "enable_kubernetes_sd"), architecture=architecture())  # fmt: skip
    return ensure(tool, "building promtool", print)


def asked(promtool: Path, folder: Path, *words: str) -> str:
    done = subprocess.run([promtool, *words], cwd=folder, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def written(folder: Path, system: str) -> Path:
    path = folder / f"{system}.json"
    path.write_text(json.dumps({"groups": [{"name": system, "rules": alerts.every()[system]}]}), encoding="utf-8")
    return path


@pytest.mark.parametrize("system", alerts.every())
def test_they_are_rules(promtool: Path, tmp_path: Path, system: str) -> None:
    said = asked(promtool, tmp_path, "check", "rules", "--lint-fatal", str(written(tmp_path, system)))
    assert f"SUCCESS: {len(alerts.every()[system])} rules found" in said


def test_each_alert_has_a_case_in_which_it_fires() -> None:
    there = {rule["alert"] for rules in alerts.every().values() for rule in rules}
    assert {name for case in CASES for name in case["fires"]} == there


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_they_fire_when_they_should_and_only_then(promtool: Path, tmp_path: Path, case: dict[str, t.Any]) -> None:
    written(tmp_path, case["system"])
    names = {rule["alert"] for rule in alerts.every()[case["system"]]}
    # promtool has no way to say that an alert fires whatever its labels: their number is asked.
    asked_for = [
        {"expr": f'count(ALERTS{{alertname="{name}",alertstate="firing",namespace="ml"}}) or vector(0)', "eval_time": f"{MINUTES}m",
         "exp_samples": [{"labels": "{}", "value": case["fires"].get(name, 0)}]}
        for name in sorted(names)
    ]  # fmt: skip
    series = [{"series": name, "values": f"{values}x{MINUTES}"} for name, values in case["series"].items()]
    text = {"rule_files": [f"{case['system']}.json"], "evaluation_interval": "1m",
            "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": asked_for}]}  # fmt: skip
    (tmp_path / "test.json").write_text(json.dumps(text), encoding="utf-8")
    asked(promtool, tmp_path, "test", "rules", "test.json")

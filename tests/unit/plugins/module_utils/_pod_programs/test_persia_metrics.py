# SPDX-License-Identifier: GPL-3.0-or-later
"""persia_metrics.py against a gateway of our own."""

from __future__ import annotations

import json
import time
import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._pod_programs import persia_metrics
from ansible_collections.muster.ml.tests.unit.fakes.served import Answering, Served

NOW = 1_000_000.0
# As a push gateway writes it: another job, a run of yesterday, and two processes of this one.
TEXT = """# TYPE push_time_seconds gauge
push_time_seconds{instance="rep_0",ip_addr="10.0.0.1",job="adult"} 999995
push_time_seconds{instance="rep_0",ip_addr="10.0.0.2",job="adult"} 9.99999e+05
push_time_seconds{instance="rep_0",ip_addr="10.0.0.3",job="adult"} 913600
push_time_seconds{instance="rep_0",ip_addr="10.0.0.4",job="other"} 999999
push_failure_time_seconds{instance="rep_0",ip_addr="10.0.0.1",job="adult"} 0
staleness{instance="rep_0",ip_addr="10.0.0.1",job="adult"} 1
staleness{instance="rep_0",ip_addr="10.0.0.2",job="adult"} 2
staleness{instance="rep_0",ip_addr="10.0.0.3",job="adult"} 300
staleness{instance="rep_0",ip_addr="10.0.0.4",job="other"} 400
cost_bucket{instance="rep_0",ip_addr="10.0.0.1",job="adult",le="0.005"} 7
index_miss_ratio{feat="a\\"} b",instance="rep_0",ip_addr="10.0.0.1",job="adult"} NaN
"""


def test_only_what_this_run_pushed_counts() -> None:
    assert persia_metrics.figures(TEXT, "adult", NOW - 60) == {"processes": 2, "staleness": 1.5}
    assert persia_metrics.figures(TEXT, "adult", NOW) == {"processes": 0}
    assert persia_metrics.figures(TEXT, "nobody", 0) == {"processes": 0}


@pytest.fixture
def address() -> Iterator[str]:
    class Gateway(Answering):
        def do_GET(self) -> None:
            pushed = f'push_time_seconds{{instance="rep_0",ip_addr="1",job="adult"}} {time.time():f}\n'
            self.reply(200 if self.path == "/metrics" else 404, pushed)

    served = Served(Gateway)
    yield f"127.0.0.1:{served.port}"
    served.stop()


def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, at: str, job: str) -> t.Any:
    (tmp_path / "metrics.json").write_text(json.dumps({"job": job, "processes": 1, "seconds": 0}))
    monkeypatch.setattr(persia_metrics, "__file__", str(tmp_path / "metrics.py"))
    monkeypatch.setattr(persia_metrics, "PATIENCE", 0.5)
    monkeypatch.setattr("sys.argv", ["metrics.py", "30"])
    monkeypatch.setenv("PERSIA_METRICS_GATEWAY_ADDR", at)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    persia_metrics.main()
    line = capsys.readouterr().out
    return json.loads(line.removeprefix("MUSTER metrics "))


def test_a_gateway_that_answers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, address: str) -> None:
    assert said(monkeypatch, capsys, tmp_path, address, "adult") == {"processes": 1}
    nothing = said(monkeypatch, capsys, tmp_path, address, "other")
    assert nothing == {"error": f"the gateway {address} has no metrics of job other that this training pushed"}


def test_a_gateway_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    found = said(monkeypatch, capsys, tmp_path, "127.0.0.1:9", "adult")
    assert "the gateway 127.0.0.1:9 does not answer" in found["error"]

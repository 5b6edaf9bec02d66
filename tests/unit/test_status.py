# SPDX-License-Identifier: GPL-3.0-or-later

"""What status.yml makes of the answers of its modules: text, JSON and a page, from the log of a real training."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from support.reading import load

from ansible_collections.muster.ml.plugins.modules import elastic_job, job_info, training_history_info
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.pods import ended
from ansible_collections.muster.ml.tests.unit.plugins.modules.test_elastic_job import JOB, with_pods

ROOT = Path(__file__).resolve().parents[2]
PLAYBOOKS = ROOT / "playbooks"
# The first of four ranks on GPUs, which met again when another one was lost; torch 2.11 and roles/elastic/files/example/train.py.
LOG = (ROOT / "tests" / "unit" / "recorded" / "elastic_lost_rank.log").read_text()
HOSTILE = '</title><script>document.title = "x"</script>'


def answers() -> dict[str, Any]:
    """What the modules return of a training that runs, with a fault, and of one that is over."""
    cluster = FakeCluster()
    tasks.run(elastic_job, cluster, {**JOB, "name": "earlier"})
    tasks.run(elastic_job, cluster, {"name": "earlier", "namespace": "default", "state": "absent", "delete_data": True})
    tasks.run(elastic_job, cluster, JOB)
    with_pods(cluster, 2)
    cluster.log_lines["default", "digits-0"] = LOG
    lost = ended(137, "OOMKilled")
    # In the middle of the log.
    lost["terminated"] |= {"startedAt": "2026-11-28T01:03:27Z", "finishedAt": "2026-11-28T01:03:58Z"}
    cluster.objects["", "Pod", "default", "digits-1"]["status"]["containerStatuses"][0] |= {"restartCount": 1, "lastState": lost}
    which = {"name": "digits", "namespace": "default", "kind": "elastic_job"}
    training = {**tasks.run(job_info, cluster, {**which, "plots": True}), "item": which, "failed": False}
    owner = {"owner": "elastic_job.default.digits", "home": "", "objects": 4, "ready": True, "reasons": []}
    return {
        "__status_nodes": {"failed": False, "server_version": "v1.36.3", "nodes": [{"name": "n1", "ready": True, "simulated": False}]},
        "__managed": {"failed": False, "owners": [owner], "managed": []},
        "__status_trainings": {"failed": False, "msg": "All items completed", "results": [training]},
        "__status_history": {"failed": False, **tasks.run(training_history_info, cluster, {"namespace": "default"})},
    }


def rendered(template: str, found: dict[str, Any], **more: Any) -> Any:
    """A template, or a variable of the playbook, with these answers."""
    own = {name: value for name, value in load(PLAYBOOKS / "status.yml")[0]["vars"].items() if name.startswith("__status")}
    given = {
        "__managed_ours": found.get("__managed", {}).get("owners"),
        "__managed_others": [],
        "__managed_inside": [1],
        "__command": "run",
    }
    variables = {name: trust_as_template(value) for name, value in own.items()}
    text = (PLAYBOOKS / "templates" / template).read_text() if template.endswith(".j2") else f"{{{{ {template} }}}}"
    templar = Templar(DataLoader(), variables={**variables, **given, **found, **more})
    templar.environment.trim_blocks = True
    return templar.template(trust_as_template(text))


def page() -> str:
    """The page of these answers, in which the reason of the training is hostile."""
    found = answers()
    found["__status_trainings"]["results"][0] |= {"state": "Degraded", "reason": HOSTILE}
    return str(rendered("status_page.j2", found))


def test_the_text_has_progress_faults_and_records() -> None:
    text = rendered("status.j2", answers()).splitlines()
    line = next(line for line in text if line.startswith("training default/digits"))
    assert "Running" in line
    assert "1 restarts, 100 %, epoch 40 of 40, step 960 of 960, loss 0.003" in line
    assert any(line.startswith("  loss            █") and line.endswith("  0.003") for line in text)
    assert any(line.startswith("ended default/earlier") and "Stopped" in line for line in text)
    assert text[-1].startswith("next: everything is ready")


def test_the_file_ends_with_0_with_1_and_with_2() -> None:
    found = answers()
    told = rendered("__status_found", found)
    assert (told["ok"], told["exit"], told["findings"], told["unread"]) == (True, 0, [], [])
    assert (told["trainings"][0]["progress"]["percent"], told["records"][0]["name"]) == (100, "earlier")
    assert rendered("__status_found", found, muster_status_history=0)["records"] == []
    bad = copy.deepcopy(found)
    bad["__status_trainings"]["results"][0] |= {"state": "Failed", "reason": "worker: digits-0: OOMKilled"}
    told = rendered("__status_found", bad)
    assert (told["exit"], told["findings"]) == (1, ["training default/digits: Failed: worker: digits-0: OOMKilled"])
    unread = {"__status_nodes": {"failed": True, "msg": "connection refused"}}
    assert rendered("__status_found", unread) == {"ok": False, "exit": 2, "findings": [], "unread": ["connection refused"]}


def test_the_page_has_plots_with_the_fault_and_nothing_from_elsewhere() -> None:
    text = page()
    plots = answers()["__status_trainings"]["results"][0]["plots"]
    assert [plot["name"] for plot in plots] == ["loss", "steps a second", "processes", "faults"]
    assert text.count("<svg") == text.count('<path class="fault"') == len(plots)
    assert text.count("digits-1: OOMKilled (exit status 137)") == len(plots)
    assert [word for word in ("<script", "http://", "https://", "<link", "<img", "url(") if word in text] == []
    assert "&lt;script&gt;" in text


@pytest.mark.parametrize("plot", ["loss", "steps a second"])
def test_a_path_stays_in_its_picture(plot: str) -> None:
    (found,) = [one for one in answers()["__status_trainings"]["results"][0]["plots"] if one["name"] == plot]
    pairs = [tuple(map(float, pair.split(","))) for pair in found["path"][1:].split("L")]
    assert [x for x, _y in pairs] == sorted(x for x, _y in pairs)
    assert all(0 <= x <= 600 and 0 <= y <= 100 for x, y in pairs)

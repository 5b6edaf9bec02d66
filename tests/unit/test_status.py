# SPDX-License-Identifier: GPL-3.0-or-later
"""What status.yml makes of the answers of its modules: text, JSON and a page, from the log of a real training."""

import copy
from pathlib import Path
from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from support.reading import load

from ansible_collections.muster.ml.plugins.module_utils._core.metrics import line_of, samples
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.module_utils._training.plots import plot_of
from ansible_collections.muster.ml.plugins.modules import elastic_job, inference_info, job_info, training_history_info
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.pods import ended
from ansible_collections.muster.ml.tests.unit.plugins.modules.test_elastic_job import JOB, with_pods
from ansible_collections.muster.ml.tests.unit.plugins.modules.test_inference_info import BUSY

ROOT = Path(__file__).resolve().parents[2]
PLAYBOOKS = ROOT / "playbooks"
# The first of four ranks on GPUs, which met again when another one was lost; torch 2.11 and roles/elastic/files/example/train.py.
LOG = (ROOT / "tests" / "unit" / "recorded" / "elastic_lost_rank.log").read_text()
BROKER = {"namespace": "default", "name": "broker", "system": "rabbitmq", "line": "1 of 1 ready", "plots": [],
          "queues": [{"name": "<rmq>", "messages_ready": 3, "messages_unacked": 1}]}  # fmt: skip
HOSTILE = '</title><script>document.title = "x"</script>'


def server() -> dict[str, Any]:
    """The row of a server of two replicas, of which one does not answer; the name of one of its models is hostile."""
    live = {"metadata": {"namespace": "default", "name": "triton"}, "spec": {"replicas": 2}, "status": {"readyReplicas": 2}}
    told = list(samples(BUSY.replace("slow", HOSTILE.replace('"', '\\"'))))
    pods = [Ref("v1", "Pod", name, "default") for name in ("triton-a", "triton-b")]
    row = inference_info.row_of(inference_info.Server(inference_info.KINDS[0], live, pods), [told, "triton-b: timed out"], 1795854600)
    history = [(row["at"] - 60, 1.0), (row["at"], 3.0)]
    return {**row, "line": line_of(row), "history": history, "plots": plot_of("requests per s", history)}


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
        "__status_servers": {"failed": False, "servers": [server(), BROKER], "unread": ["vLLM: You may not list Deployments."]},
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
    assert text[0].startswith("Kubernetes v1.36.3: 1 node, 0 simulated, all ready")
    assert "Running" in line
    assert "1 restart, 100 %, epoch 40 of 40, step 960 of 960, loss 0.003" in line
    assert any(line.startswith("  loss            █") and line.endswith("  0.003") for line in text)
    assert any(line.startswith("ended default/earlier") and "Stopped" in line for line in text)
    (line,) = [line for line in text if line.startswith("server default/triton")]
    assert "2 of 2 ready, 63 served, 0 failed, 2 waiting, mean 21.9 ms" in line
    assert line.endswith(": triton-b: timed out")
    assert text[text.index(line) + 1] == "  requests per s  ▁█  3"
    assert "vLLM: You may not list Deployments." in text
    assert text[-1].startswith("next: everything is ready")


def test_the_file_ends_with_0_with_1_and_with_2() -> None:
    found = answers()
    told = rendered("__status_found", found)
    assert (told["ok"], told["exit"], told["findings"], told["unread"]) == (True, 0, [], ["vLLM: You may not list Deployments."])
    assert [(row["name"], row["served"], row["latency_ms"]["p99"]) for row in told["servers"][:1]] == [("triton", 63, 39.561)]
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
    assert text.count("<svg") - 1 == text.count('<path class="fault"') == len(plots)
    assert 'aria-label="requests per s"' in text
    assert "<tr><td>&lt;rmq&gt;</td><td>3</td><td>1</td><td></td></tr>" in text
    assert text.count("digits-1: OOMKilled (exit status 137)") == len(plots)
    assert [word for word in ("<script", "http://", "https://", "<link", "<img", "url(") if word in text] == []
    assert "&lt;script&gt;" in text
    assert "<tr><td>add</td><td>63</td><td>0</td><td></td><td>0</td><td>21.929</td><td>0.065</td><td>20.5</td><td>39.561</td></tr>" in text
    assert "<td>0</td><td>0</td><td></td><td>2</td><td></td><td></td><td></td><td></td></tr>" in text


@pytest.mark.parametrize("plot", ["loss", "steps a second"])
def test_a_path_stays_in_its_picture(plot: str) -> None:
    (found,) = [one for one in answers()["__status_trainings"]["results"][0]["plots"] if one["name"] == plot]
    pairs = [tuple(map(float, pair.split(","))) for pair in found["path"][1:].split("L")]
    assert [x for x, _y in pairs] == sorted(x for x, _y in pairs)
    assert all(0 <= x <= 600 and 0 <= y <= 100 for x, y in pairs)

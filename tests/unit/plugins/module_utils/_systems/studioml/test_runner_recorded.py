# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read from runners, against what runners wrote: roles/local_images/files/studioml_runner, made by tests/studioml/record.py."""

import json
import re
import typing as t
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import results
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml.runner_metrics import RunnerView, view
from ansible_collections.muster.ml.roles.local_images.files.studioml_runner import standin

Scene = dict[str, t.Any]
FOLDER = Path(__file__).resolve().parents[6] / "roles" / "local_images" / "files" / "studioml_runner"
RECORDED: dict[str, dict[str, Scene]] = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))["scenes"] for path in sorted(FOLDER.glob("*.json"))
}
NEWEST = "0.14.2"
"""Of the published image, and what the stand-in replays."""
VERSIONS = ("0.12.0", "0.14.0", "0.14.1", "0.14.2", "0.14.3")
TROUBLE = {
    "refused": "its connection is refused",
    "unknown_host": "its name is unknown",
    "unauthorized": "it refuses user or password, or its user lacks the tag management or monitoring",
    "forbidden": "it refuses user or password, or its user lacks the tag management or monitoring",
    "untrusted": "its certificate is not trusted, which broker_ca changes",
}


def seen(version: str, name: str) -> RunnerView:
    """What is read from a scene, which begins with the lines of a start: only scene ``idle`` has them."""
    scene, start = RECORDED[version][name], RECORDED[version]["idle"]["log"]
    log = [*(line for line in start if "no queues" not in line), *scene["log"]] if name != "idle" else start
    return view("pod", "\n".join(scene["metrics"]), "\n".join(log))


def test_every_version_with_rabbitmq_is_recorded() -> None:
    assert tuple(RECORDED) == VERSIONS
    for version in VERSIONS:
        found = json.loads((FOLDER / f"{version}.json").read_text(encoding="utf-8"))
        assert (found["version"], found["repository"]) == (version, "leaf-ai/studio-go-runner")
        assert re.fullmatch("[0-9a-f]{40}", found["commit"])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_runner_without_queues_is_idle(version: str) -> None:
    found = seen(version, "idle")
    assert (found.state, found.trouble, found.checked) == ("idle", "", 0)


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_a_runner_with_a_queue_works(version: str) -> None:
    found = seen(version, "working")
    assert (found.state, found.checked >= 1, found.experiments) == ("working", True, ())


@pytest.mark.parametrize("version", VERSIONS[1:])
@pytest.mark.parametrize("scene", TROUBLE)
def test_each_trouble_with_the_broker_is_told(version: str, scene: str) -> None:
    found = seen(version, scene)
    assert (found.state, TROUBLE[scene] in found.trouble) == ("failing", True), found.trouble
    assert "PASSWORD" not in found.trouble


def test_keys_that_cannot_be_read_are_told() -> None:
    assert "could not read its keys" in seen(NEWEST, "no_keys_in_a_pod").trouble


def test_queues_in_a_folder_are_none_of_the_broker() -> None:
    """0.14.3, cmd/runner/filequeue.go:166: the same words, with a folder as identity."""
    line = RECORDED["0.14.3"]["idle"]["log"][-1]
    assert view("pod", "", re.sub(r"identity \S+", "identity /queues", line)).state == "failing"


@pytest.mark.parametrize(("scene", "ended"), [("finished", "finished"), ("failed", "failed")])
def test_the_end_of_an_experiment_is_read_from_its_output(scene: str, ended: str) -> None:
    found = results.judged([line.encode() for line in RECORDED[NEWEST][scene]["output"]], [])
    assert found.ended == ended


def test_the_metric_of_an_experiment_is_read_from_its_output() -> None:
    found = results.judged([line.encode() for line in RECORDED[NEWEST]["finished"]["output"]], [])
    assert results.metric(found, "experiment.loss", "finished") == 0.25


def test_only_a_finished_experiment_leaves_its_queue() -> None:
    """Even one that is no request stays: cmd/runner/handle.go:54 reads what was not unpacked, and recovers without an answer."""
    scenes = ("finished", "failed", "artifact_missing", "dumped", "retried")
    assert [RECORDED[NEWEST][scene]["left_in_queue"] for scene in scenes] == [0, 1, 1, 1, 1]


def test_the_stand_in_writes_what_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_RECORDED", str(FOLDER / f"{NEWEST}.json"))
    monkeypatch.setattr(standin, "moment", lambda: "NOW")
    monkeypatch.setattr(standin.socket, "gethostname", lambda: "runner-0")
    for scene, words in (("idle", "no queues"), ("finished", "run starting"), ("finished", "experiment completed"), ("refused", "unable")):
        recorded = next(line for line in RECORDED[NEWEST][scene]["log"] if f" runner {words}" in line)
        assert standin.replayed(scene, words) == f"NOW {recorded.partition(' ')[2]}"
    line = standin.replayed("idle", "no queues", identity="amqp://b:1/%2f", matcher="^x$")
    assert "[[identity amqp://b:1/%2f matcher ^x$ stack [" in line
    line = standin.replayed("refused", "unable to refresh RMQ manifest", "no such host")
    assert "_: [no such host stack=" in line
    line = standin.replayed("retried", "backing off, receive failed", "why", project_id="p", subscription_id="%2F?q")
    assert "project_id: p subscription_id: %2F?q error: why stack=" in line

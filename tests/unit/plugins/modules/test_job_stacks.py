# SPDX-License-Identifier: GPL-3.0-or-later
"""job_stacks against a cluster in memory, with what the real py-spy has printed (tests/unit/recorded/py_spy.json)."""

from __future__ import annotations

import json
import typing as t

import pytest
from support.places import ROOT

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.module_utils._training import stacks
from ansible_collections.muster.ml.plugins.modules import job_stacks, training_statefulset
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.pods import pod
from ansible_collections.muster.ml.tests.unit.fakes.tasks import Result, run

Manifest = dict[str, t.Any]
RECORDED = json.loads((ROOT / "tests" / "unit" / "recorded" / "py_spy.json").read_text(encoding="utf-8"))
REFUSED = RECORDED["refused"]
TRAINING = {"name": "digits", "namespace": "default", "image": "example/torch:1", "replicas": 2, "wait": False}
IMAGE = {"image": "example/py-spy:1"}
OWN = {"runAsUser": 7}


def printed(processes: list[Manifest]) -> str:
    """What the command prints of these processes."""
    said = ((one["head"], one["said"] if isinstance(one["said"], str) else json.dumps(one["said"], indent=2)) for one in processes)
    return "".join(f"muster.ml/process {head}\n{text}\n" for head, text in said)


WORKERS = [printed(processes) for processes in RECORDED["ranks"].values()]


@pytest.fixture
def hanging(cluster: FakeCluster) -> FakeCluster:
    """A training of two ranks that run, without py-spy."""
    run(training_statefulset, cluster, TRAINING)
    live = cluster.stored("StatefulSet", "digits", "default")
    assert live
    labels = live["spec"]["selector"]["matchLabels"]
    for index in (0, 1):
        made = pod(f"digits-{index}", labels={**labels, "apps.kubernetes.io/pod-index": str(index)})
        made["metadata"]["annotations"] = {"kubectl.kubernetes.io/default-container": "main"}
        made["spec"]["containers"] = [{"name": "a-proxy"}, {"name": "main", "securityContext": OWN}]
        cluster.add(made)
        cluster.printed["default", f"digits-{index}"] = ("muster.ml/missing\n", "")
    return cluster


def look(cluster: FakeCluster, *, check: bool = False, **options: t.Any) -> Result:
    which = {"name": "digits", "namespace": "default", "kind": "training_statefulset"}
    return run(job_stacks, cluster, {**which, **options}, check=check, diff=True)


def ending(manifest: Manifest) -> Manifest | None:
    """What the kubelet tells of ephemeral containers that have ended."""
    names = [one["name"] for one in manifest["spec"].get("ephemeralContainers", ())]
    return {
        **manifest["status"],
        "ephemeralContainerStatuses": [{"name": name, "state": {"terminated": {"exitCode": 0}}} for name in names],
    }


def test_the_odd_rank_is_first(hanging: FakeCluster) -> None:
    for index, text in enumerate(WORKERS):
        hanging.printed["default", f"digits-{index}"] = (text, "")
    found = look(hanging)
    assert [(fold["ranks"], fold["threads"], fold["stack"][0]) for fold in found["folds"]] == [
        (["digits-1"], 1, "threading.py:320 Condition.wait"),
        (["digits-0", "digits-1"], 2, "torch/distributed/elastic/agent/server/api.py:850 SimpleElasticAgent._invoke_run"),
        (["digits-0", "digits-1"], 3, "torch/distributed/distributed_c10d.py:1541 all_reduce"),
        (["digits-0", "digits-1"], 2, "threading.py:324 Condition.wait"),
    ]
    assert found["table"][:5] == [
        "digits-1: MainThread waits in",
        "    threading.py:320 Condition.wait",
        "    threading.py:622 Event.wait",
        "    hang.py:10 load_batch",
        "    hang.py:22 <module>",
    ]
    assert "digits-0, digits-1: MainThread waits in (3 threads)" in found["table"]
    assert (found["unread"], found["changed"]) == ([], False)
    assert "patch" not in {request.verb for request in hanging.requests}


@pytest.mark.parametrize(
    ("refusals", "security"),
    [
        ([], {"runAsUser": 0, "runAsNonRoot": False, "capabilities": {"add": ["SYS_PTRACE"]}}),
        ([Forbidden("violates PodSecurity")], OWN),
    ],
)
def test_an_ephemeral_container_reads_a_rank_without_py_spy(hanging: FakeCluster, refusals: list[Exception], security: Manifest) -> None:
    hanging.controllers["Pod"] = ending
    for index, text in enumerate(WORKERS):
        hanging.log_lines["default", f"digits-{index}"] = text
        hanging.fail("patch", f"digits-{index}", *refusals)
    found = look(hanging, **IMAGE)
    assert (found["changed"], found["unread"], found["folds"][0]["ranks"]) == (True, [], ["digits-1"])
    assert found["diff"] == {"prepared": "".join(f"Pod default/digits-{index}: ephemeral container\n" for index in (0, 1))}
    look(hanging, **IMAGE, nonblocking=True)
    live = hanging.stored("Pod", "digits-0", "default")
    assert live
    first, second = live["spec"]["ephemeralContainers"]
    assert (first["securityContext"], first["targetContainerName"], first["image"]) == (security, "main", IMAGE["image"])
    assert ("--nonblocking" in first["command"][2], "--nonblocking" in second["command"][2]) == (False, True)
    assert (first["name"], second["name"]) == ("stacks-1", "stacks-2")


def test_what_refuses_is_told_with_the_next_step(hanging: FakeCluster) -> None:
    def told(**options: t.Any) -> tuple[str, str, bool]:
        found = look(hanging, **options)
        assert found["folds"] == []
        return found["unread"][0]["reason"], found["unread"][0]["next"], found["changed"]

    missing = "its image has no py-spy"
    assert told() == (missing, "Set image to one with py-spy and sh, such as that of recipe py-spy of role local_images.", False)
    assert told(**IMAGE, check=True) == (missing, "Without check mode it is read from an ephemeral container.", True)
    assert "patch" not in {request.verb for request in hanging.requests}
    hanging.printed["default", "digits-0"] = ("", 'exec: "sh": executable file not found in $PATH')
    assert told()[0] == 'exec: "sh": executable file not found in $PATH'
    hanging.printed["default", "digits-0"] = (printed([{"head": "1 1", "said": REFUSED["another language"]}]), "")
    assert told(**IMAGE)[:2] == ("it has no process of Python", "")
    hanging.fail("execute", "digits-0", Forbidden("User u may not create pods/exec in namespace default."))
    assert told()[0] == "User u may not create pods/exec in namespace default"
    found = look(hanging, **IMAGE, wait_timeout=0)
    assert (found["changed"], found["unread"][-1]["next"].startswith("Raise wait_timeout.")) == (False, True)
    hanging.printed["default", "digits-0"] = ("muster.ml/missing\n", "")
    # A container that does not come in time.
    reason, _next, changed = told(**IMAGE)
    assert changed
    assert "Ephemeral container stacks-1 has not ended after 30 s. Last seen: it has not started" in reason
    hanging.fail("patch", "digits-0", *[Forbidden("User u may not patch pods/ephemeralcontainers")] * 2)
    assert told(**IMAGE)[0] == "its image has no py-spy; User u may not patch pods/ephemeralcontainers"
    hanging.controllers["Pod"] = ending
    for refused, said in (("another user", "Permission Denied: Try running again"), ("root without SYS_PTRACE", "Permission denied (os")):
        hanging.log_lines["default", "digits-0"] = printed([{"head": "1 1", "said": REFUSED[refused]}])
        reason, following, _changed = told(**IMAGE)
        assert said in reason
        assert "SYS_PTRACE" in following


def test_ranks_that_do_not_run_are_named(hanging: FakeCluster) -> None:
    hanging.set_status(Ref("v1", "Pod", "digits-0", "default"), {"phase": "Succeeded"})
    told = {row["rank"]: row["reason"] for row in look(hanging)["unread"]}
    assert told == {"digits-0": "its pod is Succeeded", "digits-1": "its image has no py-spy"}


def test_names_are_readable_and_recordings_are_named() -> None:
    frame = {"name": "a\x1b[2Jb", "short_filename": None, "filename": "x.py", "line": 1}
    thread = {"pid": 1, "os_thread_id": 2, "thread_name": None, "active": True, "frames": [frame] * 20}
    recorded = "muster.ml/recording /tmp/nccl_trace_rank_0\n"
    others = [
        {"head": "2 1", "said": "No such process"},
        {"head": "3 0", "said": '[\n  {"pid": 3, "frames"'},
        {"head": "4 0", "said": [{}]},
    ]
    text = printed([{"head": "1 0", "said": [thread]}]) + recorded + printed(others) + recorded
    seen = stacks.seen_in("worker-0", text, "late", "Ask.")
    assert (seen.recordings, seen.troubles) == (
        ["/tmp/nccl_trace_rank_0"],
        ["No such process", "its py-spy has printed something else than stacks as JSON", "late"],
    )
    rows = [{"rank": f"worker-{index}", "pod": f"w-{index}", "path": "/x", "reason": f"w-{index} hides", "next": ""} for index in range(10)]
    lines = stacks.table(stacks.folded([seen.threads[0]] * 2), rows, rows[:1])
    assert lines[:2] == ["worker-0: a thread runs in (2 threads)", "    x.py:1 a?[2Jb"]
    ranks = ", ".join(row["rank"] for row in rows[:8])
    assert lines[-3:] == ["    and 8 more", f"{ranks} and 2 more: not read: w-0 hides.", "worker-0: flight recorder of torch: /x"]

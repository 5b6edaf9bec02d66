# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run prints with callback plugin brief."""

import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.places import ROOT

from ansible_collections.muster.ml.plugins.callback import brief

CHANGE = {"name": "Change something", "ansible.builtin.command": "true"}
LOOK = {"name": "Look at something", "ansible.builtin.set_stats": {"data": {"seen": True}}}
SAY = {"name": "Say something", "ansible.builtin.debug": {"msg": ["export A=b", "two\nlines"]}}
FAIL = {"name": "Fail at something", "ansible.builtin.fail": {"msg": "because of this"}}
TRY = {**LOOK, "name": "Try something", "until": False, "retries": 2, "delay": 0, "failed_when": False}
TASKS = {
    "Only checks": [{"name": "Assert something", "ansible.builtin.assert": {"that": True}}],
    "Another platform": [{**CHANGE, "when": False}],
    "Work": [LOOK, {**LOOK, "loop": [1, 2]}, TRY, CHANGE, {"name": "Include", "ansible.builtin.include_tasks": "more.yml"}, SAY],
    "Nothing to do": [LOOK],
}


def printed(folder: Path, tasks: dict[str, list[dict[str, t.Any]]], *options: str) -> list[str]:
    """The lines of a run, without rulers and empty ones."""
    plays = [{"name": name, "hosts": "localhost", "gather_facts": False, "tasks": rows} for name, rows in tasks.items()]
    (folder / "book.yml").write_text(json.dumps(plays))
    (folder / "more.yml").write_text(json.dumps([LOOK, {**SAY, "ansible.builtin.debug": {"msg": "{{ item }}"}, "loop": ["x", "y"]}]))
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "-i", "localhost,", "-c", "local", *options,
         "-e", f"ansible_python_interpreter={sys.executable}", folder / "book.yml"],
        capture_output=True, text=True, check=False, cwd=folder,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1",
             "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build/collections")},
    )  # fmt: skip
    assert done.stdout, done.stderr
    return [line.rstrip("* ") for line in done.stdout.splitlines() if line]


def test_a_run_prints_what_it_changes_and_says(tmp_path: Path) -> None:
    *lines, recap, counts = printed(tmp_path, TASKS)
    assert lines == [
        "PLAY [Work]",
        "ok: 3 tasks with nothing to change",
        "TASK [Change something]",
        "changed: [localhost]",
        "ok: 1 task with nothing to change",
        "    x",
        "    y",
        "    export A=b",
        "    two",
        "    lines",
        "PLAY [Nothing to do]",
        "ok: 1 task with nothing to change",
    ]
    assert (recap, "changed=1" in counts) == ("PLAY RECAP", True)


def test_a_failure_has_its_play_and_its_task(tmp_path: Path) -> None:
    lines = printed(tmp_path, {"Only checks": TASKS["Only checks"], "Work": [LOOK, FAIL]})
    assert lines[:3] == ["PLAY [Work]", "ok: 1 task with nothing to change", "TASK [Fail at something]"]
    assert [line for line in lines if "because of this" in line] == ["    msg: because of this"]
    assert any(line.startswith("task path: ") and line.endswith("book.yml:1") for line in lines)


def test_differences_follow_the_table_of_a_plan(tmp_path: Path) -> None:
    copy = {"name": "Write a file", "ansible.builtin.copy": {"content": "two\n", "dest": str(tmp_path / "file")}}
    lines = printed(tmp_path, {"Work": [copy, SAY]}, "--check", "--diff")
    assert lines.index("+two") > lines.index("    export A=b")
    assert "+two" not in printed(tmp_path, {"Work": [copy]}, "--check")
    real = printed(tmp_path, {"Work": [copy, SAY]}, "--diff")
    assert real.index("+two") < real.index("    export A=b")


def test_a_rehearsal_of_a_real_run_is_no_plan(tmp_path: Path) -> None:
    copy = {"name": "Rehearse", "check_mode": True, "ansible.builtin.copy": {"content": "two\n", "dest": str(tmp_path / "file")}}
    lines = printed(tmp_path, {"Work": [copy, SAY]}, "--diff")
    assert lines.index("+two") < lines.index("    export A=b")


def test_the_table_of_a_plan_marks_data(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin, lines = brief.CallbackModule(), list[str]()
    display = SimpleNamespace(verbosity=0, display=lambda line, **_: lines.append(line), banner=lines.append)
    monkeypatch.setattr(plugin, "_display", display)
    objects = [
        {"kind": "ConfigMap", "namespace": "ml", "name": "a", "action": "created"},
        {"kind": "Namespace", "namespace": None, "name": "ml", "action": "unchanged"},
        {"kind": "PersistentVolumeClaim", "namespace": "ml", "name": "b", "action": "deleted"},
    ]
    found = {"changed": True, "objects": objects, "actions": ["create VPC"]}
    plugin._note_plan(SimpleNamespace(_host=SimpleNamespace(get_name=lambda: "localhost"), _result=found))
    plugin._print_plan()
    assert lines == [
        "PLAN: 1 to create, 1 to delete, 1 in the cloud",
        "    create    ConfigMap ml/a",
        "    delete    PersistentVolumeClaim ml/b (its data, too)",
        "    in the cloud create VPC",
    ]


def test_verbose_is_the_default_callback(tmp_path: Path) -> None:
    lines = printed(tmp_path, {"Only checks": TASKS["Only checks"]}, "-v")
    assert [line for line in lines if line.startswith(("PLAY [", "TASK"))] == ["PLAY [Only checks]", "TASK [Assert something]"]


def test_a_task_that_tries_again_is_reported_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin, lines, now = brief.CallbackModule(), list[str](), [0.0]
    monkeypatch.setattr(brief.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(plugin, "_display", SimpleNamespace(verbosity=0, display=lines.append))
    task = SimpleNamespace(_uuid="1", get_name=lambda: "Wait for something")
    for attempt in range(1, 71):
        now[0] += 1
        found = {"attempts": attempt, "retries": 240}
        plugin.v2_runner_retry(SimpleNamespace(_host=SimpleNamespace(get_name=lambda: "a"), _task=task, _result=found))
    assert lines == [f"    a: Wait for something: tried {count} of 240 times" for count in (31, 61)]


def test_a_missing_permission_is_followed_by_the_line_that_gives_it(tmp_path: Path) -> None:
    said = "User: u is not authorized to perform: ec2:CreateVpc on resource: * because no identity-based policy allows it"
    lines = printed(tmp_path, {"Work": [{"name": "Ask", "ansible.builtin.fail": {"msg": said}}]})
    named = [line for line in lines if "(statement " in line]
    assert len(named) == 1
    assert named[0].startswith(f"    ec2:CreateVpc: {ROOT}/playbooks/files/eks-policies/apply.json, line ")


@pytest.mark.parametrize(("playbook", "told"), [("site.yml", 1), ("playbooks/teardown.yml", 1), ("/elsewhere/site.yml", 0)])
def test_an_interrupted_run_tells_what_goes_on(monkeypatch: pytest.MonkeyPatch, playbook: str, told: int) -> None:
    plugin, lines, at_exit = brief.CallbackModule(), list[str](), list[t.Callable[[], None]]()
    monkeypatch.setattr(plugin, "_display", SimpleNamespace(verbosity=0, display=lambda line, **_: lines.append(line)))
    monkeypatch.setattr(brief.atexit, "register", at_exit.append)
    monkeypatch.setattr(brief.context, "CLIARGS", {"inventory": ("/my/inventory",), "check": False})
    plugin.v2_playbook_on_start(SimpleNamespace(_file_name=str(ROOT / playbook)))
    assert len(at_exit) == told
    for tell in at_exit:
        tell()
    assert ["-i /my/inventory muster.ml.status" in line for line in lines] == [True] * told
    plugin._process = os.getpid() + 1  # a process of a task
    for tell in at_exit:
        tell()
    assert len(lines) == told

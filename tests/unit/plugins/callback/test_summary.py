# SPDX-License-Identifier: GPL-3.0-or-later
"""The summary of a run: what is counted in the audit log, and the file."""

import json
import pathlib
import time
import types
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.callback import summary
from ansible_collections.muster.ml.plugins.plugin_utils import _review as review

RUN = "0123456789ab"
"""The identifier of the run."""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable as it was is there again after a test."""
    monkeypatch.setenv("MUSTER_RUN", "")


def event(verb: str = "patch", agent: str = f"muster/{RUN}", uri: str = "/api", stage: str = "ResponseComplete") -> str:
    fields = {"verb": verb, "userAgent": agent, "requestURI": uri, "stage": stage}
    return json.dumps(fields, separators=(",", ":")) + "\n"


@pytest.mark.parametrize(
    ("line", "counted"),
    [
        (event(), (1, 0)),
        (event("deletecollection"), (1, 0)),
        (event(uri="/api?dryRun=All"), (0, 1)),
        (event("get"), (0, 0)),
        (event("watch"), (0, 0)),
        (event(agent="kubectl/v1.36.3"), None),
        (event(agent="curl", uri="/api/muster"), None),
        (event(agent="muster"), None),
        (event(agent="muster/ba9876543210"), None),
        (event(stage="RequestReceived"), (0, 0)),
        (event()[:-20] + event(), (0, 0)),
        ("", None),
    ],
)
def test_what_counts(line: str, counted: tuple[int, int] | None, tmp_path: pathlib.Path) -> None:
    """Requests of other runs and clients do not, and a log without a request of this run is another cluster's."""
    audit = summary.AuditLog(tmp_path / "audit.log", started=time.time() - 60)
    audit.path.write_text(line)
    assert audit.writes(RUN) == counted


def test_only_what_is_written_after_the_start_counts(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(event() * 3)
    audit = summary.AuditLog(log, started=time.time() - 60)
    with log.open("a") as lines:
        lines.write(event() + event("get") + event(uri="/x?dryRun=All") + event()[:-20])
    assert audit.writes(RUN) == (1, 1), "the last line is still being written"


def test_a_log_that_is_rotated_meanwhile_counts_whole(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(event())
    audit = summary.AuditLog(log, started=time.time() - 60)
    with log.open("a") as lines:
        lines.write(event())
    log.rename(tmp_path / "audit-2026-11-21T09-00-00.000.log")
    log.write_text(event() * 2)
    assert audit.writes(RUN) == (3, 0)


def test_a_log_that_only_the_playbook_knows_is_read_from_its_beginning(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "other.log"
    module, _shown = callback("site.yml", audit_log=None)
    log.write_text(event() * 2)
    assert module._audit_log(str(log)).writes(RUN) == (2, 0)


def test_a_cluster_without_a_log_is_not_judged_by_that_of_another(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "DEFAULT_AUDIT_LOG", str(tmp_path / "of-another.log"))
    module, shown = callback("site.yml", path=str(tmp_path / "s.json"), audit_log=None)
    (tmp_path / "of-another.log").write_text(event(agent="muster/ba9876543210"))
    stats = Stats()
    stats.custom = {"_run": {"muster_audit_log": ""}}
    module.v2_playbook_on_stats(stats)
    assert "write requests not counted (no audit log of the cluster)" in shown[0]


def test_no_log_is_not_zero(tmp_path: pathlib.Path) -> None:
    assert summary.AuditLog(tmp_path / "audit.log", started=time.time()).writes(RUN) is None


class Stats:
    changed: t.ClassVar = {"localhost": 2}
    failures: t.ClassVar = {"localhost": 1}
    dark: t.ClassVar[dict[str, int]] = {}
    custom: t.ClassVar[dict[str, t.Any]] = {"_run": {"muster_systems": {"persia": {"ok": True, "auc": 0.7}}}}


class TwoClusters(Stats):
    changed: t.ClassVar = {"a": 2, "b": 1}
    failures: t.ClassVar = {"b": 1}
    custom: t.ClassVar = {"a": {"muster_systems": {"persia": {"ok": True}}}, "b": {"muster_systems": {}}}


class NoSystems(Stats):
    custom: t.ClassVar[dict[str, t.Any]] = {}


def host(name: str) -> types.SimpleNamespace:
    return types.SimpleNamespace(get_name=lambda: name)


def callback(playbook: str, **options: t.Any) -> tuple[summary.CallbackModule, list[str]]:
    options = {"path": None, "playbooks": ["site.yml"], "audit_log": "/nonexistent/audit.log", **options}
    shown: list[str] = []
    module = summary.CallbackModule(display=types.SimpleNamespace(display=shown.append, verbosity=0))
    module.get_option = options.__getitem__
    module._run = RUN
    module.v2_playbook_on_start(types.SimpleNamespace(_file_name=playbook))
    return module, shown


def ended(module: summary.CallbackModule, where: str, action: str, result: dict[str, t.Any], **of_task: t.Any) -> types.SimpleNamespace:
    task = types.SimpleNamespace(**{"action": action, "check_mode": False, **of_task})
    module.v2_runner_on_ok(types.SimpleNamespace(_host=host(where), _task=task, _result=result))
    return task


def test_the_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "build" / "summary.json"
    module, shown = callback("/x/playbooks/site.yml", path=str(path))
    role = types.SimpleNamespace(get_name=lambda: "muster.ml.persia")
    for its_role in (role, None):
        module.v2_runner_on_start(host("localhost"), types.SimpleNamespace(_role=its_role))
    done = [{"kind": "Pod", "namespace": "ml", "name": "a", "action": "created", "reason": "x"}, {"action": "unchanged"}]
    made = {"results": [{"changed": True, "item": "a"}, {"changed": False, "item": "b"}]}
    for action, result in (
        ("muster.ml.apply", {"results": [{"objects": done}]}),
        ("other.apply", {"objects": done}),
        ("muster.ml.s3_bucket", {"changed": True, "actions": ["s3:create_bucket (create)"]}),
        ("amazon.aws.ec2_vpc_subnet", made),
    ):
        ended(module, "localhost", action, result)
    module.v2_playbook_on_stats(Stats())
    written = json.loads(path.read_text())
    assert written["systems"] == {"persia": {"ok": True, "auc": 0.7}}
    assert (written["changed"], written["failed"], written["write_requests"]) == (2, 1, None)
    assert list(written["roles"]) == ["persia"]
    assert written["objects"] == [{"kind": "Pod", "namespace": "ml", "name": "a", "action": "created"}]
    assert written["cloud"] == [
        {"module": "muster.ml.s3_bucket", "item": None, "actions": ["s3:create_bucket (create)"]},
        {"module": "amazon.aws.ec2_vpc_subnet", "item": "a", "actions": []},
    ]
    assert shown[0].endswith(f"; {path}")


def test_each_cluster_has_a_file(tmp_path: pathlib.Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(event() * 2)
    module, shown = callback("site.yml", path=str(tmp_path / "s.json"), playbooks=[])
    module._started -= 60
    inventory = types.SimpleNamespace(get_groups_dict=lambda: {"muster_clusters": ["a", "b", "c"], "web": ["w"]})
    play = types.SimpleNamespace(get_variable_manager=lambda: types.SimpleNamespace(_inventory=inventory))
    module.v2_playbook_on_play_start(play)
    for name in ("b", "a", "w"):
        role = types.SimpleNamespace(get_name=lambda name=name: f"muster.ml.role_of_{name}")
        task = types.SimpleNamespace(action="muster.ml.apply", check_mode=False, _role=role)
        module.v2_runner_on_start(host(name), task)
        objects = [{"kind": "Pod", "namespace": "ml", "name": f"pod-{name}", "action": "created"}]
        module.v2_runner_on_ok(types.SimpleNamespace(_host=host(name), _task=task, _result={"objects": objects}))
    stats = TwoClusters()
    stats.custom["a"]["muster_audit_log"] = str(log)
    module.v2_playbook_on_stats(stats)
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["s-a.json", "s-b.json"]
    first, second = (json.loads((tmp_path / f"s-{name}.json").read_text()) for name in "ab")
    assert (first["cluster"], first["changed"], first["failed"], first["write_requests"]) == ("a", 2, 0, 2)
    assert (second["cluster"], second["changed"], second["failed"], second["write_requests"]) == ("b", 1, 1, None)
    assert (first["systems"], second["systems"]) == ({"persia": {"ok": True}}, {})
    assert ([one["name"] for one in second["objects"]], list(second["roles"])) == (["pod-b"], ["role_of_b"])
    assert [line.partition(":")[0] for line in shown] == ["muster, a", "muster, b"]


def test_other_playbooks_leave_no_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "summary.json"
    module, shown = callback("/x/playbooks/status.yml", path=str(path))
    module.v2_playbook_on_stats(NoSystems())
    assert (path.exists(), shown) == (False, [])


@pytest.mark.parametrize(("playbook", "stats"), [("mine.yml", Stats()), ("site.yml", NoSystems())])
def test_a_run_that_brings_up_systems_or_is_named_leaves_one(tmp_path: pathlib.Path, playbook: str, stats: Stats) -> None:
    path = tmp_path / "summary.json"
    module, _shown = callback(playbook, path=str(path))
    module.v2_playbook_on_stats(stats)
    assert path.exists()


def test_a_plan_writes_only_a_file_that_was_asked_for(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(summary.context, "CLIARGS", {"check": True})
    module, _shown = callback("site.yml")
    module.v2_playbook_on_stats(Stats())
    assert list(tmp_path.iterdir()) == []
    module, _shown = callback("site.yml", path="plan.json")
    module.v2_playbook_on_stats(Stats())
    assert json.loads((tmp_path / "plan.json").read_text())["check"] is True


def test_the_plan_of_a_run_names_what_it_does_not_have(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of other modules that would change something, what could not be looked at, and a run that failed."""
    monkeypatch.setattr(summary.context, "CLIARGS", {"check": True})
    monkeypatch.setattr(review, "NOTED", tmp_path / "noted")
    module, shown = callback("/x/playbooks/teardown.yml", playbooks=[])
    review.note(str(tmp_path / "p.json"), "localhost", "host localhost", [])
    for action, result, name in (
        ("ansible.builtin.copy", {"changed": True}, "Write a file"),
        ("ansible.builtin.copy", {"changed": True}, "Write a file"),
        ("ansible.builtin.stat", {"changed": False}, "Look at a file"),
        ("ansible.builtin.command", {"skipped": True, "msg": "Command would have run if not in check mode"}, "Run a program"),
        ("ansible.builtin.command", {"skipped": True, "skip_reason": "Conditional result was False"}, "Run nothing"),
        ("amazon.aws.ec2_vpc_net", {"results": [{"changed": False}, {"changed": True}]}, "Create networks"),
        ("muster.ml.apply", {"changed": True}, "Apply"),
    ):
        task = ended(module, "localhost", action, result, check_mode=True, get_name=lambda name=name: name)
    failed = types.SimpleNamespace(_host=host("h"), _task=task, _result={"msg": "no"})
    module.v2_runner_on_failed(failed, ignore_errors=True)
    stats = Stats()
    stats.custom = {"localhost": {"__plan_unknown": ["What is on the cluster", "What is on the cluster"]}}
    module.v2_playbook_on_stats(stats)
    plan, page = json.loads((tmp_path / "p.json").read_text()), (tmp_path / "p.md").read_text()
    assert [(row["task"], row["module"]) for row in plan["not_limited"]] == [
        ("Write a file", "ansible.builtin.copy"),
        ("Run a program", "ansible.builtin.command"),
        ("Create networks", "amazon.aws.ec2_vpc_net"),
    ]
    assert plan["unknown"] == ["Apply (h): the task failed, and its error is ignored", "What is on the cluster"]
    assert (plan["complete"], plan["playbook"]) == (False, "teardown.yml")
    assert "- Create networks (amazon.aws.ec2_vpc_net, localhost)" in page
    assert "- What is on the cluster" in page
    assert shown[-1] == f"muster: plan {tmp_path / 'p.json'}, for readers {tmp_path / 'p.md'}"

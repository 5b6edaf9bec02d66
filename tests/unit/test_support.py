# SPDX-License-Identifier: GPL-3.0-or-later
"""The judges themselves: an audit that overlooks a write, or a search that overlooks a secret, would prove nothing."""

import base64
import contextlib
import json
import marshal
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from ansible import constants as C  # noqa: N812  # as everywhere in Ansible
from support import audit, canary, leaks, objects, static, witness
from support.lanes import Check, CheckFailed, Result, Shell, run_lanes
from support.quick.callbacks.quick import CallbackModule

from ansible_collections.muster.ml.plugins.module_utils._core.clock import SYSTEM_CLOCK
from ansible_collections.muster.ml.plugins.module_utils._local.host import wait_until

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def event(**changes: Any) -> dict[str, Any]:
    return {
        "stage": "ResponseComplete",
        "requestURI": "/apis/apps/v1/namespaces/ml/statefulsets/w?fieldManager=muster",
        "verb": "patch",
        "user": {"username": "kubernetes-admin"},
        "userAgent": "muster/0.1.0",
        "objectRef": {"resource": "statefulsets", "namespace": "ml", "name": "w"},
        "responseStatus": {"code": 200},
        "requestReceivedTimestamp": "2026-11-21T12:00:01.123456Z",
        **changes,
    }


def written(tmp_path: Path, *events: dict[str, Any]) -> list[audit.Request]:
    log = tmp_path / "audit.log"
    log.write_text("".join(json.dumps(e, separators=(",", ":")) + "\n" for e in events))
    return audit.written(log, NOON, NOON + timedelta(minutes=1))


@pytest.mark.parametrize("verb", ["create", "update", "patch", "delete", "deletecollection"])
def test_a_write_is_counted_whatever_its_verb(tmp_path: Path, verb: str) -> None:
    assert [r.verb for r in written(tmp_path, event(verb=verb))] == [verb]


def test_a_refused_write_counts_too(tmp_path: Path) -> None:
    assert len(written(tmp_path, event(responseStatus={"code": 409}))) == 1


@pytest.mark.parametrize(
    "other",
    [
        event(verb="get"),
        event(verb="watch"),
        event(stage="RequestReceived"),
        event(user={"username": "system:kube-controller-manager"}),
        event(user={"username": "system:serviceaccount:ml:nats-operator"}),
        event(requestURI="/api/v1/namespaces/ml/services/w?dryRun=All"),
        event(verb="create", objectRef={"resource": "selfsubjectaccessreviews"}),
        event(requestReceivedTimestamp="2026-11-21T11:59:59.999999Z"),
        event(requestReceivedTimestamp="2026-11-21T12:01:00.000001Z"),
    ],
    ids=["get", "watch", "first stage", "controller", "operator", "dry run", "review", "before", "after"],
)
def test_what_is_no_write_of_this_run_is_not_counted(tmp_path: Path, other: dict[str, Any]) -> None:
    assert written(tmp_path, other) == []


def test_who_runs_beside_others_is_judged_by_their_own_requests(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    users = ({"username": "scenario-persia"}, {"username": "scenario-kueue"})
    log.write_text("".join(json.dumps(event(user=user), separators=(",", ":")) + "\n" for user in users))
    found = audit.written(log, NOON, NOON + timedelta(minutes=1), user="scenario-persia")
    assert [request.user for request in found] == ["scenario-persia"]


def test_lists_of_muster_are_counted_by_what_they_ask_for(tmp_path: Path) -> None:
    pods, nodes = "/api/v1/namespaces/ml/pods?labelSelector=a%3Db", "/api/v1/nodes"
    log = tmp_path / "audit.log"
    asked = [event(verb="list", requestURI=uri) for uri in (pods, pods, nodes)]
    others = [event(verb="list", userAgent="kubectl/v1.36.3"), event(verb="watch"), event(verb="get"), event()]
    log.write_text("".join(json.dumps(e, separators=(",", ":")) + "\n" for e in [*asked, *others]))
    assert audit.listed(log, NOON, NOON + timedelta(minutes=1)) == {pods: 2, nodes: 1}


def test_no_log_is_no_proof(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        audit.written(tmp_path / "absent.log", NOON)


@pytest.mark.parametrize("form", [b"s3cr3t-value", base64.b64encode(b"s3cr3t-value")])
def test_a_secret_is_found_in_its_usual_spellings(form: bytes) -> None:
    assert canary.in_text({"password": "s3cr3t-value"}, b"log: " + form + b" end") == {"password"}


def test_only_files_that_others_may_read_are_findings(tmp_path: Path) -> None:
    for name, mode in (("open", 0o644), ("closed", 0o600)):
        (tmp_path / name).write_text("s3cr3t-value")
        (tmp_path / name).chmod(mode)
    assert canary.in_open_files({"password": "s3cr3t-value"}, [tmp_path]) == {f"password in {tmp_path / 'open'}"}


def test_files_that_vanish_while_they_are_searched_are_left_out(tmp_path: Path) -> None:
    for name in ("a", "b/c", "d/e"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = []
    for path, _about in canary.files_below(tmp_path):
        found.append(path.name)
        shutil.rmtree(tmp_path, ignore_errors=True)
        assert canary.in_file({"password": "x"}, path) == set()
    assert found == ["a"]


@pytest.mark.parametrize("begun", ["before", "after"])
def test_an_argument_of_a_process_is_a_finding(begun: str) -> None:
    words = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()", "s3cr3t-argument"]
    watch = canary.ProcessWatch({"password": "s3cr3t-argument"}, interval=0.01)
    with contextlib.ExitStack() as stack:
        if begun == "after":
            stack.enter_context(watch)
        process = stack.enter_context(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        assert process.stdout
        process.stdout.readline()
        if begun == "before":
            stack.enter_context(watch)
        wait_until(lambda: None if watch.found else "nothing is found", timeout=60, what="the watch", clock=SYSTEM_CLOCK, interval=0.01)
        process.communicate()
    assert watch.found == {f"password in the arguments of {sys.executable}"}


def lanes_status(tmp_path: Path, *checks: Check) -> int:
    return run_lanes([list(checks)], tmp_path / "logs")


def failing(_shell: Shell) -> None:
    raise CheckFailed("on purpose")


def passing(_shell: Shell) -> None:
    pass


# The harness sets a handler for SIGTERM, which only a main thread may: these run where pytest runs them, in it.
def test_the_closing_line_counts_the_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lanes_status(tmp_path, Check("good", passing), Check("bad", failing)) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "1 passed, 1 failed"


def test_a_check_whose_ground_is_missing_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lanes_status(tmp_path, Check("ground", failing), Check("house", passing, needs=("ground",))) == 1
    assert "house" in capsys.readouterr().out


def test_a_check_waits_for_what_must_have_ended_before_it(tmp_path: Path) -> None:
    ended: list[str] = []

    def slow(shell: Shell) -> None:
        shell.run(sys.executable, "-c", "import time; time.sleep(0.3)")
        ended.append("slow")
        raise CheckFailed("on purpose")

    last = Check("last", lambda _shell: ended.append("last"), after=("slow", "not of this run"))
    assert run_lanes([[last], [Check("slow", slow)]], tmp_path / "logs") == 1
    assert ended == ["slow", "last"]


def test_a_lane_that_has_ended_takes_checks_that_are_nobodys(tmp_path: Path) -> None:
    taken: list[int] = []

    def body(_shell: Shell) -> None:
        taken.append(threading.get_ident())
        both.wait(120)

    both = threading.Barrier(2)
    shared = [Check(f"shared-{number}", body) for number in range(4)]
    assert run_lanes([[Check("own", passing)]], tmp_path / "logs", shared=shared) == 0
    assert sorted(map(taken.count, set(taken))) == [2, 2]


def test_what_need_not_run_counts_as_passed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = Result("unit", True, 0, reason="since 1234abcd", unchanged=True)
    assert run_lanes([[Check("good", passing)]], tmp_path / "logs", unchanged=[same]) == 0
    out = capsys.readouterr().out
    assert "same    unit" in out
    assert "since 1234abcd" in out
    assert out.splitlines()[-1] == "2 passed, 0 failed"


def test_the_processor_time_of_a_program_is_counted(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "log", timeout_s=10)
    shell.run(sys.executable, "-c", "import time\nwhile time.process_time() < 0.2: pass")
    assert 0.2 <= shell.cpu_s < 5


@pytest.mark.parametrize("limit", [1, -1])
def test_a_program_is_ended_at_the_deadline_and_past_it(tmp_path: Path, limit: int) -> None:
    with pytest.raises(CheckFailed, match="time limit"):
        Shell(tmp_path / "log", timeout_s=limit).run(sys.executable, "-c", "import time; time.sleep(60)")


def test_no_checks_are_no_pass(tmp_path: Path) -> None:
    assert lanes_status(tmp_path) == 1


def test_a_program_that_fails_is_a_failed_check(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "log", timeout_s=10)
    with pytest.raises(CheckFailed, match="status 3"):
        shell.run(sys.executable, "-c", "raise SystemExit(3)")


def test_the_reason_contains_the_newest_error_of_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(shell: Shell) -> None:
        shell.say("[ERROR]: Task failed: older\n[ERROR]: Task failed: the disk is full\nPLAY RECAP [ERROR]: in the middle")
        failing(shell)

    assert lanes_status(tmp_path, Check("bad", fails)) == 1
    assert "on purpose; [ERROR]: Task failed: the disk is full\n" in capsys.readouterr().out


def metadata(name: str, uid: str, *managers: str, owner: str = "", **more: Any) -> dict[str, Any]:
    fields = [{"manager": manager, "operation": "Apply", "time": "10:00"} for manager in managers]
    owners = [{"uid": owner}] if owner else []
    return {"metadata": {"name": name, "uid": uid, "managedFields": fields, "ownerReferences": owners, **more}}


API = {
    "/api/v1": {"resources": [
        {"name": "pods", "kind": "Pod", "verbs": ["list"]}, {"name": "pods/log", "kind": "Pod", "verbs": ["get"]},
        {"name": "secrets", "kind": "Secret", "verbs": ["list"]}, {"name": "bindings", "kind": "Binding", "verbs": ["create"]},
        {"name": "events", "kind": "Event", "verbs": ["list"]},
    ]},
    "/apis": {"groups": [{"name": "x.io", "preferredVersion": {"groupVersion": "x.io/v1"},
                          "versions": [{"groupVersion": "x.io/v2beta1"}, {"groupVersion": "x.io/v1"}]},
                         {"versions": [{"groupVersion": "coordination.k8s.io/v1"}], "preferredVersion": {}}]},
    "/apis/coordination.k8s.io/v1": {"resources": [{"name": "leases", "kind": "Lease", "verbs": ["list"]}]},
    "/apis/coordination.k8s.io/v1/leases?limit=500": {"metadata": {}, "items": [
        metadata("apiserver-x", "6", labels={"apiserver.kubernetes.io/identity": "kube-apiserver"}), metadata("leader", "7"),
    ]},
    "/apis/x.io/v1": {"resources": [{"name": "jobs", "kind": "Job", "verbs": ["list"]}]},
    "/apis/x.io/v2beta1": {"resources": [
        {"name": "jobs", "kind": "Job", "verbs": ["list"]}, {"name": "news", "kind": "New", "verbs": ["list"]},
    ]},
    "/api/v1/pods?limit=500": {"metadata": {"continue": "2"}, "items": [metadata("of-job", "1", owner="5")]},
    "/api/v1/pods?limit=500&continue=2": {"metadata": {}, "items": [
        metadata("orphan", "2", owner="gone", deletionTimestamp="2026-11-24T08:34:18Z"),
    ]},
    "/api/v1/secrets?limit=500": {"metadata": {}, "items": [
        {**metadata("token", "3"), "type": "bootstrap.kubernetes.io/token"}, metadata("s", "4", "muster-run-1", "kubelet", owner="5"),
    ]},
    "/apis/x.io/v1/jobs?limit=500": {"metadata": {}, "items": [metadata("fair", "5", "kubectl")]},
    "/apis/x.io/v2beta1/news?limit=500": {"metadata": {}, "items": [{"metadata": {"name": "in-answers-only"}}]},
}  # fmt: skip


def test_every_object_is_listed_once_but_not_what_kubernetes_makes_for_another_or_lets_expire() -> None:
    assert objects.objects(API.__getitem__) == {
        "Pod orphan": {"uid": "2", "writes": [], "deleting": True},
        "Secret s": {"uid": "4", "writes": ["muster-run-1 Apply  10:00"]},
        "Job.x.io fair": {"uid": "5", "writes": []},
        "Lease.coordination.k8s.io leader": {"uid": "7", "writes": []},
    }


def secret(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}}


PEM = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nfirst-line-of-key\nsecond-line-of-key\n-----END"


def test_what_secrets_hold_is_looked_for_line_by_line_but_not_what_is_public() -> None:
    found = leaks.values(secret("key", **{"ssh-privatekey": PEM, "ssh-publickey": "ssh-ed25519 AAAA", "short": "abc"}))
    found |= leaks.values(secret("signing", rmq_="ssh-ed25519 AAAA someone", info="Public keys by prefix"))
    assert {name: text for name, text in found.items() if ", line" in name} == {
        "ssh-privatekey of key, line 2": "first-line-of-key",
        "ssh-privatekey of key, line 3": "second-line-of-key",
    }
    assert found.keys() - {"ssh-privatekey of key, line 2", "ssh-privatekey of key, line 3"} == {"ssh-privatekey of key"}
    places = {"output": json.dumps({"diff": PEM}), "ConfigMap a": "nothing", "log": "AAAA " + base64.b64encode(PEM.encode()).decode()}
    assert leaks.leaks(found, places) == ["ssh-privatekey of key in log", "ssh-privatekey of key in output"]


def test_logs_of_containers_are_read_with_those_before_a_restart() -> None:
    read: list[Any] = []
    statuses = [{"name": "a", "restartCount": 1}, {"name": "b", "restartCount": 0}]
    pod = {"metadata": {"name": "p", "namespace": "n"}, "status": {"containerStatuses": statuses}}
    found = dict(leaks.logs(lambda *where, **which: read.append((*where, *which.values())) or "text", [pod]))
    assert found == {"log of p/a": "text", "log of p/b": "text"}
    assert read == [("p", "n", "a", False), ("p", "n", "a", True), ("p", "n", "b", False)]


def test_a_witness_records_arguments_and_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness.tempfile, "gettempdir", lambda: str(tmp_path))
    tmp_path.chmod(0o755)
    (tmp_path / "closed").mkdir(mode=0o700)
    program = """
import pathlib, sys, time
for name, mode in (("open", 0o644), ("own", 0o600), ("closed/file", 0o644)):
    path = pathlib.Path(sys.argv[1], name)
    path.write_text(f"text of {name}")
    path.chmod(mode)
sys.stdin.read()
"""
    looked, look = [], witness.Witness.look
    child: list[Any] = []

    def once(self: Any) -> None:
        if (tmp_path / "closed" / "file").exists():
            look(self)
            looked.append(True)
            child[0].stdin.close()

    def run(words: Any, **_options: Any) -> Any:
        child.append(witness.subprocess.Popen(words, stdin=witness.subprocess.PIPE))
        child[0].wait()
        return child[0]

    monkeypatch.setattr(witness.Witness, "look", once)
    monkeypatch.setattr(witness.subprocess, "run", run)
    record = tmp_path / "record"
    assert witness.main(str(record), sys.executable, "-c", program, str(tmp_path), "s3cr3t-argument") == 0
    found = json.loads(record.read_text())
    assert [text for text in found["arguments"] if text.startswith(sys.executable) and "s3cr3t-argument" in text]
    assert found["files"] == {str(tmp_path / "open"): "text of open"}
    assert record.stat().st_mode & 0o077 == 0


QUICK = Path(static.__file__).parent / "quick"


def test_a_file_of_an_archive_is_compiled_once_and_shows_where_it_lies(tmp_path: Path) -> None:
    """The kept code stands for the same text only, whatever archive that is in."""

    def run(text: str, archive: str) -> list[str]:
        with zipfile.ZipFile(tmp_path / archive, "w") as made:
            made.writestr("packed.py", text)
        show = "import packed; print(packed.VALUE, packed.where.__code__.co_filename)"
        env = {"PYTHONPATH": f"{QUICK}{os.pathsep}{tmp_path / archive}", "QUICK_FOLDER": str(tmp_path / "kept")}
        return subprocess.run([sys.executable, "-c", show], env=env, capture_output=True, text=True, check=True).stdout.split()

    first = "VALUE = 1\ndef where(): pass\n"
    assert run(first, "a.zip") == ["1", str(tmp_path / "a.zip" / "packed.py")]
    (kept,) = (tmp_path / "kept").glob("*/*")
    kept.write_bytes(marshal.dumps(compile(first.replace("1", "2"), "elsewhere", "exec")))
    assert run(first, "b.zip") == ["2", str(tmp_path / "b.zip" / "packed.py")]
    assert run(first.replace("1", "3"), "c.zip")[0] == "3"


def test_packs_of_other_collections_are_kept_for_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUICK_FOLDER", str(tmp_path / "kept"))
    monkeypatch.setenv("PYTHONPATH", "theirs")

    def packs(name: str) -> tuple[Any, Path]:
        monkeypatch.setattr(C, "DEFAULT_LOCAL_TMP", str(tmp_path / name))
        return CallbackModule(), tmp_path / name / "ansiballz_cache"

    run, folder = packs("first")
    for name in ("ansible.modules.stat-none", "ansible.modules.stat-none.lock", "ansible_collections.muster.ml.plugins.modules.apply-none"):
        (folder / name).write_text(name, encoding="utf-8")
    run.v2_playbook_on_stats(None)
    run, folder = packs("second")
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"ansible.modules.stat-none": "ansible.modules.stat-none"}
    assert os.environ["PYTHONPATH"].split(os.pathsep) == [str(QUICK), str(QUICK), "theirs"]

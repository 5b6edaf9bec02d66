# SPDX-License-Identifier: GPL-3.0-or-later
"""What fails around a run, for real: the network, the clock, a disk, a token, and one of several runs.

Cuts of the network last CUT_S seconds. MUSTER_CUT_S=60 makes them as long as an outage is waited for, with the limits that users have.
"""

import contextlib
import dataclasses
import datetime as dt
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import typing as t
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from support.places import BIN, ROOT, local_kubectl

from ansible_collections.muster.ml.plugins.module_utils._core.pace import Limits
from ansible_collections.muster.ml.plugins.module_utils._doctor.diagnosis import diagnose
from ansible_collections.muster.ml.plugins.module_utils._kube import credentials
from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster, Transport
from ansible_collections.muster.ml.plugins.module_utils._kube.kubeconfig import load
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref, ref_of
from faults.cases import AHEAD, BEHIND, CUT_LOG, CUT_PRUNE, CUT_TUNNEL, CUT_WAIT, CUT_WRITES, DISK, FLEET, FULL, RENEWED, WATCH, WRITES, Row
from faults.conftest import AT_ONCE_S, KUBECONFIG, SHORT, Ground, run_apply
from faults.proxy import Exchange, Rule
from faults.test_faults import Rows, address_when, assert_rerun, assert_stored, config, give_address, note, past, wish
from faults.test_waits import applied

CUT_S = float(os.environ.get("MUSTER_CUT_S", "3"))
LIMITS = dataclasses.replace(SHORT, outage=Limits().outage) if Limits().answer > CUT_S else Limits()
CONNECTION = load({"kubeconfig": str(KUBECONFIG)})
AS_ROOT = [] if os.geteuid() == 0 else ["sudo", "-n"]
ETCD, METRICS_PORT = "component=etcd", 2381
"""A server that waits for a request for as long as the network is cut; CoreDNS ends a connection after 5 s without one."""


def as_root(*command: str | Path) -> str:
    return subprocess.run([*AS_ROOT, *command], check=True, capture_output=True, text=True).stdout


def node_links() -> list[str]:
    """The ends of the nodes' links on this machine. The bridge between them stays up, so no route is lost."""
    host = str(urllib.parse.urlsplit(CONNECTION.server).hostname)
    (route,) = json.loads(as_root("ip", "-j", "route", "get", host))
    return [path.name for path in Path(f"/sys/class/net/{route['dev']}/brif").iterdir()]


def set_links(links: list[str], state: str) -> None:
    for link in links:
        as_root("ip", "link", "set", link, state)


class Cut:
    """Cuts the network between this machine and the cluster's nodes, once, for CUT_S seconds."""

    def __init__(self) -> None:
        self._links = node_links()
        self._timer = threading.Timer(CUT_S, set_links, (self._links, "up"))
        self.begun = 0.0

    def begin(self) -> None:
        set_links(self._links, "down")
        self.begun = time.monotonic()
        self._timer.start()

    def end(self) -> None:
        """Wait until the network is back."""
        if self.begun:
            self._timer.join()
        set_links(self._links, "up")


@pytest.fixture
def cut() -> Iterator[Cut]:
    found = Cut()
    yield found
    found.end()


def cut_at(cut: Cut, monkeypatch: pytest.MonkeyPatch, rule: Rule) -> None:
    """Cut the network just before the client sends the request that the rule takes."""
    guard = threading.Lock()

    def before(send: Callable[..., t.Any]) -> Callable[..., t.Any]:
        def sending(transport: Transport, *given: t.Any, **named: t.Any) -> t.Any:
            method, target = given[:2] if send.__name__ == "_exchange" else ("GET", given[0])
            with guard:
                if rule.takes(method, target):
                    cut.begin()
            return send(transport, *given, **named)

        return sending

    for name in ("_exchange", "_lines"):
        monkeypatch.setattr(Transport, name, before(getattr(Transport, name)))


def direct_kubeconfig(ground: Ground, user: dict[str, t.Any] | None = None) -> Path:
    """One that leads to the API server itself, into the namespace of the test."""
    written = yaml.safe_load(KUBECONFIG.read_text(encoding="utf-8"))
    written["contexts"][0]["context"]["namespace"] = ground.namespace
    if user:
        written["users"][0]["user"] = user
    path = ground.folder / f"direct-{'-'.join(user or {})}"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(written), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        (CUT_WRITES, Rule(print, "PATCH", WRITES, after=3)),
        (CUT_PRUNE, Rule(print, "DELETE", "/configmaps/")),
        (CUT_WAIT, Rule(print, "GET", WATCH)),
    ],
    ids=["writes", "prune", "wait"],
)
def test_network_cut(row: Row, rule: Rule, ground: Ground, cut: Cut, results: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = row is CUT_WAIT
    objects, kubeconfig = wish(balanced=waits), direct_kubeconfig(ground)
    if row is CUT_PRUNE:
        assert run_apply(kubeconfig, [*objects, config("old")])["changed"]
    given = address_when(ground, lambda: cut.begun > 0) if waits else contextlib.nullcontext()
    with given, monkeypatch.context() as patched:
        cut_at(cut, patched, rule)
        result = run_apply(kubeconfig, objects, limits=LIMITS, prune=row is CUT_PRUNE, wait=waits, wait_timeout=int(5 * CUT_S + 60))
    took = time.monotonic() - cut.begun
    assert cut.begun, "the network was not cut"
    assert ground.told(result) == row.message == ""
    assert CUT_S - 1 < took < CUT_S + LIMITS.answer + LIMITS.outage
    assert_stored(ground, objects, {})
    assert_rerun(ground, kubeconfig, objects)
    note(results, row, "", took)


def pod_of_etcd(ground: Ground) -> str:
    return next(str(pod["metadata"]["name"]) for pod in ground.cluster.list("v1", "Pod", "kube-system", ETCD))


def test_network_cut_of_a_log_and_a_tunnel(ground: Ground, cut: Cut, results: Rows) -> None:
    pod, client = pod_of_etcd(ground), HttpCluster(Transport(CONNECTION, time, LIMITS))
    before = client.logs("kube-system", pod)
    tunnel = client.port_forward("kube-system", pod, METRICS_PORT, timeout=10)
    with contextlib.closing(client), contextlib.closing(tunnel):
        cut.begin()
        tunnel.socket.settimeout(2 * CUT_S + 10)
        tunnel.socket.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        assert client.logs("kube-system", pod).startswith(before)
        took = time.monotonic() - cut.begun
        assert CUT_S - 1 < took < CUT_S + LIMITS.answer + LIMITS.outage
        note(results, CUT_LOG, "", took)
        assert b"".join(iter(lambda: tunnel.socket.recv(65536), b"")).count(b'"health":"true"')
    note(results, CUT_TUNNEL, "", time.monotonic() - cut.begun)


@pytest.mark.parametrize(("row", "hours"), [(AHEAD, 1), (BEHIND, -1)], ids=["ahead", "behind"])
def test_clock(row: Row, hours: int, ground: Ground, results: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of the controller, as Python tells it: no decision depends on it."""
    skew, real_time, real = dt.timedelta(hours=hours), time.time, dt.datetime

    class Skewed(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:  # type: ignore[override]
            return real.now(tz) + skew

    runs, script = ground.folder / "runs", ground.folder / "plugin"
    expires = f"{real.now(dt.UTC) + dt.timedelta(minutes=15):%Y-%m-%dT%H:%M:%SZ}"
    script.write_text(
        f"""#!/bin/sh\necho run >> {runs}\nprintf '{{"status": {{"token": "first", "expirationTimestamp": "{expires}"}}}}'\n"""
    )
    script.chmod(0o700)
    plugin = {"command": str(script), "apiVersion": "client.authentication.k8s.io/v1"}
    objects, kubeconfig = wish(balanced=True), ground.kubeconfig({"exec": plugin})
    ground.proxy.token = "first"
    assert run_apply(kubeconfig, [*objects, config("old")])["changed"]
    runs.unlink()
    began = time.monotonic()
    ground.proxy.rules = [Rule(Exchange.forward, "GET", WATCH, times=0)]
    with monkeypatch.context() as patched, address_when(ground, past(ground.proxy.rules)):
        patched.setattr(dt, "datetime", Skewed)
        patched.setattr(time, "time", lambda: real_time() + skew.total_seconds())
        result = run_apply(kubeconfig, objects, wait=True, wait_timeout=120, prune=True)
    took = time.monotonic() - began
    assert ground.told(result) == row.message == ""
    assert took < 240
    assert runs.read_text().count("run") == 1
    assert_stored(ground, objects, {})
    assert_rerun(ground, kubeconfig, objects)
    note(results, row, "", took)


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one page, which is full."""
    folder = tmp_path / "full"
    folder.mkdir()
    as_root("mount", "-t", "tmpfs", "-o", f"size=4k,mode=0700,uid={os.geteuid()}", "tmpfs", folder)
    try:
        (folder / "others").write_bytes(b"x" * 4096)
        yield folder
    finally:
        as_root("umount", folder)


def test_full_disk(ground: Ground, full_disk: Path, results: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    objects, kubeconfig, began = wish(), direct_kubeconfig(ground), time.monotonic()
    with monkeypatch.context() as patched:
        patched.setattr(tempfile, "tempdir", str(full_disk))
        result = run_apply(kubeconfig, objects)
    took = time.monotonic() - began
    assert ground.told(result).replace(str(kubeconfig), "~/.kube/config") == DISK.message
    assert took < AT_ONCE_S
    assert ground.stored() == {}
    assert [path.name for path in full_disk.iterdir()] == ["others"]
    assert run_apply(kubeconfig, objects)["changed"]
    assert_stored(ground, objects, {})
    assert_rerun(ground, kubeconfig, objects)
    note(results, DISK, DISK.message, took)


class FullClaim:
    """A claim of a test whose volume is a file system of 256 KiB on the node, full but for what a checkpoint of 4 bytes needs."""

    def __init__(self, ground: Ground) -> None:
        self.folder = f"/run/{ground.namespace}"
        self._kubelet = next(
            path.parent.name for path in Path("/proc").glob("[0-9]*/cmdline")
            if path.read_bytes().split(b"\0")[0] == str(Path(local_kubectl(KUBECONFIG)).with_name("kubelet")).encode()
        )  # fmt: skip
        self.on_node(f"mkdir -p {self.folder}; mount -t tmpfs -o size=256k,mode=0777 tmpfs {self.folder}; cd {self.folder}")
        self.on_node(f"cd {self.folder}; echo 100 >checkpoint; dd if=/dev/zero of=others bs=4k count=50 2>/dev/null")
        size: Manifest = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": ground.namespace, "name": "data"}
        volume = {**size, "capacity": {"storage": "256Ki"}, "claimRef": claim, "hostPath": {"path": self.folder}}
        self.volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": ground.namespace}, "spec": volume}
        self.claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
                      "spec": {**size, "volumeName": ground.namespace, "resources": {"requests": {"storage": "256Ki"}}}}  # fmt: skip

    def on_node(self, script: str) -> str:
        """What a command prints where the kubelet mounts volumes."""
        return as_root("nsenter", "--target", self._kubelet, "--mount", "--pid", "sh", "-c", script)


@pytest.fixture
def full_claim(ground: Ground) -> Iterator[FullClaim]:
    found = FullClaim(ground)
    ground.cluster.apply(found.volume, dry_run=False)
    yield found
    ground.cluster.delete(ref_of(found.volume), dry_run=False)
    found.on_node(f"umount --lazy {found.folder}; rmdir {found.folder}")


def test_full_claim(ground: Ground, full_claim: FullClaim, results: Rows) -> None:
    """A program that writes its checkpoint beside the old one, as trainings do, and takes its place when it is whole."""
    script = "cd /data; echo begin at $(cat checkpoint); dd if=/dev/zero of=new bs=64k count=1 && echo 200 >new && mv new checkpoint"
    container = {"name": "main", "image": "muster.local/tools:1.35.0", "command": ["sh", "-c", script],
                 "terminationMessagePolicy": "FallbackToLogsOnError", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}  # fmt: skip
    pod = {"restartPolicy": "OnFailure", "containers": [container],
           "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}  # fmt: skip
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": {"backoffLimit": 100, "template": {"spec": pod}}}
    began = time.monotonic()
    assert "exit status 1" in applied(ground, full_claim.claim, job, reported="exit status 1", wait=True, wait_timeout=5)
    (found,) = diagnose(ground.cluster, ground.namespace, [])[0]
    assert FULL.message in found.evidence
    assert full_claim.on_node(f"cat {full_claim.folder}/checkpoint") == "100\n"
    full_claim.on_node(f"rm {full_claim.folder}/others")
    finished = run_apply(KUBECONFIG, [full_claim.claim, job], namespace=ground.namespace, wait=True, wait_timeout=600)
    assert (finished.get("msg"), finished["changed"]) == (None, False)
    assert full_claim.on_node(f"cat {full_claim.folder}/checkpoint") == "200\n"
    (done,) = ground.cluster.list("v1", "Pod", ground.namespace)
    assert ground.cluster.logs(ground.namespace, done["metadata"]["name"]).startswith("begin at 100\n")
    note(results, FULL, FULL.message, time.monotonic() - began)


def service(name: str) -> Manifest:
    spec = {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False, "selector": {"app": "x"}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


class Account:
    """A ServiceAccount with all rights in its namespace. A token ends when the Secret that it is bound to is deleted."""

    def __init__(self, ground: Ground) -> None:
        self._ground, self._number = ground, 0
        self.bound = Ref("v1", "Secret", "", ground.namespace)
        account = {"kind": "ServiceAccount", "name": "runner", "namespace": ground.namespace}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        self._make("v1", "ServiceAccount", "runner")
        self._make("rbac.authorization.k8s.io/v1", "RoleBinding", "runner", roleRef=role, subjects=[account])

    def _make(self, api_version: str, kind: str, name: str, **more: t.Any) -> Manifest:
        metadata = {"name": name, "namespace": self._ground.namespace}
        return self._ground.cluster.apply({"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}, dry_run=False)

    def token(self) -> str:
        """A token of the API server itself (TokenRequest), which lives no longer than the object that it is bound to."""
        self._number += 1
        name = f"bound-{self._number}"
        self.bound = Ref("v1", "Secret", name, self._ground.namespace)
        uid = self._make("v1", "Secret", name)["metadata"]["uid"]
        spec = {"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": name, "uid": uid}, "expirationSeconds": 600}
        path = f"/api/v1/namespaces/{self._ground.namespace}/serviceaccounts/runner/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        answer = self._ground.cluster._http.call("POST", path, {}, body)
        assert answer.status == 201, answer.body
        return str(answer.json()["status"]["token"])


def test_token_of_the_api_server_ends_in_a_wait(ground: Ground, results: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three runs wait with one token: from a file and from a plugin, which have a new one by then, and in the kubeconfig."""
    account, token, script = Account(ground), ground.folder / "token", ground.folder / "plugin"
    first = account.token()
    ends = account.bound
    token.write_text(f"{first}\n")
    script.write_text(f"""#!/bin/sh\nprintf '{{"status": {{"token": "%s"}}}}' "$(cat {token})"\n""")
    script.chmod(0o700)
    plugin = {"command": str(script), "apiVersion": "client.authentication.k8s.io/v1"}
    users: dict[str, dict[str, t.Any]] = {"file": {"tokenFile": str(token)}, "plugin": {"exec": plugin}, "plain": {"token": first}}
    refreshed, outcome, began = {"file": threading.Event(), "plugin": threading.Event()}, dict[str, dict[str, t.Any]](), time.monotonic()
    for kind, name in ((credentials.TokenFile, "file"), (credentials.Exec, "plugin")):

        def refresh(own: t.Any, refused: t.Any, *, to: t.Any = kind.refresh, event: threading.Event = refreshed[name]) -> bool:
            event.set()
            return bool(to(own, refused))

        monkeypatch.setattr(kind, "refresh", refresh)

    def run(name: str) -> None:
        kubeconfig = direct_kubeconfig(ground, users[name])
        outcome[name] = run_apply(kubeconfig, [service(name)], owner=f"faults.{name}", wait=True, wait_timeout=600)

    threads = {name: threading.Thread(target=run, args=(name,), daemon=True) for name in users}
    for thread in threads.values():
        thread.start()
    deadline = time.monotonic() + 120
    while {row["metadata"]["name"] for row in ground.cluster.list("v1", "Service", ground.namespace)} < set(users):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    token.write_text(f"{account.token()}\n")
    ground.cluster.delete(ends, dry_run=False)
    assert all(event.wait(300) for event in refreshed.values())
    threads["plain"].join()  # before its Service is ready: this run asks again when its watch ends, which may be after both others
    for name in users:
        give_address(ground, name)
    for name in refreshed:
        threads[name].join()
    assert [outcome[name].get("msg") for name in ("file", "plugin")] == [None, None]
    assert "does not accept the credentials (401, when asked to " in outcome["plain"]["msg"]
    assert "The token or certificate may have expired, or belongs to another cluster." in outcome["plain"]["msg"]
    token.write_text(f"{account.token()}\n")
    for name in users:
        again = run_apply(direct_kubeconfig(ground, users["file"]), [service(name)], owner=f"faults.{name}", wait=True, wait_timeout=120)
        assert (again.get("msg"), again["changed"]) == (None, False)
    note(results, RENEWED, "", time.monotonic() - began)


def test_fleet_of_five(ground: Ground, results: Rows) -> None:
    """Five applies of one play, each on a host of its own, of which one is refused."""
    bad = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Not_A_Name"}}
    objects = {f"f{number}": config(f"c{number}") for number in range(1, 6)}
    task = {
        "name": "Apply the objects of this host",
        "muster.ml.apply": {
            "kubeconfig": str(direct_kubeconfig(ground)), "definition": "{{ objects[inventory_hostname] }}",
            "owner": "faults.{{ inventory_hostname }}", "wait": True,
        },
    }  # fmt: skip
    book, env = ground.folder / "fleet.yml", {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
    book.write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": [task]}]))

    def play(given: dict[str, Manifest]) -> tuple[int, str, dict[str, str]]:
        done = subprocess.run(
            [BIN / "ansible-playbook", "-i", f"{','.join(given)},", "-c", "local", "-e", json.dumps({"objects": given}),
             "-e", f"ansible_python_interpreter={sys.executable}", str(book)],
            capture_output=True, check=False, cwd=ground.folder, env=env, text=True,
        )  # fmt: skip
        said, _mark, recap = done.stdout.partition("PLAY RECAP")
        return done.returncode, said, {line.split()[0]: line for line in recap.splitlines() if " changed=" in line}

    began = time.monotonic()
    status, said, recap = play({**objects, "f3": bad})
    took = time.monotonic() - began
    assert status == 2, recap
    assert {host for host, line in recap.items() if "changed=1" in line and "failed=0" in line} == set(objects) - {"f3"}
    assert "failed=1" in recap["f3"]
    assert FLEET.message in " ".join(said.replace("''", "'").split()), said
    assert said.count("fatal: [") == said.count("fatal: [f3]") == 1
    status, _said, recap = play(objects)
    assert status == 0
    assert {host for host, line in recap.items() if "changed=1" in line} == {"f3"}
    names = {item["metadata"]["name"] for item in ground.cluster.list("v1", "ConfigMap", ground.namespace)}
    assert names >= {f"c{number}" for number in range(1, 6)}
    note(results, FLEET, FLEET.message, took)

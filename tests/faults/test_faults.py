# SPDX-License-Identifier: GPL-3.0-or-later
"""The fault matrix, on a real API server: no fault loses or doubles an object, hangs, or keeps the next run from finishing."""

import contextlib
import dataclasses
import datetime as dt
import os
import subprocess
import threading
import time
import typing as t
import urllib.parse
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import MusterError
from ansible_collections.muster.ml.plugins.module_utils._core.pace import Limits
from ansible_collections.muster.ml.plugins.module_utils._kube.fields import differing_paths
from ansible_collections.muster.ml.plugins.module_utils._kube.kubeconfig import load
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref
from faults import proxy
from faults.cases import CASES, ONE, PLUGIN, PLUGIN_WATCH, RESTART, RESTART_WAIT, STRANGER, TOKEN, WATCH, WRITES, Case, Row
from faults.conftest import AT_ONCE_S, KUBECONFIG, SHORT, Ground, run_apply, writes_since
from faults.proxy import Exchange, Rule

Rows = list[dict[str, t.Any]]
PATIENT = dataclasses.replace(Limits(), outage=240)
"""How long an API server may take to start again depends on the machine."""


def config(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": f"{name}\n" * 20}}


def wish(*, balanced: bool = False) -> list[Manifest]:
    """Six objects of four kinds; ``balanced`` lets the Service wait for an address that the test gives it."""
    service: Manifest = {"selector": {"app": "x"}, "ports": [{"port": 80}]}
    if balanced:
        service |= {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False}
    return [
        *(config(f"c{number}") for number in range(1, 4)),
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}, "stringData": {"password": "hunter2"}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": service},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d"},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "x"}},
                "template": {
                    "metadata": {"labels": {"app": "x"}},
                    "spec": {"containers": [{"name": "main", "image": "registry.invalid/x:1"}]},
                },
            },
        },
    ]


def assert_stored(ground: Ground, objects: list[Manifest], before: dict[tuple[str, str], Manifest]) -> None:
    """Exactly the wanted objects, each with what was wanted, and those that were there before are the same ones."""
    stored = ground.stored()
    assert set(stored) == {(item["kind"], item["metadata"]["name"]) for item in objects}
    for item in objects:
        held = stored[item["kind"], item["metadata"]["name"]]
        assert list(differing_paths(held, {part: item[part] for part in ("data", "spec") if part in item})) == []
    assert {stored[key]["metadata"]["uid"] for key in before} == {item["metadata"]["uid"] for item in before.values()}
    assert stored["Deployment", "d"]["metadata"]["generation"] == 1


def assert_rerun(ground: Ground, kubeconfig: Path, objects: list[Manifest]) -> None:
    """Nothing left to do, and the API server saw no write."""
    began = dt.datetime.now(dt.UTC)
    again = run_apply(kubeconfig, objects)
    assert not again.get("failed"), again
    assert not again["changed"]
    assert writes_since(began, ground.namespace) == []


def note(results: Rows, row: Row, told: str, seconds: float) -> None:
    results.append({**dataclasses.asdict(row), "message": told, "seconds": round(seconds, 2), "lost": 0, "doubled": 0,
                    "writes_of_the_rerun": 0})  # fmt: skip


def give_address(ground: Ground, name: str) -> None:
    """Do what a load balancer's controller does."""
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}
    ground.cluster.patch(Ref("v1", "Service", name, ground.namespace), status, subresource="status", dry_run=False)


@contextlib.contextmanager
def address_when(ground: Ground, ready: t.Callable[[], bool]) -> t.Iterator[None]:
    """Give the Service its address when the time has come."""
    ended = threading.Event()

    def give() -> None:
        while not ended.wait(0.1):
            if ready():
                with contextlib.suppress(MusterError):  # the API server may be away
                    give_address(ground, "s")
                    return

    thread = threading.Thread(target=give)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def past(rules: list[Rule]) -> t.Callable[[], bool]:
    """Whether each rule has struck as often as it does, and one more request of its kind has come since."""
    return lambda: all(rule.seen > rule.after + rule.times for rule in rules)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_case(case: Case, ground: Ground, results: Rows) -> None:
    objects, kubeconfig = wish(balanced=case.wait), ground.kubeconfig()
    options: dict[str, t.Any] = {"wait": case.wait, "wait_timeout": 4 if case.message else 120, "prune": case.prune}
    if case.prune:
        assert run_apply(kubeconfig, [*objects, config("old")])["changed"]
    ground.proxy.rules = case.rules()
    began = time.monotonic()
    with address_when(ground, past(ground.proxy.rules)) if case.wait and not case.message else contextlib.nullcontext():
        result = run_apply(kubeconfig, objects, limits=SHORT if case.short else Limits(), **options)
    took = time.monotonic() - began
    assert all(rule.seen > rule.after for rule in ground.proxy.rules), "the fault did not strike"
    assert case.at_least_s <= took <= AT_ONCE_S
    assert ground.told(result) == case.message
    before = ground.stored()
    if case.message:
        assert case.left is None or len(before) == case.left
    ground.proxy.rules = []
    if case.message:
        finished = run_apply(kubeconfig, objects)
        assert not finished.get("failed"), finished
        assert finished["changed"] == (len(before) < len(objects))
    assert_stored(ground, objects, before)
    assert_rerun(ground, kubeconfig, objects)
    note(results, Row(case.name, case.fault, case.where, case.does), ground.told(result), took)


def expiring(ground: Ground, after: t.Callable[[], object]) -> t.Callable[[Exchange], None]:
    """From this request on another token is wanted."""

    def fault(exchange: Exchange) -> None:
        after()
        ground.proxy.token = "second"
        proxy.answer_with(401, "Unauthorized", "Unauthorized")(exchange)

    return fault


def test_token(ground: Ground, results: Rows) -> None:
    objects, kubeconfig = wish(), ground.kubeconfig({"token": "first"})
    ground.proxy.token = "first"
    ground.proxy.rules = [Rule(expiring(ground, lambda: None), "PATCH", ONE)]
    began = time.monotonic()
    result = run_apply(kubeconfig, objects)
    took = time.monotonic() - began
    # Those that were on their way at the same time are refused too; each is named, the first of them as if alone.
    told = ground.told(result)
    assert "does not accept the credentials (401, when asked to apply ConfigMap ml/c3)" in told
    assert took < AT_ONCE_S
    before = ground.stored()
    kubeconfig = ground.kubeconfig({"token": "second"})
    assert run_apply(kubeconfig, objects)["changed"]
    assert_stored(ground, objects, before)
    assert_rerun(ground, kubeconfig, objects)
    note(results, TOKEN, TOKEN.message, took)


@pytest.mark.parametrize(
    ("row", "method", "target"), [(PLUGIN, "PATCH", ONE), (PLUGIN_WATCH, "GET", WATCH)], ids=[PLUGIN.name, PLUGIN_WATCH.name]
)  # fmt: skip
def test_plugin(row: Row, method: str, target: str, ground: Ground, results: Rows) -> None:
    token, runs, script = (ground.folder / name for name in ("token", "runs", "plugin"))
    token.write_text("first")
    script.write_text(f"""#!/bin/sh\necho run >> {runs}\nprintf '{{"status": {{"token": "%s"}}}}' "$(cat {token})"\n""")
    script.chmod(0o700)
    plugin = {"command": str(script), "apiVersion": "client.authentication.k8s.io/v1"}
    objects, kubeconfig = wish(balanced=True), ground.kubeconfig({"exec": plugin})
    ground.proxy.token = "first"
    ground.proxy.rules = [Rule(expiring(ground, lambda: token.write_text("second")), method, target)]
    began = time.monotonic()
    with address_when(ground, past(ground.proxy.rules)):
        result = run_apply(kubeconfig, objects, wait=True, wait_timeout=120)
    took = time.monotonic() - began
    assert ground.told(result) == row.message == ""
    assert runs.read_text().count("run") == 2
    assert_stored(ground, objects, {})
    assert_rerun(ground, kubeconfig, objects)
    note(results, row, "", took)


def test_stranger(ground: Ground, results: Rows) -> None:
    others = load({"kubeconfig": str(KUBECONFIG)}).ca
    began = time.monotonic()
    result = run_apply(ground.kubeconfig(authority=others), wish())
    took = time.monotonic() - began
    assert ground.told(result) == STRANGER.message
    assert took < AT_ONCE_S
    assert ground.proxy.requests == []
    kubeconfig = ground.kubeconfig()
    assert run_apply(kubeconfig, wish())["changed"]
    assert_stored(ground, wish(), {})
    assert_rerun(ground, kubeconfig, wish())
    note(results, STRANGER, ground.told(result), took)


def kill_api_server() -> None:
    """The process of this very cluster, told by the address that it announces."""
    host = str(urllib.parse.urlsplit(load({"kubeconfig": str(KUBECONFIG)}).server).hostname)
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if words[0].endswith(b"kube-apiserver") and f"--advertise-address={host}".encode() in words:
                sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
                subprocess.run([*sudo, "kill", "-KILL", path.parent.name], check=True)
                return
    raise AssertionError(f"no API server on this machine announces {host}")


def kill(exchange: Exchange) -> None:
    kill_api_server()
    exchange.reset()


def test_restart_in_a_wait(ground: Ground, results: Rows) -> None:
    objects, kubeconfig = wish(balanced=True), ground.kubeconfig()
    ground.proxy.rules = [Rule(kill, "GET", WATCH)]
    began = time.monotonic()
    with address_when(ground, past(ground.proxy.rules)):
        result = run_apply(kubeconfig, objects, limits=PATIENT, wait=True, wait_timeout=480)
    took = time.monotonic() - began
    assert ground.told(result) == RESTART_WAIT.message == ""
    assert_stored(ground, objects, {})
    assert_rerun(ground, kubeconfig, objects)
    note(results, RESTART_WAIT, "", took)


def test_restart(ground: Ground, results: Rows) -> None:
    """The last of this file: what comes after finds an API server that only just came back."""
    objects, kubeconfig = [*wish(), *(config(f"many-{number}") for number in range(54))], ground.kubeconfig()

    ground.proxy.rules = [Rule(kill, "PATCH", WRITES, after=20)]
    began = time.monotonic()
    result = run_apply(kubeconfig, objects, limits=PATIENT)
    took = time.monotonic() - began
    assert ground.told(result) == RESTART.message == ""
    assert result["changed"]
    assert_stored(ground, objects, {})
    assert_rerun(ground, kubeconfig, objects)
    note(results, RESTART, "", took)

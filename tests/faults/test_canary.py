# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets go in by every way there is, and come out nowhere: not in the output of a playbook with -vvv and --diff, not in the list of
processes, not in build/, not in the API server's audit log, not in the logs of pods.
"""

import datetime as dt
import http.server
import json
import os
import re
import secrets
import subprocess
import sys
import threading
import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from support import canary
from support.places import BIN, BUILD, ROOT

from ansible_collections.muster.ml.plugins.module_utils._core.errors import MusterError
from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest
from faults.conftest import AUDIT_LOG, KUBECONFIG

NAMESPACE = "faults-canary"
# In places that the collection must hide; each a word of its own, so that a leak says where it came from.
HIDDEN = {
    name: f"{name.replace(' ', '-')}-{secrets.token_hex(12)}"
    for name in (
        "secret data", "key with dots", "list item", "object that was there", "object that was there before", "refused value",
        "secret that is refused", "misspelt kind", "misspelt kind in a template", "secret in a list", "type of a secret",
        "token with newline", "token that is redirected", "token of a mapping", "place of the redirect",
    )
}  # fmt: skip


def marked(name: str, paths: str, **content: t.Any) -> Manifest:
    metadata = {"name": name, "namespace": NAMESPACE, "annotations": {"muster.ml/sensitive": paths}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **content}


def task(name: str, *objects: Manifest, fails: bool = False, **options: t.Any) -> Manifest:
    """An apply, what it returned shown, and (with an environment of its own) the same as a module in a process of its own."""
    found: Manifest = {"name": name, "muster.ml.apply": {"owner": "faults.canary", "definition": list(objects), **options}}
    found["register"] = "shown"
    if fails:
        found["ignore_errors"] = True
    return found


def deployment() -> Manifest:
    container = {"name": "c", "image": "none", "env": [{"name": "A", "value": "x"}, {"name": "TOKEN", "value": HIDDEN["list item"]}]}
    labels = {"app": "canary"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    metadata = {
        "name": "listed", "namespace": NAMESPACE,
        "annotations": {"muster.ml/sensitive": "spec.template.spec.containers[*].env[*].value"},
    }  # fmt: skip
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def secret(name: str, value: str, **more: t.Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "stringData": {"password": value},
        **more,
    }


def tasks(server: str, mapping: Manifest) -> list[Manifest]:
    before = {"password": HIDDEN["object that was there before"]}
    service = {"apiVersion": "v1", "kind": "Service", "spec": {"clusterIP": HIDDEN["refused value"], "ports": [{"port": 80}]}}
    there = marked("there", "data.password", data={"password": HIDDEN["object that was there"]})
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    plain = [
        task("Apply a namespace", space),
        task("Apply a Secret", secret("plain", HIDDEN["secret data"])),
        task("Apply a Secret with another value", secret("plain", HIDDEN["secret data"][::-1])),
        task("Apply a key with dots", marked("dots", "data['nats.conf']", data={"nats.conf": HIDDEN["key with dots"]})),
        task("Apply a list", deployment()),
        {"name": "Make an object as somebody else", "kubernetes.core.k8s": {
            "definition": {**there, "metadata": {"name": "there", "namespace": NAMESPACE}, "data": before}}, "no_log": True},
        task("Meet an object that was there", there, fails=True),
        task("Adopt an object that was there", there, adopt=True, force_conflicts=True),
        task("Have a value refused", {**service, "metadata": {**marked("svc", "spec.clusterIP")["metadata"]}}, fails=True),
        task("Have a Secret refused", secret("refused", HIDDEN["secret that is refused"], type="kubernetes.io/tls"), fails=True),
        task("Misspell a kind", {**secret("misspelt", HIDDEN["misspelt kind"]), "kind": "secret"}, fails=True),
        {**task("Misspell kinds in check mode", {**secret("misspelt", HIDDEN["misspelt kind"]), "kind": "v1 secrets"}, {
            "apiVersion": "v1", "kind": "list", "items": [{**secret("listed", HIDDEN["secret in a list"]), "kind": "SECRET"}],
        }, fails=True), "check_mode": True},
        {**task("Show what looks like a Secret", {
            **marked("typed", ""), "apiVersion": "x.io/v1", "kind": "Sealed", "type": "Opaque",
            "data": {"password": HIDDEN["type of a secret"]},
        }, {
            **marked("outer", ""), "apiVersion": "x.io/v1", "kind": "Sealed",
            "spec": {"objects": [{**secret("inner", HIDDEN["misspelt kind in a template"]), "kind": "secret"}]},
        }, expected_kinds=["x.io/v1/Sealed"]), "check_mode": True},
        task("Give a path that matches nothing", marked("typo", "data.pasword", data=before), fails=True),
        task("Use a token with a newline", there, fails=True, host="https://127.0.0.1:1", api_key=f"{HIDDEN['token with newline']}\n"),
        task("Be redirected", there, fails=True, host=server, api_key=HIDDEN["token that is redirected"]),
        task("Use a kubeconfig that is a mapping", there, fails=True, kubeconfig=mapping),
    ]  # fmt: skip
    # An environment of its own makes the module run in a process of its own.
    return [one for item in plain for one in (item, {**item, "environment": {"ANYTHING": "x"}})]


class Redirecting(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_args: t.Any) -> None:
        """The test's output is what is searched."""

    def do_GET(self) -> None:
        self.send_response(302)
        self.send_header("Location", f"https://login.invalid/?session={HIDDEN['place of the redirect']}")
        self.send_header("Content-Length", "0")
        self.end_headers()


@pytest.fixture(scope="module")
def redirecting() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Redirecting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def run(redirecting: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, set[str], dt.datetime]:
    """Output of the playbook, what the list of processes showed, and when it began."""
    folder = tmp_path_factory.mktemp("canary")
    config = yaml.safe_load(KUBECONFIG.read_text())
    mapping = {**config, "users": [{"name": config["users"][0]["name"], "user": {"token": HIDDEN["token of a mapping"]}}]}
    auth = {"kubeconfig": str(KUBECONFIG)}
    play = {
        "hosts": "localhost", "gather_facts": False, "tasks": [
            *(one for item in tasks(redirecting, mapping)
              for one in (item, {"name": "Show what was returned", "ansible.builtin.debug": {"var": "shown"}})),
            {"name": "Remove all", "muster.ml.apply": {"owner": "faults.canary", "state": "absent", "delete_data": True, "wait": True}},
        ],
        "module_defaults": {"group/muster.ml.all": auth, "group/kubernetes.core.k8s": auth},
    }  # fmt: skip
    book = folder / "canary.yml"
    book.touch(mode=0o600)
    book.write_text(yaml.safe_dump([play]))
    env = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_LOCALHOST_WARNING": "false"}
    began = dt.datetime.now(dt.UTC)
    with canary.ProcessWatch(HIDDEN, interval=0.05) as watch:
        done = subprocess.run(
            [BIN / "ansible-playbook", "-vvv", "--diff", "-i", "localhost,", "-c", "local",
             "-e", f"ansible_python_interpreter={sys.executable}", str(book)],
            capture_output=True, check=False, cwd=folder, env=env,
        )  # fmt: skip
    output = done.stdout + done.stderr
    assert done.returncode == 0, output.decode()[-4000:]
    return output, watch.found, began


def in_logs(secrets: dict[str, str], cluster: HttpCluster) -> set[str]:
    """'NAME in the log of POD' for every secret that a container of the cluster printed."""
    found = set()
    for pod in cluster.list("v1", "Pod"):
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        for container in (pod.get("status") or {}).get("containerStatuses") or []:
            if not container.get("started") and not (container.get("state") or {}).get("terminated"):
                continue
            try:
                text = cluster.logs(namespace, name, container=container["name"])
            except MusterError:  # it is gone since it was listed
                continue
            found |= {f"{one} in the log of {namespace}/{name}" for one in canary.in_text(secrets, text.encode())}
    return found


def test_every_way_was_tried(run: tuple[bytes, set[str], dt.datetime]) -> None:
    """Each task that was to be refused was, or nothing would have been hidden."""
    output = run[0].decode()
    assert len(re.findall(r"\.\.\.ignoring", output)) == 2 * 9
    for told in (
        "Invalid value",
        "answered with a redirect",
        "newline",
        "401",
        "matches nothing|there is no data",
        "was not made by Muster",
        r"does not serve secret \(v1\), did you mean Secret \(v1\)",
    ):
        assert re.search(told, output), told


def test_no_secret_is_in_the_output(run: tuple[bytes, set[str], dt.datetime]) -> None:
    assert canary.in_text(HIDDEN, run[0]) == set()
    assert b"redacted" in run[0]


def test_no_secret_is_in_the_list_of_processes(run: tuple[bytes, set[str], dt.datetime]) -> None:
    assert run[1] == set()


def audit_logs() -> list[Path]:
    return list(AUDIT_LOG.parent.glob(f"{AUDIT_LOG.stem}*{AUDIT_LOG.suffix}"))


def test_no_secret_is_left_in_build(run: tuple[bytes, set[str], dt.datetime]) -> None:
    """The audit log of the cluster of the tests lies there, too, and has a test of its own."""
    since, apart = run[2].timestamp(), set(audit_logs())
    fresh = [path for path, about in canary.files_below(BUILD) if about.st_mtime >= since and path not in apart]
    assert {str(path): found for path in fresh if (found := canary.in_file(HIDDEN, path))} == {}


def test_no_secret_is_in_the_audit_log(run: tuple[bytes, set[str], dt.datetime]) -> None:
    """Apart from the API server's own words about what it refused, which repeat the value; nobody but root may read them."""
    logs = [path for path in audit_logs() if path.stat().st_mtime >= run[2].timestamp()]
    assert logs
    for path in logs:
        assert path.stat().st_mode & 0o077 == 0
        events = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
        text = json.dumps([{key: value for key, value in event.items() if key != "responseStatus"} for event in events])
        assert canary.in_text(HIDDEN, text.encode()) == set()


def test_no_secret_is_in_the_log_of_a_pod(run: tuple[bytes, set[str], dt.datetime], cluster: HttpCluster) -> None:
    assert in_logs(HIDDEN, cluster) == set()

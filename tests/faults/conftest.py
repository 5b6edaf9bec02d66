# SPDX-License-Identifier: GPL-3.0-or-later
"""A real cluster (MUSTER_KUBECONFIG, MUSTER_AUDIT_LOG), a proxy before it, and muster.ml.apply through that proxy."""

import dataclasses
import datetime as dt
import http.client
import json
import os
import typing as t
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from support import audit

from ansible_collections.muster.ml.plugins.module_utils._core.clock import SYSTEM_CLOCK
from ansible_collections.muster.ml.plugins.module_utils._core.pace import Limits
from ansible_collections.muster.ml.plugins.module_utils._edge.failure import EXPECTED, failure
from ansible_collections.muster.ml.plugins.module_utils._edge.options import full_spec
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context
from ansible_collections.muster.ml.plugins.module_utils._kube import tls as kube_tls
from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster, Transport
from ansible_collections.muster.ml.plugins.module_utils._kube.kubeconfig import load
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref, to_plain_values
from ansible_collections.muster.ml.plugins.modules import apply
from faults.proxy import Proxy, proxied
from faults.table import RESULTS

OWNER = "faults"
USERS = Limits()
# For what ends by a limit: an answer, and an outage, are waited for 4 s in the place of the 60 s of users.
SHORT = Limits(answer=4, outage=4)
AT_ONCE_S = 45.0
"""Less than an outage is waited for, and more than a busy machine needs for what is told at once."""
KUBECONFIG = Path(os.environ["MUSTER_KUBECONFIG"])
AUDIT_LOG = Path(os.environ.get("MUSTER_AUDIT_LOG", "/var/log/muster/audit.log"))


def direct() -> HttpCluster:
    """The API server without anything between."""
    return HttpCluster(Transport(load({"kubeconfig": str(KUBECONFIG)}), SYSTEM_CLOCK))


def run_apply(kubeconfig: Path, objects: list[Manifest], *, limits: Limits = USERS, check: bool = False,
              **options: t.Any) -> dict[str, t.Any]:  # fmt: skip
    """muster.ml.apply with its own checks of options; what a task would show as its result."""
    given = {} if "src" in options else {"definition": objects}
    args = {**given, "owner": OWNER, "kubeconfig": str(kubeconfig), **options}
    checked = ArgumentSpecValidator(full_spec(apply.ARGUMENT_SPEC), **apply.CONSTRAINTS).validate(args)
    assert not checked.error_messages
    params = to_plain_values(dict(checked.validated_parameters))
    context = Context(params=params, check=check, connect=lambda: HttpCluster(Transport(load(params), SYSTEM_CLOCK, limits)))
    try:
        return apply.execute(context)
    except EXPECTED as exc:
        return {"failed": True, "changed": False, **failure(exc)}
    finally:
        context.close()


def writes_since(began: dt.datetime, namespace: str) -> list[str]:
    """What the API server noted that was written in a namespace."""
    return [str(found) for found in audit.written(AUDIT_LOG, began) if f"/namespaces/{namespace}" in found.uri]


@dataclasses.dataclass
class Ground:
    """A namespace of one test, and the ways to the API server."""

    cluster: HttpCluster
    proxy: Proxy
    authority: str
    namespace: str
    folder: Path

    def kubeconfig(self, user: dict[str, t.Any] | None = None, *, authority: str | None = None) -> Path:
        """One that leads through the proxy."""
        ca, entry = self.folder / "ca.pem", {"name": "faults"}
        ca.write_text(authority or self.authority)
        server = f"https://127.0.0.1:{self.proxy.server_address[1]}"
        config = {
            "clusters": [{**entry, "cluster": {"server": server, "certificate-authority": str(ca)}}],
            "contexts": [{**entry, "context": {"cluster": "faults", "user": "faults", "namespace": self.namespace}}],
            "users": [{**entry, "user": user or {}}],
            "current-context": "faults",
        }
        path = self.folder / "kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config))
        return path

    def stored(self) -> dict[tuple[str, str], Manifest]:
        """Our objects as they are stored, by kind and name; what prune remembers is none of them."""
        kinds = (("v1", "ConfigMap"), ("v1", "Secret"), ("v1", "Service"), ("apps/v1", "Deployment"))
        return {
            (kind, item["metadata"]["name"]): item
            for api_version, kind in kinds
            for item in self.cluster.list(api_version, kind, self.namespace, f"muster.ml/owner={OWNER},!muster.ml/settled")
        }

    def told(self, result: dict[str, t.Any]) -> str:
        """The message of a failed task, without what is another at every run."""
        server = f"127.0.0.1:{self.proxy.server_address[1]}"
        message = str(result.get("msg", "")).replace(server, "127.0.0.1:6443")
        return message.replace(str(self.folder / "kubeconfig"), "~/.kube/config").replace(self.namespace, "ml")


@pytest.fixture(scope="session")
def cluster() -> Iterator[HttpCluster]:
    found = direct()
    yield found
    found.close()


@pytest.fixture
def ground(cluster: HttpCluster, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Ground]:
    """A proxy, and a namespace that goes with the test."""
    short = "".join(char if char.isalnum() else "-" for char in request.node.name.removeprefix("test_")).strip("-").lower()
    namespace = f"faults-{short}"[:60].strip("-")
    ref = Ref("v1", "Namespace", namespace)
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}, dry_run=False)
    connection = load({"kubeconfig": str(KUBECONFIG)})
    url, tls = (urllib.parse.urlsplit(connection.server), kube_tls.context_for(connection, connection.credentials.auth()))

    def upstream() -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(str(url.hostname), url.port, context=tls, timeout=60)

    try:
        with proxied(upstream, tmp_path) as (proxy, authority):
            yield Ground(cluster, proxy, authority, namespace, tmp_path)
    finally:
        cluster.delete(ref, dry_run=False)


@pytest.fixture(scope="session")
def results() -> Iterator[list[dict[str, t.Any]]]:
    """The rows of the table, as they came out."""
    rows: list[dict[str, t.Any]] = []
    yield rows
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")

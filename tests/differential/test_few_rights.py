# SPDX-License-Identifier: GPL-3.0-or-later
"""A user who may work in one namespace and see nothing else, as many teams' users are: the ClusterRole edit, bound in a namespace."""

import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from faults.conftest import KUBECONFIG, run_apply

from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref
from differential.conftest import ask

SPACE, OWNER = "differential-rights", "differential.rights"


def made(api_version: str, kind: str, name: str, **content: t.Any) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": SPACE}, **content}


@pytest.fixture(scope="module")
def restricted(kubectl: str, cluster: HttpCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of such a user."""
    subject = {"kind": "ServiceAccount", "name": "team", "namespace": SPACE}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    ground = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}},
        made("v1", "ServiceAccount", "team"),
        made("rbac.authorization.k8s.io/v1", "RoleBinding", "team", subjects=[subject], roleRef=role),
    ]
    result = run_apply(KUBECONFIG, ground, owner=f"{OWNER}.ground")
    assert not result.get("failed"), result["msg"]
    config = yaml.safe_load(KUBECONFIG.read_text())
    config["users"] = [{"name": "team", "user": {"token": ask(kubectl, "create", "token", "team", "-n", SPACE).strip()}}]
    config["contexts"] = [{"name": "team", "context": {"cluster": config["clusters"][0]["name"], "user": "team", "namespace": SPACE}}]
    path = tmp_path_factory.mktemp("rights") / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump({**config, "current-context": "team"}))
    yield path
    cluster.delete(Ref("v1", "Namespace", SPACE), dry_run=False)


def apply(kubeconfig: Path, objects: list[Manifest], **options: t.Any) -> dict[str, t.Any]:
    return run_apply(kubeconfig, objects, **{"owner": OWNER, **options})


def config(name: str, value: str = "1") -> Manifest:
    return made("v1", "ConfigMap", name, data={"x": value})


def test_such_a_user_applies_reruns_prunes_and_removes(restricted: Path, cluster: HttpCluster) -> None:
    first = apply(restricted, [config("a"), config("b"), made("v1", "ServiceAccount", "sa")], prune=True, wait=True)
    assert not first.get("failed"), first["msg"]
    assert not apply(restricted, [config("a"), config("b"), made("v1", "ServiceAccount", "sa")], prune=True)["changed"]
    pruned = apply(restricted, [config("a", "2")], prune=True)
    assert {item["name"]: item["action"] for item in pruned["objects"]} == {"a": "updated", "b": "deleted", "sa": "deleted"}
    removed = apply(restricted, [], definition=None, state="absent", wait=True)
    assert not removed.get("failed"), removed["msg"]
    assert cluster.get(Ref("v1", "ConfigMap", "a", SPACE)) is None
    assert [item for item in cluster.list("coordination.k8s.io/v1", "Lease", SPACE) if "muster" in item["metadata"]["name"]] == []


def test_a_claim_that_waits_is_told_as_far_as_such_a_user_may_see(restricted: Path) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "no-such-class", "resources": {"requests": {"storage": "1Mi"}}}
    for _attempt in range(30):  # the controller of claims may be late
        result = apply(restricted, [made("v1", "PersistentVolumeClaim", "waits", spec=spec)], wait=True, wait_timeout=6)
        assert result["failed"]
        if "no-such-class" in result["msg"]:
            break
    assert "no-such-class" in result["msg"]
    assert apply(restricted, [], definition=None, state="absent", delete_data=True)["changed"]


def test_what_such_a_user_may_not_do_is_named(restricted: Path) -> None:
    refused = apply(restricted, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "differential-rights-other"}}])
    assert refused["failed"]
    assert f"system:serviceaccount:{SPACE}:team may not" in refused["msg"]

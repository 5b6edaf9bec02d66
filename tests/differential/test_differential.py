# SPDX-License-Identifier: GPL-3.0-or-later
"""muster.ml.apply beside `kubectl apply --server-side`: same stored objects, same ownership, and a rerun that writes nothing."""

import contextlib
import datetime as dt
import json
import re
import time
import typing as t
from collections.abc import Iterator

import pytest
from faults.conftest import AUDIT_LOG, KUBECONFIG, run_apply
from support import audit

from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import revealed
from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref, manager_of, owner_at
from differential.conftest import ask
from differential.objects import CLUSTER_WIDE, DEFINITIONS, MEDDLER, NAMESPACED, POLICY, Manifest, objects

OURS, THEIRS = "ours", "theirs"
OWNER = "differential"
BOOKKEEPING = ("app.kubernetes.io/managed-by", "muster.ml/owner", "muster.ml/home", "muster.ml/applied", "muster.ml/not-kept")
IDENTITY = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation")
# Given by allocators and controllers, another for every object.
ALLOCATED = ("clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort")
BY_CONTROLLERS = ("deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation")


def namespace_of(mark: str) -> str:
    return f"differential-{mark}"


@pytest.fixture(scope="module")
def applied(kubectl: str, cluster: HttpCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, t.Any]]:
    """Both have applied; what the second run of ours did comes along."""
    spaces: list[Manifest] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace_of(mark), "labels": {MEDDLER: "yes"}}}
        for mark in (OURS, THEIRS)
    ]
    ground = [*spaces, *DEFINITIONS, *POLICY]
    file = tmp_path_factory.mktemp("differential") / "objects.json"
    # JSON, because YAML's readers do not agree on what 1e9 is.
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects(THEIRS)}))
    with contextlib.ExitStack() as stack:
        stack.callback(clean, cluster, ground, objects(OURS) + objects(THEIRS))
        prepared = run_apply(KUBECONFIG, ground, owner=f"{OWNER}.ground", wait=True)
        assert not prepared.get("failed"), prepared["msg"]
        await_meddler(cluster)
        ask(kubectl, "apply", "--server-side", "-n", namespace_of(THEIRS), "-f", str(file))
        options: dict[str, t.Any] = {"owner": OWNER, "namespace": namespace_of(OURS)}
        first = run_apply(KUBECONFIG, objects(OURS), **options)
        assert not first.get("failed"), first["msg"]
        settle(cluster)
        began = dt.datetime.now(dt.UTC)
        again = run_apply(KUBECONFIG, objects(OURS), **options)
        writes = [str(found) for found in audit.written(AUDIT_LOG, began) if OWNER in found.uri]  # it is in all names
        planned = run_apply(KUBECONFIG, objects(OURS), check=True, **options)
        yield {"first": first, "again": again, "writes": writes, "planned": planned}


def await_meddler(cluster: HttpCluster) -> None:
    """A policy works some moments after it was stored; a dry run tells when."""
    probe = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe", "namespace": namespace_of(OURS), "labels": {"a": "b"}}}
    deadline = time.monotonic() + 180
    while "meddler" not in cluster.apply(probe, dry_run=True)["metadata"]["labels"]:
        assert time.monotonic() < deadline, "the admission policy does not work"
        time.sleep(0.2)


def settle(cluster: HttpCluster) -> None:
    """Until the controllers have seen every workload, so that what they add is there on both sides."""
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        late = [
            item for mark in (OURS, THEIRS) for api_version, kind in NAMESPACED if api_version == "apps/v1"
            for item in cluster.list(api_version, kind, namespace_of(mark))
            if item.get("status", {}).get("observedGeneration", 0) < item["metadata"].get("generation", 0)
        ]  # fmt: skip
        if not late:
            return
        time.sleep(0.5)
    raise AssertionError("the controllers are late")


def clean(cluster: HttpCluster, ground: list[Manifest], made: list[Manifest]) -> None:
    """Namespaces take what is in them along."""
    for item in [*(item for item in made if (item["apiVersion"], item["kind"]) in CLUSTER_WIDE), *reversed(ground)]:
        cluster.delete(Ref(item["apiVersion"], item["kind"], item["metadata"]["name"]), dry_run=False)


def fields_of(item: Manifest, manager: str) -> t.Any:
    """What a field manager applied, without our own bookkeeping.

    The one difference that is meant: we send a Secret's stringData as data, which is readable and so can be compared.
    """
    for entry in item["metadata"].get("managedFields") or []:
        if (entry["manager"], entry["operation"]) == (manager, "Apply") and not entry.get("subresource"):
            owned = json.loads(json.dumps(entry["fieldsV1"]))
            metadata = owned.get("f:metadata", {})
            for part in ("f:labels", "f:annotations"):
                for key in BOOKKEEPING:
                    metadata.get(part, {}).pop(f"f:{key}", None)
                if not set(metadata.get(part, {})) - {"."}:
                    metadata.pop(part, None)
            if not metadata:
                owned.pop("f:metadata", None)
            if "f:stringData" in owned:
                owned["f:data"] = owned.pop("f:stringData")
            return owned
    return None


def plain(value: t.Any) -> t.Any:
    """Without what an allocator gave."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key not in ALLOCATED or item == "None" or item == ["None"]}
    return [plain(item) for item in value] if isinstance(value, list) else value


def normal(item: Manifest, mark: str) -> Manifest:
    """An object without its identity: what two objects of one wish have in common."""
    metadata = {key: value for key, value in item["metadata"].items() if key not in IDENTITY}
    for part in ("labels", "annotations"):
        kept = {key: value for key, value in (metadata.get(part) or {}).items() if key not in (*BOOKKEEPING, *BY_CONTROLLERS)}
        metadata.pop(part, None)
        if kept:
            metadata[part] = kept
    rest = {key: value for key, value in item.items() if key != "status"}
    text = json.dumps(plain({**rest, "metadata": metadata}), sort_keys=True)
    text = text.replace(item["metadata"]["uid"], "UID").replace(namespace_of(mark), "NAMESPACE").replace(f"differential-{mark}-", "")
    return t.cast(Manifest, json.loads(re.sub(r"kube-api-access-\w{5}", "kube-api-access", text)))


def stored(cluster: HttpCluster, mark: str) -> dict[tuple[str, str, str], Manifest]:
    found = {}
    for desired in objects(mark):
        api_version, kind, name = desired["apiVersion"], desired["kind"], desired["metadata"]["name"]
        space = None if (api_version, kind) in CLUSTER_WIDE else namespace_of(mark)
        item = cluster.get(Ref(api_version, kind, name, space))
        assert item is not None, f"{kind} {name} of {mark} is not there"
        found[api_version, kind, name.replace(f"differential-{mark}-", "")] = revealed(item)
    return found


@pytest.fixture(scope="module")
def both(applied: dict[str, t.Any], cluster: HttpCluster) -> tuple[dict[tuple[str, str, str], Manifest], ...]:
    return stored(cluster, OURS), stored(cluster, THEIRS)


def test_all_were_made(applied: dict[str, t.Any]) -> None:
    assert {item["action"] for item in applied["first"]["objects"]} == {"created"}
    assert len(applied["first"]["objects"]) == len(objects(OURS)) > 300


def test_the_same_is_stored(both: tuple[dict[tuple[str, str, str], Manifest], ...]) -> None:
    ours, theirs = both
    assert set(ours) == set(theirs)
    differing = {key: (normal(ours[key], OURS), normal(theirs[key], THEIRS)) for key in ours}
    assert {key: pair for key, pair in differing.items() if pair[0] != pair[1]} == {}


def test_the_same_is_owned(both: tuple[dict[tuple[str, str, str], Manifest], ...]) -> None:
    ours, theirs = both
    pairs = {
        key: (fields_of(ours[key], manager_of(owner_at(OWNER, namespace_of(OURS)))), fields_of(theirs[key], "kubectl")) for key in ours
    }
    assert {key: pair for key, pair in pairs.items() if pair[0] != pair[1]} == {}


def test_the_policy_meddled(both: tuple[dict[tuple[str, str, str], Manifest], ...]) -> None:
    for side in both:
        assert side["v1", "ConfigMap", "configmap-1"]["metadata"]["labels"]["index"] == "meddled"
        assert side["apps/v1", "Deployment", "deployment-1"]["metadata"]["labels"]["meddler"] == "was-here"


def test_a_rerun_has_nothing_to_do(applied: dict[str, t.Any]) -> None:
    for run in ("again", "planned"):
        result = applied[run]
        assert not result.get("failed"), result["msg"]
        assert [item for item in result["objects"] if item["action"] != "unchanged"] == []
        assert result["changed"] is False
    assert applied["writes"] == []

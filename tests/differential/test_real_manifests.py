# SPDX-License-Identifier: GPL-3.0-or-later
"""What others wrote: read as kubectl reads it, stored as `kubectl apply --server-side` stores it, and nothing written the second time."""

import datetime as dt
import json
import subprocess
import time
import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.conftest import AUDIT_LOG, KUBECONFIG, run_apply
from support import audit

from ansible_collections.muster.ml.plugins.module_utils._kube import source
from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref, ref_of
from ansible_collections.muster.ml.plugins.module_utils._kube.prepare import flatten
from differential.conftest import ask
from differential.manifests import applied, files
from differential.test_yaml import printed

OWNER = "differential.manifests"
# Of the object, not of what was asked for.
GIVEN = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "deletionTimestamp", "finalizers")
ALLOCATED = ("clusterIP", "clusterIPs", "nodePort")
BOOKKEEPING = ("muster.ml/owner", "muster.ml/home", "muster.ml/applied", "muster.ml/not-kept")
BY_CONTROLLERS = ("deployment.kubernetes.io/revision",)


def text_of(value: t.Any) -> str:
    return json.dumps(value, sort_keys=True)


def is_object(item: t.Any) -> bool:
    return isinstance(item, dict) and bool(item.get("kind") and item.get("apiVersion") and item.get("metadata", {}).get("name"))


def test_every_manifest_is_read_as_kubectl_reads_it(kubectl: str, tmp_path: Path) -> None:
    """Patches and values of charts, which lie among them, are no objects."""
    read = {file: [item for item in source.from_path(str(file)) if item is not None] for file in files()}
    read = {file: items for file, items in read.items() if items and all(map(is_object, items))}
    for number, file in enumerate(read):
        (tmp_path / f"{number:04}.yaml").symlink_to(file)
    words: list[str | Path] = [kubectl, "patch", "--local", "--type=merge", "--patch={}", "--output=json", "--filename", tmp_path]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    theirs = [text_of(item) for item in printed(done.stdout)]
    ours = [text_of(item) for items in read.values() for item in flatten(items)]
    assert len(read) > 300
    assert [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]] == []


@pytest.fixture(scope="module")
def texts(kubectl: str) -> list[str]:
    return applied(kubectl)


@pytest.fixture(scope="module")
def desired(texts: list[str]) -> dict[Ref, Manifest]:
    objects = [item for text in texts for item in source.documents(text, "manifest")]
    return {ref_of(item): item for item in objects}


def stored(cluster: HttpCluster, refs: t.Iterable[Ref]) -> dict[Ref, Manifest | None]:
    return {ref: cluster.get(ref) for ref in refs}


@pytest.fixture(scope="module")
def no_node_takes_pods(kubectl: str) -> Iterator[None]:
    """No image of these manifests can be pulled here, and a namespace with pods on a node takes minutes to go."""
    nodes = ask(kubectl, "get", "nodes", "--output=jsonpath={.items[*].metadata.name}").split()
    ask(kubectl, "cordon", *nodes)
    yield
    ask(kubectl, "uncordon", *nodes)


@pytest.fixture(scope="module")
def outcome(
    kubectl: str,
    cluster: HttpCluster,
    no_node_takes_pods: None,
    texts: list[str],
    desired: dict[Ref, Manifest],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, t.Any]]:
    """First kubectl, and away with it; then we, twice."""
    file = tmp_path_factory.mktemp("manifests") / "all.yaml"
    file.write_text("---\n".join(text.rstrip("\n") + "\n" for text in texts))
    remove = ("delete", "--ignore-not-found", "--wait=false", "-f", str(file))
    await_none(cluster, desired)
    try:
        ask(kubectl, "apply", "--server-side", "--field-manager=muster", "-f", str(file))
        theirs = stored(cluster, desired)
        await_served(cluster, desired.values())
        ask(kubectl, *remove)
        await_none(cluster, desired)
        options: dict[str, t.Any] = {"owner": OWNER, "namespace": "default"}
        first = run_apply(KUBECONFIG, texts, **options)  # type: ignore[arg-type]
        assert not first.get("failed"), first["msg"]
        ours = stored(cluster, desired)
        began = dt.datetime.now(dt.UTC)
        again = run_apply(KUBECONFIG, texts, **options)  # type: ignore[arg-type]
        await_served(cluster, desired.values())
        names = {f"/{ref.name}" for ref in desired}
        writes = [
            str(found)
            for found in audit.written(AUDIT_LOG, began)
            if any(f"{name}?" in f"{found.uri}?" for name in names) and found.agent.startswith("muster")
        ]
        yield {"theirs": theirs, "ours": ours, "first": first, "again": again, "writes": writes}
    finally:
        ask(kubectl, *remove)


def await_served(cluster: HttpCluster, objects: t.Iterable[Manifest]) -> None:
    """A definition that is removed before the API server has its objects ready stays up to five minutes.

    Its finalizer meets "storage is (re)initializing", then its own status as a conflict, and waits for the next resync.
    """
    for item in objects:
        if item["kind"] == "CustomResourceDefinition":
            spec = item["spec"]
            version = next(found["name"] for found in spec["versions"] if found["served"])
            cluster.list(f"{spec['group']}/{version}", spec["names"]["kind"])


def await_none(cluster: HttpCluster, refs: t.Iterable[Ref]) -> None:
    """What an earlier run removed may still be going; what somebody installed would be removed by this one."""
    deadline = time.monotonic() + 360
    while there := {str(ref): item for ref, item in stored(cluster, refs).items() if item}:
        installed = [name for name, item in there.items() if not item["metadata"].get("deletionTimestamp")]
        assert installed == [], "these are somebody's, and the test would remove them"
        assert time.monotonic() < deadline, f"these do not go: {', '.join(there)}"
        time.sleep(1)


def comparable(item: Manifest, asked: Manifest) -> Manifest:
    """What two objects of one wish have in common. A label that the user wrote is none of our bookkeeping."""
    metadata = {key: value for key, value in item["metadata"].items() if key not in GIVEN}
    for part in ("labels", "annotations"):
        theirs = asked["metadata"].get(part) or {}
        ours = {"app.kubernetes.io/managed-by", *BOOKKEEPING, *BY_CONTROLLERS} - theirs.keys()
        metadata[part] = {key: value for key, value in (metadata.get(part) or {}).items() if key not in ours}
    rest = {key: value for key, value in item.items() if key != "status"}
    if "aggregationRule" in rest:
        rest.pop("rules")  # a controller fills them
    if item["kind"] == "Service":
        rest["spec"] = {key: value for key, value in rest["spec"].items() if key not in ALLOCATED}
    return {**rest, "metadata": metadata}


def test_all_were_made(outcome: dict[str, t.Any], desired: dict[Ref, Manifest]) -> None:
    assert {item["action"] for item in outcome["first"]["objects"]} == {"created"}
    assert len(outcome["first"]["objects"]) == len(desired) > 140
    assert sum(ref.kind == "CustomResourceDefinition" for ref in desired) > 35


def test_what_is_stored_is_what_kubectl_stores(outcome: dict[str, t.Any], desired: dict[Ref, Manifest]) -> None:
    pairs = {
        str(ref): (comparable(outcome["ours"][ref], asked), comparable(outcome["theirs"][ref], asked)) for ref, asked in desired.items()
    }
    assert {name: pair for name, pair in pairs.items() if pair[0] != pair[1]} == {}


def test_the_second_time_writes_nothing(outcome: dict[str, t.Any]) -> None:
    again = outcome["again"]
    assert not again.get("failed"), again["msg"]
    assert [item for item in again["objects"] if item["action"] != "unchanged"] == []
    assert again["changed"] is False
    assert outcome["writes"] == []

# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for any list of objects: planning, merging, order and pruning."""

import copy
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Conflict
from ansible_collections.muster.ml.plugins.module_utils._kube import fields
from ansible_collections.muster.ml.plugins.module_utils._kube.engine import apply_objects
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref, manager_of
from ansible_collections.muster.ml.plugins.module_utils._kube.order import DATA_KINDS, wave_of
from ansible_collections.muster.ml.plugins.module_utils._kube.prepare import prepare
from ansible_collections.muster.ml.plugins.module_utils._kube.removal import delete_objects
from ansible_collections.muster.ml.plugins.module_utils._kube.report import Report
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster

OWNER, OTHER = "o.ours", "o.theirs"
KINDS = {
    "Namespace": "v1",
    "ConfigMap": "v1",
    "Secret": "v1",
    "Service": "v1",
    "PersistentVolume": "v1",
    "PersistentVolumeClaim": "v1",
    "StatefulSet": "apps/v1",
    "Role": "rbac.authorization.k8s.io/v1",
    "RoleBinding": "rbac.authorization.k8s.io/v1",
    "Job": "batch/v1",
}
CLUSTER_WIDE = ("Namespace", "PersistentVolume")
WORDS = st.text("abc", min_size=1, max_size=3)
VALUES = st.recursive(
    st.one_of(st.integers(), st.booleans(), WORDS),
    lambda inner: st.one_of(st.dictionaries(WORDS, inner, max_size=3), st.lists(inner, max_size=3)),
    max_leaves=6,
)
NAMES = st.tuples(st.sampled_from(sorted(KINDS)), st.sampled_from(["a", "b", "c"]))


def made(name: tuple[str, str], spec: t.Any) -> Manifest:
    kind, word = name
    place = {} if kind in CLUSTER_WIDE else {"namespace": "default"}
    return {"apiVersion": KINDS[kind], "kind": kind, "metadata": {"name": word, **place}, "spec": spec}


SPECS = st.dictionaries(WORDS, VALUES, min_size=1, max_size=3)
LISTS = st.dictionaries(NAMES, SPECS, max_size=6).map(lambda found: [made(*pair) for pair in found.items()])


def apply(cluster: FakeCluster, objects: list[Manifest], **options: t.Any) -> Report:
    settings: dict[str, t.Any] = {"owner": OWNER, "check": False, **options}
    return apply_objects(cluster, copy.deepcopy(objects), **settings)


@given(LISTS)
def test_an_apply_twice_is_an_apply_once(objects: list[Manifest]) -> None:
    cluster = FakeCluster()
    apply(cluster, objects)
    before = copy.deepcopy(cluster.objects)
    cluster.requests.clear()
    assert not apply(cluster, objects, prune=bool(objects)).changed
    assert cluster.writes == []
    assert cluster.objects == before


@given(LISTS, st.randoms(use_true_random=False), st.integers(1, 4))
def test_no_object_is_sent_before_what_it_stands_on(objects: list[Manifest], shuffle: t.Any, parallel: int) -> None:
    shuffle.shuffle(objects)
    cluster = FakeCluster()
    apply(cluster, objects, parallel=parallel)
    sent = [wave_of(request.ref.group_kind) for request in cluster.writes]
    assert sent == sorted(sent)
    assert len(sent) == len(objects)


@given(LISTS, st.randoms(use_true_random=False))
def test_nothing_is_deleted_before_what_stands_on_it(objects: list[Manifest], shuffle: t.Any) -> None:
    cluster = FakeCluster()
    apply(cluster, objects)
    shuffle.shuffle(objects)
    cluster.requests.clear()
    delete_objects(cluster, objects, OWNER, check=False, delete_data=True)
    gone = [wave_of(request.ref.group_kind) for request in cluster.writes]
    assert gone == sorted(gone, reverse=True)
    assert cluster.objects == {}


@given(LISTS, LISTS, LISTS, LISTS)
def test_prune_touches_only_what_is_ours_and_never_data(
    ours: list[Manifest], theirs: list[Manifest], unowned: list[Manifest], kept: list[Manifest]
) -> None:
    """Whatever lies there: with another owner, without one, or with our label put on it by somebody else."""
    cluster = FakeCluster()
    mine = [renamed(item, "ours") for item in ours]
    apply(cluster, mine)
    apply(cluster, [renamed(item, "theirs") for item in theirs], owner=OTHER)
    for item in unowned:
        labels = {"muster.ml/owner": OWNER} if item["metadata"]["name"].startswith("a") else {}
        cluster.add(renamed({**item, "metadata": {**item["metadata"], "labels": labels}}, "unowned"), manager="somebody")
    before = copy.deepcopy(cluster.objects)
    desired = [renamed(item, "ours") for item in kept]
    if not desired:
        return
    apply(cluster, desired, prune=True)
    names = {key_of(item) for item in desired}
    for key, item in before.items():
        is_ours = item["metadata"]["name"].startswith("ours")
        holds = (key[0], key[1]) in DATA_KINDS
        if not is_ours:
            assert cluster.objects[key] == item
        elif holds or key in names:
            assert key in cluster.objects
        else:
            assert key not in cluster.objects
    apply(cluster, desired, prune=True, delete_data=True)
    assert {key for key, item in cluster.objects.items() if item["metadata"]["name"].startswith("ours")} == names


def renamed(item: Manifest, prefix: str) -> Manifest:
    return {**item, "metadata": {**item["metadata"], "name": f"{prefix}-{item['metadata']['name']}"}}


def key_of(item: Manifest) -> tuple[str, str, str, str]:
    metadata = item["metadata"]
    return Ref(item["apiVersion"], item["kind"], metadata["name"], metadata.get("namespace")).identity


@given(SPECS, SPECS)
def test_what_somebody_changed_is_noticed_and_set_again(spec: Manifest, drift: Manifest) -> None:
    cluster = FakeCluster()
    wish = made(("StatefulSet", "a"), spec)
    apply(cluster, [wish])
    stored = copy.deepcopy(next(iter(cluster.objects.values())))
    lost = sorted(set(spec) & set(drift))
    entry = next(entry for entry in stored["metadata"]["managedFields"] if entry["manager"] == manager_of(OWNER))
    for key in lost:  # as the API server does: who changes a value owns it
        entry["fieldsV1"]["f:spec"].pop(f"f:{key}")
    if not entry["fieldsV1"]["f:spec"]:
        del entry["fieldsV1"]["f:spec"]
    stored["spec"] = {**stored["spec"], **{key: drift[key] for key in lost}}
    cluster.objects[next(iter(cluster.objects))] = stored
    told = ["spec"] if set(lost) == set(spec) else [f"spec.{key}" for key in spec if key in lost]
    assert fields.unowned_paths(prepare(wish, owner=OWNER, namespaced=True, namespace="default"), stored, manager_of(OWNER)) == told
    assert apply(cluster, [wish]).changed == bool(lost)
    assert not apply(cluster, [wish]).changed


LABELS = st.dictionaries(WORDS, WORDS, max_size=4)


@given(LABELS, LABELS, LABELS)
def test_labels_on_a_shared_namespace_are_each_owners_own(first: dict[str, str], second: dict[str, str], changed: dict[str, str]) -> None:
    cluster = FakeCluster()

    def space(labels: dict[str, str]) -> Manifest:
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shared", "labels": labels}}

    def labels() -> dict[str, str]:
        found = cluster.objects["", "Namespace", "", "shared"]["metadata"]["labels"]
        return {key: value for key, value in found.items() if "/" not in key}

    def clash(ours: dict[str, str], theirs: dict[str, str]) -> bool:
        return any(theirs.get(key, value) != value for key, value in ours.items())

    apply(cluster, [space(first)])
    if clash(first, second):
        with pytest.raises(Conflict, match=OWNER):
            apply(cluster, [space(second)], owner=OTHER)
        assert labels() == first
        return
    apply(cluster, [space(second)], owner=OTHER)
    assert labels() == {**first, **second}
    if not clash(changed, second):
        apply(cluster, [space(changed)])
        assert labels() == {**changed, **second}
    cluster.requests.clear()
    apply(cluster, [space(second)], owner=OTHER)
    assert cluster.writes == []
    before = labels()
    delete_objects(cluster, None, OTHER, check=False, delete_data=True)
    assert labels() == {key: value for key, value in before.items() if key in (first if clash(changed, second) else changed)}

# SPDX-License-Identifier: GPL-3.0-or-later
"""muster.ml.apply: two owners with one name in two namespaces, what a task reaches, and what earlier runs made."""

from __future__ import annotations

import copy
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Conflict
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context
from ansible_collections.muster.ml.plugins.module_utils._kube import lease
from ansible_collections.muster.ml.plugins.module_utils._kube.engine import apply_objects
from ansible_collections.muster.ml.plugins.module_utils._kube.fields import managers
from ansible_collections.muster.ml.plugins.module_utils._kube.lease import Lease
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, labels_of, manager_of, owner_at
from ansible_collections.muster.ml.plugins.modules import apply
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster

Result = dict[str, t.Any]


@pytest.fixture(autouse=True)
def spaces(cluster: FakeCluster) -> None:
    cluster.add(*[{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in ("a", "b", "c")])


def config(name: str, space: str | None = None, **data: str) -> Manifest:
    metadata = {"name": name, **({"namespace": space} if space else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def role(name: str) -> Manifest:
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": []}


def run(cluster: FakeCluster, *objects: Manifest, check: bool = False, **options: t.Any) -> Result:
    defaults = {name: spec.get("default") for name, spec in apply.ARGUMENT_SPEC.items()}
    given = {**defaults, "owner": "app", "definition": copy.deepcopy(list(objects)) or None, **options}
    warnings: list[str] = []
    result = apply.execute(Context(params=given, check=check, connect=lambda: cluster, warn=warnings.append))
    return {**result, "warnings": warnings}


def actions(result: Result) -> dict[str, str]:
    return {f"{item['kind']} {item['namespace'] or ''}/{item['name']}": item["action"] for item in result["objects"]}


def there(cluster: FakeCluster) -> set[str]:
    return {f"{space}/{name}" for _group, kind, space, name in cluster.objects if kind != "Namespace" and not name.startswith("muster-")}


TWO_WAYS = pytest.mark.parametrize("by_option", [True, False], ids=["option namespace", "in the objects"])


def play(cluster: FakeCluster, space: str, *names: str, by_option: bool, more: tuple[Manifest, ...] = (), **options: t.Any) -> Result:
    """The play of a team in its namespace."""
    objects = [config(name, None if by_option else space) for name in names]
    return run(cluster, *objects, *more, **({"namespace": space} if by_option else {}), **options)


@TWO_WAYS
def test_a_prune_in_one_namespace_leaves_what_another_team_has_by_the_same_name(cluster: FakeCluster, by_option: bool) -> None:
    play(cluster, "a", "x", by_option=by_option, more=(role("a"),), prune=True)
    result = play(cluster, "b", "y", by_option=by_option, more=(role("b"),), prune=True)
    assert actions(result) == {"ConfigMap b/y": "created", "ClusterRole /b": "created"}
    assert result["warnings"] == []
    assert there(cluster) == {"a/x", "b/y", "/a", "/b"}
    for space, name in (("a", "x"), ("b", "y")):
        cluster.requests.clear()
        assert not play(cluster, space, name, by_option=by_option, more=(role(space),), prune=True)["changed"]
        assert cluster.writes == []
        assert not [request for request in cluster.requests if request.ref.kind == "Deployment"]  # it is settled
    assert actions(play(cluster, "b", "z", by_option=by_option, prune=True)) == {
        "ConfigMap b/z": "created", "ConfigMap b/y": "deleted", "ClusterRole /b": "deleted",
    }  # fmt: skip
    assert there(cluster) == {"a/x", "b/z", "/a"}


@TWO_WAYS
def test_a_removal_leaves_what_another_team_has_by_the_same_name(cluster: FakeCluster, by_option: bool) -> None:
    for space in ("a", "b"):
        play(cluster, space, "x", by_option=by_option, more=(role(space),))
    assert run(cluster, namespace="b", state="absent", check=True)["changed"]
    run(cluster, namespace="b", state="absent")
    assert there(cluster) == {"a/x", "/a"}
    again = run(cluster, namespace="b", state="absent")
    assert not again["changed"]
    assert again["warnings"] == ["Nothing belongs to app of namespace b. There is app of namespace a: namespace tells which is meant."]


def test_what_two_teams_both_want_is_refused_and_named(cluster: FakeCluster) -> None:
    run(cluster, role("shared"), namespace="a")
    with pytest.raises(Conflict, match=r"belongs to app of namespace a, not to app of namespace b\..*set namespace: a"):
        run(cluster, role("shared"), namespace="b")
    kept = run(cluster, role("shared"), namespace="b", state="absent")
    assert not kept["changed"]
    assert "does not have the mark of this owner, but that of app of namespace a" in kept["warnings"][0]


def test_two_teams_need_not_wait_for_each_other(cluster: FakeCluster) -> None:
    run(cluster, config("x"), config("gone"), namespace="a")
    began = cluster.clock.now
    with Lease(cluster, owner_at("app", "b"), "b", timeout=60):
        run(cluster, config("x"), namespace="a", prune=True)
    assert cluster.clock.now == began
    assert there(cluster) == {"a/x"}


def test_the_same_owner_with_another_set_of_namespaces_reaches_only_those(cluster: FakeCluster) -> None:
    """Two plays of one context that both use several namespaces: nothing tells them apart but the namespaces."""
    run(cluster, config("x", "a"), config("x", "c"), role("a"), prune=True)
    result = run(cluster, config("y", "b"), config("y", "c"), prune=True)
    assert actions(result) == {
        "ConfigMap b/y": "created", "ConfigMap c/y": "created", "ConfigMap c/x": "deleted",
        "ConfigMap a/x": "kept", "ClusterRole /a": "kept",
    }  # fmt: skip
    (warning,) = result["warnings"]
    assert "ConfigMap a/x (is in namespace a, and this task does not name a; namespaces: [a] includes it)" in warning
    assert "ClusterRole a (may belong to what app of namespace default has in namespace a)" in warning
    result = run(cluster, config("y", "b"), config("y", "c"), prune=True, namespaces=["a"])
    assert actions(result)["ConfigMap a/x"] == actions(result)["ClusterRole /a"] == "deleted"
    assert there(cluster) == {"b/y", "c/y"}


@pytest.mark.parametrize("word", [["a", "b"], ["*"]])
def test_a_removal_goes_beyond_its_namespace_by_its_own_word(cluster: FakeCluster, word: list[str]) -> None:
    run(cluster, config("x", "a"), config("x", "b"), role("r"), prune=True)
    kept = run(cluster, state="absent")
    assert not kept["changed"]
    assert set(actions(kept).values()) == {"kept"}
    assert run(cluster, state="absent", namespaces=word)["changed"]
    assert there(cluster) == set()


def test_a_namespace_that_is_not_named_is_not_pruned_with_what_is_in_it(cluster: FakeCluster) -> None:
    space: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}}
    run(cluster, space, config("x", "mine"), config("x", "a"))
    result = run(cluster, config("x", "a"), prune=True, delete_data=True, namespace="default")
    assert actions(result) == {"ConfigMap a/x": "unchanged", "ConfigMap mine/x": "kept", "Namespace /mine": "kept"}
    result = run(cluster, config("x", "a"), prune=True, delete_data=True, namespace="default", namespaces=["mine"])
    assert actions(result)["Namespace /mine"] == "deleted"


def test_labels_on_a_namespace_of_others_stay_where_the_task_does_not_name_it(cluster: FakeCluster) -> None:
    space: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "theirs", "labels": {}}}
    run(cluster, space, owner="other")
    run(cluster, {**space, "metadata": {"name": "theirs", "labels": {"level": "restricted"}}}, config("x", "a"))
    run(cluster, config("x", "b"), config("x", "a"), prune=True)
    assert labels_of(cluster.stored("Namespace", "theirs") or {})["level"] == "restricted"
    run(cluster, config("x", "b"), config("x", "a"), prune=True, namespaces=["theirs"])
    assert "level" not in labels_of(cluster.stored("Namespace", "theirs") or {})


def made_before(cluster: FakeCluster, *objects: Manifest) -> None:
    """As a Muster made them whose owners had no namespace."""
    apply_objects(cluster, copy.deepcopy(objects), owner="app", check=False, namespace="b", prune=True)


def test_what_was_made_before_owners_had_a_namespace_is_taken_over(cluster: FakeCluster) -> None:
    made_before(cluster, config("kept", "b", x="1", y="1"), config("gone", "b"), role("kept"))
    wanted = (config("kept", "b", x="1"), role("kept"))
    foreseen = run(cluster, *wanted, prune=True, check=True)
    result = run(cluster, *wanted, prune=True)
    assert actions(result) == actions(foreseen) == {
        "ConfigMap b/kept": "updated", "ClusterRole /kept": "updated", "ConfigMap b/gone": "deleted",
    }  # fmt: skip
    stored = cluster.stored("ConfigMap", "kept", "b") or {}
    assert stored["data"] == {"x": "1"}
    assert managers(stored) == {manager_of("app@b")}
    assert labels_of(stored)["muster.ml/home"] == "b"
    assert len([name for *_rest, name in cluster.objects if name.startswith("muster-settled")]) == 1
    assert not run(cluster, *wanted, prune=True)["changed"]
    assert run(cluster, namespace="b", state="absent")["changed"]
    assert there(cluster) == set()


def test_what_was_made_before_and_cannot_be_told_apart_is_kept(cluster: FakeCluster) -> None:
    made_before(cluster, config("theirs", "a"), config("ours", "b"), role("whose"))
    for result in (run(cluster, config("new", "b"), prune=True), run(cluster, namespace="b", state="absent")):
        assert actions(result)["ConfigMap a/theirs"] == actions(result)["ClusterRole /whose"] == "kept"
        assert "was made when owners had no namespace" in result["warnings"][0]
    assert there(cluster) == {"a/theirs", "/whose"}
    assert run(cluster, role("whose"), namespace="b", state="absent")["changed"]  # named one by one


@pytest.mark.parametrize("at", range(1, 8))
def test_a_run_that_was_killed_while_it_took_over_is_followed(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    monkeypatch.setattr(lease, "DURATION", 0.2)  # seconds until the Lease of the killed run may be taken

    class Killed(BaseException):
        pass

    objects = (config("one", "b"), config("two", "b"), role("three"))
    made_before(cluster, *objects, config("gone", "b"))
    plain, writes = cluster._note, 0

    def note(verb: str, ref: t.Any, dry_run: bool = False) -> None:
        nonlocal writes
        writes += verb in ("apply", "delete", "patch") and not dry_run
        if writes >= at:
            raise Killed
        plain(verb, ref, dry_run)

    cluster._note = note  # type: ignore[method-assign]
    with pytest.raises(Killed):
        run(cluster, *objects, prune=True)
    cluster._note = plain  # type: ignore[method-assign]
    run(cluster, *objects, prune=True)
    assert there(cluster) == {"b/one", "b/two", "/three"}
    assert not run(cluster, *objects, prune=True)["changed"]


def test_the_default_owner_is_the_same_everywhere(cluster: FakeCluster) -> None:
    """Tasks that have nothing in common but that they name no owner may change each other's objects, as ever."""
    for objects in ([config("x", "a")], [config("x", "a", y="1"), config("x", "b")]):
        assert run(cluster, *objects, owner=apply.DEFAULT_OWNER)["changed"]

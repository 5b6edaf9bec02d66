# SPDX-License-Identifier: GPL-3.0-or-later
"""How one step is carried out: on the very object that was looked at, and recreated only where that loses nothing."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Conflict, InvalidInput, Rejected
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import ANNOTATION_NOT_KEPT, Manifest, Ref, annotations_of, ref_of
from ansible_collections.muster.ml.plugins.module_utils._kube.report import Report
from ansible_collections.muster.ml.tests.unit.fakes.applied import OTHER, apply, config, space
from ansible_collections.muster.ml.tests.unit.fakes.cluster import DEFINITION, FakeCluster, answered
from ansible_collections.muster.ml.tests.unit.fakes.copies import copied


def service(port: int) -> Manifest:
    return {**config("s"), "kind": "Service", "data": {"port": str(port)}}


def stateful(x: int) -> Manifest:
    metadata = {"name": "w", "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": {"x": x}}


@pytest.mark.parametrize(
    ("kind", "strategy", "image", "said"),
    [
        ("StatefulSet", {}, "b:2", "the definition changed; its pods are replaced because of spec.containers[0].image"),
        ("DaemonSet", {}, "b:1", "the definition changed"),
        ("StatefulSet", {"updateStrategy": {"type": "OnDelete"}}, "b:2", "the definition changed"),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_a_plan_names_the_servers_whose_pods_are_replaced(
    cluster: FakeCluster, kind: str, strategy: Manifest, image: str, said: str, check: bool
) -> None:
    def server(image: str, replicas: int) -> Manifest:
        template = {"spec": {"containers": [{"name": "b", "image": image}]}}
        return {**stateful(1), "kind": kind, "spec": {"replicas": replicas, "template": template, **strategy}}

    apply(cluster, server("b:1", 1))
    (change,) = apply(cluster, server(image, 2), check=check).changes
    assert change.reason == said


def actions(report: Report) -> list[str]:
    return [change.action for change in report.changes]


def test_an_update_is_of_the_object_that_was_looked_at(cluster: FakeCluster) -> None:
    apply(cluster, config())
    cluster.before("apply", cluster.remove, once=False)
    cluster.before("apply", lambda _ref: cluster.add(config(x="a stranger's"), manager="kubectl"), once=False)
    with pytest.raises(Conflict, match="Precondition failed: UID"):
        apply(cluster, config(x="2"), force_conflicts=True)
    assert (cluster.stored("ConfigMap", "a", "default") or {})["data"] == {"x": "a stranger's"}


def test_fields_are_taken_over_in_the_very_version_that_was_looked_at(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wrote in between would find its entry in managedFields replaced by an old one."""
    cluster.add(config(), manager="kubectl-client-side-apply")
    known = dict((cluster.stored("ConfigMap", "a", "default") or {})["metadata"])
    plain, sent = cluster.patch, []

    def seen(ref: Ref, patch: Manifest, **options: t.Any) -> Manifest:
        sent.append(patch["metadata"])
        return plain(ref, patch, **options)

    monkeypatch.setattr(cluster, "patch", seen)
    apply(cluster, config(x="2"), adopt=True)
    assert [(patch["uid"], patch["resourceVersion"]) for patch in sent] == [(known["uid"], known["resourceVersion"])]


def test_a_dry_run_that_cannot_take_fields_over_sees_no_conflict_about_them(cluster: FakeCluster) -> None:
    for name in ("a", "b"):
        cluster.add(config(name), manager="kubectl-client-side-apply")
    assert actions(apply(cluster, config(x="2"), config("b", x="2"), adopt=True, check=True)) == ["updated"] * 2
    assert cluster.writes == []
    assert actions(apply(cluster, config(x="2"), config("b", x="2"), adopt=True)) == ["updated"] * 2


@pytest.mark.parametrize("check", [True, False])
def test_a_conflict_with_somebody_who_gives_nothing_is_told_before_the_first_write(cluster: FakeCluster, check: bool) -> None:
    cluster.add(config("b", x="1"), manager="kubectl")
    cluster.apply(config("b", x="1"), dry_run=False, manager="a-controller")
    cluster.requests.clear()
    with pytest.raises(Conflict, match="a-controller"):
        apply(cluster, config(), config("b", x="2"), adopt=True, check=check)
    assert cluster.writes == []


def test_fields_that_a_shared_namespace_does_not_keep_are_not_noted_on_it(cluster: FakeCluster) -> None:
    apply(cluster, space(theirs="1"), owner=OTHER)
    plain = cluster._applied

    def dropping(*args: t.Any) -> Manifest:
        merged = plain(*args)
        merged["metadata"]["labels"].pop("dropped", None)
        for entry in merged["metadata"]["managedFields"]:
            entry["fieldsV1"].get("f:metadata", {}).get("f:labels", {}).pop("f:dropped", None)
        return merged

    cluster._applied = dropping  # type: ignore[method-assign]
    apply(cluster, space(ours="2", dropped="3"))
    assert ANNOTATION_NOT_KEPT not in annotations_of(cluster.stored("Namespace", "ml") or {})


# Recreate


def immutable() -> Rejected:
    return Rejected("x: field is immutable.")


def refusing(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, tried: Exception | None = None) -> list[Manifest]:
    """No object that exists can be changed; ``tried`` is said of new ones. Gives what is asked of each deletion."""
    apply_plain, delete_plain, asked = cluster.apply, cluster.delete, []

    def strict(manifest: Manifest, *, dry_run: bool, **options: t.Any) -> Manifest:
        if manifest["kind"] != "Lease" and ref_of(manifest).identity in cluster.objects:
            raise immutable()
        if manifest["kind"] != "Lease" and dry_run and tried:
            raise tried
        return apply_plain(manifest, dry_run=dry_run, **options)

    def seen(ref: Ref, **options: t.Any) -> bool:
        if ref.kind != "Lease":
            asked.append(options)
        return delete_plain(ref, **options)

    monkeypatch.setattr(cluster, "apply", strict)
    monkeypatch.setattr(cluster, "delete", seen)
    return asked


@pytest.mark.parametrize(("before", "after", "propagation"), [(stateful(1), stateful(2), "Orphan"), (service(1), service(2), "Foreground")])
def test_what_is_recreated_is_the_very_object_that_was_looked_at(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, before: Manifest, after: Manifest, propagation: str
) -> None:
    """Pods and claims of a StatefulSet stay, and are adopted by the new one."""
    apply(cluster, before)
    known = dict(cluster.objects[ref_of(before).identity]["metadata"])
    asked = refusing(cluster, monkeypatch)
    assert actions(apply(cluster, after, recreate=True)) == ["recreated"]
    assert [(one["uid"], one["resource_version"], one["propagation"]) for one in asked] == [
        (known["uid"], known["resourceVersion"], propagation)
    ]
    assert list(cluster.objects) == [ref_of(before).identity]  # what was only tried is not there


def test_a_port_that_the_old_object_holds_does_not_keep_the_new_one_from_being_made(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply(cluster, service(1))
    refusing(cluster, monkeypatch, answered(422, "spec.ports[0].nodePort: provided port is already allocated"))
    assert actions(apply(cluster, service(2), recreate=True)) == ["recreated"]


def test_a_definition_is_tried_under_a_name_that_one_can_have(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API server takes no other one than <plural>.<group>."""
    cluster.controllers["CustomResourceDefinition"] = lambda _item: {"conditions": [{"type": "Established", "status": "True"}]}
    apply(cluster, DEFINITION)
    refusing(cluster, monkeypatch)
    plain, names = cluster.apply, list[tuple[str, str]]()

    def seen(manifest: Manifest, *, dry_run: bool, **options: t.Any) -> Manifest:
        if dry_run and manifest["metadata"]["name"] != "foos.x.io":
            names.append((manifest["metadata"]["name"], f"{manifest['spec']['names']['plural']}.{manifest['spec']['group']}"))
        return plain(manifest, dry_run=dry_run, **options)

    monkeypatch.setattr(cluster, "apply", seen)
    changed = {**DEFINITION, "spec": {**DEFINITION["spec"], "scope": "Cluster"}}
    assert actions(apply(cluster, changed, recreate=True, check=True)) == ["recreated"]
    assert [one == other for one, other in names] == [True]


# The text of checkRequest in k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go.
QUOTA = 'services "x" is forbidden: exceeded quota: one, requested: {}, used: {}, limited: {}'


@pytest.mark.parametrize(
    ("requested", "used", "limited", "room"),
    [
        ("count/services=1", "count/services=1", "count/services=1", True),
        ("services=1,services.nodeports=1", "services=3,services.nodeports=1", "services=3,services.nodeports=1", True),
        ("services=1", "services=3", "services=2", False),
        ("services=1", "services=1", "services=10", False),
        ("services=1", "services=0", "services=0", False),
        ("pods=1,requests.cpu=1", "pods=1,requests.cpu=1", "pods=1,requests.cpu=1", False),
    ],
)
def test_a_quota_that_the_old_object_fills_does_not_keep_the_new_one_from_being_made(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, requested: str, used: str, limited: str, room: bool
) -> None:
    apply(cluster, service(1))
    refusing(cluster, monkeypatch, answered(403, QUOTA.format(requested, used, limited)))
    if room:
        assert actions(apply(cluster, service(2), recreate=True)) == ["recreated"]
    else:
        with pytest.raises(Rejected):
            apply(cluster, service(2), recreate=True)
        assert cluster.stored("Service", "s", "default")


@pytest.mark.parametrize(("owner", "word"), [(OTHER, "force_conflicts"), (None, "adopt")])
def test_what_becomes_ours_by_a_word_may_be_recreated(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, owner: str | None, word: str
) -> None:
    if owner:
        apply(cluster, service(1), owner=owner)
    else:
        cluster.add(service(1), manager="kubectl-client-side-apply")
    refusing(cluster, monkeypatch)
    assert actions(apply(cluster, service(2), recreate=True, **{word: True})) == ["recreated"]


def test_a_shared_namespace_is_not_ours_to_recreate(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    apply(cluster, space(theirs="1"), owner=OTHER)
    refusing(cluster, monkeypatch)
    with pytest.raises(InvalidInput, match=r"is never recreated \(does not have the mark"):
        apply(cluster, space(ours="2"), recreate=True)


def test_what_cannot_be_recreated_is_told_before_the_first_write(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = {**config("c"), "kind": "PersistentVolumeClaim"}
    apply(cluster, claim)
    refusing(cluster, monkeypatch)
    cluster.requests.clear()
    with pytest.raises(InvalidInput, match=r"is never recreated \(holds data\)"):
        apply(cluster, config(), {**claim, "data": {"x": "2"}}, recreate=True)
    assert {request.ref.kind for request in cluster.writes} == {"Lease"}


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("objects", [1, 2])
def test_a_member_of_a_union_that_its_maker_set_is_in_nobodys_way(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, objects: int, check: bool
) -> None:
    """No dry run of an apply knows that the other member goes with the fields of its maker: a merge patch without it tells."""
    cluster.add(config(file="x"), manager="helm")
    plain_apply, plain_patch = cluster.apply, cluster.patch

    def judged(stored: Manifest) -> Manifest:
        if len(stored.get("data") or {}) > 1 and stored["metadata"]["name"] == "a":
            raise immutable()
        return stored

    def applied(manifest: Manifest, *, dry_run: bool, **options: t.Any) -> Manifest:
        judged(plain_apply(manifest, dry_run=True, **{**options, "force_conflicts": True}))
        return plain_apply(manifest, dry_run=dry_run, **options)

    def patched(ref: Ref, patch: Manifest, *, dry_run: bool, **options: t.Any) -> Manifest:
        stored = plain_patch(ref, patch, dry_run=dry_run, **options)
        stored["data"] = {key: value for key, value in stored["data"].items() if value is not None}
        return judged(stored)

    monkeypatch.setattr(cluster, "apply", applied)
    monkeypatch.setattr(cluster, "patch", patched)
    wish = [config(text="y"), config("b")][:objects]
    assert actions(apply(cluster, *wish, adopt=True, check=check)) == ["updated", "created"][:objects]
    assert (cluster.stored("ConfigMap", "a", "default") or {})["data"] == ({"file": "x"} if check else {"text": "y"})


@pytest.mark.parametrize("changed", ["status", "annotation", "label of ours", "spec"])
def test_fields_are_taken_over_beside_a_controller_that_writes_its_own(cluster: FakeCluster, changed: str) -> None:
    cluster.add(config(x="1"), manager="helm")
    notes = {"annotation": {"annotations": {"deployment.kubernetes.io/revision": "1"}}, "label of ours": {"labels": {"app": "theirs"}}}
    desired = config(x="2")
    desired["metadata"]["labels"] = {"app": "ours"}

    def late(ref: Ref) -> None:
        if changed == "status":
            cluster.set_status(ref, {"phase": "Seen"})
        elif changed in notes:
            seen = config()
            del seen["data"]
            seen["metadata"] |= notes[changed]
            cluster.apply(seen, dry_run=False, manager="controller")
        else:
            cluster.apply(config(y="theirs"), dry_run=False, manager="somebody")

    cluster.before("patch", late)
    if changed in ("status", "annotation"):
        assert actions(apply(cluster, desired, adopt=True)) == ["updated"]
    else:
        with pytest.raises(Conflict, match="modified"):
            apply(cluster, desired, adopt=True)


@pytest.mark.parametrize("changed", ["status", "spec", "gone"])
def test_what_is_recreated_may_get_a_new_status_meanwhile(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, changed: str) -> None:
    apply(cluster, config(x="1"))
    refusing(cluster, monkeypatch)

    def late(ref: Ref) -> None:
        if changed == "status":
            cluster.set_status(ref, {"phase": "Seen"})
        elif changed == "spec":
            cluster.patch(ref, {"data": {"y": "theirs"}}, dry_run=False)
        else:
            del cluster.objects[ref.identity]

    cluster.before("delete", late, "ConfigMap")
    if changed == "spec":
        with pytest.raises(Conflict, match="was changed by another client before it could be recreated"):
            apply(cluster, config(x="2"), recreate=True)
    else:
        assert actions(apply(cluster, config(x="2"), recreate=True)) == ["recreated"]
        assert (cluster.stored("ConfigMap", "a", "default") or {})["data"] == {"x": "2"}


def test_what_another_owner_made_since_the_plan_keeps_its_owner(cluster: FakeCluster) -> None:
    """Of two owners of one name in two namespaces only the bookkeeping conflicts, which Muster otherwise takes."""
    made: list[Manifest] = []

    def late(ref: Ref) -> None:
        apply(cluster, config(x="1"), owner="o.a@ml")
        made.append(copied(cluster.objects[ref.identity]))

    cluster.before("apply", late, "ConfigMap")
    with pytest.raises(Conflict):
        apply(cluster, config(x="1"), owner="o.a@default")
    stored = cluster.stored("ConfigMap", "a", "default") or {}
    assert [stored["metadata"]["annotations"]] == [item["metadata"]["annotations"] for item in made]

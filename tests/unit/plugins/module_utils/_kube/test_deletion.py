# SPDX-License-Identifier: GPL-3.0-or-later
"""What must never be deleted, scenario by scenario; each of them was once."""

from __future__ import annotations

import copy
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    Rejected,
    ServerError,
)
from ansible_collections.muster.ml.plugins.module_utils._kube import responses
from ansible_collections.muster.ml.plugins.module_utils._kube.deletion import Ownership
from ansible_collections.muster.ml.plugins.module_utils._kube.kinds import Kinds
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, ServedKind, manager_of, ref_of
from ansible_collections.muster.ml.plugins.module_utils._kube.removal import delete_objects
from ansible_collections.muster.ml.plugins.module_utils._kube.report import Report
from ansible_collections.muster.ml.plugins.module_utils._kube.source import from_definition
from ansible_collections.muster.ml.tests.unit.fakes.applied import OTHER, OWNER, actions, apply, config
from ansible_collections.muster.ml.tests.unit.fakes.cluster import DEFINITION, FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.mirrored import MIRRORS, Mirrored

SPACE: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}}
BINDING: Manifest = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "RoleBinding",
    "metadata": {"name": "rb", "namespace": "ml"},
    "roleRef": {"kind": "Role", "name": "r"},
}
FOO: Manifest = {"apiVersion": "x.io/v1", "kind": "Foo", "metadata": {"name": "f", "namespace": "default"}}


def delete(cluster: FakeCluster, what: list[Manifest] | None = None, mark: Ownership | str = OWNER, **options: t.Any) -> Report:
    return delete_objects(cluster, what, mark, check=False, parallel=1, **options)


@pytest.mark.parametrize("listed", [[..., *MIRRORS], MIRRORS], ids=["both-are-listed", "only-the-mirror-may-be-listed"])
def test_an_object_that_another_api_shows_under_its_own_name_is_no_leftover(listed: list[t.Any]) -> None:
    cluster = Mirrored(listed)
    report = apply(cluster, SPACE, BINDING, config(namespace="ml"), prune=True)
    assert "deleted" not in actions(report).values()
    assert cluster.stored("Namespace", "ml")
    assert cluster.stored("RoleBinding", "rb", "ml")
    removed = delete(cluster)
    assert cluster.stored("Namespace", "ml")
    assert not {"Project ml", "Namespace ml"} & {name for name, action in actions(removed).items() if action == "deleted"}


def test_prune_without_any_object_is_refused(cluster: FakeCluster) -> None:
    apply(cluster, config(), prune=True)
    nothing = from_definition("# a template whose condition is false\n")
    with pytest.raises(InvalidInput, match=r"no objects at all.*state: absent"):
        apply(cluster, *nothing, prune=True)
    assert cluster.stored("ConfigMap", "a", "default")


class Blind(FakeCluster):
    """Discovery that leaves out the kinds of a group, as it does while an API server starts."""

    blind = False

    def kinds(self) -> Kinds:
        return Kinds(one for one in super().kinds() if not (self.blind and one[0] == "x.io/v1"))


@pytest.fixture
def blind() -> Blind:
    cluster = Blind()
    cluster.controllers["CustomResourceDefinition"] = lambda _item: {"conditions": [{"type": "Established", "status": "True"}]}
    return cluster


def test_a_definition_whose_kind_is_missing_from_discovery_is_kept(blind: Blind) -> None:
    apply(blind, DEFINITION, config())
    apply(blind, FOO, owner=OTHER)
    blind.blind = True
    report = apply(blind, config(x="2"), prune=True, delete_data=True)
    assert actions(report)["CustomResourceDefinition foos.x.io"] == "kept"
    assert "its kind is not served now" in report.warnings[0]
    assert blind.stored("Foo", "f", "default")


def test_prune_does_not_remember_that_nothing_is_left_when_it_could_not_look_everywhere(blind: Blind) -> None:
    apply(blind, DEFINITION, owner=OTHER)
    apply(blind, config(), FOO)
    blind.blind = True
    report = apply(blind, config(x="2"), prune=True)
    assert any("foos.x.io" in text for text in report.warnings)
    blind.blind = False
    assert actions(apply(blind, config(x="3"), prune=True))["Foo f"] == "deleted"


def test_prune_does_not_remember_what_a_stale_group_may_have(cluster: FakeCluster) -> None:
    cluster.unknown = ["metrics.k8s.io/v1beta1"]
    report = apply(cluster, config(), prune=True)
    assert report.warnings == ["Objects of metrics.k8s.io/v1beta1 are left out: the server behind that API does not answer."]
    assert not [key for key in cluster.objects if key[3].startswith("muster-settled")]


def test_prune_does_not_wait_for_the_server_of_an_api_that_the_run_has_just_registered(cluster: FakeCluster) -> None:
    """Kueue's own server starts after its APIService is there: what nothing served until now has no objects."""
    spec = {"group": "visibility.kueue.x-k8s.io", "version": "v1beta2", "service": {"name": "k", "namespace": "k"}}
    metadata = {"name": "v1beta2.visibility.kueue.x-k8s.io"}
    service = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": metadata, "spec": spec}
    cluster.unknown = ["visibility.kueue.x-k8s.io/v1beta2"]
    began = cluster.clock.monotonic()
    assert apply(cluster, config(), service, prune=True).warnings == []
    assert cluster.clock.monotonic() == began
    assert [key for key in cluster.objects if key[3].startswith("muster-settled")]
    assert apply(cluster, config(), service, prune=True).warnings == [], "nothing is searched while the record holds"
    # An API that was there before this run may have objects.
    (warning,) = apply(cluster, config(), config("b"), service, prune=True).warnings
    assert "visibility.kueue.x-k8s.io/v1beta2 are left out" in warning


def test_a_kind_whose_server_does_not_answer_fails_no_prune_and_is_told(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.kinds_served["slow.example.com/v1", "Slow"] = ServedKind("slows", True)
    asked: list[float] = []
    cluster.refuse("list", ServerError("The API server failed to list objects of kind Slow (status 503): no endpoints."), "Slow")
    monkeypatch.setattr(cluster, "within", lambda seconds: asked.append(seconds) or cluster)
    apply(cluster, config(), config("b"))
    report = apply(cluster, config(), prune=True)
    assert actions(report)["ConfigMap b"] == "deleted"
    assert any("kind Slow are left out" in text for text in report.warnings)
    assert asked
    assert all(seconds <= 10 for seconds in asked)


def test_a_built_in_kind_that_cannot_be_listed_stops_the_prune(cluster: FakeCluster) -> None:
    apply(cluster, config(), config("b"))
    cluster.fail("list", "", *[ServerError("boom")] * 50)
    with pytest.raises(ServerError):
        apply(cluster, config(), prune=True)
    assert cluster.stored("ConfigMap", "b", "default")


def test_what_another_owner_has_is_not_deleted_by_its_name(cluster: FakeCluster) -> None:
    apply(cluster, config(), owner=OTHER)
    report = delete(cluster, [config()])
    assert (actions(report), report.changed) == ({"ConfigMap a": "kept"}, False)
    assert "ConfigMap default/a" in report.warnings[0]
    assert actions(delete(cluster, [config()], Ownership(OWNER, others=True))) == {"ConfigMap a": "deleted"}


def test_what_nobody_marked_is_not_deleted_by_its_name(cluster: FakeCluster) -> None:
    cluster.add(config(), manager="kubectl")
    assert actions(delete(cluster, [config()], Ownership(OWNER, others=True))) == {"ConfigMap a": "kept"}
    assert actions(delete(cluster, [config()], Ownership(OWNER, unowned=True))) == {"ConfigMap a": "deleted"}


def test_a_namespace_that_was_there_is_used_and_never_deleted_with_what_is_in_it(cluster: FakeCluster) -> None:
    cluster.add({**SPACE, "metadata": {"name": "prod"}}, config("theirs", "prod"))
    assert actions(apply(cluster, {**SPACE, "metadata": {"name": "prod"}})) == {"Namespace prod": "unchanged"}
    delete(cluster, delete_data=True)
    assert cluster.stored("Namespace", "prod")


@pytest.mark.parametrize("whose", ["unowned", "another-owners", "a-kept-one-of-ours"])
def test_a_namespace_of_ours_stays_while_something_else_is_in_it(cluster: FakeCluster, whose: str) -> None:
    apply(cluster, SPACE, config(namespace="ml"))
    if whose == "unowned":
        cluster.add(config("theirs", "ml"), manager="kubectl")
    else:
        apply(cluster, config("theirs", "ml"), owner=OTHER if whose == "another-owners" else OWNER)
    report = delete(cluster, [SPACE, config(namespace="ml")], delete_data=True)
    assert actions(report) == {"ConfigMap a": "deleted", "Namespace ml": "kept"}
    assert "ConfigMap theirs in it would be deleted with it" in report.warnings[0]


@pytest.mark.parametrize("check", [True, False])
def test_what_is_named_and_kept_keeps_the_namespace_and_the_definition_that_would_take_it_along(blind: Blind, check: bool) -> None:
    apply(blind, SPACE, DEFINITION)
    strange = [{**FOO, "metadata": {"name": "f", "namespace": "ml"}}, config("theirs", "ml")]
    blind.add(*strange, manager="kubectl")
    named = [SPACE, DEFINITION, *strange]
    report = delete_objects(blind, named, OWNER, check=check, delete_data=True, parallel=1)
    assert set(actions(report).values()) == {"kept"}
    assert blind.stored("Foo", "f", "ml")
    assert blind.stored("Namespace", "ml")


EVENT: Manifest = {"apiVersion": "calendar.example.com/v1", "kind": "Event", "metadata": {"name": "party", "namespace": "ml"}}
SLICE: Manifest = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "db", "namespace": "ml"}}


@pytest.fixture
def with_events(cluster: FakeCluster) -> FakeCluster:
    """A cluster with a kind of its own that is called Event, as one of Kubernetes."""
    cluster.kinds_served[EVENT["apiVersion"], "Event"] = ServedKind("events", True)
    cluster.kinds_served["discovery.k8s.io/v1", "EndpointSlice"] = ServedKind("endpointslices", True)
    return cluster


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("item", [EVENT, SLICE], ids=["a-kind-called-event", "a-slice-made-by-hand"])
def test_what_has_the_name_of_a_by_product_keeps_its_namespace(with_events: FakeCluster, item: Manifest, check: bool) -> None:
    cluster = with_events
    apply(cluster, SPACE, config(namespace="ml"))
    cluster.add(item, manager="kubectl")
    report = delete_objects(cluster, None, OWNER, check=check, delete_data=True, parallel=1)
    assert actions(report) == {"ConfigMap a": "deleted", "Namespace ml": "kept"}
    name = f"{item['kind']} {item['metadata']['name']}"
    assert report.kept[0].reason == f"{name} in it would be deleted with it"
    assert cluster.stored(item["kind"], item["metadata"]["name"], "ml")


def test_our_own_object_of_such_a_kind_goes_with_its_namespace(with_events: FakeCluster) -> None:
    apply(with_events, SPACE, EVENT, SLICE)
    copied = {**SLICE, "metadata": {"name": "copied", "namespace": "ml", "labels": {"muster.ml/owner": OWNER},
                                    "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": "gone"}]}}  # fmt: skip
    with_events.add(copied, manager="kube-controller-manager")
    report = delete(with_events, delete_data=True)
    assert actions(report) == {"Event party": "deleted", "EndpointSlice db": "deleted", "Namespace ml": "deleted"}


def test_pruning_finds_a_kind_that_has_the_name_of_one_that_is_never_ours(with_events: FakeCluster) -> None:
    apply(with_events, SPACE, EVENT, config())
    assert actions(apply(with_events, SPACE, config(), prune=True))["Event party"] == "deleted"


@pytest.mark.parametrize("way", ["prune", "absent"])
def test_a_copy_that_carries_our_label_keeps_the_namespace_that_it_is_in(cluster: FakeCluster, way: str) -> None:
    apply(cluster, SPACE, config())
    copied = config("copied", "ml")
    copied["metadata"]["labels"] = {"muster.ml/owner": OWNER}
    cluster.add(copied, manager="a-controller")
    pruned = way == "prune"
    report = apply(cluster, config(), prune=True, delete_data=True) if pruned else delete(cluster, delete_data=True)
    assert [name for name, action in actions(report).items() if action == "kept"] == ["ConfigMap copied", "Namespace ml"]
    assert cluster.stored("Namespace", "ml")


def test_a_namespace_is_kept_where_what_is_in_it_cannot_be_listed(cluster: FakeCluster) -> None:
    apply(cluster, SPACE)
    cluster.unknown = ["example.com/v1"]
    assert "objects of example.com/v1: the server behind that API does not answer" in delete(cluster, [SPACE], delete_data=True).warnings[0]
    cluster.unknown = []
    cluster.fail("list", "", *[Forbidden("User u may not list secrets.")] * 99)
    assert "cannot be judged" in delete(cluster, [SPACE], delete_data=True).warnings[0]
    assert cluster.stored("Namespace", "ml")


def test_a_namespace_is_kept_where_a_definition_has_a_kind_that_is_not_served(blind: Blind) -> None:
    apply(blind, SPACE, DEFINITION)
    apply(blind, {**FOO, "metadata": {"name": "f", "namespace": "ml"}}, owner=OTHER)
    blind.blind = True
    assert "objects of foos.x.io: its definition exists" in delete(blind, [SPACE], delete_data=True).warnings[0]
    assert blind.stored("Namespace", "ml")


def test_a_copy_of_our_object_in_another_namespace_is_not_ours(cluster: FakeCluster) -> None:
    """A restore into another namespace brings labels, annotations and managedFields along."""
    apply(cluster, config(), config("b"), prune=True)
    copied = copy.deepcopy(cluster.stored("ConfigMap", "b", "default") or {})
    copied["metadata"].update(namespace="kube-system", uid="another")
    cluster.add(copied)
    report = apply(cluster, config(), prune=True)
    kept = [change for change in report.changes if change.ref.namespace == "kube-system"]
    assert [(change.action, change.reason) for change in kept] == [
        ("kept", "has the mark of this owner, but no record says that Muster created it (a copy?)")
    ]


def test_what_somebody_else_restored_at_its_own_place_was_not_applied_by_us(cluster: FakeCluster) -> None:
    """Label and record are as we wrote them; only who applied them tells that another hand put it there."""
    apply(cluster, config())
    stored = cluster.objects["", "ConfigMap", "default", "a"]
    stored["metadata"]["managedFields"][0].update(manager="velero", operation="Update")
    assert actions(delete(cluster)) == {"ConfigMap a": "kept"}
    assert actions(delete(cluster, [config()])) == {"ConfigMap a": "kept"}


def test_what_an_older_muster_applied_at_this_place_is_ours(cluster: FakeCluster) -> None:
    apply(cluster, config())
    cluster.objects["", "ConfigMap", "default", "a"]["metadata"]["managedFields"][0]["manager"] = "muster"
    assert actions(delete(cluster)) == {"ConfigMap a": "deleted"}


def test_what_a_controller_made_for_an_object_of_ours_goes_by_its_label_alone(cluster: FakeCluster) -> None:
    """Claims of a StatefulSet carry the label of its template, and no record of ours."""
    label = "muster.ml/group"
    claim = {**config("claim"), "kind": "PersistentVolumeClaim"}
    claim["metadata"]["labels"] = {label: "g"}
    other = {**claim, "metadata": {**claim["metadata"], "name": "other", "labels": {label: "h"}}}
    cluster.add(claim, other, manager="kube-controller-manager")
    report = delete(cluster, [claim, other], Ownership("g", label, applied=False), delete_data=True)
    assert actions(report) == {"PersistentVolumeClaim claim": "deleted", "PersistentVolumeClaim other": "kept"}


def test_a_definition_is_kept_where_objects_of_its_kind_cannot_be_listed(blind: Blind) -> None:
    apply(blind, DEFINITION)
    apply(blind, FOO, owner=OTHER)
    blind.refuse("list", Forbidden("User u may not list foos."), "Foo")
    report = delete(blind, [DEFINITION], delete_data=True)
    assert actions(report) == {"CustomResourceDefinition foos.x.io": "kept"}
    assert "cannot be judged: whether objects of its kind exist: User u may not list foos" in report.warnings[0]


def test_an_object_that_changes_hands_between_reading_and_deleting_is_judged_anew(cluster: FakeCluster) -> None:
    apply(cluster, config())
    cluster.before("delete", lambda _ref: apply(cluster, config(), owner=OTHER, force_conflicts=True))
    assert actions(delete(cluster, [config()])) == {"ConfigMap a": "kept"}
    assert cluster.stored("ConfigMap", "a", "default")


def test_an_object_that_was_made_again_meanwhile_is_not_deleted_and_not_called_deleted(cluster: FakeCluster) -> None:
    apply(cluster, config())
    cluster.before("delete", cluster.remove)
    cluster.before("delete", lambda _ref: cluster.add(config(), manager="kubectl"))
    report = delete(cluster, [config()])
    assert actions(report) == {"ConfigMap a": "kept"}
    assert "was created again by another client" in report.warnings[0]


# Recreate


def refused(status: int, reason: str, *causes: tuple[str, str], message: str = "") -> Exception:
    details = {"causes": [{"field": field, "message": text} for field, text in causes]}
    payload = {"reason": reason, "message": message, "code": status, "details": details}
    return responses.to_error(status, payload, verb="apply", ref=None, what="RoleBinding rb")


ROLE_REF = ("roleRef", 'Invalid value: {"name":"r"}: cannot change roleRef')


@pytest.mark.parametrize("check", [True, False])
def test_recreate_deletes_nothing_that_could_not_be_made_again(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, check: bool) -> None:
    """The server looks at immutable fields first: a new object of the same wish may be refused for something else."""
    cluster.add(SPACE)
    apply(cluster, BINDING)
    plain = cluster.apply

    def strict(manifest: Manifest, **options: t.Any) -> Manifest:
        if manifest["kind"] != "RoleBinding":
            return plain(manifest, **options)
        if manifest["roleRef"] != BINDING["roleRef"] and manifest["metadata"]["name"] == "rb":
            raise refused(422, "Invalid", ROLE_REF)
        if "name" not in manifest["roleRef"]:
            raise refused(422, "Invalid", ("roleRef.name", "Required value"))
        return plain(manifest, **options)

    monkeypatch.setattr(cluster, "apply", strict)
    wrong = {**BINDING, "roleRef": {"kind": "Role", "nme": "r"}}
    with pytest.raises(InvalidInput, match=r"is not deleted either, because the new one would be refused.*roleRef.name"):
        apply(cluster, wrong, recreate=True, check=check)
    assert cluster.stored("RoleBinding", "rb", "ml")
    right = {**BINDING, "roleRef": {"kind": "Role", "name": "other"}}
    monkeypatch.setattr(cluster, "delete", lambda *_args, **_options: False)
    if not check:
        with pytest.raises(Conflict, match=r"was changed by another client before it could be recreated"):
            apply(cluster, right, recreate=True)


def test_a_definition_with_instances_is_never_recreated(blind: Blind) -> None:
    apply(blind, DEFINITION)
    apply(blind, FOO, owner=OTHER)
    blind.fail("apply", "foos.x.io", Rejected("spec.scope: field is immutable", ref=ref_of(DEFINITION)))
    with pytest.raises(InvalidInput, match=r"is never recreated \(Foo default/f of its kind would be deleted with it\)"):
        apply(blind, {**DEFINITION, "spec": {**DEFINITION["spec"], "scope": "Cluster"}}, recreate=True)


# Few rights


def test_who_may_work_in_a_namespace_needs_no_right_to_read_it(cluster: FakeCluster) -> None:
    cluster.add(SPACE)
    cluster.fail("get", "ml", *[Forbidden("User u may not get namespaces.")] * 5)
    assert actions(apply(cluster, config(namespace="ml"))) == {"ConfigMap a": "created"}


def test_a_namespace_that_nobody_may_read_and_that_is_missing_is_told_by_the_server(cluster: FakeCluster) -> None:
    cluster.fail("get", "ml", *[Forbidden("User u may not get namespaces.")] * 5)
    with pytest.raises(NotFound, match="ml"):
        apply(cluster, config(namespace="ml"))


# What kubectl left


def test_fields_of_an_earlier_kubectl_apply_go_when_the_object_is_adopted_and_does_not_want_them(cluster: FakeCluster) -> None:
    cluster.add(config(x="1", old="y"), manager="kubectl-client-side-apply")
    apply(cluster, config(x="2"), adopt=True)
    stored = cluster.stored("ConfigMap", "a", "default") or {}
    assert stored["data"] == {"x": "2"}
    assert [entry["manager"] for entry in stored["metadata"]["managedFields"]] == [manager_of(OWNER)]
    assert not apply(cluster, config(x="2")).changed


def test_a_conflict_with_somebody_else_stays_one_when_an_object_is_adopted(cluster: FakeCluster) -> None:
    cluster.add(config(x="1"), manager="kubectl")
    cluster.apply(config(x="1"), dry_run=False, manager="some-controller")
    with pytest.raises(Conflict, match="some-controller"):
        apply(cluster, config(x="2"), adopt=True)


@pytest.mark.parametrize("word", ["", "adopt"])
def test_what_somebody_made_since_we_looked_is_given_back(cluster: FakeCluster, word: str) -> None:
    cluster.before("apply", lambda _ref: cluster.add(config(y="theirs"), manager="kubectl"))
    if word:
        assert apply(cluster, config(x="ours"), adopt=True).changed
        return
    with pytest.raises(Conflict, match=r"was made by another client \(kubectl\) at the same moment, and is left as it was"):
        apply(cluster, config(x="ours"))
    stored = cluster.stored("ConfigMap", "a", "default") or {}
    assert stored["data"] == {"y": "theirs"}
    assert not stored["metadata"].get("labels")


def test_a_single_field_that_was_patched_is_nothing_to_take_over(cluster: FakeCluster) -> None:
    apply(cluster, config())
    stored = cluster.objects["", "ConfigMap", "default", "a"]
    stored["metadata"]["managedFields"].append({"manager": "muster", "operation": "Update", "fieldsV1": {"f:data": {"f:y": {}}}})
    assert not apply(cluster, config()).changed


def test_a_shared_namespace_that_went_meanwhile_does_not_come_back(cluster: FakeCluster) -> None:
    apply(cluster, SPACE, owner=OTHER)
    apply(cluster, {**SPACE, "metadata": {"name": "ml", "labels": {"a": "1"}}}, config())
    cluster.before("apply", cluster.remove, "Namespace")
    with pytest.raises(Conflict):
        delete(cluster)
    assert cluster.stored("Namespace", "ml") is None


def test_what_an_older_muster_applied_becomes_the_owners_at_the_next_apply(cluster: FakeCluster) -> None:
    apply(cluster, config(x="1", old="y"))
    stored = cluster.objects["", "ConfigMap", "default", "a"]
    stored["metadata"]["managedFields"][0]["manager"] = "muster"
    stored["metadata"]["annotations"]["muster.ml/applied"] = "1:abc"
    report = delete(cluster)
    assert actions(report) == {"ConfigMap a": "kept"}
    assert apply(cluster, config(x="1")).changed
    assert (cluster.stored("ConfigMap", "a", "default") or {})["data"] == {"x": "1"}
    assert actions(delete(cluster)) == {"ConfigMap a": "deleted"}

# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine on a fake cluster: what is written, what is not, and what is told."""

from __future__ import annotations

import collections
import contextlib
import copy
import json
import re
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.muster.ml.plugins.module_utils._core.errors import (
    ApplyFailed,
    Conflict,
    Forbidden,
    Immutable,
    InvalidInput,
    MissingKind,
    MusterError,
    NotFound,
    Rejected,
    ServerError,
    Terminating,
    WaitTimeout,
)
from ansible_collections.muster.ml.plugins.module_utils._kube import plan
from ansible_collections.muster.ml.plugins.module_utils._kube.deletion import Ownership
from ansible_collections.muster.ml.plugins.module_utils._kube.engine import apply_objects
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref, ref_of
from ansible_collections.muster.ml.plugins.module_utils._kube.prune_record import record_ref
from ansible_collections.muster.ml.plugins.module_utils._kube.removal import delete_objects
from ansible_collections.muster.ml.plugins.module_utils._kube.report import Report
from ansible_collections.muster.ml.plugins.module_utils._kube.served import Promised
from ansible_collections.muster.ml.tests.unit.fakes.applied import config, space, stateful
from ansible_collections.muster.ml.tests.unit.fakes.cluster import DEFINITION, FakeCluster, answered, only_in_namespaces

OWNER = "apply.test"
ANYBODYS = Ownership(OWNER, unowned=True)


def secret(value: str) -> Manifest:
    metadata = {"name": "s", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"password": value}}


def widget(name: str = "f") -> Manifest:
    return {"apiVersion": "x.io/v1", "kind": "Foo", "metadata": {"name": name, "namespace": "default"}, "spec": {"n": 1}}


def apply(cluster: FakeCluster, *objects: t.Any, check: bool = False, owner: str = OWNER, **options: t.Any) -> Report:
    return apply_objects(cluster, objects, owner=owner, check=check, **options)


def actions(report: Report) -> dict[str, str]:
    return {str(change.ref): change.action for change in report.changes}


@pytest.fixture
def established(cluster: FakeCluster) -> FakeCluster:
    """Definitions are established as soon as they are there."""
    cluster.controllers["CustomResourceDefinition"] = lambda _found: {"conditions": [{"type": "Established", "status": "True"}]}
    return cluster


# First run, second run, check mode


def test_first_run_creates_and_second_run_writes_nothing(established: FakeCluster) -> None:
    objects = [space("ml"), config("a", "ml"), secret("x"), DEFINITION, widget()]
    first = apply(established, *objects)
    assert set(actions(first).values()) == {"created"}
    established.requests.clear()
    second = apply(established, *objects)
    assert set(actions(second).values()) == {"unchanged"}
    assert not second.changed
    assert established.writes == []


def test_a_rerun_reads_one_list_per_kind_and_namespace(cluster: FakeCluster) -> None:
    objects = [config(f"a{number}") for number in range(20)]
    apply(cluster, *objects)
    cluster.requests.clear()
    apply(cluster, *objects)
    assert [request.verb for request in cluster.requests] == ["list"]


def test_check_mode_from_nothing_shows_all_and_writes_nothing(cluster: FakeCluster) -> None:
    objects = [space("ml"), config("a", "ml"), DEFINITION, widget(), secret("hunter2")]
    plan = apply(cluster, *objects, check=True)
    assert cluster.writes == []
    assert cluster.objects == {}
    cluster.controllers["CustomResourceDefinition"] = lambda _found: {"conditions": [{"type": "Established", "status": "True"}]}
    run = apply(cluster, *objects)
    assert plan.result(diff=True) == {**run.result(diff=True), "diff": plan.diff()}
    assert [entry["after_header"] for entry in plan.diff()] == [entry["after_header"] for entry in run.diff()]


def test_check_mode_expects_the_kinds_and_namespaces_of_our_own_objects(cluster: FakeCluster) -> None:
    """The dry run of a training comes before the roles that install its operator and create its namespace."""
    assert set(actions(apply(cluster, widget(), config("a", "ml"), check=True)).values()) == {"created"}
    with pytest.raises(MissingKind, match=r"does not serve Foo \(x.io/v1\)"):
        apply(cluster, config(), widget())
    assert cluster.writes == []


@pytest.mark.parametrize(
    ("api_version", "kind", "meant"),
    [
        ("v1", "secret", "Secret (v1)"),
        ("v1", "Secrets", "Secret (v1)"),
        ("v1", "Secret ", "Secret (v1)"),
        ("v1", "Deployment", "Deployment (apps/v1)"),
        ("apps/v1beta1", "Deployment", "Deployment (apps/v1)"),
        ("apps/v1", "StatefullSet", "StatefulSet (apps/v1)"),
        ("y.io/v1", "Bar", ""),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_a_kind_that_nothing_serves_or_promises_is_refused_in_check_mode_too(
    cluster: FakeCluster, api_version: str, kind: str, meant: str, check: bool
) -> None:
    item = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "stringData": {"password": "hunter2"}}
    with pytest.raises(MissingKind) as caught:
        apply(cluster, config(), item, check=check, promised=Promised({("x.io/v1", "Foo"): True}))
    end = f", did you mean {meant}?" if meant else "."
    assert caught.value.message == f"The cluster does not serve {kind} ({api_version}){end}"
    assert "hunter2" not in f"{caught.value} {caught.value.details}"
    assert cluster.writes == []


def test_check_mode_does_not_wait(cluster: FakeCluster) -> None:
    apply(cluster, stateful(), check=True, wait=True)
    assert "watch" not in [request.verb for request in cluster.requests]


def test_objects_without_a_namespace_go_to_the_given_one(cluster: FakeCluster) -> None:
    cluster.add(space("ml"))
    apply(cluster, config("a", None), namespace="ml")
    assert cluster.stored("ConfigMap", "a", "ml")


def test_a_change_is_written_once(cluster: FakeCluster) -> None:
    apply(cluster, config(x="1"), config("b"))
    cluster.requests.clear()
    report = apply(cluster, config(x="2"), config("b"))
    assert actions(report) == {"ConfigMap default/a": "updated", "ConfigMap default/b": "unchanged"}
    assert len(cluster.writes) == 1
    entry = report.diff()[0]
    assert (entry["before"]["data"], entry["after"]["data"]) == ({"x": "1"}, {"x": "2"})
    assert "managedFields" not in json.dumps(entry)
    assert "muster.ml/applied" not in json.dumps(entry)


def test_a_field_that_is_left_out_is_removed(cluster: FakeCluster) -> None:
    apply(cluster, config(x="1", y="2"))
    apply(cluster, config(x="1"))
    assert (cluster.stored("ConfigMap", "a", "default") or {})["data"] == {"x": "1"}


# Drift, conflicts, owners


def drifted(cluster: FakeCluster, value: str | None) -> None:
    """Somebody else sets (or removes) data.x, and so takes it out of our fields."""
    stored = copy.deepcopy(cluster.stored("ConfigMap", "a", "default") or {})
    ours = stored["metadata"]["managedFields"][0]
    del ours["fieldsV1"]["f:data"]
    if value is None:
        del stored["data"]["x"]
    else:
        stored["data"]["x"] = value
        entry = {"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:data": {"f:x": {}}}}
        stored["metadata"]["managedFields"].append(entry)
    cluster.add(stored)


def test_a_field_that_somebody_removed_is_set_again(cluster: FakeCluster) -> None:
    apply(cluster, config())
    drifted(cluster, None)
    report = apply(cluster, config())
    assert report.changes[0].reason == "data was removed"
    assert not apply(cluster, config()).changed


def test_a_field_that_somebody_changed_is_a_conflict(cluster: FakeCluster) -> None:
    apply(cluster, config())
    drifted(cluster, "9")
    with pytest.raises(Conflict) as caught:
        apply(cluster, config())
    assert caught.value.managers == ["kubectl-edit"]
    assert caught.value.fields == ["data.x"]
    report = apply(cluster, config(), force_conflicts=True)
    assert "kubectl-edit" in report.changes[0].reason or report.changed
    assert not apply(cluster, config()).changed


def test_an_object_that_was_there_and_is_as_desired_is_used_and_stays_somebody_elses(cluster: FakeCluster) -> None:
    cluster.add(config(), manager="kubectl")
    report = apply(cluster, config(), prune=True, wait=True)
    assert report.changes[0].reason == "existed already with all desired fields; it keeps its owner"
    assert "muster.ml/owner" not in (cluster.stored("ConfigMap", "a", "default") or {})["metadata"].get("labels", {})
    delete_objects(cluster, None, OWNER, check=False, delete_data=True)
    assert cluster.writes == []


def test_an_object_that_was_there_and_differs_is_refused_until_adoption_is_asked_for(cluster: FakeCluster) -> None:
    cluster.add(config(x="theirs"), manager="helm")
    with pytest.raises(Conflict, match=r"exists already, was not made by Muster, and differs in data\.x.*adopt: true") as caught:
        apply(cluster, config(), config("b"))
    assert caught.value.managers == ["helm"]
    assert cluster.writes == []
    report = apply(cluster, config(), adopt=True, force_conflicts=True)
    assert report.changes[0].reason == "existed already; adopted"
    assert not apply(cluster, config()).changed


@pytest.mark.parametrize(
    ("what", "empty", "path"),
    [
        ("v1/ConfigMap", {"data": {"x": ""}}, "data.x"),
        ("v1/ServiceAccount", {"automountServiceAccountToken": False}, "automountServiceAccountToken"),
        ("batch/v1/Job", {"spec": {"ttlSecondsAfterFinished": 0}}, "spec.ttlSecondsAfterFinished"),
        ("policy/v1/PodDisruptionBudget", {"spec": {"selector": {}}}, "spec.selector"),
    ],
)
def test_an_empty_value_that_the_server_stores_is_no_missing_one(cluster: FakeCluster, what: str, empty: Manifest, path: str) -> None:
    found = {"apiVersion": what.rpartition("/")[0], "kind": what.rpartition("/")[2], "metadata": config()["metadata"]}
    cluster.add({**found, "data": {"kept": "1"}, "spec": {"kept": "1"}}, manager="helm")
    with pytest.raises(Conflict, match=f"differs in {re.escape(path)}"):
        apply(cluster, {**found, **empty})
    assert cluster.writes == []


def test_an_empty_value_that_cannot_be_asked_for_is_not_there(cluster: FakeCluster) -> None:
    cluster.add(config(kept="1"), manager="helm")
    cluster.fail("apply", "a", Forbidden("User u may not patch configmaps."))
    with pytest.raises(Conflict, match=r"differs in data\.x"):
        apply(cluster, config(x=""))


def test_another_owner_keeps_its_object(cluster: FakeCluster) -> None:
    apply(cluster, config(), owner="o.one")
    with pytest.raises(Conflict, match=r"belongs to o.one, not to o.two"):
        apply(cluster, config(), owner="o.two")
    assert apply(cluster, config(), owner="o.two", force_conflicts=True).changed
    assert not apply(cluster, config(), owner="o.two").changed


def test_a_namespace_is_shared(cluster: FakeCluster) -> None:
    apply(cluster, space("ml", a="1"), owner="o.one")
    assert apply(cluster, space("ml", b="2"), owner="o.two").changed
    for owner, labels in (("o.one", {"a": "1"}), ("o.two", {"b": "2"})):
        assert not apply(cluster, space("ml", **labels), owner=owner).changed
    stored = (cluster.stored("Namespace", "ml") or {})["metadata"]["labels"]
    assert (stored["a"], stored["b"], stored["muster.ml/owner"]) == ("1", "2", "o.one")


def test_secret_values_are_compared_and_never_shown(cluster: FakeCluster) -> None:
    apply(cluster, secret("hunter1"))
    assert not apply(cluster, secret("hunter1")).changed
    report = apply(cluster, secret("hunter2"))
    assert report.changes[0].reason == "secret values changed"
    shown = json.dumps(report.result(diff=True))
    for value in ("hunter", "aHVudGVy"):
        assert value not in shown


def test_a_key_that_left_a_secret_is_removed(cluster: FakeCluster) -> None:
    both = secret("x")
    both["stringData"]["old"] = "y"
    apply(cluster, both)
    assert apply(cluster, secret("x")).changed
    assert set((cluster.stored("Secret", "s", "default") or {})["data"]) == {"password"}


def test_a_field_that_the_server_does_not_keep_is_asked_for_only_once(cluster: FakeCluster) -> None:
    real = cluster._applied

    def dropping(*args: t.Any) -> Manifest:
        merged = real(*args)
        merged.get("spec", {}).pop("dropped", None)
        for entry in merged["metadata"]["managedFields"]:
            entry["fieldsV1"].get("f:spec", {}).pop("f:dropped", None)
        return merged

    cluster._applied = dropping  # type: ignore[method-assign]
    apply(cluster, stateful(dropped=1))
    cluster.requests.clear()
    assert not apply(cluster, stateful(dropped=1)).changed
    assert cluster.writes == []
    assert apply(cluster, stateful(dropped=1, more=2)).changed
    assert not apply(cluster, stateful(dropped=1, more=2)).changed


# What stands in the way is told before anything is written


def test_a_missing_namespace(cluster: FakeCluster) -> None:
    with pytest.raises(NotFound, match=r"Namespace nope does not exist.*Nothing was changed"):
        apply(cluster, config(), config("b", "nope"))
    with pytest.raises(NotFound, match=r"Namespace nope does not exist\. Create it first.*earlier tasks.*Nothing was changed"):
        apply(cluster, config(), config("b", "nope"), check=True, promised=Promised(namespaces={"ml"}))
    assert cluster.writes == []


def token(account: str, namespace: str = "default", name: str = "t") -> Manifest:
    notes = {"kubernetes.io/service-account.name": account}
    metadata = {"name": name, "namespace": namespace, "annotations": notes}
    return {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token", "metadata": metadata}


def account(name: str, namespace: str = "default") -> Manifest:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}


@pytest.mark.parametrize("more", [[], [account("a", "kube-system")], [account("b")]], ids=["none", "elsewhere", "another"])
@pytest.mark.parametrize("check", [True, False])
def test_a_token_whose_account_exists_nowhere_is_refused(cluster: FakeCluster, more: list[Manifest], check: bool) -> None:
    """The controller would delete it, although it was created."""
    with pytest.raises(NotFound) as caught:
        apply(cluster, config(), token("a"), *more, check=check, promised=Promised())
    assert caught.value.message == (
        "Secret default/t is to hold the token of ServiceAccount default/a, which does not exist, so Kubernetes would delete it at once."
    )
    assert caught.value.ref == Ref("v1", "Secret", "t", "default")
    assert "Create the ServiceAccount first, or put it into the same list of objects." in caught.value.hint
    assert cluster.writes == []


@pytest.mark.parametrize("check", [True, False])
def test_a_token_in_a_namespace_of_the_same_list_needs_its_account(cluster: FakeCluster, check: bool) -> None:
    objects = [space("ml"), token("a", "ml"), token("default", "ml", "of-default")]
    with pytest.raises(NotFound, match=r"Secret ml/t is .* ServiceAccount ml/a, which does not exist"):
        apply(cluster, *objects, check=check, promised=Promised())
    report = apply(cluster, *objects, account("a", "ml"), check=check, promised=Promised())
    assert set(actions(report).values()) == {"created"}


def test_a_token_of_an_account_that_is_there_costs_one_request_and_none_again(cluster: FakeCluster) -> None:
    cluster.add(account("a"))
    apply(cluster, token("a"), token("a", name="u"))
    asked = [request for request in cluster.requests if request.ref.kind == "ServiceAccount"]
    assert [request.verb for request in asked] == ["get"]
    cluster.remove(Ref("v1", "ServiceAccount", "a", "default"))
    cluster.requests.clear()
    assert set(actions(apply(cluster, token("a"), token("a", name="u"))).values()) == {"unchanged"}
    assert [request for request in cluster.requests if request.ref.kind == "ServiceAccount"] == []


def test_a_token_of_an_account_that_may_not_be_read_is_created(cluster: FakeCluster) -> None:
    cluster.fail("get", "a", Forbidden("User dev may not get serviceaccounts."))
    assert set(actions(apply(cluster, token("a"))).values()) == {"created"}


def test_a_namespace_that_something_else_creates_may_have_the_account(cluster: FakeCluster) -> None:
    promised = Promised(namespaces={"theirs"})
    assert set(actions(apply(cluster, token("b", "theirs"), check=True, promised=promised)).values()) == {"created"}


def test_a_namespace_that_is_being_deleted(cluster: FakeCluster) -> None:
    going = space("going")
    going["metadata"]["deletionTimestamp"] = "2026-11-21T00:00:00Z"
    cluster.add(going)
    with pytest.raises(Terminating, match="Namespace going is being deleted"):
        apply(cluster, config(), config("b", "going"))
    with pytest.raises(Terminating, match="Namespace going is being deleted"):
        apply(cluster, going)
    assert cluster.writes == []


def test_an_object_on_its_way_out_names_its_finalizers(cluster: FakeCluster) -> None:
    going = config()
    going["metadata"] |= {"deletionTimestamp": "2026-11-21T00:00:00Z", "finalizers": ["x.io/hold"]}
    cluster.add(going)
    with pytest.raises(Terminating, match=r"x\.io/hold"):
        apply(cluster, config())


def test_a_refusal_of_the_server_comes_before_the_first_write(cluster: FakeCluster) -> None:
    cluster.fail("apply", "w", Rejected("replicas: must be >= 0"))
    with pytest.raises(Rejected):
        apply(cluster, config(), stateful(replicas=-1))
    assert cluster.writes == []


def test_all_refusals_are_told(cluster: FakeCluster) -> None:
    cluster.fail("apply", "a", Rejected("first"))
    cluster.fail("apply", "b", Forbidden("second", hint="Ask somebody."))
    with pytest.raises(ApplyFailed) as caught:
        apply(cluster, config("a"), config("b"), check=True)
    for text in ("first", "second", "Ask somebody."):
        assert text in str(caught.value)


def test_duplicates_after_the_default_namespace(cluster: FakeCluster) -> None:
    with pytest.raises(InvalidInput, match="2 times"):
        apply(cluster, config("a", None), config("a", "default"))


def test_what_was_done_before_a_failure_is_in_the_error(cluster: FakeCluster) -> None:
    objects = [space("ml"), config("a", "ml"), config("b", "ml")]
    cluster.fail("apply", "b", Forbidden("no"))
    with pytest.raises(Forbidden) as caught:
        apply(cluster, *objects)
    assert caught.value.details["changed"] is True
    assert {found["name"] for found in caught.value.details["objects"]} == {"ml", "a"}
    assert set(actions(apply(cluster, *objects)).values()) == {"unchanged", "created"}


# What only looks like a refusal


def test_a_webhook_that_is_still_starting_is_asked_again(cluster: FakeCluster) -> None:
    cluster.fail("apply", "a", *[answered(500, "failed calling webhook x: connection refused")] * 3)
    assert apply(cluster, config()).changed


def test_a_webhook_without_dry_run_does_not_stop_check_mode(cluster: FakeCluster) -> None:
    cluster.fail("apply", "a", answered(400, "admission webhook x does not support dry run"))
    report = apply(cluster, config(), check=True)
    assert report.changes[0].action == "created"
    assert "could not be tried" in report.changes[0].reason


# Of the plugin ServiceAccount, and of the webhooks of Kubeflow Trainer 2.3.0 and Kueue 0.18.3, recorded from each.
REFUSALS = [
    "error looking up service account default/sa",
    'admission webhook "validator.trainjob.trainer.kubeflow.org" denied the request: spec.runtimeRef: Invalid value: {"name":"w"}: '
    'TrainingRuntime.trainer.kubeflow.org "w" not found: specified trainingRuntime must be created before the TrainJob is created',
    """admission webhook "vtrainjob.kb.io" denied the request: runtime 'late' not found.""",
]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_what_the_same_run_creates_does_not_stop_check_mode_or_the_rehearsal(cluster: FakeCluster, refusal: str) -> None:
    cluster.fail("apply", "w", answered(403, refusal))
    assert "could not be tried" in apply(cluster, stateful(), check=True).changes[0].reason
    cluster.fail("apply", "w", answered(403, refusal))
    assert actions(apply(cluster, config(), stateful())) == {"ConfigMap default/a": "created", "StatefulSet default/w": "created"}


def test_a_quota_that_is_not_counted_yet_is_waited_for(cluster: FakeCluster) -> None:
    refusal = answered(403, "forbidden: status unknown for quota: q, resources: x")
    cluster.fail("apply", "a", *[refusal] * 3)
    assert actions(apply(cluster, config())) == {"ConfigMap default/a": "created"}


# Immutable fields


def immutable(told: str = "spec.x: field is immutable") -> MusterError:
    return answered(422, told, Ref("apps/v1", "StatefulSet", "w", "default"))


def test_an_immutable_field_fails_and_recreate_helps(cluster: FakeCluster) -> None:
    apply(cluster, stateful(x=1))
    uid = (cluster.stored("StatefulSet", "w", "default") or {})["metadata"]["uid"]
    cluster.fail("apply", "w", immutable())
    with pytest.raises(Immutable, match=r"spec\.x"):
        apply(cluster, stateful(x=2))
    cluster.fail("apply", "w", immutable())
    assert actions(apply(cluster, stateful(x=2), recreate=True, check=True)) == {"StatefulSet default/w": "recreated"}
    cluster.fail("apply", "w", immutable())
    assert actions(apply(cluster, stateful(x=2), recreate=True)) == {"StatefulSet default/w": "recreated"}
    assert (cluster.stored("StatefulSet", "w", "default") or {})["metadata"]["uid"] != uid


def test_the_immutable_fields_of_a_stateful_set_are_named(cluster: FakeCluster) -> None:
    apply(cluster, stateful(volumeClaimTemplates=[{"metadata": {"name": "d"}}]))
    told = "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'template' are forbidden"
    cluster.fail("apply", "w", immutable(told))
    with pytest.raises(Immutable, match=r"spec\.volumeClaimTemplates is immutable") as caught:
        apply(cluster, stateful(replicas=2, volumeClaimTemplates=[{"metadata": {"name": "e"}}]))
    assert caught.value.details["fields"] == ["spec.volumeClaimTemplates"]


# Prune and delete


def test_prune_removes_what_is_no_longer_desired_of_any_kind(established: FakeCluster) -> None:
    established.add(space("other"))
    apply(established, config(), config("b"), config("c", "other"), stateful(), DEFINITION, widget())
    report = apply(established, config(), prune=True, check=True)
    assert established.stored("ConfigMap", "b", "default")
    run = apply(established, config(), prune=True)
    assert actions(report) == actions(run)
    assert {name for name, action in actions(run).items() if action == "deleted"} == {
        "ConfigMap default/b", "ConfigMap other/c", "StatefulSet default/w", "Foo default/f", "CustomResourceDefinition foos.x.io",
    }  # fmt: skip
    assert not apply(established, config(), prune=True).changed


def test_prune_removes_simulated_nodes_and_no_others(cluster: FakeCluster) -> None:
    simulated = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-0"}}
    cluster.add({**simulated, "metadata": {"name": "real"}}, manager="kubelet")
    apply(cluster, config(), simulated)
    assert actions(apply(cluster, config(), prune=True))["Node gpu-0"] == "deleted"
    assert cluster.stored("Node", "real", None)


@pytest.mark.parametrize("word", ["1", "2"], ids=["nothing-to-write", "something-to-write"])
def test_prune_leaves_kinds_that_controllers_make(cluster: FakeCluster, word: str) -> None:
    events = [{**config(name), "kind": "Event"} for name in ("a", "b")]
    apply(cluster, config(x="1"), *events)
    assert "deleted" not in actions(apply(cluster, config(x=word), events[0], prune=True)).values()


def test_prune_leaves_what_others_own_or_made(cluster: FakeCluster) -> None:
    apply(cluster, config("theirs"), owner="o.theirs")
    copied = config("copied-labels")
    copied["metadata"]["labels"] = {"muster.ml/owner": OWNER}
    cluster.add(copied, manager="some-controller")
    report = apply(cluster, config(), prune=True)
    assert {name for name, action in actions(report).items() if action == "deleted"} == set()
    assert actions(report)["ConfigMap default/copied-labels"] == "kept"


def test_data_is_kept_without_an_explicit_word(cluster: FakeCluster) -> None:
    claim = {**config("claim"), "kind": "PersistentVolumeClaim"}
    generated = secret("x")
    generated["metadata"]["annotations"] = {"muster.ml/generated": "password"}
    apply(cluster, claim, generated, space("ml"), config())
    report = apply(cluster, config(), prune=True)
    assert sorted(set(actions(report).values())) == ["kept", "unchanged"]
    assert not report.changed
    assert "PersistentVolumeClaim default/claim" in report.warnings[0]
    removed = apply(cluster, config(), prune=True, delete_data=True)
    assert list(actions(removed).values()).count("deleted") == 3


def test_a_definition_with_objects_of_others_is_kept(established: FakeCluster) -> None:
    apply(established, DEFINITION)
    apply(established, widget("theirs"), owner="o.theirs")
    for options in ({}, {"delete_data": True}):
        report = apply(established, config(), prune=True, **options)
        assert actions(report)["CustomResourceDefinition foos.x.io"] == "kept"
        assert "Foo default/theirs" in report.changes[-1].reason


def test_delete_by_owner_and_again(cluster: FakeCluster) -> None:
    apply(cluster, config(), stateful())
    deleted = delete_objects(cluster, None, OWNER, check=False)
    assert set(actions(deleted).values()) == {"deleted"}
    cluster.requests.clear()
    assert not delete_objects(cluster, None, OWNER, check=False).changed
    assert cluster.writes == []


def test_delete_of_what_is_not_there_sends_nothing(cluster: FakeCluster) -> None:
    report = delete_objects(cluster, [config(), widget()], OWNER, check=False, wait=True)
    assert set(actions(report).values()) == {"unchanged"}
    assert cluster.writes == []


def test_a_finalizer_that_blocks_is_named(cluster: FakeCluster) -> None:
    held = config()
    held["metadata"]["finalizers"] = ["x.io/hold"]
    apply(cluster, held)
    with pytest.raises(WaitTimeout, match=r"ConfigMap default/a: is being deleted since \S+ and waits for its finalizers x\.io/hold"):
        delete_objects(cluster, [config()], ANYBODYS, check=False, wait=True, wait_timeout=30)
    again = delete_objects(cluster, [config()], ANYBODYS, check=False)
    assert again.changes[0].reason == "is being deleted already"


def test_all_waves_of_a_deletion_have_one_deadline(cluster: FakeCluster) -> None:
    held = [config("c"), {**config("p"), "kind": "Pod", "spec": {}}]
    for item in held:
        item["metadata"]["finalizers"] = ["x.io/hold"]
    cluster.add(*held)

    def gone_late(_ref: Ref) -> None:
        if cluster.clock.now >= 1020 and cluster.stored("Pod", "p", "default"):
            cluster.remove(ref_of(held[1]))

    cluster.before("watch", gone_late, "Pod", once=False)
    with pytest.raises(WaitTimeout, match="ConfigMap default/c"):
        delete_objects(cluster, held, ANYBODYS, check=False, wait=True, wait_timeout=30)
    assert cluster.stored("Pod", "p", "default") is None
    assert cluster.clock.now <= 1000 + 30 + 2


def test_what_a_controller_makes_again_at_once_is_told(cluster: FakeCluster) -> None:
    cluster.add(config(), manager="an-operator")
    delete = cluster.delete

    def deleted(ref: Ref, **options: t.Any) -> bool:
        done = delete(ref, **options)
        cluster.add(config(), manager="an-operator")
        return done

    cluster.delete = deleted  # type: ignore[method-assign]
    with pytest.raises(WaitTimeout, match="ConfigMap default/a: was deleted and created again by an-operator"):
        delete_objects(cluster, [config()], ANYBODYS, check=False, wait=True, wait_timeout=30)


def test_a_webhook_that_does_not_answer_is_explained(cluster: FakeCluster) -> None:
    message = 'failed calling webhook "w.x.io": failed to call webhook: Post "https://hook.ops.svc:443/?timeout=10s": EOF'
    said = r"Webhook w\.x\.io is served by Service ops/hook, which does not exist: install what brings the Service"
    cluster.fail("apply", "a", *[answered(500, message)] * 99)
    with pytest.raises(ServerError, match=said):
        apply(cluster, config())
    cluster.add(config("b"))
    cluster.fail("delete", "b", answered(500, message))
    with pytest.raises(ServerError, match=said):
        delete_objects(cluster, [config("b")], ANYBODYS, check=False)


# Waiting


def test_wait_sees_the_controller(cluster: FakeCluster) -> None:
    def controller(found: Manifest) -> Manifest:
        return {"readyReplicas": found["spec"]["replicas"], "observedGeneration": 1}

    cluster.controllers["StatefulSet"] = controller
    report = apply(cluster, stateful(), config(), wait=True)
    assert report.changed
    assert "watch" not in [request.verb for request in cluster.requests]


def test_a_wait_that_ends_tells_what_was_last_seen_and_what_was_applied(cluster: FakeCluster) -> None:
    unscheduled = {"type": "PodScheduled", "status": "False", "message": "insufficient nvidia.com/gpu"}
    metadata = {"name": "w-0", "namespace": "default", "labels": {"a": "b"}}
    cluster.add({**config(), "kind": "Pod", "metadata": metadata, "status": {"phase": "Pending", "conditions": [unscheduled]}})
    with pytest.raises(WaitTimeout) as caught:
        apply(cluster, stateful(selector={"matchLabels": {"a": "b"}}), wait=True, wait_timeout=60)
    assert "StatefulSet default/w: its controller has not seen the change yet" in str(caught.value)
    assert "pod w-0 Pending: insufficient nvidia.com/gpu" in caught.value.last_seen[0]
    assert caught.value.details["changed"] is True
    assert caught.value.details["objects"][0]["action"] == "created"


def test_an_object_of_a_changing_kind_is_judged_by_the_new_kind(established: FakeCluster) -> None:
    apply(established, DEFINITION, widget())
    newer = copy.deepcopy(DEFINITION)
    newer["spec"]["versions"][0]["schema"] = {"new": "field"}
    changed = widget()
    changed["spec"]["new"] = 1
    established.requests.clear()
    assert set(actions(apply(established, newer, changed, check=True)).values()) == {"updated"}
    assert [request.ref.kind for request in established.requests if request.dry_run] == ["CustomResourceDefinition"]
    assert set(actions(apply(established, newer, changed)).values()) == {"updated"}


# Properties: any sequence of wishes ends where the last one says, and then nothing is left to do

NAMES = st.sampled_from(["a", "b", "c", "d"])
VALUES = st.dictionaries(st.sampled_from("xyz"), st.sampled_from("12"), min_size=1)
WISHES = st.dictionaries(NAMES, VALUES, min_size=1, max_size=4)


@given(st.lists(WISHES, min_size=1, max_size=4))
def test_prune_converges(wishes: list[dict[str, dict[str, str]]]) -> None:
    cluster = FakeCluster()
    for options in wishes:
        objects = [config(name, **data) for name, data in options.items()]
        plan = apply(cluster, *objects, prune=True, check=True)
        assert actions(plan) == actions(apply(cluster, *objects, prune=True))
    names = {key[-1] for key in cluster.objects if not key[-1].startswith("muster-settled-")}
    assert {name: cluster.stored("ConfigMap", name, "default")["data"] for name in names} == wishes[-1]
    cluster.requests.clear()
    assert not apply(cluster, *[config(name, **data) for name, data in wishes[-1].items()], prune=True).changed
    assert cluster.writes == []


SPACES = st.sampled_from(["default", "kube-system"])
CRASHES = st.sampled_from([(verb, name) for verb in ("apply", "delete") for name in ("a", "b", record_ref(OWNER, [], "").name)])


@given(st.lists(st.tuples(WISHES, SPACES, st.booleans(), st.none() | CRASHES), max_size=6), WISHES, SPACES)
def test_nothing_is_left_over_whatever_was_before(
    runs: list[tuple[dict[str, dict[str, str]], str, bool, tuple[str, str] | None]], last: dict[str, dict[str, str]], space: str
) -> None:
    cluster = FakeCluster()
    for options, namespace, prune, crash in [*runs, (last, space, True, None)]:
        cluster.failures.clear()
        if crash:
            cluster.fail(*crash, ServerError("gone"))
        with contextlib.suppress(*((ServerError, ApplyFailed) if crash else ())):
            apply(cluster, *(config(name, namespace, **data) for name, data in options.items()), prune=prune)
    found = {key[2:] for key in cluster.objects if not key[-1].startswith("muster-settled-")}
    assert found == {(space, name) for name in last}
    assert len(claims(cluster)) <= 1


@given(st.integers(0, 12), st.integers(1, 8))
def test_a_run_that_dies_in_the_middle_is_finished_by_the_next(survivors: int, parallel: int) -> None:
    cluster = FakeCluster()
    objects = [space("ml"), *(config(f"a{number}", "ml") for number in range(12))]
    for number in range(survivors, 12):
        cluster.fail("apply", f"a{number}", ServerError("gone"))
    if survivors < 12:
        with pytest.raises((ApplyFailed, ServerError)):
            apply(cluster, *objects, parallel=parallel)
    apply(cluster, *objects, parallel=parallel)
    assert len(cluster.objects) == 13
    cluster.requests.clear()
    assert not apply(cluster, *objects).changed


# Requests that are saved


def verbs(cluster: FakeCluster) -> dict[str, int]:
    return dict(collections.Counter(f"{request.verb}{' dry' * request.dry_run}" for request in cluster.requests))


def test_a_first_run_asks_for_names_once_instead_of_for_each_object(cluster: FakeCluster) -> None:
    apply(cluster, *(config(f"a{number}") for number in range(20)))
    # Ours, names of all, and (before and after) whether it was remembered that the owner has no others, or a prune is at work.
    assert verbs(cluster) == {"list": 4, "get": 2, "apply dry": 20, "apply": 20}


def test_few_objects_of_a_kind_are_asked_for_by_name_and_once(cluster: FakeCluster) -> None:
    objects = [*(config(f"a{number}") for number in range(4)), stateful()]
    apply(cluster, *objects)
    assert max(collections.Counter(r.ref for r in cluster.requests if r.verb == "get").values()) == 1
    cluster.requests.clear()
    assert not apply(cluster, *objects).changed
    assert verbs(cluster) == {"get": 5}


def test_what_is_there_without_our_label_is_found_by_the_list_of_names(cluster: FakeCluster) -> None:
    cluster.add(config("a3"), manager="kubectl")
    report = apply(cluster, *(config(f"a{number}") for number in range(20)))
    assert [change.ref.name for change in report.changes if change.action == "unchanged"] == ["a3"]
    taken = {**config("b3"), "metadata": {"name": "b3", "namespace": "default", "labels": {"muster.ml/owner": "o.one"}}}
    cluster.add(taken)
    cluster.requests.clear()
    with pytest.raises(Conflict, match=r"belongs to o.one"):
        apply(cluster, *(config(f"b{number}") for number in range(20)))
    assert cluster.writes == []


@pytest.mark.parametrize("limit", [1, 2])
def test_a_list_of_names_that_is_cut_off_is_not_trusted(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(plan, "_LONGEST_LIST", limit)
    cluster.add(*(config(f"other{number}") for number in range(4)), config("a3"))
    report = apply(cluster, *(config(f"a{number}") for number in range(6)))
    assert [change.ref.name for change in report.changes if change.action == "unchanged"] == ["a3"]


def test_who_may_not_list_all_names_asks_for_each(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_args: t.Any, **_options: t.Any) -> t.NoReturn:
        raise Forbidden("only with your own label")

    monkeypatch.setattr(cluster, "list_metadata", forbidden)
    cluster.add(config("a3"))
    report = apply(cluster, *(config(f"a{number}") for number in range(6)))
    assert [change.ref.name for change in report.changes if change.action == "unchanged"] == ["a3"]


# What prune remembers


def claims(cluster: FakeCluster) -> list[str]:
    return [namespace for _group, _kind, namespace, name in cluster.objects if name.startswith("muster-settled-")]


def test_a_rerun_that_prunes_asks_for_its_own_objects_only(cluster: FakeCluster) -> None:
    objects = [*(config(f"a{number}") for number in range(5)), stateful(), space("ml")]
    apply(cluster, *objects, prune=True)
    cluster.requests.clear()
    assert not apply(cluster, *objects, prune=True).changed
    assert verbs(cluster) == {"list": 1, "get": 3}


def test_an_object_of_the_set_that_comes_back_needs_no_look_around(cluster: FakeCluster) -> None:
    apply(cluster, config(), config("b"), prune=True)
    cluster.remove(ref_of(config("b")))
    cluster.requests.clear()
    assert apply(cluster, config(), config("b"), prune=True).changed
    assert "list" not in verbs(cluster)
    assert claims(cluster) == ["default"]


@pytest.mark.parametrize("namespace", ["default", "kube-system"])
@pytest.mark.parametrize("prune", [True, False])
def test_what_another_task_of_the_owner_made_is_found(cluster: FakeCluster, namespace: str, prune: bool) -> None:
    apply(cluster, config(), prune=True)
    cluster.fail("delete", "a", ServerError("gone"))  # where it prunes, it does not come to its end
    with contextlib.suppress(ServerError, ApplyFailed):
        apply(cluster, config("b", namespace), prune=prune)
    assert claims(cluster) == []
    assert actions(apply(cluster, config(), prune=True))[f"ConfigMap {namespace}/b"] == "deleted"


def test_a_set_that_becomes_smaller_is_remembered_in_one_place(cluster: FakeCluster) -> None:
    apply(cluster, config(), config("b", "kube-system"), prune=True)
    apply(cluster, config("b", "kube-system"), prune=True)
    assert claims(cluster) == ["kube-system"]


def test_a_refused_run_forgets_nothing(cluster: FakeCluster) -> None:
    apply(cluster, config(), prune=True)
    cluster.fail("apply", "b", InvalidInput("no"))
    with pytest.raises((InvalidInput, ApplyFailed)):
        apply(cluster, config(x="2"), config("b"), prune=True)
    assert claims(cluster) == ["default"]


def test_a_run_that_changes_nothing_does_not_remember(cluster: FakeCluster) -> None:
    apply(cluster, config())
    cluster.requests.clear()
    assert not apply(cluster, config(), prune=True).changed
    assert cluster.writes == []


def test_what_was_kept_is_told_every_time(cluster: FakeCluster) -> None:
    apply(cluster, config(), {**config("claim"), "kind": "PersistentVolumeClaim"})
    for word in ("1", "2", "2"):
        assert "claim" in apply(cluster, config(x=word), prune=True).warnings[0]
    assert claims(cluster) == []


def test_who_may_not_write_it_down_looks_everywhere(cluster: FakeCluster) -> None:
    name = record_ref(OWNER, [], "default").name
    cluster.fail("apply", name, Forbidden("no"))
    cluster.fail("get", name, Forbidden("no"), Forbidden("no"))
    apply(cluster, config(), config("b"), prune=True)
    assert actions(apply(cluster, config(), prune=True))["ConfigMap default/b"] == "deleted"


def test_it_goes_with_the_owners_objects(cluster: FakeCluster) -> None:
    apply(cluster, config(), prune=True)
    delete_objects(cluster, None, OWNER, check=False)
    assert claims(cluster) == []


def test_who_may_list_in_some_namespaces_only_prunes_there(cluster: FakeCluster) -> None:
    apply(cluster, config(), config("b"))
    cluster.before("list", only_in_namespaces, once=False)
    report = apply(cluster, config(), prune=True)
    assert {name: action for name, action in actions(report).items() if action == "deleted"} == {"ConfigMap default/b": "deleted"}
    assert any("Only namespaces default were searched" in text for text in report.warnings)
    assert claims(cluster) == []  # what is in other namespaces is not known
    removed = delete_objects(cluster, None, OWNER, check=False)
    assert any("Only namespaces default were searched" in text for text in removed.warnings)

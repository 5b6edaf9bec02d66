# SPDX-License-Identifier: GPL-3.0-or-later
"""How objects are deleted: only what was judged, as it was judged, alone among the runs of the owner."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._kube.deletion import Ownership
from ansible_collections.muster.ml.plugins.module_utils._kube.lease import holder
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, manager_of, ref_of
from ansible_collections.muster.ml.plugins.module_utils._kube.removal import Deletion, delete_objects
from ansible_collections.muster.ml.plugins.module_utils._kube.report import Report
from ansible_collections.muster.ml.tests.unit.fakes.applied import OTHER, OWNER, actions, apply, config, space
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster


def delete(cluster: FakeCluster, what: list[Manifest] | None = None, *, check: bool = False, **more: t.Any) -> Report:
    return delete_objects(cluster, what, OWNER, check=check, parallel=1, **more)


def labels(cluster: FakeCluster, name: str = "ml") -> dict[str, str]:
    return (cluster.stored("Namespace", name) or {})["metadata"]["labels"]


def test_what_is_deleted_is_the_very_object_and_version_that_was_judged(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    apply(cluster, config())
    known = (cluster.stored("ConfigMap", "a", "default") or {})["metadata"]
    asked: list[dict[str, t.Any]] = []
    monkeypatch.setattr(cluster, "delete", lambda _ref, **options: asked.append(options) or True)
    delete(cluster, [config()])
    assert [(options["uid"], options["resource_version"]) for options in asked] == [(known["uid"], known["resourceVersion"])]


def test_what_somebody_else_deleted_first_is_deleted(cluster: FakeCluster) -> None:
    apply(cluster, config())
    cluster.before("delete", cluster.remove)
    assert actions(delete(cluster, [config()])) == {"ConfigMap a": "deleted"}


def test_what_is_desired_under_another_name_stays_whatever_its_record_says(cluster: FakeCluster) -> None:
    apply(cluster, config())
    live = cluster.stored("ConfigMap", "a", "default") or {}
    deletion = Deletion(cluster, Ownership(OWNER), check=False, data=True)
    report = deletion.remove({ref_of(live): live}, desired={live["metadata"]["uid"]})
    assert [(change.action, change.reason) for change in report.changes] == [("kept", "is desired under another name")]


@pytest.mark.parametrize("named", [True, False])
def test_check_mode_foresees_that_a_namespace_goes_together_with_all_that_is_in_it(cluster: FakeCluster, named: bool) -> None:
    objects = [space(), config(namespace="ml")]
    apply(cluster, *objects)
    foreseen = delete(cluster, objects if named else None, delete_data=True, check=True)
    assert actions(foreseen) == {"ConfigMap a": "deleted", "Namespace ml": "deleted"}
    assert actions(delete(cluster, objects if named else None, delete_data=True)) == actions(foreseen)


def test_what_stays_for_its_data_anyway_is_not_looked_into(cluster: FakeCluster) -> None:
    apply(cluster, space(), config(namespace="ml"))
    cluster.requests.clear()
    report = delete(cluster, [space()])
    assert [change.reason for change in report.changes] == ["holds data; delete_data: true deletes it"]
    assert [request.verb for request in cluster.requests] == ["get"]


def test_what_stays_is_not_waited_for(cluster: FakeCluster) -> None:
    claim = {**config("claim"), "kind": "PersistentVolumeClaim"}
    apply(cluster, claim, {**config("b"), "kind": "PersistentVolumeClaim"})
    other = {**config("pod"), "kind": "Pod"}
    apply(cluster, other)
    report = delete(cluster, [claim, other], wait=True, wait_timeout=30)
    assert actions(report) == {"Pod pod": "deleted", "PersistentVolumeClaim claim": "kept"}


# One run at a time


def test_an_owner_is_removed_under_its_lease(cluster: FakeCluster) -> None:
    apply(cluster, config())
    held: list[bool] = []
    cluster.before("delete", lambda _ref: held.append(holder(cluster, OWNER, "default") is not None), "ConfigMap", once=False)
    delete(cluster)
    assert held == [True]
    assert cluster.objects == {}


def test_what_another_run_made_before_the_lease_was_ours_goes_with_the_owner(cluster: FakeCluster) -> None:
    apply(cluster, config())
    cluster.before("apply", lambda _ref: apply(cluster, config("late")), "Lease")
    assert actions(delete(cluster)) == {"ConfigMap a": "deleted", "ConfigMap late": "deleted"}


# Namespaces that several owners share


def test_an_owner_takes_its_labels_from_a_namespace_that_stays(cluster: FakeCluster) -> None:
    apply(cluster, space(theirs="1"), owner=OTHER)
    apply(cluster, space("alone", theirs="1"), owner=OTHER)
    apply(cluster, space(ours="2"))
    assert labels(cluster)["ours"] == "2"
    cluster.requests.clear()
    foreseen = delete(cluster, check=True)
    assert actions(foreseen) == {"Namespace ml": "updated"}
    assert cluster.writes == []
    assert actions(delete(cluster)) == actions(foreseen)
    assert {key: value for key, value in labels(cluster).items() if "/" not in key} == {"theirs": "1"}
    entries = (cluster.stored("Namespace", "ml") or {})["metadata"]["managedFields"]
    assert all(not entry["fieldsV1"] for entry in entries if entry["manager"] == manager_of(OWNER))
    cluster.requests.clear()
    assert not delete(cluster).changed
    assert cluster.writes == []

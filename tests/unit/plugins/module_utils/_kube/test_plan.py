# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose an object that exists is, and what becomes of it: used, shared, taken over, or refused."""

import copy

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Conflict, ServerError
from ansible_collections.muster.ml.plugins.module_utils._kube.fields import managers
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import FIELD_MANAGER, LABEL_OWNER, Manifest, labels_of, manager_of
from ansible_collections.muster.ml.plugins.module_utils._kube.plan import ApplyOptions, PlannedObject, make_plan
from ansible_collections.muster.ml.tests.unit.fakes.applied import OTHER, OWNER, apply, config, space
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster


def planned(cluster: FakeCluster, desired: Manifest) -> PlannedObject:
    return make_plan(cluster, [copy.deepcopy(desired)], ApplyOptions(OWNER, "default", check=False))[0]


def live(cluster: FakeCluster, name: str = "a") -> Manifest:
    """As it is stored, to be changed as somebody else would."""
    return cluster.objects["", "ConfigMap", "default", name]


def test_what_is_used_or_shared_as_it_is_does_not_become_ours(cluster: FakeCluster) -> None:
    cluster.add(config(), manager="kubectl")
    apply(cluster, space(theirs="1"), owner=OTHER)
    used, changed = planned(cluster, config()), planned(cluster, space(ours="2"))
    apply(cluster, space(ours="2"))
    as_it_is = planned(cluster, space(ours="2"))
    assert [(step.verdict, step.ours) for step in (used, changed, as_it_is)] == [
        ("unchanged", False),
        ("update", False),
        ("unchanged", False),
    ]


def test_a_label_that_is_not_desired_any_more_leaves_a_shared_namespace(cluster: FakeCluster) -> None:
    apply(cluster, space(theirs="1"), owner=OTHER)
    apply(cluster, space(ours="2", old="3"))
    report = apply(cluster, space(ours="2"))
    assert report.changes[0].reason == f"metadata.labels.old removed; belongs to {OTHER}"
    labels = labels_of(cluster.stored("Namespace", "ml") or {})
    assert {key: value for key, value in labels.items() if "/" not in key} == {"theirs": "1", "ours": "2"}
    assert not apply(cluster, space(ours="2")).changed


def test_another_value_of_a_label_on_a_shared_namespace_is_written(cluster: FakeCluster) -> None:
    apply(cluster, space(theirs="1"), owner=OTHER)
    apply(cluster, space(ours="2"))
    report = apply(cluster, space(ours="3", more="4"))
    assert report.changes[0].reason == f"metadata.labels.more added, metadata.labels.ours changed; belongs to {OTHER}"
    labels = labels_of(cluster.stored("Namespace", "ml") or {})
    assert {key: value for key, value in labels.items() if "/" not in key} == {"theirs": "1", "ours": "3", "more": "4"}
    assert not apply(cluster, space(ours="3", more="4")).changed
    with pytest.raises(Conflict, match=OTHER):
        apply(cluster, space(ours="3", theirs="5"))


def test_what_the_former_owner_desired_goes_when_its_object_is_taken_over(cluster: FakeCluster) -> None:
    apply(cluster, config(x="1", old="y"), owner=OTHER)
    apply(cluster, config(x="2"), force_conflicts=True)
    assert live(cluster)["data"] == {"x": "2"}
    assert managers(live(cluster)) == {manager_of(OWNER)}
    assert labels_of(live(cluster))[LABEL_OWNER] == OWNER


def test_forced_conflicts_are_no_word_for_adopting_what_a_stranger_made(cluster: FakeCluster) -> None:
    cluster.add(config(x="theirs"), manager="helm")
    with pytest.raises(Conflict, match="adopt: true"):
        apply(cluster, config(), force_conflicts=True)
    assert cluster.writes == []


def test_an_object_of_ours_that_lost_its_label_is_ours_by_its_record(cluster: FakeCluster) -> None:
    apply(cluster, config())
    del labels_of(live(cluster))[LABEL_OWNER]
    assert apply(cluster, config(x="2")).changes[0].action == "updated"
    assert labels_of(live(cluster))[LABEL_OWNER] == OWNER


def test_what_a_backup_brought_back_is_ours_and_loses_what_is_not_desired_any_more(cluster: FakeCluster) -> None:
    apply(cluster, config(x="1", old="y"))
    for entry in live(cluster)["metadata"]["managedFields"]:
        entry.update(manager="velero-server", operation="Update")
    apply(cluster, config(x="2"))
    assert live(cluster)["data"] == {"x": "2"}
    assert managers(live(cluster)) == {manager_of(OWNER)}
    assert not apply(cluster, config(x="2")).changed


def test_the_manager_of_an_older_muster_goes_although_nothing_else_changes(cluster: FakeCluster) -> None:
    apply(cluster, config())
    entries = live(cluster)["metadata"]["managedFields"]
    entries.append({**copy.deepcopy(entries[0]), "manager": FIELD_MANAGER})
    assert apply(cluster, config()).changed
    assert managers(live(cluster)) == {manager_of(OWNER)}


def test_a_namespace_that_cannot_be_asked_for_stops_the_run(cluster: FakeCluster) -> None:
    cluster.add(space())
    cluster.fail("get", "ml", ServerError("boom"))
    with pytest.raises(ServerError, match="boom"):
        apply(cluster, config(namespace="ml"))
    assert cluster.writes == []

# SPDX-License-Identifier: GPL-3.0-or-later
"""What an owner's runs do beside each other, and what prune remembers and what it needs to be alone for."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden, LeaseLost, Rejected
from ansible_collections.muster.ml.plugins.module_utils._kube import deletion
from ansible_collections.muster.ml.plugins.module_utils._kube.lease import Lease, holder
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref, ref_of
from ansible_collections.muster.ml.plugins.module_utils._kube.removal import delete_objects
from ansible_collections.muster.ml.tests.unit.fakes.applied import OTHER, OWNER, actions, apply, config, space, stateful
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster, answered
from ansible_collections.muster.ml.tests.unit.fakes.mirrored import MIRRORS, Mirrored


def claims(cluster: FakeCluster) -> list[str]:
    return [name for *_rest, name in cluster.objects if name.startswith("muster-settled-")]


def labels(cluster: FakeCluster) -> dict[str, str]:
    found = (cluster.stored("Namespace", "ml") or {})["metadata"]["labels"]
    return {key: value for key, value in found.items() if "/" not in key}


def test_a_run_that_had_to_wait_plans_again(cluster: FakeCluster) -> None:
    apply(cluster, config())

    def made_again(_lease: Ref) -> None:
        cluster.remove(ref_of(config()))
        apply(cluster, config(x="3"))

    cluster.before("apply", made_again, "Lease")
    assert actions(apply(cluster, config(x="2"), prune=True)) == {"ConfigMap a": "updated"}
    assert (cluster.stored("ConfigMap", "a", "default") or {})["data"] == {"x": "2"}


def test_a_run_is_alone_while_it_recreates(cluster: FakeCluster) -> None:
    apply(cluster, stateful("w"))
    held: list[bool] = []
    cluster.before("delete", lambda _ref: held.append(holder(cluster, OWNER, "default") is not None))
    cluster.fail("apply", "w", Rejected("spec.x: field is immutable"))
    changed = {**stateful("w"), "spec": {"replicas": 2}}
    assert actions(apply(cluster, changed, recreate=True)) == {"StatefulSet w": "recreated"}
    assert held[0]


def test_a_prune_that_lives_on_and_may_overlook_what_was_made_is_told(cluster: FakeCluster) -> None:
    with Lease(cluster, OWNER, "default", timeout=60):
        ref = holder(cluster, OWNER, "default")
        assert ref
        renewed = {"spec": {"renewTime": "2026-11-21T12:00:00.000000Z"}}
        cluster.before("watch", lambda _ref: cluster.patch(ref, renewed, dry_run=False), once=False)
        report = apply(cluster, config())
    assert actions(report) == {"ConfigMap a": "created"}
    assert any("It may overlook what this run made" in text for text in report.warnings)


def test_who_may_have_no_lease_does_not_remember_that_nothing_is_left(cluster: FakeCluster) -> None:
    cluster.refuse("apply", Forbidden("User u may not create leases."), "Lease")
    warned = apply(cluster, config(), config("b"), prune=True).warnings
    assert [text.partition(",")[0] for text in warned] == ["This run of o.ours held no Lease (coordination.k8s.io)"]
    assert claims(cluster) == []
    assert actions(apply(cluster, config(), prune=True))["ConfigMap b"] == "deleted"


def test_what_is_taken_over_from_another_owner_is_forgotten_by_no_prune(cluster: FakeCluster) -> None:
    apply(cluster, config("b"), owner=OTHER)
    apply(cluster, config(), prune=True)
    assert claims(cluster)
    apply(cluster, config("b", x="2"), force_conflicts=True)
    assert claims(cluster) == []
    assert actions(apply(cluster, config(), prune=True))["ConfigMap b"] == "deleted"


@pytest.mark.parametrize("when", ["just-made", "there-and-could-not-be-tried"])
def test_a_desired_object_under_another_name_is_told_by_its_uid_alone(monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    """Even where the record of what was made fits the other name, too."""
    monkeypatch.setattr(deletion, "is_made_for", lambda _item, _owner: True)
    cluster, options = Mirrored(MIRRORS), {"prune": True, "delete_data": True}
    if when == "just-made":
        report = apply(cluster, space(), config(), **options)
    else:
        apply(cluster, space())
        cluster.fail("apply", "ml", answered(400, "admission webhook x does not support dry run"))
        report = apply(cluster, space(a="1"), check=True, **options)
    assert actions(report)["Project ml"] == "kept"
    assert "is desired under another name" in report.warnings[0]


def test_what_is_not_ours_is_waited_for_although_it_has_no_label_of_ours(cluster: FakeCluster) -> None:
    ready = {"readyReplicas": 1, "observedGeneration": 1}
    both = [stateful("theirs"), stateful("theirs-too")]
    cluster.add(*both)
    cluster.before("watch", lambda _ref: [cluster.set_status(ref_of(item), ready) for item in both])
    report = apply(cluster, *both, wait=True, wait_timeout=30)
    assert not report.changed
    assert {ref.name: found["status"] for ref, found in report.objects.items()} == {"theirs": ready, "theirs-too": ready}


# A run that sleeps while another one takes its Lease


def sleeping(cluster: FakeCluster, at: int, another_run: t.Callable[[], object]) -> list[str]:
    """Stop the next run at one of its requests that write, on the way to the API server, until another run has ended. Returns which."""
    plain, before, found = cluster._note, 0, list[str]()

    def note(verb: str, ref: Ref, dry_run: bool = False) -> None:
        nonlocal before
        writes = verb in ("apply", "delete", "patch") and not dry_run and ref.kind != "Lease"
        before += writes
        if writes and before == at and not found and holder(cluster, OWNER, "default"):
            found.append(f"{verb} {ref.name}")
            cluster.clock.sleep(60)
            another_run()
        plain(verb, ref, dry_run)

    cluster._note = note  # type: ignore[method-assign]
    return found


FIRST, SECOND = ("a", "b", "new"), ("a", "b", "gone")


@pytest.mark.parametrize("at", range(1, 9))
@pytest.mark.parametrize("change", ["0", "1"])
def test_what_the_next_run_wants_is_there_whenever_the_one_before_it_slept(cluster: FakeCluster, change: str, at: int) -> None:
    """The first run creates "new" and deletes "gone", and the second one the other way round; "gone" may be unchanged for it."""
    apply(cluster, *[config(name, x="0") for name in SECOND], prune=True)
    second = [config(name, x=change) for name in SECOND]
    stopped = sleeping(cluster, at, lambda: apply(cluster, *second, config("more"), prune=True))
    lost = ""
    try:
        apply(cluster, *[config(name, x="1") for name in FIRST], prune=True)
    except LeaseLost as exc:
        lost = str(exc)
    assert bool(lost) == bool(stopped)
    if not stopped:
        return  # it has not so many requests
    assert "Lost the Lease to another run, which has ended since: this run had not renewed it for 75 s." in lost
    assert cluster.stored("ConfigMap", "gone", "default"), stopped
    again = apply(cluster, *second, config("more"), prune=True)
    names = {name for *_rest, name in cluster.objects if not name.startswith("muster-")}
    assert names == {*SECOND, "more"}, (stopped, actions(again))
    assert not apply(cluster, *second, config("more"), prune=True).changed


def test_a_removal_that_slept_leaves_what_the_next_run_has_made(cluster: FakeCluster) -> None:
    apply(cluster, config("a"), config("b"))
    stopped = sleeping(cluster, 2, lambda: apply(cluster, config("a"), config("b"), prune=True))
    with pytest.raises(LeaseLost):
        delete_objects(cluster, None, OWNER, check=False, parallel=1)
    assert stopped == ["delete b"]
    assert cluster.stored("ConfigMap", "a", "default")
    assert cluster.stored("ConfigMap", "b", "default")


def test_a_run_that_slept_alone_goes_on(cluster: FakeCluster) -> None:
    apply(cluster, config("a"), config("gone"))
    sleeping(cluster, 1, lambda: None)
    assert actions(apply(cluster, config("a"), prune=True)) == {"ConfigMap a": "unchanged", "ConfigMap gone": "deleted"}
    assert len(claims(cluster)) == 1


# Namespaces that several owners share


def test_prune_releases_a_shared_namespace_that_is_not_desired_any_more_under_a_lease(cluster: FakeCluster) -> None:
    apply(cluster, space(theirs="1"), owner=OTHER)
    apply(cluster, space(ours="2"), config())
    held: list[bool] = []
    cluster.before("apply", lambda _ref: held.append(holder(cluster, OWNER, "default") is not None), "Namespace", once=False)
    foreseen = apply(cluster, config(), prune=True, check=True)
    assert actions(foreseen) == {"ConfigMap a": "unchanged", "Namespace ml": "updated"}
    assert (labels(cluster), held) == ({"theirs": "1", "ours": "2"}, [])
    assert actions(apply(cluster, config(), prune=True)) == actions(foreseen)
    assert (labels(cluster), held) == ({"theirs": "1"}, [True])


def test_prune_leaves_a_shared_namespace_that_is_desired(cluster: FakeCluster) -> None:
    apply(cluster, space(theirs="1"), owner=OTHER)
    for word in ("2", "3"):
        apply(cluster, space(ours="2"), config(x=word), prune=True)
        assert labels(cluster) == {"theirs": "1", "ours": "2"}


def test_another_label_on_a_shared_namespace_makes_nobody_look_everywhere(cluster: FakeCluster) -> None:
    apply(cluster, space(theirs="1"), owner=OTHER)
    apply(cluster, space(ours="2"), config(), prune=True)
    remembered = claims(cluster)
    assert remembered
    assert apply(cluster, space(ours="3"), config()).changed
    assert claims(cluster) == remembered

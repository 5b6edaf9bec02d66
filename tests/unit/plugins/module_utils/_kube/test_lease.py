# SPDX-License-Identifier: GPL-3.0-or-later
"""Two runs of one owner: one waits for the other, takes over from a dead one, and gives way where it came too late."""

from __future__ import annotations

import threading
import time

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.clock import SYSTEM_CLOCK, awake_or_not
from ansible_collections.muster.ml.plugins.module_utils._core.errors import Conflict, Forbidden, LeaseLost, NotFound, Rejected, ServerError
from ansible_collections.muster.ml.plugins.module_utils._kube import lease as lease_module
from ansible_collections.muster.ml.plugins.module_utils._kube.lease import DURATION, HOME, RENEW_DEADLINE, Lease, holder
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import LABEL_OWNER, Manifest, Ref, labels_of
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster


def lease(cluster: FakeCluster, owner: str = "o.x", timeout: float = 60, **options: object) -> Lease:
    return Lease(cluster, owner, "ml", timeout=timeout, **options)  # type: ignore[arg-type]


def held(cluster: FakeCluster, owner: str = "o.x") -> Manifest | None:
    ref = holder(cluster, owner, "ml")
    return cluster.get(ref) if ref else None


def renewed(cluster: FakeCluster, ref: Ref) -> None:
    """A sign of life of whoever holds it."""
    found = cluster.objects[ref.identity]
    found["spec"]["renewTime"] += "1"
    cluster._store(found, "MODIFIED")


def test_a_run_is_alone_and_leaves_nothing_behind(cluster: FakeCluster) -> None:
    with lease(cluster) as mine:
        assert mine.guarded
        spec = (held(cluster) or {})["spec"]
        assert spec["leaseDurationSeconds"] == DURATION
        assert "process" in spec["holderIdentity"]
        assert labels_of(held(cluster) or {})[LABEL_OWNER] == "o.x"
    assert cluster.objects == {}


def test_owners_do_not_wait_for_each_other(cluster: FakeCluster) -> None:
    began = cluster.clock.now
    with lease(cluster, "o.x"), lease(cluster, "o.X"), lease(cluster, "o-x"):
        assert cluster.clock.now == began


def test_runs_in_two_namespaces_are_one_after_the_other(cluster: FakeCluster) -> None:
    for name in ("ml", "other"):
        cluster.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    lease(cluster).__enter__()
    with Lease(cluster, "o.x", "other", timeout=60):  # which takes the first one for dead
        assert cluster.clock.now - 1000 >= DURATION


def test_a_run_gives_signs_of_life_and_goes_on_after_a_server_that_failed(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_module, "_RENEW_EVERY", 0.001)
    plain, tried, renewed_again = cluster.apply, [], threading.Event()

    def failing_once(manifest: Manifest, **options: object) -> Manifest:
        tried.append(manifest)
        if len(tried) == 2:
            raise ServerError("boom")
        stored = plain(manifest, **options)  # type: ignore[arg-type]
        if len(tried) > 2:
            renewed_again.set()
        return stored

    cluster.apply = failing_once  # type: ignore[assignment, method-assign]
    with lease(cluster) as mine:
        assert renewed_again.wait(30)
        assert mine.guarded


def test_a_lease_that_cannot_be_given_back_ends_by_itself(cluster: FakeCluster) -> None:
    with lease(cluster):
        cluster.refuse("delete", ServerError("boom"))
    assert held(cluster)


def test_who_may_not_look_sees_no_holder(cluster: FakeCluster) -> None:
    with lease(cluster):
        ref = holder(cluster, "o.x", "ml")
        assert ref
        cluster.fail("get", ref.name, *[Forbidden("no")] * 2)
        assert holder(cluster, "o.x", "ml") is None


def test_a_run_that_does_not_know_yet_that_it_lost_its_lease_leaves_the_others(cluster: FakeCluster) -> None:
    first = lease(cluster)
    first.__enter__()
    with lease(cluster) as second:
        first.__exit__()
        assert second.guarded
        assert held(cluster)


def test_a_run_that_is_alive_is_waited_for_and_then_named_with_its_age(cluster: FakeCluster) -> None:
    told: list[str] = []
    with lease(cluster):
        ref = holder(cluster, "o.x", "ml")
        assert ref
        cluster.before("watch", lambda _ref: renewed(cluster, ref), once=False)
        with pytest.raises(Conflict, match=r"Another run works on the objects of o\.x: .*@.*\(process \d+, .*\) since 2\d+-\S+Z") as caught:
            lease(cluster, on_progress=told.append).__enter__()
        assert "Nothing was changed" in str(caught.value)
        assert told
        assert told[0].startswith("waiting for ")
    assert 60 - DURATION <= cluster.clock.now - 1000 <= 60 + DURATION


def test_a_run_that_ends_is_followed_at_once(cluster: FakeCluster) -> None:
    first = lease(cluster)
    first.__enter__()
    cluster.before("watch", lambda _ref: first.__exit__())
    with lease(cluster) as second:
        assert second.guarded
    assert cluster.objects == {}


def test_a_run_that_was_killed_is_followed_after_its_time(cluster: FakeCluster) -> None:
    lease(cluster).__enter__()
    with lease(cluster) as second:
        assert second.guarded
        assert DURATION <= cluster.clock.now - 1000 <= DURATION + 2


def test_of_two_that_wait_for_a_dead_run_one_takes_over_and_the_other_waits_on(cluster: FakeCluster) -> None:
    lease(cluster).__enter__()
    dead = dict((held(cluster) or {})["metadata"])
    plain, asked, faster = cluster.delete, [], lease(cluster)

    def late(ref: Ref, **options: object) -> bool:
        cluster.delete = plain  # type: ignore[method-assign]
        asked.append((options["uid"], options["resource_version"]))
        plain(ref, dry_run=False)
        faster.__enter__()
        return plain(ref, **options)  # type: ignore[arg-type]

    cluster.delete = late  # type: ignore[assignment, method-assign]
    with lease(cluster) as slower:
        assert slower.guarded
        assert cluster.clock.now - 1000 >= 2 * DURATION
    assert asked == [(dead["uid"], dead["resourceVersion"])]


def test_a_run_that_lost_its_lease_knows_and_does_not_take_the_others_away(cluster: FakeCluster) -> None:
    first = lease(cluster)
    first.__enter__()
    with lease(cluster):
        first._released.set()
        first._released.clear()
        first._released.wait = lambda _seconds: False  # type: ignore[method-assign]
        assert first._ref
        first._keep(first._ref)
        assert not first.guarded
        first.__exit__()
        assert held(cluster)


def test_the_time_of_a_suspended_machine_counts() -> None:
    assert awake_or_not(SYSTEM_CLOCK) == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=1)


def asked(cluster: FakeCluster) -> int:
    return len(cluster.requests)


def test_a_run_relies_on_its_lease_for_less_than_the_time_after_which_others_take_it(cluster: FakeCluster) -> None:
    assert RENEW_DEADLINE < DURATION
    with lease(cluster) as mine:
        before = asked(cluster)
        cluster.clock.now += RENEW_DEADLINE - 0.1
        mine.check()
        assert asked(cluster) == before
        cluster.clock.now += 0.1
        mine.check()
        assert asked(cluster) == before + 1  # it was renewed, because no other run had taken it
        mine.check()
        assert asked(cluster) == before + 1


def test_a_run_that_slept_names_who_has_its_lease_and_does_not_make_one_again(cluster: FakeCluster) -> None:
    first = lease(cluster)
    first.__enter__()
    with lease(cluster) as second:
        assert second.took_over
        with pytest.raises(LeaseLost, match=r"Lost the Lease to .*@.*\(process \d+, .*had not renewed it for 15 s"):
            first.cluster.delete(Ref("v1", "ConfigMap", "a", "ml"), dry_run=False)
        assert (first.lost, first.guarded) == (True, False)
    with pytest.raises(LeaseLost):
        first.check()
    first.__exit__()
    assert cluster.objects == {}


def test_a_lease_that_was_taken_away_is_not_made_again_by_its_renewal(cluster: FakeCluster) -> None:
    with lease(cluster) as mine:
        ref = holder(cluster, "o.x", "ml")
        assert ref
        cluster.remove(ref)
        mine._released.wait = lambda _seconds: False  # type: ignore[method-assign]
        mine._keep(ref)
        assert held(cluster) is None
        cluster.fail("get", ref.name, Forbidden("no"))
        with pytest.raises(LeaseLost, match="Lost the Lease to another run"):
            mine.check()


def test_a_server_that_does_not_answer_is_named_and_the_lease_is_not_given_up(cluster: FakeCluster) -> None:
    with lease(cluster) as mine:
        ref = holder(cluster, "o.x", "ml")
        assert ref
        cluster.clock.now += 60
        cluster.fail("apply", ref.name, ServerError("boom"))
        with pytest.raises(ServerError):
            mine.check()
        mine.check()
        assert mine.guarded


def test_a_lease_whose_renewals_take_too_long_is_lost(cluster: FakeCluster) -> None:
    with lease(cluster) as mine:
        cluster.before("apply", lambda _ref: cluster.clock.sleep(RENEW_DEADLINE), once=False)
        cluster.clock.now += RENEW_DEADLINE
        with pytest.raises(LeaseLost, match="took over 10 s to renew it"):
            mine.check()


def test_who_has_no_right_in_the_one_place_takes_it_at_home(cluster: FakeCluster) -> None:
    cluster.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})

    def only_at_home(ref: Ref) -> None:
        if ref.namespace == HOME:
            raise Forbidden("no")

    cluster.before("apply", only_at_home, once=False)
    with lease(cluster) as mine:
        assert mine.guarded
        assert (held(cluster) or {})["metadata"]["namespace"] == "ml"


@pytest.mark.parametrize("refusal", [Forbidden("no"), NotFound("no such namespace"), Rejected("exceeded quota")])
def test_who_may_have_none_anywhere_goes_on_and_is_not_guarded(cluster: FakeCluster, refusal: Exception) -> None:
    cluster.refuse("apply", refusal)
    with lease(cluster) as mine:
        assert not mine.guarded

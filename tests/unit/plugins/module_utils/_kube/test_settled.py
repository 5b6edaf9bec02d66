# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is remembered of an owner's objects never claims too much, and is never a reason to fail."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden, Rejected
from ansible_collections.muster.ml.plugins.module_utils._kube import settled
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Listing, Ref
from ansible_collections.muster.ml.plugins.module_utils._kube.settled import is_settled, place, settle, unsettle
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster

OWNER, OTHER = "o.ours", "o.theirs"
HERE, ELSEWHERE = Ref("v1", "ConfigMap", "a", "default"), Ref("v1", "ConfigMap", "a", "kube-system")


def claims(cluster: FakeCluster) -> list[tuple[str, str]]:
    return sorted((namespace, name) for _group, _kind, namespace, name in cluster.objects)


def test_what_was_remembered_holds_for_this_very_set_and_this_version_alone(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(cluster, OWNER, [HERE], "default")
    assert is_settled(cluster, OWNER, [HERE], "default")
    more = Ref("v1", "ConfigMap", "b", "default")
    assert not is_settled(cluster, OWNER, [HERE, more], "default")
    assert not is_settled(cluster, OTHER, [HERE], "default")
    monkeypatch.setattr(settled, "_VERSION", settled._VERSION + 1)
    assert not is_settled(cluster, OWNER, [HERE], "default")


def test_an_owner_has_one_claim_wherever_its_objects_were(cluster: FakeCluster) -> None:
    for refs in ([HERE], [ELSEWHERE]):
        settle(cluster, OWNER, refs, "default")
        settle(cluster, OTHER, refs, "default")
    assert claims(cluster) == sorted(("kube-system", place(owner, [ELSEWHERE], "").name) for owner in (OWNER, OTHER))
    unsettle(cluster, OWNER, [HERE], "default")
    assert claims(cluster) == [("kube-system", place(OTHER, [ELSEWHERE], "").name)]


def test_who_may_list_in_one_namespace_only_forgets_there(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(cluster, OWNER, [HERE], "default")
    plain = cluster.list_metadata

    def within(api_version: str, kind: str, namespace: str | None = None, *rest: t.Any, **options: t.Any) -> Listing:
        if namespace is None:
            raise Forbidden("only in namespaces")
        return plain(api_version, kind, namespace, *rest, **options)

    monkeypatch.setattr(cluster, "list_metadata", within)
    unsettle(cluster, OWNER, [HERE], "default")
    assert claims(cluster) == []


def test_a_claim_that_cannot_be_written_or_read_is_no_error_and_no_claim(cluster: FakeCluster) -> None:
    name = place(OWNER, [HERE], "default").name
    cluster.fail("apply", name, Rejected("exceeded quota"))
    settle(cluster, OWNER, [HERE], "default")
    assert claims(cluster) == []
    settle(cluster, OWNER, [HERE], "default")
    cluster.fail("get", name, Forbidden("no"))
    assert not is_settled(cluster, OWNER, [HERE], "default")

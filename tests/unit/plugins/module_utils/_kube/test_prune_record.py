# SPDX-License-Identifier: GPL-3.0-or-later
"""What is remembered of an owner's objects never claims too much, and is never a reason to fail."""

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden, Rejected
from ansible_collections.muster.ml.plugins.module_utils._kube import prune_record
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.module_utils._kube.prune_record import (
    delete_prune_record,
    has_prune_record,
    record_ref,
    write_prune_record,
)
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster, only_in_namespaces

OWNER, OTHER = "o.ours", "o.theirs"
HERE, ELSEWHERE = Ref("v1", "ConfigMap", "a", "default"), Ref("v1", "ConfigMap", "a", "kube-system")


def claims(cluster: FakeCluster) -> list[tuple[str, str]]:
    return sorted((namespace, name) for _group, _kind, namespace, name in cluster.objects)


def test_what_was_remembered_holds_for_this_very_set_and_this_version_alone(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    write_prune_record(cluster, OWNER, [HERE], "default")
    assert has_prune_record(cluster, OWNER, [HERE], "default")
    more = Ref("v1", "ConfigMap", "b", "default")
    assert not has_prune_record(cluster, OWNER, [HERE, more], "default")
    assert not has_prune_record(cluster, OTHER, [HERE], "default")
    monkeypatch.setattr(prune_record, "_VERSION", prune_record._VERSION + 1)
    assert not has_prune_record(cluster, OWNER, [HERE], "default")


def test_an_owner_has_one_claim_wherever_its_objects_were(cluster: FakeCluster) -> None:
    for refs in ([HERE], [ELSEWHERE]):
        write_prune_record(cluster, OWNER, refs, "default")
        write_prune_record(cluster, OTHER, refs, "default")
    assert claims(cluster) == sorted(("kube-system", record_ref(owner, [ELSEWHERE], "").name) for owner in (OWNER, OTHER))
    delete_prune_record(cluster, OWNER, [HERE], "default")
    assert claims(cluster) == [("kube-system", record_ref(OTHER, [ELSEWHERE], "").name)]


def test_only_records_are_deleted(cluster: FakeCluster) -> None:
    write_prune_record(cluster, OWNER, [HERE], "default")
    labels = {"muster.ml/owner": OWNER, prune_record.LABEL_PRUNE_RECORD: "true"}
    cluster.add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "notes", "namespace": "default", "labels": labels}})
    delete_prune_record(cluster, OWNER, [HERE], "default")
    assert claims(cluster) == [("default", "notes")]


def test_who_may_list_in_one_namespace_only_forgets_there(cluster: FakeCluster) -> None:
    write_prune_record(cluster, OWNER, [HERE], "default")
    cluster.before("list", only_in_namespaces, once=False)
    delete_prune_record(cluster, OWNER, [HERE], "default")
    assert claims(cluster) == []


def test_a_claim_that_cannot_be_written_or_read_is_no_error_and_no_claim(cluster: FakeCluster) -> None:
    name = record_ref(OWNER, [HERE], "default").name
    cluster.fail("apply", name, Rejected("exceeded quota"))
    write_prune_record(cluster, OWNER, [HERE], "default")
    assert claims(cluster) == []
    write_prune_record(cluster, OWNER, [HERE], "default")
    cluster.fail("get", name, Forbidden("no"))
    assert not has_prune_record(cluster, OWNER, [HERE], "default")

# SPDX-License-Identifier: GPL-3.0-or-later
"""The one life of servers, for every kind of them."""

import contextlib
import types
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref, ServedKind
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import LEADER_WORKER_SET
from ansible_collections.muster.ml.plugins.modules import (
    etcd_cluster,
    nats_cluster,
    object_store,
    rabbitmq_cluster,
    triton_server,
    vllm_server,
)
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster

Manifest = dict[str, t.Any]

WITH_CLAIMS = [etcd_cluster, object_store, rabbitmq_cluster]
SERVERS = [*WITH_CLAIMS, nats_cluster, triton_server, vllm_server]
REMOVED = {"state": "absent", "delete_data": True}


def run(module: types.ModuleType, cluster: FakeCluster, *, check: bool = False, **params: t.Any) -> dict[str, str]:
    """Object -> what was done with it."""
    needed = {triton_server: {"model_repository": "gs://example-models/live"}, vllm_server: {"model": "example/chat"}}
    cluster.add(tasks.DISKS)
    return tasks.actions(
        tasks.run(module, cluster, {"name": "mine", "namespace": "default", **needed.get(module, {}), **params}, check=check)
    )


def claim(module: types.ModuleType, name: str, instance: str = "mine") -> Manifest:
    """As the StatefulSet's controller creates it; that of a Helm chart has the same labels."""
    labels = {"app.kubernetes.io/name": module.Life.kind.app, "app.kubernetes.io/instance": instance}
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}


every_kind = pytest.mark.parametrize("module", SERVERS, ids=lambda module: module.Life.kind.module)
with_claims = pytest.mark.parametrize("module", WITH_CLAIMS, ids=lambda module: module.Life.kind.module)


@every_kind
def test_bad_options_are_refused_before_any_request(cluster: FakeCluster, module: types.ModuleType) -> None:
    with pytest.raises(InvalidInput, match="not a valid name"):
        run(module, cluster, name="Mine")
    assert not cluster.requests


@every_kind
def test_a_plan_writes_nothing_and_a_second_run_changes_nothing(cluster: FakeCluster, module: types.ModuleType) -> None:
    planned = run(module, cluster, check=True)
    assert not cluster.writes
    made = run(module, cluster)
    assert (planned, set(made.values())) == (made, {"created"})
    assert set(run(module, cluster).values()) == {"unchanged"}
    assert set(run(module, cluster, check=True).values()) == {"unchanged"}


@every_kind
def test_a_policy_that_is_not_desired_any_more_is_deleted_unless_it_is_of_another_owner(module: types.ModuleType) -> None:
    cluster = FakeCluster()
    assert run(module, cluster)["NetworkPolicy/mine"] == "created"
    assert run(module, cluster, network_policy=False)["NetworkPolicy/mine"] == "deleted"
    metadata = {"name": "mine", "namespace": "default"}
    cluster.add({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata})
    assert "NetworkPolicy/mine" not in run(module, cluster, network_policy=False)


@every_kind
def test_everything_is_deleted(cluster: FakeCluster, module: types.ModuleType) -> None:
    made = run(module, cluster)
    removed = REMOVED if "delete_data" in module.ARGUMENT_SPEC else {"state": "absent"}
    assert run(module, cluster, check=True, **removed) == dict.fromkeys(made, "deleted")
    assert run(module, cluster, **removed) == dict.fromkeys(made, "deleted")
    assert not run(module, cluster, **removed)


@with_claims
def test_claims_stay_marked_and_go_by_their_own_word_later(cluster: FakeCluster, module: types.ModuleType) -> None:
    """Nothing but a mark from the first removal tells then whose the claims are: their StatefulSet is gone."""
    run(module, cluster)
    cluster.add(claim(module, "data-mine-0"), claim(module, "mine-backup"), claim(module, "data-other-0", "other"))
    removed = run(module, cluster, state="absent")
    keys = [name for name in removed if name.startswith("Secret/")]
    assert {removed[name] for name in ("PersistentVolumeClaim/data-mine-0", *keys)} == {"kept"}
    assert cluster.stored("StatefulSet", "mine", "default") is None
    kept = cluster.stored("PersistentVolumeClaim", "data-mine-0", "default")
    assert kept
    assert kept["metadata"]["labels"][f"muster.ml/{module.Life.kind.module.replace('_', '-')}"] == "mine"
    written = len(cluster.writes)
    run(module, cluster, state="absent")
    assert len(cluster.writes) == written
    for check in (True, False):
        removed = run(module, cluster, check=check, **REMOVED)
        assert {removed[name] for name in ("PersistentVolumeClaim/data-mine-0", *keys)} == {"deleted"}
    for name in ("mine-backup", "data-other-0"):
        assert cluster.stored("PersistentVolumeClaim", name, "default")


@with_claims
def test_claims_go_with_the_servers(cluster: FakeCluster, module: types.ModuleType) -> None:
    run(module, cluster)
    cluster.add(claim(module, "data-mine-0"))
    for check in (True, False):
        assert run(module, cluster, check=check, **REMOVED)["PersistentVolumeClaim/data-mine-0"] == "deleted"


@with_claims
def test_claims_of_a_stateful_set_of_another_owner_stay(cluster: FakeCluster, module: types.ModuleType) -> None:
    metadata = {"name": "mine", "namespace": "default"}
    other = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": {}}
    cluster.add(claim(module, "data-mine-0"), other)
    run(module, cluster, **REMOVED)
    assert cluster.stored("PersistentVolumeClaim", "data-mine-0", "default")
    assert cluster.get(Ref("apps/v1", "StatefulSet", "mine", "default"))


@with_claims
def test_a_removal_that_was_killed_before_the_claims_is_finished_by_the_next(cluster: FakeCluster, module: types.ModuleType) -> None:
    run(module, cluster)
    cluster.add(claim(module, "data-mine-0"))
    cluster.fail("delete", "data-mine-0", KeyboardInterrupt())
    for _run in range(2):
        with contextlib.suppress(KeyboardInterrupt):
            run(module, cluster, **REMOVED)
    assert cluster.stored("PersistentVolumeClaim", "data-mine-0", "default") is None


@with_claims
def test_claims_that_no_class_can_bind_are_refused(module: types.ModuleType) -> None:
    with pytest.raises(InvalidInput, match="there is no StorageClass nosuch"):
        run(module, FakeCluster(), storage_class_name="nosuch")


def test_replicas_of_one_host_and_of_several_replace_each_other(cluster: FakeCluster) -> None:
    cluster.kinds_served[LEADER_WORKER_SET] = ServedKind("leaderworkersets", True)
    scaled = {"autoscaling": {"max_replicas": 3}, "network_policy": False}
    run(vllm_server, cluster, **scaled)
    for hosts, kind, other in ((2, "LeaderWorkerSet", "Deployment"), (1, "Deployment", "LeaderWorkerSet")):
        changed = run(vllm_server, cluster, hosts=hosts, **scaled)
        assert (changed[f"{kind}/mine"], changed[f"{other}/mine"]) == ("created", "deleted")
        scaler = cluster.stored("HorizontalPodAutoscaler", "mine", "default")
        assert scaler
        assert scaler["spec"]["scaleTargetRef"]["kind"] == kind
        assert set(run(vllm_server, cluster, hosts=hosts, **scaled).values()) == {"unchanged"}

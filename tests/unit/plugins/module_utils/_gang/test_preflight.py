# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is read of a cluster, and what becomes of it where there is no right to it."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden, Unreachable
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context
from ansible_collections.muster.ml.plugins.module_utils._gang.preflight import gang, preflight, read
from ansible_collections.muster.ml.plugins.modules import gang_preflight
from ansible_collections.muster.ml.tests.unit.fakes.gang import NAMESPACE, Things

Manifest = dict[str, t.Any]
X = Things()


def params(**more: t.Any) -> Manifest:
    defaults = {name: option.get("default") for name, option in gang_preflight.ARGUMENT_SPEC.items()}
    return {**defaults, "namespace": NAMESPACE, **more}


def ask(cluster: t.Any, **more: t.Any) -> Manifest:
    return gang_preflight.execute(Context(params=params(**more), check=False, connect=lambda: cluster))


def refuse(cluster: t.Any, *kinds: str) -> None:
    """Answer 403 to who lists or reads these kinds."""
    listed, got = cluster.list, cluster.get

    def listing(api_version: str, kind: str, *more: t.Any) -> t.Any:
        if kind in kinds:
            raise Forbidden(f"User x may not list {kind}.")
        return listed(api_version, kind, *more)

    def getting(ref: t.Any) -> t.Any:
        if ref.kind in kinds:
            raise Forbidden(f"User x may not read {ref.kind}.")
        return got(ref)

    cluster.list, cluster.get = listing, getting


def stored(item: Manifest, kind: str, api_version: str = "v1") -> Manifest:
    return {"apiVersion": api_version, "kind": kind, **item}


@pytest.fixture
def ground(cluster: t.Any) -> t.Any:
    """Two nodes with a GPU each, one of which is in use."""
    cluster.add(*X.nodes(2, gpu=1), X.pod("p", "n0", X.container(gpu=1)))
    return cluster


def test_the_module_answers_and_writes_nothing(ground: t.Any) -> None:
    answer = ask(ground, groups=[X.group(2, X.container(gpu=1))])
    assert answer == {
        "changed": False,
        "fits": False,
        "message": "Not all pods fit at once. 1 of 2 pods of group worker fit, each with 1 nvidia.com/gpu: 1 node with room for 1, "
        "1 node with too little free: 0 nvidia.com/gpu. This fits: worker with 1.",
        "reasons": [
            "1 of 2 pods of group worker fit, each with 1 nvidia.com/gpu: 1 node with room for 1, "
            "1 node with too little free: 0 nvidia.com/gpu"
        ],
        "not_judged": [],
        "groups": [{"name": "worker", "replicas": 2, "fitting": 1}],
        "nearest": [{"name": "worker", "replicas": 1}],
    }
    assert ask(ground, groups=[X.group(1, X.container(gpu=1))])["fits"] is True
    assert ground.writes == []


def test_each_kind_is_listed_once_and_only_what_is_needed(ground: t.Any) -> None:
    ground.requests.clear()
    read(ground, gang([], NAMESPACE, rows=[X.group(1), X.group(1, name="other")]))
    assert sorted((one.verb, one.ref.kind) for one in ground.requests) == [
        ("list", "LimitRange"),
        ("list", "Node"),
        ("list", "Pod"),
        ("list", "ResourceQuota"),
    ]


def test_quotas_and_limits_of_the_namespace_are_read(ground: t.Any) -> None:
    ground.add(stored(X.quota({"pods": "3"}, {"pods": "2"}), "ResourceQuota"))
    ground.add(stored(X.limits(default={"cpu": "5"}), "LimitRange"))
    answer = ask(ground, groups=[X.group(3)])
    assert any(reason.startswith("ResourceQuota q leaves 1 of 3 pods") for reason in answer["reasons"])
    assert any("2 of 3 pods of group worker fit, each with 5 cpu" in reason for reason in answer["reasons"])


def test_claims_volumes_and_classes_are_read(ground: t.Any) -> None:
    where = {
        "required": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}]
        }
    }
    ground.add(X.claim("c", "ReadWriteMany", volume="v"))
    ground.add(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {"nodeAffinity": where}}
    )
    mounted = {"volumes": [{"name": "c", "persistentVolumeClaim": {"claimName": "c"}}]}
    answer = ask(ground, groups=[X.group(1, X.container(gpu=1), **mounted)])
    assert answer["fits"] is False
    assert "1 node from where the volume of claim c cannot be reached" in answer["reasons"][0]
    assert ask(ground, groups=[X.group(1, **mounted)])["fits"] is True


def test_runtime_classes_are_read(ground: t.Any) -> None:
    ground.add(
        stored({"metadata": {"name": "k"}, "overhead": {"podFixed": {"cpu": "8"}}}, "RuntimeClass", "node.k8s.io/v1")
    )
    answer = ask(ground, groups=[X.group(1, X.container(cpu=1), runtimeClassName="k")])
    assert "each with 9 cpu" in answer["reasons"][0]


def test_the_objects_of_a_training_are_a_gang(ground: t.Any) -> None:
    template = X.template(X.container(gpu=1), labels={"app": "s"})
    objects = [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {}},
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "s", "namespace": NAMESPACE},
            "spec": {"replicas": 2, "template": template},
        },
    ]
    assert ask(ground, definition=objects)["nearest"] == [{"name": "s", "replicas": 1}]


def test_pods_that_leave_are_not_counted(ground: t.Any) -> None:
    ground.add(X.pod("old-0", "n1", X.container(gpu=1), labels={"job": "old"}))
    groups = [X.group(1, X.container(gpu=1))]
    assert ask(ground, groups=groups)["fits"] is False
    assert ask(ground, groups=groups, leaving="job=old")["fits"] is True


def test_nodes_to_come_are_counted_without_the_daemons(ground: t.Any) -> None:
    spec = {"template": X.template(X.container(cpu=2))}
    ground.add(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "d", "namespace": "kube-system"},
            "spec": spec,
        }
    )
    pool = {"name": "pool", "count": 2, "allocatable": {"cpu": 16}, "labels": {"pool": "new"}, "taints": []}
    groups = [X.group(2, X.container(cpu=14), nodeSelector={"pool": "new"})]
    assert ask(ground, groups=groups, node_templates=[pool])["fits"] is True
    assert ask(ground, groups=groups, node_templates=[{**pool, "count": 1}])["nearest"] == [
        {"name": "worker", "replicas": 1}
    ]
    groups = [X.group(2, X.container(cpu=15), nodeSelector={"pool": "new"})]
    assert ask(ground, groups=groups, node_templates=[pool])["fits"] is False


def test_without_a_right_to_nodes_nothing_is_judged_of_them(ground: t.Any) -> None:
    refuse(ground, "Node")
    answer = ask(ground, groups=[X.group(9, X.container(gpu=1))])
    assert (answer["fits"], answer["reasons"], answer["nearest"]) == (None, [], [])
    assert answer["groups"] == [{"name": "worker", "replicas": 9, "fitting": None}]
    assert answer["message"] == (
        "Whether all pods fit at once is not judged: no right to list objects of kind Node (User x may not list Node.)."
    )


def test_without_a_right_to_nodes_a_quota_still_refuses(ground: t.Any) -> None:
    ground.add(stored(X.quota({"pods": "1"}), "ResourceQuota"))
    refuse(ground, "Node")
    answer = ask(ground, groups=[X.group(2)])
    assert answer["fits"] is False
    assert answer["not_judged"] == ["no right to list objects of kind Node (User x may not list Node.)"]


def test_without_a_right_to_pods_only_empty_nodes_refuse(ground: t.Any) -> None:
    refuse(ground, "Pod")
    assert ask(ground, groups=[X.group(2, X.container(gpu=1))])["fits"] is None
    assert ask(ground, groups=[X.group(3, X.container(gpu=1))])["fits"] is False


@pytest.mark.parametrize(
    "kind", ["Pod", "LimitRange", "ResourceQuota", "PersistentVolumeClaim", "StorageClass", "DaemonSet", "RuntimeClass"]
)
def test_each_missing_right_is_named_and_no_error(ground: t.Any, kind: str) -> None:
    refuse(ground, kind)
    mounted = {"volumes": [{"name": "c", "persistentVolumeClaim": {"claimName": "c"}}], "runtimeClassName": "k"}
    pool = {"name": "pool", "count": 1, "allocatable": {"cpu": 1}, "labels": {}, "taints": []}
    made = X.claim("c", "ReadWriteMany")
    answer = ask(ground, groups=[X.group(1, **mounted)], definition=[made], node_templates=[pool])
    assert answer["fits"] is None
    assert any(kind in text for text in answer["not_judged"]), answer["not_judged"]


def test_a_volume_that_may_not_be_read_is_not_judged(ground: t.Any) -> None:
    ground.add(X.claim("c", "ReadWriteMany", volume="v"))
    refuse(ground, "PersistentVolume")
    mounted = {"volumes": [{"name": "c", "persistentVolumeClaim": {"claimName": "c"}}]}
    answer = ask(ground, groups=[X.group(1, **mounted)])
    assert answer["fits"] is None
    assert any("PersistentVolume v" in text for text in answer["not_judged"])


def test_a_server_that_does_not_answer_is_an_error(ground: t.Any) -> None:
    ground.fail("list", "", Unreachable("It does not answer."))
    with pytest.raises(Unreachable):
        preflight(ground, gang([], NAMESPACE, rows=[X.group(1)]))


def test_nothing_is_asked_for_no_pods(cluster: t.Any) -> None:
    cluster.requests.clear()
    assert ask(cluster)["fits"] is True
    assert cluster.requests == []

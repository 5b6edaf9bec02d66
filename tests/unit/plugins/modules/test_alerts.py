# SPDX-License-Identifier: GPL-3.0-or-later

"""Option alerts: rules come and go with it, where the cluster serves their kind, and are silently left out where not."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden, InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref, ServedKind
from ansible_collections.muster.ml.plugins.module_utils._manifests.monitoring import MONITORS, RULES
from ansible_collections.muster.ml.plugins.modules import (
    elastic_job,
    etcd_cluster,
    jobset,
    nats_cluster,
    object_store,
    rabbitmq_cluster,
    training_statefulset,
    vllm_server,
)
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.tasks import actions

POD = {"name": "x", "image": "example/x:1"}
LATER = {**POD, "wait": False, "preflight": False}
FIRST = {
    elastic_job: ({**LATER, "replicas": 1, "script": "/x.py"}, "TrainingFailed"),
    jobset: ({**LATER, "hosts": 1}, "TrainingFailed"),
    training_statefulset: ({**POD, "replicas": 1}, "TrainingFailed"),
    rabbitmq_cluster: ({"name": "x"}, "ServerDown"),
    etcd_cluster: ({"name": "x"}, "ServerDown"),
    nats_cluster: ({"name": "x"}, "ServerDown"),
    object_store: ({"name": "x"}, "ServerDown"),
    vllm_server: ({"name": "x", "model": "example/chat"}, "ServerDown"),
}


def run(module: t.Any, cluster: FakeCluster, **more: t.Any) -> dict[str, str]:
    return actions(tasks.run(module, cluster, {"namespace": "default", **FIRST[module][0], **more}))


@pytest.mark.parametrize("module", FIRST)
@pytest.mark.parametrize("kind", MONITORS)
def test_rules_come_and_go(cluster: FakeCluster, module: t.Any, kind: str) -> None:
    cluster.add(tasks.DISKS)
    if module is jobset:
        cluster.kinds_served["jobset.x-k8s.io/v1alpha2", "JobSet"] = ServedKind("jobsets", True)
    assert not [name for name in run(module, cluster, alerts={}) if name.partition("/")[0] in RULES.values()]
    for name in (kind, RULES[kind]):
        cluster.kinds_served[MONITORS[kind], name] = ServedKind(f"{name.lower()}s", True)
    rules = f"{RULES[kind]}/x"
    assert run(module, cluster, alerts={})[rules] == "created"
    assert run(module, cluster, alerts={})[rules] == "unchanged"
    (group,) = cluster.objects[MONITORS[kind].partition("/")[0], RULES[kind], "default", "x"]["spec"]["groups"]
    assert group["rules"][0]["alert"] == FIRST[module][1]
    assert {rule["labels"]["workload"] for rule in group["rules"]} == {"x"}
    assert run(module, cluster)[rules] == "deleted"


@pytest.mark.parametrize("module", FIRST)
def test_bad_thresholds_are_refused_before_anything_is_asked(cluster: FakeCluster, module: t.Any) -> None:
    with pytest.raises(InvalidInput, match=r"alerts.free_ratio: 2.0 is not between"):
        run(module, cluster, alerts={"free_ratio": 2})
    assert cluster.writes == []


@pytest.mark.parametrize("module", FIRST)
@pytest.mark.parametrize("kind", MONITORS)
def test_who_may_not_read_rules_needs_none(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, module: t.Any, kind: str) -> None:
    cluster.add(tasks.DISKS)
    cluster.kinds_served["jobset.x-k8s.io/v1alpha2", "JobSet"] = ServedKind("jobsets", True)
    cluster.kinds_served[MONITORS[kind], RULES[kind]] = ServedKind("rules", True)
    reads = cluster.get

    def get(ref: Ref) -> Manifest | None:
        if ref.kind in RULES.values():
            raise Forbidden(f"{ref} may not be read")
        return reads(ref)

    monkeypatch.setattr(cluster, "get", get)
    assert set(run(module, cluster).values()) == {"created"}

# SPDX-License-Identifier: GPL-3.0-or-later

"""Who may connect: by what a network that enforces policies would let in."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import Manifest
from ansible_collections.muster.ml.plugins.module_utils._manifests.pods import PodSettings
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic import native as elastic
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic import pytorch_job
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic import spec as elastic_spec
from ansible_collections.muster.ml.plugins.module_utils._systems.etcd import manifests as etcd
from ansible_collections.muster.ml.plugins.module_utils._systems.nats import manifests as nats
from ansible_collections.muster.ml.plugins.module_utils._systems.persia import native, operator, spec
from ansible_collections.muster.ml.tests.unit.fakes.trainings import PERSIA as SMALL

STRANGER = {"app": "curious"}
MONITORING = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
POD = PodSettings(image="example/x:1")
PERSIA: dict[str, t.Any] = {**SMALL, "namespace": "ml"}
ELASTIC: dict[str, t.Any] = {
    "name": "digits", "namespace": "ml", "image": "example/torch:1", "replicas": 2, "script": "/train.py",
}  # fmt: skip


def made(system: str, **options: t.Any) -> list[Manifest]:
    if system == "etcd":
        return etcd.manifests(etcd.EtcdCluster(name="etcd", namespace="ml", size=3, pod=PodSettings(image="etcd:v3.5.35"), **options))
    if system.startswith("nats"):
        backend = t.cast("t.Any", system.partition("-")[2])
        return nats.manifests(nats.NatsCluster(name="n", namespace="ml", pod=POD, backend=backend, **options))
    if system == "persia":
        return native.manifests(spec.from_params({**PERSIA, **options}))
    if system == "persia-operator":
        return operator.manifests(spec.from_params({**PERSIA, "backend": "operator", **options}))
    job = elastic_spec.from_params({**ELASTIC, "backend": system, **options})
    return elastic.manifests(job) if system == "native" else pytorch_job.manifests(job, "run")


SYSTEMS = ("etcd", "nats-statefulset", "nats-operator", "persia", "persia-operator", "native", "pytorchjob")
# Pods that somebody else makes from our objects, with the labels that he is known to give.
ELSEWHERE = {
    "nats-operator": [{"app": "nats", "nats_cluster": "n", "nats_version": "2.14.2"}],
    "persia-operator": [{"persia_job": "adult"}],
}


def policy_of(objects: list[Manifest]) -> Manifest:
    (found,) = [item for item in objects if item["kind"] == "NetworkPolicy"]
    return t.cast("Manifest", found["spec"])


def templates(value: t.Any) -> t.Iterator[dict[str, str]]:
    """Labels of all pods that the objects make."""
    if isinstance(value, dict):
        if "template" in value and "containers" in (value["template"].get("spec") or {}):
            yield value["template"]["metadata"]["labels"]
        for item in value.values():
            yield from templates(item)
    elif isinstance(value, list):
        for item in value:
            yield from templates(item)


def fits(selector: Mapping[str, t.Any], labels: Mapping[str, str]) -> bool:
    return (selector.get("matchLabels") or {}).items() <= labels.items()


def lets_in(policy: Manifest, port: int, labels: Mapping[str, str] | None) -> bool:
    """Whether a pod of the same namespace may connect; None: somebody from outside of the cluster."""
    for rule in policy["ingress"]:
        if rule.get("ports") and port not in [entry["port"] for entry in rule["ports"]]:
            continue
        # As Kubernetes has it: no peers, and none in a list, are everybody.
        if not rule.get("from"):
            return True
        for peer in rule["from"]:
            if labels is not None and "namespaceSelector" not in peer and fits(peer["podSelector"], labels):
                return True
    return False


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_pod_has_the_policy_and_may_talk_with_the_others(system: str) -> None:
    objects = made(system)
    policy = policy_of(objects)
    labels = [*templates(objects), *ELSEWHERE.get(system, [])]
    assert labels
    assert policy["policyTypes"] == ["Ingress"]
    for own in labels:
        assert fits(policy["podSelector"], own)
        assert lets_in(policy, {"etcd": 2380, "nats-statefulset": 6222, "nats-operator": 6222}.get(system, 40000), own)


@pytest.mark.parametrize(
    ("system", "port", "stranger", "outside"),
    [
        ("etcd", 2379, True, False),
        ("etcd", 2380, False, False),
        ("etcd", 2381, True, True),
        ("nats-statefulset", 4222, True, False),
        ("nats-operator", 6222, False, False),
        ("nats-operator", 8222, True, True),
        ("persia", 8888, False, False),
        ("persia", 9091, False, False),
        ("persia-operator", 9091, False, False),
        ("native", 29400, False, False),
        ("pytorchjob", 29400, False, False),
    ],
)
def test_who_else_may_connect(system: str, port: int, stranger: bool, outside: bool) -> None:
    """Health is asked through the API server, which may come from an address outside of the cluster."""
    policy = policy_of(made(system))
    assert (lets_in(policy, port, STRANGER), lets_in(policy, port, None)) == (stranger, outside)


@pytest.mark.parametrize("system", SYSTEMS)
def test_it_is_an_option_who_else(system: str) -> None:
    assert "NetworkPolicy" not in {item["kind"] for item in made(system, network_policy=False)}
    policy = policy_of(made(system, network_policy_from=[MONITORING]))
    assert [MONITORING in rule["from"] for rule in policy["ingress"] if "from" in rule].count(True) == 1


@pytest.mark.parametrize("wrong", [{"namespace_selector": {}}, {}])
def test_nobody_is_let_in_by_a_mistake(wrong: dict[str, t.Any]) -> None:
    with pytest.raises(InvalidInput, match="network_policy_from"):
        made("native", network_policy_from=[wrong])


def test_trainings_that_are_there_are_not_other_ones_for_it() -> None:
    for make, given in ((spec.from_params, PERSIA), (elastic_spec.from_params, ELASTIC)):
        parts = make({**given, "network_policy": False}).parts
        assert parts == make({**given, "network_policy_from": [MONITORING]}).parts
        assert not [name for name in parts if "network" in name]

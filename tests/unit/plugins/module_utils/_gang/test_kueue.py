# SPDX-License-Identifier: GPL-3.0-or-later
"""Which gangs a queue of Kueue never admits, and which it may."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden
from ansible_collections.muster.ml.plugins.module_utils._gang.judge import Verdict
from ansible_collections.muster.ml.plugins.module_utils._gang.preflight import gang, preflight
from ansible_collections.muster.ml.plugins.module_utils._kube.kinds import ServedKind
from ansible_collections.muster.ml.tests.unit.fakes.gang import NAMESPACE, Things

Manifest = dict[str, t.Any]
X = Things()
KUEUE = "kueue.x-k8s.io/v1beta2"
TPU = "google.com/tpu"


def stored(kind: str, name: str, spec: Manifest, **metadata: str) -> Manifest:
    return {"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def cluster_queue(name: str, *flavors: Manifest, cohort: str = "") -> Manifest:
    """FLAVORS: the nominal quota by resource; their names are f0, f1..."""
    rows = [
        {"name": f"f{number}", "resources": [{"name": key, "nominalQuota": value} for key, value in row.items()]}
        for number, row in enumerate(flavors)
    ]
    parts = [{"coveredResources": list(flavors[0]), "flavors": rows}]
    return stored("ClusterQueue", name, {"resourceGroups": parts, **({"cohortName": cohort} if cohort else {})})


def tpus(quota: int) -> Manifest:
    return {TPU: quota, "cpu": "100"}


@pytest.fixture
def ground(cluster: t.Any) -> t.Any:
    """A cluster with Kueue and room on its nodes, and queue q of the namespace, which leads to ClusterQueue cq."""
    for kind, plural, namespaced in (("LocalQueue", "localqueues", True), ("ClusterQueue", "clusterqueues", False)):
        cluster.kinds_served[KUEUE, kind] = ServedKind(plural, namespaced=namespaced)
    cluster.add(*X.nodes(20, **{TPU: 4}), stored("LocalQueue", "q", {"clusterQueue": "cq"}, namespace=NAMESPACE))
    return cluster


def asked(cluster: t.Any, *counts: int, queue: str = "q", cpu: str = "1") -> Verdict:
    """The verdict of groups of so many pods with four TPUs each."""
    rows = [
        X.group(count, X.container(limits={TPU: "4"}, cpu=cpu), name=f"g{number}", labels={"kueue.x-k8s.io/queue-name": queue})
        for number, count in enumerate(counts)
    ]
    return preflight(cluster, gang([], NAMESPACE, rows=rows))


NEVER = "queue q never admits it: {who} of google.com/tpu, and ClusterQueue cq has {most} at most"
CASES: list[tuple[str, list[Manifest], tuple[int, ...], str]] = [
    ("as much as there is", [cluster_queue("cq", tpus(16))], (4,), ""),
    ("more", [cluster_queue("cq", tpus(16))], (5,), NEVER.format(who="5 pods of group g0 need 20", most=16)),
    ("a group less", [cluster_queue("cq", tpus(16))], (4, 0), ""),
    ("two groups", [cluster_queue("cq", tpus(16))], (3, 2), NEVER.format(who="all groups together need 20", most=16)),
    (
        "a group takes one flavor",
        [cluster_queue("cq", tpus(8), tpus(8))],
        (4,),
        NEVER.format(who="4 pods of group g0 need 16", most="in one flavor 8"),
    ),
    ("two groups, a flavor each", [cluster_queue("cq", tpus(8), tpus(8))], (2, 2), ""),
    ("more than all flavors", [cluster_queue("cq", tpus(8), tpus(8))], (2, 2, 1), NEVER.format(who="all groups together need 20", most=16)),
    ("a cohort is not judged", [cluster_queue("cq", tpus(8), cohort="lab")], (5,), ""),
    ("a resource without quota is not judged", [cluster_queue("cq", {"cpu": "100"})], (5,), ""),
    ("a ClusterQueue that is not there yet", [], (5,), ""),
]


@pytest.mark.parametrize(("objects", "counts", "says"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_what_a_queue_admits_at_most(ground: t.Any, objects: list[Manifest], counts: tuple[int, ...], says: str) -> None:
    ground.add(*objects)
    found = asked(ground, *counts)
    assert (found.fits, list(found.reasons)) == ((False, [says]) if says else (None, []))
    assert any(text.startswith("when Kueue's queue q admits") for text in found.not_judged)


def test_the_resource_that_lacks_is_named(ground: t.Any) -> None:
    ground.add(cluster_queue("cq", tpus(16)))
    assert "2 pods of group g0 need 120 of cpu, and ClusterQueue cq has 100 at most" in asked(ground, 2, cpu="60").reasons[0]


def test_a_queue_that_is_not_there_is_refused_with_those_that_are(ground: t.Any) -> None:
    (reason,) = asked(ground, 1, queue="trainin").reasons
    assert reason == f"LocalQueue {NAMESPACE}/trainin does not exist (there are q in the namespace)"


def test_who_cannot_read_queues_is_not_refused(ground: t.Any) -> None:
    ground.add(cluster_queue("cq", tpus(4)))
    listed = ground.list

    def listing(api_version: str, kind: str, *more: t.Any) -> t.Any:
        if api_version == KUEUE:
            raise Forbidden(f"User x may not list {kind}.")
        return listed(api_version, kind, *more)

    ground.list = listing
    found = asked(ground, 5)
    assert found.fits is None
    assert any("no right to list objects of kind LocalQueue" in text for text in found.not_judged)


def test_a_cluster_without_kueue_is_not_asked_for_queues(cluster: t.Any) -> None:
    cluster.add(*X.nodes(2, **{TPU: 4}))
    assert asked(cluster, 2).fits is None

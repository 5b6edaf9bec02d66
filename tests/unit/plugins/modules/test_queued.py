# SPDX-License-Identifier: GPL-3.0-or-later
"""What a queue of Kueue is to admit: the labels, why it waits, what is refused, and what Kueue changes in it."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, NoRoom, WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref, ServedKind
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import LEADER_WORKER_SET
from ansible_collections.muster.ml.plugins.modules import (
    elastic_job,
    job_info,
    persia_job,
    training_statefulset,
    triton_server,
    vllm_server,
)
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.pods import pod
from ansible_collections.muster.ml.tests.unit.fakes.trainings import PERSIA

Manifest = dict[str, t.Any]
KUEUE = "kueue.x-k8s.io/v1beta2"
QUEUE = {"kueue.x-k8s.io/queue-name": "research", "kueue.x-k8s.io/priority-class": "urgent"}
PENDING = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "insufficient unused quota"}
ADMITTED = {"type": "Admitted", "status": "True"}
ELASTIC: Manifest = {
    "name": "digits",
    "namespace": "default",
    "image": "example/torch:1",
    "replicas": 2,
    "min_replicas": 1,
    "max_replicas": 3,
    "script": "/train.py",
    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
    "queue_name": "research",
    "queue_priority_class": "urgent",
    "wait": False,
}
BACKENDS = {
    "native": Ref("batch/v1", "Job", "digits", "default"),
    "pytorchjob": Ref("kubeflow.org/v1", "PyTorchJob", "digits", "default"),
    "trainjob": Ref("trainer.kubeflow.org/v1alpha1", "TrainJob", "digits", "default"),
}
PLACED = {"nodeSelector": {"pool": "a", "flavor": "spot"}, "tolerations": [{"key": "spot", "operator": "Exists"}]}


class Kueue(FakeCluster):
    """A cluster with Kueue, whose webhooks suspend objects of some kinds in a queue, and gate pods."""

    def __init__(self) -> None:
        super().__init__()
        self.integrations = {"Job", "PyTorchJob", "TrainJob", "Pod"}
        for kind in ("Workload", "LocalQueue", "ClusterQueue"):
            self.kinds_served[KUEUE, kind] = ServedKind(f"{kind.lower()}s", namespaced=kind != "ClusterQueue")
        made = (("trainer.kubeflow.org/v1alpha1", "TrainingRuntime"), LEADER_WORKER_SET)
        for ref in (*BACKENDS.values(), *(Ref(*kind, "") for kind in made)):
            self.kinds_served.setdefault((ref.api_version, ref.kind), ServedKind(f"{ref.kind.lower()}s", namespaced=True))
        self.quota("8")

    def quota(self, cpu: str) -> None:
        """Give ClusterQueue cq, to which queue research leads, so many CPUs."""
        rows = [{"name": "cpu", "nominalQuota": cpu}, {"name": "memory", "nominalQuota": "64Gi"}]
        groups = [{"coveredResources": ["cpu", "memory"], "flavors": [{"name": "any", "resources": rows}]}]
        of = {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": {"name": "research", "namespace": "default"}}
        self.add({**of, "spec": {"clusterQueue": "cq"}})
        self.add({"apiVersion": KUEUE, "kind": "ClusterQueue", "metadata": {"name": "cq"}, "spec": {"resourceGroups": groups}})

    def create(self, manifest: Manifest, **options: t.Any) -> Manifest:
        kind, spec = manifest["kind"], manifest.get("spec") or {}
        if kind in self.integrations and QUEUE.items() <= (manifest["metadata"].get("labels") or {}).items():
            held = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]} if kind == "Pod" else {"suspend": True}
            spec = {**spec, "runPolicy": {**spec["runPolicy"], **held}} if kind == "PyTorchJob" else {**spec, **held}
        return super().create({**manifest, "spec": spec}, **options)

    def workload(self, name: str, *conditions: dict[str, str], uid: str = "", at: int = 0) -> None:
        """A Workload that says this, of an object or of the group of pods that is called like it."""
        metadata = {"name": name, "namespace": "default", "labels": {"kueue.x-k8s.io/job-uid": uid}}
        created = {"creationTimestamp": f"2026-11-21T12:00:{at:02}Z"}
        self.add({"apiVersion": KUEUE, "kind": "Workload", "metadata": {**metadata, **created}, "status": {"conditions": list(conditions)}})

    def changed(self, ref: Ref, **spec: t.Any) -> str:
        """Change the spec of an object as Kueue does. Returns its UID."""
        live = self.get(ref)
        assert live is not None
        if "template" in spec:
            placed = ("f:nodeSelector", "f:tolerations")
            (ours,) = live["metadata"]["managedFields"]
            for field in placed:
                del ours["fieldsV1"]["f:spec"]["f:template"]["f:spec"][field]
            theirs = {"f:spec": {"f:template": {"f:spec": {field: {} for field in placed}}}}
            live["metadata"]["managedFields"].append({**ours, "manager": "kueue", "operation": "Update", "fieldsV1": theirs})
        self.add({**live, "spec": {**live["spec"], **spec}})
        return str(live["metadata"]["uid"])

    def labels(self, ref: Ref) -> Manifest:
        live = self.get(ref)
        assert live is not None
        return dict(live["metadata"]["labels"])


@pytest.fixture
def kueue() -> Kueue:
    return Kueue()


def elastic(cluster: FakeCluster, **more: t.Any) -> Manifest:
    return tasks.run(elastic_job, cluster, {**ELASTIC, **more})


def sized(backend: str) -> Manifest:
    return {"backend": backend, **({"min_replicas": 2, "max_replicas": 2} if backend == "trainjob" else {})}


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_workload_of_an_elastic_job_is_queued_and_its_pods_are_not(kueue: Kueue, backend: str) -> None:
    elastic(kueue, **sized(backend))
    assert QUEUE.items() <= kueue.labels(BACKENDS[backend]).items()
    elastic(kueue, name="free", queue_name=None, queue_priority_class=None, **sized(backend))
    assert not [one for one in kueue.objects.values() if one["metadata"]["name"] == "free" and "kueue" in str(one)]


@pytest.mark.parametrize(("least", "elastic_for_kueue"), [(1, True), (2, False)])
def test_kueue_knows_which_job_may_grow(kueue: Kueue, least: int, elastic_for_kueue: bool) -> None:
    elastic(kueue, min_replicas=least, max_replicas=least + least % 2)
    live = kueue.get(BACKENDS["native"])
    assert live is not None
    assert ("kueue.x-k8s.io/elastic-job" in live["metadata"].get("annotations", {})) == elastic_for_kueue


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_elastic_job_says_what_it_waits_for(kueue: Kueue, backend: str) -> None:
    elastic(kueue, **sized(backend))
    policy = {"runPolicy": {"suspend": True}} if backend == "pytorchjob" else {"suspend": True}
    kueue.workload("w", PENDING, uid=kueue.changed(BACKENDS[backend], **policy))
    told = elastic(kueue, **sized(backend))
    assert (told["state"], told["changed"]) == ("Pending", False)
    assert told["reason"].endswith("waits in queue research: insufficient unused quota")


@pytest.mark.parametrize(
    ("places", "told"),
    [
        # As Kueue's documentation has it ("Pending Workloads on-demand"), with v1beta2 of sigs.k8s.io/kueue/apis/visibility.
        ({"w": (1, 1), "other": (0, 0)}, "; number 2 of 2 in the queue"),
        ({"w": (0, 4)}, "; number 1 of 1 in the queue, 5 in its ClusterQueue"),
        ({"other": (0, 0)}, ""),
        ({}, ""),
    ],
)
def test_what_waits_says_its_place(kueue: Kueue, places: dict[str, tuple[int, int]], told: str) -> None:
    elastic(kueue)
    kueue.workload("w", PENDING, uid=kueue.changed(BACKENDS["native"], suspend=True))
    rows = [
        {"metadata": {"name": name}, "localQueueName": "research", "positionInLocalQueue": own, "positionInClusterQueue": all_}
        for name, (own, all_) in places.items()
    ]
    path = "/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/default/localqueues/research/pendingworkloads"
    kueue.paths[path] = {"kind": "PendingWorkloadsSummary", "apiVersion": "visibility.kueue.x-k8s.io/v1beta2", "items": rows}
    assert elastic(kueue)["reason"].endswith(f"waits in queue research: insufficient unused quota{told}")
    kueue.workload("w", {"type": "QuotaReserved", "status": "True"}, {"type": "Admitted", "status": "False", "message": "asks"}, uid="")
    assert "number" not in elastic(kueue)["reason"]


def test_the_place_is_read_only_when_the_reason_is_told(kueue: Kueue, monkeypatch: pytest.MonkeyPatch) -> None:
    elastic(kueue)
    kueue.workload("w", PENDING, uid=kueue.changed(BACKENDS["native"], suspend=True))
    row = {"metadata": {"name": "w"}, "localQueueName": "research"}
    path = "/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/default/localqueues/research/pendingworkloads"
    kueue.paths[path] = {"items": [row]}
    read, asked, looked = kueue.read, [0], [0]
    listed = kueue.list

    def counted(path: str, *, timeout: float) -> t.Any:
        asked[0] += 1
        return read(path, timeout=timeout)

    def looking(*given: t.Any, **more: t.Any) -> t.Any:
        looked[0] += given[1] == "Pod"
        return listed(*given, **more)

    monkeypatch.setattr(kueue, "read", counted)
    monkeypatch.setattr(kueue, "list", looking)
    with pytest.raises(WaitTimeout, match=r"insufficient unused quota\); number 1 of 1 in the queue"):
        elastic(kueue, wait=True, wait_timeout=4)
    # Once before the wait, and once for the message at its end.
    assert asked[0] == 2 < looked[0]


def test_a_job_that_grows_says_what_its_new_pod_waits_for(kueue: Kueue) -> None:
    elastic(kueue, replicas=3)
    ref, labels = BACKENDS["native"], {"muster.ml/elastic-job": "digits", "muster.ml/group": "worker"}
    kueue.add(*(pod(f"digits-{index}", labels=labels) for index in (0, 1)))
    uid = kueue.changed(ref, suspend=False)
    kueue.workload("a-newer", PENDING, uid=uid, at=9)
    kueue.workload("of-two", ADMITTED, uid=uid, at=1)
    told = elastic(kueue, replicas=3)
    assert (told["state"], told["groups"][0]["running"]) == ("Degraded", 2)
    assert told["reason"].endswith("waits in queue research: insufficient unused quota")
    kueue.workload("a-newer", ADMITTED, uid=uid, at=9)
    assert "queue" not in elastic(kueue, replicas=3)["reason"]


def test_a_queue_admits_all_replicas_or_none(kueue: Kueue) -> None:
    kueue.quota("1")
    with pytest.raises(NoRoom, match="queue research never admits it: 2 pods of group digits need 2 of cpu"):
        elastic(kueue, wait=True)
    assert kueue.writes == []


@pytest.mark.parametrize("backend", ["native", "pytorchjob"])
def test_what_kueue_would_not_hold_is_refused(kueue: Kueue, backend: str) -> None:
    kueue.integrations.clear()
    with pytest.raises(InvalidInput, match=r"would not wait in its queue: Kueue does not hold .*digits") as caught:
        elastic(kueue, backend=backend)
    assert "kueue_options.integrations" in str(caught.value.hint)
    assert kueue.writes == []
    elastic(kueue, backend=backend, preflight=False)


def test_an_elastic_job_stays_where_kueue_has_placed_it(kueue: Kueue) -> None:
    elastic(kueue, node_selector={"pool": "a"})
    live = kueue.get(BACKENDS["native"])
    assert live is not None
    template = live["spec"]["template"]
    placed = {**PLACED, "tolerations": [*template["spec"]["tolerations"], *PLACED["tolerations"]]}
    kueue.changed(BACKENDS["native"], template={**template, "spec": {**template["spec"], **placed}})
    elastic(kueue, node_selector={"pool": "a"})
    live = kueue.get(BACKENDS["native"])
    assert live is not None
    assert placed.items() <= live["spec"]["template"]["spec"].items()
    assert elastic(kueue, node_selector={"pool": "a"})["changed"] is False


def test_a_priority_is_of_a_queue(kueue: Kueue) -> None:
    with pytest.raises(InvalidInput, match="there is no queue without queue_name"):
        elastic(kueue, queue_name=None)


GROUPS = ("trainer", "data-compose", "middleware", "emb-server", "metrics-gateway")
WORKLOADS = {
    "trainer": "Job",
    "data-compose": "Job",
    "middleware": "StatefulSet",
    "emb-server": "StatefulSet",
    "metrics-gateway": "Deployment",
}


def persia(cluster: FakeCluster, **more: t.Any) -> Manifest:
    return tasks.run(persia_job, cluster, {**PERSIA, "queue_name": "research", "queue_priority_class": "urgent", "wait": False, **more})


def templates(cluster: FakeCluster) -> dict[str, Manifest]:
    """The metadata of the pods of each group."""
    found = {name: cluster.stored(kind, f"adult-{name}", "default") for name, kind in WORKLOADS.items()}
    return {name: item["spec"]["template"]["metadata"] for name, item in found.items() if item}


def test_all_pods_of_persia_are_one_group(kueue: Kueue) -> None:
    persia(kueue)
    found = templates(kueue)
    groups = {row["labels"]["kueue.x-k8s.io/pod-group-name"] for row in found.values()}
    assert (set(found), len(groups)) == (set(GROUPS), 1)
    assert all({**QUEUE, "kueue.x-k8s.io/managed": "true"}.items() <= row["labels"].items() for row in found.values())
    counted = {"kueue.x-k8s.io/pod-group-total-count": "5", "kueue.x-k8s.io/pod-suspending-parent": "muster.ml"}
    assert all(counted.items() <= row["annotations"].items() for row in found.values())
    workloads = [kueue.stored(kind, f"adult-{name}", "default") or {} for name, kind in WORKLOADS.items()]
    assert not [one for one in workloads if "kueue" in str(one["metadata"]["labels"])]
    assert persia(kueue)["changed"] is False


def test_another_run_of_persia_is_another_group(kueue: Kueue) -> None:
    persia(kueue)
    before = templates(kueue)["trainer"]["labels"]
    persia(kueue, restart=True)
    assert templates(kueue)["trainer"]["labels"] != before


def test_persia_says_what_it_waits_for(kueue: Kueue) -> None:
    persia(kueue)
    kueue.workload(templates(kueue)["trainer"]["labels"]["kueue.x-k8s.io/pod-group-name"], PENDING)
    told = persia(kueue)
    assert (told["state"], told["changed"]) == ("Pending", False)
    assert told["reason"].endswith("waits in queue research: insufficient unused quota")
    assert "waits in queue" not in persia(kueue, queue_name=None, queue_priority_class=None, name="free")["reason"]


def test_persia_needs_the_integration_of_pods(kueue: Kueue) -> None:
    kueue.integrations.remove("Pod")
    with pytest.raises(InvalidInput, match=r"does not hold .*adult-trainer \(integration pod\)"):
        persia(kueue)
    with pytest.raises(InvalidInput, match="no field for queue_name, queue_priority_class"):
        persia(kueue, backend="operator")


def test_what_has_ended_gives_its_quota_back_once(kueue: Kueue) -> None:
    persia(kueue)
    labels = {**templates(kueue)["trainer"]["labels"], "muster.ml/role": "nn-worker"}
    kueue.add(pod("adult-trainer-0", "Succeeded", labels=labels))
    kueue.set_status(Ref("batch/v1", "Job", "adult-trainer", "default"), {"conditions": [{"type": "Complete", "status": "True"}]})
    told = persia(kueue)
    assert [row["action"] for row in told["objects"] if row["kind"] == "Pod"] == ["updated"]
    live = kueue.stored("Pod", "adult-trainer-0", "default")
    assert live is not None
    assert live["metadata"]["annotations"]["kueue.x-k8s.io/retriable-in-group"] == "false"
    assert persia(kueue)["changed"] is False


SERVERS: list[tuple[t.Any, str, str, Manifest]] = [
    (triton_server, "Deployment", "triton", {"model_repository": "gs://example-models/live"}),
    (vllm_server, "Deployment", "llm", {"model": "example/chat"}),
    (vllm_server, "LeaderWorkerSet", "llm", {"model": "example/chat", "hosts": 2}),
    (training_statefulset, "StatefulSet", "ranks", {"name": "ranks", "image": "example/torch:1", "replicas": 2}),
]
NAMED = {"namespace": "default", "queue_name": "research", "queue_priority_class": "urgent"}
GATED = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}], "phase": "Pending"}


@pytest.mark.parametrize(("module", "kind", "name", "given"), SERVERS)
def test_servers_and_stateful_sets_are_queued(kueue: Kueue, module: t.Any, kind: str, name: str, given: Manifest) -> None:
    tasks.run(module, kueue, {**NAMED, **given})
    live = kueue.stored(kind, name, "default")
    assert live is not None
    assert QUEUE.items() <= live["metadata"]["labels"].items()
    # Of servers Kueue labels the pods itself.
    template = live["spec"].get("template") or live["spec"]["leaderWorkerTemplate"]["leaderTemplate"]
    assert template["metadata"]["labels"].get("kueue.x-k8s.io/queue-name") == ("research" if kind == "StatefulSet" else None)
    assert tasks.run(module, kueue, {**NAMED, **given})["changed"] is False


@pytest.mark.parametrize(("module", "kind", "name", "given"), SERVERS)
def test_a_wait_for_servers_says_what_they_wait_for(kueue: Kueue, module: t.Any, kind: str, name: str, given: Manifest) -> None:
    tasks.run(module, kueue, {**NAMED, **given})
    live = kueue.stored(kind, name, "default")
    assert live is not None
    selected = live["spec"]["selector"]["matchLabels"] if "selector" in live["spec"] else {"leaderworkerset.sigs.k8s.io/name": name}
    gated = pod(f"{name}-0", "Pending", labels={**selected, **QUEUE})
    kueue.add({**gated, "metadata": {**gated["metadata"], "uid": "of-pod"}, "status": GATED})
    kueue.workload("w", PENDING, uid="of-pod" if kind == "Deployment" else live["metadata"]["uid"])
    with pytest.raises(WaitTimeout, match=r"waits in queue research: insufficient unused quota"):
        tasks.run(module, kueue, {**NAMED, **given, "wait": True, "wait_timeout": 5})


def test_the_state_of_a_stateful_set_says_what_it_waits_for(kueue: Kueue) -> None:
    tasks.run(training_statefulset, kueue, {**NAMED, **SERVERS[3][3]})
    live = kueue.stored("StatefulSet", "ranks", "default")
    assert live is not None
    kueue.workload("w", PENDING, uid=live["metadata"]["uid"])
    told = tasks.run(job_info, kueue, {"name": "ranks", "namespace": "default", "kind": "training_statefulset"})
    assert told["reason"] == "ranks: waits in queue research: insufficient unused quota"

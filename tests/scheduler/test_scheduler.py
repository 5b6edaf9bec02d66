# SPDX-License-Identifier: GPL-3.0-or-later
"""The gang preflight beside the real kube-scheduler: what is said of random gangs, and where their pods then are.

The nodes are objects without a kubelet, whose readiness the test reports; pods on them are placed and never run.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import json
import threading
import typing as t
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from faults.conftest import direct, writes_since
from support.places import BUILD

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden, NoRoom, Rejected
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context
from ansible_collections.muster.ml.plugins.module_utils._gang.judge import Verdict
from ansible_collections.muster.ml.plugins.module_utils._gang.preflight import gang, preflight
from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref, labels_of, ref_of
from ansible_collections.muster.ml.plugins.module_utils._kube.watching import Changes, watch_until
from ansible_collections.muster.ml.plugins.modules import elastic_job
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from scheduler.cases import CASE, LATE, Case, Manifest, cases, common, made

SEED, NUMBER, BATCH = 2, 112, 28
ENOUGH, ENOUGH_NEAREST = 35, 6
MOST_NOT_JUDGED = 0.4
"""Share of the cases."""
HEARTBEAT_S = 10.0
NOT_READY = "node.kubernetes.io/not-ready"


@dataclasses.dataclass
class Outcome:
    """What was said of a case, and what the scheduler did."""

    case: Case
    said: Verdict
    refused: list[str] = dataclasses.field(default_factory=list)
    """Pods that the API server did not take."""
    placed: int = 0
    waiting: list[str] = dataclasses.field(default_factory=list)
    nearest: Outcome | None = None
    """What became of the nearest size that was named."""

    @property
    def fits(self) -> bool:
        return not self.refused and not self.waiting and self.placed == self.asked

    @property
    def asked(self) -> int:
        return sum(int(group["replicas"]) for group in self.case.groups)

    def __str__(self) -> str:
        groups = json.dumps(self.case.groups)
        return f"{self.case.name}: said {self.said.message} {self.placed} of {self.asked} placed; {self.refused + self.waiting}; {groups}"


class Stage:
    """The API server, with the objects of the cases of one batch."""

    def __init__(self, cluster: HttpCluster, pool: ThreadPoolExecutor) -> None:
        self.cluster = cluster
        self.pool = pool

    def each(self, work: Callable[[t.Any], t.Any], items: Iterable[t.Any]) -> list[t.Any]:
        return list(self.pool.map(work, items))

    def apply(self, objects: Iterable[Manifest]) -> None:
        self.each(lambda item: self.cluster.apply(item, dry_run=False), objects)

    def report(self, node: Manifest) -> None:
        """What a kubelet would tell of its node."""
        now = f"{dt.datetime.now(dt.UTC):%Y-%m-%dT%H:%M:%SZ}"
        status = dict(node["status"])
        ready = {"type": "Ready", "status": str(status.pop("ready")), "reason": "Simulated", "lastHeartbeatTime": now}
        patch = {"status": {**status, "conditions": [{**ready, "lastTransitionTime": now}]}}
        self.cluster.patch(Ref("v1", "Node", node["metadata"]["name"]), patch, subresource="status", dry_run=False)

    @contextmanager
    def built(self, batch: list[Case]) -> Iterator[None]:
        """The objects of cases, on nodes that report until the block ends."""
        nodes = [node for case in batch for node in case.nodes]
        self.apply(made("v1", "Namespace", case.name) for case in batch)
        self.apply(map(_bare, nodes))
        self.each(self.report, nodes)
        with self.heartbeats(nodes):
            self._fill(batch, nodes)
            yield

    def _fill(self, batch: list[Case], nodes: list[Manifest]) -> None:
        # A new node has a taint until its controller has seen that it is ready, which takes that a while for so many.
        ready = [node for node in nodes if node["status"]["ready"]]
        self.each(lambda node: self.cluster.apply(_bare(node), dry_run=False, force_conflicts=True), ready)
        self.apply(made("v1", "ServiceAccount", "default", case.name) for case in batch)
        self.apply(pod for case in batch for pod in case.pods)
        others = [item for case in batch for item in case.others]
        # A claim that is there before its volume is bound a quarter of a minute later.
        self.apply(item for item in others if item["kind"] == "PersistentVolume")
        self.apply(item for item in others if item["kind"] != "PersistentVolume")
        self.until("Node", self._nodes_seen(nodes), "The controllers have not noticed the nodes")
        self.until("ResourceQuota", self._others_seen(others), "The controllers have not noticed quotas and claims")

    def until(self, kind: str, missing: Callable[[], str | None], goal: str) -> None:
        changes = Changes("v1", kind, longest=0.5)
        watch_until(self.cluster, changes, lambda _cluster: (None, missing()), goal=goal, timeout=300, progress=lambda _text: None)

    def _nodes_seen(self, nodes: list[Manifest]) -> Callable[[], str | None]:
        """Whether the taint that a new node has is gone from those that are ready."""
        ready = {node["metadata"]["name"] for node in nodes if node["status"]["ready"]}

        def missing() -> str | None:
            left = [
                node["metadata"]["name"]
                for node in self.cluster.list("v1", "Node", None, CASE)
                if node["metadata"]["name"] in ready and any(taint["key"] == NOT_READY for taint in node["spec"].get("taints") or ())
            ]
            return f"{len(left)} have the taint {NOT_READY}" if left else None

        return missing

    def _others_seen(self, items: list[Manifest]) -> Callable[[], str | None]:
        def missing() -> str | None:
            for item in items:
                if item["kind"] not in ("ResourceQuota", "PersistentVolumeClaim"):
                    continue
                status = (self.cluster.get(ref_of(item)) or {}).get("status") or {}
                if not status.get("hard") and status.get("phase") != "Bound":
                    return f"{ref_of(item)} has no status"
            return None

        return missing

    def judge(self, case: Case) -> Outcome:
        return Outcome(case, preflight(self.cluster, gang([], case.name, rows=case.groups)))

    def ask(self, outcome: Outcome, groups: list[Manifest]) -> None:
        """Create the pods of a gang."""
        for group in groups:
            for number in range(int(group["replicas"])):
                pod = made("v1", "Pod", f"{group['name']}-{number}", outcome.case.name, spec=group["template"]["spec"])
                pod["metadata"]["labels"] |= {**group["template"]["metadata"]["labels"], "gang": "asked"}
                try:
                    self.cluster.apply(pod, dry_run=False)
                except (Forbidden, Rejected) as error:
                    outcome.refused.append(error.message)

    def settled(self, outcomes: list[Outcome]) -> None:
        """Wait until the scheduler has decided on each pod, and note what it decided."""
        by_name = {outcome.case.name: outcome for outcome in outcomes}
        seen: list[tuple[str, ...]] = []

        def missing() -> str | None:
            pods = [pod for pod in self.cluster.list("v1", "Pod", None, "gang=asked") if labels_of(pod)[CASE] in by_name]
            undecided = [pod for pod in pods if not pod["spec"].get("nodeName") and not _waits(pod)]
            placed = tuple(pod["metadata"]["uid"] for pod in pods if pod["spec"].get("nodeName"))
            seen.append(placed)
            # Pods that were left over are looked at again when others have been placed.
            quiet = len(seen) > 4 and len(set(seen[-4:])) == 1
            if undecided or not quiet:
                return f"{len(undecided)} are not decided on"
            for outcome in by_name.values():
                outcome.placed, outcome.waiting = 0, []
            for pod in pods:
                outcome = by_name[labels_of(pod)[CASE]]
                outcome.placed += bool(pod["spec"].get("nodeName"))
                outcome.waiting += [] if pod["spec"].get("nodeName") else [_waits(pod)]
            return None

        self.until("Event", missing, "The scheduler has not decided on all pods")

    def smaller(self, outcomes: list[Outcome]) -> None:
        """Ask for the nearest size of what was said not to fit; not where a quota has to notice first that the others have gone."""
        again = []
        for one in outcomes:
            if one.said.nearest and not any(item["kind"] == "ResourceQuota" for item in one.case.others):
                size = one.said.nearest[0]
                groups = [{**g, "replicas": size["replicas"]} if g["name"] == size["name"] else g for g in one.case.groups]
                one.nearest = Outcome(dataclasses.replace(one.case, groups=groups), one.said)
                again.append(one.nearest)
        names = {one.case.name for one in again}
        pods = self.cluster.list("v1", "Pod", None, "gang=asked")
        self._delete(ref_of(pod) for pod in pods if labels_of(pod)[CASE] in names)
        self.each(lambda one: self.ask(one, one.case.groups), again)
        self.settled(again)

    def remove(self, batch: list[Case]) -> None:
        """Pods before their nodes: nobody else would."""
        names = {case.name for case in batch}
        pods = [pod for pod in self.cluster.list("v1", "Pod", None, CASE) if labels_of(pod)[CASE] in names]
        self._delete(map(ref_of, pods))
        self._delete(ref_of(item) for case in batch for item in [*case.nodes, *case.others])
        self._delete(Ref("v1", "Namespace", name) for name in names)

    def _delete(self, refs: Iterable[Ref]) -> None:
        self.each(lambda ref: self.cluster.delete(ref, dry_run=False, grace_period_seconds=0), refs)

    @contextmanager
    def heartbeats(self, nodes: list[Manifest]) -> Iterator[None]:
        done = threading.Event()

        def beat() -> None:
            while not done.wait(HEARTBEAT_S):
                self.each(self.report, nodes)

        thread = threading.Thread(target=beat)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


def _bare(node: Manifest) -> Manifest:
    """A node without what its kubelet tells."""
    return {key: value for key, value in node.items() if key != "status"}


def _waits(pod: Manifest) -> str:
    """Why the scheduler found no node for a pod."""
    rows = (pod.get("status") or {}).get("conditions") or ()
    return next((row.get("message", "") for row in rows if row["type"] == "PodScheduled" and row["status"] == "False"), "")


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    cluster = direct()
    with ThreadPoolExecutor(8) as pool:
        found = Stage(cluster, pool)
        found.apply(common())
        yield found
        found._delete(map(ref_of, common()))
    cluster.close()


@pytest.fixture(scope="module")
def outcomes(stage: Stage) -> list[Outcome]:
    """Of every case what was said before any of its pods was there, and what became of them."""
    found: list[Outcome] = []
    every = cases(SEED, NUMBER)
    for at in range(0, NUMBER, BATCH):
        batch = every[at : at + BATCH]
        try:
            with stage.built(batch):
                said = stage.each(stage.judge, batch)
                stage.each(lambda outcome: stage.ask(outcome, outcome.case.groups), said)
                stage.settled(said)
                stage.smaller(said)
            found += said
        finally:
            stage.remove(batch)
    rows = [
        {"case": one.case.name, "said": one.said.fits, "fits": one.fits, "message": one.said.message, "left": one.refused + one.waiting}
        for one in found
    ]
    (BUILD / "scheduler.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return found


def told(outcomes: Iterable[Outcome]) -> str:
    return "\n".join(map(str, outcomes))


def test_there_are_enough_of_both(outcomes: list[Outcome]) -> None:
    count = collections.Counter((one.said.fits, one.fits) for one in outcomes)
    assert count[True, True] >= ENOUGH, count
    assert count[False, False] >= ENOUGH, count


def test_most_are_judged(outcomes: list[Outcome]) -> None:
    """Half of the cases may draw what is not judged: affinity, spread, volumes, ports of the node."""
    unjudged = [one for one in outcomes if one.said.fits is None]
    assert len(unjudged) <= MOST_NOT_JUDGED * len(outcomes), told(unjudged)


def test_what_is_not_judged_has_a_name(outcomes: list[Outcome]) -> None:
    silent = [one for one in outcomes if one.said.fits is None and not one.said.not_judged]
    assert not silent, told(silent)


def test_what_is_said_to_fit_does(outcomes: list[Outcome]) -> None:
    wrong = [one for one in outcomes if one.said.fits and not one.fits]
    assert not wrong, told(wrong)


def test_what_is_said_not_to_fit_does_not(outcomes: list[Outcome]) -> None:
    wrong = [one for one in outcomes if one.said.fits is False and one.fits]
    assert not wrong, told(wrong)


def test_the_nearest_size_fits(outcomes: list[Outcome]) -> None:
    named = [one.nearest for one in outcomes if one.nearest]
    assert len(named) >= ENOUGH_NEAREST
    wrong = [one for one in named if not one.fits]
    assert not wrong, told(wrong)


def test_a_job_that_does_not_fit_leaves_nothing(stage: Stage) -> None:
    """Module elastic_job on such nodes: one pod too many is refused without a write, one less is placed."""
    name = "gang-job"
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    nodes = [
        {**made("v1", "Node", f"{name}-{at}"), "spec": {}, "status": {"capacity": capacity, "allocatable": capacity, "ready": True}}
        for at in range(2)
    ]
    for node in nodes:
        node["metadata"]["labels"] = {CASE: name, "type": "kwok", "kubernetes.io/hostname": node["metadata"]["name"]}
    case = Case(name=name, nodes=nodes, pods=[], groups=[], others=[])
    options = {
        "name": "job",
        "namespace": name,
        "image": "registry.example.com/torch:1",
        "script": "/train.py",
        "wait": False,
        "min_replicas": 4,
        "max_replicas": 9,
        "node_selector": {CASE: name},
        "tolerations": [LATE],
        "resources": {"requests": {"cpu": "2"}},
        "termination_grace_period_seconds": 0,
    }

    def run(**more: t.Any) -> dict[str, t.Any]:
        return elastic_job.execute(Context(tasks.options(elastic_job, {**options, **more}), False, connect=lambda: stage.cluster))

    try:
        with stage.built([case]):
            began = dt.datetime.now(dt.UTC)
            with pytest.raises(NoRoom, match=r"4 of 5 pods of group job fit.*This fits: job with 4"):
                run(replicas=5, min_replicas=5, wait=True, wait_for="running")
            assert writes_since(began, name) == []
            assert run(replicas=4)["changed"]
            placed = Changes.of_pods(name, "muster.ml/elastic-job=job")

            def missing() -> str | None:
                pods = stage.cluster.list("v1", "Pod", name, placed.selector)
                there = sum(bool(pod["spec"].get("nodeName")) for pod in pods)
                return f"{there} of 4 are placed" if there < 4 else None

            stage.until("Pod", missing, "Not all pods are placed")
            with pytest.raises(NoRoom, match=r"stays at 4 pods\..* 0 of 1 more pod of group job fit"):
                run(replicas=5, wait=True, wait_for="running")
    finally:
        stage._delete([Ref("batch/v1", "Job", "job", name)])
        left = stage.cluster.list("v1", "Pod", name)
        stage._delete(map(ref_of, left))
        stage.remove([case])

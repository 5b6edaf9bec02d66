# SPDX-License-Identifier: GPL-3.0-or-later
"""Readiness by kind; every predicate accepts an object that is not there."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._kube import ready
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest


def thing(spec: Manifest | None = None, status: Manifest | None = None, **metadata: t.Any) -> Manifest:
    return {"kind": "X", "metadata": {"name": "x", **metadata}, "spec": spec or {}, "status": status or {}}


def condition(kind: str, status: str = "True", **more: str) -> Manifest:
    return {"conditions": [{"type": kind, "status": status, **more}]}


@pytest.mark.parametrize("predicate", [*ready.PREDICATES.values(), ready.by_conditions])
def test_nothing_is_not_ready(predicate: ready.Predicate) -> None:
    state = predicate(None)
    assert (state.ready, state.failed) == (False, False)
    assert state.reason == "does not exist"


DEPLOYED = {"observedGeneration": 2, "updatedReplicas": 2, "replicas": 2, "availableReplicas": 2}
REFUSED = condition("ReplicaFailure", reason="FailedCreate", message="q")
TERMINATING = {"phase": "Terminating", **condition("NamespaceContentRemaining", message="pods")}
REVISIONS = {"updateRevision": "b", "currentRevision": "a"}

PROGRAMMED = {"conditions": [{"type": "Accepted", "status": "True"}, {"type": "Programmed", "status": "True", "observedGeneration": 2}]}
TAKEN = [{"type": "Accepted", "status": "True"}, {"type": "ResolvedRefs", "status": "True"}]
LOST = [TAKEN[0], {"type": "ResolvedRefs", "status": "False", "reason": "BackendNotFound", "message": "no Service x"}]
TWO = {"parentRefs": [{"name": "a"}, {"name": "b"}]}

CASES: list[tuple[ready.Predicate, Manifest, bool, str]] = [
    (ready.gateway, thing({}, PROGRAMMED, generation=2), True, ""),
    (ready.gateway, thing({}, PROGRAMMED, generation=3), False, "has not seen"),
    (ready.gateway, thing({}, condition("Accepted")), False, "is not Programmed yet"),
    (ready.gateway, thing({}, condition("Accepted", "False", reason="NoClass")), False, "is not Accepted: NoClass"),
    (ready.route, thing(TWO, {"parents": [{"conditions": TAKEN}] * 2}), True, ""),
    (ready.route, thing(TWO, {"parents": [{"conditions": TAKEN}]}), False, "1 of its 2 Gateways"),
    (ready.route, thing(TWO, {"parents": [{"conditions": TAKEN}, {"conditions": LOST}]}), False, "BackendNotFound: no Service x"),
    (ready.deployment, thing({"replicas": 2}, DEPLOYED, generation=2), True, ""),
    (ready.deployment, thing({"replicas": 0}, {"observedGeneration": 1}, generation=1), True, ""),
    (ready.deployment, thing({"replicas": 2}, DEPLOYED, generation=3), False, "has not seen"),
    (ready.deployment, thing({"replicas": 3}, DEPLOYED, generation=2), False, "2 of 3 updated"),
    (ready.deployment, thing({"replicas": 2}, {**DEPLOYED, "replicas": 3}), False, "1 old replicas"),
    (ready.deployment, thing({"replicas": 2}, {**DEPLOYED, "availableReplicas": 1}), False, "1 of 2 available"),
    (ready.deployment, thing({}, condition("Progressing", "False", reason="ProgressDeadlineExceeded")), False, "Deadline"),
    (ready.stateful_set, thing({"replicas": 8}, {"readyReplicas": 3}), False, "3 of 8 ready"),
    (ready.stateful_set, thing({"replicas": 1}, {"readyReplicas": 1, "replicas": 2}), False, "1 replicas too many"),
    (ready.stateful_set, thing({"replicas": 1}, {"readyReplicas": 1, **REVISIONS}), False, "0 of 1 updated"),
    (ready.stateful_set, thing({"replicas": 1}, {"readyReplicas": 1, "replicas": 1, "updatedReplicas": 1, **REVISIONS}), True, ""),
    (ready.stateful_set, thing({"replicas": 1, "updateStrategy": {"type": "OnDelete"}}, {"readyReplicas": 1, **REVISIONS}), True, ""),
    (ready.leader_worker_set, thing({"replicas": 2}, {"updatedReplicas": 1, "readyReplicas": 2}), False, "1 of 2 updated"),
    (ready.leader_worker_set, thing({"replicas": 2}, {"updatedReplicas": 2, "readyReplicas": 1}), False, "1 of 2 ready"),
    (ready.leader_worker_set, thing({"replicas": 1}, {"updatedReplicas": 1, "readyReplicas": 2, "replicas": 2}), False, "1 replicas too"),
    (ready.leader_worker_set, thing({"replicas": 1}, {"updatedReplicas": 1, "readyReplicas": 1, "replicas": 1}), True, ""),
    (ready.daemon_set, thing({}, {"desiredNumberScheduled": 2, "numberReady": 1, "updatedNumberScheduled": 2}), False, "1 of 2 ready"),
    (ready.daemon_set, thing({}, {"desiredNumberScheduled": 2, "numberReady": 2, "updatedNumberScheduled": 1}), False, "1 of 2 updated"),
    (ready.daemon_set, thing({}, {}), True, ""),
    (ready.job, thing({"completions": 4}, {"succeeded": 1, "failed": 2}), False, "1 of 4 succeeded, 2 failed"),
    (ready.job, thing({"suspend": True}), False, "is suspended"),
    (ready.job, thing({}, condition("Complete")), True, ""),
    (ready.pod, thing({}, {"phase": "Succeeded"}), True, ""),
    (ready.pod, thing({}, {"phase": "Running", **condition("Ready")}), True, ""),
    (ready.pod, thing({}, {"phase": "Running"}), False, "Running: not ready"),
    (ready.pod, thing({}, {}), False, "Pending"),
    (ready.pod_autoscaler, thing({}), False, "its controller has not seen it yet"),
    (ready.pod_autoscaler, thing({}, condition("ScalingActive")), True, ""),
    (ready.pod_autoscaler, thing({}, condition("ScalingActive", "False", reason="ScalingDisabled")), True, ""),
    (ready.pod_autoscaler, thing({}, condition("ScalingActive", "False", reason="FailedGetPodsMetric")), False, "FailedGetPodsMetric"),
    (ready.pod_autoscaler, thing({}, condition("AbleToScale", "False", reason="FailedGetScale")), False, "does not scale (FailedGetScale)"),
    (ready.claim, thing({}, {"phase": "Bound"}), True, ""),
    (ready.claim, thing({}, {}), False, "Pending"),
    (ready.definition, thing({}, condition("Established")), True, ""),
    (ready.definition, thing({}, {}), False, "not established"),
    (ready.namespace, thing({}, {"phase": "Active"}), True, ""),
    (ready.namespace, thing({}, {"phase": "Terminating"}), False, "is Terminating"),
    (ready.service, thing({"type": "ClusterIP"}), True, ""),
    (ready.service, thing({"type": "LoadBalancer"}), False, "no load balancer address"),
    (ready.service, thing({"type": "LoadBalancer"}, {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}), True, ""),
    (ready.by_conditions, thing(), True, ""),
    (ready.by_conditions, {**thing(), "status": "in words"}, True, ""),
    (ready.by_conditions, thing({}, condition("Ready", "False", reason="Waits", message="for x")), False, "Waits: for x"),
    (ready.by_conditions, thing({}, condition("Available")), True, ""),
    (ready.by_conditions, thing({}, {"observedGeneration": 1}, generation=2), False, "has not seen"),
    (ready.deletion_state, thing(), False, "is not being deleted yet"),
    (ready.deletion_state, thing(deletionTimestamp="x"), False, "is being deleted"),
    (ready.deletion_state, thing(deletionTimestamp="2026-11-21T12:00:00Z"), False, "is being deleted since 2026-11-21T12:00:00Z"),
    (ready.deletion_state, thing(deletionTimestamp="2026-11-21T12:00:30Z", deletionGracePeriodSeconds=30), False,
     "since 2026-11-21T12:00:00Z"),
    (ready.namespace, {**thing({}, TERMINATING), "kind": "Namespace"}, False, "is Terminating; NamespaceContentRemaining: pods"),
    (ready.deletion_state, {**thing({"finalizers": ["kubernetes", "x.io/n"]}, deletionTimestamp="x"), "kind": "Namespace"}, False,
     "waits for its finalizers x.io/n"),
    (ready.deployment, thing({"replicas": 2}, {**DEPLOYED, "availableReplicas": 1, **REFUSED}), False, "1 of 2 available; FailedCreate: q"),
    (ready.deployment, thing({"replicas": 3}, {**DEPLOYED, **REFUSED}, generation=2), False, "2 of 3 updated; FailedCreate: q"),
    (ready.replica_set, thing({"replicas": 2}, {"availableReplicas": 1, **REFUSED}), False, "1 of 2 available; FailedCreate: q"),
    (ready.replica_set, thing({"replicas": 2}, {"availableReplicas": 2, "replicas": 2}), True, ""),
    (ready.replica_set, thing({"replicas": 0}, {}), True, ""),
    (ready.replica_set, thing({"replicas": 1}, {"availableReplicas": 2, "replicas": 2}), False, "1 replicas too many"),
    (ready.deletion_state, thing(deletionTimestamp="x", finalizers=["a/b", "c/d"]), False, "finalizers a/b, c/d"),
]  # fmt: skip


@pytest.mark.parametrize(("predicate", "manifest", "answer", "told"), CASES)
def test_predicates(predicate: ready.Predicate, manifest: Manifest, answer: bool, told: str) -> None:
    state = predicate(manifest)
    assert state.ready is answer
    assert told in state.reason


@pytest.mark.parametrize(
    ("predicate", "status"),
    [
        (ready.job, condition("Failed", reason="BackoffLimitExceeded")),
        (ready.pod, {"phase": "Failed", "reason": "Evicted"}),
        (ready.claim, {"phase": "Lost"}),
        (ready.definition, condition("NamesAccepted", "False", reason="MultipleNames")),
        (ready.by_conditions, condition("Stalled", reason="Bad")),
    ],
)
def test_some_things_will_never_get_ready(predicate: ready.Predicate, status: Manifest) -> None:
    assert predicate(thing({}, status)).failed


def test_a_deployment_that_was_late_may_still_come() -> None:
    late = condition("Progressing", "False", reason="ProgressDeadlineExceeded")
    assert not ready.deployment(thing({}, late)).failed


def test_gone_is_ready_for_deleting() -> None:
    assert ready.deletion_state(None).ready


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (condition("PodScheduled", "False", message="0/2 nodes are available"), "Pending: 0/2 nodes are available"),
        (
            {"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}]},
            "Pending: ErrImagePull: no such image",
        ),
        (
            {
                "phase": "Running",
                "containerStatuses": [
                    {"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": 3}}}
                ],
            },
            "Running: CrashLoopBackOff after Error (exit status 3)",
        ),
        (
            {"phase": "Failed", "containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 2}}}]},
            "failed (Error (exit status 2))",
        ),
        ({"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}}]}, "Pending"),
    ],
)
def test_why_a_pod_does_not_run(status: Manifest, told: str) -> None:
    assert ready.pod(thing({}, status)).reason == told


def test_of_several_containers_the_one_is_named() -> None:
    waiting = {"name": "side", "state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}
    running = {"name": "main", "state": {"running": {}}}
    found = ready.pod(thing({}, {"containerStatuses": [running, waiting]}))
    assert found.reason == "Pending: container side: ErrImagePull: no such image"


def test_every_kind_has_a_predicate() -> None:
    assert ready.state_of(thing({}, {"phase": "Bound"}), "PersistentVolumeClaim", "v1").ready
    assert ready.state_of(thing({}, condition("Ready", "False")), "Foo", "x.io/v1").reason == "is not Ready"

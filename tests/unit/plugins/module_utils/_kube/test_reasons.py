# SPDX-License-Identifier: GPL-3.0-or-later
"""What events, API services, dependents and webhooks add to a reason; and that what may not be read is left out."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden, MusterError, ServerError
from ansible_collections.muster.ml.plugins.module_utils._kube import reasons
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref
from ansible_collections.muster.ml.plugins.module_utils._kube.ready import deletion_state, state_of
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster, answered

JOB = Ref("batch/v1", "Job", "train", "ml")
CLAIM = Ref("v1", "PersistentVolumeClaim", "data", "ml")
POD = Ref("v1", "Pod", "p", "ml")
QUOTA = 'Error creating: pods "train-x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0'


def item(ref: Ref, spec: Manifest | None = None, status: Manifest | None = None, **metadata: t.Any) -> Manifest:
    return {"apiVersion": ref.api_version, "kind": ref.kind, "spec": spec or {}, "status": status or {},
            "metadata": {"name": ref.name, "namespace": ref.namespace, **metadata}}  # fmt: skip


def added(cluster: FakeCluster, ref: Ref, **more: t.Any) -> Manifest:
    cluster.add(item(ref, **more))
    return cluster.objects[ref.identity]


def told(cluster: FakeCluster, ref: Ref, *, going: bool = False) -> str:
    found = cluster.objects[ref.identity]
    return reasons.last_seen(cluster, ref, deletion_state(found) if going else state_of(found, ref.kind, ref.api_version), found)


def test_pods_that_a_quota_refuses_are_told_of_their_job(cluster: FakeCluster) -> None:
    manifest = added(cluster, JOB, spec={"parallelism": 1})
    assert reasons.why_no_pods(cluster, manifest) == ""
    cluster.say(JOB, "FailedCreate", QUOTA, type="Warning")
    assert told(cluster, JOB) == f"Job ml/train: 0 of 1 succeeded; FailedCreate: {QUOTA}"
    assert reasons.why_no_pods(cluster, manifest) == f"FailedCreate: {QUOTA}"


def test_a_refusal_that_a_condition_tells_is_told_once(cluster: FakeCluster) -> None:
    ref = Ref("apps/v1", "ReplicaSet", "r", "ml")
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": 'pods "r-a" is forbidden'}
    added(cluster, ref, spec={"replicas": 1}, status={"conditions": [failure]}, generation=0)
    cluster.say(ref, "FailedCreate", 'Error creating: pods "r-b" is forbidden', type="Warning")
    assert told(cluster, ref) == 'ReplicaSet ml/r: 0 of 1 available; FailedCreate: pods "r-a" is forbidden'


def test_that_events_were_combined_is_nothing_to_read(cluster: FakeCluster) -> None:
    manifest = added(cluster, JOB)
    cluster.say(JOB, "FailedCreate", f"(combined from similar events): {QUOTA}", type="Warning")
    assert reasons.why_no_pods(cluster, manifest) == f"FailedCreate: {QUOTA}"


def test_a_refusal_that_is_over_is_not_told(cluster: FakeCluster) -> None:
    manifest = added(cluster, JOB)
    cluster.say(JOB, "FailedCreate", QUOTA, type="Warning", at=1)
    cluster.say(JOB, "SuccessfulCreate", "Created pod: train-y", at=2)
    assert reasons.why_no_pods(cluster, manifest) == ""
    assert "quota" not in told(cluster, JOB)


def test_of_one_second_the_refusal_is_told(cluster: FakeCluster) -> None:
    manifest = added(cluster, JOB)
    cluster.say(JOB, "SuccessfulCreate", "Created pod: train-y", at=2)
    finer = {"lastTimestamp": None, "eventTime": "2026-11-21T12:00:02.100000Z"}
    cluster.say(JOB, "FailedCreate", QUOTA, type="Warning", **finer)
    assert "quota" in reasons.why_no_pods(cluster, manifest)


def test_what_was_said_of_an_object_before_it_by_that_name_does_not_count(cluster: FakeCluster) -> None:
    added(cluster, JOB)
    cluster.say(JOB, "FailedCreate", QUOTA, type="Warning")
    cluster.remove(JOB)
    assert reasons.why_no_pods(cluster, added(cluster, JOB, uid="another")) == ""


@pytest.mark.parametrize("error", [Forbidden("may not list events"), ServerError("broken")])
def test_events_that_cannot_be_read_hide_nothing(cluster: FakeCluster, error: MusterError) -> None:
    added(cluster, JOB, spec={"parallelism": 2})
    cluster.fail("events", JOB.name, error)
    assert told(cluster, JOB) == "Job ml/train: 0 of 2 succeeded"


@pytest.mark.parametrize(
    ("kind", "reason", "message"),
    [
        ("Warning", "ProvisioningFailed", 'storageclass.storage.k8s.io "nope" not found'),
        ("Normal", "FailedBinding", "no persistent volumes available for this claim and no storage class is set"),
        ("Normal", "ExternalProvisioning", "Waiting for a volume to be created by the external provisioner 'x'"),
        ("Normal", "WaitForFirstConsumer", "waiting for first consumer to be created before binding"),
    ],
)
def test_why_a_claim_is_pending(cluster: FakeCluster, kind: str, reason: str, message: str) -> None:
    added(cluster, CLAIM)
    cluster.say(CLAIM, reason, message, type=kind)
    assert told(cluster, CLAIM) == f"PersistentVolumeClaim ml/data: Pending; {reason}: {message}"


def test_a_pod_that_knows_no_reason_has_it_from_its_events(cluster: FakeCluster) -> None:
    added(cluster, POD, status={"phase": "Pending"})
    cluster.say(POD, "FailedMount", 'MountVolume.SetUp failed for volume "c": configmap "no" not found', type="Warning")
    assert told(cluster, POD).endswith('Pending; FailedMount: MountVolume.SetUp failed for volume "c": configmap "no" not found')


def test_a_pod_that_knows_its_reason_is_not_asked_after(cluster: FakeCluster) -> None:
    scheduled = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "no GPU"}]}
    added(cluster, POD, status={"phase": "Pending", **scheduled})
    assert told(cluster, POD) == "Pod ml/p: Pending: no GPU"
    assert cluster.requests == []


def test_a_workload_tells_why_the_claim_of_its_pod_is_not_bound(cluster: FakeCluster) -> None:
    message = "pod has unbound immediate PersistentVolumeClaims"
    added(cluster, POD, labels={"a": "b"}, spec={"volumes": [{"name": "s"}, {"persistentVolumeClaim": {"claimName": "data"}}]},
          status={"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": message}]})  # fmt: skip
    added(cluster, CLAIM, status={"phase": "Pending"})
    cluster.say(CLAIM, "ProvisioningFailed", "no such class", type="Warning")
    owner = Ref("apps/v1", "StatefulSet", "s", "ml")
    added(cluster, owner, spec={"replicas": 1, "selector": {"matchLabels": {"a": "b"}}}, generation=0)
    assert told(cluster, owner).endswith(f"pod p Pending: {message} (data ProvisioningFailed: no such class)")


# Deletion

NAMESPACE = Ref("v1", "Namespace", "old")
DOWN = Ref("apiregistration.k8s.io/v1", "APIService", "v1beta1.metrics.k8s.io")
STALE = "unable to retrieve the complete list of server APIs: metrics.k8s.io/v1beta1: stale GroupVersion discovery: metrics.k8s.io/v1beta1"


def stuck(cluster: FakeCluster) -> None:
    conditions = [
        {"type": "NamespaceDeletionDiscoveryFailure", "status": "True", "message": STALE},
        {"type": "NamespaceContentRemaining", "status": "False", "message": "All content successfully removed"},
    ]
    added(cluster, NAMESPACE, status={"phase": "Terminating", "conditions": conditions}, deletionTimestamp="2026-11-21T12:00:00Z")


def api_service(status: str, service: Manifest | None) -> Manifest:
    reason = {"reason": "MissingEndpoints", "message": 'endpoints for service/m in "monitoring" have no addresses'}
    return item(DOWN, {"service": service}, {"conditions": [{"type": "Available", "status": status, **reason}]})


def test_the_api_service_that_keeps_a_namespace_is_named(cluster: FakeCluster) -> None:
    stuck(cluster)
    cluster.add(api_service("False", {"namespace": "monitoring", "name": "m"}))
    said = told(cluster, NAMESPACE, going=True)
    assert "is being deleted since 2026-11-21T12:00:00Z; NamespaceDeletionDiscoveryFailure: unable" in said
    assert "All content" not in said
    assert said.endswith(
        "APIService v1beta1.metrics.k8s.io (Service monitoring/m) does not answer (MissingEndpoints: endpoints for service/m in "
        '"monitoring" have no addresses): repair what serves it, or delete the APIService where no client needs it'
    )


def test_an_api_service_that_may_not_be_read_is_named_all_the_same(cluster: FakeCluster) -> None:
    stuck(cluster)
    cluster.fail("get", DOWN.name, Forbidden("may not"))
    assert "its APIService is v1beta1.metrics.k8s.io" in told(cluster, NAMESPACE, going=True)


@pytest.mark.parametrize(("status", "service"), [("True", {"namespace": "m", "name": "m"}), ("False", None)])
def test_an_api_service_that_is_not_at_fault_is_not_named(cluster: FakeCluster, status: str, service: Manifest | None) -> None:
    stuck(cluster)
    cluster.add(api_service(status, service))
    assert "APIService v1beta1" not in told(cluster, NAMESPACE, going=True)


def test_deletion_in_the_foreground_names_what_it_waits_for(cluster: FakeCluster) -> None:
    labels = {"a": "b"}
    deployment, replicas = Ref("apps/v1", "Deployment", "d", "ml"), Ref("apps/v1", "ReplicaSet", "d-1", "ml")
    going = {"deletionTimestamp": "2026-11-21T12:00:00Z", "finalizers": ["foregroundDeletion"]}
    added(cluster, deployment, spec={"selector": {"matchLabels": labels}}, uid="d", **going)
    added(cluster, replicas, labels=labels, uid="r", ownerReferences=[{"uid": "d"}], **going)
    added(cluster, POD, labels=labels, ownerReferences=[{"uid": "r"}], finalizers=["x.io/hold"],
          deletionTimestamp="2026-11-21T12:00:30Z", deletionGracePeriodSeconds=30)  # fmt: skip
    added(cluster, Ref("v1", "Pod", "other", "ml"), labels=labels, ownerReferences=[{"uid": "elsewhere"}])
    said = told(cluster, deployment, going=True)
    assert said.endswith(
        "still there of what came of it: Pod p is being deleted since 2026-11-21T12:00:00Z and waits for its finalizers x.io/hold, "
        "ReplicaSet d-1 is being deleted since 2026-11-21T12:00:00Z and waits for its finalizers foregroundDeletion"
    )
    cluster.fail("list", "", Forbidden("no"), Forbidden("no"))
    assert told(cluster, deployment, going=True).endswith("waits for its finalizers foregroundDeletion")


def test_what_somebody_deletes_while_it_is_to_get_ready_says_so(cluster: FakeCluster) -> None:
    added(cluster, JOB, deletionTimestamp="2026-11-21T12:00:00Z", finalizers=["x.io/hold"])
    assert told(cluster, JOB) == (
        "Job ml/train: 0 of 1 succeeded; is being deleted since 2026-11-21T12:00:00Z and waits for its finalizers x.io/hold"
    )
    assert told(cluster, JOB, going=True).count("is being deleted") == 1


# Webhooks

SERVICE = Ref("v1", "Service", "hook", "cert")
REFUSED = 'failed calling webhook "w.example.com": failed to call webhook: Post "https://{}/check?timeout=10s": {}'


def webhook(cluster: FakeCluster, host: str = "hook.cert.svc:443", why: str = "EOF") -> str:
    (found,) = reasons.with_webhook_hints(cluster, [answered(500, REFUSED.format(host, why))])
    return found.hint or ""


def endpoints(cluster: FakeCluster, *ready: bool) -> None:
    cluster.add(item(SERVICE))
    piece = item(Ref("discovery.k8s.io/v1", "EndpointSlice", "hook-x", "cert"), labels={"kubernetes.io/service-name": "hook"})
    cluster.add({**piece, "endpoints": [{"conditions": {"ready": value}} for value in ready]})


def test_a_webhook_without_a_service(cluster: FakeCluster) -> None:
    cluster.add({**item(Ref("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "cert")),
                 "webhooks": [{"name": "other"}, {"name": "w.example.com"}]})  # fmt: skip
    assert webhook(cluster) == (
        "Webhook w.example.com of MutatingWebhookConfiguration cert is served by Service cert/hook, which does not exist: install what "
        "brings the Service, or delete MutatingWebhookConfiguration cert where what it belonged to was removed."
    )


@pytest.mark.parametrize(
    ("ready", "why", "said"),
    [
        ([False], "connection refused", "which has no ready endpoints: get its pods ready (kubectl -n cert get pods)"),
        ([True, False], "context deadline exceeded", "which has 1 ready endpoint: see the log of its pods"),
        ([True, True], "tls: failed to verify certificate: x509: unknown authority", "2 ready endpoints: its certificate and the caBundle"),
    ],
)
def test_what_serves_a_webhook_is_told(cluster: FakeCluster, ready: list[bool], why: str, said: str) -> None:
    endpoints(cluster, *ready)
    assert said in webhook(cluster, why=why)


def test_a_webhook_of_which_nothing_may_be_read(cluster: FakeCluster) -> None:
    cluster.fail("list", "", Forbidden("no"), Forbidden("no"))
    cluster.fail("get", "hook", Forbidden("no"))
    said = webhook(cluster)
    assert said.startswith("Webhook w.example.com is served by Service cert/hook, which could not be looked at")


def test_a_webhook_outside_of_the_cluster(cluster: FakeCluster) -> None:
    assert webhook(cluster, "policy.example.com") == (
        "Webhook w.example.com is served by policy.example.com: that must answer, or the webhook must go."
    )


def test_one_webhook_is_looked_at_once_for_all_it_refused(cluster: FakeCluster) -> None:
    endpoints(cluster, True)
    message = REFUSED.format("hook.cert.svc:443", "EOF")
    failures = [answered(500, f"{number}: {message}") for number in range(50)] + [ServerError("something else")]
    found = reasons.with_webhook_hints(cluster, failures)
    assert len(cluster.requests) <= 4
    assert found[-1].hint is None
    assert len({failure.hint for failure in found[:-1]}) == 1

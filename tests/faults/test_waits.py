# SPDX-License-Identifier: GPL-3.0-or-later
"""What a real cluster says when something does not get ready, does not go, or is not answered. See docs/operating/waits.md."""

import contextlib
import re
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.clock import SYSTEM_CLOCK, Deadline
from ansible_collections.muster.ml.plugins.module_utils._core.errors import MusterError
from ansible_collections.muster.ml.plugins.module_utils._core.waiting import fixed_interval, wait_for
from ansible_collections.muster.ml.plugins.module_utils._kube import write
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref, ref_of
from faults.conftest import KUBECONFIG, Ground, run_apply

REPORTED_S = 180.0
"""Within which controllers report, on a machine that is busy."""
STRICT = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def pod(security: Manifest | None = None, **more: t.Any) -> Manifest:
    container = {"name": "main", "image": "registry.invalid/x:1", "securityContext": security or {}}
    return {"terminationGracePeriodSeconds": 0, "containers": [container], **more}


def thing(api_version: str, kind: str, name: str, **more: t.Any) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **more}


def workload(kind: str, name: str, **metadata: t.Any) -> Manifest:
    template = {"metadata": {"labels": {"app": name}, **metadata}, "spec": pod(security=STRICT)}
    more = {"serviceName": name} if kind == "StatefulSet" else {}
    return thing("apps/v1", kind, name, spec={"selector": {"matchLabels": {"app": name}}, "template": template, **more})


def applied(ground: Ground, *objects: Manifest, reported: str = "", **options: t.Any) -> str:
    """The message of the failed task, which is run again until controllers have reported what the pattern says."""
    deadline = Deadline(REPORTED_S, SYSTEM_CLOCK)
    while True:
        message = str(run_apply(KUBECONFIG, list(objects), namespace=ground.namespace, **options).get("msg"))
        if re.search(reported, message, re.DOTALL) or deadline.passed:
            return message


@contextlib.contextmanager
def there(ground: Ground, *objects: Manifest) -> t.Iterator[None]:
    """Objects that are there for a moment, and gone whatever happens."""
    try:
        for item in objects:
            ground.cluster.apply(item, dry_run=False)
        yield
    finally:
        for item in objects:
            metadata = item["metadata"]
            ref = Ref(item["apiVersion"], item["kind"], metadata["name"], metadata.get("namespace"))
            ground.cluster.delete(ref, dry_run=False)


def test_what_a_namespace_refuses(ground: Ground) -> None:
    place = thing("v1", "Namespace", ground.namespace)
    place["metadata"]["labels"] = {"pod-security.kubernetes.io/enforce": "restricted"}
    quota = thing("v1", "ResourceQuota", "none", spec={"hard": {"pods": "0"}})
    quota["metadata"]["namespace"] = ground.namespace
    for item in (place, quota):
        ground.cluster.apply(item, dry_run=False)
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "nope", "resources": {"requests": {"storage": "1Mi"}}}
    message = applied(
        ground,
        thing("v1", "PersistentVolumeClaim", "data", spec=claim),
        thing("batch/v1", "Job", "train", spec={"template": {"spec": pod(restartPolicy="Never")}}),
        *(workload(kind, kind.lower()) for kind in ("StatefulSet", "Deployment", "DaemonSet", "ReplicaSet")),
        reported="(?=.*ProvisioningFailed: )(?=.*violates PodSecurity)(.*exceeded quota){4}",
        wait=True,
        wait_timeout=5,
    )
    told = {line.split(":")[0].split(" ")[0]: line for line in message.split(f" {ground.namespace}/")[1:]}
    assert "Pending: there is no StorageClass nope" in told["data"]
    assert 'ProvisioningFailed: storageclass.storage.k8s.io "nope" not found' in told["data"]
    assert 'FailedCreate: Error creating: pods "train-' in told["train"]
    assert 'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false' in told["train"]
    for name in ("statefulset", "deployment", "daemonset", "replicaset"):
        assert "FailedCreate: " in told[name]
        assert "exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0" in told[name]


def test_an_api_service_without_endpoints_keeps_a_namespace(ground: Ground) -> None:
    service = {"namespace": ground.namespace, "name": "nobody"}
    spec = {"group": "waits.muster.example", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
            "insecureSkipTLSVerify": True, "service": service}  # fmt: skip
    place = thing("v1", "Namespace", f"{ground.namespace[:50]}-stays")
    assert run_apply(KUBECONFIG, [place], namespace=ground.namespace)["changed"]
    with there(ground, thing("apiregistration.k8s.io/v1", "APIService", "v1.waits.muster.example", spec=spec)):

        def observe() -> tuple[None, str | None]:
            planned = run_apply(KUBECONFIG, [place], check=True, namespace=ground.namespace, state="absent", delete_data=True)
            return None, "the API server does not know of the API yet" if planned["changed"] else None

        wait_for(observe, goal="API known", deadline=Deadline(REPORTED_S, SYSTEM_CLOCK), pause=fixed_interval(0.5, SYSTEM_CLOCK))
        kept = run_apply(KUBECONFIG, [place], namespace=ground.namespace, state="absent", delete_data=True)
        assert not kept["changed"]  # what that API has in it nobody can tell
        ground.cluster.delete(ref_of(place), dry_run=False)  # somebody deletes it all the same
        told = "NamespaceDeletionDiscoveryFailure: Discovery failed for some groups"
        message = applied(ground, place, reported=told, state="absent", delete_data=True, wait=True, wait_timeout=9)
    assert told in message
    assert (
        f"APIService v1.waits.muster.example (Service {ground.namespace}/nobody) does not answer (ServiceNotFound: "
        f'service/nobody in "{ground.namespace}" is not present): repair what serves it'
    ) in message


def test_a_webhook_whose_service_is_missing(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "_WEBHOOK_PATIENCE", 0.5)
    name = f"nobody.{ground.namespace}.muster.example"
    hook = {
        "name": name,
        "clientConfig": {"service": {"name": "nobody", "namespace": ground.namespace, "path": "/check"}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        # Of this test alone.
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ground.namespace}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
    }
    kind = "ValidatingWebhookConfiguration"
    with there(ground, thing("admissionregistration.k8s.io/v1", kind, ground.namespace, webhooks=[hook])):
        called, item = f'failed calling webhook "{name}"', thing("v1", "ConfigMap", "c", data={"a": "1"})

        def observe() -> tuple[None, str | None]:
            try:
                ground.cluster.apply({**item, "metadata": {"name": "c", "namespace": ground.namespace}}, dry_run=True)
            except MusterError:
                return None, None
            return None, "the API server does not know of the webhook yet"

        wait_for(observe, goal="webhook known", deadline=Deadline(REPORTED_S, SYSTEM_CLOCK), pause=fixed_interval(0.2, SYSTEM_CLOCK))
        message = applied(ground, item)
    assert called in message
    assert message.endswith(
        f"Webhook {name} of {kind} {ground.namespace} is served by Service {ground.namespace}/nobody, which does not exist: install what "
        f"brings the Service, or delete {kind} {ground.namespace} where what it belonged to was removed."
    )


def test_a_pod_that_stays_keeps_its_deployment(ground: Ground) -> None:
    wish = workload("Deployment", "held", finalizers=["example.com/hold"])
    assert applied(ground, wish, wait=True, wait_timeout=3).startswith("1 of 1 objects not ready")

    def observe() -> tuple[list[Manifest], str | None]:
        pods = ground.cluster.list("v1", "Pod", ground.namespace)
        return pods, None if pods else "there is no pod"

    (found,) = wait_for(observe, goal="pod", deadline=Deadline(REPORTED_S, SYSTEM_CLOCK), pause=fixed_interval(0.2, SYSTEM_CLOCK))
    try:
        message = applied(ground, wish, reported="Pod held-.* is being deleted since", state="absent", wait=True, wait_timeout=4)
    finally:
        ref = Ref("v1", "Pod", found["metadata"]["name"], ground.namespace)
        ground.cluster.patch(ref, {"metadata": {"finalizers": None}}, dry_run=False)
    assert f"Deployment {ground.namespace}/held: is being deleted since 20" in message
    assert f"still there of what came of it: Pod {ref.name} is being deleted since 20" in message
    assert "Z and waits for its finalizers example.com/hold" in message

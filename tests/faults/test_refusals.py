# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API server itself refuses or holds back: field managers, immutable fields, finalizers. See docs/operating/refusals.md."""

import copy
import typing as t
from collections.abc import Callable

import pytest

from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref
from faults.conftest import KUBECONFIG, Ground, run_apply

TEMPLATE: Manifest = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main", "image": "registry.invalid/x:1"}]}}


def workload(kind: str, **spec: t.Any) -> Manifest:
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w"}, "spec": {
        "replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": TEMPLATE, **spec}}  # fmt: skip


def stateful_set(size: str) -> Manifest:
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": size}}}
    return workload("StatefulSet", serviceName="s", volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": spec}])


def job(image: str) -> Manifest:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": image}]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "w"}, "spec": {"suspend": True, "template": template}}


def service(cluster_ip: str | None) -> Manifest:
    address = {"clusterIP": cluster_ip} if cluster_ip else {}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "w"}, "spec": {"ports": [{"port": 80}], **address}}


def deployment(app: str) -> Manifest:
    template = copy.deepcopy(TEMPLATE)
    template["metadata"]["labels"]["app"] = app
    return workload("Deployment", selector={"matchLabels": {"app": app}}, template=template)


def claim(mode: str) -> Manifest:
    spec = {"accessModes": [mode], "storageClassName": "", "resources": {"requests": {"storage": "1Mi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "w"}, "spec": spec}


IMMUTABLE: dict[str, tuple[Callable[[t.Any], Manifest], t.Any, t.Any, str]] = {
    "stateful-set": (stateful_set, "1Gi", "2Gi", "spec.volumeClaimTemplates is immutable"),
    "job": (job, "registry.invalid/x:1", "registry.invalid/x:2", "spec.template.spec: field is immutable"),
    "service": (service, None, "None", "spec.clusterIPs[0]"),
    "deployment": (deployment, "x", "y", "spec.selector"),
}


def uid_of(ground: Ground, item: Manifest) -> str:
    found = ground.cluster.get(Ref(item["apiVersion"], item["kind"], item["metadata"]["name"], ground.namespace))
    return str(found["metadata"]["uid"]) if found else ""


def applied(ground: Ground, *objects: Manifest, **options: t.Any) -> dict[str, t.Any]:
    return run_apply(KUBECONFIG, list(objects), namespace=ground.namespace, **options)


@pytest.mark.parametrize("name", IMMUTABLE)
def test_an_immutable_field_is_named_and_recreate_replaces(name: str, ground: Ground) -> None:
    build, before, after, field = IMMUTABLE[name]
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}, "data": {"a": "1"}}
    assert applied(ground, build(before))["changed"]
    uid = uid_of(ground, build(before))
    refused = applied(ground, build(after), other)
    assert refused["failed"]
    assert "cannot be changed in place" in refused["msg"]
    assert field in refused["msg"]
    assert "With recreate the object is deleted and created again." in refused["msg"]
    assert not uid_of(ground, other), "nothing may be written when one of the objects is refused"
    planned = applied(ground, build(after), recreate=True, check=True)
    assert [item["action"] for item in planned["objects"]] == ["recreated"]
    assert uid_of(ground, build(before)) == uid
    replaced = applied(ground, build(after), recreate=True)
    assert [item["action"] for item in replaced["objects"]] == ["recreated"], replaced
    assert uid_of(ground, build(after)) not in ("", uid)
    assert applied(ground, build(after), recreate=True)["changed"] is False


def test_what_holds_data_is_never_recreated(ground: Ground) -> None:
    assert applied(ground, claim("ReadWriteOnce"))["changed"]
    uid = uid_of(ground, claim("ReadWriteOnce"))
    refused = applied(ground, claim("ReadWriteMany"), recreate=True)
    assert refused["failed"]
    assert "is never recreated (holds data)" in refused["msg"]
    assert uid_of(ground, claim("ReadWriteOnce")) == uid


def test_another_field_manager(ground: Ground) -> None:
    wish = workload("Deployment")
    assert applied(ground, wish)["changed"]
    ref = Ref("apps/v1", "Deployment", "w", ground.namespace)
    item = {**wish, "metadata": {**wish["metadata"], "namespace": ground.namespace}, "spec": {"replicas": 0, "minReadySeconds": 7}}
    path = f"/apis/apps/v1/namespaces/{ground.namespace}/deployments/w"
    answer = ground.cluster._http.call(
        "PATCH", path, {"fieldManager": "somebody", "force": "true"}, item, content_type="application/apply-patch+yaml"
    )
    assert answer.status == 200, answer.body
    wish["spec"]["minReadySeconds"] = 3
    refused = applied(ground, wish)
    assert "spec.minReadySeconds (set by somebody)" in refused["msg"]
    assert "take them over with force_conflicts" in refused["msg"]
    assert (ground.cluster.get(ref) or {})["spec"]["minReadySeconds"] == 7
    assert applied(ground, wish, force_conflicts=True)["changed"]
    assert (ground.cluster.get(ref) or {})["spec"]["minReadySeconds"] == 3
    assert applied(ground, wish)["changed"] is False


def test_a_finalizer_that_blocks(ground: Ground) -> None:
    wish = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    assert applied(ground, wish)["changed"]
    ref = Ref("v1", "ConfigMap", "held", ground.namespace)
    try:
        refused = applied(ground, wish, state="absent", wait=True, wait_timeout=3)
        assert "waits for its finalizers example.com/hold" in refused["msg"]
        again = applied(ground, wish)
        assert "is being deleted. It waits for its finalizers example.com/hold. Wait until it is gone" in again["msg"]
        pending = applied(ground, wish, state="absent")
        assert pending["objects"][0]["reason"] == "is being deleted already"
        assert pending["changed"] is False
    finally:
        ground.cluster.patch(ref, {"metadata": {"finalizers": None}}, dry_run=False)
    assert applied(ground, wish, state="absent", wait=True, wait_timeout=20)["changed"] is False

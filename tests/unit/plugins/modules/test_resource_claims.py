# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices that pods claim by dynamic resource allocation: one option for every module of trainings and servers."""

import re
import types
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Immutable, InvalidInput, NotFound
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref, ServedKind
from ansible_collections.muster.ml.plugins.module_utils._kube.pod_status import why_not_running
from ansible_collections.muster.ml.plugins.module_utils._kube.users import uses_of
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import LEADER_WORKER_SET
from ansible_collections.muster.ml.plugins.modules import (
    doctor,
    elastic_job,
    etcd_cluster,
    gang_preflight,
    jobset,
    nats_cluster,
    object_store,
    persia_job,
    rabbitmq_cluster,
    training_statefulset,
    triton_server,
    vllm_server,
)
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.trainings import PERSIA

Manifest = dict[str, t.Any]
DEVICES = "resource.k8s.io/v1"
GPU: Manifest = {"name": "gpu", "device_class_name": "gpu.nvidia.com", "count": 2, "selectors": ["device.driver == 'gpu.nvidia.com'"]}
TEMPLATE = "mine-gpu-437a0bff"
# Recorded from kube-scheduler 1.36.3, for a pod with a claim of two devices where other pods have them.
NO_DEVICES = (
    "0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, preemption: 0/1 nodes are available: "
    "1 Preemption is not helpful for scheduling."
)
CLAIMED: Manifest = {"name": "gpu", "resourceClaimName": "two-0-v2zgm-gpu-dhgkb"}
ELASTIC: Manifest = {"image": "example/torch:1", "replicas": 2, "script": "/train.py", "wait": False}
BACKENDS = (("kubeflow.org/v1", "PyTorchJob"), ("trainer.kubeflow.org/v1alpha1", "TrainJob"),
            ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime"), ("jobset.x-k8s.io/v1alpha2", "JobSet"), LEADER_WORKER_SET)  # fmt: skip
MODULES: dict[str, tuple[types.ModuleType, Manifest]] = {
    "native": (elastic_job, ELASTIC),
    "pytorchjob": (elastic_job, {**ELASTIC, "backend": "pytorchjob"}),
    "trainjob": (elastic_job, {**ELASTIC, "backend": "trainjob"}),
    "jobset": (jobset, {"image": "a:1", "hosts": 2, "command": ["train"], "wait": False}),
    "training_statefulset": (training_statefulset, {"image": "a:1", "replicas": 2, "wait": False}),
    "triton_server": (triton_server, {"model_repository": "gs://example-models/live", "wait": False}),
    "vllm_server": (vllm_server, {"model": "example/chat", "wait": False}),
    "vllm_hosts": (vllm_server, {"model": "example/chat", "hosts": 2, "tensor_parallel_size": 2, "wait": False}),
    **{one.__name__.rpartition(".")[2]: (one, {"wait": False}) for one in (etcd_cluster, nats_cluster, object_store, rabbitmq_cluster)},
}


@pytest.fixture
def devices(cluster: FakeCluster) -> FakeCluster:
    """A cluster with a driver of GPUs."""
    for kind in ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass"):
        cluster.kinds_served[DEVICES, kind] = ServedKind(f"{kind.lower()}s", namespaced=kind != "DeviceClass")
    for api_version, kind in BACKENDS:
        cluster.kinds_served[api_version, kind] = ServedKind(f"{kind.lower()}s", namespaced=True)
    cluster.add({"apiVersion": DEVICES, "kind": "DeviceClass", "metadata": {"name": "gpu.nvidia.com"}, "spec": {}})
    cluster.add(tasks.DISKS)
    return cluster


def run(module: types.ModuleType, cluster: FakeCluster, params: Manifest, *claims: Manifest, **more: t.Any) -> dict[str, str]:
    given = {"name": "mine", "namespace": "default", **params, "resource_claims": list(claims) or None, **more}
    return tasks.actions(tasks.run(module, cluster, given))


def pods_of(value: t.Any) -> list[Manifest]:
    """The specs of pods in an object."""
    rows = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = [value] if isinstance(value, dict) and "containers" in value else []
    return [*own, *(pod for row in rows for pod in pods_of(row))]


def every_pod(cluster: FakeCluster, *kinds: str) -> list[Manifest]:
    return [pod for item in cluster.objects.values() if item["kind"] in kinds or not kinds for pod in pods_of(item.get("spec"))]


def templates(cluster: FakeCluster) -> dict[str, Manifest]:
    return {item["metadata"]["name"]: item for item in cluster.objects.values() if item["kind"] == "ResourceClaimTemplate"}


@pytest.mark.parametrize("name", MODULES)
def test_every_module_has_a_template_made_which_the_program_uses(devices: FakeCluster, name: str) -> None:
    module, params = MODULES[name]
    run(module, devices, params, GPU)
    ((made, template),) = templates(devices).items()
    request = {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 2}
    selectors = [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]
    assert template["spec"] == {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {**request, "selectors": selectors}}]}}}
    assert made == TEMPLATE
    pods = every_pod(devices)
    assert pods
    for pod in pods:
        assert pod["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": made}]
        assert [one["resources"]["claims"] for one in pod["containers"]] == [[{"name": "gpu"}]]
    again = run(module, devices, params, GPU)
    assert set(again.values()) <= {"unchanged"}
    gone = run(module, devices, {"name": "mine", "namespace": "default", "state": "absent"})
    assert gone[f"ResourceClaimTemplate/{made}"] == "deleted"


def test_every_module_with_the_option_is_here() -> None:
    tried = {module for module, _params in MODULES.values()}
    assert tried == {module for module in tried if "resource_claims" in module.ARGUMENT_SPEC}
    assert "resource_claims" in persia_job.ARGUMENT_SPEC["nn_worker"]["options"]


def test_a_group_of_persia_has_devices_of_its_own(devices: FakeCluster) -> None:
    worker = {**PERSIA["nn_worker"], "resource_claims": [GPU]}
    server = {"replicas": 1, "resource_claims": [{"name": "gpu", "device_class_name": "gpu.nvidia.com"}]}
    params = {**PERSIA, "nn_worker": worker, "embedding_worker": server, "wait": False}
    tasks.run(persia_job, devices, params)
    assert sorted(name.rpartition("-")[0] for name in templates(devices)) == ["adult-middleware-gpu", "adult-trainer-gpu"]
    assert [pod["resourceClaims"][0]["resourceClaimTemplateName"].rpartition("-")[0] for pod in every_pod(devices, "Job")
            if "resourceClaims" in pod] == ["adult-trainer-gpu"]  # fmt: skip
    with pytest.raises(InvalidInput, match=r"no field for .*nn_worker\.resource_claims"):
        tasks.run(persia_job, devices, {**params, "backend": "operator"})


def test_claims_that_are_there_are_named_and_used_as_the_resources_say(devices: FakeCluster) -> None:
    devices.add({"apiVersion": DEVICES, "kind": "ResourceClaim", "metadata": {"name": "shared", "namespace": "default"}, "spec": {}})
    devices.add({"apiVersion": DEVICES, "kind": "ResourceClaimTemplate", "metadata": {"name": "nic", "namespace": "default"}, "spec": {}})
    claims = [{"name": "gpu", "resource_claim_name": "shared"}, {"name": "nic", "resource_claim_template_name": "nic"}]
    run(elastic_job, devices, ELASTIC, *claims, resources={"claims": [{"name": "nic", "request": "port"}]})
    (pod,) = every_pod(devices, "Job")
    assert pod["resourceClaims"] == [
        {"name": "gpu", "resourceClaimName": "shared"},
        {"name": "nic", "resourceClaimTemplateName": "nic"},
    ]
    assert pod["containers"][0]["resources"] == {"claims": [{"name": "nic", "request": "port"}]}
    run(elastic_job, devices, {"state": "absent"})
    assert list(templates(devices)) == ["nic"]


@pytest.mark.parametrize(
    ("claims", "more", "said"),
    [
        ([{"name": "gpu"}], {}, "resource_claims gpu: nothing is given"),
        ([{**GPU, "resource_claim_template_name": "t"}], {}, "resource_claim_template_name and device_class_name is given"),
        ([{"name": "gpu", "resource_claim_name": "c", "resource_claim_template_name": "t"}], {}, "is given"),
        ([{"name": "gpu", "resource_claim_name": "c", "count": 2}], {}, "count and selectors are for device_class_name"),
        ([{**GPU, "count": 0}], {}, "count: 0 is too small"),
        ([{**GPU, "count": 33}], {}, "33 devices are too many"),
        ([GPU, GPU], {}, "resource_claims gpu is there twice"),
        ([{**GPU, "name": "Gpu"}], {}, "not a valid name"),
        ([GPU], {"resources": {"claims": [{"name": "gpus"}]}}, r"resources\.claims: 'gpus' is not among resource_claims"),
        ([GPU], {"resources": {"claims": ["gpu"]}}, r"resources\.claims: 'gpu' is not"),
        ([], {"resources": {"claims": [{"name": "gpu"}]}}, "'gpu' is not among resource_claims"),
    ],
)
@pytest.mark.parametrize("name", ["native", "triton_server"])
def test_claims_that_cannot_be(devices: FakeCluster, name: str, claims: list[Manifest], more: Manifest, said: str) -> None:
    module, params = MODULES[name]
    with pytest.raises(InvalidInput, match=said):
        run(module, devices, params, *claims, **more)
    assert not devices.writes


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ({**GPU, "device_class_name": "gpu.example"}, r"Template .* names DeviceClass gpu\.example .*There are: gpu\.nvidia\.com"),
        ({"name": "gpu", "resource_claim_name": "c"}, "names ResourceClaim default/c"),
        ({"name": "gpu", "resource_claim_template_name": "t"}, "names ResourceClaimTemplate default/t"),
    ],
)
def test_what_a_claim_names_has_to_be_there(devices: FakeCluster, claim: Manifest, said: str) -> None:
    with pytest.raises(NotFound) as refused:
        run(elastic_job, devices, ELASTIC, claim)
    assert re.search(said, f"{refused.value.message} {refused.value.hint}")
    assert not devices.writes


def test_a_training_is_made_again_for_other_devices_and_the_old_template_goes(devices: FakeCluster) -> None:
    run(elastic_job, devices, ELASTIC, GPU)
    with pytest.raises(Immutable, match="resource_claims"):
        run(elastic_job, devices, ELASTIC, {**GPU, "count": 4})
    run(elastic_job, devices, ELASTIC, {**GPU, "count": 4}, recreate=True)
    (pod,) = every_pod(devices, "Job")
    (name,) = templates(devices)
    assert name != TEMPLATE
    assert pod["resourceClaims"][0]["resourceClaimTemplateName"] == name
    run(elastic_job, devices, ELASTIC, recreate=True)
    assert not templates(devices)


def test_servers_are_replaced_for_other_devices_and_the_old_template_goes(devices: FakeCluster) -> None:
    module, params = MODULES["triton_server"]
    run(module, devices, params, GPU)
    run(module, devices, params, {**GPU, "count": 4})
    (name,) = templates(devices)
    assert every_pod(devices, "Deployment")[0]["resourceClaims"][0]["resourceClaimTemplateName"] == name
    run(module, devices, params)
    assert not templates(devices)
    assert "resourceClaims" not in every_pod(devices, "Deployment")[0]


def test_a_device_class_stays_while_claims_name_it(devices: FakeCluster) -> None:
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}
    ref = Ref(DEVICES, "DeviceClass", "gpu.nvidia.com")
    live = devices.get(ref)
    assert live is not None
    assert uses_of(devices, {ref: live})[0] == {}
    devices.add({"apiVersion": DEVICES, "kind": "ResourceClaim", "metadata": {"name": "one", "namespace": "default"}, "spec": spec})
    assert "used by ResourceClaim default/one (deviceClassName)" in uses_of(devices, {ref: live})[0][ref].needed


def waiting(claims: list[Manifest], made: list[Manifest], message: str = NO_DEVICES) -> Manifest:
    """A pod without a node, as the scheduler leaves it."""
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "two-0-v2zgm", "namespace": "default"},
        "spec": {"containers": [], "resourceClaims": claims},
        "status": {"phase": "Pending", "conditions": [scheduled], "resourceClaimStatuses": made},
    }


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        (waiting([{"name": "gpu", "resourceClaimTemplateName": "t"}], [CLAIMED]), "gpu: ResourceClaim two-0-v2zgm-gpu-dhgkb"),
        (waiting([{"name": "gpu", "resourceClaimTemplateName": "t"}], []), "gpu: ResourceClaim is not made yet"),
        (waiting([{"name": "gpu", "resourceClaimName": "shared"}], []), "gpu: ResourceClaim shared"),
    ],
)
def test_a_pod_that_waits_for_devices_names_its_claim(devices: FakeCluster, pod: Manifest, said: str) -> None:
    why = "Unschedulable: 0/1 nodes are available: 1 cannot allocate all claims; claims of devices: gpu"
    assert why_not_running(pod) == (why, True)
    devices.add(pod)
    told = tasks.run(doctor, devices, {"namespace": "default"})["findings"]
    (found,) = [one for one in told if one["cause"] == "fits on no node"]
    assert found["evidence"] == f"{why}; {said}"
    assert found["next"].startswith("Ask for fewer devices")


def test_claims_of_devices_are_no_reason_where_another_one_is() -> None:
    pod = waiting([{"name": "gpu", "resourceClaimName": "shared"}], [], "0/1 nodes are available: 1 Insufficient cpu.")
    assert why_not_running(pod)[0] == "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu."


def test_the_preflight_does_not_say_whether_a_pod_with_claims_fits(devices: FakeCluster) -> None:
    node = {"cpu": "8", "memory": "16Gi", "pods": "10"}
    devices.add({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {}, "status": {"allocatable": node}})
    claim = {"name": "gpu", "resourceClaimName": "shared"}
    pods = [{"name": "worker", "replicas": 2, "template": {"spec": {"containers": [{"name": "a"}], "resourceClaims": [claim]}}}]
    told = tasks.run(gang_preflight, devices, {"namespace": "default", "groups": pods})
    assert (told["fits"], told["not_judged"]) == (None, ["resourceClaims of group worker"])

# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of a vLLM server, as YAML in golden files, and options that cannot be."""

import dataclasses
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._manifests.pods import PodSettings
from ansible_collections.muster.ml.plugins.module_utils._manifests.storage import Storage
from ansible_collections.muster.ml.plugins.module_utils._systems.llm.server import METRIC, Autoscaling, VllmServer, manifests
from ansible_collections.muster.ml.tests.unit.fakes.vllm import RECORDED

Golden = t.Callable[..., None]
POD = PodSettings(image="vllm/vllm-openai:v0.32.0", resources={"limits": {"nvidia.com/gpu": 1}})
CLAIM = Storage(claim_name="models", mount_path="/models", size="10Gi")


def server(**more: t.Any) -> VllmServer:
    given = {"name": "llm", "namespace": "ml", "pod": POD, "model": "/models/tiny", "storage": CLAIM, "served_model_name": "tiny"}
    return VllmServer(**{**given, **more})


def test_a_server_with_a_model_in_a_claim(golden: Golden) -> None:
    golden("llm_claim", manifests(server(replicas=2, api_key_secret="llm-key", max_model_len=128, args=("--enforce-eager",))))


def test_a_server_with_a_model_of_the_hub_and_an_autoscaler(golden: Golden) -> None:
    pod = dataclasses.replace(POD, resources={"limits": {"nvidia.com/gpu": 2}})
    hub = {"model": "example/chat", "revision": "main", "served_model_name": None, "storage": None, "hub_token_secret": "hub"}
    found = manifests(server(**hub, pod=pod, tensor_parallel_size=2, replicas=None, autoscaling=Autoscaling(max_replicas=3)))
    golden("llm_hub", found, manifests(server()))


def test_a_server_on_two_hosts(golden: Golden) -> None:
    golden("llm_hosts", _pods_apart(hosts=2), _pods_apart())


def _pods_apart(**more: t.Any) -> list[dict[str, t.Any]]:
    """The objects of a server, and the templates of leader and worker, which are one on a single host, as pods."""
    objects = manifests(server(**more))
    spec = next(one["spec"] for one in objects if one["kind"] in {"Deployment", "LeaderWorkerSet"})
    single, groups = spec.pop("template", None), spec.get("leaderWorkerTemplate", {})
    pods = {role: groups.pop(f"{role}Template", single) for role in ("leader", "worker")}
    return [
        *objects,
        *({"apiVersion": "v1", "kind": "Pod", **one, "metadata": {"name": role, **one["metadata"]}} for role, one in pods.items()),
    ]


def test_the_metric_is_one_that_the_server_has() -> None:
    assert any(line.startswith(f"{METRIC.replace('_', ':', 1)}{{") for line in RECORDED["metrics"])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model": "tiny"}, "is no model"),
        ({"model": "a/b; rm -rf /"}, "is no model"),
        ({"model": "--help/x"}, "is no model"),
        ({"model": "/elsewhere/tiny"}, "is not below storage.mount_path"),
        ({"model": "/models/../etc"}, "is not below storage.mount_path"),
        ({"storage": None}, "is not below storage.mount_path"),
        ({"revision": "main"}, "nothing is fetched"),
        ({"hub_token_secret": "hub"}, "nothing is fetched"),
        ({"served_model_name": "a\nb"}, "cannot be printed"),
        ({"tensor_parallel_size": 0}, "tensor_parallel_size: 0 is too small"),
        ({"tensor_parallel_size": 2}, "a pod has 1 GPUs"),
        ({"hosts": 0}, "hosts: 0 is too small"),
        ({"hosts": 2, "pipeline_parallel_size": 3}, "3 stages of 1 parts cannot be shared by 2 hosts"),
        ({"hosts": 2, "pipeline_parallel_size": 1, "tensor_parallel_size": 4}, "2 parts of the model are on a host, and a pod has 1"),
        ({"hosts": 2, "args": ["--node-rank=0"]}, "--node-rank is set by the module"),
        ({"max_model_len": 0}, "max_model_len: 0 is too small"),
        ({"gpu_memory_utilization": 90.0}, "is not a share"),
        ({"args": ["enforce-eager"]}, "is not a flag"),
        ({"args": ["--api-key=x"]}, "--api-key is set by the module"),
        ({"args": ["--max_model_len=1"]}, "--max-model-len is set by the module"),
        ({"args": ["--port", "80"]}, "is set by the module"),
        ({"args": ["--max-num-seqs", "16", "32"]}, "'32' is not a flag"),
        ({"args": ["--max-num-seqs=16", "32"]}, "'32' is not a flag"),
        ({"args": ["-tp", "2"]}, "'-tp' is not a flag"),
        ({"args": ["--ssl_keyfile", "/tls/tls.key"]}, "with --ssl_keyfile no probe and no client gets an answer"),
        ({"pod": dataclasses.replace(POD, env=[{"name": "VLLM_API_KEY", "value": "x"}])}, "VLLM_API_KEY is set by an option"),
        ({"pod": dataclasses.replace(POD, image="vllm/vllm-openai:latest")}, "is not pinned"),
        ({"pod": dataclasses.replace(POD, termination_grace_period_seconds=130)}, "130 s end before"),
    ],
)
def test_servers_that_cannot_be(changes: dict[str, t.Any], told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        manifests(server(**changes))
    assert told in caught.value.message


def test_a_flag_may_have_its_value_behind_it() -> None:
    """As in most Deployments of others."""
    given = ["--max-num-seqs", "16", "--trust-remote-code", "--kv-cache-dtype", "fp8"]
    made = next(one for one in manifests(server(args=given)) if one["kind"] == "Deployment")
    assert made["spec"]["template"]["spec"]["containers"][0]["args"][-5:] == given


@pytest.mark.parametrize(("given", "told"), [({"min_replicas": 0}, "min_replicas"), ({"requests_waiting": 0}, "requests_waiting")])
def test_autoscalers_that_cannot_be(given: dict[str, int], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        Autoscaling(max_replicas=2, **given)

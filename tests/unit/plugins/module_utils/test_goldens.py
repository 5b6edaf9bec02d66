# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden files of builders whose other tests need none, and that every builder has one."""

import ast
import typing as t
from pathlib import Path

import pytest
from support.released import manifest

from ansible_collections.muster.ml.plugins.module_utils._manifests.pods import PodSettings
from ansible_collections.muster.ml.plugins.module_utils._systems.dataset import manifests as dataset
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic import native, spec, trainer
from ansible_collections.muster.ml.plugins.module_utils._systems.etcd import manifests as etcd
from ansible_collections.muster.ml.plugins.module_utils._systems.jobset import jobset
from ansible_collections.muster.ml.plugins.module_utils._systems.kueue import kueue
from ansible_collections.muster.ml.plugins.module_utils._systems.llm import lws
from ansible_collections.muster.ml.plugins.module_utils._systems.triton import inference_gateway, route, route_istio

ROOT = Path(__file__).resolve().parents[4]
UTILS = ROOT / "plugins" / "module_utils"
AT = {"name": "inference", "namespace": "ml"}
CONTROLLER = {"manifest": "m", "manifest_sha256": "s", "namespace": "apart", "image": "muster.local/controller:1.2.0"}
ROUTE = route.InferenceRoute(**AT, gateway="edge", weights={"blue": 90, "green": 10}, hostnames=["example.com"], request_timeout=30)
JOB = {"name": "digits", "namespace": "ml", "image": "example/torch:1", "replicas": 2, "min_replicas": 1, "max_replicas": 3}
GATEWAY: dict[str, t.Any] = {
    **AT,
    "backends": [{"name": "blue", "weight": 1}],
    "tls_secret": "example-com",
    "annotations": {"example.com/team": "ml"},
}

Objects = list[dict[str, t.Any]]


def _without_programs(objects: Objects) -> Objects:
    """Neither the texts of programs nor what a hash of them has changed."""
    for one in objects:
        if one["kind"] == "ConfigMap":
            one["data"] = list(one["data"])
        if one["kind"] == "Job":
            one["metadata"]["name"] = one["metadata"]["name"].partition("-")[0]
            one["spec"]["template"]["metadata"].pop("annotations", None)
    return objects


def _dataset() -> Objects:
    pod = PodSettings(image="example/python:1")
    return _without_programs(
        dataset.manifests(
            dataset.Dataset(
                name="tiny", namespace="ml", pod=pod, sha256="a" * 64, claim_name="data", storage_size="1Gi", url="s3://b/x.tar"
            )
        )
    )


def _native() -> Objects:
    """The Job; what the pods need besides, the other backends have, too."""
    return _without_programs(native.manifests(spec.from_params({**JOB, "script": "train.py", "files": {"train.py": "print()"}}))[-1:])


def _etcd() -> Objects:
    """The StatefulSet; the objects around it are those of all servers."""
    pod = PodSettings(image="example/etcd:v3.5.35")
    return etcd.manifests(etcd.EtcdCluster(name="etcd", namespace="ml", replicas=3, pod=pod))[-1:]


def _gateway(kind: str, **more: t.Any) -> Objects:
    return inference_gateway.manifests(inference_gateway.InferenceGateway(kind=kind, **GATEWAY, **more))


def _google() -> Objects:
    addresses = [{"type": "NamedAddress", "value": "inference"}]
    return _gateway("gateway-api", class_name="gke-l7-rilb", addresses=addresses)


MADE: dict[str, t.Callable[[], Objects]] = {
    "dataset": _dataset,
    "elastic_job_native": _native,
    "etcd_cluster": _etcd,
    "inference_gateway_google": _google,
    "inference_gateway_istio": lambda: _gateway("istio", http=True),
    "inference_route": lambda: route.manifests(ROUTE),
    "inference_route_istio": lambda: route_istio.manifests(ROUTE),
}
QUEUED = ("batch/job", "jobset.x-k8s.io/jobset")
HOOKED = manifest("kueue", {}, {"vjob.kb.io": "batch", "vjobset.kb.io": "jobset.x-k8s.io"})
RELEASED: dict[str, tuple[t.Callable[[Objects], Objects], Objects]] = {
    "jobset": (lambda objects: jobset.manifests(jobset.JobSetController(**CONTROLLER), objects), manifest("jobset", {})),
    "lws": (lambda objects: lws.manifests(lws.LeaderWorkerSetController(**CONTROLLER), objects), manifest("lws", {})),
    "kueue": (lambda objects: kueue.manifests(kueue.KueueController(**CONTROLLER, integrations=QUEUED), objects), HOOKED),
    "trainer": (lambda objects: trainer.manifests(trainer.Trainer(**CONTROLLER), objects), manifest("kubeflow-trainer", {})),
}


@pytest.mark.parametrize("name", MADE)
def test_objects(golden: t.Callable[..., None], name: str) -> None:
    golden(name, MADE[name]())


@pytest.mark.parametrize("name", RELEASED)
def test_what_differs_from_the_released_manifest(golden: t.Callable[..., None], name: str) -> None:
    build, released = RELEASED[name]
    golden(name, build(released), released)


def test_without_a_certificate_port_80_answers() -> None:
    plain = inference_gateway.manifests(inference_gateway.InferenceGateway(**AT, class_name="traefik", backends=GATEWAY["backends"]))
    assert [[(row["name"], row["port"]) for row in one["spec"]["listeners"]] for one in plain] == [[("http", 80)]]


def test_google_asks_for_the_health_of_the_servers_that_the_routes_have() -> None:
    asked = [_gateway("gateway-api", class_name="gke-l7-rilb", options={"protocols": protocols})[1] for protocols in (["openai"], ["http"])]
    paths = [one["spec"]["default"]["config"]["httpHealthCheck"]["requestPath"] for one in asked]
    assert paths == ["/health", "/v2/health/ready"]


def test_every_builder_has_a_golden_file() -> None:
    """Some test that compares with a golden file takes the builder from its module."""
    tests = [path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "unit").rglob("test_*.py")]
    imported = {name for text in tests if "golden(" in text for name in _imports(ast.parse(text))}
    builders = [path for path in UTILS.rglob("*.py") if "\ndef manifests(" in path.read_text(encoding="utf-8")]
    names = {".".join(path.relative_to(UTILS).with_suffix("").parts) for path in builders}
    assert len(names) > 25
    assert names - imported == set()


def _imports(tree: ast.Module) -> set[str]:
    """Modules of module_utils from which something is imported, and what is imported."""
    rows = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and "plugins.module_utils." in str(node.module)]
    modules = [(str(node.module).partition("plugins.module_utils.")[2], node.names) for node in rows]
    return {module for module, _names in modules} | {f"{module}.{alias.name}" for module, names in modules for alias in names}

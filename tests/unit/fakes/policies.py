# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of every system that has a NetworkPolicy, and the labels of their pods. Names as in docs/operating/connections.md."""

import typing as t
from collections.abc import Callable, Iterator
from functools import partial

from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive, revealed
from ansible_collections.muster.ml.plugins.module_utils._manifests import prometheus
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import Manifest
from ansible_collections.muster.ml.plugins.module_utils._manifests.pods import PodSettings
from ansible_collections.muster.ml.plugins.module_utils._manifests.storage import Storage
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic import native as elastic
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic import pytorch_job
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic import spec as elastic_spec
from ansible_collections.muster.ml.plugins.module_utils._systems.etcd import manifests as etcd
from ansible_collections.muster.ml.plugins.module_utils._systems.jobset import manifests as jobset
from ansible_collections.muster.ml.plugins.module_utils._systems.jobset import spec as jobset_spec
from ansible_collections.muster.ml.plugins.module_utils._systems.llm import server as llm
from ansible_collections.muster.ml.plugins.module_utils._systems.nats import manifests as nats
from ansible_collections.muster.ml.plugins.module_utils._systems.object_store import manifests as object_store
from ansible_collections.muster.ml.plugins.module_utils._systems.persia import native, operator, spec
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq import manifests as rabbitmq
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import runner
from ansible_collections.muster.ml.plugins.module_utils._systems.traefik import traefik
from ansible_collections.muster.ml.plugins.module_utils._systems.triton import server as triton
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.repository import Repository

from .trainings import PERSIA as SMALL

NAMESPACE = "ml"
POD = PodSettings(image="example/x:1", resources={"limits": {"memory": "1Gi"}})
PERSIA: dict[str, t.Any] = {**SMALL, "namespace": NAMESPACE}
ELASTIC: dict[str, t.Any] = {
    "name": "digits", "namespace": NAMESPACE, "image": "example/torch:1", "replicas": 2, "script": "/train.py",
}  # fmt: skip
JOBSET: dict[str, t.Any] = {
    "name": "lm", "namespace": NAMESPACE, "image": "example/jax:1", "command": ["python3"], "tpu": {"type": "v5e", "topology": "4x4"},
}  # fmt: skip


def _server(made: Callable[[t.Any], list[Manifest]], settings: type[t.Any], name: str, /, **options: t.Any) -> list[Manifest]:
    return revealed(made(settings(name=name, namespace=NAMESPACE, pod=POD, **options)))


def _elastic(**options: t.Any) -> list[Manifest]:
    return elastic.manifests(elastic_spec.from_params({**ELASTIC, **options}))


def _pytorch_job(**options: t.Any) -> list[Manifest]:
    return pytorch_job.manifests(elastic_spec.from_params({**ELASTIC, "backend": "pytorchjob", **options}), "run")


VOLUME = Repository(model_repository="/models", storage=Storage(claim_name="models", mount_path="/models"))
SYSTEMS: dict[str, Callable[..., list[Manifest]]] = {
    "NATS": partial(_server, nats.manifests, nats.NatsCluster, "nats", backend="native"),
    "NATS by nats-operator": partial(_server, nats.manifests, nats.NatsCluster, "by-operator", backend="operator"),
    "PERSIA's training, metrics gateway": lambda **options: native.manifests(spec.from_params({**PERSIA, **options})),
    "PERSIA's training by its operator": lambda **options: operator.manifests(
        spec.from_params({**PERSIA, "name": "by-operator", "backend": "operator", **options})
    ),
    "elastic training": _elastic,
    "elastic training as PyTorchJob": partial(_pytorch_job, name="as-job"),
    "JobSet, also for TPUs": lambda **options: jobset.manifests(jobset_spec.from_params({**JOBSET, **options})),
    "etcd": partial(_server, etcd.manifests, etcd.EtcdCluster, "etcd", replicas=3),
    "RabbitMQ": partial(_server, rabbitmq.manifests, rabbitmq.RabbitmqCluster, "rabbitmq", tls=False),
    "RabbitMQ with TLS": partial(_server, rabbitmq.manifests, rabbitmq.RabbitmqCluster, "rabbitmq-tls", tls=True),
    "object store": partial(_server, object_store.manifests, object_store.ObjectStore, "store"),
    "Triton": partial(_server, triton.manifests, triton.TritonServer, "triton", repository=VOLUME),
    "vLLM": partial(_server, llm.manifests, llm.VllmServer, "llm", model="example/chat"),
    "vLLM on several hosts": partial(_server, llm.manifests, llm.VllmServer, "llm-hosts", model="example/chat", hosts=2),
    "StudioML's runner": partial(_server, runner.manifests, runner.Runner, "runner", amqp_url=Sensitive("amqp://u:p@broker:5672/%2f")),
    "Prometheus": lambda **options: prometheus.manifests(prometheus.Prometheus(namespace=NAMESPACE, image="example/x:1", **options)),
}
# Nothing but a gateway is there for all.
GATEWAY: dict[str, Callable[..., list[Manifest]]] = {
    "gateway (Traefik)": lambda: traefik.manifests(traefik.Traefik(namespace=NAMESPACE, image="example/x:1"))
}
# Pods that operators make from our objects, with the labels that they are known to give.
ELSEWHERE = {
    "NATS by nats-operator": [{"app": "nats", "nats_cluster": "by-operator", "nats_version": "2.14.2"}],
    "PERSIA's training by its operator": [{"persia_job": "by-operator"}],
}


def labels_of(system: str, objects: list[Manifest]) -> list[dict[str, str]]:
    """The labels of all kinds of pods of a system."""
    return [*_templates(objects), *ELSEWHERE.get(system, [])]


def _templates(value: t.Any) -> Iterator[dict[str, str]]:
    if isinstance(value, dict):
        for name, item in value.items():
            if name.lower().endswith("template") and "containers" in (item.get("spec") or {}):
                yield item["metadata"]["labels"]
            yield from _templates(item)
    elif isinstance(value, list):
        for item in value:
            yield from _templates(item)

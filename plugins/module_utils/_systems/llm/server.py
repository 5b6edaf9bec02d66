# SPDX-License-Identifier: GPL-3.0-or-later
"""vLLM behind OpenAI's API: replicas of one server of one language model.

Seen with 0.32.0 (docs/systems/llm.md):

- The port opens when the model is loaded and ready. ``/health`` needs no key, all below ``/v1`` does; the key is read from the variable.
- After SIGTERM with ``--shutdown-timeout`` the answers in flight are finished while ``/health`` is still good; without it all
  are cut at once. The workers then need up to 25 s to end.
- A Service called ``vllm`` would set ``VLLM_PORT`` to an address, which the server refuses. So pods get no variables of Services.

Replicas of several hosts each, as a LeaderWorkerSet: the leader of a group answers clients, its workers hold their parts of the model.

All pods of a group are replaced when one of them has ended (LeaderWorkerSet 0.9, RecreateGroupOnPodRestart), because the others would
wait for it. Its controller gives each container LWS_LEADER_ADDRESS, LWS_GROUP_SIZE and LWS_WORKER_INDEX.
"""

from __future__ import annotations

import dataclasses
import posixpath
import re

from ..._core.errors import InvalidInput
from ..._manifests import autoscaling, monitoring, network_policy, replicas, servers, storage
from ..._manifests.meta import DEPLOYMENT, LEADER_WORKER_SET, Manifest, check_count
from ..._manifests.operators import type_of
from ..._manifests.pods import PodSettings, pod_template, refuse_variables
from ..._manifests.storage import Storage
from . import metrics

PORT = 8000
_PORTS = {"http-metrics": PORT}
"""One port of both: the name has Prometheus collect the metrics, and a mesh know that it is HTTP."""
API_KEY = "VLLM_API_KEY"
HUB_TOKEN = "HF_TOKEN"  # noqa: S105
METRIC = "vllm_num_requests_waiting"
"""The metric of a pod that roles/prometheus_adapter makes of ``vllm:num_requests_waiting``."""

_GPU = "nvidia.com/gpu"
_TEMPORARY = "/tmp"  # noqa: S108
_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_OWN = {
    "model": "model",
    "host": "",
    "port": "",
    "api-key": "api_key_secret",
    "hf-token": "hub_token_secret",
    "revision": "revision",
    "served-model-name": "served_model_name",
    "tensor-parallel-size": "tensor_parallel_size",
    "tp": "tensor_parallel_size",
    "pipeline-parallel-size": "pipeline_parallel_size",
    "pp": "pipeline_parallel_size",
    "nnodes": "hosts",
    "node-rank": "hosts",
    "master-addr": "hosts",
    "max-model-len": "max_model_len",
    "dtype": "dtype",
    "gpu-memory-utilization": "gpu_memory_utilization",
    "shutdown-timeout": "exit_timeout",
}
_ELSEWHERE = ("headless", "grpc", "uds", "ssl-keyfile", "ssl-certfile")
"""Flags after which nothing answers at the port by HTTP: docs.vllm.ai/en/v0.30.0/cli/serve."""
_ENV = {
    API_KEY: "Use api_key_secret.",
    HUB_TOKEN: "Use hub_token_secret.",
    "VLLM_PORT": "The Service has the usual port.",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Autoscaling(autoscaling.Autoscaling):
    """The options of an autoscaler. ``requests_waiting``: how many wait at a replica, on average over the replicas."""

    target = "requests_waiting"

    requests_waiting: int = 4
    metric: str = METRIC


@dataclasses.dataclass(frozen=True, kw_only=True)
class VllmServer(replicas.Replicas):
    """Replicas of one server, with one model."""

    module, title, app, spare = "vllm_server", "vLLM", "vllm", 40
    workloads = (DEPLOYMENT, LEADER_WORKER_SET)

    model: str
    revision: str | None = None
    served_model_name: str | None = None
    storage: Storage | None = None
    hosts: int = 1
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int | None = None
    max_model_len: int | None = None
    dtype: str = "auto"
    gpu_memory_utilization: float | None = None
    api_key_secret: str | None = None
    hub_token_secret: str | None = None
    alerts: monitoring.RequestAlerts | None = None
    startup_timeout: int = 1800
    drain_timeout: int = 30
    exit_timeout: int = 120

    @property
    def workload(self) -> tuple[str, str]:
        return self.workloads[self.hosts > 1]

    @property
    def alerts_of_metrics(self) -> list[Manifest]:
        return metrics.alerts_of(self.name, self.namespace, self.alerts) if self.alerts else []

    @property
    def stages(self) -> int:
        """The number of stages of the pipeline, each with all the tensors of its layers."""
        return self.pipeline_parallel_size or self.hosts

    @property
    def endpoint(self) -> str:
        """The base URL for clients in the cluster."""
        return f"http://{self.name}.{self.namespace}.svc:{PORT}/v1"

    @property
    def served(self) -> str:
        """The name of the model in requests."""
        return self.served_model_name or self.model


def manifests(server: VllmServer) -> list[Manifest]:
    """The objects of SERVER."""
    replicas.check(server, "vllm/vllm-openai:v0.32.0")
    _check(server)
    pod, env = _settings(server), _env(server)
    template = replicas.template_of(server, pod, env)
    template["spec"]["enableServiceLinks"] = False
    objects, ports = storage.storage_claim(server.storage, server.namespace, server.labels), servers.Ports(clients=_PORTS)
    if server.hosts == 1:
        return [*objects, *replicas.objects_of(server, replicas.deployment(server, template), ports)]
    # The workers ask no client for the key.
    env = _env(dataclasses.replace(server, api_key_secret=None))
    groups = leader_worker_set(server, server.hosts, template, pod, env)
    return [*objects, *with_workers(server, replicas.objects_of(server, groups, ports))]


def _check(server: VllmServer) -> None:
    model, shared = server.model, server.storage
    if model.startswith("/"):
        below = [posixpath.normpath(path) for path in (model, shared.mount_path if shared else "")]
        if shared is None or posixpath.commonpath(below) != below[1]:
            raise InvalidInput(
                f"model: {model} is not below storage.mount_path.", "Give option storage, or the name of a model of the hub."
            )
        if server.revision or server.hub_token_secret:
            raise InvalidInput("model: it is a folder, so that nothing is fetched.", "Leave out revision and hub_token_secret.")
    elif not _HUB.fullmatch(model):
        raise InvalidInput(f"model: '{model}' is no model.", "It is OWNER/NAME of the hub, or a folder of option storage.")
    if not server.served.isprintable():
        raise InvalidInput("served_model_name: it has characters that cannot be printed.")
    for name in ("hosts", "tensor_parallel_size", "pipeline_parallel_size"):
        check_count(1 if getattr(server, name) is None else getattr(server, name), name, minimum=1)
    if server.max_model_len is not None:
        check_count(server.max_model_len, "max_model_len", minimum=1)
    share = server.gpu_memory_utilization
    if share is not None and not 0 < share <= 1:
        raise InvalidInput(f"gpu_memory_utilization: {share} is not a share of the memory.", "0.9 is nine tenths.")
    for flag in map(str, server.args):
        if flag.partition("=")[0].lstrip("-").replace("_", "-") in _ELSEWHERE:
            raise InvalidInput(f"args: with {flag} no probe and no client gets an answer by HTTP.", "Leave it out; a Gateway can end TLS.")
    refuse_variables(server.pod.env, _ENV)
    _check_gpus(server)


def _check_gpus(server: VllmServer) -> None:
    """Refuse parts of a model that are not the same number on every host, or for which a pod has no GPUs."""
    parts, rest = divmod(server.tensor_parallel_size * server.stages, server.hosts)
    if rest:
        raise InvalidInput(
            f"hosts: {server.stages} stages of {server.tensor_parallel_size} parts cannot be shared by {server.hosts} hosts.",
            "pipeline_parallel_size times tensor_parallel_size is a multiple of it.",
        )
    given = server.pod.resources or {}
    sides = [given.get(side) or {} for side in ("requests", "limits")]
    gpus = {str(side[_GPU]) for side in sides if _GPU in side}
    if gpus and gpus != {str(parts)}:
        raise InvalidInput(
            f"tensor_parallel_size: {parts} parts of the model are on a host, and a pod has {', '.join(sorted(gpus))} GPUs.",
            f"Give {_GPU} the same number in resources.",
        )


def _settings(server: VllmServer) -> PodSettings:
    # What is fetched from the hub is kept on the volume, for all pods.
    pod = replicas.settings(server, _PORTS, "/health", "/health", server.storage, read_only=server.model.startswith("/"))
    return dataclasses.replace(pod, command=["vllm", "serve"], args=_arguments(server))


def _arguments(server: VllmServer) -> list[str]:
    more = replicas.flags(server, "vllm serve", "--NAME or --NAME=VALUE", _OWN)
    given = {
        "revision": server.revision,
        "served-model-name": server.served_model_name,
        "tensor-parallel-size": server.tensor_parallel_size,
        "pipeline-parallel-size": server.stages if server.stages > 1 else None,
        "max-model-len": server.max_model_len,
        "dtype": server.dtype,
        "gpu-memory-utilization": server.gpu_memory_utilization,
        "shutdown-timeout": server.exit_timeout,
    }
    together = ARGUMENTS if server.hosts > 1 else ()
    own = (f"--{name}={value}" for name, value in given.items() if value is not None)
    return [server.model, f"--port={PORT}", *own, *together, *more]


def _env(server: VllmServer) -> list[Manifest]:
    """The variables: keys out of their Secrets, and folders that user 1000 may write to."""
    on_disk, shared = server.model.startswith("/"), server.storage
    cache = f"{shared.mount_path}/.huggingface" if shared and not on_disk else f"{_TEMPORARY}/huggingface"
    plain = {
        "HOME": _TEMPORARY,
        "USER": "vllm",
        "HF_HOME": cache,
        "VLLM_NO_USAGE_STATS": "1",
        **({"HF_HUB_OFFLINE": "1"} if on_disk else {}),
    }
    secrets = {API_KEY: server.api_key_secret, HUB_TOKEN: server.hub_token_secret}
    return [
        *({"name": name, "value": value} for name, value in plain.items()),
        *({"name": key, "value_from": {"secretKeyRef": {"name": name, "key": key}}} for key, name in secrets.items() if name),
    ]


ARGUMENTS = ("--nnodes=$(LWS_GROUP_SIZE)", "--node-rank=$(LWS_WORKER_INDEX)", "--master-addr=$(LWS_LEADER_ADDRESS)")
"""The flags of ``vllm serve`` by which the pods of a group find each other, without Ray (vLLM 0.32.0, ``vllm serve --help``)."""


def leader_worker_set(server: replicas.Replicas, hosts: int, leader: Manifest, pod: PodSettings, env: list[Manifest]) -> Manifest:
    """The groups. LEADER: the template of the first pod, POD: the settings of the others, which clients are not led to.

    A group ends only after another one got ready, as a pod of a Deployment does.
    """
    labels = {**server.labels, "app.kubernetes.io/name": _workers(server)}
    bare = dataclasses.replace(
        pod,
        args=[*pod.args, "--headless"],
        ports=(),
        startup_probe=None,
        readiness_probe=None,
        liveness_probe=None,
        termination_grace_period_seconds=server.spare,
    )
    worker = pod_template(bare, container=server.app, labels=labels, selector=labels, env=env)
    worker["spec"].update({key: leader["spec"][key] for key in ("automountServiceAccountToken", "enableServiceLinks")})
    return {
        "apiVersion": LEADER_WORKER_SET[0],
        "kind": LEADER_WORKER_SET[1],
        "metadata": server.queued_metadata,
        "spec": {
            **({} if server.replicas is None else {"replicas": server.replicas}),
            # Otherwise the controller's headless Service would have the name of ours.
            "networkConfig": {"subdomainPolicy": "UniquePerReplica"},
            "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxSurge": 1, "maxUnavailable": 0}},
            "leaderWorkerTemplate": {
                "size": hosts,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": leader,
                "workerTemplate": worker,
            },
        },
    }


def with_workers(server: replicas.Replicas, objects: list[Manifest]) -> list[Manifest]:
    """OBJECTS, of which NetworkPolicy and disruption budget select the workers, too. Pods of a group reach each other at every port."""
    names = {"key": "app.kubernetes.io/name", "operator": "In", "values": [server.app, _workers(server)]}
    every = {"matchLabels": {"app.kubernetes.io/instance": server.name}, "matchExpressions": [names]}
    for one in objects:
        if type_of(one) == (network_policy.API_VERSION, network_policy.KIND):
            one["spec"]["podSelector"] = every
            one["spec"]["ingress"].append({"from": [{"podSelector": every}]})
        elif type_of(one) == ("policy/v1", "PodDisruptionBudget"):
            one["spec"]["selector"] = every
    return objects


def _workers(server: replicas.Replicas) -> str:
    """Their value of the label by which Service, metrics and checks find the pods that answer."""
    return f"{server.app}-worker"

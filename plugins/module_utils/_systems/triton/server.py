# SPDX-License-Identifier: GPL-3.0-or-later
"""Triton Inference Server: replicas of one server behind a Service.

Seen with 2.51.0 (docs/systems/triton.md):

- No port answers while the models of the start are loaded, and a model that cannot be loaded ends the server (``--exit-on-error``). So a
  startup probe allows the time for loading, and a pod that is ready has its models.
- With ``--strict-readiness`` the server is not ready while one version of one model has failed or is unloading, although it serves the
  others: one broken upload would take every replica out of the Service. So it is off here.
- After SIGTERM the HTTP port closes at once; what is in flight may end within ``--exit-timeout-secs``. So a pod leaves the Service first
  (preStop waits), and the grace period is longer than both together.
"""

from __future__ import annotations

import dataclasses
import posixpath

from ..._manifests import autoscaling, monitoring, replicas, servers, storage
from ..._manifests.meta import Manifest
from ..._manifests.pods import PodSettings, init_container
from . import metrics
from .repository import OWN_FLAGS, Repository, arguments, checked_repository, credentials

PORTS = {"http": 8000, "grpc": 8001, "metrics": 8002}
APP_PROTOCOLS = {"grpc": "kubernetes.io/h2c"}
"""The appProtocol of ports; without it, a Gateway speaks HTTP/1.1 to the gRPC port."""

METRIC = "avg_time_queue_us"
"""The metric's name in NVIDIA's own chart for Triton; roles/prometheus_adapter has the rule that computes it."""

_HOME = {"name": "HOME", "value": "/tmp"}  # noqa: S108
"""The home folder is the only one that can be written to: libraries of models, such as vLLM, keep files there."""
_GPU = "nvidia.com/gpu"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Autoscaling(autoscaling.Autoscaling):
    """The options of an autoscaler. ``queue_time_us``: the target value of the metric, on average over the replicas."""

    target = "queue_time_us"

    queue_time_us: int = 50_000
    metric: str = METRIC


@dataclasses.dataclass(frozen=True, kw_only=True)
class TritonServer(replicas.Replicas):
    """Replicas of one server, with one model repository."""

    module, title, app = "triton_server", "Triton", "triton"

    repository: Repository
    strict_readiness: bool = False
    alerts: monitoring.RequestAlerts | None = None

    @property
    def alerts_of_metrics(self) -> list[Manifest]:
        return metrics.alerts_of(self.name, self.namespace, self.alerts) if self.alerts else []

    @property
    def endpoints(self) -> dict[str, str]:
        """Name of a port -> address for clients in the cluster."""
        return {port: f"{self.name}.{self.namespace}.svc:{number}" for port, number in PORTS.items()}


def labels_of(name: str, app: str = TritonServer.app) -> dict[str, str]:
    """The labels of the pods of the server NAME."""
    return {"app.kubernetes.io/name": app, "app.kubernetes.io/instance": name}


def manifests(server: TritonServer) -> list[Manifest]:
    """The objects of SERVER."""
    replicas.check(server, "nvcr.io/nvidia/tritonserver:26.07-py3")
    checked_repository(server.repository)
    objects = storage.storage_claim(server.repository.storage, server.namespace, server.labels)
    env = [_HOME, *credentials(server.repository)]
    made = replicas.deployment(server, replicas.template_of(server, _settings(server), env))
    return [*objects, *replicas.objects_of(server, made, servers.Ports(clients=PORTS), APP_PROTOCOLS)]


def has_gpus(pod: PodSettings) -> bool:
    """Whether the pods are given GPUs."""
    given = pod.resources or {}
    return any(str((given.get(side) or {}).get(_GPU, "0")) != "0" for side in ("requests", "limits"))


def _settings(server: TritonServer) -> PodSettings:
    pod = replicas.settings(server, PORTS, "/v2/health/ready", "/v2/health/live", server.repository.storage)
    readiness, gpus = (str(yes).lower() for yes in (server.strict_readiness, has_gpus(server.pod)))
    return dataclasses.replace(
        pod,
        # Arguments and no command: the entrypoint of the published image sets up CUDA, and then runs what it is given.
        args=[
            "tritonserver",
            *arguments(server.repository),
            f"--strict-readiness={readiness}",
            f"--exit-timeout-secs={server.exit_timeout}",
            f"--allow-gpu-metrics={gpus}",
            *replicas.flags(server, "tritonserver", "--NAME=VALUE", OWN_FLAGS),
        ],
        init_containers=(*pod.init_containers, *_folder(server)),
    )


def _folder(server: TritonServer) -> list[Manifest]:
    """The container that makes the folder of the models on a new claim: without it the server would end, and no model could be uploaded."""
    pod, shared, folder = servers.secured(server.pod), server.repository.storage, server.repository.model_repository
    if shared is None or posixpath.normpath(folder) == posixpath.normpath(shared.mount_path):
        return []
    return [init_container(pod, "folder", ["mkdir", "-p", folder], [{"name": "models", "mountPath": shared.mount_path}])]

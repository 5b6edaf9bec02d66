# Copyright: (c) 2026, Muster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection.

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
import math
import posixpath
from collections.abc import Mapping, Sequence

from ..._core.errors import InvalidInput
from ..._manifests import access, monitoring, servers, storage
from ..._manifests.merge import apply_overrides
from ..._manifests.meta import DNS_LABEL_MAX, Manifest, check_count, check_name, pinned_tag
from ..._manifests.pods import PodSettings, init_container, pod_template, texts
from . import metrics
from .autoscaling import Autoscaling, autoscaler
from .metrics import Alerts
from .repository import Repository, arguments, checked_repository, credentials

PORTS = {"http": 8000, "grpc": 8001, "metrics": 8002}
APP_PROTOCOLS = {"grpc": "kubernetes.io/h2c"}
"""The appProtocol of ports; without it, a Gateway speaks HTTP/1.1 to the gRPC port."""
DEPLOYMENT = "apps/v1", "Deployment"

_GPU = "nvidia.com/gpu"
_PERIOD_S = 5
_SPARE_S = 10
"""Seconds of the grace period for the server itself, after requests in flight have ended."""
_PULL_S = 600
"""Seconds that a new pod may need beside loading: published images have many gigabytes."""
_SPREAD = ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
_OWN_PODS_LABEL = "pod-template-hash"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TritonServer(servers.Server):
    """Replicas of one server, with one model repository."""

    module, title, app = "triton_server", "Triton", "triton"

    repository: Repository
    replicas: int | None = 1
    """None leaves the number to the autoscaler."""
    autoscaling: Autoscaling | None = None
    args: Sequence[str] = ()
    shm_size: str = "1Gi"
    strict_readiness: bool = False
    startup_timeout: int = 600
    drain_timeout: int = 10
    exit_timeout: int = 30
    service_account_annotations: Mapping[str, str] | None = None
    monitor: str | None = None
    """A kind of monitoring.MONITORS, or None."""
    alerts: Alerts | None = None

    @property
    def endpoints(self) -> dict[str, str]:
        """Name of a port -> address for clients in the cluster."""
        return {port: f"{self.name}.{self.namespace}.svc:{number}" for port, number in PORTS.items()}


def labels_of(name: str) -> dict[str, str]:
    """The labels of the pods of the server NAME."""
    return {"app.kubernetes.io/name": TritonServer.app, "app.kubernetes.io/instance": name}


def manifests(server: TritonServer) -> list[Manifest]:
    """The objects of SERVER."""
    _check(server)
    meta = server.metadata()
    objects = storage.storage_claim(server.repository.storage, server.namespace, server.labels)
    if not server.pod.service_account_name:
        objects.append(_service_account(server))
    objects += servers.around(server, servers.Ports(clients=PORTS), app_protocols=APP_PROTOCOLS, budget=True)
    objects.append(apply_overrides(deployment(server), server.overrides))
    if server.autoscaling:
        objects.append(autoscaler(meta, DEPLOYMENT, server.autoscaling))
    return [*objects, *_monitoring(server, meta)]


def _monitoring(server: TritonServer, meta: Manifest) -> list[Manifest]:
    """The monitor for the metrics, and the alert rules."""
    found = []
    if server.monitor:
        found.append(monitoring.monitor(server.monitor, meta, server.labels, interval="15s"))
        if server.alerts:
            groups = metrics.alert_groups(server.name, server.namespace, server.alerts)
            found.append(monitoring.rules(server.monitor, meta, groups))
    return found


def _check(server: TritonServer) -> None:
    check_name(server.name, "name", limit=DNS_LABEL_MAX, service=True)
    if server.replicas is not None:
        check_count(server.replicas, "replicas")
    if server.autoscaling and "replicas" in ((server.overrides or {}).get("spec") or {}):
        raise InvalidInput("overrides: spec.replicas is what autoscaling changes.", "Leave out one of the two.")
    check_count(server.startup_timeout, "startup_timeout", minimum=_PERIOD_S)
    check_count(server.drain_timeout, "drain_timeout")
    check_count(server.exit_timeout, "exit_timeout")
    checked_repository(server.repository)
    pinned_tag(server.pod.image, "Give it a version, such as nvcr.io/nvidia/tritonserver:26.07-py3, or a digest.")
    needed, given = server.drain_timeout + server.exit_timeout, server.pod.termination_grace_period_seconds
    if given is not None and given <= needed:
        raise InvalidInput(
            f"termination_grace_period_seconds: {given} s end before drain_timeout and exit_timeout, which are {needed} s together.",
            "The kubelet would kill the server in the middle of requests. Leave it out, or make it longer.",
        )
    if server.pod.service_account_name and server.service_account_annotations:
        raise InvalidInput(
            "service_account_annotations: they are for the account that is made here, and service_account_name names another one.",
            "Annotate that one, or leave out service_account_name.",
        )


def _service_account(server: TritonServer) -> Manifest:
    """The ServiceAccount to which a cloud grants access. It has no permissions in the cluster, and no token is mounted."""
    made = access.service_account(server.name, server.namespace, server.labels)
    if server.service_account_annotations:
        made["metadata"]["annotations"] = dict(server.service_account_annotations)
    return {**made, "automountServiceAccountToken": False}


def has_gpus(pod: PodSettings) -> bool:
    """Whether the pods are given GPUs."""
    given = pod.resources or {}
    return any(str((given.get(side) or {}).get(_GPU, "0")) != "0" for side in ("requests", "limits"))


def _settings(server: TritonServer) -> PodSettings:
    pod, shared = servers.secured(server.pod), server.repository.storage
    ready = {"path": "/v2/health/ready", "port": "http"}
    probe = {"httpGet": ready, "periodSeconds": _PERIOD_S, "timeoutSeconds": 5, "failureThreshold": 3}
    live = {**probe, "httpGet": {**ready, "path": "/v2/health/live"}, "periodSeconds": 10, "failureThreshold": 6}
    volumes: list[Manifest] = [{"name": "tmp", "emptyDir": {}}]
    mounts: list[Manifest] = [{"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108
    if shared:
        volumes.append({"name": "models", "persistentVolumeClaim": {"claimName": shared.claim_name}})
        mounts.append({"name": "models", "mountPath": shared.mount_path, "readOnly": True})
    grace = server.drain_timeout + server.exit_timeout + _SPARE_S
    given = pod.termination_grace_period_seconds
    return dataclasses.replace(
        pod,
        # Arguments and no command: the entrypoint of the published image sets up CUDA, and then runs what it is given.
        args=_command_line(server),
        ports=servers.container_ports(PORTS),
        volumes=volumes,
        volume_mounts=mounts,
        init_containers=(*pod.init_containers, *_folder(server)),
        shm_size=server.shm_size,
        startup_probe={**probe, "failureThreshold": math.ceil(server.startup_timeout / _PERIOD_S)},
        readiness_probe=probe,
        liveness_probe=live,
        service_account_name=pod.service_account_name or server.name,
        termination_grace_period_seconds=grace if given is None else given,
        topology_spread_constraints=pod.topology_spread_constraints or _spread(),
    )


def _folder(server: TritonServer) -> list[Manifest]:
    """The container that makes the folder of the models on a new claim: without it the server would end, and no model could be uploaded."""
    pod, shared, folder = servers.secured(server.pod), server.repository.storage, server.repository.model_repository
    if shared is None or posixpath.normpath(folder) == posixpath.normpath(shared.mount_path):
        return []
    return [init_container(pod, "folder", ["mkdir", "-p", folder], [{"name": "models", "mountPath": shared.mount_path}])]


def _spread() -> tuple[Manifest, ...]:
    """Spread the pods over zones and nodes, each ReplicaSet by itself, or old pods would influence the placement of new ones."""
    common = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "matchLabelKeys": [_OWN_PODS_LABEL]}
    return tuple({**common, "topologyKey": key} for key in _SPREAD)


def _command_line(server: TritonServer) -> list[str]:
    readiness, gpus = (str(yes).lower() for yes in (server.strict_readiness, has_gpus(server.pod)))
    more = texts(server.args, "args")
    return [
        "tritonserver",
        *arguments(server.repository, more),
        f"--strict-readiness={readiness}",
        f"--exit-timeout-secs={server.exit_timeout}",
        f"--allow-gpu-metrics={gpus}",
        *more,
    ]


def deployment(server: TritonServer) -> Manifest:
    """The replicas. A pod ends only after another one got ready, so that a broken model or image leaves all old ones serving."""
    template = pod_template(
        _settings(server), container="triton", labels=server.labels, selector=server.labels, env=credentials(server.repository)
    )
    spec = template["spec"]
    # The cloud's credentials come from its metadata server or from a volume of its webhook, not from this token.
    spec["automountServiceAccountToken"] = False
    drain = {"exec": {"command": ["sleep", str(server.drain_timeout)]}}
    spec["containers"][0]["lifecycle"] = {"preStop": drain}
    return {
        "apiVersion": DEPLOYMENT[0],
        "kind": DEPLOYMENT[1],
        "metadata": server.metadata(),
        "spec": {
            **({} if server.replicas is None else {"replicas": server.replicas}),
            "selector": {"matchLabels": server.labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "progressDeadlineSeconds": server.startup_timeout + _PULL_S,
            "template": template,
        },
    }

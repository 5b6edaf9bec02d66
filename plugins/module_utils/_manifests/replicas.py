# SPDX-License-Identifier: GPL-3.0-or-later
"""Replicas of one server that serves models, as a Deployment: a pod ends after another one got ready, and after its own requests."""

from __future__ import annotations

import dataclasses
import math
import typing as t
from collections.abc import Mapping, Sequence

from .._core.errors import InvalidInput
from . import access, monitoring, servers
from .autoscaling import Autoscaling, autoscaler
from .merge import apply_overrides
from .meta import DEPLOYMENT, DNS_LABEL_MAX, Manifest, check_count, check_name, pinned_tag
from .pods import PodSettings, pod_template, texts
from .storage import Storage

_PERIOD_S = 5
_PULL_S = 600
"""Seconds that a new pod may need beside loading: published images have many gigabytes."""
_SPREAD = ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
_OWN_PODS_LABEL = "pod-template-hash"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Replicas(servers.Server):
    """Replicas of one server."""

    spare: t.ClassVar[int] = 10
    """Seconds of the grace period for the server itself, after requests in flight have ended."""
    workloads: t.ClassVar[Sequence[tuple[str, str]]] = (DEPLOYMENT,)

    replicas: int | None = 1
    """None leaves the number to the autoscaler."""
    autoscaling: Autoscaling | None = None
    args: Sequence[str] = ()
    shm_size: str = "1Gi"
    startup_timeout: int = 600
    drain_timeout: int = 10
    exit_timeout: int = 30
    service_account_annotations: Mapping[str, str] | None = None

    @property
    def workload(self) -> tuple[str, str]:
        """The kind of the object that makes the pods."""
        return self.workloads[0]


def check(server: Replicas, image: str) -> None:
    """Refuse replicas that cannot be. IMAGE: one with a version, for the hint."""
    check_name(server.name, "name", limit=DNS_LABEL_MAX, service=True)
    if server.replicas is not None:
        check_count(server.replicas, "replicas")
    if server.autoscaling and "replicas" in ((server.overrides or {}).get("spec") or {}):
        raise InvalidInput("overrides: spec.replicas is what autoscaling changes.", "Leave out one of the two.")
    check_count(server.startup_timeout, "startup_timeout", minimum=_PERIOD_S)
    check_count(server.drain_timeout, "drain_timeout")
    check_count(server.exit_timeout, "exit_timeout")
    pinned_tag(server.pod.image, f"Give it a version, such as {image}, or a digest.")
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


def objects_of(server: Replicas, made: Manifest, ports: servers.Ports, app_protocols: Mapping[str, str] | None = None) -> list[Manifest]:
    """The object MADE, which makes the pods, and the objects around it."""
    objects = [] if server.pod.service_account_name else [_service_account(server)]
    objects += servers.around(server, ports, app_protocols=app_protocols, budget=True)
    objects.append(apply_overrides(made, server.overrides))
    if server.autoscaling:
        objects.append(autoscaler(server.metadata(), server.workload, server.autoscaling))
    if server.monitor:
        port = next(name for name in ports.clients if name.endswith("metrics"))
        objects.append(monitoring.monitor(server.monitor, server.metadata(), server.labels, port=port, interval="15s"))
    return objects


def _service_account(server: Replicas) -> Manifest:
    """The ServiceAccount to which a cloud grants access. It has no permissions in the cluster, and no token is mounted."""
    made = access.service_account(server.name, server.namespace, server.labels)
    if server.service_account_annotations:
        made["metadata"]["annotations"] = dict(server.service_account_annotations)
    return {**made, "automountServiceAccountToken": False}


def flags(server: Replicas, program: str, form: str, own: Mapping[str, str]) -> list[str]:
    """The user's flags of PROGRAM, each in FORM, or with its value as the next one. Those in OWN are refused, with their option if any."""
    given = texts(server.args, "args")
    for before, flag in zip(["", *given], given, strict=False):
        name = flag.partition("=")[0].lstrip("-").replace("_", "-")
        if not flag.startswith("--"):
            if before.startswith("--") and "=" not in before and not flag.startswith("-"):
                continue
            raise InvalidInput(f"args: '{flag}' is not a flag of {program}.", f"Write each as {form}.")
        if name in own:
            instead = f"Use option {own[name]}." if own[name] else "The Service has the usual ports."
            raise InvalidInput(f"args: --{name} is set by the module.", instead)
    return given


def settings(
    server: Replicas, ports: Mapping[str, int], ready: str, live: str, models: Storage | None, *, read_only: bool = True
) -> PodSettings:
    """The pod with probes of the paths READY and LIVE of the first port, the volume of the models, a folder for temporary files, and
    time to end."""
    pod, port = servers.secured(server.pod), next(iter(ports))
    probe = {"httpGet": {"path": ready, "port": port}, "periodSeconds": _PERIOD_S, "timeoutSeconds": 5, "failureThreshold": 3}
    grace = server.drain_timeout + server.exit_timeout + server.spare
    given = pod.termination_grace_period_seconds
    volumes: list[Manifest] = [{"name": "tmp", "emptyDir": {}}]
    mounts: list[Manifest] = [{"name": "tmp", "mountPath": "/tmp"}]
    if models:
        volumes.append({"name": "models", "persistentVolumeClaim": {"claimName": models.claim_name}})
        mounts.append({"name": "models", "mountPath": models.mount_path, **({"readOnly": True} if read_only else {})})
    return dataclasses.replace(
        pod,
        ports=servers.container_ports(ports),
        volumes=volumes,
        volume_mounts=mounts,
        shm_size=server.shm_size,
        startup_probe={**probe, "failureThreshold": math.ceil(server.startup_timeout / _PERIOD_S)},
        readiness_probe=probe,
        liveness_probe={**probe, "httpGet": {"path": live, "port": port}, "periodSeconds": 10, "failureThreshold": 6},
        service_account_name=pod.service_account_name or server.name,
        termination_grace_period_seconds=grace if given is None else given,
        topology_spread_constraints=pod.topology_spread_constraints or (_spread() if server.workload == DEPLOYMENT else ()),
    )


def _spread() -> tuple[Manifest, ...]:
    """Spread the pods over zones and nodes, each ReplicaSet by itself, or old pods would influence the placement of new ones."""
    common = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "matchLabelKeys": [_OWN_PODS_LABEL]}
    return tuple({**common, "topologyKey": key} for key in _SPREAD)


def template_of(server: Replicas, pod: PodSettings, env: Sequence[Manifest]) -> Manifest:
    """The template of a pod that clients are led to, which leaves the Service before it ends."""
    template = pod_template(pod, container=server.app, labels=server.labels, selector=server.labels, env=env)
    spec = template["spec"]
    # The cloud's credentials come from its metadata server or from a volume of its webhook, not from this token.
    spec["automountServiceAccountToken"] = False
    drain = {"exec": {"command": ["sleep", str(server.drain_timeout)]}}
    spec["containers"][0]["lifecycle"] = {"preStop": drain}
    return template


def deployment(server: Replicas, template: Manifest) -> Manifest:
    """The replicas. A pod ends only after another one got ready, so that a broken model or image leaves all old ones serving."""
    return {
        "apiVersion": DEPLOYMENT[0],
        "kind": DEPLOYMENT[1],
        "metadata": server.queued_metadata,
        "spec": {
            **({} if server.replicas is None else {"replicas": server.replicas}),
            "selector": {"matchLabels": server.labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "progressDeadlineSeconds": server.startup_timeout + _PULL_S,
            "template": template,
        },
    }

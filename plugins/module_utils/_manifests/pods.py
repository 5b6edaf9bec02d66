# SPDX-License-Identifier: GPL-3.0-or-later
"""Pod templates: the part that StatefulSets, Jobs and Deployments of this collection have in common."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Mapping, Sequence

from .._core.errors import InvalidInput
from .._core.quantity import parse
from .devices import claims_of_container, claims_of_pod, named
from .meta import Manifest, check_count, check_env_name, check_port, compact, quantity, refuse_unknown_keys

# The "restricted" Pod Security profile requires this of every container.
RESTRICTED_CONTAINER: Manifest = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
READ_ONLY_CONTAINER: Manifest = {**RESTRICTED_CONTAINER, "readOnlyRootFilesystem": True}
# Images without a USER line cannot start under runAsNonRoot alone, so the user is fixed; fsGroup lets it write to mounted volumes.
RESTRICTED_POD: Manifest = {
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "runAsGroup": 1000,
    "fsGroup": 1000,
    # Do not change the owner of every file at each pod start, because a shared volume may hold a whole data set.
    "fsGroupChangePolicy": "OnRootMismatch",
    "seccompProfile": {"type": "RuntimeDefault"},
}

PullPolicy = t.Literal["Always", "IfNotPresent", "Never"]
_NATIVE_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_VOLUME_MOUNT_KEYS = ("name", "mountPath", "mountPropagation", "readOnly", "recursiveReadOnly", "subPath", "subPathExpr")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PodSettings:
    """Settings of the pods of one group. Field names are the options' names; nested values keep the API's camelCase."""

    image: str
    image_pull_policy: PullPolicy = "IfNotPresent"
    image_pull_secrets: Sequence[str] = ()
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    env: Sequence[Mapping[str, t.Any]] = ()
    resources: Mapping[str, t.Any] | None = None
    resource_claims: Sequence[Mapping[str, t.Any]] = ()
    ports: Sequence[Mapping[str, t.Any]] = ()
    volumes: Sequence[Mapping[str, t.Any]] = ()
    volume_mounts: Sequence[Mapping[str, t.Any]] = ()
    shm_size: str | None = None
    init_containers: Sequence[Mapping[str, t.Any]] = ()
    readiness_probe: Mapping[str, t.Any] | None = None
    liveness_probe: Mapping[str, t.Any] | None = None
    startup_probe: Mapping[str, t.Any] | None = None
    node_selector: Mapping[str, str] | None = None
    tolerations: Sequence[Mapping[str, t.Any]] = ()
    affinity: Mapping[str, t.Any] | None = None
    topology_spread_constraints: Sequence[Mapping[str, t.Any]] = ()
    priority_class_name: str | None = None
    service_account_name: str | None = None
    termination_grace_period_seconds: int | None = None
    pod_security_context: Mapping[str, t.Any] | None = None
    security_context: Mapping[str, t.Any] | None = None

    @classmethod
    def from_params(cls, params: Mapping[str, t.Any], **defaults: t.Any) -> PodSettings:
        """The settings in module parameters; a parameter that is None keeps the default."""
        names = {field.name for field in dataclasses.fields(cls)}
        given = {key: value for key, value in params.items() if key in names and value is not None}
        merged = {**defaults, **given}
        if claims := given.get("resource_claims"):
            merged["resource_claims"] = named(claims, params["name"])
        if not merged.get("image"):
            raise InvalidInput("image: missing.", "Name the container image that the pods run.")
        return cls(**merged)


def env_var(entry: Mapping[str, t.Any]) -> Manifest:
    """One variable: name with value or value_from (valueFrom is understood as well)."""
    refuse_unknown_keys(entry, ("name", "value", "value_from", "valueFrom"), "env")
    name = check_env_name(str(entry.get("name") or ""))
    source = entry.get("value_from") or entry.get("valueFrom")
    value = entry.get("value")
    if (value is None) == (source is None):
        raise InvalidInput(f"env {name}: give either value or value_from.")
    return {"name": name, "valueFrom": dict(source)} if source else {"name": name, "value": text(value, f"env {name}: value")}


def text(value: t.Any, where: str) -> str:
    """A text of a pod. YAML makes other values of plain words, such as 3.10, 0123 and yes, which no longer say what was written."""
    if not isinstance(value, str):
        raise InvalidInput(f"{where} is not text but {type(value).__name__}.", "Put it in quotes, or give it to the filter string.")
    return value


def texts(values: Sequence[t.Any], where: str) -> list[str]:
    """Texts of a pod, such as its arguments."""
    return [text(value, f"{where}[{index}]") for index, value in enumerate(values)]


def merge_env(*layers: Sequence[Mapping[str, t.Any]]) -> list[Manifest]:
    """Layers of variables as one list without duplicates: later layers win, the first place is kept.

    The place matters, because $(NAME) in a value only sees variables defined before it.
    """
    merged: dict[str, Manifest] = {}
    for layer in layers:
        for entry in layer:
            variable = env_var(entry)
            merged[variable["name"]] = variable
    return list(merged.values())


def refuse_variables(env: Sequence[Mapping[str, t.Any]], owned: Mapping[str, str], where: str = "env") -> None:
    """Refuse variables of the user that have their value from elsewhere. OWNED: variable -> what to do instead."""
    for entry in env:
        name = str(entry.get("name"))
        if name in owned:
            raise InvalidInput(f"{where}: {name} is set by an option of its own.", owned[name])


def field_env(name: str, field_path: str) -> Manifest:
    """A variable filled from the pod itself."""
    return {"name": name, "value_from": {"fieldRef": {"fieldPath": field_path}}}


def resources(desired: Mapping[str, t.Any] | None, where: str) -> Manifest:
    """Requests and limits, checked: quantities, request <= limit, and limits = requests for extended resources."""
    if not desired:
        return {}
    refuse_unknown_keys(desired, ("requests", "limits", "claims"), where)
    sides: dict[str, dict[str, str]] = {}
    for side in ("requests", "limits"):
        given = desired.get(side) or {}
        sides[side] = {str(key): quantity(value, f"{where}.{side}.{key}") for key, value in given.items()}
    for name in sorted({*sides["requests"], *sides["limits"]}):
        if name in _NATIVE_RESOURCES:
            _check_request_fits(name, sides, where)
        else:
            _settle_extended(name, sides, where)
    return compact({"requests": sides["requests"], "limits": sides["limits"], "claims": desired.get("claims")})


def _check_request_fits(name: str, sides: Mapping[str, Mapping[str, str]], where: str) -> None:
    request, limit = sides["requests"].get(name), sides["limits"].get(name)
    if request and limit and parse(request) > parse(limit):
        raise InvalidInput(f"{where}: {name} requests {request}, more than its limit {limit}.")


def _settle_extended(name: str, sides: dict[str, dict[str, str]], where: str) -> None:
    """Set requests and limits of GPUs, TPUs and huge pages to one number, because they cannot be overcommitted."""
    if "/" not in name and not name.startswith("hugepages-"):
        raise InvalidInput(
            f"{where}: '{name}' is not a resource.", f"Native ones are {', '.join(_NATIVE_RESOURCES)}; devices look like nvidia.com/gpu."
        )
    request, limit = sides["requests"].get(name), sides["limits"].get(name)
    if request and limit and parse(request) != parse(limit):
        raise InvalidInput(
            f"{where}: {name} requests {request} but is limited to {limit}.",
            "Extended resources need limits equal to requests; giving the limit alone is enough.",
        )
    value = t.cast(str, limit or request)
    if "/" in name and parse(value) % 1:
        raise InvalidInput(f"{where}: {name} {value} is not a whole number.", "Devices are given out whole.")
    sides["requests"][name] = sides["limits"][name] = value


def container_ports(ports: Sequence[Mapping[str, t.Any]], where: str) -> list[Manifest]:
    """Ports as {name, containerPort, protocol}, with names and numbers used once."""
    seen: set[t.Any] = set()
    result = []
    for entry in ports:
        number = check_port(entry["container_port"], f"{where} {entry.get('name')}")
        protocol = entry.get("protocol") or "TCP"
        for mark in (entry["name"], (number, protocol)):
            if mark in seen:
                raise InvalidInput(f"{where}: {mark} is used twice.")
            seen.add(mark)
        result.append({"name": entry["name"], "containerPort": number, "protocol": protocol})
    return result


def volumes_and_mounts(settings: PodSettings, claims: Sequence[str] = ()) -> tuple[list[Manifest], list[Manifest]]:
    """The pod's volumes and the container's mounts; every mount must name a volume (or volume claim template)."""
    volumes = [dict(volume) for volume in settings.volumes]
    mounts = [dict(mount) for mount in settings.volume_mounts]
    if settings.shm_size is not None:
        # The container runtime's /dev/shm has 64 MiB, which is too little for the workers of a data loader.
        size = quantity(settings.shm_size, "shm_size")
        volumes.append({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": size}})
        mounts.append({"name": "shm", "mountPath": "/dev/shm"})
    names = [str(volume.get("name")) for volume in volumes]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"volumes: '{name}' is there twice.")
    paths: set[str] = set()
    for mount in mounts:
        refuse_unknown_keys(mount, _VOLUME_MOUNT_KEYS, "volume_mounts")
        path = str(mount.get("mountPath") or "")
        if not path.startswith("/"):
            raise InvalidInput(f"volume_mounts: mountPath '{path}' of '{mount.get('name')}' must begin with '/'.")
        if path in paths:
            raise InvalidInput(f"volume_mounts: '{path}' is mounted twice.")
        paths.add(path)
        if mount.get("name") not in (*names, *claims):
            known = ", ".join((*names, *claims)) or "none"
            raise InvalidInput(f"volume_mounts: no volume is called '{mount.get('name')}'.", f"Volumes: {known}.")
    return volumes, mounts


def pod_template(
    settings: PodSettings,
    *,
    container: str,
    labels: Mapping[str, str],
    selector: Mapping[str, str],
    env: Sequence[Mapping[str, t.Any]] = (),
    annotations: Mapping[str, str] | None = None,
    claims: Sequence[str] = (),
) -> Manifest:
    """A pod template of one main container; ENV comes before the user's own."""
    if any(character.isspace() for character in settings.image):
        raise InvalidInput(f"image: '{settings.image}' holds white space.")
    if settings.termination_grace_period_seconds is not None:
        check_count(settings.termination_grace_period_seconds, "termination_grace_period_seconds")
    volumes, mounts = volumes_and_mounts(settings, claims)
    pod_security, own = settings.pod_security_context, {"matchLabels": dict(selector)}
    main = {"name": container, **_container(settings, env), **compact({"volumeMounts": mounts})}
    spec = compact(
        {
            "initContainers": [dict(entry) for entry in settings.init_containers],
            "containers": [main],
            "volumes": volumes,
            "resourceClaims": claims_of_pod(settings.resource_claims) if settings.resource_claims else None,
            "nodeSelector": settings.node_selector,
            "tolerations": [dict(entry) for entry in settings.tolerations],
            "affinity": settings.affinity,
            # Over this group's own pods, unless a constraint selects others.
            "topologySpreadConstraints": [{"labelSelector": own, **one} for one in settings.topology_spread_constraints],
            "priorityClassName": settings.priority_class_name,
            "serviceAccountName": settings.service_account_name,
            # Training code does not call the API server, so it gets a token only if an account is given.
            "automountServiceAccountToken": None if settings.service_account_name else False,
            "imagePullSecrets": [{"name": name} for name in settings.image_pull_secrets],
            "securityContext": dict(RESTRICTED_POD if pod_security is None else pod_security),
            "terminationGracePeriodSeconds": settings.termination_grace_period_seconds,
        }
    )
    metadata = compact({"labels": dict(labels), "annotations": dict(annotations or {})})
    return {"metadata": metadata, "spec": spec}


def init_container(pod: PodSettings, name: str, command: Sequence[str], mounts: Sequence[Manifest]) -> Manifest:
    """A container that prepares the pod of a server, with the image, the resources and the rights of the server."""
    return {
        "name": name,
        "image": pod.image,
        "imagePullPolicy": pod.image_pull_policy,
        "command": list(command),
        "resources": resources(pod.resources, "resources"),
        "securityContext": dict(pod.security_context or {}),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": list(mounts),
    }


def on_exit(action: str, container: str, code: int) -> Manifest:
    """A rule of a Job's podFailurePolicy for the exit status of a container."""
    return {"action": action, "onExitCodes": {"containerName": container, "operator": "In", "values": [code]}}


def on_disruption(action: str) -> Manifest:
    """A rule of a Job's podFailurePolicy for pods that were evicted, preempted or lost with their node."""
    return {"action": action, "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


def unsayable(pod: PodSettings, *known: str) -> list[str]:
    """The settings of POD beside those that an operator's resource has fields for."""
    names = [field.name for field in dataclasses.fields(pod) if field.name not in known]
    return [name for name in names if getattr(pod, name) not in (None, (), [], {})]


def _container(settings: PodSettings, env: Sequence[Mapping[str, t.Any]]) -> Manifest:
    security = settings.security_context
    needed = resources(settings.resources, "resources")
    if settings.resource_claims or needed.get("claims"):
        needed["claims"] = claims_of_container(needed.get("claims"), settings.resource_claims)
    return compact(
        {
            "image": settings.image,
            "imagePullPolicy": settings.image_pull_policy,
            "command": texts(settings.command, "command"),
            "args": texts(settings.args, "args"),
            "env": merge_env(env, settings.env),
            "ports": container_ports(settings.ports, "ports"),
            "resources": needed,
            "readinessProbe": settings.readiness_probe,
            "livenessProbe": settings.liveness_probe,
            "startupProbe": settings.startup_probe,
            "securityContext": dict(RESTRICTED_CONTAINER if security is None else security),
            # job_info reports the last lines of the log as the reason.
            "terminationMessagePolicy": "FallbackToLogsOnError",
        }
    )

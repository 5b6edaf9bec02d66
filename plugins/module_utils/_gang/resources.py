# SPDX-License-Identifier: GPL-3.0-or-later
"""The resources of a pod as whole numbers: thousandths of a CPU, bytes, devices. No I/O.

The rules are those of Kubernetes ("Resource Management for Pods and Containers", "Init containers", "Sidecar Containers", "Pod
Overhead"): containers and sidecars add up, an init container runs beside the sidecars that began before it, and the larger of both counts.
"""

from __future__ import annotations

import decimal
import functools
import math
import typing as t
from collections.abc import Mapping

from .._core.errors import InvalidInput
from .._core.quantity import parse

Amounts = dict[str, int]
Spec = Mapping[str, t.Any]

PODS = "pods"
CPU = ("cpu", "requests.cpu", "limits.cpu")
_UNITS = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


def amount(resource: str, value: t.Any) -> int:
    """A quantity in the smallest unit that the scheduler counts, rounded up as there."""
    return _amount(resource, str(value))


@functools.cache
def _amount(resource: str, text: str) -> int:
    try:
        number = parse(text)
    except ValueError as error:
        raise InvalidInput(f"{resource}: {error}") from error
    return math.ceil(number * 1000 if resource in CPU else number)


def amounts(quantities: Mapping[str, t.Any] | None) -> Amounts:
    """The quantities of a map of resources, each as ``amount`` converts it."""
    return {name: amount(name, value) for name, value in (quantities or {}).items()}


def shown(resource: str, value: int) -> str:
    """An amount in the notation of Kubernetes: 3.5 CPUs, 16Gi, 8."""
    if resource in CPU:
        return f"{decimal.Decimal(value) / 1000:f}"
    if resource.endswith(("memory", "storage")):
        for unit, size in _UNITS:
            if value >= size:
                return f"{value / size:.3f}".rstrip("0").rstrip(".") + unit
    return str(value)


def added(first: Mapping[str, int], second: Mapping[str, int], times: int = 1) -> Amounts:
    """The sum of two maps, the second one multiplied by TIMES."""
    total = dict(first)
    for name, value in second.items():
        total[name] = total.get(name, 0) + value * times
    return total


def requests_of(spec: Spec) -> Amounts:
    """The requests of a pod with its overhead; where only a limit is given, the API server makes it the request."""
    whole, overhead = spec.get("resources") or {}, amounts(spec.get("overhead"))
    total = _of_containers(spec, "limits", "requests")
    total = {**amounts(whole.get("limits")), **total, **amounts(whole.get("requests"))}
    return added(total, overhead)


def limits_of(spec: Spec) -> Amounts:
    """The limits of a pod, with its overhead where there is a limit."""
    total = {**_of_containers(spec, "limits"), **amounts((spec.get("resources") or {}).get("limits"))}
    overhead = amounts(spec.get("overhead"))
    return {name: value + overhead.get(name, 0) for name, value in total.items()}


def taken(spec: Spec) -> Amounts:
    """The amounts by which a pod reduces what is free on its node: its requests, and one of the pods that the node may have."""
    return {**requests_of(spec), PODS: 1}


def _of_containers(spec: Spec, *keys: str) -> Amounts:
    """The resources of all containers. KEYS: requests or limits, of which the later ones win."""
    total: Amounts = {}
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("containers") or ():
        total = added(total, container_resources(container, *keys))
    for container in spec.get("initContainers") or ():
        own = container_resources(container, *keys)
        if container.get("restartPolicy") == "Always":
            total, sidecars = added(total, own), added(sidecars, own)
        else:
            beside = added(sidecars, own)
            peak = {name: max(peak.get(name, 0), beside.get(name, 0)) for name in {**peak, **beside}}
    return {name: max(total.get(name, 0), peak.get(name, 0)) for name in {**total, **peak}}


def container_resources(container: Spec, *keys: str) -> Amounts:
    """The resources of one container. KEYS: requests or limits, of which the later ones win."""
    resources = container.get("resources") or {}
    return amounts({name: value for key in keys for name, value in (resources.get(key) or {}).items()})


def containers_of(spec: Spec) -> tuple[Spec, ...]:
    """All containers of a pod, init containers too."""
    return (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))

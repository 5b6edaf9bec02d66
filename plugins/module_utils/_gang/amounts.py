# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a pod takes of a node, in whole numbers: thousandths of a CPU, bytes, devices, ports. No I/O.

The rules are those of Kubernetes ("Resource Management for Pods and Containers", "Init containers", "Sidecar Containers", "Pod
Overhead"): containers and sidecars add up, an init container runs beside the sidecars that began before it, and the larger of both counts.

Private to the collection.
"""

from __future__ import annotations

import decimal
import functools
import math
import typing as t
from collections.abc import Callable, Iterable, Iterator, Mapping

from .._core.errors import InvalidInput
from .._core.quantity import parse

Amounts = dict[str, int]
Spec = Mapping[str, t.Any]

PODS = "pods"
HOST_PORT = "host port "
"""A port of the node is taken by one pod, so it is counted like a device of which each node has one."""

CPU = ("cpu", "requests.cpu", "limits.cpu")
_BYTES = ("memory", "storage")
_UNITS = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))
_OF_A_POD = ("cpu", "memory", "hugepages-")
"""Resources that a pod as a whole may request."""


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
    """As ``amount``, of a whole map."""
    return {name: amount(name, value) for name, value in (quantities or {}).items()}


def shown(resource: str, value: int) -> str:
    """An amount as people write it: 3.5 CPUs, 16Gi, 8."""
    if resource in CPU:
        return f"{decimal.Decimal(value) / 1000:f}"
    if resource.endswith(_BYTES):
        for unit, size in _UNITS:
            if abs(value) >= size:
                return f"{value / size:.3f}".rstrip("0").rstrip(".") + unit
    return str(value)


def added(first: Mapping[str, int], second: Mapping[str, int], times: int = 1) -> Amounts:
    """The sum; with TIMES the second so many times."""
    total = dict(first)
    for name, value in second.items():
        total[name] = total.get(name, 0) + value * times
    return total


def larger(first: Mapping[str, int], second: Mapping[str, int]) -> Amounts:
    """Of each resource the larger amount."""
    return {name: max(first.get(name, 0), second.get(name, 0)) for name in {**first, **second}}


def requests_of(holder: Spec) -> Amounts:
    """What a container requests; where only a limit is given, the API server takes that."""
    resources = holder.get("resources") or {}
    return amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def limits_of(holder: Spec) -> Amounts:
    """What a container is limited to."""
    return amounts((holder.get("resources") or {}).get("limits"))


def pod_requests(spec: Spec) -> Amounts:
    """What a pod requests, its overhead included."""
    whole, overhead = spec.get("resources") or {}, amounts(spec.get("overhead"))
    total = added(_together(spec, requests_of), overhead)
    for name, value in amounts(whole.get("requests")).items():
        total[name] = value + overhead.get(name, 0)
    for name, value in amounts(whole.get("limits")).items():
        total.setdefault(name, value)
    return total


def pod_limits(spec: Spec) -> Amounts:
    """What a pod is limited to, its overhead included where there is a limit."""
    total = {**_together(spec, limits_of), **amounts((spec.get("resources") or {}).get("limits"))}
    overhead = amounts(spec.get("overhead"))
    return {name: value + overhead.get(name, 0) for name, value in total.items()}


def _together(spec: Spec, of: Callable[[Spec], Amounts]) -> Amounts:
    total: Amounts = {}
    beside: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("containers") or ():
        total = added(total, of(container))
    for container in spec.get("initContainers") or ():
        own = of(container)
        if container.get("restartPolicy") == "Always":
            total, beside = added(total, own), added(beside, own)
            peak = larger(peak, beside)
        else:
            peak = larger(peak, added(beside, own))
    return larger(total, peak)


def taken(spec: Spec) -> Amounts:
    """What a pod takes of its node: its requests, one of the pods that the node may have, and ports."""
    return {**pod_requests(spec), PODS: 1, **dict.fromkeys(host_ports(spec), 1)}


def taken_by(pod: Mapping[str, t.Any]) -> Amounts:
    """What a live pod takes: while it is resized, the larger of what it has and what it is to have."""
    spec, status = pod["spec"], pod.get("status") or {}
    actual = {
        row["name"]: row["resources"]
        for key in ("containerStatuses", "initContainerStatuses")
        for row in status.get(key) or ()
        if row.get("resources")
    }
    if not actual:
        return taken(spec)
    held = {
        key: [{**one, "resources": actual.get(one["name"], one.get("resources"))} for one in spec.get(key) or ()]
        for key in ("containers", "initContainers")
    }
    return larger(taken(spec), taken({**spec, **held}))


def host_ports(spec: Spec) -> Iterator[str]:
    """The ports of the node that a pod takes; in the network of the node every port that a container declares."""
    sidecars = (one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always")
    for container in (*(spec.get("containers") or ()), *sidecars):
        for port in container.get("ports") or ():
            number = port.get("hostPort") or (port.get("containerPort") if spec.get("hostNetwork") else None)
            if number:
                yield f"{HOST_PORT}{number}/{port.get('protocol') or 'TCP'}"


def containers_of(spec: Spec) -> Iterable[Spec]:
    """All containers, init containers too."""
    return (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))

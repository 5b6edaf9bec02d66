# SPDX-License-Identifier: GPL-3.0-or-later
"""The push gateway of a PERSIA training: whether one that exists already can be reached, and the metrics that the training pushed."""

from __future__ import annotations

import json
import re
import typing as t
from collections.abc import Sequence

from ..._core.errors import Forbidden, NotFound
from ..._kube.cluster import Cluster
from ..._kube.objects import Ref
from ..._kube.reasons import ready_endpoints

_LINE = re.compile(r"^MUSTER metrics (\{.*\})$", re.MULTILINE)
_HINT = "Correct metrics.address (role persia: persia_metrics_address), or leave it out: the training then gets a gateway of its own."


def logged(texts: Sequence[str]) -> dict[str, t.Any]:
    """Return the gateway's metrics that the first trainer last logged."""
    found = [line for text in texts for line in _LINE.findall(text)]
    return {"metrics": json.loads(found[-1])} if found else {}


def require(address: str | None, namespace: str, cluster: Cluster) -> None:
    """Raise if ADDRESS is a Service of the cluster without ready endpoints. Other addresses can be tried by pods only."""
    if address is None:
        return
    host, _colon, port = address.rpartition(":")
    name, *places = host.removesuffix(".").split(".")
    inside = not places or places[1:2] == ["svc"]
    try:
        if not inside and (len(places) > 1 or cluster.get(Ref("v1", "Namespace", places[0])) is None):
            return
        problem = _problem(cluster, Ref("v1", "Service", name, places[0] if places else namespace), int(port))
    except Forbidden:
        return  # in a namespace that these credentials may not read
    if problem:
        raise NotFound(f"metrics.address: '{address}': {problem}.", _HINT)


def _problem(cluster: Cluster, ref: Ref, port: int) -> str | None:
    """The reason why a port of a Service has no ready endpoint."""
    service = cluster.get(ref)
    if service is None:
        return f"{ref} does not exist"
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        return None
    ports = [int(item["port"]) for item in spec.get("ports") or []]
    if port not in ports and spec.get("clusterIP") != "None":
        return f"{ref} has no port {port}, but {', '.join(map(str, ports)) or 'none'}"
    return None if ready_endpoints(cluster, ref) else f"{ref} has no pod that is ready"

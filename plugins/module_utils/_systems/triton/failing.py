# SPDX-License-Identifier: GPL-3.0-or-later
"""The reason why a Triton server does not start, from its log: the pod's state only has its exit.

If its store does not respond, 2.51.0 retries for about a minute without logging, and then ends with the error of its S3 client, which names
neither store nor bucket.
"""

from __future__ import annotations

import contextlib
import re

from ..._core.conditions import is_true
from ..._core.errors import MusterError
from ..._kube.cluster import Cluster
from ..._kube.objects import selector_of
from .bucket import bucket_of, service_of
from .inference import hint_of
from .server import TritonServer, labels_of

_TAIL = 200
_ENDS_WITH = re.compile(r"^(?:error: (?:creating server: )?|\S*tritonserver: (?=error while loading shared libraries))(.+)$", re.MULTILINE)
"""The error of tritonserver when it ends: its last line, unless the traceback of a model's exception follows; or that of the linker."""
_OF_MODELS = re.compile(
    r'^(?:\S+Z )?E.*\] "?((?:failed to (?:poll|load) |Poll failed for |Invalid argument: ensemble ).+?)"?$', re.MULTILINE | re.IGNORECASE
)
"""The errors that it logs for each model before, with line breaks as two characters. Some of its last lines do not name the model.
An ensemble has those of its steps (triton-inference-server/server#4630, #5474)."""


def said_by_server(log: str) -> str | None:
    """The reason for which the server of this log ended."""
    found = _ENDS_WITH.findall(log)
    if found and found[-1].strip().endswith("failed to load all models"):
        found += ["; ".join(dict.fromkeys(one.partition("\\n")[0].rstrip(".") for one in _OF_MODELS.findall(log))) or found[-1]]
    return str(found[-1]).strip() if found else None


def why_not_started(cluster: Cluster, name: str, namespace: str) -> str | None:
    """Return the last error of a replica that is not ready; None if none has logged one, or its log cannot be read."""
    for pod in cluster.list("v1", "Pod", namespace, selector_of(labels_of(name))):
        if is_true(pod, "Ready") or pod["metadata"].get("deletionTimestamp"):
            continue
        for previous in (False, True):
            with contextlib.suppress(MusterError):
                log = cluster.logs(namespace, pod["metadata"]["name"], tail_lines=_TAIL, previous=previous)
                if said := said_by_server(log):
                    return said
    return None


def why_store_is_away(cluster: Cluster, place: str) -> str | None:
    """Return the problem with the store of the models, if it is in the cluster; None otherwise."""
    service = service_of(bucket_of(place)) if place.startswith("s3://") else None
    if service is None:
        return None
    ref = service[0]
    live = cluster.get(ref)
    if live is None:
        return f"{ref}, which leads to the store of the models, does not exist."
    pods = cluster.list("v1", "Pod", ref.namespace, selector_of(live["spec"].get("selector") or {}))
    return None if any(is_true(pod, "Ready") for pod in pods) else f"The store of the models, {ref}, has no pod that is ready."


def explained(cluster: Cluster, server: TritonServer) -> str:
    """Return sentences to append to the error of a wait; empty for a server on a volume that logged no reason."""
    said, place = why_not_started(cluster, server.name, server.namespace), server.repository.model_repository
    words = [*filter(None, [f"The server says: {said}", hint_of(said)])] if said else []
    with contextlib.suppress(MusterError):
        words += filter(None, [why_store_is_away(cluster, place)])
    words += [] if place.startswith("/") else [f"Its models are in {place}"]
    return "".join(f" {one.rstrip('.')}." for one in words)

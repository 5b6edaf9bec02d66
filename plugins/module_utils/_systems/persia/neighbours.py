# SPDX-License-Identifier: GPL-3.0-or-later
"""Other PERSIA trainings at the same NATS servers.

The subjects of PERSIA's messages name a service and the index of a pod, and not the training (persia 0.1.dev251, seen: two trainings at
the same servers get each other's batches, and load and clear each other's embeddings). So only one at a time can use them.
"""

from __future__ import annotations

from ..._core.clock import Deadline
from ..._core.errors import Forbidden, InvalidInput
from ..._core.waiting import fixed_interval, wait_for
from ..._kube.cluster import Cluster
from ..._kube.objects import Manifest, labels_of
from ..._manifests.meta import LABEL_JOB
from .operator import JOB_LABEL
from .spec import NATS_ENV

ENDING_SECONDS = 60.0
"""The time that pods of a deleted or ended training may take to end; Kubernetes' default is 30 s."""


def require_alone(nats_url: str, namespace: str, name: str, cluster: Cluster) -> None:
    """Raise if pods of another training in the namespace use these NATS servers, and wait for those that end.

    Pods of other namespaces are not searched.
    """

    def observe() -> tuple[None, str | None]:
        try:
            pods = [(pod, label) for label in (LABEL_JOB, JOB_LABEL) for pod in cluster.list("v1", "Pod", namespace, label)]
        except Forbidden:
            return None, None
        others = [(pod, labels_of(pod)[label]) for pod, label in pods if labels_of(pod)[label] != name and _uses(pod, nats_url)]
        running = sorted({other for pod, other in others if not pod["metadata"].get("deletionTimestamp")})
        if running:
            raise InvalidInput(
                f"Training {namespace}/{name} would use the same NATS servers ({nats_url}) as {', '.join(running)}, whose pods run. PERSIA "
                "does not tell trainings apart there: each would get the other's batches and embeddings.",
                "Wait for its end, delete it (state: absent), or give this one its own servers (nats_url; role persia: persia_nats_name).",
            )
        return None, f"pod {others[0][0]['metadata']['name']} is ending" if others else None

    goal = f"Pods of another training still use {nats_url}, at which training {namespace}/{name} has to be alone"
    wait_for(observe, goal=goal, deadline=Deadline(ENDING_SECONDS, cluster.clock), pause=fixed_interval(1.0, cluster.clock))


def _uses(pod: Manifest, nats_url: str) -> bool:
    if pod.get("status", {}).get("phase") not in ("Pending", "Running"):
        return False
    env = [row for container in pod["spec"]["containers"] for row in container.get("env") or []]
    return {"name": NATS_ENV, "value": nats_url} in env

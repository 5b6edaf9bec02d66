# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshot of a cluster, read once. Nothing is written; what may not be read is noted, and is not judged."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
from collections.abc import Mapping, Sequence

from .._core.clock import utc
from .._core.errors import MusterError
from .._core.pool import PARALLEL, run_all
from .._kube.cluster import Cluster
from .._kube.objects import Manifest, Ref, group_of, labels_of
from .._kube.ready import State, state_of
from .._kube.reasons import event_time, ready_endpoints
from .._kube.uses import TRAININGS

_time = dt.datetime.fromisoformat
KUEUE = "kueue.x-k8s.io"
WEBHOOKS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_INSIDE = (
    ("v1", "Pod"), ("v1", "Event"), ("v1", "PersistentVolumeClaim"), ("v1", "ResourceQuota"), ("v1", "Service"), ("batch/v1", "Job"),
    ("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("apps/v1", "DaemonSet"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"), ("policy/v1", "PodDisruptionBudget"), ("v1", "Secret"),
)  # fmt: skip
_AROUND = (
    ("v1", "Node"), ("storage.k8s.io/v1", "StorageClass"), ("apiregistration.k8s.io/v1", "APIService"),
    *(("admissionregistration.k8s.io/v1", kind) for kind in WEBHOOKS),
)  # fmt: skip
_JUDGED = {
    KUEUE: {"Workload", "LocalQueue"},
    "gateway.networking.k8s.io": {"Gateway", "HTTPRoute", "GRPCRoute"},
    "nats.io": {"NatsCluster"},
}
"""Kinds of operators that are judged, by API group; trainings, and kinds of Kubernetes itself, are listed elsewhere."""
DNS = Ref("v1", "Service", "kube-dns", "kube-system")
"""The Service of the cluster's DNS, whichever server answers: its name is fixed (kubernetes/dns, specification, and kubeadm)."""


@dataclasses.dataclass
class Snapshot:
    """Objects by kind. ``now`` is the time of the API server, by which ages are counted."""

    cluster: Cluster
    namespace: str
    now: dt.datetime
    local: dt.datetime
    """The time of this machine."""
    place: Manifest | None = None
    """The namespace as an object; None if it does not exist, or may not be read."""
    kinds: Mapping[str, Sequence[Manifest]] = dataclasses.field(default_factory=dict)
    unread: list[str] = dataclasses.field(default_factory=list)

    def of(self, kind: str) -> Sequence[Manifest]:
        """The objects of a kind; none if it could not be read."""
        return self.kinds.get(kind, ())

    def age(self, time: str | None) -> float:
        """Seconds since a time as Kubernetes writes it; 0 if there is none."""
        return (self.now - _time(time)).total_seconds() if time else 0.0

    def age_of(self, item: Manifest) -> float:
        """Seconds since the object was created."""
        return self.age(item["metadata"].get("creationTimestamp"))

    def warning(self, item: Manifest) -> tuple[str, str]:
        """Reason and message of the newest warning about an object, empty if there is none."""
        newest = self._warnings.get(item["metadata"].get("uid"), {})
        return str(newest.get("reason") or ""), " ".join(str(newest.get("message") or "").split())

    @functools.cached_property
    def _warnings(self) -> dict[str | None, Manifest]:
        """The newest warning about each object, by uid."""
        warnings = (event for event in self.of("Event") if event.get("type") == "Warning")
        return {event["involvedObject"].get("uid"): event for event in sorted(warnings, key=event_time)}

    @functools.cached_property
    def server_version(self) -> str:
        """The version of the API server."""
        return self.cluster.version()

    def pods_of(self, selector: Mapping[str, str]) -> list[Manifest]:
        """The pods that have all these labels."""
        return [pod for pod in self.of("Pod") if selector.items() <= labels_of(pod).items()]

    def endpoints(self, namespace: str, name: str) -> int | None:
        """The number of ready endpoints of a Service, 0 if it does not exist; None if it may not be read."""
        ref = Ref("v1", "Service", name, namespace)
        try:
            return ready_endpoints(self.cluster, ref)
        except MusterError:
            return None

    def node(self, pod: Manifest) -> Manifest | None:
        """The node of a pod."""
        name = (pod.get("spec") or {}).get("nodeName")
        return next((node for node in self.of("Node") if node["metadata"]["name"] == name), None)


def read(cluster: Cluster, namespace: str) -> Snapshot:
    """Read all kinds at once."""
    local = utc(cluster.clock)
    seen = Snapshot(cluster, namespace, local, local)
    asked = [(*one, namespace) for one in [*_INSIDE, *_custom(cluster)]]
    around = [(*one, None) for one in _AROUND] + [("coordination.k8s.io/v1", "Lease", "kube-node-lease")]

    def listed(one: tuple[str, str, str | None]) -> tuple[tuple[str, str | None], Sequence[Manifest]]:
        api_version, kind, home = one
        found = cluster.list(api_version, kind, home)
        return (kind, home), [{"apiVersion": api_version, "kind": kind, **item} for item in found]

    answers, failures = run_all(listed, [*asked, *around], parallel=PARALLEL)
    by_kind = dict(answers)
    if ("Pod", namespace) not in by_kind:
        raise failures[0]  # Pods are asked for first. Without them nothing can be said of the namespace.
    seen.kinds = {kind if home in (namespace, None) else f"{kind} of {home}": rows for (kind, home), rows in by_kind.items()}
    seen.unread = list(dict.fromkeys(error.message for error in failures))
    try:
        seen.place = cluster.get(Ref("v1", "Namespace", namespace))
    except MusterError as error:
        seen.unread.append(error.message)
    seen.now = _server_time(cluster, namespace) or seen.local
    return seen


def _server_time(cluster: Cluster, namespace: str) -> dt.datetime | None:
    """The time of the API server, from an object that a dry run makes; None where the user may not make one."""
    asked = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "muster-doctor", "namespace": namespace}}
    try:
        created = cluster.create(asked, dry_run=True)["metadata"].get("creationTimestamp")
    except MusterError:
        return None
    return _time(created) if created else None


def skew(lease: Manifest) -> float:
    """Seconds by which the clock of a Lease's holder is ahead of the API server's, whose time of the last write is in whole seconds."""
    times = [str(entry["time"]) for entry in lease["metadata"].get("managedFields") or [] if entry.get("time")]
    renewed = (lease.get("spec") or {}).get("renewTime")
    return (_time(renewed) - _time(max(times))).total_seconds() if times and renewed else 0.0


def _custom(cluster: Cluster) -> list[tuple[str, str]]:
    """Kinds of operators that are served here and judged."""
    return [
        (api_version, kind)
        for api_version, kind, _resource in cluster.kinds()
        if kind in _JUDGED.get(group_of(api_version), ()) or (group_of(api_version), kind) in TRAININGS
    ]


def state(item: Manifest) -> State:
    """The state of an object by the predicate of its kind."""
    return state_of(item, item["kind"], item["apiVersion"])

# SPDX-License-Identifier: GPL-3.0-or-later
"""The groups of pods that must run at once: listed, or those that objects make. No I/O."""

from __future__ import annotations

import dataclasses
import functools
import typing as t
from collections.abc import Callable, Iterable, Mapping, Sequence

from .._core.errors import InvalidInput
from .._kube.objects import LEADER_WORKER_SET, GroupKind, Manifest, group_kind, labels_of
from .._kube.order import BUILT_IN_GROUPS
from .._manifests.meta import LABEL_QUEUE
from .resources import Amounts, taken

_WITHOUT_PODS = (*BUILT_IN_GROUPS, "monitoring.coreos.com", "monitoring.googleapis.com")
_MADE_LATER: tuple[GroupKind, ...] = (("batch", "CronJob"), ("apps", "DaemonSet"))
"""Built-in kinds whose pods are not those of a gang."""


class PodSet(t.NamedTuple):
    """Pods that an object makes from one template."""

    name: str
    replicas: int
    template: Mapping[str, t.Any]
    caveats: Sequence[str] = ()
    """Reasons outside of the template that decide where, or when, the pods run."""


PodSets = Callable[[Manifest], Sequence[PodSet]]
"""The pod sets of an object of one kind."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Group:
    """Equal pods of a gang."""

    name: str
    replicas: int
    namespace: str
    spec: Mapping[str, t.Any]
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)
    queue: str = ""
    """The queue of Kueue that decides when the pods begin."""
    caveats: Sequence[str] = ()
    there: int = 0
    """Pods of the group that have a node already, beside REPLICAS others."""

    @property
    def size(self) -> int:
        """All pods of the group."""
        return self.replicas + self.there

    @functools.cached_property
    def takes(self) -> Amounts:
        """The amount that one pod takes of its node."""
        return taken(self.spec)


def groups_of(objects: Iterable[Manifest], namespace: str, kinds: Mapping[GroupKind, PodSets]) -> tuple[list[Group], list[str]]:
    """The groups that objects make, and the objects of unknown kinds. KINDS: the pod sets of kinds that Kubernetes does not have."""
    found: list[Group] = []
    unknown: list[str] = []
    for item in objects:
        kind = group_kind(item)
        pod_sets = {**_BUILT_IN, **kinds}.get(kind)
        if pod_sets:
            home, queue = item["metadata"].get("namespace") or namespace, labels_of(item).get(LABEL_QUEUE, "")
            found += [group(pod_set, home, queue) for pod_set in pod_sets(item)]
        elif kind[0] not in _WITHOUT_PODS or kind in _MADE_LATER:
            unknown.append(f"the pods of {kind[1]} {item['metadata']['name']}")
    return found, unknown


def group(pod_set: PodSet, namespace: str, queue: str = "") -> Group:
    """The pods of a pod set in a namespace. QUEUE: that of the object which makes them."""
    name, replicas, template, caveats = pod_set
    spec = template.get("spec") or {}
    if not spec.get("containers"):
        raise InvalidInput(f"Group {name} has no containers", hint="Its template needs spec.containers.")
    if replicas < 0:
        raise InvalidInput(f"Group {name} cannot have {replicas} pods")
    metadata = template.get("metadata") or {}
    labels = metadata.get("labels") or {}
    return Group(
        name=name,
        replicas=replicas,
        namespace=namespace,
        spec=spec,
        labels=labels,
        annotations=metadata.get("annotations") or {},
        queue=labels.get(LABEL_QUEUE) or queue,
        caveats=caveats,
    )


def at_once(spec: Mapping[str, t.Any]) -> int:
    """The number of pods that a Job runs at the same time."""
    parallelism = 1 if spec.get("parallelism") is None else int(spec["parallelism"])
    return parallelism if spec.get("completions") is None else min(parallelism, int(spec["completions"]))


def _of_replicas(item: Manifest) -> list[PodSet]:
    spec, template = item["spec"], item["spec"]["template"]
    replicas = 1 if spec.get("replicas") is None else int(spec["replicas"])
    claims = spec.get("volumeClaimTemplates") or ()
    # Containers name their mounts, so that without these volumes the pod would be invalid.
    made = template.get("spec") or {}
    volumes = [*(made.get("volumes") or ()), *({"name": one["metadata"]["name"], "emptyDir": {}} for one in claims)]
    template = {**template, "spec": {**made, "volumes": volumes}}
    return [PodSet(item["metadata"]["name"], replicas, template, ("volumeClaimTemplates",) if claims else ())]


def _of_leaders(item: Manifest) -> list[PodSet]:
    spec, name = item["spec"], item["metadata"]["name"]
    replicas, groups = int(spec.get("replicas", 1)), spec["leaderWorkerTemplate"]
    worker, workers = groups["workerTemplate"], int(groups.get("size", 1)) - 1
    leaders = PodSet(name, replicas, groups.get("leaderTemplate") or worker)
    return [leaders, PodSet(f"{name}-workers", replicas * workers, worker)] if workers else [leaders]


_BUILT_IN: dict[GroupKind, PodSets] = {
    ("", "Pod"): lambda item: [PodSet(item["metadata"]["name"], 1, item)],
    ("apps", "Deployment"): _of_replicas,
    ("apps", "ReplicaSet"): _of_replicas,
    ("apps", "StatefulSet"): _of_replicas,
    LEADER_WORKER_SET: _of_leaders,
    ("batch", "Job"): lambda item: [PodSet(item["metadata"]["name"], at_once(item["spec"]), item["spec"]["template"])],
}

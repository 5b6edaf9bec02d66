# SPDX-License-Identifier: GPL-3.0-or-later
"""Read of the cluster what decides whether a gang fits, and judge it. Nothing is written.

What may not be read is not judged, and is no error: a preflight is advice.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Iterable, Mapping, Sequence

from .._core.errors import Forbidden, InvalidInput, MusterError
from .._kube.cluster import Cluster
from .._kube.objects import GroupKind, Manifest, Ref
from .._kube.queued import API_VERSION as KUEUE
from . import caveats
from .groups import Group, PodSet, PodSets, group, groups_of
from .judge import Gang, Seen, Verdict, judge

_DEVICE_CLASS = ("resource.k8s.io/v1", "DeviceClass")
_IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""Prefix of a resource that names its DeviceClass."""


def gang(
    objects: Sequence[Manifest],
    namespace: str,
    *,
    rows: Iterable[Mapping[str, t.Any]] = (),
    kinds: Mapping[GroupKind, PodSets] | None = None,
    leaving: str = "",
    staying: str = "",
) -> Gang:
    """All pods that objects make, such as those of a training, and those of listed groups (ROWS).

    KINDS: the pod sets of kinds that Kubernetes does not have. LEAVING selects pods of the namespace that will have gone before, STAYING
    those that are of its one group already.
    """
    made, unknown = groups_of(objects, namespace, kinds or {})
    listed = [group(PodSet(row["name"], int(row["replicas"]), row["template"]), namespace) for row in rows]
    found = Gang(groups=[*made, *listed], unknown=unknown, leaving=leaving, staying=staying)
    if len({one.namespace for one in found.groups}) > 1:
        raise InvalidInput("The groups of a gang are in one namespace", hint="Ask for those of each namespace by themselves.")
    return found


def preflight(cluster: Cluster, asked: Gang) -> Verdict:
    """Whether all pods of the gang fit at once on this cluster. That they do not is said only where nothing can change it by itself."""
    if not asked.groups:
        return Verdict(fits=None if asked.unknown else True, not_judged=list(asked.unknown))
    reading = _Reading(cluster)
    seen = reading.seen(asked)
    asked = dataclasses.replace(asked, groups=[reading.admitted(one) for one in asked.groups])
    found = judge(asked, dataclasses.replace(seen, not_judged=reading.notes))
    if found.fits is not False or seen.nodes is None or not reading.may_come(asked, seen.nodes):
        return found
    return judge(asked, dataclasses.replace(seen, nodes=None, not_judged=reading.notes))


class _Reading:
    """Reads the cluster, and notes what is not judged therefore."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.notes: list[str] = []
        self.pods: Sequence[Manifest] | None = None
        """The pods of all namespaces."""

    def admitted(self, one: Group) -> Group:
        """The group with its pods as the API server would keep them, by a dry run: with defaults, priority, overhead and tolerations.

        Where it does not answer, such as without the right to create pods, taints are not judged.
        """
        described = {"labels": dict(one.labels), "annotations": dict(one.annotations)}
        metadata = {"name": "muster-preflight", "namespace": one.namespace, **described}
        # The account may be one that the same run creates.
        spec = {key: value for key, value in one.spec.items() if key not in ("serviceAccount", "serviceAccountName")}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        try:
            return dataclasses.replace(one, spec=self.cluster.create(pod, dry_run=True)["spec"])
        except MusterError as error:
            self.notes.append(f"admission of the pods of group {one.name} ({error.message})")
            return dataclasses.replace(one, spec={**spec, "tolerations": [{"operator": "Exists"}]})

    def seen(self, asked: Gang) -> Seen:
        """Read the state that decides it. Each kind is listed once."""
        nodes = self._listed("v1", "Node")
        # Without the right to list all pods, those of the namespace, which are less.
        self.pods = self._listed("v1", "Pod") if nodes is not None else None
        pods = self._listed("v1", "Pod", asked.namespace) if self.pods is None else self.pods
        quotas = self._listed("v1", "ResourceQuota", asked.namespace)
        queued = any(one.queue for one in asked.groups) and self.cluster.resource(KUEUE, "LocalQueue")
        local = self._listed(KUEUE, "LocalQueue", asked.namespace) if queued else None
        return Seen(
            nodes=nodes,
            pods=pods or (),
            quotas=quotas or (),
            local_queues=local,
            cluster_queues=(self._listed(KUEUE, "ClusterQueue") if local is not None else None) or (),
        )

    def may_come(self, asked: Gang, nodes: Sequence[Manifest]) -> bool:
        """Whether something may add nodes or devices. It is read only of a cluster without room."""
        autoscaler, device_class = self._autoscaler(nodes), self._device_class(asked)
        if autoscaler:
            self.notes.append(f"whether nodes are added ({autoscaler})")
        if device_class:
            self.notes.append(f"devices of {device_class} (dynamic resource allocation)")
        return bool(autoscaler or device_class)

    def _autoscaler(self, nodes: Sequence[Manifest]) -> str:
        found = caveats.autoscaler(nodes, self.pods)
        if found:
            return found
        if self.cluster.resource("karpenter.sh/v1", "NodePool"):
            return "this cluster has node pools of Karpenter"
        status = Ref("v1", "ConfigMap", "cluster-autoscaler-status", "kube-system")
        try:
            return f"there is {status}" if self.cluster.get(status) else ""
        except Forbidden:
            return ""

    def _device_class(self, asked: Gang) -> str:
        """A DeviceClass by which dynamic resource allocation may provide a resource that no node advertises."""
        names = {name for one in asked.groups for name in one.takes if "/" in name}
        rows = self._listed(*_DEVICE_CLASS) if names and self.cluster.resource(*_DEVICE_CLASS) else ()
        if rows is None or any(name.startswith(_IMPLICIT) for name in names):
            return "a DeviceClass"
        found = [row["metadata"]["name"] for row in rows if row["spec"].get("extendedResourceName") in names]
        return f"DeviceClass {found[0]}" if found else ""

    def _listed(self, api_version: str, kind: str, namespace: str | None = None) -> Sequence[Manifest] | None:
        try:
            return self.cluster.list(api_version, kind, namespace)
        except Forbidden as error:
            self.notes.append(f"no right to list objects of kind {kind} ({error.message})")
            return None

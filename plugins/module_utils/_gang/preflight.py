# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read of the cluster what decides whether a gang fits, and judge it. Nothing is written.

What may not be read is not judged, and is no error: a preflight is advice. Of a cluster without room some more is read: the API server is
asked for the pods as it would keep them (a dry run), and whether nodes may be added.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Iterable, Mapping, Sequence

from .._core.errors import Forbidden, MusterError
from .._kube.objects import Manifest, Ref
from . import doubts
from . import groups as reading
from .groups import Group
from .judge import Gang, Seen, Verdict, judge
from .kueue import API_VERSION as KUEUE
from .kueue import Queues
from .places import Template
from .volumes import claim_names

if t.TYPE_CHECKING:
    from .._kube.cluster import Cluster

_NO_RIGHT = "no right to list objects of kind {} ("


def gang(
    objects: Sequence[Manifest],
    namespace: str,
    *,
    rows: Iterable[Mapping[str, t.Any]] = (),
    leaving: str = "",
    staying: str = "",
    templates: Sequence[Template] = (),
) -> Gang:
    """All pods that objects make, such as those of a training, and those of groups that somebody lists (ROWS).

    LEAVING selects pods of the namespace that will have gone before, STAYING those that are of its one group already; TEMPLATES are
    nodes that an autoscaler can add.
    """
    groups, unknown = reading.read(objects, namespace)
    return Gang(
        groups=[*groups, *reading.given(rows, namespace)],
        claims=reading.claims_among(objects),
        unknown=unknown,
        leaving=leaving,
        staying=staying,
        templates=templates,
    )


def preflight(cluster: Cluster, asked: Gang, *, refusing: bool = False) -> Verdict:
    """Whether all pods of the gang fit at once on this cluster; REFUSING: only whether they do not.

    That they do not is said only where nothing can change it by itself.
    """
    seen = read(cluster, asked)
    found = judge(asked, seen, refusing=refusing)
    if found.fits is not False:
        return found
    kept = dataclasses.replace(asked, groups=[_as_kept(cluster, group) for group in asked.groups])
    found = judge(kept, seen, refusing=refusing)
    if found.fits is not False:
        return found
    why, hopeful, then = doubts.doubts(kept, seen, _more(cluster, kept, seen))
    if not why or judge(hopeful, then, refusing=True).fits is False:
        return found
    return dataclasses.replace(found, fits=None, not_judged=list(dict.fromkeys([*found.not_judged, *why])))


def read(cluster: Cluster, asked: Gang) -> Seen:
    """What decides it. Each kind is listed once, and only those that the gang's pods have to do with."""
    if not asked.groups:
        return Seen()
    asking = _Asking(cluster)
    namespace = asked.groups[0].namespace
    nodes = asking.listed("v1", "Node")
    ranges, quotas = asking.listed("v1", "LimitRange", namespace), asking.listed("v1", "ResourceQuota", namespace)
    claims, volumes, classes = _storage(asking, asked.groups, namespace)
    return Seen(
        nodes=nodes,
        pods=_pods(asking, namespace, everywhere=nodes is not None),
        ranges=ranges,
        quotas=quotas,
        claims=claims,
        volumes=volumes,
        classes=classes,
        runtimes=_runtimes(asking, asked.groups),
        daemon_sets=asking.listed("apps/v1", "DaemonSet") if asked.templates else (),
        queues=_queues(asking, namespace) if any(group.queue for group in asked.groups) else Queues(),
        unread=asking.refused,
    )


def _queues(asking: _Asking, namespace: str) -> Queues:
    if asking.cluster.resource(KUEUE, "LocalQueue") is None:
        return Queues()
    return Queues(
        local=asking.listed(KUEUE, "LocalQueue", namespace),
        cluster=asking.listed(KUEUE, "ClusterQueue"),
        cohorts=asking.listed(KUEUE, "Cohort"),
    )


def _pods(asking: _Asking, namespace: str, *, everywhere: bool) -> Sequence[Manifest] | None:
    """All pods; where there is no right to them, or nothing to count them against, those of the namespace, which are less."""
    found = asking.listed("v1", "Pod") if everywhere else None
    return asking.listed("v1", "Pod", namespace) if found is None else found


def _as_kept(cluster: Cluster, group: Group) -> Group:
    """The group with its pods as the API server would keep them, with what admission adds; as they are where it does not say so."""
    metadata = {"name": "muster-preflight", "namespace": group.namespace, "labels": dict(group.labels)}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": dict(group.spec)}
    try:
        return dataclasses.replace(group, spec=cluster.apply(pod, dry_run=True)["spec"])
    except MusterError:  # such as a quota that is used up, or a claim or account that the same run makes
        return group


def _more(cluster: Cluster, asked: Gang, seen: Seen) -> doubts.More:
    """What is read only of a cluster without room."""
    asking = _Asking(cluster)
    drivers: Sequence[Manifest] | None = ()
    if doubts.attached_claims(asked, seen):
        drivers = asking.listed("storage.k8s.io/v1", "CSIDriver")
    return doubts.More(
        autoscaler=_autoscaler(asking, seen),
        attaching=frozenset(
            row["metadata"]["name"]
            for row in drivers or ()
            if (row.get("spec") or {}).get("attachRequired") is not False
        ),
    )


def _autoscaler(asking: _Asking, seen: Seen) -> str:
    if seen.nodes is None:
        return ""
    everywhere = not any(text.startswith(_NO_RIGHT.format("Pod")) for text in seen.unread)
    shown = doubts.autoscaler(seen.nodes, seen.pods if everywhere else None)
    if shown:
        return shown
    if asking.cluster.resource("karpenter.sh/v1", "NodePool"):
        return "this cluster has node pools of Karpenter"
    status = Ref("v1", "ConfigMap", "cluster-autoscaler-status", "kube-system")
    return f"there is {status}" if asking.got(status) else ""


class _Asking:
    """Reads; what is forbidden is noted and None."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.refused: list[str] = []

    def listed(self, api_version: str, kind: str, namespace: str | None = None) -> Sequence[Manifest] | None:
        try:
            return self.cluster.list(api_version, kind, namespace)
        except Forbidden as error:
            self.refused.append(f"{_NO_RIGHT.format(kind)}{error.message})")
            return None

    def got(self, ref: Ref) -> Manifest | None:
        try:
            return self.cluster.get(ref)
        except Forbidden as error:
            self.refused.append(f"no right to read {ref} ({error.message})")
            return None


def _storage(
    asking: _Asking, groups: Sequence[Group], namespace: str
) -> tuple[dict[str, Manifest] | None, dict[str, Manifest], dict[str, Manifest] | None]:
    """Claims of the namespace, the volumes of those that the groups use, and the storage classes."""
    named = {name for group in groups for name in claim_names(group.spec)}
    born = any(group.claims or any(one.get("ephemeral") for one in group.spec.get("volumes") or ()) for group in groups)
    if not named and not born:
        return {}, {}, {}
    claims = _by_name(asking.listed("v1", "PersistentVolumeClaim", namespace))
    made = {name for group in groups for template in group.claims for name in group.claims_of(template)}
    used = [claim for name, claim in (claims or {}).items() if name in named | made]
    bound = {name for claim in used if (name := claim["spec"].get("volumeName"))}
    found = {name: asking.got(Ref("v1", "PersistentVolume", name)) for name in sorted(bound)}
    classes = _by_name(asking.listed("storage.k8s.io/v1", "StorageClass"))
    return claims, {name: volume for name, volume in found.items() if volume}, classes


def _runtimes(asking: _Asking, groups: Sequence[Group]) -> dict[str, Manifest]:
    names = {name for group in groups if (name := group.spec.get("runtimeClassName"))}
    found = {name: asking.got(Ref("node.k8s.io/v1", "RuntimeClass", name)) for name in sorted(names)}
    return {name: item for name, item in found.items() if item}


def _by_name(items: Sequence[Manifest] | None) -> dict[str, Manifest] | None:
    return None if items is None else {item["metadata"]["name"]: item for item in items}

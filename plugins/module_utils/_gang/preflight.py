# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read of the cluster what decides whether a gang fits, and judge it. Nothing is written.

What may not be read is not judged, and is no error: a preflight is advice.

Private to the collection.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterable, Mapping, Sequence

from .._core.errors import Forbidden
from .._kube.objects import Manifest, Ref
from . import groups as reading
from .groups import Group
from .judge import Gang, Seen, Verdict, judge
from .places import Template
from .volumes import claim_names

if t.TYPE_CHECKING:
    from .._kube.cluster import Cluster


def gang(
    objects: Sequence[Manifest],
    namespace: str,
    *,
    rows: Iterable[Mapping[str, t.Any]] = (),
    leaving: str = "",
    templates: Sequence[Template] = (),
) -> Gang:
    """All pods that objects make, such as those of a training, and those of groups that somebody lists (ROWS).

    LEAVING selects pods of the namespace that will have gone before; TEMPLATES are nodes that an autoscaler can add.
    """
    groups, unknown = reading.read(objects, namespace)
    return Gang(
        groups=[*groups, *reading.given(rows, namespace)],
        claims=reading.claims_among(objects),
        unknown=unknown,
        leaving=leaving,
        templates=templates,
    )


def preflight(cluster: Cluster, asked: Gang) -> Verdict:
    """Whether all pods of the gang fit at once on this cluster."""
    return judge(asked, read(cluster, asked))


def read(cluster: Cluster, asked: Gang) -> Seen:
    """What decides it. Each kind is listed once, and only those that the gang's pods have to do with."""
    if not asked.groups:
        return Seen()
    asking = _Asking(cluster)
    namespace = asked.groups[0].namespace
    nodes, pods = asking.listed("v1", "Node"), asking.listed("v1", "Pod")
    ranges, quotas = asking.listed("v1", "LimitRange", namespace), asking.listed("v1", "ResourceQuota", namespace)
    claims, volumes, classes = _storage(asking, asked.groups, namespace)
    return Seen(
        nodes=nodes,
        pods=pods,
        ranges=ranges,
        quotas=quotas,
        claims=claims,
        volumes=volumes,
        classes=classes,
        runtimes=_runtimes(asking, asked.groups),
        daemon_sets=asking.listed("apps/v1", "DaemonSet") if asked.templates else (),
        unread=asking.refused,
    )


class _Asking:
    """Reads; what is forbidden is noted and None."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.refused: list[str] = []

    def listed(self, api_version: str, kind: str, namespace: str | None = None) -> Sequence[Manifest] | None:
        try:
            return self.cluster.list(api_version, kind, namespace)
        except Forbidden as error:
            self.refused.append(f"no right to list objects of kind {kind} ({error.message})")
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

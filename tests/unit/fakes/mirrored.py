# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster as OpenShift's, which shows objects of Kubernetes under other names, too."""

import types
import typing as t

from ansible_collections.muster.ml.plugins.module_utils._kube.kinds import Kinds
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Listing, Manifest, Ref, ServedKind
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster

_REAL = {
    ("project.openshift.io/v1", "Project"): ("v1", "Namespace"),
    ("authorization.openshift.io/v1", "RoleBinding"): ("rbac.authorization.k8s.io/v1", "RoleBinding"),
}
One = tuple[str, str, ServedKind]
MIRRORS: list[One | types.EllipsisType] = [(*shown, ServedKind(f"{shown[1].lower()}s", shown[1] == "RoleBinding")) for shown in _REAL]


class Mirrored(FakeCluster):
    """Lists MIRRORS and, in the place of ``...``, the kinds of Kubernetes; who may not list these sees only the former."""

    def __init__(self, listed: t.Sequence[One | types.EllipsisType]) -> None:
        super().__init__()
        self._listed = listed

    def kinds(self) -> Kinds:
        real = super().kinds()
        return Kinds(one for part in self._listed for one in (real if part is ... else [part]))

    def list(self, api_version: str, kind: str, *rest: t.Any, **options: t.Any) -> Listing:
        found = super().list(*_REAL.get((api_version, kind), (api_version, kind)), *rest, **options)
        return Listing([{**item, "apiVersion": api_version, "kind": kind} for item in found], found.resource_version)

    def get(self, ref: Ref) -> Manifest | None:
        return super().get(_real(ref))

    def delete(self, ref: Ref, **options: t.Any) -> bool:
        return super().delete(_real(ref), **options)


def _real(ref: Ref) -> Ref:
    return Ref(*_REAL.get((ref.api_version, ref.kind), (ref.api_version, ref.kind)), ref.name, ref.namespace)

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The order in which objects are sent: in waves, whose objects may all be sent at once.

Private to the collection.
"""

from __future__ import annotations

import typing as t

from .objects import Manifest, Ref, group_of

BUILT_IN_GROUPS = frozenset({
    "", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "authentication.k8s.io",
    "authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io",
    "events.k8s.io", "flowcontrol.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "policy", "rbac.authorization.k8s.io",
    "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
})  # fmt: skip

WAVE_FOUNDATIONS, WAVE_CONFIGURATION, WAVE_BINDINGS, WAVE_WORKLOADS, WAVE_CUSTOM = range(5)

_FOUNDATIONS = frozenset({"Namespace", "CustomResourceDefinition"})
_CONFIGURATION = frozenset({
    "ClusterRole", "ConfigMap", "CSIDriver", "DeviceClass", "IngressClass", "LimitRange", "NetworkPolicy",
    "PersistentVolume", "PersistentVolumeClaim", "PodDisruptionBudget", "PriorityClass", "ResourceQuota", "Role",
    "RuntimeClass", "Secret", "Service", "ServiceAccount", "StorageClass",
})  # fmt: skip
# Without cluster-admin one can only bind an existing role: the API server compares the permissions.
_BINDINGS = frozenset({"ClusterRoleBinding", "RoleBinding"})
# Their servers are workloads of the same list: until those run, nothing that has to pass a webhook is admitted.
_SERVED_BY_WORKLOADS = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "APIService"})

# Kinds that hold what cannot be created again. A Secret does if Muster generated its keys, see deletion.holds_data.
DATA_KINDS = frozenset({("", "PersistentVolumeClaim"), ("", "PersistentVolume"), ("", "Namespace")})


def wave_of(api_version: str, kind: str) -> int:
    """The number of an object's wave."""
    if group_of(api_version) not in BUILT_IN_GROUPS or kind in _SERVED_BY_WORKLOADS:
        return WAVE_CUSTOM
    if kind in _FOUNDATIONS:
        return WAVE_FOUNDATIONS
    if kind in _BINDINGS:
        return WAVE_BINDINGS
    return WAVE_CONFIGURATION if kind in _CONFIGURATION else WAVE_WORKLOADS


def waves(refs: t.Iterable[Ref], *, reverse: bool = False) -> list[list[Ref]]:
    """Non-empty waves in the order of applying, or (reverse) of deleting; the given order is kept inside a wave."""
    by_wave: dict[int, list[Ref]] = {}
    for ref in refs:
        by_wave.setdefault(wave_of(ref.api_version, ref.kind), []).append(ref)
    return [by_wave[number] for number in sorted(by_wave, reverse=reverse)]


def kinds_of_definitions(objects: t.Iterable[Manifest]) -> dict[tuple[str, str], bool]:
    """(apiVersion, kind) that the definitions in this list define, and whether they are namespaced."""
    found = {}
    for manifest in objects:
        if manifest.get("kind") == "CustomResourceDefinition":
            spec = manifest.get("spec") or {}
            for version in spec.get("versions") or []:
                key = (f"{spec.get('group')}/{version.get('name')}", str((spec.get("names") or {}).get("kind")))
                found[key] = spec.get("scope") == "Namespaced"
    return found

# SPDX-License-Identifier: GPL-3.0-or-later
"""Service accounts and what they may do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .meta import Manifest, compact, metadata

API_GROUP = "rbac.authorization.k8s.io"


def rule(api_groups: Sequence[str], resources: Sequence[str], verbs: Sequence[str], *names: str) -> Manifest:
    """A rule of a Role: VERBS on RESOURCES, only those called NAMES if names are given."""
    return compact({"apiGroups": list(api_groups), "resources": list(resources), "resourceNames": list(names), "verbs": list(verbs)})


def service_account(name: str, namespace: str, labels: Mapping[str, str]) -> Manifest:
    """The account that a pod runs as."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(name, namespace, labels)}


def cluster_access(name: str, account: Manifest, rules: Sequence[Manifest]) -> list[Manifest]:
    """A ClusterRole with its binding: ACCOUNT may do this in all namespaces."""
    return _access("ClusterRole", metadata(name, None, account["metadata"].get("labels")), account, rules)


def namespace_access(account: Manifest, rules: Sequence[Manifest], namespace: str | None = None) -> list[Manifest]:
    """A Role with its binding: ACCOUNT may do this in its own namespace, or in another one."""
    own = account["metadata"]
    return _access("Role", {**own, "namespace": namespace} if namespace else own, account, rules)


def access_in(account: Manifest, rules: Mapping[str | None, Sequence[Manifest]]) -> list[Manifest]:
    """Roles with their bindings: the rules of ACCOUNT by namespace; None stands for a ClusterRole."""
    return [
        one
        for namespace, allowed in rules.items()
        for one in (
            cluster_access(account["metadata"]["name"], account, allowed)
            if namespace is None
            else namespace_access(account, allowed, namespace)
        )
    ]


def _access(kind: str, meta: Manifest, account: Manifest, rules: Sequence[Manifest]) -> list[Manifest]:
    role = {"apiVersion": f"{API_GROUP}/v1", "kind": kind, "metadata": meta, "rules": list(rules)}
    return [role, binding(kind, meta["name"], meta, account)]


def binding(kind: str, role: str, meta: Manifest, account: Manifest) -> Manifest:
    """ACCOUNT may do what a Role or ClusterRole (KIND) says that exists."""
    subject = {"kind": "ServiceAccount", "name": account["metadata"]["name"], "namespace": account["metadata"]["namespace"]}
    return {
        "apiVersion": f"{API_GROUP}/v1",
        "kind": f"{kind}Binding",
        "metadata": meta,
        "roleRef": {"apiGroup": API_GROUP, "kind": kind, "name": role},
        "subjects": [subject],
    }

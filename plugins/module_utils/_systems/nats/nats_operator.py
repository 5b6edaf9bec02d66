# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects that role nats_operator installs: nats-operator with only the permissions it uses.

Built from the operator's documented behaviour and its observed requests to the API server; nothing is copied from the project's own
manifests. Its CustomResourceDefinitions are in crds/ of the role's files.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ..._manifests.access import cluster_access, namespace_access, rule, service_account
from ..._manifests.meta import Manifest
from ..._manifests.operators import Operator, operator_deployment, operator_labels, operator_pod
from ..._manifests.pods import field_env, merge_env

NAME = "nats-operator"
NOBODY = 65534

# Needed in any scope: its own two kinds at start (get, compare, update, wait until served), and one list of all pods, to find an operator
# of the other scope.
EVERYWHERE = [
    rule(
        ["apiextensions.k8s.io"],
        ["customresourcedefinitions"],
        ["get", "list", "watch", "update"],
        "natsclusters.nats.io",
        "natsserviceroles.nats.io",
    ),
    rule([""], ["pods"], ["list"]),
]
# Needed where the NatsClusters are.
BESIDE_CLUSTERS = [
    rule(["nats.io"], ["natsclusters"], ["list", "watch", "patch"]),
    rule(["nats.io"], ["natsserviceroles"], ["list", "watch"]),
    rule([""], ["pods"], ["create", "delete", "get", "list", "patch", "watch"]),
    # To put a server into lame duck mode before it is stopped.
    rule([""], ["pods/exec"], ["create"]),
    rule([""], ["services"], ["create", "get", "list", "patch", "watch"]),
    # The configuration of a server is a Secret, and so are the credentials that a NatsCluster refers to.
    rule([""], ["secrets"], ["create", "get", "list", "update", "watch"]),
    # For leader election and its events.
    rule([""], ["endpoints"], ["create", "get", "update"]),
    rule([""], ["events"], ["create", "patch"]),
]
# For NatsClusters with spec.auth.enableServiceAccounts.
TOKENS_EVERYWHERE = [rule([""], ["namespaces"], ["list"])]
TOKENS_BESIDE_CLUSTERS = [rule([""], ["serviceaccounts"], ["get"]), rule([""], ["serviceaccounts/token"], ["create"])]


@dataclasses.dataclass(frozen=True, kw_only=True)
class NatsOperator(Operator):
    """nats-operator for the NatsClusters of its own namespace (scope namespace) or of all (scope cluster)."""

    scope: t.Literal["namespace", "cluster"] = "namespace"
    replicas: int = 1
    service_accounts: bool = False
    gc_interval: str = "10m"


def manifests(operator: NatsOperator) -> list[Manifest]:
    """The operator and its ServiceAccount with RBAC."""
    account = service_account(NAME, operator.namespace, operator_labels(NAME))
    return [*_access(operator, account), account, _deployment(operator)]


def _access(operator: NatsOperator, account: Manifest) -> list[Manifest]:
    tokens_everywhere, tokens = (TOKENS_EVERYWHERE, TOKENS_BESIDE_CLUSTERS) if operator.service_accounts else ([], [])
    # Named after the namespace, so that two namespaced installations do not conflict.
    name = f"{NAME}-{operator.namespace}"
    if operator.scope == "cluster":
        return cluster_access(name, account, [*EVERYWHERE, *BESIDE_CLUSTERS, *tokens_everywhere, *tokens])
    return [*cluster_access(name, account, [*EVERYWHERE, *tokens_everywhere]), *namespace_access(account, [*BESIDE_CLUSTERS, *tokens])]


def _deployment(operator: NatsOperator) -> Manifest:
    # Operators of the other scope recognise this argument, so it has to be in `args`, not in `command`.
    scope = ["--feature-gates=ClusterScoped=true"] if operator.scope == "cluster" else []
    container = {
        "name": NAME,
        "command": ["nats-operator"],
        "args": [f"--gc-interval={operator.gc_interval}", *scope],
        "env": merge_env([field_env("MY_POD_NAMESPACE", "metadata.namespace"), field_env("MY_POD_NAME", "metadata.name")]),
        "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 5},
    }
    pod = operator_pod(operator, container, user=NOBODY)
    served = "natsclusters.nats.io" if operator.scope == "cluster" else f"{operator.namespace}/natsclusters.nats.io"
    return operator_deployment(
        NAME,
        operator,
        {"replicas": operator.replicas},
        pod,
        serves=[f"instances:{served}"],
        uses=["CustomResourceDefinition:natsserviceroles.nats.io"],
    )

# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects that role persia_operator installs: PERSIA's operator with only the permissions it uses.

The CustomResourceDefinition PersiaJob is in crds/ of the role's files.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..._manifests.access import cluster_access, rule, service_account
from ..._manifests.meta import Manifest
from ..._manifests.operators import Operator, operator_deployment, operator_labels, operator_pod

NAME = "persia-operator"
NOBODY = 65534

# In all namespaces, because it watches all of them: PersiaJobs (it patches their finalizer), and the bare pods and the one Service that
# it creates from them and deletes by label.
RULES = [
    rule(["persia.com"], ["persiajobs"], ["get", "list", "watch", "patch"]),
    rule([""], ["pods", "services"], ["create", "get", "list", "delete", "deletecollection"]),
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class PersiaOperator(Operator):
    """PERSIA's operator, which any PERSIA runtime image holds."""

    command: Sequence[str] = ("persia-k8s-utils", "operator")
    log_level: str = "info"


def manifests(operator: PersiaOperator) -> list[Manifest]:
    """The operator and its ServiceAccount with RBAC."""
    account = service_account(NAME, operator.namespace, operator_labels(NAME))
    container = {
        "name": "operator",
        "command": list(operator.command),
        "env": [{"name": name, "value": operator.log_level} for name in ("LOG_LEVEL", "RUST_LOG")],
    }
    # There is no leader election, so two operators at a time would create every pod twice.
    alone = {"replicas": 1, "strategy": {"type": "Recreate"}}
    pod = operator_pod(operator, container, user=NOBODY)
    deployment = operator_deployment(NAME, operator, alone, pod, serves=["instances:persiajobs.persia.com"])
    return [account, *cluster_access(NAME, account, RULES), deployment]

# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects that role training_operator installs: Kubeflow's training-operator 1.x for PyTorchJobs, with only the permissions it uses.

The project releases no manifest, only sources for kustomize. Of these the CustomResourceDefinition PyTorchJob is installed as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..._core.errors import InvalidInput
from ..._manifests.access import access_in, rule, service_account
from ..._manifests.meta import Manifest, check_name, metadata
from ..._manifests.operators import Operator, operator_deployment, operator_labels, operator_pod, operator_service
from ..._manifests.pods import field_env, merge_env

# The operator creates its certificate for the Service of this name, the default of its flags; so are the next two names.
NAME = "training-operator"
SECRET = "training-operator-webhook-cert"  # noqa: S105  (a name)
WEBHOOK = "validator.training-operator.kubeflow.org"
CERTIFICATES = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108  (a path inside the container)
USER = 65532
PORTS = {"webhook": 9443, "metrics": 8080, "health": 8081}

CLUSTER = [
    rule(["admissionregistration.k8s.io"], ["validatingwebhookconfigurations"], ["list", "watch"]),
    rule(["admissionregistration.k8s.io"], ["validatingwebhookconfigurations"], ["update"], WEBHOOK),
]
# In the namespaces whose jobs it manages. It only watches gangs of pods (PodGroups), and only if their kinds exist.
SERVED = [
    rule(["kubeflow.org"], ["pytorchjobs"], ["get", "list", "watch", "delete"]),
    rule(["kubeflow.org"], ["pytorchjobs/status"], ["update"]),
    rule(["kubeflow.org"], ["pytorchjobs/finalizers"], ["update"]),
    rule([""], ["pods", "services"], ["create", "get", "list", "watch", "delete"]),
    rule([""], ["events"], ["create", "patch"]),
    rule(["scheduling.volcano.sh", "scheduling.x-k8s.io"], ["podgroups"], ["get", "list", "watch"]),
]
AUTOSCALING = [rule(["autoscaling"], ["horizontalpodautoscalers"], ["create", "get", "list", "watch", "update", "delete"])]
# In its own namespace, for the Secret with its certificate.
OWN_NAMESPACE = [rule([""], ["secrets"], ["list", "watch"]), rule([""], ["secrets"], ["update"], SECRET)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingOperator(Operator):
    """training-operator 1.x, for PyTorchJobs only. ``namespaces``: the one whose jobs it manages, all if there is none."""

    manifest: str = ""
    manifest_sha256: str = ""
    namespaces: Sequence[str] = ()
    autoscaling: bool = False
    controller_threads: int = 1


def manifests(operator: TrainingOperator) -> list[Manifest]:
    """The operator, its ServiceAccount with RBAC, and its webhook with Service and Secret."""
    account = service_account(NAME, operator.namespace, operator_labels(NAME))
    return [account, *access_in(account, _access(operator)), *_webhook(operator), _deployment(operator)]


def _access(operator: TrainingOperator) -> dict[str | None, list[Manifest]]:
    """The rules by namespace. Its flag for a namespace takes one (cmd/training-operator.v1/main.go, 1.9.4)."""
    if len(operator.namespaces) > 1:
        raise InvalidInput(
            f"namespaces: training-operator manages the jobs of one namespace or of all, not of {', '.join(operator.namespaces)}.",
            "Leave the option out for all.",
        )
    served = [*SERVED, *(AUTOSCALING if operator.autoscaling else [])]
    if not operator.namespaces:
        return {None: [*served, *CLUSTER], operator.namespace: OWN_NAMESPACE}
    name = check_name(operator.namespaces[0], "namespaces")
    own = [*OWN_NAMESPACE, *served] if name == operator.namespace else OWN_NAMESPACE
    return {None: CLUSTER, name: served, operator.namespace: own}


def _webhook(operator: TrainingOperator) -> list[Manifest]:
    labels = operator_labels(NAME)
    service = {"name": NAME, "namespace": operator.namespace, "path": "/validate-kubeflow-org-v1-pytorchjob"}
    checks = {"apiGroups": ["kubeflow.org"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pytorchjobs"]}
    webhook = {
        "name": "validator.pytorchjob.training-operator.kubeflow.org",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "clientConfig": {"service": service},
        "rules": [checks],
    }
    return [
        # The Secret is empty, because the operator stores its certificate there and renews it.
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata(SECRET, operator.namespace, labels), "type": "Opaque"},
        operator_service(NAME, operator, {"webhook": (443, PORTS["webhook"])}),
        # The operator adds the certificate authority.
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": metadata(WEBHOOK, None, labels),
            "webhooks": [webhook],
        },
    ]


def _deployment(operator: TrainingOperator) -> Manifest:
    threads = f"--controller-threads={operator.controller_threads}"
    mount = {"name": "certificate", "mountPath": CERTIFICATES, "readOnly": True}
    container = {
        "name": "operator",
        "args": ["--enable-scheme=pytorchjob", threads, "--zap-log-level=info", *(f"--namespace={name}" for name in operator.namespaces)],
        "env": merge_env([field_env("MY_POD_NAMESPACE", "metadata.namespace")]),
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in PORTS.items()],
        # At the first start the kubelet may take a minute or more to mount the new certificate, and the operator checks for it at growing
        # intervals. After a restart it finds the certificate at once.
        "startupProbe": {**_health("/readyz"), "periodSeconds": 2, "failureThreshold": 15},
        "readinessProbe": {**_health("/readyz"), "periodSeconds": 5},
        "livenessProbe": {**_health("/healthz"), "periodSeconds": 20},
        "volumeMounts": [mount],
    }
    volumes = [{"name": "certificate", "secret": {"secretName": SECRET}}]
    pod = operator_pod(operator, container, user=USER, volumes=volumes, terminationGracePeriodSeconds=10)
    # Two operators at a time would both create pods; leader election would need permissions that serve nothing else.
    workload = {"replicas": 1, "strategy": {"type": "Recreate"}}
    return operator_deployment(NAME, operator, workload, pod, serves=["instances:pytorchjobs.kubeflow.org"])


def _health(path: str) -> Manifest:
    return {"httpGet": {"path": path, "port": "health"}}

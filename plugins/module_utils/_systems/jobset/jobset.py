# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What role jobset installs: the JobSet controller with its webhooks, and the permissions it uses and no more.

Its kind JobSet is text: crds/ in the files of the role.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ..._manifests.access import cluster_access, namespace_access, rule, service_account
from ..._manifests.meta import Manifest, metadata
from ..._manifests.operators import Operator, operator_deployment, operator_labels, operator_pod, operator_selector

# Upstream's names. Those of the Service, the Secret and the two webhook configurations are fixed in the controller.
NAME = "jobset-controller-manager"
SERVICE = "jobset-webhook-service"
SECRET = "jobset-webhook-server-cert"  # noqa: S105  (a name)
MUTATING = "jobset-mutating-webhook-configuration"
VALIDATING = "jobset-validating-webhook-configuration"
CERTIFICATES = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108  (a path inside the container)
USER = 65532
PORTS = {"webhook": 9443, "health": 8081}
API_GROUP = "jobset.x-k8s.io"
LABEL_JOBSET = "jobset.sigs.k8s.io/jobset-name"

# In all namespaces, because it manages the JobSets of all. It reads from its caches, which list and watch.
EVERYWHERE = [
    # delete: those whose time to live is over.
    rule([API_GROUP], ["jobsets"], ["list", "watch", "delete"]),
    rule([API_GROUP], ["jobsets/status"], ["update"]),
    rule([API_GROUP], ["jobsets/finalizers"], ["update"]),
    rule(["batch"], ["jobs"], ["create", "list", "watch", "update", "delete"]),
    rule(["batch"], ["jobs/status"], ["update"]),
    rule([""], ["services", "persistentvolumeclaims"], ["create", "list", "watch"]),
    # Exclusive topology: pods that went to another topology than the first of their Job are marked and deleted.
    rule([""], ["pods"], ["list", "watch", "delete"]),
    rule([""], ["pods/status"], ["update"]),
    rule([""], ["nodes"], ["list", "watch"]),
    rule(["events.k8s.io"], ["events"], ["create", "patch"]),
    rule(
        ["admissionregistration.k8s.io"],
        ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        ["list", "watch"],
    ),
    rule(["admissionregistration.k8s.io"], ["mutatingwebhookconfigurations"], ["update"], MUTATING),
    rule(["admissionregistration.k8s.io"], ["validatingwebhookconfigurations"], ["update"], VALIDATING),
]
# In its own namespace, for the Secret with its certificate.
OWN_NAMESPACE = [
    rule([""], ["secrets"], ["list", "watch"]),
    rule([""], ["secrets"], ["update"], SECRET),
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobSetController(Operator):
    """The controller of JobSet."""


def manifests(controller: JobSetController) -> list[Manifest]:
    """The controller, its account and what the account may do, its webhooks and what those need."""
    account = service_account(NAME, controller.namespace, operator_labels(NAME))
    return [
        account,
        *cluster_access(NAME, account, EVERYWHERE),
        *namespace_access(account, OWN_NAMESPACE),
        *_served(controller.namespace),
        *_webhooks(controller.namespace),
        _deployment(controller),
    ]


def _served(namespace: str) -> list[Manifest]:
    labels = operator_labels(NAME)
    port = {"name": "webhook", "port": 443, "targetPort": PORTS["webhook"], "protocol": "TCP"}
    return [
        # Empty, because the controller puts its certificate there and renews it.
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata(SECRET, namespace, labels),
            "type": "Opaque",
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata(SERVICE, namespace, labels),
            "spec": {"selector": operator_selector(NAME), "ports": [port]},
        },
    ]


def _webhooks(namespace: str) -> list[Manifest]:
    """For JobSets, and for their pods alone: no other pod needs the controller in order to be created."""
    jobsets = {"apiGroups": [API_GROUP], "apiVersions": ["v1alpha2"], "resources": ["jobsets"]}
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    of_jobsets = {"objectSelector": {"matchExpressions": [{"key": LABEL_JOBSET, "operator": "Exists"}]}}

    def webhook(name: str, path: str, checks: Manifest, **more: t.Any) -> Manifest:
        return {
            "name": name,
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            # The controller adds the certificate authority.
            "clientConfig": {"service": {"name": SERVICE, "namespace": namespace, "path": path}},
            "rules": [checks],
            **more,
        }

    def configuration(kind: str, name: str, *webhooks: Manifest) -> Manifest:
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": metadata(name, None, operator_labels(NAME)),
            "webhooks": list(webhooks),
        }

    made, changed = {**jobsets, "operations": ["CREATE"]}, {**jobsets, "operations": ["CREATE", "UPDATE"]}
    return [
        configuration(
            "MutatingWebhookConfiguration",
            MUTATING,
            webhook("mjobset.kb.io", "/mutate-jobset-x-k8s-io-v1alpha2-jobset", made),
            webhook("mpod.kb.io", "/mutate--v1-pod", pods, **of_jobsets),
        ),
        configuration(
            "ValidatingWebhookConfiguration",
            VALIDATING,
            webhook("vjobset.kb.io", "/validate-jobset-x-k8s-io-v1alpha2-jobset", changed),
            webhook("vpod.kb.io", "/validate--v1-pod", pods, **of_jobsets),
        ),
    ]


def _deployment(controller: JobSetController) -> Manifest:
    container = {
        "name": "manager",
        # Without a configuration file it manages its certificate itself. The metrics would need permission to review tokens.
        "args": ["--leader-elect=false", "--metrics-bind-address=0", "--zap-log-level=info"],
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in PORTS.items()],
        # At the first start the kubelet may take a minute or more to mount the new certificate, and the controller checks for it at growing
        # intervals. After a restart it finds the certificate at once.
        "startupProbe": {**_health("/readyz"), "periodSeconds": 2, "failureThreshold": 15},
        "readinessProbe": {**_health("/readyz"), "periodSeconds": 5},
        "livenessProbe": {**_health("/healthz"), "periodSeconds": 20},
        "volumeMounts": [{"name": "certificate", "mountPath": CERTIFICATES, "readOnly": True}],
    }
    volumes = [{"name": "certificate", "secret": {"secretName": SECRET}}]
    pod = operator_pod(controller, container, user=USER, volumes=volumes, terminationGracePeriodSeconds=10)
    # Two at a time would both create Jobs; leader election would need permissions that it uses for nothing else.
    workload = {"replicas": 1, "strategy": {"type": "Recreate"}}
    return operator_deployment(NAME, controller, workload, pod, serves=["instances:jobsets.jobset.x-k8s.io"])


def _health(path: str) -> Manifest:
    return {"httpGet": {"path": path, "port": "health"}}

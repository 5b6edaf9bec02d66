# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What role kueue installs: the controller of Kueue with its webhooks, and the permissions it uses and no more; and the queues.

Its kinds are text: crds/ in the files of the role.
"""

from __future__ import annotations

import dataclasses
import json
import typing as t
from collections.abc import Mapping, Sequence

from ..._manifests.access import cluster_access, namespace_access, rule, service_account
from ..._manifests.meta import ANNOTATION_CONFIG_HASH, LABEL_QUEUE, Manifest, metadata, spec_hash
from ..._manifests.operators import Operator, operator_deployment, operator_labels, operator_pod, operator_selector
from ..._manifests.shared import config_map
from .queues import API_GROUP, queue_objects

# Upstream's names. Those of the webhook configurations follow from that of the Service.
NAME = "kueue-controller-manager"
CONFIG = "kueue-manager-config"
SERVICE = "kueue-webhook-service"
SECRET = "kueue-webhook-server-cert"  # noqa: S105  (a name)
MUTATING = "kueue-mutating-webhook-configuration"
VALIDATING = "kueue-validating-webhook-configuration"
CERTIFICATES = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108  (a path inside the container)
USER = 65532
PORTS = {"webhook": 9443, "health": 8081}

# What the controller queues, and the permissions that each needs.
_JOBS = {"batch/job": ("batch", "v1", "jobs"), "jobset.x-k8s.io/jobset": ("jobset.x-k8s.io", "v1alpha2", "jobsets")}
# Without them it needs no right to change pods, to read devices, nor an API of its own; without the first one neither do the others work.
_OFF = (
    "TopologyAwareScheduling",
    "TASFailedNodeReplacement",
    "TASFailedNodeReplacementFailFast",
    "TASHandleOverlappingFlavors",
    "TASMultiLayerTopology",
    "TASProfileMixed",
    "TASRecomputeAssignmentWithinSchedulingCycle",
    "TASReplaceNodeDueToNotReadyOverFixedTime",
    "TASReplaceNodeOnNodeTaints",
    "TASReplaceNodeOnPodTermination",
    "ElasticJobsViaWorkloadSlices",
    "KueueDRAIntegration",
    "KueueDRAIntegrationExtendedResource",
    "KueueDRAIntegrationPartitionableDevices",
    "MultiKueue",
    "VisibilityOnDemand",
)

# In all namespaces, because it queues the jobs of all. It reads from its caches, which list and watch.
_READ = ["list", "watch"]
EVERYWHERE = [
    # Its own kinds; update is for the finalizers of those that are in use.
    rule([API_GROUP], ["cohorts", "localqueues", "provisioningrequestconfigs", "workloadpriorityclasses"], _READ),
    rule([API_GROUP], ["admissionchecks", "clusterqueues", "resourceflavors"], [*_READ, "update"]),
    rule([API_GROUP], ["workloads"], [*_READ, "create", "update", "patch", "delete"]),
    rule(
        [API_GROUP],
        [f"{kind}/status" for kind in ("admissionchecks", "clusterqueues", "cohorts", "localqueues", "workloads")],
        ["update", "patch"],
    ),
    rule([API_GROUP], [f"{kind}/finalizers" for kind in ("clusterqueues", "resourceflavors", "workloads")], ["update"]),
    # What it queues: suspended and resumed, with the labels and tolerations of the flavor.
    *(rule([group], [kind], [*_READ, "update", "patch"]) for group, _version, kind in _JOBS.values()),
    *(rule([group], [f"{kind}/status"], ["update", "patch"]) for group, _version, kind in _JOBS.values()),
    *(rule([group], [f"{kind}/finalizers"], ["update"]) for group, _version, kind in _JOBS.values()),
    # What the requests of a pod follow from, and which namespaces may use a queue.
    rule([""], ["limitranges", "namespaces"], _READ),
    rule(["node.k8s.io"], ["runtimeclasses"], _READ),
    rule(["scheduling.k8s.io"], ["priorityclasses"], _READ),
    rule(["events.k8s.io"], ["events"], ["create", "patch"]),
    # By which it asks a cluster autoscaler for nodes. Where that kind is served, as on GKE, the controller reads it in any case.
    rule(["autoscaling.x-k8s.io"], ["provisioningrequests"], [*_READ, "create", "update", "patch", "delete"]),
    rule([""], ["podtemplates"], [*_READ, "create", "update", "delete"]),
    rule(["admissionregistration.k8s.io"], ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"], _READ),
    rule(["admissionregistration.k8s.io"], ["mutatingwebhookconfigurations"], ["update"], MUTATING),
    rule(["admissionregistration.k8s.io"], ["validatingwebhookconfigurations"], ["update"], VALIDATING),
    # It notes its certificate authority in these.
    rule(["apiextensions.k8s.io"], ["customresourcedefinitions"], _READ),
    rule(
        ["apiextensions.k8s.io"],
        ["customresourcedefinitions"],
        ["update"],
        *(f"{kind}.{API_GROUP}" for kind in ("clusterqueues", "cohorts", "localqueues", "workloads")),
    ),
]
# In its own namespace, for the Secret with its certificate.
OWN_NAMESPACE = [
    rule([""], ["secrets"], _READ),
    rule([""], ["secrets"], ["update"], SECRET),
]

# The kinds that role kueue creates. Without the controller nothing is admitted, and its own queues are removed before it.
_KINDS = (
    "admissionchecks",
    "clusterqueues",
    "cohorts",
    "localqueues",
    "provisioningrequestconfigs",
    "resourceflavors",
    "workloads",
    "workloadpriorityclasses",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class KueueController(Operator):
    """The controller of Kueue, and the queues that the cluster is to have."""

    resource_flavors: Sequence[Mapping[str, t.Any]] = ()
    cluster_queues: Sequence[Mapping[str, t.Any]] = ()
    local_queues: Sequence[Mapping[str, t.Any]] = ()
    priority_classes: Sequence[Mapping[str, t.Any]] = ()
    provisioning_requests: Sequence[Mapping[str, t.Any]] = ()


def manifests(controller: KueueController) -> list[Manifest]:
    """The controller, its account and what the account may do, its webhooks and what those need; and the queues."""
    given = (
        controller.resource_flavors,
        controller.cluster_queues,
        controller.local_queues,
        controller.priority_classes,
        controller.provisioning_requests,
    )
    account = service_account(NAME, controller.namespace, operator_labels(NAME))
    config = config_map(metadata(CONFIG, controller.namespace, operator_labels(NAME)), {"config.yaml": _config()})
    return [
        account,
        *cluster_access(NAME, account, EVERYWHERE),
        *namespace_access(account, OWN_NAMESPACE),
        *_served(controller.namespace),
        *_webhooks(controller.namespace),
        config,
        _deployment(controller, spec_hash(config["data"])),
        *queue_objects(*given),
    ]


def _config() -> str:
    """As JSON, which is YAML."""
    config = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f":{PORTS['health']}"},
        # The metrics would need permission to review tokens.
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": PORTS["webhook"]},
        # One pod: leader election would need permissions that it uses for nothing else.
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": True, "webhookServiceName": SERVICE, "webhookSecretName": SECRET},
        "integrations": {"frameworks": list(_JOBS)},
        "featureGates": dict.fromkeys(_OFF, False),
    }
    return json.dumps(config, indent=2) + "\n"


def _served(namespace: str) -> list[Manifest]:
    labels = operator_labels(NAME)
    port = {"name": "webhook", "port": 443, "targetPort": PORTS["webhook"], "protocol": "TCP"}
    return [
        # Empty, because the controller puts its certificate there and renews it.
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata(SECRET, namespace, labels), "type": "Opaque"},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata(SERVICE, namespace, labels),
            "spec": {"selector": operator_selector(NAME), "ports": [port]},
        },
    ]


def _webhooks(namespace: str) -> list[Manifest]:
    """For its own kinds, and for jobs in a queue alone: no other one needs the controller in order to be created."""
    queued = {"objectSelector": {"matchExpressions": [{"key": LABEL_QUEUE, "operator": "Exists"}]}}

    def webhook(verb: str, where: tuple[str, str, str], operations: list[str], **more: t.Any) -> Manifest:
        group, version, kind = where
        path = f"/{verb}-{group.replace('.', '-')}-{version}-{kind.removesuffix('s')}"
        resources = [kind, f"{kind}/status"] if kind == "workloads" and verb == "validate" else [kind]
        return {
            "name": f"{verb[0]}{kind.removesuffix('s')}.kb.io",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            # The controller adds the certificate authority.
            "clientConfig": {"service": {"name": SERVICE, "namespace": namespace, "path": path}},
            "rules": [
                {"apiGroups": [group], "apiVersions": [version], "resources": resources, "operations": operations}
            ],
            **more,
        }

    def configuration(kind: str, name: str, webhooks: list[Manifest]) -> Manifest:
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": metadata(name, None, operator_labels(NAME)),
            "webhooks": webhooks,
        }

    own = [(API_GROUP, "v1beta2", kind) for kind in ("clusterqueues", "resourceflavors", "workloads")]
    made = [webhook("mutate", one, ["CREATE"]) for one in own]
    made += [webhook("mutate", one, ["CREATE"], **queued) for one in _JOBS.values()]
    checked = [webhook("validate", one, ["CREATE", "UPDATE"]) for one in (*own, (API_GROUP, "v1beta2", "cohorts"))]
    checked += [webhook("validate", one, ["CREATE", "UPDATE"], **queued) for one in _JOBS.values()]
    return [
        configuration("MutatingWebhookConfiguration", MUTATING, made),
        configuration("ValidatingWebhookConfiguration", VALIDATING, checked),
    ]


def _deployment(controller: KueueController, config_hash: str) -> Manifest:
    container = {
        "name": "manager",
        "args": ["--config=/config/config.yaml", "--zap-log-level=info"],
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in PORTS.items()],
        # At the first start the kubelet may take a minute or more to mount the new certificate, and the controller checks for it at growing
        # intervals. After a restart it finds the certificate at once.
        "startupProbe": {**_health("/readyz"), "periodSeconds": 2, "failureThreshold": 15},
        "readinessProbe": {**_health("/readyz"), "periodSeconds": 5},
        "livenessProbe": {**_health("/healthz"), "periodSeconds": 20},
        "volumeMounts": [
            {"name": "certificate", "mountPath": CERTIFICATES, "readOnly": True},
            {"name": "config", "mountPath": "/config", "readOnly": True},
        ],
    }
    volumes = [
        {"name": "certificate", "secret": {"secretName": SECRET}},
        {"name": "config", "configMap": {"name": CONFIG}},
    ]
    pod = operator_pod(controller, container, user=USER, volumes=volumes, terminationGracePeriodSeconds=10)
    # Two at a time would both give away the same quota.
    workload = {"replicas": 1, "strategy": {"type": "Recreate"}}
    serves = [f"instances:{kind}.{API_GROUP}" for kind in _KINDS]
    deployment = operator_deployment(NAME, controller, workload, pod, serves=serves)
    deployment["spec"]["template"]["metadata"]["annotations"] = {ANNOTATION_CONFIG_HASH: config_hash}
    return deployment


def _health(path: str) -> Manifest:
    return {"httpGet": {"path": path, "port": "health"}}

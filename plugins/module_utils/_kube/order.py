# SPDX-License-Identifier: GPL-3.0-or-later
"""The order in which objects are sent: in waves, whose objects may all be sent at once."""

from __future__ import annotations

import typing as t

from .objects import API_SERVICE, CLAIM, CONFIG_MAP, DEFINITION, NAMESPACE, SECRET, SERVICE, GroupKind, Manifest, Ref, group_kind

BUILT_IN_GROUPS = frozenset({
    "", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "authentication.k8s.io",
    "authorization.k8s.io", "autoscaling", "batch", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io",
    "events.k8s.io", "flowcontrol.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "policy", "rbac.authorization.k8s.io",
    "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
})  # fmt: skip

WAVE_FOUNDATIONS, WAVE_RULES, WAVE_CONFIGURATION, WAVE_POLICIES, WAVE_WORKLOADS, WAVE_ON_WORKLOADS, WAVE_CUSTOM, WAVE_ON_CUSTOM = range(8)

# Two kinds share a wave only if neither a controller nor an admission plugin deletes, refuses or changes an object of one for want of an
# object of the other. The sources are those of Kubernetes 1.36; deletion goes the other way, for the same reasons.
_WAVES: dict[int, frozenset[GroupKind]] = {
    WAVE_FOUNDATIONS: frozenset({
        NAMESPACE,  # plugin/pkg/admission NamespaceLifecycle refuses what lies in a missing one
        DEFINITION,
    }),
    # What objects of the later waves are judged by, or take their defaults from, when they are created.
    WAVE_RULES: frozenset({
        # pkg/controller/serviceaccount/tokens_controller.go deletes a Secret of type kubernetes.io/service-account-token without its
        # account, and plugin/pkg/admission/serviceaccount refuses pods without it.
        ("", "ServiceAccount"),
        # plugin/pkg/admission/limitranger and .../resourcequota judge claims, Services and pods when they are created, never later.
        ("", "LimitRange"),
        ("", "ResourceQuota"),
        # pkg/controller/volume/persistentvolume provisions a new volume for a claim whose volume is not there yet, and
        # plugin/pkg/admission/storage/storageclass/setdefault gives a claim the default class of this moment.
        ("", "PersistentVolume"),
        ("storage.k8s.io", "StorageClass"),
        ("storage.k8s.io", "VolumeAttributesClass"),
        ("storage.k8s.io", "CSIDriver"),
        # plugin/pkg/admission/priority and .../runtimeclass refuse pods whose class is missing, and the former gives a pod the default
        # class of this moment, as .../network/defaultingressclass does for an Ingress.
        ("scheduling.k8s.io", "PriorityClass"),
        ("node.k8s.io", "RuntimeClass"),
        ("networking.k8s.io", "IngressClass"),
        ("resource.k8s.io", "DeviceClass"),
        # pkg/registry/core/service/ipallocator refuses a Service with an address outside of every range.
        ("networking.k8s.io", "ServiceCIDR"),
        # pkg/registry/rbac/*/policybased refuses a binding of a role whose permissions the user does not have; they are read from the
        # role, unless the user may bind it.
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "Role"),
        # plugin/pkg/admission/podgroupworkloadexists refuses a PodGroup whose Workload is missing.
        ("scheduling.k8s.io", "Workload"),
        # A FlowSchema without its level is Dangling (pkg/registry/flowcontrol), a binding without its policy judges nothing.
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    }),
    WAVE_CONFIGURATION: frozenset({
        CLAIM,
        CONFIG_MAP,
        SECRET,
        SERVICE,  # pkg/controller/endpoint deletes Endpoints, and pkg/registry/core/service/ipallocator an IPAddress, without one
        ("certificates.k8s.io", "ClusterTrustBundle"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("networking.k8s.io", "NetworkPolicy"),
        ("policy", "PodDisruptionBudget"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("rbac.authorization.k8s.io", "RoleBinding"),
        ("resource.k8s.io", "ResourceClaim"),
        ("resource.k8s.io", "ResourceClaimTemplate"),
        ("scheduling.k8s.io", "PodGroup"),
        # pkg/controller/podgc deletes pods of a node that does not exist.
        ("", "Node"),
    }),
    # A binding whose parameters (often a ConfigMap) are missing may deny everything, so it follows them; workloads are judged by it.
    WAVE_POLICIES: frozenset({
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
    }),
    # These need workloads: what they scale, or what serves them. Until that runs, nothing that has to pass a webhook is admitted; and a
    # custom resource that is sent before its webhook is never judged or completed by it.
    WAVE_ON_WORKLOADS: frozenset({
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        API_SERVICE,
        ("autoscaling", "HorizontalPodAutoscaler"),
    }),
    # pkg/webhooks/trainjob_webhook.go of Kubeflow Trainer 2.3.0 refuses a TrainJob without its runtime.
    WAVE_ON_CUSTOM: frozenset({("trainer.kubeflow.org", "TrainJob")}),
}  # fmt: skip
_WAVE_OF = {member: wave for wave, kinds in _WAVES.items() for member in kinds}

# Kinds that hold what cannot be created again. A Secret does if Muster generated its keys, see deletion.holds_data.
DATA_KINDS: frozenset[GroupKind] = frozenset({CLAIM, ("", "PersistentVolume"), NAMESPACE})


def wave_of(what: GroupKind) -> int:
    """The number of an object's wave."""
    return _WAVE_OF.get(what, WAVE_WORKLOADS if what[0] in BUILT_IN_GROUPS else WAVE_CUSTOM)


def waves(refs: t.Iterable[Ref], *, reverse: bool = False) -> list[list[Ref]]:
    """Non-empty waves in the order of applying, or (reverse) of deleting; the given order is kept inside a wave."""
    by_wave: dict[int, list[Ref]] = {}
    for ref in refs:
        by_wave.setdefault(wave_of(ref.group_kind), []).append(ref)
    return [by_wave[number] for number in sorted(by_wave, reverse=reverse)]


def kinds_of_definitions(objects: t.Iterable[Manifest]) -> dict[tuple[str, str], bool]:
    """(apiVersion, kind) that the definitions in this list define, and whether they are namespaced."""
    found = {}
    for manifest in objects:
        if group_kind(manifest) == DEFINITION:
            spec = manifest.get("spec") or {}
            for version in spec.get("versions") or []:
                if version.get("served") is False:
                    continue
                key = (f"{spec.get('group')}/{version.get('name')}", str((spec.get("names") or {}).get("kind")))
                found[key] = spec.get("scope") == "Namespaced"
    return found

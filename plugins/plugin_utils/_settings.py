# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of the playbooks, which belong to no role, in the form of an argument spec."""

from __future__ import annotations

import typing as t


def _text(description: str, *choices: str) -> dict[str, t.Any]:
    return {"type": "str", "description": description, **({"choices": [*choices]} if choices else {})}


def _flag(description: str) -> dict[str, t.Any]:
    return {"type": "bool", "description": description}


def _number(description: str) -> dict[str, t.Any]:
    return {"type": "int", "description": description}


def _words(description: str) -> dict[str, t.Any]:
    return {"type": "list", "elements": "str", "description": description}


SETTINGS: t.Final[dict[str, dict[str, t.Any]]] = {
    "muster_platform": _text("Where the cluster comes from.", "local", "existing", "eks", "gke"),
    "muster_systems": _words("Systems of the cluster."),
    "muster_only": _words("Systems of this run, where it is for some of them only."),
    "muster_namespace": _text("Namespace of the systems."),
    "muster_namespace_manage": _flag("Whether the namespace is created and labelled."),
    "muster_pod_security": _text("Pod Security Standard of the namespace.", "privileged", "baseline", "restricted"),
    "muster_kubeconfig": {"type": "raw", "description": "Path or content of the kubeconfig of the cluster."},
    "muster_context": _text("Context of the kubeconfig."),
    "muster_adopt": _flag("Whether existing objects that differ are changed, and deleted by teardown."),
    "muster_become": _flag("Whether a local cluster and its images are made by sudo."),
    "muster_preflight": _flag("Whether a system begins with a dry run."),
    "muster_validate": _flag("Whether the dry run of a system begins with the checks that need no cluster."),
    "muster_remove_data": _flag("Whether teardown deletes claims, volumes and buckets, too."),
    "muster_images": _words("Images that the systems need on a local cluster."),
    "muster_audit_log": _text("Audit log in which the summary counts write requests."),
    "muster_leaving": _words("Owners that a teardown in check mode counts as removed."),
    "muster_ignored_variables": _words(
        "Patterns of variables that look like those of Muster and are not, such as etcd_*."
    ),
    "muster_aws_region": _text("Region of everything on AWS."),
    "muster_aws_profile": _text("Profile of the AWS CLI."),
    "muster_aws_tags": {"type": "dict", "description": "Further tags of everything on AWS."},
    "muster_eks_name": _text("Name of the EKS cluster."),
    "muster_eks_version": _text("Kubernetes version of the EKS cluster and its nodes."),
    "muster_eks_identity": _text("How pods assume IAM roles.", "pod_identity", "irsa"),
    "muster_gcp_project": _text("ID of the Google Cloud project."),
    "muster_gcp_region": _text("Region of everything on Google Cloud."),
    "muster_gcp_zone": _text("Zone of the GKE cluster, if it has one zone only."),
    "muster_gcp_labels": {"type": "dict", "description": "Further labels of everything on Google Cloud."},
    "muster_gcp_auth_kind": _text(
        "Login on Google Cloud.", "application", "serviceaccount", "accesstoken", "machineaccount"
    ),
    "muster_gke_name": _text("Name of the GKE cluster."),
    "muster_gke_version": _text("Kubernetes version of the GKE cluster."),
    "muster_gke_nodes": _number("The most nodes that the GKE cluster may have."),
    "muster_gke_max_pods_per_node": _number("The most pods on a node of GKE."),
    "muster_gke_storage_class": _text("StorageClass of shared claims on GKE."),
    "eks_manage_cluster": _flag("Whether eks.yml makes network and cluster, or uses those that exist."),
    "eks_manage_nodegroups": _flag("Whether eks.yml makes node groups."),
    "eks_manage_efs": _flag("Whether eks.yml makes shared storage."),
    "eks_manage_s3": _flag("Whether eks.yml makes the bucket for programs and artifacts."),
    "gke_manage_cluster": _flag("Whether gke.yml makes the cluster, or uses one that exists."),
    "gke_manage_network": _flag("Whether gke.yml makes the network."),
    "gke_manage_node_pools": _flag("Whether gke.yml makes node pools."),
    "gke_manage_tpu_pools": _flag("Whether gke.yml makes node pools for TPUs."),
    "gke_manage_buckets": _flag("Whether gke.yml makes buckets."),
    "gke_manage_registry": _flag("Whether gke.yml makes repositories of images."),
    "gke_manage_addresses": _flag("Whether gke.yml reserves addresses."),
    "gke_manage_broker_vm": _flag("Whether gke.yml makes a virtual machine for RabbitMQ."),
    "images_registry": _text("Registry of images.yml: host, host:port or host/folder."),
    "images_registry_username": _text("User at the registry."),
    "images_registry_password": {**_text("Password or token of the user."), "no_log": True},
    "images_registry_ca": _text("PEM file of the authority that signed the registry's certificate."),
    "images_names": _words("Recipes of images.yml."),
}

# SPDX-License-Identifier: GPL-3.0-or-later
"""Predefined roles, and the kinds of resources that each can be granted on; none given means on any.

cloud.google.com/iam/docs/roles-permissions, as far as the collection and its users could want one. A role that is not here is refused as
one that does not exist.
"""

from __future__ import annotations

PROJECT = ("project",)
BUCKET = ("project", "bucket")
ACCOUNT = ("project", "service account")
REPOSITORY = ("project", "repository")
SUBNETWORK = ("project", "subnetwork")
INSTANCE = ("project", "instance")

ROLES: dict[str, tuple[str, ...]] = {
    "roles/owner": ("project", "service account"),
    "roles/editor": ("project", "service account"),
    "roles/viewer": ("project", "service account"),
    "roles/artifactregistry.admin": REPOSITORY,
    "roles/artifactregistry.reader": REPOSITORY,
    "roles/artifactregistry.repoAdmin": REPOSITORY,
    "roles/artifactregistry.serviceAgent": PROJECT,
    "roles/artifactregistry.writer": REPOSITORY,
    "roles/autoscaling.metricsWriter": PROJECT,
    "roles/cloudtrace.agent": PROJECT,
    "roles/compute.admin": ("project", "instance"),
    "roles/compute.instanceAdmin.v1": INSTANCE,
    "roles/compute.networkAdmin": PROJECT,
    "roles/compute.networkUser": SUBNETWORK,
    "roles/compute.networkViewer": PROJECT,
    "roles/compute.osAdminLogin": INSTANCE,
    "roles/compute.osLogin": INSTANCE,
    "roles/compute.securityAdmin": PROJECT,
    "roles/compute.serviceAgent": PROJECT,
    "roles/compute.viewer": PROJECT,
    "roles/container.admin": PROJECT,
    "roles/container.clusterAdmin": PROJECT,
    "roles/container.clusterViewer": PROJECT,
    "roles/container.defaultNodeServiceAccount": PROJECT,
    "roles/container.developer": PROJECT,
    "roles/container.hostServiceAgentUser": PROJECT,
    "roles/container.nodeServiceAccount": PROJECT,
    "roles/container.serviceAgent": PROJECT,
    "roles/container.viewer": PROJECT,
    "roles/containerregistry.ServiceAgent": PROJECT,
    "roles/iam.roleViewer": PROJECT,
    "roles/iam.securityAdmin": PROJECT,
    "roles/iam.securityReviewer": PROJECT,
    "roles/iam.serviceAccountAdmin": ACCOUNT,
    "roles/iam.serviceAccountTokenCreator": ACCOUNT,
    "roles/iam.serviceAccountUser": ACCOUNT,
    "roles/iam.serviceAccountViewer": ACCOUNT,
    "roles/iam.workloadIdentityUser": ACCOUNT,
    "roles/iap.tunnelResourceAccessor": PROJECT,
    "roles/logging.logWriter": PROJECT,
    "roles/logging.viewer": PROJECT,
    "roles/monitoring.metricWriter": PROJECT,
    "roles/monitoring.viewer": PROJECT,
    "roles/resourcemanager.projectIamAdmin": PROJECT,
    "roles/serviceusage.serviceUsageAdmin": PROJECT,
    "roles/serviceusage.serviceUsageConsumer": PROJECT,
    "roles/serviceusage.serviceUsageViewer": PROJECT,
    "roles/stackdriver.resourceMetadata.writer": PROJECT,
    "roles/storage.admin": BUCKET,
    "roles/storage.bucketViewer": BUCKET,
    "roles/storage.hmacKeyAdmin": PROJECT,
    "roles/storage.legacyBucketOwner": ("bucket",),
    "roles/storage.legacyBucketReader": ("bucket",),
    "roles/storage.legacyBucketWriter": ("bucket",),
    "roles/storage.legacyObjectOwner": ("bucket",),
    "roles/storage.legacyObjectReader": ("bucket",),
    "roles/storage.objectAdmin": BUCKET,
    "roles/storage.objectCreator": BUCKET,
    "roles/storage.objectUser": BUCKET,
    "roles/storage.objectViewer": BUCKET,
}

# SPDX-License-Identifier: GPL-3.0-or-later
"""Predefined roles, and the kinds of resources that each can be granted on.

cloud.google.com/iam/docs/roles-permissions, as far as the collection wants one. A role that is not here is refused as one that does not
exist.
"""

PROJECT = ("project",)
BUCKET = ("project", "bucket")
ACCOUNT = ("project", "service account")
REPOSITORY = ("project", "repository")

ROLES: dict[str, tuple[str, ...]] = {
    "roles/owner": ("project", "service account"),
    "roles/editor": ("project", "service account"),
    "roles/viewer": ("project", "service account"),
    "roles/artifactregistry.reader": REPOSITORY,
    "roles/artifactregistry.serviceAgent": PROJECT,
    "roles/compute.networkUser": ("project", "subnetwork"),
    "roles/compute.serviceAgent": PROJECT,
    "roles/compute.viewer": PROJECT,
    "roles/container.admin": PROJECT,
    "roles/container.defaultNodeServiceAccount": PROJECT,
    "roles/container.serviceAgent": PROJECT,
    "roles/containerregistry.ServiceAgent": PROJECT,
    "roles/iam.serviceAccountUser": ACCOUNT,
    "roles/iam.workloadIdentityUser": ACCOUNT,
    "roles/storage.admin": BUCKET,
    "roles/storage.legacyBucketOwner": ("bucket",),
    "roles/storage.legacyBucketReader": ("bucket",),
    "roles/storage.legacyObjectOwner": ("bucket",),
    "roles/storage.legacyObjectReader": ("bucket",),
    "roles/storage.objectUser": BUCKET,
    "roles/storage.objectViewer": BUCKET,
}

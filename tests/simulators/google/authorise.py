# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the caller may: every method needs permissions, and the API has to be enabled in the project.

The table follows Google's lists of permissions by method (cloud.google.com/compute/docs/access/iam-permissions, .../kubernetes-engine/docs/
reference/api-permissions, .../storage/docs/access-control/iam-json, .../iam/docs/permissions-reference). Where a method is not in it, its
name makes the permission: compute.networks.insert needs compute.networks.create.
"""

from fnmatch import fnmatchcase

from .api import Asked, Refused, error_info
from .journal import JOURNAL
from .state import PROJECT, SETTINGS, Project, project

VERBS = {"insert": "create", "aggregatedList": "list", "patch": "update"}
# Methods that need other permissions than their name says.
EXCEPTIONS = {
    "artifactregistry.projects.locations.operations.get": (),
    "compute.firewalls.delete": ("compute.firewalls.delete", "compute.networks.updatePolicy"),
    "compute.firewalls.insert": ("compute.firewalls.create", "compute.networks.updatePolicy"),
    "compute.firewalls.patch": ("compute.firewalls.get", "compute.firewalls.update", "compute.networks.updatePolicy"),
    "compute.routers.insert": ("compute.routers.create", "compute.networks.updatePolicy"),
    "compute.routers.delete": ("compute.routers.delete", "compute.networks.updatePolicy"),
    "compute.routers.patch": ("compute.routers.get", "compute.routers.update", "compute.networks.updatePolicy"),
    "compute.subnetworks.insert": ("compute.subnetworks.create", "compute.networks.updatePolicy"),
    "compute.subnetworks.delete": ("compute.subnetworks.delete", "compute.networks.updatePolicy"),
    "compute.instances.addAccessConfig": ("compute.instances.addAccessConfig", "compute.subnetworks.useExternalIp"),
    "compute.instances.insert": (
        "compute.instances.create", "compute.instances.setMetadata", "compute.instances.setTags", "compute.disks.create",
        "compute.subnetworks.use",
    ),
    "serviceusage.operations.get": (),
    "serviceusage.services.batchEnable": ("serviceusage.services.enable",),
    "serviceusage.services.batchGet": ("serviceusage.services.get",),
}  # fmt: skip


def permissions(method: str) -> tuple[str, ...]:
    if method in EXCEPTIONS:
        return EXCEPTIONS[method]
    words = method.split(".")
    api, verb = words[0], VERBS.get(words[-1], words[-1])
    noun = words[-2]
    if api == "container":
        # Node pools have no permissions of their own; whoever may change the cluster may change them.
        if noun == "nodePools":
            return ("container.clusters.get",) if verb in ("get", "list") else ("container.clusters.update",)
        if noun == "clusters" and verb not in ("get", "list", "create", "delete"):
            return ("container.clusters.update",)
    return (f"{'resourcemanager' if api == 'cloudresourcemanager' else api}.{noun}.{verb}",)


def allowed(permission: str) -> bool:
    return SETTINGS.permissions is None or any(fnmatchcase(permission, one) for one in SETTINGS.permissions)


def check(asked: Asked) -> None:
    """Permissions that the method's name needs; handlers ask for those that depend on the body by :func:`need`."""
    for permission in permissions(asked.id):
        need(asked, permission)


def need(asked: Asked, permission: str, resource: str = "") -> None:
    if allowed(permission):
        return
    raise denied(asked, permission, resource or resource_of(asked))


def resource_of(asked: Asked) -> str:
    """The resource that a request is for, as errors name it."""
    if asked.method.document == "compute.v1":
        return asked.path.split("/v1/", 1)[-1]
    for name in ("name", "parent", "resource"):
        if name in asked.params:
            return str(asked.params[name])
    if "bucket" in asked.params:
        return f"projects/_/buckets/{asked.params['bucket']}"
    return f"projects/{asked.params.get('project') or asked.params.get('projectId')}"


def denied(asked: Asked, permission: str, resource: str) -> Refused:
    """Each service has words of its own for it.

    2i2c-org/infrastructure issue 488 (GKE, Resource Manager, Artifact Registry), jetstack/terraform-google-gke-cluster issue 51 (compute),
    data-integrations/google-cloud PR 1503 and meilisearch/cloud-providers issue 58 (Cloud Storage),
    databricks/terraform-provider-databricks issue 5114 (IAM, which does not name the resource); assumed: Service Usage's.
    """
    api = asked.method.document.split(".")[0]
    if api == "compute":
        return Refused(403, f"Required '{permission}' permission for '{resource}'")
    if api == "container":
        info = error_info("IAM_PERMISSION_DENIED", "iam.googleapis.com", permission=permission, resource=resource)
        return Refused(403, f'Required "{permission}" permission(s) for "{resource}".', details=[info])
    if api == "storage":
        text = f"{asked.caller} does not have {permission} access to the Google Cloud "
        what = f"Storage bucket. Permission '{permission}' denied on resource (or it may not exist)."
        if "bucket" not in asked.params:
            what = f"project. Permission '{permission}' denied on resource (or it may not exist)."
        return Refused(403, text + what)
    info = error_info("IAM_PERMISSION_DENIED", "iam.googleapis.com", permission=permission, resource=resource)
    if api == "cloudresourcemanager":
        return Refused(403, "The caller does not have permission", details=[info])
    named = "" if api == "iam" else f" '//{asked.method.service}/{resource}'"
    text = f"Permission '{permission}' denied on resource{named} (or it may not exist)."
    return Refused(403, text, details=[info])


# Projects of Google's that anybody may read from.
HOLDERS: set[str] = set()


def project_of(asked: Asked) -> Project | None:
    """The project that a request is made in."""
    if asked.params.get("project") in HOLDERS:
        return project(PROJECT)
    for name in ("project", "projectId"):
        if name in asked.params:
            return project(str(asked.params[name]).removeprefix("projects/"))
    for name in ("name", "parent", "resource"):
        text = str(asked.params.get(name, ""))
        if text.startswith("projects/"):
            wanted = text.split("/")[1]
            return None if wanted == "-" else project(wanted)
    return None


def check_enabled(asked: Asked, found: Project | None) -> None:
    """A service that is not enabled says so, and goes on for a while after it was (the message says that itself).

    Shape: cloud.google.com/apis/design/errors#error_info and google/api/error_reason.proto, SERVICE_DISABLED.
    """
    service = asked.method.service
    if found is None:
        return
    late = found.services.get(service)
    fault = JOURNAL.fault("api_not_enabled", asked.id)
    if late == 0 and not fault:
        return
    if late:
        found.services[service] = late - 1
    raise disabled(service, found.number)


TITLES = {
    "artifactregistry.googleapis.com": "Artifact Registry API",
    "cloudresourcemanager.googleapis.com": "Cloud Resource Manager API",
    "compute.googleapis.com": "Compute Engine API",
    "container.googleapis.com": "Kubernetes Engine API",
    "iam.googleapis.com": "Identity and Access Management (IAM) API",
    "serviceusage.googleapis.com": "Service Usage API",
    "storage.googleapis.com": "Cloud Storage JSON API",
}


def disabled(service: str, consumer: str) -> Refused:
    url = f"https://console.developers.google.com/apis/api/{service}/overview?project={consumer}"
    title = TITLES[service]
    text = (
        f"{title} has not been used in project {consumer} before or it is disabled. Enable it by visiting {url} then retry. "
        "If you enabled this API recently, wait a few minutes for the action to propagate to our systems and retry."
    )
    details = [
        error_info(
            "SERVICE_DISABLED", "googleapis.com", service=service, consumer=f"projects/{consumer}",
            serviceTitle=title, activationUrl=url, containerInfo=consumer,
        ),
        {"@type": "type.googleapis.com/google.rpc.LocalizedMessage", "locale": "en-US", "message": text},
        {"@type": "type.googleapis.com/google.rpc.Help", "links": [
            {"description": "Google developers console API activation", "url": url},
        ]},
    ]  # fmt: skip
    return Refused(403, text, reason="accessNotConfigured", domain="usageLimits", details=details)

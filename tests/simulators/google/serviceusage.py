# SPDX-License-Identifier: GPL-3.0-or-later
"""Service Usage: which APIs are enabled.

Rules: a service that does not exist, or that one may not see, cannot be told apart; at most 20 in a batch (BatchEnableServicesRequest in
the discovery document); what is enabled already gives an operation that is over. Enabling brings more than was asked for: the services that
it depends on, and their service agents with roles in the project's policy (cloud.google.com/iam/docs/service-agents).
"""

from . import iam
from .api import Asked, Refused, error_info, handles
from .discovery import Body
from .operations import begin, ends
from .resourcemanager import grant
from .state import LATE, Project, number, project

MOST = 20
# As far as the collection could ask for them (assumed: that each exists under this name is documented, nothing else of most is simulated).
KNOWN = {
    f"{name}.googleapis.com"
    for name in (
        "artifactregistry", "autoscaling", "cloudbilling", "cloudresourcemanager", "compute", "container", "containerfilesystem",
        "containerregistry", "dns", "file", "gkebackup", "gkehub", "iam", "iamcredentials", "iap", "logging", "monitoring",
        "networkconnectivity", "networkmanagement", "networkservices", "oslogin", "pubsub", "secretmanager", "servicemanagement",
        "servicenetworking", "serviceusage", "storage", "storage-api", "storage-component", "sts", "tpu", "trafficdirector",
    )
}  # fmt: skip
# gcloud's answer to `services list --enabled` in a project where only the first was enabled (assumed: no more than these).
BRINGS = {
    "compute.googleapis.com": ("oslogin.googleapis.com",),
    "container.googleapis.com": (
        "artifactregistry.googleapis.com", "autoscaling.googleapis.com", "compute.googleapis.com", "containerfilesystem.googleapis.com",
        "containerregistry.googleapis.com", "dns.googleapis.com", "gkebackup.googleapis.com", "iam.googleapis.com",
        "iamcredentials.googleapis.com", "logging.googleapis.com", "monitoring.googleapis.com", "networkconnectivity.googleapis.com",
        "oslogin.googleapis.com", "pubsub.googleapis.com", "storage-api.googleapis.com",
    ),
    "iam.googleapis.com": ("iamcredentials.googleapis.com",),
}  # fmt: skip
AGENTS = {
    "artifactregistry.googleapis.com": [("gcp-sa-artifactregistry", "roles/artifactregistry.serviceAgent")],
    "compute.googleapis.com": [("compute-system", "roles/compute.serviceAgent")],
    "container.googleapis.com": [("container-engine-robot", "roles/container.serviceAgent")],
    "containerregistry.googleapis.com": [("containerregistry", "roles/containerregistry.ServiceAgent")],
}


def enable(found: Project, names: list[str], late: int = LATE) -> list[str]:
    """The ones that were not yet. Their own API goes on refusing for a while."""
    wanted = [one for name in names for one in (name, *BRINGS.get(name, ()))]
    new = [name for name in dict.fromkeys(wanted) if name not in found.services]
    for name in new:
        found.services[name] = late
        for agent, role in AGENTS.get(name, []):
            grant(found, role, f"serviceAccount:service-{found.number}@{agent}.iam.gserviceaccount.com")
        if name == "compute.googleapis.com":
            # The default service account, with the role that organisations may withhold (iam.automaticIamGrantsForDefaultServiceAccounts).
            account = f"{found.number}-compute@developer.gserviceaccount.com"
            iam.add(found, account, {"displayName": "Compute Engine default service account"}, late=False)
            grant(found, "roles/editor", f"serviceAccount:{account}")
    return new


def shown(found: Project, name: str) -> Body:
    state = "ENABLED" if name in found.services else "DISABLED"
    title = name.removesuffix(".googleapis.com").title()
    return {
        "name": f"projects/{found.number}/services/{name}",
        "config": {"name": name, "title": f"{title} API", "documentation": {}, "quota": {}, "authentication": {}},
        "state": state,
        "parent": f"projects/{found.number}",
    }


def known(names: list[str], found: Project) -> None:
    wrong = [name for name in names if name not in KNOWN]
    if not wrong:
        return
    info = error_info("SERVICE_CONFIG_NOT_FOUND_OR_PERMISSION_DENIED", "serviceusage.googleapis.com", services=", ".join(wrong))
    raise Refused(403, f"Not found or permission denied for service(s): {', '.join(wrong)}.", details=[info])


@handles("serviceusage.services.batchEnable")
def _batch_enable(asked: Asked) -> Body:
    found, names = project(asked.parts("parent")["projects"]), list(asked.body.get("serviceIds") or [])
    if len(names) > MOST:
        # GoogleCloudPlatform/k8s-config-connector issue 6334
        raise Refused(400, f"Number of services must not exceed the maximum batch size ({MOST}).")
    known(names, found)

    def response() -> Body:
        kind = "type.googleapis.com/google.api.serviceusage.v1.BatchEnableServicesResponse"
        return {"@type": kind, "services": [shown(found, name) for name in names]}

    if all(name in found.services for name in names):
        return {"name": "operations/noop.DONE_OPERATION", "done": True, "response": response()}
    key = f"operations/acat.p2-{found.number}-{number():08d}-0000-4000-8000-000000000000"
    body: Body = {"name": key}

    def finish() -> None:
        enable(found, names)
        body["response"] = response()

    begin(asked, key, body, f"projects/{found.id}/services", ends, finish)
    return body


@handles("serviceusage.services.get")
def _get(asked: Asked) -> Body:
    found, name = project(asked.parts("name")["projects"]), asked.parts("name")["services"]
    known([name], found)
    return shown(found, name)


@handles("serviceusage.services.batchGet")
def _batch_get(asked: Asked) -> Body:
    found = project(asked.parts("parent")["projects"])
    names = [one.rsplit("/", 1)[-1] for one in asked.params.get("names", [])]
    known(names, found)
    return {"services": [shown(found, name) for name in names]}

# SPDX-License-Identifier: GPL-3.0-or-later
"""Resource Manager, version 1 and 3: the project and its policy. Projects are neither made nor deleted here.

A project that one may not see looks like one that is not there: 403 "The caller does not have permission".
"""

import json

from . import policies
from .api import Asked, Refused, error_info, handles
from .discovery import Body
from .state import Project, now, project

OWNER = "user:owner@example.com"


def start(found: Project) -> None:
    found.policy = {"version": 1, "etag": policies.new_etag(), "bindings": [{"role": "roles/owner", "members": [OWNER]}]}


def grant(found: Project, role: str, member: str) -> None:
    """What Google itself adds to a policy."""
    bindings = found.policy.setdefault("bindings", [])
    row = next((one for one in bindings if one["role"] == role and "condition" not in one), None)
    if row is None:
        row = {"role": role, "members": []}
        bindings.append(row)
        bindings.sort(key=lambda one: one["role"])
    row["members"] = sorted({*row["members"], member})
    found.policy["etag"] = policies.new_etag()


def _wanted(asked: Asked) -> Project:
    name = str(asked.params.get("projectId") or asked.params.get("name") or asked.params.get("resource"))
    try:
        return project(name.removeprefix("projects/"))
    except Refused as refused:
        raise Refused(403, "The caller does not have permission") from refused


@handles("cloudresourcemanager.projects.getIamPolicy")
def _get_policy(asked: Asked) -> Body:
    version = int((asked.body.get("options") or {}).get("requestedPolicyVersion") or 1)
    return policies.read(_wanted(asked).policy, version)


@handles("cloudresourcemanager.projects.setIamPolicy")
def _set_policy(asked: Asked) -> Body:
    """An owner has to remain (SetIamPolicy in cloudresourcemanager v1's document: the requirement of at least one owner)."""
    found = _wanted(asked)
    new = policies.write(asked, found.policy, asked.body.get("policy") or {}, "project")
    if not any(row["role"] == "roles/owner" for row in new.get("bindings", [])):
        details = [error_info("PROJECT_MUST_HAVE_OWNER", "cloudresourcemanager.googleapis.com", time=now())]
        raise Refused(
            400, "Project must have at least one owner.", code="FAILED_PRECONDITION", details=details
        )  # projects.setIamPolicy: a project that is in no organisation; assumed: the wording
    found.policy = json.loads(json.dumps(new))
    return found.policy

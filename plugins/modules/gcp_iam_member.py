# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gcp_iam_member
short_description: Manage members of roles on Google Cloud
description:
  - Adds one member of one role to the policy of a resource, or removes it. All other members, roles and conditions stay as they are.
  - A policy that another client changes at the same time is read again, and the change is made to what is then there.
  - What was just created, such as a service account, is waited for until Google knows it everywhere, for up to 90 seconds.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - google.cloud.gcp
  - muster.ml.attributes
  - muster.ml.gcp
  - muster.ml.gcp.support
options:
  resource:
    description: Resource that has the policy. Exactly one is given.
    type: dict
    required: true
    suboptions:
      project:
        description: ID of a project.
        type: str
      service_account:
        description: Email address of a service account, for who may use it.
        type: str
      bucket:
        description: Name of a bucket.
        type: str
      repository:
        description: Repository of Artifact Registry, as C(LOCATION/NAME).
        type: str
  role:
    description: Role, by its full name.
    type: str
    required: true
  member:
    description:
      - The member with its type, such as V(serviceAccount:a@my-project.iam.gserviceaccount.com) or V(group:ops@example.com).
      - With O(state=absent) the member is also removed where it stands as C(deleted:...), after its account was deleted.
    type: str
    required: true
  condition:
    description: The role holds only on this condition. One role with and without it, or with another, are different things.
    type: dict
    suboptions:
      title:
        description: Title.
        type: str
        required: true
      description:
        description: Text about it.
        type: str
      expression:
        description: Expression of the Common Expression Language.
        type: str
        required: true
"""

EXAMPLES = r"""
- name: Grant the nodes logs and metrics
  muster.ml.gcp_iam_member:
    project: my-project
    auth_kind: application
    resource: {project: my-project}
    role: roles/container.defaultNodeServiceAccount
    member: serviceAccount:training-nodes@my-project.iam.gserviceaccount.com

- name: Grant pods the use of a service account (Workload Identity)
  muster.ml.gcp_iam_member:
    project: my-project
    auth_kind: application
    resource: {service_account: training-data@my-project.iam.gserviceaccount.com}
    role: roles/iam.workloadIdentityUser
    member: serviceAccount:my-project.svc.id.goog[ml/trainer]
"""

RETURN = r"""
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["cloudresourcemanager:projects.setIamPolicy (add group:ops@example.com as roles/viewer)"]
policy:
  description: Members that the role has on this condition.
  returned: success
  type: dict
  sample: {role: roles/viewer, members: ["group:ops@example.com"], condition: {}}
"""

from ansible_collections.muster.ml.plugins.module_utils._cloud.plan import without_none
from ansible_collections.muster.ml.plugins.module_utils._edge.failure import Result
from ansible_collections.muster.ml.plugins.module_utils._edge.gcp import api_of, gcp_main, result_of
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, Spec
from ansible_collections.muster.ml.plugins.module_utils._edge.options import STATE
from ansible_collections.muster.ml.plugins.module_utils._gcp.iam_member import IamMember, converge_member, place

RESOURCES = ("project", "service_account", "bucket", "repository")
CONDITION: Spec = {
    **{name: {"type": "str", "required": True} for name in ("title", "expression")},
    "description": {"type": "str"},
}
ARGUMENT_SPEC: Spec = {
    **STATE,
    "resource": {
        "type": "dict",
        "required": True,
        "options": {name: {"type": "str"} for name in RESOURCES},
        "mutually_exclusive": [RESOURCES],
        "required_one_of": [RESOURCES],
    },
    "role": {"type": "str", "required": True},
    "member": {"type": "str", "required": True},
    "condition": {"type": "dict", "options": CONDITION},
}


def execute(ctx: HostContext) -> Result:
    """Converge the member, which has no state, owner or operation of its own."""
    params = ctx.params
    absent = params["state"] == "absent"
    condition = without_none(params["condition"]) if params["condition"] else None
    api = api_of(ctx, lenient=ctx.check or absent)
    where = place(params["project"], params["resource"])
    wanted = IamMember(where, params["role"], params["member"], condition, absent)
    outcome = converge_member(wanted, api, check=ctx.check)
    for text in wanted.told(outcome.live):
        ctx.warn(text)
    return {**result_of(outcome, "policy", where.label, diff=ctx.diff), "policy": wanted.shown(outcome.live)}


def main() -> None:
    gcp_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

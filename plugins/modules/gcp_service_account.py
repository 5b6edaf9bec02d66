# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gcp_service_account
short_description: Manage service accounts of Google Cloud
description:
  - Creates, changes and deletes service accounts. Keys are never created. Use Workload Identity.
  - Google calls the account of a name that was deleted another one. What had been granted to the deleted one stays in policies as
    C(deleted:serviceAccount:...), and the new one does not have it.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - google.cloud.gcp
  - muster.ml.attributes
  - muster.ml.gcp
  - muster.ml.gcp.owner
  - muster.ml.gcp.support
options:
  account_id:
    description: Part of the email address before the C(@), from 6 to 30 characters. Cannot be changed.
    type: str
    required: true
  display_name:
    description: Name for people.
    type: str
  description:
    description: Text about the account.
    type: str
"""

EXAMPLES = r"""
- name: Create the service account of the nodes
  muster.ml.gcp_service_account:
    project: my-project
    auth_kind: application
    account_id: training-nodes
    display_name: Nodes of training
    owner: training
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "Google service account nodes was kept: it does not have the mark of this owner (muster-owner=team)"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["iam:projects.serviceAccounts.create (create)"]
service_account:
  description: Service account as IAM describes it, in snake_case. Empty if it does not exist.
  returned: success
  type: dict
  sample: {email: nodes@my-project.iam.gserviceaccount.com}
"""

from ansible_collections.muster.ml.plugins.module_utils._edge.gcp import converger, gcp_main, spec_of
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcp_service_account import GcpServiceAccount

ARGUMENT_SPEC = spec_of(GcpServiceAccount, "name", wait=None)
execute = converger(GcpServiceAccount, "service_account")


def main() -> None:
    gcp_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

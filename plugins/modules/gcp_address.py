# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gcp_address
short_description: Manage static addresses of Google Cloud
description:
  - Creates and deletes static addresses of a region or global ones, and changes their labels.
  - Google takes labels only in a second request. So that a run that is interrupted in between is continued, the owner's mark is also at the
    end of the description.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - google.cloud.gcp
  - muster.ml.attributes
  - muster.ml.gcp
  - muster.ml.gcp.owner
  - muster.ml.gcp.support
  - muster.ml.gcp.waits
  - muster.ml.gcp.labels
options:
  name:
    description: Name of the address.
    type: str
    required: true
  region:
    description: Region of the address. Without it the address is global, for a global load balancer.
    type: str
  address_type:
    description: Type of the address. Cannot be changed.
    type: str
    choices: [EXTERNAL, INTERNAL]
    default: EXTERNAL
  network_tier:
    description: Network tier of an external address. Cannot be changed.
    type: str
    choices: [PREMIUM, STANDARD]
  subnetwork:
    description: Name of the subnetwork of an internal address. Cannot be changed.
    type: str
  description:
    description: Text about the address. Counts when it is created.
    type: str
  wait_timeout:
    default: 300
"""

EXAMPLES = r"""
- name: Create the address of the broker
  muster.ml.gcp_address:
    project: my-project
    auth_kind: application
    name: broker
    region: us-central1
    owner: training

- name: Create the address of a Gateway with a global load balancer
  muster.ml.gcp_address:
    project: my-project
    auth_kind: application
    name: inference
    owner: training
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "Google address training was kept: it does not have the mark of this owner (muster-owner=team)"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["compute:addresses.insert (create)", "compute:addresses.setLabels (labels)"]
address:
  description: Address as Compute Engine describes it, in snake_case, with the number as C(address). Empty if it does not exist.
  returned: success
  type: dict
  sample: {name: training, address: 203.0.113.7, status: RESERVED}
"""

from ansible_collections.muster.ml.plugins.module_utils._edge.gcp import converger, gcp_main, spec_of
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcp_address import GcpAddress

ARGUMENT_SPEC = spec_of(GcpAddress)
execute = converger(GcpAddress, "address")


def main() -> None:
    gcp_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

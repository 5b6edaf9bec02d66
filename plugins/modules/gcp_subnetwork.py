# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gcp_subnetwork
short_description: Manage subnetworks of Google Cloud
description:
  - Creates, changes and deletes subnetworks of a VPC network.
  - A change that Google does not support is refused before any request is sent.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - google.cloud.gcp
  - muster.ml.attributes
  - muster.ml.gcp
  - muster.ml.gcp.owner
  - muster.ml.gcp.support
  - muster.ml.gcp.waits
options:
  name:
    description: Name of the subnetwork.
    type: str
    required: true
  region:
    description: Region of the subnetwork.
    type: str
    required: true
  network:
    description: Name of its network, or its path if it is in another project. Cannot be changed.
    type: str
    required: true
  description:
    description: Text about the subnetwork. Cannot be changed.
    type: str
  ip_cidr_range:
    description: Primary range, in CIDR notation. Required to create it. Later it can only be widened.
    type: str
  secondary_ip_ranges:
    description:
      - Secondary ranges, such as those of pods and services.
      - A range that is missing in the list is removed. Google refuses to remove one that a cluster uses. Without this option they stay as
        they are.
    type: list
    elements: dict
    suboptions:
      range_name:
        description: Name of the range.
        type: str
        required: true
      ip_cidr_range:
        description: Range, in CIDR notation.
        type: str
        required: true
  private_ip_google_access:
    description: Let machines without an external address reach the APIs of Google.
    type: bool
    default: true
  wait_timeout:
    default: 300
"""

EXAMPLES = r"""
- name: Create a subnetwork for a cluster
  muster.ml.gcp_subnetwork:
    project: my-project
    auth_kind: application
    name: training
    region: us-central1
    network: training
    ip_cidr_range: 10.40.0.0/22
    secondary_ip_ranges:
      - {range_name: pods, ip_cidr_range: 10.64.0.0/14}
      - {range_name: services, ip_cidr_range: 10.40.16.0/20}
    owner: training
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "Google subnetwork training was kept: it does not have the mark of this owner (muster-owner=team)"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["compute:subnetworks.insert (create)"]
subnetwork:
  description: Subnetwork as Compute Engine describes it, in snake_case. Empty if it does not exist.
  returned: success
  type: dict
  sample: {name: training, ip_cidr_range: 10.40.0.0/20, private_ip_google_access: true}
"""

from ansible_collections.muster.ml.plugins.module_utils._edge.cloud import rows, text
from ansible_collections.muster.ml.plugins.module_utils._edge.gcp import converger, gcp_main, spec_of
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcp_subnetwork import GcpSubnetwork

ARGUMENT_SPEC = spec_of(GcpSubnetwork, secondary_ip_ranges=rows(range_name=text(required=True), ip_cidr_range=text(required=True)))
execute = converger(GcpSubnetwork, "subnetwork")


def main() -> None:
    gcp_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gcp_router_nat
short_description: Manage Cloud NAT of Google Cloud
description:
  - Creates, changes and deletes a router with one Cloud NAT, by which machines without an external address reach the internet.
  - NATs of other names in the same router are left alone. With O(state=absent) they keep the router, and only the NAT of this module is
    deleted.
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
    description: Name of the router.
    type: str
    required: true
  region:
    description: Region of the router.
    type: str
    required: true
  network:
    description: Name of its network. Cannot be changed.
    type: str
    required: true
  description:
    description: Text about the router.
    type: str
  nat:
    description: The NAT, for all subnetworks, with addresses that Google chooses.
    type: dict
    suboptions:
      name:
        description: Name of the NAT. Defaults to the name of the router.
        type: str
      enable_dynamic_port_allocation:
        description: Give machines more ports when they need them.
        type: bool
      enable_endpoint_independent_mapping:
        description: Keep the port of a machine for all destinations.
        type: bool
  wait_timeout:
    default: 300
"""

EXAMPLES = r"""
- name: Create Cloud NAT for private nodes
  muster.ml.gcp_router_nat:
    project: my-project
    auth_kind: application
    name: training
    region: us-central1
    network: training
    owner: training
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "Google router training was kept: it does not have the mark of this owner (muster-owner=team)"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["compute:routers.insert (create)"]
router:
  description: Router with its NATs as Compute Engine describes it, in snake_case. Empty if it does not exist.
  returned: success
  type: dict
  sample: {name: training, nats: [{name: training, nat_ip_allocate_option: AUTO_ONLY}]}
"""

from ansible_collections.muster.ml.plugins.module_utils._edge.cloud import YES, group, text
from ansible_collections.muster.ml.plugins.module_utils._edge.gcp import converger, gcp_main, spec_of
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcp_router_nat import GcpRouterNat

NAT = group(name=text(), enable_dynamic_port_allocation=YES, enable_endpoint_independent_mapping=YES)
ARGUMENT_SPEC = spec_of(GcpRouterNat, nat=NAT)
execute = converger(GcpRouterNat, "router")


def main() -> None:
    gcp_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

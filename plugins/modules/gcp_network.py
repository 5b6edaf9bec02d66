# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gcp_network
short_description: Manage networks of Google Cloud
description:
  - Creates, changes and deletes VPC networks.
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
    description: Name of the network.
    type: str
    required: true
  description:
    description: Text about the network. Cannot be changed.
    type: str
  auto_create_subnetworks:
    description: Let Google make a subnetwork in every region. It can be turned off later, but not on.
    type: bool
    default: false
  routing_mode:
    description: Subnetworks that routers advertise, those of their own region or all.
    type: str
    choices: [REGIONAL, GLOBAL]
  mtu:
    description: Largest packet in bytes, from 1300 to 8896. Machines notice a change when they are restarted.
    type: int
  wait_timeout:
    default: 300
"""

EXAMPLES = r"""
- name: Create a network for a cluster
  muster.ml.gcp_network:
    project: my-project
    auth_kind: application
    name: training
    routing_mode: REGIONAL
    owner: training
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "Google network training was kept: it does not have the mark of this owner (muster-owner=team)"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["compute:networks.insert (create)"]
network:
  description: Network as Compute Engine describes it, in snake_case. Empty if it does not exist.
  returned: success
  type: dict
  sample: {name: training, auto_create_subnetworks: false}
"""

from ansible_collections.muster.ml.plugins.module_utils._edge.gcp import converger, gcp_main, spec_of
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcp_network import GcpNetwork

ARGUMENT_SPEC = spec_of(GcpNetwork)
execute = converger(GcpNetwork, "network")


def main() -> None:
    gcp_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

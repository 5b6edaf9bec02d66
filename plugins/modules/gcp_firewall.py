# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gcp_firewall
short_description: Manage firewall rules of Google Cloud
description:
  - Creates, changes and deletes firewall rules of a VPC network.
  - Lists are applied as given. A port, range or tag that is no longer in the list is removed from the rule.
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
    description: Name of the rule.
    type: str
    required: true
  network:
    description: Name of its network, or its path if it is in another project. Cannot be changed.
    type: str
    required: true
  description:
    description: Text about the rule.
    type: str
  priority:
    description: Rules with a lower number come first.
    type: int
    default: 1000
  allowed:
    description: Traffic that is allowed. Required with O(state=present).
    type: list
    elements: dict
    suboptions:
      ip_protocol:
        description: Protocol by its name or number, such as V(tcp). V(all) is every protocol.
        type: str
        required: true
      ports:
        description: Ports, or ranges of ports such as V(8000-8080). Without any all ports are meant.
        type: list
        elements: str
  source_ranges:
    description:
      - Ranges that the traffic may come from, in CIDR notation.
      - Required with O(state=present), as without it Google admits every address. V(0.0.0.0/0) does so, too.
    type: list
    elements: str
  target_tags:
    description: Tags of the machines that the rule is for. An empty list is all machines. Without this option they stay as they are.
    type: list
    elements: str
  disabled:
    description: Keep the rule without effect.
    type: bool
    default: false
  wait_timeout:
    default: 300
"""

EXAMPLES = r"""
- name: Create a rule that admits the office to the broker
  muster.ml.gcp_firewall:
    project: my-project
    auth_kind: application
    name: training-broker
    network: training
    allowed:
      - {ip_protocol: tcp, ports: ["5671", "15671"]}
    source_ranges: [203.0.113.0/24]
    target_tags: [broker]
    owner: training
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "Google firewall training-ssh was kept: it does not have the mark of this owner (muster-owner=team)"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["compute:firewalls.insert (create)"]
firewall:
  description: Rule as Compute Engine describes it, in snake_case. Empty if it does not exist.
  returned: success
  type: dict
  sample: {name: training-ssh, direction: INGRESS, source_ranges: [203.0.113.0/24], priority: 1000}
"""

from ansible_collections.muster.ml.plugins.module_utils._edge.cloud import STRINGS, rows, text
from ansible_collections.muster.ml.plugins.module_utils._edge.gcp import converger, gcp_main, spec_of
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcp_firewall import GcpFirewall

ARGUMENT_SPEC = spec_of(GcpFirewall, allowed=rows(ip_protocol=text(required=True), ports=STRINGS))
execute = converger(GcpFirewall, "firewall")


def main() -> None:
    gcp_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

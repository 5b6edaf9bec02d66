# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gcp_firewall
short_description: Manage firewall rules of Google Cloud
version_added: 0.1.0
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
  direction:
    description: Traffic that the rule is for. Cannot be changed.
    type: str
    choices: [INGRESS, EGRESS]
    default: INGRESS
  priority:
    description: Rules with a lower number come first.
    type: int
    default: 1000
  allowed:
    description: Traffic that is allowed. A rule has this or O(denied), which cannot be exchanged later.
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
  denied:
    description: Traffic that is denied.
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
      - An C(INGRESS) rule that allows something needs this or O(source_tags), as without both Google admits everybody.
      - V(0.0.0.0/0) admits everybody.
    type: list
    elements: str
  source_tags:
    description: Tags of the machines that the traffic may come from.
    type: list
    elements: str
  destination_ranges:
    description: Ranges that the traffic may go to, in CIDR notation.
    type: list
    elements: str
  target_tags:
    description: Tags of the machines that the rule is for. An empty list is all machines. Without this option they stay as they are.
    type: list
    elements: str
  target_service_accounts:
    description: Service accounts of the machines that the rule is for, by their email addresses. Not together with tags.
    type: list
    elements: str
  disabled:
    description: Keep the rule without effect.
    type: bool
    default: false
  log_config:
    description: Log of the connections.
    type: dict
    suboptions:
      enable:
        description: Log connections.
        type: bool
        required: true
      metadata:
        description: Metadata in the log.
        type: str
        choices: [INCLUDE_ALL_METADATA, EXCLUDE_ALL_METADATA]
  wait_timeout:
    description: Seconds to wait for all changes together.
    type: int
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
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge.cloud import wait_options
from ansible_collections.muster.ml.plugins.module_utils._edge.gcp import OWNER, converger, gcp_main
from ansible_collections.muster.ml.plugins.module_utils._edge.options import STATE
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcp_firewall import GcpFirewall

RULE: dict[str, dict[str, t.Any]] = {
    "ip_protocol": {"type": "str", "required": True},
    "ports": {"type": "list", "elements": "str"},
}
LOG_CONFIG: dict[str, dict[str, t.Any]] = {
    "enable": {"type": "bool", "required": True},
    "metadata": {"type": "str", "choices": ["INCLUDE_ALL_METADATA", "EXCLUDE_ALL_METADATA"]},
}
NAMES = ("source_ranges", "source_tags", "destination_ranges", "target_tags", "target_service_accounts")
ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    **STATE,
    **OWNER,
    **wait_options(300),
    "name": {"type": "str", "required": True},
    "network": {"type": "str", "required": True},
    "description": {"type": "str"},
    "direction": {"type": "str", "choices": ["INGRESS", "EGRESS"], "default": "INGRESS"},
    "priority": {"type": "int", "default": 1000},
    "allowed": {"type": "list", "elements": "dict", "options": RULE},
    "denied": {"type": "list", "elements": "dict", "options": RULE},
    **{name: {"type": "list", "elements": "str"} for name in NAMES},
    "disabled": {"type": "bool", "default": False},
    "log_config": {"type": "dict", "options": LOG_CONFIG},
}


execute = converger(GcpFirewall, "firewall")


def main() -> None:
    """Run as a module."""
    gcp_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

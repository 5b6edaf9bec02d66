# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gcp_firewall_info
short_description: Read the firewall rules of a network
description:
  - Returns the firewall rules of a network. A network that does not exist has none.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - google.cloud.gcp
  - muster.ml.attributes
  - muster.ml.attributes.info
  - muster.ml.gcp.support
options:
  network:
    description: Name of the network.
    type: str
    required: true
  owner:
    description: Name of the owner whose rules are returned. Without it those of any owner are.
    type: str
"""

EXAMPLES = r"""
- name: Read the firewall rules of the network
  muster.ml.gcp_firewall_info:
    project: my-project
    auth_kind: application
    network: training
    owner: training
  register: rules
"""

RETURN = r"""
firewalls:
  description: Firewall rules as Compute Engine describes them, in snake_case.
  returned: success
  type: list
  elements: dict
  sample: [{name: training-ssh, direction: INGRESS, source_ranges: [203.0.113.0/24], priority: 1000}]
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge.gcp import gcp_main, surveyor
from ansible_collections.muster.ml.plugins.module_utils._gcp.api import Api
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcp_firewall import read_rules

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {"network": {"type": "str", "required": True}, "owner": {"type": "str"}}


def survey(api: Api, params: dict[str, t.Any]) -> dict[str, t.Any]:
    """The rules that the options name."""
    return {"firewalls": read_rules(api, params["project"], params["network"], params["owner"])}


execute = surveyor(survey)


def main() -> None:
    gcp_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

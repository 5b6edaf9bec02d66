#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rabbitmq_certificates
short_description: Create and renew TLS certificates for RabbitMQ on hosts
version_added: 0.2.0
description:
  - Creates a certificate authority and a server certificate for each broker, in a folder that only its owner can read. Existing
    certificates are kept, and renewed when fewer than 60 of their 397 days are left.
  - The authority is valid for ten years. Its certificate is then renewed with the same key. If the authority is damaged or lost while
    certificates that it signed exist, the task fails and does not create another authority.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.attributes.host
options:
  directory:
    description:
      - Folder for the files C(ca.crt) and C(ca.key), and for each broker C(<broker>/server.crt) and C(<broker>/server.key).
    type: path
    required: true
  brokers:
    description: Names and addresses that clients use, by name of the broker.
    type: dict
    required: true
  trusted:
    description:
      - Certificates of the authority that hosts have already, as M(ansible.builtin.slurp) returns them, by name of the host.
        Results without C(content) are of hosts that have none yet.
      - The task fails if one is not of the authority in O(directory), because its clients trust that one.
    type: dict
    default: {}
requirements:
  - cryptography
"""

EXAMPLES = r"""
- name: Create the certificate of a broker
  muster.ml.rabbitmq_certificates:
    directory: ~/.config/muster/rabbitmq
    brokers:
      broker-a: [broker-a.example.com, 10.0.0.4]
"""

RETURN = r"""
fresh:
  description: Certificates that were created or renewed, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [ca, broker-a/server]
"""

import typing as t
from pathlib import Path

from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main
from ansible_collections.muster.ml.plugins.module_utils._kube.certificates import Leaf, files, read_from_hosts

ARGUMENT_SPEC: dict[str, t.Any] = {
    "directory": {"type": "path", "required": True},
    "brokers": {"type": "dict", "required": True},
    "trusted": {"type": "dict", "default": {}},
}
CONSTRAINTS: dict[str, t.Any] = {}


def leaves(brokers: dict[str, list[str]]) -> list[Leaf]:
    """Return the desired certificates. Each is valid on the broker's own host, too, where the role connects from."""
    return [
        Leaf(f"{broker}/server", broker, tuple(dict.fromkeys((*addresses, broker, "localhost", "127.0.0.1"))))
        for broker, addresses in brokers.items()
    ]


def execute(ctx: HostContext) -> dict[str, t.Any]:
    """Create missing certificates and renew those that expire soon."""
    folder, known = Path(ctx.params["directory"]), read_from_hosts(ctx.params["trusted"])
    fresh = files(
        folder, "ca", "rabbitmq-ca", leaves(ctx.params["brokers"]), trusted=known, check=ctx.check, warn=ctx.warn
    )
    return {"changed": bool(fresh), "fresh": fresh}


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

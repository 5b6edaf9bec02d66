#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_info
short_description: What the members of an etcd say about themselves
version_added: 0.2.0
description:
  - Asks each member at the address that clients use, from the host that the task runs on, with that host's certificate.
  - With O(wait=true) until each is healthy, connected to every other one, and one of them leads.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.etcd
  - muster.ml.attributes.host
options:
  wait:
    description: Wait until every member is healthy, and fail with the reason where that does not come about.
    type: bool
    default: false
  wait_timeout:
    description: Seconds to wait.
    type: int
    default: 120
"""

EXAMPLES = r"""
- name: Three members on hosts of their own
  muster.ml.etcd_info:
    endpoints: ["https://10.0.0.4:2379", "https://10.0.0.5:2379", "https://10.0.0.6:2379"]
    ca_cert: /etc/etcd/pki/ca.crt
    client_cert: /etc/etcd/pki/server.crt
    client_key: /etc/etcd/pki/server.key
    wait: true
"""

RETURN = r"""
members:
  description: What each member says about itself, in the order of O(endpoints).
  returned: success
  type: list
  elements: dict
  contains:
    address:
      description: Host and port.
      type: str
      returned: always
    healthy:
      description: Whether it says that it is.
      type: bool
      returned: always
    version:
      description: Its version.
      type: str
      returned: always
    leads:
      description: Whether it is the leader.
      type: bool
      returned: always
    peers:
      description: Number of other members that it is connected to.
      type: int
      returned: always
    error:
      description: Why it could not be asked. Empty where it answered.
      type: str
      returned: always
known:
  description: Who belongs to the cluster, as the first member that answers says. Empty where none does.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Its number, in hexadecimal digits.
      type: str
      returned: always
    name:
      description: Its name. Empty where it was never started.
      type: str
      returned: always
    peer_urls:
      description: Where the other members reach it.
      type: list
      elements: str
      returned: always
    started:
      description: Whether it was ever started.
      type: bool
      returned: always
problems:
  description: Why the cluster is not as it should be. Empty where it is.
  returned: success
  type: list
  elements: str
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Unreachable
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main
from ansible_collections.muster.ml.plugins.module_utils._systems.etcd import hosts

ARGUMENT_SPEC: dict[str, t.Any] = {
    **hosts.CONNECTION,
    "wait": {"type": "bool", "default": False},
    "wait_timeout": {"type": "int", "default": 120},
}
CONSTRAINTS: dict[str, t.Any] = {"required_together": [("client_cert", "client_key")]}


def _known(clients: hosts.Clients) -> list[dict[str, t.Any]]:
    try:
        return clients.members()
    except Unreachable:
        return []


def execute(ctx: HostContext) -> dict[str, t.Any]:
    """Ask, and wait where that is wanted."""
    clients = hosts.Clients(ctx.params)
    if ctx.params["wait"] and not ctx.check:
        hosts.wait(clients, ctx.params["wait_timeout"], ctx.progress)
    views, wrong = hosts.look(clients)
    rows = [
        {
            "address": view.pod,
            "healthy": view.healthy,
            "version": view.version,
            "leads": view.leads,
            "peers": view.peers,
            "error": view.error,
        }
        for view in views
    ]
    return {"changed": False, "members": rows, "known": _known(clients), "problems": wrong}


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

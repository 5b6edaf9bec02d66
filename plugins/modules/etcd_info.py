#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_info
short_description: Report the health of etcd members on hosts
version_added: 0.2.0
description:
  - Queries each member at its client URL, from the host that the task runs on, with that host's certificate.
  - With O(wait=true) it waits until each member is healthy and connected to every other one, and one of them is the leader.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.etcd
  - muster.ml.attributes.host
options:
  wait:
    description: Wait until every member is healthy. After O(wait_timeout) the task fails with the reason.
    type: bool
    default: false
  connected:
    description:
      - Wait until each member is connected to every other one, and one of them is the leader, with O(wait=true).
      - Use V(false) where O(endpoints) are some of the members, and it is enough that these are healthy.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait.
    type: int
    default: 120
"""

EXAMPLES = r"""
- name: Wait until three members are healthy
  muster.ml.etcd_info:
    endpoints: ["https://10.0.0.4:2379", "https://10.0.0.5:2379", "https://10.0.0.6:2379"]
    ca_cert: /etc/etcd/pki/ca.crt
    client_cert: /etc/etcd/pki/server.crt
    client_key: /etc/etcd/pki/server.key
    wait: true
"""

RETURN = r"""
members:
  description: State of each member, as the member reports it, in the order of O(endpoints).
  returned: success
  type: list
  elements: dict
  contains:
    address:
      description: Host and port of the member.
      type: str
      returned: always
    healthy:
      description: True if the member reports that it is healthy.
      type: bool
      returned: always
    version:
      description: Version of etcd.
      type: str
      returned: always
    leads:
      description: True if the member is the leader.
      type: bool
      returned: always
    peers:
      description: Number of other members that the member is connected to.
      type: int
      returned: always
    error:
      description: Error of the query. Empty if the member answered.
      type: str
      returned: always
known:
  description: Members of the cluster, as reported by the first member that answers. Empty if none does.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Id of the member, in hexadecimal digits.
      type: str
      returned: always
    name:
      description: Name of the member. Empty if it was never started.
      type: str
      returned: always
    peer_urls:
      description: URLs for the other members.
      type: list
      elements: str
      returned: always
    started:
      description: True if the member was started before.
      type: bool
      returned: always
problems:
  description: Problems of the cluster. Empty if it is healthy.
  returned: success
  type: list
  elements: str
"""

import typing as t

from ansible.module_utils.urls import open_url

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Unreachable
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main
from ansible_collections.muster.ml.plugins.module_utils._systems.etcd import hosts

ARGUMENT_SPEC: dict[str, t.Any] = {
    **hosts.CONNECTION,
    "wait": {"type": "bool", "default": False},
    "connected": {"type": "bool", "default": True},
    "wait_timeout": {"type": "int", "default": 120},
}
CONSTRAINTS: dict[str, t.Any] = {"required_together": [("client_cert", "client_key")]}


def _known(clients: hosts.Clients) -> list[dict[str, t.Any]]:
    try:
        return clients.members()
    except Unreachable:
        return []


def execute(ctx: HostContext) -> dict[str, t.Any]:
    """Query the members, and wait until they are healthy if requested."""
    clients = hosts.Clients(ctx.params, open_url)
    if ctx.params["wait"] and not ctx.check:
        hosts.wait(clients, ctx.params["wait_timeout"], ctx.progress, connected=ctx.params["connected"])
    views, wrong = hosts.observe(clients)
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

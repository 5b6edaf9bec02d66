#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_member
short_description: Who belongs to an etcd
version_added: 0.2.0
description:
  - Adds a member to a cluster of etcd, or takes one out of it, by asking the members that are there.
  - It starts and stops nothing. A member that lost its data has to be taken out and added again before it can come back.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.etcd
  - muster.ml.attributes.host
options:
  name:
    description: Name of the member. One that is added has no name until it is started, and is known by O(peer_url).
    type: str
    required: true
  peer_url:
    description: Where the other members reach it. Required with O(state=present) and O(state=replaced).
    type: str
  state:
    description:
      - V(replaced) takes out a member of that name that was started before, and adds it again, as one that has no data.
    type: str
    choices: [present, absent, replaced]
    default: present
  endpoints:
    description: Addresses of members that are healthy, such as C(https://10.0.0.4:2379).
attributes:
  idempotent:
    details:
      - A member that was added and not yet started stays as it is, with O(state=replaced) too.
"""

EXAMPLES = r"""
- name: The member on this host has lost its disk
  muster.ml.etcd_member:
    name: etcd-b
    peer_url: https://10.0.0.5:2380
    endpoints: ["https://10.0.0.4:2379", "https://10.0.0.6:2379"]
    ca_cert: /etc/etcd/pki/ca.crt
    client_cert: /etc/etcd/pki/server.crt
    client_key: /etc/etcd/pki/server.key
    state: replaced
"""

RETURN = r"""
actions:
  description: What was done, or would be.
  returned: success
  type: list
  elements: str
  sample: [remove 8e9e05c52164694d, add https://10.0.0.5:2380]
"""

import typing as t

from ansible.module_utils.urls import open_url

from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main
from ansible_collections.muster.ml.plugins.module_utils._systems.etcd import hosts

ARGUMENT_SPEC: dict[str, t.Any] = {
    **hosts.CONNECTION,
    "name": {"type": "str", "required": True},
    "peer_url": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent", "replaced"], "default": "present"},
}
CONSTRAINTS: dict[str, t.Any] = {
    "required_together": [("client_cert", "client_key")],
    "required_if": [("state", "present", ("peer_url",)), ("state", "replaced", ("peer_url",))],
}


def execute(ctx: HostContext) -> dict[str, t.Any]:
    """Compare with who is there, then remove, then add."""
    params, clients = ctx.params, hosts.Clients(ctx.params, open_url)
    state, peer_url = params["state"], params["peer_url"]
    known = clients.members()
    mine = [row for row in known if row["name"] == params["name"] or peer_url in row["peer_urls"]]
    leaving = [row for row in mine if state == "absent" or (state == "replaced" and row["started"])]
    arriving = state != "absent" and len(mine) == len(leaving)
    actions = []
    for row in leaving:
        actions.append(f"remove {row['id']}")
        if not ctx.check:
            clients.any("/v3/cluster/member/remove", {"ID": str(int(row["id"], 16))})
    if arriving:
        actions.append(f"add {peer_url}")
        if not ctx.check:
            clients.any("/v3/cluster/member/add", {"peerURLs": [peer_url]})
    return {"changed": bool(actions), "actions": actions}


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_member
short_description: Add, replace or remove an etcd member on a host
version_added: 0.2.0
description:
  - Adds a member to the member list of an etcd cluster, or removes it, by a request to an existing member.
  - Does not start or stop etcd. A member that lost its data must be removed and added again before it can start.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.etcd
  - muster.ml.attributes.host
options:
  name:
    description: Name of the member. A new member has no name until it is started, and is identified by O(peer_url).
    type: str
    required: true
  peer_url:
    description: URL of the member for the other members. Required with O(state=present) and O(state=replaced).
    type: str
  state:
    description:
      - State of the member. V(replaced) removes a member of that name that was started before, and adds it again without data.
    type: str
    choices: [present, absent, replaced]
    default: present
  endpoints:
    description: Client URLs of healthy members, such as C(https://10.0.0.4:2379).
attributes:
  idempotent:
    details:
      - A member that was added and not yet started is not changed, with O(state=replaced), too.
"""

EXAMPLES = r"""
- name: Replace the member on this host, which has lost its disk
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
  description: Requests that were sent, or would be in check mode.
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
    """Compare with the member list, then remove, then add."""
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
            clients.first_answer("/v3/cluster/member/remove", {"ID": str(int(row["id"], 16))})
    if arriving:
        actions.append(f"add {peer_url}")
        if not ctx.check:
            clients.first_answer("/v3/cluster/member/add", {"peerURLs": [peer_url]})
    return {"changed": bool(actions), "actions": actions}


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

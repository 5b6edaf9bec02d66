#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_certificates
short_description: Create and renew TLS certificates for etcd on hosts
version_added: 0.2.0
description:
  - Creates a certificate authority, a peer and a server certificate for each member, and a client certificate, in a folder that only
    its owner can read. Existing certificates are kept, and renewed when fewer than 60 of their 397 days are left.
  - The authority is valid for ten years. Its certificate is then renewed with the same key. If the authority is damaged or lost while
    certificates that it signed exist, the task fails and does not create another authority.
  - Members on Kubernetes get their certificates from M(muster.ml.etcd_cluster).
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.attributes.host
options:
  name:
    description: Name of the cluster.
    type: str
    default: etcd
  directory:
    description:
      - Folder for the files C(ca.crt) and C(ca.key), C(client.crt) and C(client.key), and for each member
        C(<member>/peer.crt), C(<member>/peer.key), C(<member>/server.crt) and C(<member>/server.key).
    type: path
    required: true
  members:
    description: Addresses that clients and other members use, by name of the member.
    type: dict
    required: true
  trusted:
    description:
      - Certificates of the authority that hosts trust already, as M(ansible.builtin.slurp) returns them, by name of the host.
        Results without C(content) are of hosts that trust none yet.
      - The task fails if one is not of the authority in O(directory).
    type: dict
    default: {}
requirements:
  - cryptography
"""

EXAMPLES = r"""
- name: Create certificates for three members
  muster.ml.etcd_certificates:
    directory: ~/.config/muster/etcd/etcd
    members:
      etcd-a: 10.0.0.4
      etcd-b: 10.0.0.5
      etcd-c: 10.0.0.6
"""

RETURN = r"""
fresh:
  description: Certificates that were created or renewed, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [etcd-b/peer]
fingerprints:
  description: Hashes of each member's certificates, by name of the member. They change with the certificates.
  returned: success
  type: dict
"""

import typing as t
from pathlib import Path

from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main
from ansible_collections.muster.ml.plugins.module_utils._kube.certificates import (
    Leaf,
    files,
    fingerprint,
    read_from_hosts,
)

ARGUMENT_SPEC: dict[str, t.Any] = {
    "name": {"type": "str", "default": "etcd"},
    "directory": {"type": "path", "required": True},
    "members": {"type": "dict", "required": True},
    "trusted": {"type": "dict", "default": {}},
}
CONSTRAINTS: dict[str, t.Any] = {}


def leaves(name: str, members: dict[str, str]) -> list[Leaf]:
    """Return the desired certificates. Peers have a common name of their own, by which members differ from clients."""
    desired = [Leaf("client", f"{name}-client")]
    for member, address in members.items():
        hosts = tuple(dict.fromkeys((address, member, "localhost", "127.0.0.1")))
        desired += [Leaf(f"{member}/peer", f"{name}-peers", hosts), Leaf(f"{member}/server", name, hosts)]
    return desired


def execute(ctx: HostContext) -> dict[str, t.Any]:
    """Create missing certificates and renew those that expire soon."""
    params, folder = ctx.params, Path(ctx.params["directory"])
    desired = leaves(params["name"], params["members"])
    known = read_from_hosts(params["trusted"])
    fresh = files(folder, "ca", f"{params['name']}-ca", desired, trusted=known, check=ctx.check, warn=ctx.warn)
    prints = {member: fingerprint(folder / member) for member in params["members"]}
    return {"changed": bool(fresh), "fresh": fresh, "fingerprints": prints}


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

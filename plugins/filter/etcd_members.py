# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filter etcd_members."""

from __future__ import annotations

import typing as t

DOCUMENTATION = r"""
name: etcd_members
short_description: List the members of an etcd cluster on hosts
version_added: 0.2.0
author: Muster contributors (!UNKNOWN)
description:
  - Returns the members of an etcd cluster on hosts of an inventory, with their addresses and URLs, in the order of the inventory.
  - The address of a member is the host's variable C(etcd_address), else its C(ansible_host), else its name.
positional: _input
options:
  _input:
    description: Variables of the hosts, from C(hostvars).
    type: list
    elements: dict
    required: true
  client_tls:
    description: Use TLS in the URLs for clients.
    type: bool
    default: true
  peer_tls:
    description: Use TLS in the URLs for members.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Show the members of etcd
  ansible.builtin.debug:
    msg: "{{ groups['etcd'] | map('extract', hostvars) | muster.ml.etcd_members }}"
"""

RETURN = r"""
_value:
  description: Members, each with C(name), C(address), C(client_url), C(peer_url) and C(initial), its part of C(--initial-cluster).
  type: list
  elements: dict
"""


def etcd_members(
    hosts: t.Iterable[t.Mapping[str, t.Any]], client_tls: bool = True, peer_tls: bool = True
) -> list[dict[str, str]]:
    return [_member(host, _scheme(client_tls), _scheme(peer_tls)) for host in hosts]


def _scheme(tls: bool) -> str:
    return "https" if tls else "http"


def _member(host: t.Mapping[str, t.Any], client: str, peer: str) -> dict[str, str]:
    name = host["inventory_hostname"]
    address = host.get("etcd_address") or host.get("ansible_host") or name
    peer_url = f"{peer}://{address}:2380"
    client_url = f"{client}://{address}:2379"
    return {
        "name": name,
        "address": address,
        "client_url": client_url,
        "peer_url": peer_url,
        "initial": f"{name}={peer_url}",
    }


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"etcd_members": etcd_members}

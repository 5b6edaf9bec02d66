# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Connection options for members of etcd outside of Kubernetes; the same as CONNECTION in module_utils/_systems/etcd/hosts.py."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  endpoints:
    description: Client URLs of all members, such as C(https://10.0.0.4:2379).
    type: list
    elements: str
    required: true
  ca_cert:
    description: Path of the certificate authority of the members.
    type: path
  client_cert:
    description: Path of the client certificate.
    type: path
  client_key:
    description: Path of the key of O(client_cert).
    type: path
"""

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import base64
import typing as t

from ansible.errors import AnsibleFilterError

DOCUMENTATION = r"""
name: broker_users
short_description: Join users of a broker with their passwords in Secrets
author: Muster contributors (!UNKNOWN)
description:
  - Returns the rows of option C(users) of M(muster.ml.rabbitmq_definitions), each with the C(password) of its Secret.
  - A user whose Secret is missing is refused, for the broker would keep another password.
positional: _input, secrets
options:
  _input:
    description: Users by the name of their Secret, each a row without password.
    type: dict
    required: true
  secrets:
    description: Secrets as the API server returns them, with a C(password) in C(data).
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the names of users that have a password
  ansible.builtin.debug:
    msg: "{{ {'runner-login': {'name': 'runner'}} | muster.ml.broker_users(secrets) | map(attribute='name') }}"
"""

RETURN = r"""
_value:
  description: Users with passwords. Tasks that use them need C(no_log).
  type: list
  elements: dict
  sample: [{name: runner, password: '...'}]
"""


def broker_users(users: t.Mapping[str, t.Mapping[str, t.Any]], secrets: t.Iterable[t.Mapping[str, t.Any]]) -> list[dict[str, t.Any]]:
    stored = {secret["metadata"]["name"]: secret.get("data") or {} for secret in secrets}
    missing = [name for name in users if not stored.get(name, {}).get("password")]
    if missing:
        raise AnsibleFilterError(f"Without a password: {', '.join(missing)}. Its Secret was deleted meanwhile; run again.")
    return [{**user, "password": base64.b64decode(stored[name]["password"]).decode()} for name, user in users.items()]


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"broker_users": broker_users}

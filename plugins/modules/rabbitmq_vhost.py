#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rabbitmq_vhost
short_description: Manage RabbitMQ virtual hosts
version_added: 0.1.0
description:
  - Creates, updates and deletes a virtual host of a RabbitMQ broker by its management API, with its limits.
  - Policies of the vhost are objects of their own (M(muster.ml.rabbitmq_policy)), and so are its users' permissions
    (M(muster.ml.rabbitmq_user)). The broker itself gives O(login_user) all permissions in a vhost that it creates.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.attributes
  - muster.ml.rabbitmq
  - muster.ml.rabbitmq.support
options:
  name:
    description: Name of the vhost.
    type: str
    required: true
  description:
    description: Description of the vhost. Omit it to keep that of an existing vhost.
    type: str
  tags:
    description: Tags of the vhost, all of them. Omit it to keep those of an existing vhost.
    type: list
    elements: str
  tracing:
    description: Copy all messages to the exchange C(amq.rabbitmq.trace). Omit it to keep the setting of an existing vhost.
    type: bool
  limits:
    description: Limits of the vhost. A limit that is not given is kept, V(-1) removes it.
    type: dict
    suboptions:
      max_connections:
        description: Number of connections at a time.
        type: int
      max_queues:
        description: Number of queues.
        type: int
  delete_queues:
    description:
      - Delete the vhost with its queues and their messages, with O(state=absent). Otherwise a vhost that has queues is kept.
    type: bool
    default: false
  state:
    description: State of the vhost.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Create the vhost of the experiments
  muster.ml.rabbitmq_vhost:
    login_host: broker.example
    login_user: admin
    login_password: "{{ rabbitmq_admin_password }}"
    ca_cert: /etc/rabbitmq/ca.crt
    name: experiments
    description: Queues of the StudioML runners
    limits:
      max_connections: 500
"""

RETURN = r"""
kept:
  description: Reason why the object was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [create vhost experiments, max-connections 500]
vhost:
  description: Vhost as the broker has it, with the names of its queues. Empty if it does not exist.
  returned: success
  type: dict
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq import api
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq.converge import converge
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq.vhost import Vhost

_LIMITS: dict[str, t.Any] = {"max_connections": {"type": "int"}, "max_queues": {"type": "int"}}
ARGUMENT_SPEC: dict[str, t.Any] = {
    **api.CONNECTION,
    "name": {"type": "str", "required": True},
    "description": {"type": "str"},
    "tags": {"type": "list", "elements": "str"},
    "tracing": {"type": "bool"},
    "limits": {"type": "dict", "options": _LIMITS},
    "delete_queues": {"type": "bool", "default": False},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}
CONSTRAINTS: dict[str, t.Any] = {**api.CONSTRAINTS}


def execute(ctx: HostContext) -> dict[str, t.Any]:
    """Bring the vhost to its desired state."""
    params = ctx.params
    wanted = Vhost(
        name=params["name"],
        description=params["description"],
        tags=None if params["tags"] is None else tuple(params["tags"]),
        tracing=params["tracing"],
        limits={key.replace("_", "-"): value for key, value in (params["limits"] or {}).items()},
        delete_queues=params["delete_queues"],
    )
    with api.connect(params) as broker:
        outcome = converge(wanted, broker, absent=params["state"] == "absent", check=ctx.check, warn=ctx.warn)
    return outcome.result("vhost", diff=ctx.diff)


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rabbitmq_policy
short_description: Manage RabbitMQ policies
version_added: 0.1.0
description:
  - Creates, updates and deletes a policy of a vhost of a RabbitMQ broker by its management API. Other policies of the vhost are left
    alone.
  - A policy sets for queues and exchanges with certain names what can be changed later, such as limits and dead letters. For a queue the
    matching policy with the highest O(priority) counts.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.attributes
  - muster.ml.rabbitmq
  - muster.ml.rabbitmq.support
options:
  name:
    description: Name of the policy.
    type: str
    required: true
  vhost:
    description: Name of the vhost, which must exist.
    type: str
    default: /
  pattern:
    description: Regular expression for the names of the queues and exchanges. Required with O(state=present).
    type: str
  definition:
    description: Settings of the policy, with the names that RabbitMQ gives them, such as C(max-length). Required with O(state=present).
    type: dict
  priority:
    description: Priority of the policy among those whose pattern matches.
    type: int
    default: 0
  apply_to:
    description: Kind of objects that the policy is for. The last three need RabbitMQ 3.12 or newer.
    type: str
    choices: [all, queues, exchanges, classic_queues, quorum_queues, streams]
    default: all
  state:
    description: State of the policy.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Change the limits of the queues of the experiments
  muster.ml.rabbitmq_policy:
    login_host: broker.example
    login_user: admin
    login_password: "{{ rabbitmq_admin_password }}"
    ca_cert: /etc/rabbitmq/ca.crt
    name: experiments
    pattern: ^rmq_
    apply_to: queues
    definition:
      max-length: 100000
      overflow: reject-publish
"""

RETURN = r"""
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [create policy experiments in vhost /]
policy:
  description: Policy as the broker has it. Empty if it does not exist.
  returned: success
  type: dict
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq import api
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq.converge import converge
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq.policy import Policy

_KINDS = ["all", "queues", "exchanges", "classic_queues", "quorum_queues", "streams"]
ARGUMENT_SPEC: dict[str, t.Any] = {
    **api.CONNECTION,
    "name": {"type": "str", "required": True},
    "vhost": {"type": "str", "default": "/"},
    "pattern": {"type": "str"},
    "definition": {"type": "dict"},
    "priority": {"type": "int", "default": 0},
    "apply_to": {"type": "str", "choices": _KINDS, "default": "all"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}
CONSTRAINTS: dict[str, t.Any] = {**api.CONSTRAINTS, "required_if": [("state", "present", ("pattern", "definition"))]}


def execute(ctx: HostContext) -> dict[str, t.Any]:
    """Bring the policy to its desired state."""
    params = ctx.params
    wanted = Policy(
        name=params["name"],
        vhost=params["vhost"],
        pattern=params["pattern"] or "",
        definition=params["definition"] or {},
        priority=params["priority"],
        apply_to=params["apply_to"],
    )
    with api.connect(params) as broker:
        outcome = converge(wanted, broker, absent=params["state"] == "absent", check=ctx.check, warn=ctx.warn)
    return outcome.result("policy", diff=ctx.diff)


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

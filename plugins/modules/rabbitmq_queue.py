#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rabbitmq_queue
short_description: Manage RabbitMQ queues
version_added: 0.1.0
description:
  - Creates and deletes a queue of a RabbitMQ broker by its management API.
  - A queue keeps the type, durability and arguments that it was created with. Where they differ, the task fails with the difference, and
    changes nothing.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.attributes
  - muster.ml.rabbitmq
  - muster.ml.rabbitmq.support
options:
  name:
    description: Name of the queue.
    type: str
    required: true
  vhost:
    description: Name of the vhost, which must exist.
    type: str
    default: /
  type:
    description: Type of the queue.
    type: str
    choices: [classic, quorum, stream]
    default: classic
  durable:
    description: Keep the queue when the broker restarts.
    type: bool
    default: true
  auto_delete:
    description: Let the broker delete the queue after its last consumer.
    type: bool
    default: false
  arguments:
    description: Arguments of the queue, all of them, with the names that RabbitMQ gives them, such as C(x-max-priority). Omit it to accept
      any of an existing queue.
    type: dict
  studioml:
    description: Bind the queue to the exchange C(StudioML.topic), which is created where it is missing, as StudioML's client does with
      the first experiment. Runners find the queue by it.
    type: bool
    default: false
  delete_messages:
    description:
      - Delete the queue with its messages, with O(state=absent). Otherwise a queue that holds messages is kept.
      - For a classic queue the broker decides this when it deletes. For other types the number of messages is up to 5 seconds old.
    type: bool
    default: false
  state:
    description: State of the queue.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Create a queue for experiments
  muster.ml.rabbitmq_queue:
    login_host: broker.example
    login_user: admin
    login_password: "{{ rabbitmq_admin_password }}"
    ca_cert: /etc/rabbitmq/ca.crt
    name: rmq_experiments
    arguments: {}

- name: Delete the queue of an older project with what waits in it
  muster.ml.rabbitmq_queue:
    login_host: broker.example
    login_user: admin
    login_password: "{{ rabbitmq_admin_password }}"
    ca_cert: /etc/rabbitmq/ca.crt
    name: rmq_old
    delete_messages: true
    state: absent
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
  sample: [create classic queue rmq_experiments in vhost /]
queue:
  description: Queue as the broker has it. Empty if it does not exist.
  returned: success
  type: dict
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq import api
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq.converge import converge
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq.queue import Queue

ARGUMENT_SPEC: dict[str, t.Any] = {
    **api.CONNECTION,
    "name": {"type": "str", "required": True},
    "vhost": {"type": "str", "default": "/"},
    "type": {"type": "str", "choices": ["classic", "quorum", "stream"], "default": "classic"},
    "durable": {"type": "bool", "default": True},
    "auto_delete": {"type": "bool", "default": False},
    "arguments": {"type": "dict"},
    "studioml": {"type": "bool", "default": False},
    "delete_messages": {"type": "bool", "default": False},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}
CONSTRAINTS: dict[str, t.Any] = {**api.CONSTRAINTS}


def execute(ctx: HostContext) -> dict[str, t.Any]:
    """Bring the queue to its desired state."""
    params = ctx.params
    wanted = Queue(
        name=params["name"],
        vhost=params["vhost"],
        type=params["type"],
        durable=params["durable"],
        auto_delete=params["auto_delete"],
        arguments=params["arguments"],
        studioml=params["studioml"],
        delete_messages=params["delete_messages"],
    )
    absent = params["state"] == "absent"
    if not absent:
        wanted.check()
    with api.connect(params) as broker:
        outcome = converge(wanted, broker, absent=absent, check=ctx.check, warn=ctx.warn)
    return outcome.result("queue", diff=ctx.diff)


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

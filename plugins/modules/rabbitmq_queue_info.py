#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rabbitmq_queue_info
short_description: Report how many messages wait in queues of RabbitMQ
version_added: 0.1.0
description:
  - Reads queues with their numbers of messages by the management API, and can wait until no message is left.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.attributes
  - muster.ml.rabbitmq
  - muster.ml.rabbitmq.reading
options:
  login_user:
    description: User that the task logs in as. It needs the tag C(management), and sees the queues of vhosts that it may use.
  vhost:
    description: Name of the vhost whose queues are reported. Defaults to all vhosts.
    type: str
  match:
    description: Regular expression that the names of queues match.
    type: str
    default: .*
  wait:
    description:
      - Wait until no queue has a message, those that consumers hold included. The broker counts every 5 seconds, so the numbers have to
        be 0 for 6 seconds. In check mode it does not wait.
    type: bool
    default: false
  wait_timeout:
    description: Seconds to wait. The task then fails with the queues that have messages.
    type: int
    default: 120
"""

EXAMPLES = r"""
- name: Wait until the runners have run all experiments
  muster.ml.rabbitmq_queue_info:
    login_kubernetes: {namespace: ml}
    match: ^rmq_
    wait: true
    wait_timeout: 3600
"""

RETURN = r"""
queues:
  description: Queues with their numbers of messages and consumers, which are up to 5 seconds old, and null until they are known.
  returned: success
  type: list
  elements: dict
  sample: [{vhost: /, name: rmq_cpu, messages: 3, messages_ready: 2, messages_unacknowledged: 1, consumers: 1}]
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq import api, queues

ARGUMENT_SPEC: dict[str, t.Any] = {
    **api.CONNECTION,
    "vhost": {"type": "str"},
    "match": {"type": "str", "default": ".*"},
    "wait": {"type": "bool", "default": False},
    "wait_timeout": {"type": "int", "default": 120},
}
CONSTRAINTS: dict[str, t.Any] = {**api.CONSTRAINTS}


def execute(ctx: HostContext) -> dict[str, t.Any]:
    """Read, and wait until no message is left if requested."""
    params = ctx.params
    names = queues.matching(params["match"])
    with api.connect(params) as broker:
        if params["wait"] and not ctx.check:
            found = queues.wait_empty(broker, params["vhost"], names, params["wait_timeout"], ctx.progress)
        else:
            found = queues.rows(broker, params["vhost"], names)
    return {"changed": False, "queues": found}


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

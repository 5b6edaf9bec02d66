#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rabbitmq_info
short_description: Report the health of a RabbitMQ broker
description:
  - Reads versions, nodes, memory and disk alarms, listeners and queues by the management API, and names what is wrong.
  - With O(wait=true) it waits until nothing is wrong. With O(probe=true) a message must go in and come out.
  - With O(match) it reads the numbers of messages of some queues only, and can wait until no message is left.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.attributes
  - muster.ml.rabbitmq
  - muster.ml.rabbitmq.reading
options:
  login_user:
    description: User that the task logs in as. It needs the tag C(monitoring) or C(administrator), with O(match) only C(management).
  vhost:
    description: Name of the vhost whose queues are reported, and which O(probe) uses. Defaults to all vhosts, and V(/) for the probe.
    type: str
  match:
    description: Regular expression for the names of queues. Only these queues are read then, and returned as RV(queues).
    type: str
  wait:
    description:
      - Wait until nothing is wrong. After O(wait_timeout) the task fails with the reason. In check mode it does not wait.
      - With O(match), wait until none of the queues has a message, those that consumers hold included. The broker counts every 5 seconds,
        so the numbers have to be 0 for 6 seconds.
    type: bool
    default: false
  wait_timeout:
    description: Seconds to wait.
    type: int
    default: 120
  probe:
    description:
      - Publish a message to a queue that the module creates for it, consume it, and delete the queue. O(login_user) needs permissions in
        the vhost. The broker deletes the queue after a minute if the module could not.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Wait until the broker works
  muster.ml.rabbitmq_info:
    login_host: broker.example
    login_user: admin
    login_password: "{{ rabbitmq_admin_password }}"
    ca_cert: /etc/rabbitmq/ca.crt
    wait: true
    probe: true

- name: Wait until the runners have run all experiments
  muster.ml.rabbitmq_info:
    login_kubernetes: {namespace: ml}
    match: ^rmq_
    wait: true
    wait_timeout: 3600
"""

RETURN = r"""
version:
  description: Version of RabbitMQ.
  returned: without O(match)
  type: str
  sample: 3.10.8
erlang_version:
  description: Version of Erlang.
  returned: without O(match)
  type: str
  sample: "27.3"
cluster_name:
  description: Name of the cluster of brokers.
  returned: without O(match)
  type: str
  sample: rabbit@rabbitmq-0.rabbitmq-nodes.ml.svc
alarms:
  description: Alarms in effect, with the node and C(memory) or C(disk space). The broker takes no messages while there is one.
  returned: without O(match)
  type: list
  elements: dict
  sample: [{node: rabbit@broker, resource: memory}]
nodes:
  description: Nodes with their memory and disk, in bytes. They are reported every 5 seconds, and null until then.
  returned: without O(match)
  type: list
  elements: dict
  sample: [{name: rabbit@broker, running: true, being_drained: false, mem_used: 134217728, mem_limit: 1073741824}]
listeners:
  description: Ports that the nodes listen at, with their protocol and whether they have TLS.
  returned: without O(match)
  type: list
  elements: dict
  sample: [{node: rabbit@broker, protocol: amqp/ssl, address: "::", port: 5671, tls: true}]
queues:
  description: Queues with their numbers of messages and consumers, which are up to 5 seconds old.
  returned: success
  type: list
  elements: dict
  sample: [{vhost: /, name: rmq_gpu, type: quorum, state: running, messages: 0, consumers: 1}]
problems:
  description: Problems of the broker. Empty if it is healthy.
  returned: without O(match)
  type: list
  elements: str
  sample: ["node rabbit@broker: has a memory alarm (8 of 7 bytes): publishers are stopped"]
probe:
  description: Vhost and name of the queue that the message went through.
  returned: with O(probe=true), outside check mode
  type: dict
  sample: {vhost: /, queue: muster-probe-9f2c4d1e8a7b6c50, delivered: true}
"""

import re

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, Result, Spec, host_main
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import check_pattern
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq import api, health, queues

ARGUMENT_SPEC: Spec = {
    **api.CONNECTION,
    "vhost": {"type": "str"},
    "match": {"type": "str"},
    "wait": {"type": "bool", "default": False},
    "wait_timeout": {"type": "int", "default": 120},
    "probe": {"type": "bool", "default": False},
}
CONSTRAINTS = {**api.CONSTRAINTS, "mutually_exclusive": [("match", "probe")]}


def execute(ctx: HostContext) -> Result:
    """Read the state, wait until there are no problems if requested, and probe with a message."""
    params = ctx.params
    if params["match"] is not None:
        return {"changed": False, "queues": _messages(ctx, check_pattern(params["match"], "match"))}
    with api.connect(params, ctx.clock) as broker:
        if params["wait"] and not ctx.check:
            found = health.wait(broker, params["vhost"], params["wait_timeout"], ctx.progress)
        else:
            found = health.survey(broker, params["vhost"])
        if params["probe"] and not ctx.check:
            if found["problems"]:
                # A broker with an alarm blocks publishers without an error.
                raise Failed(f"The broker at {broker.address} is not healthy: {'; '.join(found['problems'])}.", details=found)
            found["probe"] = health.probe(broker, params["vhost"] or "/")
    return {"changed": False, **found}


def _messages(ctx: HostContext, names: re.Pattern[str]) -> list[queues.Row]:
    """Return the queues whose names match, once they are empty if requested."""
    params = ctx.params
    with api.connect(params, ctx.clock) as broker:
        if params["wait"] and not ctx.check:
            return queues.wait_empty(broker, params["vhost"], names, params["wait_timeout"], ctx.progress)
        return queues.rows(broker, params["vhost"], names)


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

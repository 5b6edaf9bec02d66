#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rabbitmq_definitions
short_description: Manage what a RabbitMQ broker has, as one document of definitions
description:
  - Creates and updates vhosts, users with their permissions, policies, exchanges, queues and bindings of a RabbitMQ broker by its
    management API, from any host that reaches it. Rows have the format of RabbitMQ's definitions, so an export is a valid O(src).
  - Objects that the task does not name are left alone. O(absent) names those to delete. Fields that a row leaves out keep their value
    for vhosts, users and the arguments of exchanges and queues; elsewhere they get the value of a new object.
  - Passwords are compared with the salted hash that the broker returns, so a password that is set already is not set again.
  - Exchanges and queues keep what they were created with. Where that differs, the task fails with the difference, and changes nothing.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.attributes
  - muster.ml.rabbitmq
  - muster.ml.rabbitmq.support
options:
  login_user:
    description:
      - User that the task logs in as. Managing vhosts, users, permissions and limits of vhosts needs the tag C(administrator), policies
        C(policymaker), and the rest C(management) and permissions in the vhost.
      - The task may change the password of this user. When O(login_password) is refused, the one of its row in O(users) is tried.
  src:
    description:
      - Path of a JSON file with definitions, as C(rabbitmqctl export_definitions) or C(GET /api/definitions) writes it, on the host that
        the task runs on. Its rows are added to those of the task.
      - Parameters other than C(vhost-limits) and operator policies, such as shovels, are skipped with a warning, and the identity of the
        cluster, C(internal_cluster_id), without one. Those of C(amq.) and the default exchange are skipped with a warning.
    type: path
  vhost:
    description: Name of the vhost of rows that name none, such as those of an export of one vhost.
    type: str
    default: /
  vhosts:
    description: Vhosts. The broker gives O(login_user) all permissions in a vhost that it creates.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the vhost.
        type: str
        required: true
      description:
        description: Description of the vhost.
        type: str
      tags:
        description: Tags of the vhost, all of them.
        type: list
        elements: str
      tracing:
        description: Copy all messages to the exchange C(amq.rabbitmq.trace).
        type: bool
      default_queue_type:
        description: Type of queues that clients declare without one. RabbitMQ 3.10 has no such setting and keeps none.
        type: str
  users:
    description: Users of the broker.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the user.
        type: str
        required: true
      password:
        description: Password of the user. A new user without one and without O(users[].password_hash) cannot log in by password.
        type: str
      password_hash:
        description: Salted hash of the password, as an export has it.
        type: str
      hashing_algorithm:
        description: Algorithm of O(users[].password_hash), by the broker's name for it.
        type: str
      tags:
        description:
          - Tags of the user, all of them. C(administrator), C(monitoring), C(policymaker) and C(management) allow logging in to the
            management API.
        type: list
        elements: str
      limits:
        description: Limits of the user, all of them, C(max-connections) and C(max-channels).
        type: dict
  permissions:
    description: Permissions of users in vhosts.
    type: list
    elements: dict
    suboptions:
      user:
        description: Name of the user.
        type: str
        required: true
      vhost:
        description: Name of the vhost.
        type: str
      configure:
        description: Regular expression for the names of what the user may declare and delete. V(^$), no name, without it.
        type: str
      write:
        description: Regular expression for the names of what the user may publish and bind to. V(^$), no name, without it.
        type: str
      read:
        description: Regular expression for the names of what the user may consume and bind from. V(^$), no name, without it.
        type: str
  topic_permissions:
    description: Permissions of users at topic exchanges. A user without any may use all keys.
    type: list
    elements: dict
    suboptions:
      user:
        description: Name of the user.
        type: str
        required: true
      vhost:
        description: Name of the vhost.
        type: str
      exchange:
        description: Name of the topic exchange.
        type: str
        required: true
      write:
        description: Regular expression for the routing keys that the user may publish with. V(^$), none, without it.
        type: str
      read:
        description: Regular expression for the routing keys that the user may bind with. V(^$), none, without it.
        type: str
  parameters:
    description: Limits of vhosts, which are parameters in RabbitMQ's definitions.
    type: list
    elements: dict
    suboptions:
      component:
        description: Component of the parameter, C(vhost-limits), also without it.
        type: str
      vhost:
        description: Name of the vhost.
        type: str
      name:
        description: Name of the parameter, C(limits), also without it.
        type: str
      value:
        description: Limits of the vhost, all of them, C(max-connections) and C(max-queues).
        type: dict
        required: true
  global_parameters:
    description: Global parameters, such as C(cluster_name) and those of plugins. They are no vhost's.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the parameter.
        type: str
        required: true
      value:
        description: Value of the parameter, any JSON, all of it.
        type: raw
        required: true
  policies:
    description:
      - Policies of vhosts. For a queue the matching policy with the highest priority counts.
      - Each has C(name), C(pattern), a regular expression for the names of queues and exchanges, and C(definition), the settings with
        the names that RabbitMQ gives them, such as C(max-length); and if needed C(vhost), C(priority) and C(apply-to), the kind of
        objects that it is for, such as V(queues).
    type: list
    elements: dict
  operator_policies:
    description: Operator policies of vhosts, as O(policies). They set limits for queues that no policy exceeds, and need C(administrator).
    type: list
    elements: dict
  exchanges:
    description: Exchanges of vhosts.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the exchange.
        type: str
        required: true
      vhost:
        description: Name of the vhost.
        type: str
      type:
        description: Type of the exchange. V(direct) without it.
        type: str
      durable:
        description: Keep the exchange when the broker restarts. V(true) without it.
        type: bool
      auto_delete:
        description: Let the broker delete the exchange with its last binding. V(false) without it.
        type: bool
      internal:
        description: Take messages from other exchanges only. V(false) without it.
        type: bool
      arguments:
        description: Arguments of the exchange, all of them.
        type: dict
  queues:
    description: Queues of vhosts.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the queue.
        type: str
        required: true
      vhost:
        description: Name of the vhost.
        type: str
      type:
        description: Type of the queue, V(classic), V(quorum) or V(stream), unless C(x-queue-type) among its arguments says it. V(classic)
          without both.
        type: str
      durable:
        description: Keep the queue when the broker restarts. V(true) without it.
        type: bool
      auto_delete:
        description: Let the broker delete the queue after its last consumer. V(false) without it.
        type: bool
      arguments:
        description: Arguments of the queue, all of them, with the names that RabbitMQ gives them, such as C(x-max-priority).
        type: dict
  bindings:
    description: Bindings of queues or exchanges to exchanges.
    type: list
    elements: dict
    suboptions:
      source:
        description: Name of the exchange that messages come from.
        type: str
        required: true
      vhost:
        description: Name of the vhost.
        type: str
      destination:
        description: Name of the queue or exchange that gets them.
        type: str
        required: true
      destination_type:
        description: Kind of the destination, V(queue) or V(exchange). V(queue) without it.
        type: str
      routing_key:
        description: Routing key of the binding. Empty without it.
        type: str
      arguments:
        description: Arguments of the binding, all of them.
        type: dict
  studioml_queues:
    description: Names of durable classic queues in O(vhost), each bound to the exchange C(StudioML.topic) as StudioML's client does with
      the first experiment. Runners find queues by it.
    type: list
    elements: str
    default: []
  studioml_runners:
    description:
      - Names of users of the task that StudioML runners log in as. The task fails before anything is changed if a runner cannot.
      - It takes the user and password of its AMQP URL apart at every colon, escapes other characters twice, and needs a tag with which it
        can list bindings.
    type: list
    elements: str
    default: []
  absent:
    description:
      - Objects to delete, as lists by the names of the options above, such as C(users) and C(queues). Of a row only the fields count that
        name the object, as O(users[].name) does.
      - A queue that holds messages and a vhost that has queues are kept, with a warning, unless O(delete_data=true).
    type: dict
    default: {}
  purge_permissions:
    description: Remove permissions and topic permissions of the users of the task that it does not name.
    type: bool
    default: false
  update_password:
    description: Moment at which passwords are set. V(on_create) never changes that of an existing user.
    type: str
    choices: [always, on_create]
    default: always
  allow_lockout:
    description: Allow the task to delete the user that it logs in as, or to take its tag C(administrator) away.
    type: bool
    default: false
  ensure_login:
    description:
      - Make O(login_user) an administrator with O(login_password) by C(rabbitmqctl) first, if it cannot log in as one. It needs no login,
        so it also sets a new password where the old one is lost. The task has to run as root on the host of the broker.
      - In check mode with such a change the rest of the document cannot be compared, and a warning says so.
    type: bool
    default: false
  delete_data:
    description:
      - Delete queues of O(absent) with their messages, and vhosts of O(absent) with their queues.
      - For a classic queue the broker decides whether it is empty when it deletes. For other types the number of messages is up to
        5 seconds old.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Configure the broker of the experiments
  muster.ml.rabbitmq_definitions:
    login_host: broker.example
    login_user: admin
    login_password: "{{ rabbitmq_admin_password }}"
    ca_cert: /etc/rabbitmq/ca.crt
    users:
      - {name: runner, password: "{{ runner_password }}", tags: [management]}
    permissions:
      - {user: runner, vhost: /, configure: ".*", write: ".*", read: ".*"}
    policies:
      - {name: experiments, pattern: ^rmq_, apply-to: queues, definition: {max-length: 100000, overflow: reject-publish}}
    studioml_queues: [rmq_experiments]
    studioml_runners: [runner]
    absent:
      users: [{name: guest}]

- name: Configure a new broker with the definitions of another one
  muster.ml.rabbitmq_definitions:
    login_host: new-broker.example
    login_user: admin
    login_password: "{{ rabbitmq_admin_password }}"
    src: /var/backups/definitions.json

- name: Delete the queue of an older project with what waits in it
  muster.ml.rabbitmq_definitions:
    login_host: broker.example
    login_user: admin
    login_password: "{{ rabbitmq_admin_password }}"
    absent:
      queues: [{name: rmq_old}]
    delete_data: true
"""

RETURN = r"""
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [create user runner, create permissions of user runner in vhost /]
kept:
  description: Objects of O(absent) that were kept, with the reason. Warnings say the same.
  returned: success
  type: list
  elements: str
  sample: ["queue rmq_old in vhost / was kept: it holds 3 messages; delete_data: true deletes it."]
"""

import pathlib
import typing as t

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq import api, control, document
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq.converge import converge
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq.plan import Wanted

_SECRETS = {field: {"type": "str", "no_log": True} for field in document.SECRETS}
_TYPES = {str: "str", bool: "bool", int: "int", dict: "dict", list: "list", type(None): "raw"}


def _rows(name: str, kind: document.Kind) -> dict[str, t.Any]:
    """Return the spec of the rows of a kind."""
    fields = {**dict.fromkeys(kind.key, ""), **kind.optional, **kind.new}
    spec: dict[str, t.Any] = {field: {"type": _TYPES[type(value)]} for field, value in fields.items()}
    if any(not field.isidentifier() for field in spec):
        return {"type": "list", "elements": "dict"}  # RabbitMQ's apply-to can be no option; document.parse checks the fields
    if "routing_key" in spec:
        spec["routing_key"]["no_log"] = False
    for field in {*kind.key, *kind.required} - {"vhost", *kind.optional}:
        spec[field]["required"] = True
    if "tags" in spec:
        spec["tags"]["elements"] = "str"
    if name == "users":
        spec |= {**_SECRETS, "hashing_algorithm": {"type": "str"}}
    return {"type": "list", "elements": "dict", "options": spec}


ARGUMENT_SPEC: dict[str, t.Any] = {
    **api.CONNECTION,
    "src": {"type": "path"},
    "vhost": {"type": "str", "default": "/"},
    **{name: _rows(name, kind) for name, kind in document.KINDS.items()},
    "studioml_queues": {"type": "list", "elements": "str", "default": []},
    "studioml_runners": {"type": "list", "elements": "str", "default": []},
    "absent": {"type": "dict", "default": {}},
    "purge_permissions": {"type": "bool", "default": False},
    "update_password": {"type": "str", "choices": ["always", "on_create"], "default": "always", "no_log": False},
    "allow_lockout": {"type": "bool", "default": False},
    "ensure_login": {"type": "bool", "default": False},
    "delete_data": {"type": "bool", "default": False},
}
CONSTRAINTS: dict[str, t.Any] = {**api.CONSTRAINTS}


def desired(ctx: HostContext) -> Wanted:
    """Return the definitions of the options and the file; InvalidInput names a row that no broker would accept."""
    params = ctx.params
    given = [params, document.studioml(params["studioml_queues"]), _exported(ctx)]
    rows = {name: [row for part in given for row in part.get(name) or ()] for name in document.KINDS}
    present = document.parse(rows, params["vhost"])
    document.check_runners(present, params["studioml_runners"])
    unknown = params["absent"].keys() - document.KINDS.keys()
    if unknown:
        raise InvalidInput(f"absent: {', '.join(sorted(unknown))} is no kind of object.", f"Kinds are {', '.join(document.KINDS)}.")
    return Wanted(
        present=present,
        absent=document.parse(params["absent"], params["vhost"], keys_only=True),
        update_password=params["update_password"] == "always",  # noqa: S105
        **{key: params[key] for key in ("purge_permissions", "allow_lockout", "delete_data")},
    )


def _exported(ctx: HostContext) -> dict[str, t.Any]:
    path = ctx.params["src"]
    if not path:
        return {}
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as exc:
        raise InvalidInput(f"src: {path} cannot be read: {getattr(exc, 'strerror', None) or exc}.") from exc
    rows, ignored = document.exported(text, f"src: {path}")
    if ignored:
        ctx.warn(f"Not managed, and skipped in {path}: {', '.join(ignored)}.")
    return rows


def execute(ctx: HostContext) -> dict[str, t.Any]:
    """Check the document, then apply it to the broker."""
    wanted = desired(ctx)
    if ctx.params["ensure_login"] and ctx.params["login_kubernetes"]:
        raise InvalidInput("ensure_login is for a broker on the host of the task, and login_kubernetes names one in a cluster.")
    with api.connect(ctx.params, ctx.clock) as broker:
        first = control.ensure_login(broker, control.run, check=ctx.check) if ctx.params["ensure_login"] else []
        if first and ctx.check:
            ctx.warn(f"What the broker at {broker.address} has cannot be compared before user {broker.user} can log in.")
            return {**ctx.changes(first), "actions": first, "kept": []}
        result = converge(wanted, broker, check=ctx.check, warn=ctx.warn)
    actions, diff = first + result["actions"], result.pop("diff")
    changes = ctx.changes(actions)
    if ctx.diff and not first:
        changes["diff"] = diff
    return {**result, "actions": actions, **changes}


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rabbitmq_user
short_description: Manage RabbitMQ users with their password, tags and permissions
version_added: 0.1.0
description:
  - Creates, updates and deletes a user of a RabbitMQ broker by its management API, from any host that reaches it.
  - Permissions in vhosts that the task does not name are left alone, and so are all other users.
  - The password is compared with the salted hash that the broker returns, so a password that is set already is not set again.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.attributes
  - muster.ml.rabbitmq
  - muster.ml.rabbitmq.support
options:
  name:
    description: Name of the user.
    type: str
    required: true
  password:
    description:
      - Password of the user. A new user without one cannot log in by password. Without it the password of an existing user is kept.
      - The task may log in as the user itself, to change its own password. When O(login_password) is refused, this one is tried.
    type: str
  update_password:
    description: Moment at which the password is set. V(on_create) never changes that of an existing user.
    type: str
    choices: [always, on_create]
    default: always
  tags:
    description:
      - Tags of the user, all of them. C(administrator), C(monitoring), C(policymaker) and C(management) allow logging in to the
        management API. Omit it to keep those of an existing user.
    type: list
    elements: str
  permissions:
    description: Permissions of the user, one entry for each vhost.
    type: list
    elements: dict
    default: []
    suboptions:
      vhost:
        description: Name of the vhost, which must exist.
        type: str
        default: /
      configure:
        description: Regular expression for the names of what the user may declare and delete.
        type: str
        default: ^$
      write:
        description: Regular expression for the names of what the user may publish and bind to.
        type: str
        default: ^$
      read:
        description: Regular expression for the names of what the user may consume and bind from.
        type: str
        default: ^$
  topic_permissions:
    description: Permissions of the user at topic exchanges, one entry for each vhost and exchange. Without an entry all keys are allowed.
    type: list
    elements: dict
    default: []
    suboptions:
      vhost:
        description: Name of the vhost, which must exist.
        type: str
        default: /
      exchange:
        description: Name of the topic exchange.
        type: str
        required: true
      write:
        description: Regular expression for the routing keys that the user may publish with.
        type: str
        default: ^$
      read:
        description: Regular expression for the routing keys that the user may bind with.
        type: str
        default: ^$
  purge_permissions:
    description: Remove the user's permissions and topic permissions that the task does not name.
    type: bool
    default: false
  limits:
    description: Limits of the user. A limit that is not given is kept, V(-1) removes it.
    type: dict
    suboptions:
      max_connections:
        description: Number of connections at a time.
        type: int
      max_channels:
        description: Number of channels at a time.
        type: int
  studioml_runner:
    description:
      - Check that a StudioML runner can use the user, and fail before anything is changed if it cannot.
      - It takes the user and password of its AMQP URL apart at every colon, escapes other characters twice, and needs a tag with which it
        can list bindings.
    type: bool
    default: false
  allow_lockout:
    description: Allow the task to delete the user that it logs in as, or to take its tag C(administrator) away.
    type: bool
    default: false
  state:
    description: State of the user.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Create the user of the runners
  muster.ml.rabbitmq_user:
    login_host: broker.example
    login_user: admin
    login_password: "{{ rabbitmq_admin_password }}"
    ca_cert: /etc/rabbitmq/ca.crt
    name: runner
    password: "{{ runner_password }}"
    tags: [management]
    studioml_runner: true
    permissions:
      - vhost: /
        configure: ".*"
        write: ".*"
        read: ".*"

- name: Remove the user that every broker comes with
  muster.ml.rabbitmq_user:
    login_host: broker.example
    login_user: admin
    login_password: "{{ rabbitmq_admin_password }}"
    ca_cert: /etc/rabbitmq/ca.crt
    name: guest
    state: absent
"""

RETURN = r"""
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [create user runner, permissions in /]
user:
  description: User as the broker has it, without its password. Empty if it does not exist.
  returned: success
  type: dict
  sample: {name: runner, tags: [management], limits: {}, permissions: [], topic_permissions: []}
"""

import dataclasses
import typing as t

from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq import api, user
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq.converge import converge

_NOTHING: dict[str, t.Any] = {"type": "str", "default": "^$"}
_VHOST: dict[str, t.Any] = {"type": "str", "default": "/"}
_PERMISSION: dict[str, t.Any] = {"vhost": _VHOST, "configure": _NOTHING, "write": _NOTHING, "read": _NOTHING}
_TOPIC: dict[str, t.Any] = {
    "vhost": _VHOST,
    "exchange": {"type": "str", "required": True},
    "write": _NOTHING,
    "read": _NOTHING,
}
_LIMITS: dict[str, t.Any] = {"max_connections": {"type": "int"}, "max_channels": {"type": "int"}}
ARGUMENT_SPEC: dict[str, t.Any] = {
    **api.CONNECTION,
    "name": {"type": "str", "required": True},
    "password": {"type": "str", "no_log": True},
    "update_password": {"type": "str", "choices": ["always", "on_create"], "default": "always", "no_log": False},
    "tags": {"type": "list", "elements": "str"},
    "permissions": {"type": "list", "elements": "dict", "default": [], "options": _PERMISSION},
    "topic_permissions": {"type": "list", "elements": "dict", "default": [], "options": _TOPIC},
    "purge_permissions": {"type": "bool", "default": False},
    "limits": {"type": "dict", "options": _LIMITS},
    "studioml_runner": {"type": "bool", "default": False},
    "allow_lockout": {"type": "bool", "default": False},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}
CONSTRAINTS: dict[str, t.Any] = {**api.CONSTRAINTS}


def desired(params: dict[str, t.Any], login_user: str) -> user.User:
    """The user that the options describe. ``login_user``: the one that the task logs in as."""
    return user.User(
        name=params["name"],
        password=None if params["password"] is None else Sensitive(params["password"]),
        update_password=params["update_password"] == "always",  # noqa: S105
        tags=None if params["tags"] is None else tuple(params["tags"]),
        permissions=tuple(user.Permission(**row) for row in params["permissions"]),
        topic_permissions=tuple(user.TopicPermission(**row) for row in params["topic_permissions"]),
        purge_permissions=params["purge_permissions"],
        limits={key.replace("_", "-"): value for key, value in (params["limits"] or {}).items()},
        own=params["name"] == login_user,
        allow_lockout=params["allow_lockout"],
    )


def execute(ctx: HostContext) -> dict[str, t.Any]:
    """Check the options, then bring the user to its desired state."""
    absent = ctx.params["state"] == "absent"
    if not absent:
        user.check(desired(ctx.params, ""), runner=ctx.params["studioml_runner"])
    with api.connect(ctx.params) as broker:
        wanted = desired(ctx.params, broker.user)
        user.log_in(broker, wanted)
        outcome = converge(wanted, broker, absent=absent, check=ctx.check, warn=ctx.warn)
    return dataclasses.replace(outcome, live=user.shown(outcome.live)).result("user", diff=ctx.diff)


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

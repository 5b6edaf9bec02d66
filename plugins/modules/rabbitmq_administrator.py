#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rabbitmq_administrator
short_description: Create an administrator of a RabbitMQ broker on its own host
version_added: 0.1.0
description:
  - Creates a user that can log in with a password and has the tag C(administrator), by C(rabbitmqctl) on the host of the broker. It needs
    no login, so it also sets a new password where the old one is lost.
  - Everything else is the task of M(muster.ml.rabbitmq_user), which works from any host.
  - The password reaches C(rabbitmqctl) by its standard input, not as an argument.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.attributes.host
options:
  name:
    description: Name of the user. Its other tags and its permissions are kept.
    type: str
    default: admin
  password:
    description: Password of the user.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Create the administrator of the broker
  muster.ml.rabbitmq_administrator:
    name: admin
    password: "{{ vault_rabbitmq_admin_password }}"
"""

RETURN = r"""
actions:
  description: Commands that changed something, or would in check mode.
  returned: success
  type: list
  elements: str
  sample: [create user admin, set tags of user admin]
"""

import subprocess
import typing as t

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq.control import Answer, Control

ARGUMENT_SPEC: dict[str, t.Any] = {
    "name": {"type": "str", "default": "admin"},
    "password": {"type": "str", "required": True, "no_log": True},
}
CONSTRAINTS: dict[str, t.Any] = {}
_SECONDS = 60
"""For one command; rabbitmqctl itself gives up on a broker that does not answer."""


def run(argv: t.Sequence[str], text: str) -> Answer:
    """Run a program with TEXT as its standard input."""
    try:
        done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False, timeout=_SECONDS)
    except FileNotFoundError:
        raise Failed(f"{argv[0]} is not on this host.", hint="Role rabbitmq installs it with the broker.") from None
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(argv[:3])} did not end within {_SECONDS} s.") from None
    return Answer(done.returncode, done.stdout, done.stderr)


def execute(ctx: HostContext) -> dict[str, t.Any]:
    """Create the user, its password and its tag where they are missing."""
    actions = Control(run).ensure(ctx.params["name"], Sensitive(ctx.params["password"]), check=ctx.check)
    return {"changed": bool(actions), "actions": actions}


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

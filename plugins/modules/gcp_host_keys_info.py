# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gcp_host_keys_info
short_description: Read the SSH host keys of a machine of Google Cloud
description:
  - Returns the public SSH host keys of a machine, which its guest agent publishes as guest attributes at its first boot, so that the first
    connection by SSH needs no trust. Waits until there are any.
  - The machine must have had C(enable-guest-attributes=TRUE) in its metadata when it was created.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - google.cloud.gcp
  - muster.ml.attributes
  - muster.ml.attributes.info
  - muster.ml.gcp.support
options:
  name:
    description: Name of the machine.
    type: str
    required: true
  zone:
    description: Zone of the machine.
    type: str
    required: true
  wait_timeout:
    description: Seconds to wait for the keys.
    type: int
    default: 300
"""

EXAMPLES = r"""
- name: Read the SSH host keys of the broker's machine
  muster.ml.gcp_host_keys_info:
    project: my-project
    auth_kind: application
    name: broker
    zone: us-central1-b
"""

RETURN = r"""
host_keys:
  description: Public keys, each with its type.
  returned: success
  type: list
  elements: str
  sample: ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIO0V4QmYkqVbcyS0Vd3n0VgK8J7b1Y5m1Qy0m7Ue6XkZ"]
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge.gcp import gcp_main, surveyor
from ansible_collections.muster.ml.plugins.module_utils._gcp.api import Api
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcp_instance import read_host_keys

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    **{name: {"type": "str", "required": True} for name in ("name", "zone")},
    "wait_timeout": {"type": "int", "default": 300},
}


def survey(api: Api, params: dict[str, t.Any]) -> dict[str, t.Any]:
    """The keys of the machine that the options name."""
    return {"host_keys": read_host_keys(api, params["zone"], params["name"], params["wait_timeout"])}


execute = surveyor(survey)


def main() -> None:
    gcp_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

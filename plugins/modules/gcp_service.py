# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gcp_service
short_description: Manage APIs of Google Cloud projects
description:
  - Enables APIs. Nothing is ever disabled, as others may use them.
  - Just after an API was enabled Google refuses its requests for a while; the modules of this collection then wait.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - google.cloud.gcp
  - muster.ml.attributes
  - muster.ml.gcp.support
  - muster.ml.gcp.waits
options:
  services:
    description: Names of the APIs, such as V(container.googleapis.com).
    type: list
    elements: str
    required: true
  wait_timeout:
    default: 600
"""

EXAMPLES = r"""
- name: Configure the APIs that a cluster needs
  muster.ml.gcp_service:
    project: my-project
    auth_kind: application
    services: [compute.googleapis.com, container.googleapis.com]
"""

RETURN = r"""
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["serviceusage:services.batchEnable (enable container.googleapis.com)"]
services:
  description: State of each API by its name.
  returned: success
  type: dict
  sample: {container.googleapis.com: ENABLED}
"""

from ansible_collections.muster.ml.plugins.module_utils._edge.cloud import spec_of
from ansible_collections.muster.ml.plugins.module_utils._edge.gcp import Spec, converger, gcp_main
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcp_service import GcpServices

ARGUMENT_SPEC: Spec = spec_of(GcpServices, {}, ["project", "owner"], 600, {})
execute = converger(GcpServices, "services")


def main() -> None:
    gcp_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

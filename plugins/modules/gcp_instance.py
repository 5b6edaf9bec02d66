# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gcp_instance
short_description: Manage virtual machines of Google Cloud
description:
  - Creates, changes, starts and deletes a machine with one boot disk. With O(state=present) a stopped machine is started.
  - The boot disk outlives the machine. With O(state=absent) it is kept, and named, unless O(delete_data=true). A machine of the same name
    that is created later boots from it again.
  - The machine type, the service account and O(spot) can be changed of a stopped machine only. The task fails while it runs.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - google.cloud.gcp
  - muster.ml.attributes
  - muster.ml.gcp
  - muster.ml.gcp.owner
  - muster.ml.gcp.support
  - muster.ml.gcp.waits
  - muster.ml.gcp.labels
options:
  name:
    description: Name of the machine, and of its boot disk.
    type: str
    required: true
  zone:
    description: Zone of the machine.
    type: str
    required: true
  machine_type:
    description: Machine type, such as V(e2-standard-2). Required to create it.
    type: str
  disk:
    description: Boot disk. Required to create the machine.
    type: dict
    suboptions:
      size_gb:
        description: Size in GB. Can be made larger later, not smaller.
        type: int
      type:
        description: Type of the disk, such as V(pd-balanced). Cannot be changed.
        type: str
      source_image:
        description: Image, or family of images, by its path. Counts when the disk is created.
        type: str
  network:
    description: Name of its network. Cannot be changed. This or O(subnetwork) is needed.
    type: str
  subnetwork:
    description: Name of its subnetwork. Cannot be changed.
    type: str
  address:
    description: Name of the static address that it is reached by. Without one it has no external address.
    type: str
  tags:
    description: Tags for firewall rules. They are all that it has. Without this option they stay as they are.
    type: list
    elements: str
  metadata:
    description: Metadata. They are all that it has. Without this option they stay as they are.
    type: dict
  service_account:
    description: Email address of the service account that it runs as. Without one it has no access to APIs of Google.
    type: str
  spot:
    description: Create a spot machine, which Google may stop at any time.
    type: bool
    default: false
  delete_data:
    description: Delete the boot disk as well, with O(state=absent).
    type: bool
    default: false
  wait_timeout:
    default: 600
"""

EXAMPLES = r"""
- name: Create the machine of the broker
  muster.ml.gcp_instance:
    project: my-project
    auth_kind: application
    name: broker
    zone: us-central1-b
    machine_type: e2-standard-2
    disk:
      size_gb: 20
      type: pd-balanced
      source_image: projects/debian-cloud/global/images/family/debian-12
    subnetwork: training
    address: broker
    tags: [broker]
    owner: training
"""

RETURN = r"""
kept:
  description: Reason why the resource was kept although O(state=absent) was given. A warning says the same.
  returned: when it was kept
  type: str
  sample: "Google machine broker was kept: it does not have the mark of this owner (muster-owner=team)"
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["compute:instances.insert (create)"]
instance:
  description: Machine as Compute Engine describes it, in snake_case. Empty if it does not exist.
  returned: success
  type: dict
  sample: {name: broker, status: RUNNING}
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge.cloud import NUMBER, group, text
from ansible_collections.muster.ml.plugins.module_utils._edge.gcp import converger, from_options, gcp_main, spec_of
from ansible_collections.muster.ml.plugins.module_utils._gcp.gcp_instance import GcpDisk, GcpInstance, look_up

ARGUMENT_SPEC = spec_of(
    GcpInstance, "found", wait=600, disk=group(size_gb=NUMBER, type=text(), source_image=text()),
    delete_data={"type": "bool", "default": False},
)  # fmt: skip


def boot_disk(params: dict[str, t.Any]) -> GcpDisk:
    return from_options(GcpDisk, {**params, "delete": params["delete_data"]})


execute = converger(GcpInstance, "instance", check=look_up, remains=boot_disk)


def main() -> None:
    gcp_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

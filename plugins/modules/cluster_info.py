# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_info
short_description: Report what a cluster offers to trainings, and what the user may do there
description:
  - Returns the version of a cluster, its nodes with their devices, storage classes, operators, the quotas of a namespace, and which rights
    of a Role the user lacks. C(playbooks/init.yml) writes an inventory from it.
  - What may not be read is empty, and listed in RV(unread).
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.attributes
  - muster.ml.attributes.kube_info
  - muster.ml.survey
seealso:
  - module: muster.ml.node_info
  - module: muster.ml.gang_preflight
"""

EXAMPLES = r"""
- name: Read what the cluster has, and whether trainings may be created
  muster.ml.cluster_info:
    namespace: ml
    rules:
      - {api_groups: [batch], resources: [jobs], verbs: [get, list, watch, create, patch, delete]}
  register: found

- name: Stop if rights are missing
  ansible.builtin.assert:
    that: found.lacking_rights | length == 0
    fail_msg: "Missing: {{ found.lacking_rights | join(', ') }}"
"""

RETURN = r"""
server_version:
  description: Version of the API server.
  returned: always
  type: str
  sample: v1.36.3
namespace:
  description: Name of the namespace, and whether it exists (null if that may not be read).
  returned: always
  type: dict
  sample: {name: ml, exists: true}
nodes:
  description: Number of nodes, and of those that are ready.
  returned: always
  type: dict
  sample: {ready: 2, total: 2}
devices:
  description: Extended resources, each with the number of its nodes and the amount on all of them.
  returned: always
  type: list
  elements: dict
  sample: [{name: nvidia.com/gpu, nodes: 2, amount: 16}]
tpus:
  description: Slices of TPUs on GKE by type and topology, each with the number of its nodes.
  returned: always
  type: list
  elements: dict
  sample: [{type: tpu-v5-lite-podslice, topology: 2x4, nodes: 2}]
storage_classes:
  description:
    - Storage classes with name and provisioner, whether each is the default, and whether several nodes can mount its volumes at a time
      (null if the provisioner is not known).
  returned: always
  type: list
  elements: dict
  sample: [{name: standard-rwx, provisioner: filestore.csi.storage.gke.io, default: false, shared: true}]
operators:
  description: Roles whose operators, or gateway_api, the cluster serves kinds of already.
  returned: always
  type: list
  elements: str
  sample: [jobset, kueue]
quotas:
  description: ResourceQuotas of the namespace with name, hard limits and what is used.
  returned: always
  type: list
  elements: dict
  sample: [{name: gpus, hard: {requests.nvidia.com/gpu: "8"}, used: {requests.nvidia.com/gpu: "2"}}]
lacking_rights:
  description: Rights of O(rules) that the user lacks.
  returned: always
  type: list
  elements: str
  sample: [create jobs.batch]
unread:
  description: Reasons why something could not be read.
  returned: always
  type: list
  elements: str
  sample: []
"""

from ansible_collections.muster.ml.plugins.module_utils._edge.options import SURVEY
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, Result, Spec, module_main
from ansible_collections.muster.ml.plugins.module_utils._kube.survey import survey

ARGUMENT_SPEC: Spec = {**SURVEY}


def execute(ctx: Context) -> Result:
    """Ask; nothing is written."""
    return {"changed": False, **survey(ctx.cluster, ctx.namespace, ctx.params["rules"])}


def main() -> None:
    module_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

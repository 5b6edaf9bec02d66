# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: doctor
short_description: Report faults in a namespace with their causes and next steps
description:
  - Reads the pods, workloads, claims, quotas, queues, certificates and servers of a namespace, and nodes, webhooks, APIs, DNS and clocks
    that they stand on, and returns a list of findings, each with its cause, the evidence and the next step. Nothing is written, and nothing
    is repaired.
  - What may not be read is not judged, and listed in RV(unread). Without the pods of the namespace the task fails.
author: Muster contributors (!UNKNOWN)
requirements:
  - cryptography >= 45.0.0, for certificates, which are not judged without it
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.attributes
  - muster.ml.attributes.kube_info
  - muster.ml.survey
seealso:
  - module: muster.ml.cluster_info
  - module: muster.ml.job_info
  - module: muster.ml.gang_preflight
"""

EXAMPLES = r"""
- name: Find faults
  muster.ml.doctor:
    namespace: ml
  register: doctor

- name: Stop if there is one
  ansible.builtin.assert:
    that: doctor.ok
    fail_msg: "{{ doctor.findings | map(attribute='cause') | join(', ') }}"
"""

RETURN = r"""
ok:
  description: True if there is no finding.
  returned: always
  type: bool
  sample: false
findings:
  description: Faults, errors first. Objects of one workload with the same cause are one finding.
  returned: always
  type: list
  elements: dict
  sample: [{severity: error, object: Pod ml/digits-0, cause: fits on no node,
    evidence: "Unschedulable: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
    next: "Lower the pod's request of nvidia.com/gpu, add nodes with it, or end what takes it."}]
  contains:
    severity:
      description: V(error) if something does not work, V(warning) if it may be on purpose, or will not work later.
      type: str
    object:
      description: Object that the finding is about.
      type: str
    cause:
      description: Cause, the same text for all findings of its kind.
      type: str
    evidence:
      description: Report of Kubernetes, or of the program itself.
      type: str
    next:
      description: Next step.
      type: str
unread:
  description: Reasons why something could not be read.
  returned: always
  type: list
  elements: str
  sample: []
"""

from ansible_collections.muster.ml.plugins.module_utils._doctor.diagnosis import diagnose
from ansible_collections.muster.ml.plugins.module_utils._edge.options import SURVEY
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, Result, Spec, module_main
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic import faults as elastic
from ansible_collections.muster.ml.plugins.module_utils._systems.nats import servers as nats
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq import health as rabbitmq

ARGUMENT_SPEC: Spec = {**SURVEY}

SYSTEMS = (elastic.faults, nats.faults, rabbitmq.faults)


def execute(ctx: Context) -> Result:
    """Look; nothing is written."""
    findings, unread = diagnose(ctx.cluster, ctx.namespace, ctx.params["rules"], SYSTEMS)
    return {"changed": False, "ok": not findings, "findings": [one.result() for one in findings], "unread": unread}


def main() -> None:
    module_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

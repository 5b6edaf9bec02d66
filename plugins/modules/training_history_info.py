#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: training_history_info
short_description: List the records of trainings that have ended
description:
  - Returns the records of trainings that have ended or were removed. They are kept in ConfigMap C(muster-history) of the namespace, the
    latest 100.
  - A module that waits for a training records it when it has ended, and each before it removes one or trains it again.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.attributes
  - muster.ml.attributes.kube_info
options:
  namespace:
    description: Namespace of the trainings. Defaults to all namespaces.
    type: str
"""

EXAMPLES = r"""
- name: Read what was trained
  muster.ml.training_history_info:
    namespace: ml
  register: history

- name: Show the latest training
  ansible.builtin.debug:
    msg: "{{ history.records | first | default('none') }}"
"""

RETURN = r"""
records:
  description: Records, the newest first.
  returned: success
  type: list
  elements: dict
  sample: [{namespace: ml, name: adult, kind: persia_job, backend: native, uid: 0f8d2f54-6f0c-4b53-9c61-0a6c9b7a1a52, state: Succeeded,
    reason: "", by: kubernetes-admin, started: "2026-11-23T03:00:00Z", ended: "2026-11-23T03:04:10Z", lasted: 4 min, pods: 2,
    world_size: 2, restarts: 0, gpu_hours: 0.14,
    images: {"example/torch:1": "example/torch@sha256:6d3c3b9f7f7d0d4d2b7c8f0e5a41d9c0b8a7f6e5d4c3b2a190817263544f3e2d"},
    progress: {step: 240, steps: 240, epoch: 10, epochs: 10, percent: 100, metrics: {accuracy: 0.9524}, line: "100 %, accuracy 0.9524"},
    options: {image: 5d41402abc4b}, files: {train.py: 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824}}]
  contains:
    namespace:
      description: Namespace of the training.
      type: str
    name:
      description: Name of the training.
      type: str
    kind:
      description: Module that managed the training.
      type: str
    backend:
      description: Backend of the training, if it has several.
      type: str
    uid:
      description: The uid of the workload, which no other training of the same name has.
      type: str
    state:
      description: V(Succeeded), V(Failed), or V(Stopped) if it was removed or trained again before it ended.
      type: str
    reason:
      description: Reason for the state.
      type: str
    by:
      description: User of the run that recorded it, in the words of the API server.
      type: str
    started:
      description: Start of the first container.
      type: str
    ended:
      description: End of the last container, or time of the record.
      type: str
    lasted:
      description: Time between both, as a text.
      type: str
    pods:
      description: Number of pods that trained at the end.
      type: int
    world_size:
      description: Number of processes in the last rendezvous of an elastic job.
      type: int
    restarts:
      description: Number of restarts of containers in these pods.
      type: int
    gpu_hours:
      description: Hours of GPUs and TPUs of the last containers of the pods that were there at the end.
      type: float
    images:
      description: Images of the pods, each with the digest that the node has pulled.
      type: dict
    progress:
      description: Last progress, as in M(muster.ml.job_info).
      type: dict
    options:
      description: Fingerprints of the options that it was made with, without their values.
      type: dict
    files:
      description: SHA-256 of each file of the program.
      type: dict
"""

from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, Result, Spec, module_main
from ansible_collections.muster.ml.plugins.module_utils._training import history

ARGUMENT_SPEC: Spec = {"namespace": {"type": "str"}}


def execute(ctx: Context) -> Result:
    """Read the records."""
    return {"changed": False, "records": history.records(ctx.cluster, ctx.params["namespace"])}


def main() -> None:
    module_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

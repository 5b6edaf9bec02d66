#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: job_info
short_description: How a training is doing, rank by rank
version_added: 0.1.0
description:
  - Tells the state of a training and why it is in it, in words, and the same for each of its groups and ranks.
  - Knows trainings of M(muster.ml.persia_job) on both backends, those of M(muster.ml.elastic_job) with their world size and step, and
    groups of M(muster.ml.training_statefulset).
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.attributes
  - muster.ml.attributes.kube_info
  - muster.ml.training
"""

EXAMPLES = r"""
- name: How is it doing?
  muster.ml.job_info:
    name: adult
    namespace: ml
  register: job

- name: Say it
  ansible.builtin.debug:
    msg: "{{ job.state }} {{ job.reason }}"
"""

RETURN = r"""
exists:
  description: Whether there is anything of it in the cluster.
  returned: success
  type: bool
state:
  description:
    - V(Pending) before all pods run for the first time, V(Running), V(Succeeded), V(Failed).
    - V(Degraded) where it has begun and some part does not run, V(Unknown) where there is nothing of it.
  returned: success
  type: str
  sample: Degraded
reason:
  description: Why, in words; empty where all is well.
  returned: success
  type: str
  sample: "trainer: adult-trainer-1-x7k2p: OOMKilled (exit status 137)"
backend:
  description: The backend of a M(muster.ml.persia_job) or M(muster.ml.elastic_job).
  returned: success
  type: str
  sample: native
world:
  description:
    - What the pods of an elastic job say in their logs; nothing for other trainings, and each of it V(null) until somebody says it.
    - Epoch, step, accuracy and C(world_size) come from the script, see M(muster.ml.elastic_job).
  returned: success
  type: dict
  sample: {nodes: 3, world_size: 3, round: 2, epoch: 7, step: 181, accuracy: 0.95, reason: ""}
  contains:
    nodes:
      description: Number of pods in the newest rendezvous.
      type: int
      returned: for elastic jobs
    world_size:
      description: Number of processes that train together.
      type: int
      returned: for elastic jobs
    round:
      description: How often the pods had met before; each change of membership is one more.
      type: int
      returned: for elastic jobs
    epoch:
      description: The epoch it is in, from 0.
      type: int
      returned: for elastic jobs
    step:
      description: The newest step.
      type: int
      returned: for elastic jobs
    accuracy:
      description: The newest accuracy.
      type: float
      returned: for elastic jobs
    reason:
      description: What keeps the pods from meeting, as one of them says it.
      type: str
      returned: for elastic jobs
summary:
  description: The same in a few values, as M(muster.ml.persia_job) and M(muster.ml.elastic_job) return them.
  returned: success
  type: dict
  sample: {ok: true, state: Running, job: ml/adult, pods: 4, backend: native}
table:
  description: The same as lines for people.
  returned: success
  type: list
  elements: str
  sample: ["trainer: 1", "data-compose: 1"]
groups:
  description: The groups.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the group.
      type: str
      returned: always
    role:
      description: What its processes are to PERSIA, or V(worker).
      type: str
      returned: always
    kind:
      description: Kind of its workload.
      type: str
      returned: always
    wanted:
      description: Number of ranks that there should be.
      type: int
      returned: always
    running:
      description: Number of ranks that run.
      type: int
      returned: always
    succeeded:
      description: Number of ranks that ended well.
      type: int
      returned: always
    failed:
      description: Number of ranks that ended badly and were not replaced.
      type: int
      returned: always
    state:
      description: State of the group.
      type: str
      returned: always
    reason:
      description: Why it is in that state.
      type: str
      returned: always
    ranks:
      description: Its ranks.
      type: list
      elements: dict
      returned: always
      contains:
        rank:
          description: Index of the rank.
          type: int
          returned: always
        pod:
          description: Name of its newest pod.
          type: str
          returned: always
        node:
          description: Node of the pod.
          type: str
          returned: always
        phase:
          description: Phase of the pod.
          type: str
          returned: always
        ready:
          description: Whether the pod is ready.
          type: bool
          returned: always
        restarts:
          description: How often its container was restarted.
          type: int
          returned: always
        reason:
          description: Why it does not run.
          type: str
          returned: always
        message:
          description: Its last words; of a trainer that ended well, the results that it saved.
          type: str
          returned: always
        exit_code:
          description: Exit status of the container, null while it runs.
          type: int
          returned: always
        started:
          description: When it started.
          type: str
          returned: always
        finished:
          description: When it ended.
          type: str
          returned: always
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge import trainings
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, module_main
from ansible_collections.muster.ml.plugins.module_utils._edge.systems import KINDS, WHICH

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = WHICH

CONSTRAINTS: dict[str, t.Any] = {}


def execute(ctx: Context) -> dict[str, t.Any]:
    """Read the state."""
    return trainings.info(ctx, KINDS[ctx.params["kind"]])


def main() -> None:
    """Run as a module."""
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

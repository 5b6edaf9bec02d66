#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: job_info
short_description: Report the state of a training, rank by rank
description:
  - Returns the state of a training with its reason, and the same for each of its groups and ranks.
  - A training is one of any module for trainings, which O(kind) names. Each slice of a M(muster.ml.jobset) is a group.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.attributes
  - muster.ml.attributes.kube_info
  - muster.ml.training
options:
  plots:
    description: Make plots from the logs of the first and the last rank, RV(plots). At most 10,000 lines of each are read.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Read the state of the training
  muster.ml.job_info:
    name: adult
    namespace: ml
  register: job

- name: Show the state of the training
  ansible.builtin.debug:
    msg: "{{ job.state }} {{ job.reason }}"
"""

RETURN = r"""
exists:
  description: True if any object of the training exists.
  returned: success
  type: bool
  sample: true
state:
  description:
    - State of the training. V(Pending) until all pods run for the first time, then V(Running), V(Succeeded) or V(Failed).
    - V(Degraded) if a part of a started training does not run, V(Unknown) if the training does not exist.
  returned: success
  type: str
  sample: Degraded
reason:
  description: Reason for the state. Empty when nothing is wrong.
  returned: success
  type: str
  sample: "trainer: adult-trainer-1-x7k2p: OOMKilled (exit status 137)"
backend:
  description: Backend of a M(muster.ml.persia_job) or M(muster.ml.elastic_job).
  returned: success
  type: str
  sample: native
world:
  description:
    - Progress in the logs of an elastic job's pods. Empty for other trainings. Each value is V(null) until a pod logs it.
    - Epoch, step, accuracy and C(world_size) are logged by the script, see M(muster.ml.elastic_job).
  returned: success
  type: dict
  sample: {nodes: 3, world_size: 3, round: 2, epoch: 7, step: 181, accuracy: 0.95, reason: ""}
  contains:
    nodes:
      description: Number of pods in the latest rendezvous.
      type: int
      returned: for elastic jobs
    world_size:
      description: Number of processes that train together.
      type: int
      returned: for elastic jobs
    round:
      description: Number of earlier rendezvous. Each change of membership adds one.
      type: int
      returned: for elastic jobs
    epoch:
      description: Current epoch, from 0.
      type: int
      returned: for elastic jobs
    step:
      description: Latest step.
      type: int
      returned: for elastic jobs
    accuracy:
      description: Latest accuracy.
      type: float
      returned: for elastic jobs
    reason:
      description: Reason why the pods have not completed a rendezvous, as one of them reports it.
      type: str
      returned: for elastic jobs
progress:
  description:
    - Progress that the training program prints. Each value is V(null) until its log has it.
    - Read are the formats of the roles' examples, tqdm, Hugging Face Transformers, PyTorch Lightning, Keras, MaxText, Megatron-LM and the
      examples of PyTorch, in the last lines of the first and the last rank.
  returned: success
  type: dict
  sample: {step: 1023, steps: 2400, epoch: 5, epochs: 10, percent: 42, metrics: {loss: 0.2312}, rate: 85.1, seconds_left: 16.2,
    line: "42 %, 16 s left, epoch 5 of 10, step 1023 of 2400, loss 0.2312, 85.1 steps/s"}
  contains:
    step:
      description: Latest step, of the training or of the epoch, as the program counts them.
      type: int
    steps:
      description: Total number of steps.
      type: int
    epoch:
      description: Latest epoch, as the program counts them. Those of an elastic job's script are counted from 1.
      type: float
    epochs:
      description: Total number of epochs.
      type: int
    percent:
      description: Share of the training that is done, if its end is known.
      type: int
    metrics:
      description: Latest loss, accuracy and AUC.
      type: dict
    rate:
      description: Steps a second; of a program that prints epochs only, epochs a second. It is computed if the program does not print it.
      type: float
    seconds_left:
      description: Seconds until the end of the training. It is computed if the program does not print it.
      type: float
    line:
      description: Progress as a clause.
      type: str
record:
  description: The training as M(muster.ml.training_history_info) would have it if it ended now. Empty if it does not exist.
  returned: success
  type: dict
  sample: {started: "2026-11-23T03:00:00Z", lasted: 4 min, pods: 2, restarts: 0, gpu_hours: 0.14}
plots:
  description: Loss, steps a second, number of processes, and faults over time. Empty if O(plots) is V(false), or if the logs tell none.
  returned: success
  type: list
  elements: dict
  sample: [{name: loss, path: 'M0.0,0.0L600.0,100.0', spark: █▅▃▂▁, low: '0.2312', high: '2.284', last: '0.2312',
    lasts: 12 min, faults: [{x: 123.4, what: 'digits-1-x7k2p: OOMKilled (exit status 137)'}]}]
  contains:
    name:
      description: Quantity.
      type: str
    path:
      description: Path of SVG, 600 wide and 100 high.
      type: str
    spark:
      description: Values as a line of bars.
      type: str
    low:
      description: Least value.
      type: str
    high:
      description: Greatest value.
      type: str
    last:
      description: Last value.
      type: str
    lasts:
      description: Time from the left to the right.
      type: str
    faults:
      description: Containers that ended badly, each with its place C(x) and C(what) ended.
      type: list
      elements: dict
summary:
  description: Key figures of the training, as in the module that created it.
  returned: success
  type: dict
  sample: {ok: true, state: Running, job: ml/adult, pods: 4, backend: native}
table:
  description: State and progress as lines of text.
  returned: success
  type: list
  elements: str
  sample: ["trainer: 1", "data-compose: 1"]
groups:
  description: Groups of the training.
  returned: success
  type: list
  elements: dict
  sample: [{name: trainer, role: nn_worker, kind: Job, desired: 2, running: 1, succeeded: 0, failed: 1, state: Degraded,
    reason: 'adult-trainer-1-x7k2p: OOMKilled (exit status 137)', ranks: [{rank: 1, pod: adult-trainer-1-x7k2p, node: node-2,
    phase: Failed, ready: false, restarts: 0, reason: OOMKilled, message: '', exit_code: 137, started: '2026-11-23T03:00:00Z',
    finished: '2026-11-23T03:04:10Z'}]}]
  contains:
    name:
      description: Name of the group.
      type: str
    role:
      description: Role of the group's processes in PERSIA, or V(worker).
      type: str
    kind:
      description: Kind of the group's workload.
      type: str
    desired:
      description: Desired number of ranks.
      type: int
    running:
      description: Number of running ranks.
      type: int
    succeeded:
      description: Number of ranks that succeeded.
      type: int
    failed:
      description: Number of ranks that failed and were not replaced.
      type: int
    state:
      description: State of the group.
      type: str
    reason:
      description: Reason for the state of the group.
      type: str
    ranks:
      description: Ranks of the group.
      type: list
      elements: dict
      contains:
        rank:
          description: Index of the rank.
          type: int
        pod:
          description: Name of the rank's latest pod.
          type: str
        node:
          description: Node of the pod.
          type: str
        phase:
          description: Phase of the pod.
          type: str
        ready:
          description: True if the pod is ready.
          type: bool
        restarts:
          description: Number of restarts of the main container.
          type: int
        reason:
          description: Reason why the rank does not run.
          type: str
        message:
          description: Last message of the pod. For a trainer that succeeded, the results that it saved.
          type: str
        exit_code:
          description: Exit status of the main container. Null while it runs.
          type: int
        started:
          description: Start time of the container.
          type: str
        finished:
          description: End time of the container.
          type: str
"""

from ansible_collections.muster.ml.plugins.module_utils._edge import trainings
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, Result, Spec, module_main
from ansible_collections.muster.ml.plugins.module_utils._edge.systems import KINDS, WHICH

ARGUMENT_SPEC: Spec = {**WHICH, "plots": {"type": "bool", "default": False}}


def execute(ctx: Context) -> Result:
    """Read the state."""
    return trainings.info(ctx, KINDS[ctx.params["kind"]])


def main() -> None:
    module_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

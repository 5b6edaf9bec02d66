#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: job_stacks
short_description: Read the stacks of all ranks of a training
description:
  - Shows where a training hangs. The Python stacks of all its processes are read at once and equal ones folded, that of the fewest
    threads first, so that the rank for which all others wait is the first.
  - A rank is read with the C(py-spy) of its image, or else with that of O(image) in an ephemeral container. Only names of functions and
    files and numbers of lines are read, no values of variables.
  - The kubeconfig's user needs the verbs C(get) and C(create) for C(pods/exec), and with O(image) C(get) for C(pods) and C(pods/log),
    and C(patch) for C(pods/ephemeralcontainers).
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.attributes
  - muster.ml.attributes.kube_info
  - muster.ml.training
attributes:
  check_mode:
    support: full
    details:
      - Ranks whose image has no C(py-spy) are not read in check mode; O(image) is reported as a change.
  diff_mode:
    support: full
    details:
      - Names each pod to which an ephemeral container is added.
  idempotent:
    support: partial
    details:
      - An ephemeral container ends at once, and stays in the pod's specification as long as the pod. Each run adds one.
options:
  group_names:
    description: Groups to read, such as V(trainer). All groups by default.
    type: list
    elements: str
    default: []
  image:
    description:
      - Image with C(py-spy) and C(sh) for ranks whose own image has no C(py-spy), or where that may not read the processes.
      - Its container runs as root with the capability C(SYS_PTRACE) where the Pod Security level of the namespace allows it. Elsewhere it
        has the security context of the rank's container, so that the user must be the same.
    type: str
  nonblocking:
    description: Read without stopping a process for the milliseconds that it takes. A stack that changes meanwhile may be wrong.
    type: bool
    default: false
  wait_timeout:
    description: Seconds after which ranks that have not been read are reported as such.
    type: int
    default: 30
"""

EXAMPLES = r"""
- name: Find the rank for which all others wait
  muster.ml.job_stacks:
    name: mnist
    namespace: ml
    kind: elastic_job
    image: registry.example.com/py-spy:0.4.3
  register: stacks

- name: Show it
  ansible.builtin.debug:
    msg: "{{ stacks.table }}"
"""

RETURN = r"""
folds:
  description: Each stack once. Those of main threads are first, and of these the one with the fewest threads.
  returned: success
  type: list
  elements: dict
  sample: [{stack: ['train.py:88 load_batch', 'train.py:120 main'], ranks: [worker-3], threads: 1, thread: MainThread, idle: true}]
  contains:
    stack:
      description: Frames as file, line and function, the innermost one first.
      type: list
      elements: str
    ranks:
      description: Ranks that have the stack, each as group and index.
      type: list
      elements: str
    threads:
      description: Number of threads that have the stack.
      type: int
    thread:
      description: Name of the thread in the first of the processes; empty if it has none.
      type: str
    idle:
      description: True if none of the threads uses a processor.
      type: bool
unread:
  description: Ranks of which processes were not read.
  returned: success
  type: list
  elements: dict
  sample: [{rank: worker-0, pod: mnist-worker-0-k2xw7, reason: its image has no py-spy,
    next: "Set image to one with py-spy and sh, such as that of recipe py-spy of role local_images."}]
  contains:
    rank:
      description: Group and index.
      type: str
    pod:
      description: Name of the pod.
      type: str
    reason:
      description: Reason, in the words of the program that refused.
      type: str
    next:
      description: Next step; empty if the reason has it.
      type: str
recordings:
  description:
    - Files that the flight recorder of PyTorch has written in the ranks' containers, for C(torchfrtrace). They are not read, because to
      read a pickle is to run what it says.
  returned: success
  type: list
  elements: dict
  sample: [{rank: worker-0, path: /tmp/nccl_trace_rank_0}]
  contains:
    rank:
      description: Group and index.
      type: str
    path:
      description: Path in the container.
      type: str
table:
  description: Stacks and ranks as lines of text.
  returned: success
  type: list
  elements: str
  sample: ["worker-3: MainThread waits in", "    train.py:88 load_batch"]
"""

from ansible_collections.muster.ml.plugins.module_utils._core.clock import Deadline
from ansible_collections.muster.ml.plugins.module_utils._edge import trainings
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, Result, Spec, module_main
from ansible_collections.muster.ml.plugins.module_utils._edge.systems import KINDS, WHICH
from ansible_collections.muster.ml.plugins.module_utils._training.spying import Spying
from ansible_collections.muster.ml.plugins.module_utils._training.stacks import folded, table

ARGUMENT_SPEC: Spec = {
    **WHICH,
    "group_names": {"type": "list", "elements": "str", "default": []},
    "image": {"type": "str"},
    "nonblocking": {"type": "bool", "default": False},
    "wait_timeout": {"type": "int", "default": 30},
}


def execute(ctx: Context) -> Result:
    """Read the stacks of the ranks that run."""
    params = ctx.params
    deadline = Deadline(params["wait_timeout"], ctx.clock)
    ranks = [(f"{group}-{rank.rank}", rank) for group, rank in trainings.chosen(ctx, KINDS[params["kind"]])]
    spying = Spying(ctx.cluster, ctx.namespace, params["image"], params["nonblocking"], ctx.check, deadline)
    seen = spying.read(ranks)
    folds = folded(thread for one in seen for thread in one.threads)
    unread = [
        {"rank": name, "pod": rank.pod, "reason": "; ".join(one.troubles), "next": one.next}
        for (name, rank), one in zip(ranks, seen, strict=True)
        if one.troubles
    ]
    recordings = [{"rank": name, "path": path} for (name, _rank), one in zip(ranks, seen, strict=True) for path in one.recordings]
    found = {"folds": folds, "unread": unread, "recordings": recordings, "table": table(folds, unread, recordings)}
    added = [f"Pod {ctx.namespace}/{rank.pod}: ephemeral container" for (_name, rank), one in zip(ranks, seen, strict=True) if one.added]
    return {**ctx.changes(added), **found}


def main() -> None:
    module_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

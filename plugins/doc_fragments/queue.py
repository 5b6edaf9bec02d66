# SPDX-License-Identifier: GPL-3.0-or-later
"""Options for a queue of Kueue; the same as QUEUE in module_utils/_edge/groups.py."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  queue_name:
    description:
      - LocalQueue of Kueue in the namespace. All pods begin when its quota has room for all of them, and are deleted when Kueue stops the
        training for the sake of another one; it then waits in the queue again.
      - Needs Kueue, see P(muster.ml.kueue#role). Without O(recreate=true) it cannot be changed.
    type: str
  queue_priority_class:
    description: WorkloadPriorityClass of Kueue. It decides about the order in the queue and what may be stopped, not about nodes.
    type: str
"""

    SERVERS = r"""
options:
  queue_name:
    description:
      - LocalQueue of Kueue in the namespace. Each pod waits by itself until the quota has room for it, and is replaced by one that waits
        when Kueue stops it for the sake of something else. The pods that were admitted serve meanwhile.
      - Needs Kueue, see P(muster.ml.kueue#role). Kueue refuses another queue while a pod is ready.
    type: str
  queue_priority_class:
    description: WorkloadPriorityClass of Kueue. It decides about the order in the queue and what may be stopped, not about nodes.
    type: str
"""

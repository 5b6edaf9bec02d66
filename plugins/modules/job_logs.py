#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: job_logs
short_description: Read the logs of all ranks of a training
description:
  - Returns the logs of all ranks of a training, each line prefixed with its rank, and the matches of a pattern in them.
  - A training is one of any module for trainings, which O(kind) names.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.attributes
  - muster.ml.attributes.kube_info
  - muster.ml.training
options:
  group_names:
    description: Groups to read, such as V(trainer). All groups by default.
    type: list
    elements: str
    default: []
  tail_lines:
    description: Number of lines from the end of each rank's log. V(0) for all lines.
    type: int
    default: 100
  previous:
    description: Read the log of the container before its last restart, for ranks that have restarted.
    type: bool
    default: false
  search:
    description:
      - Regular expression with named groups, such as V(loss=(?P<loss>[0-9.]+\) auc=(?P<auc>[0-9.]+\)). Each match is returned in RV(found).
      - The whole log is searched, whatever O(tail_lines) is.
    type: str
  matches:
    description: Number of matches of O(search) to wait for. The training and its pods need not exist yet. V(0) does not wait.
    type: int
    default: 0
  wait_timeout:
    description: Seconds after which waiting for O(matches) fails.
    type: int
    default: 120
"""

EXAMPLES = r"""
- name: Read the last lines of the trainers
  muster.ml.job_logs:
    name: adult
    namespace: ml
    group_names: [trainer]
    tail_lines: 20

- name: Find loss and AUC
  muster.ml.job_logs:
    name: adult
    namespace: ml
    group_names: [trainer]
    search: 'epoch=(?P<epoch>\d+) loss=(?P<loss>[\d.]+) auc=(?P<auc>[\d.]+)'
  register: logs

- name: Wait until the training has made three epochs
  muster.ml.job_logs:
    name: adult
    namespace: ml
    group_names: [trainer]
    search: 'epoch=(?P<epoch>\d+)'
    matches: 3
"""

RETURN = r"""
lines:
  description: Lines of all ranks, each prefixed with its group and rank.
  returned: success
  type: list
  elements: str
  sample: ["[trainer-0] epoch=1 loss=0.5510 auc=0.7282"]
ranks:
  description: Logs by rank.
  returned: success
  type: list
  elements: dict
  sample: [{group: worker, rank: 0, pod: digits-0, text: 'epoch 7: accuracy 0.95'}]
  contains:
    group:
      description: Name of the group.
      type: str
    rank:
      description: Index of the rank.
      type: int
    pod:
      description: Name of the pod.
      type: str
    text:
      description: Log of the rank.
      type: str
found:
  description: Named groups of each match of O(search), with C(group) and C(rank) of the log.
  returned: when O(search) is given
  type: list
  elements: dict
  sample: [{"group": "trainer", "rank": 0, "epoch": "1", "loss": "0.5510", "auc": "0.7282"}]
"""

import re
import typing as t

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, NotFound
from ansible_collections.muster.ml.plugins.module_utils._edge import groups, trainings
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, module_main
from ansible_collections.muster.ml.plugins.module_utils._edge.systems import KINDS, WHICH
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import check_pattern
from ansible_collections.muster.ml.plugins.module_utils._training.logs import read_logs

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    **WHICH,
    "group_names": {"type": "list", "elements": "str", "default": []},
    "tail_lines": {"type": "int", "default": 100},
    "previous": {"type": "bool", "default": False},
    "search": {"type": "str"},
    "matches": {"type": "int", "default": 0},
    "wait_timeout": {"type": "int", "default": 120},
}

_LOOK_AGAIN = 0.5


def execute(ctx: Context) -> dict[str, t.Any]:
    """Read the logs, again and again until they have enough matches."""
    params = ctx.params
    text, desired = params["search"], params["matches"]
    pattern = None if text is None else check_pattern(text, "search", re.MULTILINE)
    if not desired:
        return _read(ctx, pattern)
    if pattern is None:
        raise InvalidInput(f"matches: {desired} has nothing to count.", hint="Set search to the regular expression to wait for.")

    def observe() -> tuple[dict[str, t.Any], str | None]:
        try:
            result = _read(ctx, pattern)
        except NotFound as exc:
            _look_for_kinds(ctx)
            return {}, exc.message
        count = len(result["found"])
        return result, None if count >= desired else f"{count} of {desired} matches of {params['search']}"

    goal = f"The logs of training {params['name']} do not have {desired} matches of {params['search']}"
    return groups.waited(ctx, observe, goal=goal, every=_LOOK_AGAIN)


def _look_for_kinds(ctx: Context) -> None:
    """Discover kinds that were not served: an operator's CustomResourceDefinition may be installed while the module waits."""
    for backend in KINDS[ctx.params["kind"]].backends:
        for kind in backend.workloads:
            if ctx.cluster.resource(kind.api_version, kind.kind) is None:
                ctx.cluster.resource(kind.api_version, kind.kind, refresh=True)


def _read(ctx: Context, pattern: re.Pattern[str] | None) -> dict[str, t.Any]:
    params = ctx.params
    namespace, tail = ctx.namespace, params["tail_lines"]
    known = trainings.chosen(ctx, KINDS[params["kind"]])
    chosen = [(group, rank) for group, rank in known if rank.restarts or not params["previous"]]
    ranks = [rank for _group, rank in chosen]
    lines_of_each = None if pattern or not tail else tail
    texts = read_logs(ctx.cluster, namespace, ranks, tail_lines=lines_of_each, previous=params["previous"])
    found = [(group, rank, text) for (group, rank), text in zip(chosen, texts, strict=True)]
    result: dict[str, t.Any] = {"changed": False, "lines": [], "ranks": []}
    for group, rank, text in found:
        lines = text.splitlines()[-tail:] if tail else text.splitlines()
        result["lines"] += [f"[{group}-{rank.rank}] {line}" for line in lines]
        result["ranks"].append({"group": group, "rank": rank.rank, "pod": rank.pod, "text": "\n".join(lines)})
    if pattern:
        result["found"] = [
            {"group": group, "rank": rank.rank, **match.groupdict()} for group, rank, text in found for match in pattern.finditer(text)
        ]
    return result


def main() -> None:
    module_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

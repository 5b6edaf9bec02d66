# SPDX-License-Identifier: GPL-3.0-or-later
"""The specifics of a training as a JobSet: its groups are its slices, and its conditions have the outcome."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Mapping, Sequence

from ..._core.brief import plural
from ..._core.conditions import condition, is_true
from ..._gang.groups import PodSet, at_once
from ..._kube.objects import Manifest, annotations_of, labels_of
from ..._manifests.meta import LABEL_ROLE
from ..._training.kind import Backend, Desired, Goal, Kind, Observed
from ..._training.status import GroupStatus, Workload, judge_group, ranks_of
from .manifests import ANNOTATION_EXCLUSIVE, API_VERSION, JOB_SET, LABEL_JOB_INDEX, LABEL_REPLICATED_JOB, manifests
from .spec import JobSet, from_params

_ENDED = ("Succeeded", "Failed")


def pod_sets(item: Manifest) -> list[PodSet]:
    """The pods of a JobSet: those of all Jobs of a replicated job are one set."""
    found = []
    for row in item["spec"]["replicatedJobs"]:
        exclusive = {**annotations_of(item), **annotations_of(row["template"])}.get(ANNOTATION_EXCLUSIVE)
        caveats = (f"exclusive placement by {exclusive}",) if exclusive else ()
        job, name = row["template"]["spec"], f"{item['metadata']['name']}-{row['name']}"
        found.append(PodSet(name, int(row.get("replicas", 1)) * at_once(job), job["template"], caveats))
    return found


_FORM = Workload(API_VERSION, JOB_SET, ends=True, pod_sets=pod_sets)


def desired(params: Mapping[str, t.Any]) -> Desired:
    """The training that module options describe."""
    job = from_params(params)
    return Desired.of_program(KIND, job, manifests(job), backend=KIND.backends[0], suspended=bool(job.suspend))


def groups(live: Manifest, pods: Sequence[Manifest]) -> list[GroupStatus]:
    """One group for each Job of the JobSet."""
    found = []
    for row in live["spec"]["replicatedJobs"]:
        for index in range(int(row.get("replicas", 1))):
            own = {LABEL_REPLICATED_JOB: row["name"], LABEL_JOB_INDEX: str(index)}
            group = GroupStatus(
                name=f"{row['name']}-{index}",
                role=labels_of(row["template"]["spec"]["template"]).get(LABEL_ROLE, ""),
                kind=JOB_SET,
                desired=int(row["template"]["spec"].get("completions", 1)),
                ranks=ranks_of(pod for pod in pods if own.items() <= labels_of(pod).items()),
            )
            found.append(_judged(live, group))
    return found


def _judged(live: Manifest, group: GroupStatus) -> GroupStatus:
    if is_true(live, "Completed"):
        return dataclasses.replace(group, state="Succeeded")
    if is_true(live, "Failed"):
        ended = condition(live, "Failed")
        lines = [f"{rank.pod}: {rank.message or rank.reason}" for rank in group.ranks if rank.phase == "Failed"]
        why = "; ".join(lines) or ended.get("message") or ""
        return dataclasses.replace(group, state="Failed", reason=f"{ended.get('reason') or 'Failed'}: {why}")
    if is_true(live, "Suspended"):
        return dataclasses.replace(group, state="Pending", reason="is suspended")
    judged, restarts = judge_group(group), _restarts(live)
    if judged.state in ("Pending", "Degraded") and restarts:
        return dataclasses.replace(judged, reason=f"{judged.reason}, after {plural(restarts, 'restart')}")
    return judged


def _restarts(live: Manifest) -> int:
    return int((live.get("status") or {}).get("restarts") or 0)


def _pending_reason(desired: Desired, _before: Observed, observed: Observed, goal: Goal) -> str | None:
    """Return what the goal still lacks. A training to be suspended has reached it when it is suspended and its pods are gone."""
    if desired.suspended:
        left = [rank.pod for group in observed.status.groups for rank in group.ranks if rank.phase not in _ENDED]
        if left or not all(is_true(live, "Suspended") for live in observed.workloads):
            return f"is not suspended yet, {plural(len(left), 'pod')} left"
        return None
    return None if goal == "running" and observed.status.state == "Running" else observed.line()


def _results(observed: Observed) -> dict[str, t.Any]:
    status = observed.status
    live = observed.workloads[0] if observed.workloads else {}
    restarts = _restarts(live)
    summary = {**status.summary(), "slices": len(status.groups), "restarts": restarts}
    hosts = status.groups[0].desired if status.groups else 0
    line = f"JobSet {status}: {status.state}, {plural(len(status.groups), 'slice')} of {plural(hosts, 'host')}"
    return {"summary": summary, "table": [f"{line}, {plural(restarts, 'restart')}", *status.table()]}


KIND = Kind(
    name="jobset",
    title="JobSet",
    label=JobSet.label,
    backends=(
        Backend(
            name="",
            label=JobSet.label,
            workloads=(_FORM,),
            installed_by="JobSet (role muster.ml.jobset)",
            immutable_because="the Jobs of a JobSet cannot change",
            judge=groups,
        ),
    ),
    pending_reason=_pending_reason,
    results=_results,
)

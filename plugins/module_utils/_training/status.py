# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a training, computed from its pods and workloads: one state, one reason, and all ranks."""

from __future__ import annotations

import copy
import dataclasses
import functools
import re
import typing as t
from collections.abc import Iterable, Mapping, Sequence

from .._core.brief import Missing, grouped
from .._core.conditions import condition, is_true
from .._gang.groups import PodSets
from .._kube.objects import GroupKind, group_of
from .._kube.pod_status import EndedRun, ended_runs, image_trouble, main_status, sidecars_of, why_not_running
from .._manifests.meta import LABEL_GROUP, LABEL_QUEUE, LABEL_ROLE, Manifest

State = t.Literal["Pending", "Running", "Succeeded", "Failed", "Degraded", "Unknown"]

INDEX_LABELS = ("batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index")
_MESSAGE_LINES = 6
_EVENT = re.compile(r"muster\.ml/\w+ \{")
"""The begin of a line for programs, such as a step of an elastic training."""
# What launchers write last: a traceback of their own (torchrun, accelerate), or lines after which nothing is the program's (Open MPI).
_LAUNCHER_END = re.compile(r"CalledProcessError|ChildFailedError|Primary job +terminated normally|mpirun (?:detected|noticed) that ")
# Lines of the elastic agent, of DeepSpeed's launcher, and of an interpreter or process group that ends with an error.
_LAUNCHER_LINE = re.compile(
    r"torch[./]distributed[./]elastic[./]\S+\d\]|torch\.distributed\.elastic\.(?!\S*Error)\S+:|launch\.py:\d+:sigkill_handler\]|"
    r"process group has NOT been destroyed|resource_tracker: There appear to be|^  warnings\.warn\("
)
_PRIVATE = ("created", "stuck", "image_trouble", "ended_runs")
# The taint with which an administrator declares that the node is off, and its pods with it.
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"


@dataclasses.dataclass(frozen=True)
class Workload:
    """A kind of object that creates the pods of one group."""

    api_version: str
    kind: str
    size: Sequence[tuple[str, ...]] = (("spec", "replicas"),)
    """Paths of the fields with the number of its pods; all are set together. None: another workload makes pods of its template."""
    ends: bool = False
    """Whether its conditions say that it has ended."""
    pod_sets: PodSets | None = None
    """The pods that an object of a custom kind makes."""

    @property
    def group_kind(self) -> GroupKind:
        """The kind of object, whatever the version of its API."""
        return (group_of(self.api_version), self.kind)

    def desired_replicas(self, live: Manifest) -> int:
        """The number of pods in its spec."""
        value: t.Any = live
        for key in self.size[0]:
            value = value.get(key) if isinstance(value, Mapping) else None
        return 1 if value is None else int(value)

    def sized(self, manifest: Manifest, size: int) -> Manifest:
        """A copy of the object with SIZE pods."""
        made = copy.deepcopy(manifest)
        for path in self.size:
            place = made
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = size
        return made


STATEFUL_SET = Workload("apps/v1", "StatefulSet")
JOB = Workload("batch/v1", "Job", size=(("spec", "completions"), ("spec", "parallelism")), ends=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rank:
    """One pod of a group, the newest of its index."""

    rank: int
    pod: str
    node: str | None = None
    phase: str = "Pending"
    ready: bool = False
    restarts: int = 0
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    created: str = ""
    started: str | None = None
    finished: str | None = None
    # Waiting longer does not help, because the cause is permanent.
    stuck: bool = False
    # Why the image is not pulled, and whether the registry has refused it.
    image_trouble: tuple[str, bool] = ("", False)
    # The runs of all known pods of its index, oldest first.
    ended_runs: Sequence[EndedRun] = ()

    @property
    def pending_reason(self) -> str:
        """The rank and the reason why it does not run, as one clause."""
        return f"{self.pod}: {self.reason}" if self.reason else f"{self.pod}: {self.phase}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupStatus:
    """The ranks of one group, and their desired number."""

    name: str
    role: str
    kind: str
    desired: int
    ranks: Sequence[Rank]
    state: State = "Unknown"
    reason: str = ""
    # The exit codes that are no failure: part of the training was replaced, and begins again.
    expected_exit_codes: frozenset[int] = frozenset()

    @property
    def running(self) -> int:
        """Ranks whose container runs. A pod whose container is started again and again is in phase Running all the time."""
        return sum(rank.phase == "Running" and not rank.stuck for rank in self.ranks)

    @property
    def succeeded(self) -> int:
        """Ranks that ended well."""
        return sum(rank.phase == "Succeeded" for rank in self.ranks)

    @property
    def failed(self) -> int:
        """Failed ranks without a replacement pod."""
        return sum(rank.phase == "Failed" for rank in self.ranks)


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobStatus:
    """A training as a whole."""

    name: str
    namespace: str
    state: State
    reason: str = ""
    backend: str = ""
    groups: Sequence[GroupStatus] = ()

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def summary(self) -> dict[str, t.Any]:
        """State and number of running pods, as a few values."""
        return {
            "ok": self.state in ("Running", "Succeeded"),
            "state": self.state,
            "pods": sum(group.running for group in self.groups),
            "job": str(self),
            "backend": self.backend,
        }

    def table(self) -> list[str]:
        """The summary as lines: how many pods of each group run."""
        return [f"{group.name}: {group.running}" for group in self.groups]

    def line(self) -> Missing:
        """The summary as one line, for a wait."""
        groups = [group for group in self.groups if group.desired]
        counts = ", ".join(f"{group.name} {group.running + group.succeeded}/{group.desired}" for group in groups)
        there, desired = sum(g.running + g.succeeded for g in groups), sum(g.desired for g in groups)
        brief = "; ".join(filter(None, (f"{self.state}: {there} of {desired} pods run", self.brief_reason)))
        return Missing("; ".join(filter(None, (self.state, counts, self.reason))), brief)

    @property
    def brief_reason(self) -> str:
        """The most frequent reason of pods that do not run, with one of them."""
        unwell = [group for group in self.groups if group.state in ("Pending", "Degraded")]
        return grouped([text for group in unwell for text in (_not_running(group) or [group.reason])]) or self.reason

    def result(self) -> dict[str, t.Any]:
        """Return the status as the modules return it."""
        groups = []
        for group in self.groups:
            entry = {key: getattr(group, key) for key in ("name", "role", "kind", "desired", "state", "reason")}
            counts = {"running": group.running, "succeeded": group.succeeded, "failed": group.failed}
            ranks = [{k: v for k, v in dataclasses.asdict(r).items() if k not in _PRIVATE} for r in group.ranks]
            groups.append({**entry, **counts, "ranks": ranks})
        return {"state": self.state, "reason": self.reason, "backend": self.backend, "groups": groups}


# Pods


def rank_of(pod: Manifest) -> Rank:
    """A rank according to the status of its pod, in which the main container is the training."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    containers = status.get("containerStatuses") or []
    main, beside = main_status(pod), sidecars_of(pod)
    before = (main.get("lastState") or {}).get("terminated") or {}
    phase = "Terminating" if metadata.get("deletionTimestamp") else status.get("phase") or "Pending"
    ended = _terminated(main) or (_failed_init(status) if phase == "Failed" else {})
    reason, stuck = _reason(pod, phase, main)
    said = ended or (before if stuck else {})
    return Rank(
        rank=_index(pod),
        pod=metadata["name"],
        node=(pod.get("spec") or {}).get("nodeName"),
        phase=phase,
        ready=bool(containers) and all(container.get("ready") for container in containers),
        restarts=int(main.get("restartCount") or 0),
        reason=reason,
        message=last_lines(said.get("message") or ""),
        exit_code=said.get("exitCode"),
        created=str(metadata.get("creationTimestamp") or ""),
        started=((main.get("state") or {}).get("running") or ended).get("startedAt") or status.get("startTime"),
        finished=ended.get("finishedAt"),
        stuck=stuck,
        image_trouble=image_trouble(pod),
        ended_runs=sorted(run for run in ended_runs(pod) if run.container not in beside),
    )


def _terminated(container: Manifest) -> Manifest:
    return (container.get("state") or {}).get("terminated") or {}


def _failed_init(status: Manifest) -> Manifest:
    """The state of the failed init container that keeps the others from starting; empty if there is none."""
    ends = map(_terminated, status.get("initContainerStatuses") or [])
    return next((ended for ended in ends if ended.get("exitCode")), {})


def _index(pod: Manifest) -> int:
    labels = pod["metadata"].get("labels") or {}
    for label in INDEX_LABELS:
        if str(labels.get(label, "")).isdecimal():
            return int(labels[label])
    match = re.search(r"-(\d+)$", pod["metadata"]["name"])
    return int(match.group(1)) if match else 0


def last_lines(text: str) -> str:
    """The end of a log, without events, and without the words of launchers, which only report that their child has failed."""
    lines = [line for line in text.strip().splitlines() if not (_EVENT.match(line) or _LAUNCHER_LINE.search(line))]
    while found := [number for number, line in enumerate(lines) if _LAUNCHER_END.search(line)]:
        if "CalledProcessError" in lines[found[-1]] and found[-1] < len(lines) - 1:
            break  # of a child that the program itself ran
        begins = [number for number in range(found[-1]) if lines[number].startswith("Traceback (most recent call last)")]
        lines = lines[: begins[-1] if begins and "Error" in lines[found[-1]] else found[-1]]
        while lines and not lines[-1].strip(" -"):
            lines.pop()
    return "\n".join(lines[-_MESSAGE_LINES:])


def _reason(pod: Manifest, phase: str, main: Manifest) -> tuple[str, bool]:
    """The reason why a pod does not run (or failed), and whether that is permanent."""
    if phase == "Terminating":
        return _deletion_reason(pod), False
    reason, stuck = why_not_running(pod)
    if phase == "Pending" and not reason:
        waiting = ((main.get("state") or {}).get("waiting") or {}).get("reason")
        return waiting or ("is starting" if (pod.get("status") or {}).get("startTime") else "waits for a node"), False
    return reason, stuck


def _deletion_reason(pod: Manifest) -> str:
    """The reason why a pod is not deleted yet. If its node does not respond, only an administrator can confirm that the pod has stopped."""
    if condition(pod, "DisruptionTarget").get("reason") != "DeletionByTaintManager":
        return "is being deleted"
    node = pod["spec"].get("nodeName")
    return f"is evicted and waits for an answer of node {node}; if that is off: kubectl taint node {node} {OUT_OF_SERVICE}"


def ranks_of(pods: Iterable[Manifest]) -> list[Rank]:
    """One rank per index: the newest pod, unless an earlier one has succeeded, which is final."""
    newest: dict[int, tuple[tuple[bool, bool, str], Rank]] = {}
    runs: dict[int, list[EndedRun]] = {}
    for pod in pods:
        rank = rank_of(pod)
        runs.setdefault(rank.rank, []).extend(rank.ended_runs)
        order = (
            rank.phase == "Succeeded",
            rank.phase not in ("Failed", "Terminating"),
            str(pod["metadata"].get("creationTimestamp") or ""),
        )
        if rank.rank not in newest or order >= newest[rank.rank][0]:
            newest[rank.rank] = (order, rank)
    return [dataclasses.replace(rank, ended_runs=sorted(runs[index])) for index, (_order, rank) in sorted(newest.items())]


# Groups


def group_status(form: Workload, workload: Manifest, pods: Iterable[Manifest]) -> GroupStatus:
    """The state of the ranks of a workload."""
    metadata = workload["metadata"]
    labels = metadata.get("labels") or {}
    # A Job does not count these exit codes towards its backoffLimit.
    rules = (workload["spec"].get("podFailurePolicy") or {}).get("rules") or []
    ignored = [rule.get("onExitCodes") or {} for rule in rules if rule.get("action") == "Ignore"]
    group = GroupStatus(
        name=labels.get(LABEL_GROUP) or metadata["name"],
        role=labels.get(LABEL_ROLE, ""),
        kind=workload["kind"],
        desired=form.desired_replicas(workload),
        ranks=ranks_of(pods),
        expected_exit_codes=frozenset(code for on in ignored if on.get("operator") == "In" for code in on.get("values") or []),
    )
    return _judge_job(group, workload) if form.ends else judge_group(group)


def _judge_job(group: GroupStatus, job: Manifest) -> GroupStatus:
    # Condition types of Job, TrainJob and PyTorchJob.
    if is_true(job, "Complete", "Succeeded"):
        return dataclasses.replace(group, state="Succeeded")
    if is_true(job, "Failed", "FailureTarget"):
        failed = condition(job, "Failed" if is_true(job, "Failed") else "FailureTarget")
        why = "; ".join(_rank_line(rank) for rank in group.ranks if rank.phase == "Failed") or failed.get("message") or ""
        reason = f"{failed.get('reason') or 'Failed'}: {why}"
        return dataclasses.replace(group, state="Failed", reason=reason)
    if (job.get("spec") or {}).get("suspend"):
        # Kueue also suspends Jobs that name no queue, in a namespace with a LocalQueue named default.
        if (job["metadata"].get("labels") or {}).get(LABEL_QUEUE):
            return dataclasses.replace(group, state="Pending", reason="is suspended")
        return dataclasses.replace(group, state="Succeeded", reason="stopped after the training ended")
    return judge_group(group)


def _not_running(group: GroupStatus) -> list[str]:
    """A clause for each existing rank that does not run."""
    return [_rank_line(r) for r in group.ranks if r.stuck or r.phase not in ("Running", "Succeeded")]


def _rank_line(rank: Rank) -> str:
    last = rank.message.splitlines()[-1] if rank.message else ""
    return f"{rank.pending_reason}: {last}" if last else rank.pending_reason


def judge_group(group: GroupStatus) -> GroupStatus:
    """A group by its ranks alone."""
    there = group.running + group.succeeded
    if group.desired == 0:
        return dataclasses.replace(group, state="Succeeded", reason="scaled to zero")
    if group.succeeded >= group.desired:
        return dataclasses.replace(group, state="Succeeded")
    if there >= group.desired:
        return dataclasses.replace(group, state="Running")
    bad = _not_running(group)
    lost = group.desired - len(group.ranks)
    if lost > 0:
        bad.append(f"{lost} of {group.desired} pods are missing")
    state: State = "Degraded" if there or any(rank.restarts for rank in group.ranks) else "Pending"
    if any(rank.stuck and rank.phase == "Failed" for rank in group.ranks):
        state = "Degraded"
    more = f" (and {len(bad) - 3} more)" if len(bad) > 3 else ""
    return dataclasses.replace(group, state=state, reason="; ".join(bad[:3]) + more)


def judge_bare(group: GroupStatus) -> GroupStatus:
    """A group of bare pods: a failed one fails the group, because nothing creates it again."""
    judged = judge_group(group)
    if group.failed:
        bad = "; ".join(_rank_line(rank) for rank in group.ranks if rank.phase == "Failed")
        return dataclasses.replace(judged, state="Failed", reason=bad)
    return judged


# The training as a whole


def job_status(name: str, namespace: str, groups: Sequence[GroupStatus], *, trainer_role: str = "", backend: str = "") -> JobStatus:
    """The state of the training: that of its trainers, and Degraded or Pending if other groups keep them from working."""
    status = functools.partial(JobStatus, name=name, namespace=namespace, groups=groups, backend=backend)
    if not groups:
        return status(state="Unknown", reason="there is nothing of it in the cluster")
    trainers = [group for group in groups if group.role == trainer_role] or list(groups)
    others = [group for group in groups if group not in trainers]
    if all(group.desired and group.state == "Succeeded" for group in trainers):
        return status(state="Succeeded")
    failed = [group for group in (*trainers, *others) if group.state == "Failed"]
    if failed:
        return status(state="Failed", reason=f"{failed[0].name}: {failed[0].reason}")
    # Without these pods the training makes no progress.
    gone = [group for group in groups if not group.desired]
    unwell = [group for group in groups if group.state in ("Pending", "Degraded")] + gone
    if not unwell:
        return status(state="Running")
    worse = gone or any(group.state == "Degraded" or _came_back(group, trainers) for group in unwell)
    names: dict[str, list[str]] = {}
    for group in unwell:
        names.setdefault(group.reason, []).append(group.name)
    reason = "; ".join(f"{', '.join(those)}: {shared}" for shared, those in names.items())
    return status(state="Degraded" if worse else "Pending", reason=reason)


def _came_back(group: GroupStatus, trainers: Sequence[GroupStatus]) -> bool:
    """Whether the group lost pods that existed when the training began; a group that never had them has not."""
    began = min((rank.started for trainer in trainers for rank in trainer.ranks if rank.started), default=None)
    if any(rank.phase == "Terminating" for rank in group.ranks):
        return True
    return began is not None and (
        len(group.ranks) < group.desired or any(rank.created > began for rank in group.ranks if rank.phase != "Running")
    )

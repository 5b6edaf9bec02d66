# SPDX-License-Identifier: GPL-3.0-or-later
"""The protocol between the lifecycle of a training (lifecycle.py) and the systems.

A system describes its trainings with one Kind, which has a Backend for each way to run them. Steps that are the same
for all trainings are in lifecycle.py; the differences of a system are functions here. The defaults are for trainings of ordinary Kubernetes
workloads.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t
from collections.abc import Callable, Collection, Mapping, Sequence

from .._core.brief import Missing
from .._gang.groups import PodSets
from .._kube import reasons
from .._kube.cluster import Cluster
from .._kube.objects import GroupKind, Manifest, Ref, group_kind, labels_of
from .._kube.queued import why_queued
from .._kube.report import Report
from .._kube.served import Promised
from .._manifests import network_policy
from .._manifests.meta import LABEL_GROUP, owner_of
from .._manifests.program_training import ProgramTraining
from .logs import read_logs
from .progress import Progress, newest
from .status import GroupStatus, JobStatus, Rank, Workload, group_status, job_status

_UNSETTLED = ("Pending", "Degraded")
Goal = t.Literal["running", "step", "completed"]
_TAIL = 1000
"""Lines of a log in which progress is looked for. PERSIA logs 150 a second beside it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """The options of this run for a training; the modules describe them. Timeouts are in seconds."""

    cluster: Cluster
    check: bool
    warn: Callable[[str], None]
    progress: Callable[[str], None]
    wait: bool
    wait_for: Goal
    wait_timeout: float
    restart: bool = False
    adopt: bool = False
    force_conflicts: bool = False
    recreate: bool = False
    preflight: bool = True
    image_timeout: float = 300
    delete_data: bool = False
    world_timeout: float = 0
    remove_finalizer: bool = False
    promised: Promised = dataclasses.field(default_factory=Promised)
    """Objects that pods name and that check mode counts as existing."""


class World(t.Protocol):
    """Reports of the processes of a training in their logs, and its progress."""

    @property
    def progress(self) -> Progress:
        """The progress that the same logs have."""

    def result(self) -> dict[str, t.Any]:
        """Return the value of ``world`` in the modules' results."""


@dataclasses.dataclass(frozen=True)
class Observed:
    """A training as it was observed at one moment."""

    status: JobStatus
    workloads: Sequence[Manifest] = ()
    world: World | None = None
    progress: Progress = dataclasses.field(default_factory=Progress)

    def line(self) -> Missing:
        """State and progress as one line, for a wait. While all pods run, the progress is what matters."""
        state, trained = self.status.line(), self.progress.line()
        brief = f"{self.status.state}: {trained}" if self.status.state == "Running" else state.brief
        return Missing(f"{state}; {trained}", brief) if trained else state

    @property
    def exists(self) -> bool:
        """Whether any object of it is in the cluster."""
        return bool(self.status.groups)

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, well or badly."""
        return self.status.state in ("Succeeded", "Failed")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Desired:
    """The desired training: validated, with all of its objects."""

    kind: Kind
    backend: Backend
    name: str
    namespace: str
    objects: Sequence[Manifest]
    config: str
    """Name of the ConfigMap whose annotation records the options that the training was created with."""
    parts: Mapping[str, str]
    """A hash for each option that cannot change while the training runs."""
    precondition: Callable[[Cluster], None] | None = None
    """Raises if an object that the training uses and does not create is missing, or in use by another training."""
    unwanted: Sequence[Ref] = ()
    """Objects that other options would have created; they are deleted."""
    size: int | None = None
    """The number of pods, where that may change while the training runs."""
    least: int | None = None
    """The number of pods with which it begins, where that may be less."""
    suspended: bool = False
    """Whether its pods are not to be created now."""
    results_pattern: re.Pattern[str] | None = None
    queue: str | None = None
    """The queue of Kueue that decides when the pods begin."""
    made_once: Sequence[Ref] = ()
    """Objects with a generated value, which a training keeps as long as it lives: of two first runs at once, one makes them."""
    kept: Collection[Ref] = ()
    """Workloads that stay as they are, because another version of Muster rendered them from the same options."""

    @classmethod
    def of_program(cls, kind: Kind, job: ProgramTraining, objects: Sequence[Manifest], **more: t.Any) -> Desired:
        """The training JOB with these objects; MORE are further fields."""
        policy = Ref(network_policy.API_VERSION, network_policy.KIND, job.objects_name, job.namespace)
        return cls(
            kind=kind,
            name=job.name,
            namespace=job.namespace,
            objects=objects,
            config=job.objects_name,
            parts=job.parts,
            queue=job.queue_name,
            unwanted=() if job.network_policy else (policy,),
            **more,
        )

    @property
    def owner(self) -> str:
        """The label of everything that belongs to the training."""
        return owner_of(self.kind.name, self.namespace, self.name)

    def __str__(self) -> str:
        return f"Training {self.namespace}/{self.name}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Backend:
    """One way to run the trainings of a kind."""

    name: str
    label: str
    """All pods of a training have this label; the value is the training's name."""
    workloads: Sequence[Workload]
    """The objects that create the pods."""
    named: bool = False
    """Whether the workload is found by the training's name, with any owner; otherwise workloads are found by the label."""
    installed_by: str = ""
    """The operator that installs the kind of the first workload, with its role, for the message."""
    immutable_because: str = ""
    """The reason why the options of an existing training cannot change, for the message."""
    judge: Callable[[Manifest, Sequence[Manifest]], list[GroupStatus]] | None = None
    """The groups of a workload whose pods do not have our labels."""
    continued: Callable[[Sequence[Manifest], Sequence[Manifest]], list[Manifest]] | None = None
    """The objects of a training that runs, with the live values that must not change while it runs."""
    stop: Callable[[Request, str, Observed], Report] | None = None
    """Delete the pods of a training of this owner, where deleting its workloads is not enough."""
    scaled_down: Callable[[Sequence[Manifest]], list[Manifest]] | None = None
    """The objects that can be scaled down once the training has ended, scaled down."""
    finish: Callable[[Request, Observed], Report] | None = None
    """Delete the pods of an ended training that remain when those objects are scaled down."""
    warnings: Callable[[Observed], list[str]] | None = None
    """Warnings about a training that runs."""

    def selector(self, name: str) -> str:
        """The label selector of a training's pods."""
        return f"{self.label}={name}"

    def find(self, cluster: Cluster, namespace: str, name: str) -> list[Manifest]:
        """The live workloads of a training."""
        if self.named:
            refs = [Ref(workload.api_version, workload.kind, name, namespace) for workload in self.workloads]
            return [found for ref in refs if (found := cluster.get(ref))]
        selector = self.selector(name)
        return [found for w in self.workloads for found in cluster.list(w.api_version, w.kind, namespace, selector)]

    def groups(self, cluster: Cluster, workloads: Sequence[Manifest], pods: Sequence[Manifest], *, placed: bool) -> list[GroupStatus]:
        """The groups of pods, one for each workload. PLACED: with their places in a queue."""
        if self.judge:
            return _with_queue(cluster, workloads[0], self.judge(workloads[0], pods), placed=placed)
        forms = {workload.group_kind: workload for workload in self.workloads}
        by_group: dict[str, list[Manifest]] = {}
        for pod in pods:
            by_group.setdefault(labels_of(pod).get(LABEL_GROUP, ""), []).append(pod)
        groups = []
        sized = [live for live in workloads if forms[group_kind(live)].size]
        for live in sorted(sized, key=lambda item: str(item["metadata"]["name"])):
            group = group_status(forms[group_kind(live)], live, by_group.get(labels_of(live).get(LABEL_GROUP, ""), []))
            (group,) = _with_queue(cluster, live, [group], placed=placed)
            if group.state in _UNSETTLED and len(group.ranks) < group.desired:
                # An event tells why missing pods cannot be created.
                refused = reasons.why_no_pods(cluster, live)
                group = dataclasses.replace(group, reason=f"{group.reason} ({refused})") if refused else group
            groups.append(group)
        return groups

    @property
    def pod_sets(self) -> dict[GroupKind, PodSets]:
        """The pod sets of workloads of custom kinds."""
        return {workload.group_kind: workload.pod_sets for workload in self.workloads if workload.pod_sets}

    def sized(self, objects: Sequence[Manifest], size: int) -> list[Manifest]:
        """The objects of a training with SIZE pods."""
        forms = {workload.group_kind: workload for workload in self.workloads}
        return [forms[group_kind(item)].sized(item, size) if group_kind(item) in forms else item for item in objects]


def _with_queue(cluster: Cluster, workload: Manifest, groups: Sequence[GroupStatus], *, placed: bool) -> list[GroupStatus]:
    """Return the groups of a workload. If it waits in a queue, that becomes the reason of groups that lack pods."""
    reason = why_queued(cluster, workload, placed=placed) if any(group.state in _UNSETTLED for group in groups) else ""
    if not reason:
        return list(groups)
    waiting = [(group, group.state if group.running else "Pending") for group in groups]
    return [dataclasses.replace(group, state=state, reason=reason) if group.state in _UNSETTLED else group for group, state in waiting]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of training. The name is that of its module."""

    name: str
    backends: Sequence[Backend]
    """The backends. The first one that has workloads of a training runs it."""
    label: str = ""
    """A label of every object of a training, if there is one; the value is the training's name."""
    title: str = ""
    """The name of the system, for messages."""
    role: str = ""
    """The role with such trainings, for the message."""
    trainer_role: str = ""
    """The role of the groups that decide whether the training has ended; without it all groups do."""
    world: Callable[[Cluster, Observed], World] | None = None
    """Read which pods train together, from their logs and the status of the workloads."""
    pending_reason: Callable[[Desired, Observed, Observed, Goal], str | None] | None = None
    """Return what the goal still lacks, if the state of the pods does not show it; called with the states before this run and now."""
    scaling_pending_reason: Callable[[Desired, Observed, Observed], str | None] | None = None
    """Return what a new number of pods still lacks; called with the states before the change and now."""
    logged: Callable[[Sequence[str]], dict[str, t.Any]] | None = None
    """More keys of the modules, from the logs of the trainers."""
    results: Callable[[Observed], dict[str, t.Any]] | None = None
    """The keys ``summary``, ``table`` and ``world`` of the modules."""
    before_removal: Callable[[Request, str, str], Report] | None = None
    """Delete what must be deleted before the objects with our label."""

    def backend(self, name: str) -> Backend:
        """One of the backends."""
        return next(backend for backend in self.backends if backend.name == name)

    def owner(self, namespace: str, name: str) -> str:
        """The label of everything that belongs to the training of that name."""
        return owner_of(self.name, namespace, name)

    def read(self, cluster: Cluster, namespace: str, name: str, *, placed: bool = True) -> Observed:
        """Read a training from its workloads and pods, whichever backend runs it. PLACED: with its place in a queue."""
        for backend in self.backends:
            workloads = backend.find(cluster, namespace, name)
            if workloads:
                pods = cluster.list("v1", "Pod", namespace, backend.selector(name))
                groups = backend.groups(cluster, workloads, pods, placed=placed)
                status = job_status(name, namespace, groups, trainer_role=self.trainer_role, backend=backend.name)
                return Observed(status, workloads)
        return Observed(job_status(name, namespace, ()))

    def observe(self, cluster: Cluster, namespace: str, name: str, *, progress: bool = False, placed: bool = True) -> Observed:
        """Read a training with what its pods log of their processes; with its progress if that is asked for."""
        observed = self.read(cluster, namespace, name, placed=placed)
        if self.world:
            world = self.world(cluster, observed)
            return dataclasses.replace(observed, world=world, progress=world.progress)
        ranks = [rank for rank in self.trainers(observed.status) if rank.phase not in ("Pending", "Terminating")] if progress else []
        if not ranks:
            return observed
        # Most programs print on their first rank, and Megatron-LM on its last.
        texts = read_logs(cluster, namespace, [*ranks[:1], *ranks[1:][-1:]], required=False, tail_lines=_TAIL, timestamps=True)
        return dataclasses.replace(observed, progress=newest(texts))

    def trainers(self, status: JobStatus) -> list[Rank]:
        """The ranks that train."""
        groups = [group for group in status.groups if group.role == self.trainer_role] or status.groups
        return [rank for group in groups for rank in group.ranks]

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a training's state from a cluster, and wait for it.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Sequence

from .._core.clock import SYSTEM_CLOCK, Clock
from .._core.errors import Failed, MusterError, NotFound
from .._core.pool import OnProgress, do_all
from .._kube import reasons, watching
from .._kube.objects import Manifest, Ref
from .._manifests.meta import LABEL_ELASTIC_JOB, LABEL_GROUP, LABEL_JOB
from .._systems.elastic import pytorch_job
from .._systems.persia.operator import API_VERSION, JOB_LABEL, KIND, POD_WORDS, SECTIONS
from .._systems.persia.spec import DEFAULT_GROUP_NAMES, LAUNCHER_WORDS
from .status import GroupStatus, JobStatus, Rank, group_status, job_status, last_words, operator_groups

if t.TYPE_CHECKING:
    from .._kube.cluster import Cluster

Kind = t.Literal["elastic_job", "persia_job", "training_statefulset"]

_READERS = 8
"""Logs that are read at the same time."""


def selector_of(kind: Kind, name: str, backend: str) -> str:
    """The label selector of the training's pods."""
    if kind == "training_statefulset":
        return f"{LABEL_GROUP}={name}"
    if kind == "elastic_job":
        return f"{LABEL_ELASTIC_JOB}={name}"
    return f"{JOB_LABEL if backend == 'operator' else LABEL_JOB}={name}"


def read(cluster: Cluster, namespace: str, name: str, kind: Kind = "persia_job") -> JobStatus:
    """The state of a training as it is now, whichever way it was made."""
    if kind == "training_statefulset":
        found = cluster.get(Ref("apps/v1", "StatefulSet", name, namespace))
        workloads = [found] if found else []
    elif kind == "elastic_job":
        selector = selector_of(kind, name, "native")
        workloads = list(cluster.list("batch/v1", "Job", namespace, selector)) or pytorch_jobs(
            cluster, namespace, selector
        )
    else:
        selector = selector_of(kind, name, "native")
        workloads = [
            *cluster.list("apps/v1", "StatefulSet", namespace, selector),
            *cluster.list("batch/v1", "Job", namespace, selector),
        ]
    if workloads:
        return _native(cluster, namespace, name, kind, workloads)
    resource = cluster.get(Ref(API_VERSION, KIND, name, namespace)) if kind == "persia_job" else None
    return _operator(cluster, namespace, name, resource) if resource else job_status(name, namespace, ())


def pytorch_jobs(cluster: Cluster, namespace: str, selector: str) -> list[Manifest]:
    """PyTorchJobs with these labels; none where the cluster does not know the kind."""
    if cluster.resource(pytorch_job.API_VERSION, pytorch_job.KIND) is None:
        return []
    return list(cluster.list(pytorch_job.API_VERSION, pytorch_job.KIND, namespace, selector))


def _native(cluster: Cluster, namespace: str, name: str, kind: Kind, workloads: Sequence[Manifest]) -> JobStatus:
    pods = cluster.list("v1", "Pod", namespace, selector_of(kind, name, "native"))
    by_group: dict[str, list[Manifest]] = {}
    for pod in pods:
        by_group.setdefault((pod["metadata"].get("labels") or {}).get(LABEL_GROUP, ""), []).append(pod)
    groups = [
        _with_refusal(
            cluster,
            workload,
            group_status(workload, by_group.get((workload["metadata"].get("labels") or {}).get(LABEL_GROUP, ""), [])),
        )
        for workload in sorted(workloads, key=lambda item: str(item["metadata"]["name"]))
    ]
    backend = "pytorchjob" if workloads[0]["kind"] == pytorch_job.KIND else "native"
    return job_status(name, namespace, groups, backend=backend if kind != "training_statefulset" else "")


def _with_refusal(cluster: Cluster, workload: Manifest, group: GroupStatus) -> GroupStatus:
    """The group; where it waits for pods that are not there, with what refuses them."""
    if group.state not in ("Pending", "Degraded") or len(group.ranks) >= group.wanted:
        return group
    refused = reasons.refused(cluster, workload)
    return dataclasses.replace(group, reason=f"{group.reason} ({refused})") if refused else group


def _operator(cluster: Cluster, namespace: str, name: str, resource: Manifest) -> JobStatus:
    pods = cluster.list("v1", "Pod", namespace, selector_of("persia_job", name, "operator"))
    sections = {
        section: (DEFAULT_GROUP_NAMES[role], LAUNCHER_WORDS[role], POD_WORDS[role])
        for role, section in SECTIONS.items()
    }
    return job_status(name, namespace, operator_groups(resource, pods, sections), backend="operator")


def wait(
    cluster: Cluster,
    namespace: str,
    name: str,
    goal: t.Literal["running", "completed"],
    *,
    kind: Kind = "persia_job",
    backend: str = "native",
    timeout: float,
    progress: OnProgress,
    clock: Clock = SYSTEM_CLOCK,
) -> JobStatus:
    """Wait until the training runs or is over; Failed as soon as it has failed."""
    title = f"Training {namespace}/{name}"

    def look(asked: Cluster) -> tuple[JobStatus, str | None]:
        status = read(asked, namespace, name, kind)
        if status.state == "Failed":
            raise failed(asked, status)
        if status.state == "Succeeded" or (goal == "running" and status.state == "Running"):
            return status, None
        return status, _progress_line(status)

    selector = selector_of(kind, name, backend)
    said = f"{title} is not {goal}"
    return watching.follow(
        cluster, namespace, selector, look, goal=said, timeout=timeout, progress=progress, clock=clock
    )


def _progress_line(status: JobStatus) -> str:
    counts = ", ".join(
        f"{group.name} {group.running + group.succeeded}/{group.wanted}" for group in status.groups if group.wanted
    )
    parts = [status.state, counts, status.reason]
    return "; ".join(part for part in parts if part)


def failed(cluster: Cluster, status: JobStatus) -> MusterError:
    """The error of a failed training: which rank, why, and its last words."""
    bad = [rank for group in status.groups for rank in group.ranks if rank.phase == "Failed"]
    last = {rank.pod: _last_lines(cluster, status.namespace, rank) or rank.message for rank in bad[:3]}
    told = "".join(f"\n[{pod}] {line}" for pod, text in last.items() for line in text.splitlines())
    return Failed(
        f"Training {status.namespace}/{status.name} has failed. {status.reason}{told}",
        hint="\nCorrect the cause, then set restart: true to train again." if told else "restart: true trains again.",
        details=status.result(),
    )


def _last_lines(cluster: Cluster, namespace: str, rank: Rank) -> str:
    """A pod whose log is gone must not hide the reason that is known."""
    try:
        return last_words(cluster.logs(namespace, rank.pod, tail_lines=200))
    except MusterError:
        return ""


def logs(
    cluster: Cluster, namespace: str, ranks: Sequence[tuple[str, Rank]], **options: t.Any
) -> list[tuple[str, Rank, str]]:
    """The logs of many ranks, read side by side; a pod that has not begun has none."""

    def one(entry: tuple[str, Rank]) -> tuple[str, Rank, str]:
        group, rank = entry
        try:
            return group, rank, cluster.logs(namespace, rank.pod, **options)
        except NotFound:
            return group, rank, ""
        except MusterError:
            # A container that still waits answers "400 is waiting to start".
            if rank.phase in ("Pending", "Terminating") or rank.reason or options.get("previous"):
                return group, rank, ""
            raise

    return do_all(one, ranks, parallel=_READERS)

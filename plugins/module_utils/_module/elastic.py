# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What module elastic_job does to a cluster: make, scale, begin again, remove.

Private to the collection.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import json
import typing as t

from .._kube.engine import apply_objects, delete_objects
from .._kube.errors import Conflict, Forbidden, Immutable, MusterError, WaitTimeout
from .._kube.objects import LABEL_OWNER, Manifest, Ref, labels_of, ref_of
from .._kube.report import Change, Report
from .._manifests.elastic_job import ElasticJob, manifests
from .._manifests.elastic_world import World, world
from .._manifests.meta import ANNOTATION_SPEC_PARTS
from .._manifests.status import JobStatus, Rank
from . import training
from .groups import owner_of, understood

if t.TYPE_CHECKING:
    from .._kube.cluster import Cluster
    from .run import Context


T = t.TypeVar("T")

# Lines of a log: more than anybody says between two repetitions of the round, see the launcher.
_TAIL = 300


def job_ref(namespace: str, name: str) -> Ref:
    """The Job of an elastic job has its name."""
    return Ref("batch/v1", "Job", name, namespace)


def look(cluster: Cluster, namespace: str, name: str) -> tuple[JobStatus, World]:
    """The state of the pods, and what their logs say."""
    status = training.read(cluster, namespace, name, "elastic_job")
    return status, heard(cluster, status)


def heard(cluster: Cluster, status: JobStatus) -> World:
    """What the logs of a few pods say, however many there are."""
    ranks = _witnesses(status)
    texts = _said(cluster, status.namespace, ranks, tail_lines=_TAIL)
    found = world(texts)
    if found.nodes is None and any(text.count("\n") >= _TAIL for text in texts):
        # The script talks so much that the round is further up.
        return world(_said(cluster, status.namespace, ranks[:1]))
    return found


def _witnesses(status: JobStatus) -> list[Rank]:
    """All agents see the same rendezvous. Its first rank tells the steps, the youngest pods what keeps them out."""
    spoke = [
        rank for group in status.groups for rank in group.ranks if rank.phase in ("Running", "Succeeded", "Failed")
    ]
    # The rendezvous ranks pods by their host names: digits-1.digits, digits-10.digits, digits-2.digits.
    first = sorted(spoke, key=lambda rank: (rank.phase == "Failed", f"{rank.rank}."))[:3]
    youngest = sorted(spoke, key=lambda rank: (rank.created, rank.rank))[-2:]
    return first + [rank for rank in youngest if rank not in first]


def _said(cluster: Cluster, namespace: str, ranks: list[Rank], **options: t.Any) -> list[str]:
    """The logs of these pods. That of one whose node is lost, or simulated, cannot be read, and others know the same."""

    def one(rank: Rank) -> str:
        try:
            return cluster.logs(namespace, rank.pod, **options)
        except Forbidden:
            raise
        except MusterError:
            return ""

    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        return list(pool.map(one, ranks))


def present(ctx: Context, job: ElasticJob) -> tuple[Report, JobStatus, World]:
    """Make the cluster train JOB with its number of workers, or leave alone what has been trained already."""
    with understood():
        objects = manifests(job)
    mine = owner_of("elastic_job", job.namespace, job.name)
    live = ctx.cluster.get(job_ref(job.namespace, job.name))
    _refuse_foreign(live, mine, job)
    changes = _changed(ctx, job) if live else []
    if changes and not (ctx.params["recreate"] or ctx.params["restart"]):
        raise Immutable(
            f"Elastic job {job.namespace}/{job.name} is there with other options: {', '.join(changes)}; only replicas can "
            "change while it runs.",
            hint="recreate: true ends its pods and trains with the new options, from its last checkpoint.",
            details={"changed_options": changes},
        )
    status, seen = look(ctx.cluster, job.namespace, job.name)
    again = live is not None and bool(changes or ctx.params["restart"])
    if status.state in ("Succeeded", "Failed") and not again:
        return Report([Change(ref_of(item), "unchanged") for item in objects]), *_settled(ctx, job, status, seen)
    before = _replicas(live)
    stopped = _stop(ctx, job) if again else Report()
    report = _as_one(stopped, _apply(ctx, job, objects, again))
    if ctx.check:
        return report, status, seen
    if before is not None and not again and before != job.replicas and ctx.params["wait"] != "none":
        _scaled(ctx, job, before, seen)
    return report, *_settled(ctx, job, *look(ctx.cluster, job.namespace, job.name))


def _refuse_foreign(live: Manifest | None, mine: str, job: ElasticJob) -> None:
    if live is not None and labels_of(live).get(LABEL_OWNER) not in (None, mine):
        raise Conflict(
            f"Job {job.namespace}/{job.name} belongs to {labels_of(live)[LABEL_OWNER]}.", hint="Choose another name."
        )


def _replicas(live: Manifest | None) -> int | None:
    return None if live is None else int(live["spec"].get("completions") or 0)


def _changed(ctx: Context, job: ElasticJob) -> list[str]:
    config = ctx.cluster.get(Ref("v1", "ConfigMap", job.config_name, job.namespace)) or {"metadata": {}}
    kept = (config["metadata"].get("annotations") or {}).get(ANNOTATION_SPEC_PARTS)
    if kept is None:
        return []
    then, now = json.loads(kept), job.spec_parts
    return sorted(key for key in {*then, *now} if then.get(key) != now.get(key))


def _stop(ctx: Context, job: ElasticJob) -> Report:
    ref = job_ref(job.namespace, job.name)
    return delete_objects(ctx.cluster, [ref], check=ctx.check, wait=True, wait_timeout=ctx.params["wait_timeout"])


def _apply(ctx: Context, job: ElasticJob, objects: list[Manifest], again: bool) -> Report:
    # In check mode the old Job is still there, and would refuse to become the new one.
    planned = [item for item in objects if not (again and ctx.check and item["kind"] == "Job")]
    return apply_objects(
        ctx.cluster,
        planned,
        owner=owner_of("elastic_job", job.namespace, job.name),
        check=ctx.check,
        force_conflicts=ctx.params["force_conflicts"],
        on_progress=ctx.progress,
    )


def _as_one(stopped: Report, applied: Report) -> Report:
    """A Job that was deleted to be made again has been recreated."""
    gone = {change.ref: change for change in stopped.changes if change.action == "deleted"}
    changes = [change for change in applied.changes if change.ref not in gone]
    changes += [Change(ref, "recreated", "trains again") for ref in gone]
    return Report(changes, stopped.warnings + applied.warnings, applied.objects)


def _scaled(ctx: Context, job: ElasticJob, before: int, seen: World) -> None:
    """Wait until the rendezvous has the new size and steps go on; else back to what it was."""

    def ask() -> tuple[None, str | None]:
        status, now = look(ctx.cluster, job.namespace, job.name)
        if status.state == "Failed":
            raise training.failed(ctx.cluster, status)
        if status.state == "Succeeded":
            return None, None
        if now.nodes != job.replicas or now.formed <= seen.formed:
            return None, f"the rendezvous has {now.nodes or 0} of {job.replicas} pods{_because(status, now)}"
        if seen.stepped and not now.moves:
            return None, f"{now.nodes} pods have met and made no step yet{_because(status, now)}"
        return None, None

    goal = f"Elastic job {job.namespace}/{job.name} has no world of {job.replicas} pods"
    try:
        _follow(ctx, job, ask, goal, ctx.params["world_timeout"])
    except WaitTimeout as exc:
        try:
            _apply(ctx, job, manifests(dataclasses.replace(job, replicas=before)), again=False)
        except MusterError as second:
            raise WaitTimeout(f"{exc.message} Going back to {before} failed, too: {second}") from exc
        raise WaitTimeout(
            f"{exc.message} It is back at {before} replicas.",
            last_seen=exc.last_seen,
            hint="Correct the cause (nodes, GPUs, the script's logs) and scale again, or raise world_timeout.",
        ) from exc


def _follow(ctx: Context, job: ElasticJob, ask: t.Callable[[], tuple[T, str | None]], goal: str, timeout: float) -> T:
    """Ask whenever the pods of the job change."""
    selector = training.selector_of("elastic_job", job.name, "native")
    return training.follow(
        ctx.cluster, job.namespace, selector, ask, goal=goal, timeout=float(timeout), progress=ctx.progress
    )


def _because(status: JobStatus, now: World) -> str:
    reason = now.reason or status.reason
    return f" ({reason})" if reason else ""


def _settled(ctx: Context, job: ElasticJob, status: JobStatus, seen: World) -> tuple[JobStatus, World]:
    """Wait as long as is wanted."""
    goal = ctx.params["wait"]
    if ctx.check or status.state == "Succeeded":
        return status, seen
    if goal == "none":
        if status.state == "Failed":
            ctx.warn(str(training.failed(ctx.cluster, status)))
        return status, seen

    def ask() -> tuple[tuple[JobStatus, World], str | None]:
        now, met = look(ctx.cluster, job.namespace, job.name)
        if now.state == "Failed":
            raise training.failed(ctx.cluster, now)
        if now.state == "Succeeded" or (goal == "running" and met.nodes == job.replicas):
            return (now, met), None
        said = f"{now.state}; {met.nodes or 0} of {job.replicas} pods have met"
        trained = "" if met.step is None else f"; epoch {met.epoch}, step {met.step}"
        return (now, met), said + trained + _because(now, met)

    title = f"Elastic job {job.namespace}/{job.name} is not {goal}"
    return _follow(ctx, job, ask, title, ctx.params["wait_timeout"])


def absent(ctx: Context, namespace: str, name: str) -> Report:
    """Remove the job; its claim only when that is asked for in so many words."""
    return delete_objects(
        ctx.cluster,
        owner_of("elastic_job", namespace, name),
        check=ctx.check,
        namespace=namespace,
        wait=ctx.params["wait"] != "none",
        wait_timeout=ctx.params["wait_timeout"],
        delete_data=ctx.params["delete_data"],
        on_progress=ctx.progress,
    )

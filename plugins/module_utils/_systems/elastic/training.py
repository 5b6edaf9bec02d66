# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What module elastic_job does to a cluster: make, scale, begin again, remove.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import json
import typing as t
import uuid

from ..._core.errors import Conflict, Forbidden, Immutable, MissingKind, MusterError, WaitTimeout
from ..._core.pool import do_all
from ..._edge.groups import drop_policy, owner_of
from ..._kube import watching
from ..._kube.engine import apply_objects
from ..._kube.objects import LABEL_OWNER, Manifest, Ref, labels_of, ref_of
from ..._kube.removal import delete_objects
from ..._kube.report import Change, Report
from ..._manifests.meta import ANNOTATION_SPEC_PARTS
from ..._training import observe
from ..._training.status import JobStatus, Rank, wanted_ranks
from . import manifests, pytorch_job
from .manifests import ElasticJob
from .world import World, world

if t.TYPE_CHECKING:
    from ..._edge.run import Context
    from ..._kube.cluster import Cluster


T = t.TypeVar("T")

# Lines of a log: more than anybody says between two repetitions of the round, see the launcher.
_TAIL = 300


def job_ref(job: ElasticJob) -> Ref:
    """The Job or PyTorchJob of an elastic job has its name."""
    if job.backend == "pytorchjob":
        return Ref(pytorch_job.API_VERSION, pytorch_job.KIND, job.name, job.namespace)
    return Ref("batch/v1", "Job", job.name, job.namespace)


def look(cluster: Cluster, namespace: str, name: str) -> tuple[JobStatus, World]:
    """The state of the pods, and what their logs say."""
    status = observe.read(cluster, namespace, name, "elastic_job")
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

    return do_all(one, ranks, parallel=len(ranks))


def present(ctx: Context, job: ElasticJob) -> tuple[Report, JobStatus, World]:
    """Make the cluster train JOB with its number of workers, or leave alone what has been trained already."""
    mine = owner_of("elastic_job", job.namespace, job.name)
    live = _live(ctx, job)
    _refuse_foreign(live, mine)
    _check_kind(ctx, job)
    changes = _changed(ctx, job, live) if live else []
    if changes and not (ctx.params["recreate"] or ctx.params["restart"]):
        raise Immutable(
            f"Elastic job {job.namespace}/{job.name} is there with other options: {', '.join(changes)}; only replicas can "
            "change while it runs.",
            hint="recreate: true ends its pods and trains with the new options, from its last checkpoint.",
            details={"changed_options": changes},
        )
    again = live is not None and bool(changes or ctx.params["restart"])
    objects = _wanted(job, None if again else live)
    status, seen = look(ctx.cluster, job.namespace, job.name)
    if status.state in ("Succeeded", "Failed") and not again:
        return Report([Change(ref_of(item), "unchanged") for item in objects]), *_settled(ctx, job, status, seen)
    stopped = _stop(ctx, job, live) if live and again else Report()
    report = _as_one(stopped, _apply(ctx, job, _still_to_plan(ctx, objects, stopped)), job_ref(job))
    if ctx.check:
        return report, status, seen
    if live and not again and wanted_ranks(live) != job.replicas and ctx.params["wait"] != "none":
        _scaled(ctx, job, live, seen)
    return report, *_settled(ctx, job, *look(ctx.cluster, job.namespace, job.name))


def _refuse_foreign(live: Manifest | None, mine: str) -> None:
    if live is not None and labels_of(live).get(LABEL_OWNER) not in (None, mine):
        raise Conflict(f"{ref_of(live)} belongs to {labels_of(live)[LABEL_OWNER]}.", hint="Choose another name.")


def _live(ctx: Context, job: ElasticJob) -> Manifest | None:
    """What is there by this name; of the other backend only what this module has made."""
    found = ctx.cluster.get(job_ref(job))
    if found is not None:
        return found
    selector = observe.selector_of("elastic_job", job.name, job.backend)
    if job.backend == "native":
        others = observe.pytorch_jobs(ctx.cluster, job.namespace, selector)
    else:
        others = list(ctx.cluster.list("batch/v1", "Job", job.namespace, selector))
    return others[0] if others else None


def _wanted(job: ElasticJob, live: Manifest | None) -> list[Manifest]:
    if job.backend == "native":
        return manifests.manifests(job)
    # A run that begins anew must not meet, at an etcd, what an old one has left there.
    known = pytorch_job.run_id_of(live) if live and live["kind"] == pytorch_job.KIND else None
    return pytorch_job.manifests(job, known or f"{job.name}-{uuid.uuid4().hex[:12]}")


def _check_kind(ctx: Context, job: ElasticJob) -> None:
    """In check mode the same run may be about to make the definition."""
    ref = job_ref(job)
    if job.backend == "pytorchjob" and not ctx.check and ctx.cluster.resource(ref.api_version, ref.kind) is None:
        raise MissingKind(
            f"backend pytorchjob: this cluster does not serve {ref.kind} ({ref.api_version}).",
            hint="Install training-operator (role muster.ml.training_operator), or use backend: native.",
        )


def _changed(ctx: Context, job: ElasticJob, live: Manifest) -> list[str]:
    config = ctx.cluster.get(Ref("v1", "ConfigMap", job.config_name, job.namespace)) or {"metadata": {}}
    kept = (config["metadata"].get("annotations") or {}).get(ANNOTATION_SPEC_PARTS)
    if kept is None:
        return [] if ref_of(live) == job_ref(job) else ["backend"]
    then, now = json.loads(kept), job.spec_parts
    return sorted(key for key in {*then, *now} if then.get(key) != now.get(key))


def _stop(ctx: Context, job: ElasticJob, live: Manifest) -> Report:
    owner = owner_of("elastic_job", job.namespace, job.name)
    return delete_objects(
        ctx.cluster, [ref_of(live)], owner, check=ctx.check, wait=True, wait_timeout=ctx.params["wait_timeout"]
    )


def _apply(ctx: Context, job: ElasticJob, objects: list[Manifest]) -> Report:
    mine = owner_of("elastic_job", job.namespace, job.name)
    report = apply_objects(
        ctx.cluster,
        objects,
        owner=mine,
        check=ctx.check,
        adopt=ctx.params["adopt"],
        force_conflicts=ctx.params["force_conflicts"],
        on_progress=ctx.progress,
    )
    report.merge(drop_policy(ctx, job.policy_name, job.namespace, mine))
    return report


def _still_to_plan(ctx: Context, objects: list[Manifest], stopped: Report) -> list[Manifest]:
    """In check mode the old Job is still there, and would refuse to become the new one."""
    gone = {change.ref for change in stopped.changes} if ctx.check else set()
    return [item for item in objects if ref_of(item) not in gone]


def _as_one(stopped: Report, applied: Report, wanted: Ref) -> Report:
    """A Job that was deleted to be made again has been recreated; one of the other backend is gone."""
    again = {change.ref for change in stopped.changes if change.action == "deleted" and change.ref == wanted}
    changes = [change for change in applied.changes if change.ref not in again]
    changes += [change for change in stopped.changes if change.ref not in again]
    changes += [Change(ref, "recreated", "trains again") for ref in again]
    return Report(changes, stopped.warnings + applied.warnings, applied.objects)


def _scaled(ctx: Context, job: ElasticJob, live: Manifest, seen: World) -> None:
    """Wait until the rendezvous has the new size and steps go on; else back to what LIVE was."""
    before = wanted_ranks(live)

    def ask(cluster: Cluster) -> tuple[None, str | None]:
        status, now = look(cluster, job.namespace, job.name)
        if status.state == "Failed":
            raise observe.failed(cluster, status)
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
            _apply(ctx, job, _wanted(dataclasses.replace(job, replicas=before), live))
        except MusterError as second:
            raise WaitTimeout(f"{exc.message} Going back to {before} failed, too: {second}") from exc
        raise WaitTimeout(
            f"{exc.message} It is back at {before} replicas.",
            last_seen=exc.last_seen,
            hint="Correct the cause (nodes, GPUs, the script's logs) and scale again, or raise world_timeout.",
        ) from exc


def _follow(
    ctx: Context, job: ElasticJob, ask: t.Callable[[Cluster], tuple[T, str | None]], goal: str, timeout: float
) -> T:
    """Ask whenever the pods of the job change."""
    selector = observe.selector_of("elastic_job", job.name, job.backend)
    return watching.follow(
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
            ctx.warn(str(observe.failed(ctx.cluster, status)))
        return status, seen

    def ask(cluster: Cluster) -> tuple[tuple[JobStatus, World], str | None]:
        now, met = look(cluster, job.namespace, job.name)
        if now.state == "Failed":
            raise observe.failed(cluster, now)
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
        None,
        owner_of("elastic_job", namespace, name),
        check=ctx.check,
        namespace=namespace,
        wait=ctx.params["wait"] != "none",
        wait_timeout=ctx.params["wait_timeout"],
        delete_data=ctx.params["delete_data"],
        on_progress=ctx.progress,
    )

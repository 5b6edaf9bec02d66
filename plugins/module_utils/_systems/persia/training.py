# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What module persia_job does to a cluster: make, begin again, give back, remove.

Private to the collection.
"""

from __future__ import annotations

import typing as t
from collections.abc import Sequence

from ..._core.clock import Deadline
from ..._core.conditions import holds
from ..._core.errors import Immutable, InvalidInput, MissingKind, WaitTimeout
from ..._edge.groups import drop, drop_policy, owner_of
from ..._kube import watching
from ..._kube.deletion import Mark
from ..._kube.engine import apply_objects
from ..._kube.objects import LABEL_OWNER, Manifest, Ref, labels_of, ref_of
from ..._kube.removal import delete_objects
from ..._kube.report import Change, Report
from ..._training import observe
from ..._training.status import JobStatus
from . import native, operator
from .operator import API_VERSION, FINALIZER, JOB_LABEL, KIND
from .spec import PersiaJob, changed_parts

if t.TYPE_CHECKING:
    from ..._edge.run import Context
    from ..._kube.cluster import Cluster

# Seconds that PERSIA's operator has for its finalizer before remove_finalizer does its work.
_OPERATOR_PATIENCE = 20.0


def owner(namespace: str, name: str) -> str:
    """The label of everything that belongs to the job."""
    return owner_of("persia_job", namespace, name)


def present(ctx: Context, job: PersiaJob) -> tuple[Report, JobStatus]:
    """Make the cluster train JOB, or leave alone what has been trained already."""
    objects = _wanted(job)
    _check_kind(ctx, job)
    live = observe.read(ctx.cluster, job.namespace, job.name)
    config = ctx.cluster.get(Ref("v1", "ConfigMap", job.config_name, job.namespace))
    changes = changed_parts(job, config) if live.exists else []
    _refuse_silent_change(ctx, job, changes)
    report = Report()
    if live.exists and (changes or ctx.params["restart"]):
        report = _stop(ctx, job, live)
        live = JobStatus(name=job.name, namespace=job.namespace, state="Unknown")
    over = live.state in ("Succeeded", "Failed")
    _refuse_lost(ctx, job, live)
    if over:
        report.merge(_give_back(ctx, job, live))
        if live.state == "Succeeded" and not report.changed:
            return report, live  # a rerun: there is nothing to wait for, and nothing to look at again
    else:
        applied = _apply(ctx, job, _still_to_plan(ctx, objects, report))
        report = _as_one(report, applied, [ref_of(item) for item in objects])
    if ctx.check:
        return report, live
    return _until(ctx, job, report)


def _wanted(job: PersiaJob, *, finished: bool = False) -> list[Manifest]:
    if job.backend == "operator":
        return operator.manifests(job)
    return native.manifests(job, finished=finished)


def _check_kind(ctx: Context, job: PersiaJob) -> None:
    """In check mode the same run may be about to make the definition."""
    if job.backend == "operator" and not ctx.check and ctx.cluster.resource(API_VERSION, KIND) is None:
        raise MissingKind(
            f"backend operator: this cluster does not serve {KIND} ({API_VERSION}).",
            hint="Install PERSIA's operator (role muster.ml.persia_operator), or use backend: native.",
        )


def _refuse_silent_change(ctx: Context, job: PersiaJob, changes: Sequence[str]) -> None:
    if changes and not (ctx.params["recreate"] or ctx.params["restart"]):
        why = "PERSIA's operator ignores edits" if job.backend == "operator" else "a Job's pods cannot be changed"
        raise Immutable(
            f"Training {job.namespace}/{job.name} is there with other options: {', '.join(changes)}; {why}.",
            hint="recreate: true ends its pods and trains with the new options; another name trains beside it.",
            details={"changed_options": list(changes)},
        )


def _refuse_lost(ctx: Context, job: PersiaJob, live: JobStatus) -> None:
    """Bare pods that are gone stay gone: the operator looks at a PersiaJob once."""
    lost = [group for group in live.groups if len(group.ranks) < group.wanted]
    if job.backend != "operator" or not lost or live.state in ("Succeeded", "Failed") or _is_new(ctx, job):
        return
    told = "; ".join(f"{group.name}: {group.wanted - len(group.ranks)} of {group.wanted}" for group in lost)
    ctx.warn(f"Pods of training {job.namespace}/{job.name} are lost ({told}), and PERSIA's operator does not make them "
             "again. restart: true trains again; backend: native repairs itself.")  # fmt: skip


def _is_new(ctx: Context, job: PersiaJob) -> bool:
    """The operator puts its finalizer there first and makes the pods at once after it."""
    found = ctx.cluster.get(Ref(API_VERSION, KIND, job.name, job.namespace)) or {"metadata": {}}
    return FINALIZER not in (found["metadata"].get("finalizers") or [])


def _apply(ctx: Context, job: PersiaJob, objects: list[Manifest]) -> Report:
    mine = owner(job.namespace, job.name)
    report = apply_objects(
        ctx.cluster,
        objects,
        owner=mine,
        check=ctx.check,
        adopt=ctx.params["adopt"],
        force_conflicts=ctx.params["force_conflicts"],
        recreate=ctx.params["recreate"],
        on_progress=ctx.progress,
    )
    if not job.metrics.enabled and job.backend == "native":
        refs = [
            Ref("apps/v1", "Deployment", job.gateway, job.namespace),
            Ref("v1", "Service", f"{job.gateway}-service", job.namespace),
        ]
        report.merge(drop(ctx, refs, mine))
    report.merge(drop_policy(ctx, job.policy_name, job.namespace, mine))
    return report


def _still_to_plan(ctx: Context, objects: list[Manifest], stopped: Report) -> list[Manifest]:
    """In check mode what would be deleted is still there, and would refuse to become something else."""
    again = {change.ref for change in stopped.changes if change.action == "deleted"} if ctx.check else set()
    return [item for item in objects if ref_of(item) not in again]


def _as_one(stopped: Report, applied: Report, wanted: Sequence[Ref]) -> Report:
    """What was deleted to be made again has been recreated."""
    made = {change.ref: change for change in applied.changes}
    changes = [change for change in applied.changes if change.ref not in {other.ref for other in stopped.changes}]
    for change in stopped.changes:
        if change.action == "deleted" and change.ref in wanted:
            after = made[change.ref].after if change.ref in made else None
            changes.append(Change(change.ref, "recreated", "trains again", after=after))
        else:
            changes.append(change)
    return Report(changes, stopped.warnings + applied.warnings, applied.objects)


def _until(ctx: Context, job: PersiaJob, report: Report) -> tuple[Report, JobStatus]:
    """Wait as long as is wanted, and give back what a finished training does not need."""
    wait = ctx.params["wait"]
    if wait == "none":
        status = observe.read(ctx.cluster, job.namespace, job.name)
        if status.state == "Failed":
            ctx.warn(str(observe.failed(ctx.cluster, status)))
        return report, status
    status = observe.wait(
        ctx.cluster,
        job.namespace,
        job.name,
        wait,
        backend=job.backend,
        timeout=ctx.params["wait_timeout"],
        progress=ctx.progress,
    )
    if status.state == "Succeeded":
        told = {change.ref for change in report.changes if change.changed}
        after = _give_back(ctx, job, status)
        # The plan names each object once: made, and later scaled away, it has been made. It knows no pods yet.
        made = bool(told)
        after.changes = [c for c in after.changes if c.ref not in told and not (made and c.ref.kind == "Pod")]
        known = {change.ref for change in after.changes}
        report.changes = [change for change in report.changes if change.ref not in known]
        report.merge(after)
    return report, status


def _give_back(ctx: Context, job: PersiaJob, status: JobStatus) -> Report:
    """The servers of a training that is over hold memory for nobody. Its Jobs stay, as the record of it."""
    if ctx.params["clean_pod_policy"] == "None":
        return _unchanged(_wanted(job))
    if job.backend == "operator":
        report = _unchanged(_wanted(job))
        # Deleted pods stay deleted: the operator is done with this PersiaJob. Those of the trainers keep their logs.
        left = [r.pod for g in status.groups for r in g.ranks if r.phase in ("Running", "Pending")]
        refs = [Ref("v1", "Pod", name, job.namespace) for name in left]
        made = Mark(job.name, JOB_LABEL, applied=False)
        return report.merge(delete_objects(ctx.cluster, refs, made, check=ctx.check)) if refs else report
    objects = _wanted(job, finished=True)
    jobs = [item for item in objects if item["kind"] == "Job"]
    report = _apply(ctx, job, [item for item in objects if item["kind"] != "Job"])
    for item in jobs:
        report.merge(_stop_job(ctx, job, item))
    return report


def _stop_job(ctx: Context, job: PersiaJob, wanted: Manifest) -> Report:
    """Let a Job rest that would start its pods again; a finished one stays as it is, whatever its template would be today."""
    ref = Ref("batch/v1", "Job", wanted["metadata"]["name"], job.namespace)
    live = ctx.cluster.get(ref)
    if live is None:
        return Report()
    if holds(live, "Complete", "Failed") or not wanted["spec"]["suspend"] or live["spec"].get("suspend"):
        return Report([Change(ref, "unchanged")])
    ctx.cluster.patch(ref, {"spec": {"suspend": True}}, dry_run=ctx.check)
    before, after = {"spec": {"suspend": False}}, {"spec": {"suspend": True}}
    return Report([Change(ref, "updated", "the training is over", before, after)])


def _unchanged(objects: Sequence[Manifest]) -> Report:
    return Report([Change(ref_of(item), "unchanged") for item in objects])


def _stop(ctx: Context, job: PersiaJob, live: JobStatus) -> Report:
    """End the pods of the live training, however it was made; its storage stays."""
    if live.backend == "operator":
        return _remove_operator(ctx, job.namespace, job.name)
    selector = observe.selector_of("persia_job", job.name, "native")
    found = [
        Ref(api_version, kind, item["metadata"]["name"], job.namespace)
        for api_version, kind in (("batch/v1", "Job"), ("apps/v1", "StatefulSet"))
        for item in ctx.cluster.list(api_version, kind, job.namespace, selector)
    ]
    mine, timeout = owner(job.namespace, job.name), ctx.params["wait_timeout"]
    return delete_objects(ctx.cluster, found, mine, check=ctx.check, wait=True, wait_timeout=timeout)


def absent(ctx: Context, namespace: str, name: str) -> Report:
    """Remove the training; its storage only when that is asked for in so many words."""
    mine, params = owner(namespace, name), ctx.params
    config = ctx.cluster.get(Ref("v1", "ConfigMap", f"{name}-config", namespace))
    report = Report()
    resource = ctx.cluster.get(Ref(API_VERSION, KIND, name, namespace))
    if resource is not None and labels_of(resource).get(LABEL_OWNER) == mine:
        report.merge(_remove_operator(ctx, namespace, name))
    elif resource is not None and config is None:
        raise InvalidInput(
            f"{KIND} {namespace}/{name} was not made by this module.", hint="Delete it with the tool that made it."
        )
    deleted = delete_objects(
        ctx.cluster,
        None,
        mine,
        check=ctx.check,
        namespace=namespace,
        wait=params["wait"] != "none",
        wait_timeout=params["wait_timeout"],
        delete_data=params["delete_data"],
        on_progress=ctx.progress,
    )
    known = {change.ref for change in report.changes}
    deleted.changes = [change for change in deleted.changes if change.ref not in known]
    return report.merge(deleted)


def _remove_operator(ctx: Context, namespace: str, name: str) -> Report:
    """Delete the PersiaJob; its finalizer needs the operator, or our own hand where that is allowed."""
    ref = Ref(API_VERSION, KIND, name, namespace)
    timeout = float(ctx.params["wait_timeout"])
    by_hand = bool(ctx.params["remove_finalizer"])
    deadline = Deadline(timeout)
    try:
        report = delete_objects(
            ctx.cluster,
            [ref],
            owner(namespace, name),
            check=ctx.check,
            wait=True,
            wait_timeout=min(timeout, _OPERATOR_PATIENCE if by_hand else timeout),
        )
    except WaitTimeout as exc:
        if not by_hand:
            raise WaitTimeout(
                f"{ref} waits for its finalizer {FINALIZER}, which only PERSIA's operator takes away.",
                last_seen=exc.last_seen,
                hint="Is the operator running? remove_finalizer: true deletes the pods and the finalizer without it.",
                ref=ref,
            ) from exc
        report = _do_operators_work(ctx, ref)
    if not ctx.check:
        _pods_gone(ctx, namespace, name, deadline.for_an_answer)
    return report


def _do_operators_work(ctx: Context, ref: Ref) -> Report:
    """What the operator does for a PersiaJob that is deleted, where there is none."""
    selector = f"{JOB_LABEL}={ref.name}"
    refs = [
        Ref("v1", kind, item["metadata"]["name"], ref.namespace)
        for kind in ("Service", "Pod")
        for item in ctx.cluster.list("v1", kind, ref.namespace, selector)
    ]
    report = delete_objects(ctx.cluster, refs, Mark(ref.name, JOB_LABEL, applied=False), check=ctx.check)
    live = ctx.cluster.get(ref)
    if live is not None:
        kept = [entry for entry in live["metadata"].get("finalizers") or [] if entry != FINALIZER]
        ctx.cluster.patch(ref, {"metadata": {"finalizers": kept or None}}, dry_run=ctx.check)
    return Report([Change(ref, "deleted", "without PERSIA's operator"), *report.changes], report.warnings)


def _pods_gone(ctx: Context, namespace: str, name: str, timeout: float) -> None:
    """The operator does not wait for its pods; a new training of the same name would meet the old ones."""
    selector = f"{JOB_LABEL}={name}"

    def look(cluster: Cluster) -> tuple[None, str | None]:
        left = cluster.list("v1", "Pod", namespace, selector)
        return None, f"{len(left)} pods are still there" if left else None

    said = f"The pods of training {namespace}/{name} are not gone"
    watching.follow(ctx.cluster, namespace, selector, look, goal=said, timeout=timeout, progress=ctx.progress)

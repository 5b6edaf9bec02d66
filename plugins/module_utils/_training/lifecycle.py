# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of a training, the same for every kind: create, recreate with other options, scale, wait, remove."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping, Sequence

from .._core.brief import Missing
from .._core.errors import Failed, Immutable, KeepsFailing, MissingKind, MusterError, WaitTimeout
from .._kube import watching
from .._kube.cluster import Cluster
from .._kube.engine import apply_objects
from .._kube.objects import POD, Manifest, Ref, annotations_of, group_kind, ref_of
from .._kube.queued import place_of
from .._kube.references import require
from .._kube.removal import delete_objects, delete_unwanted
from .._kube.report import Change, Report
from .._manifests.devices import TEMPLATE, templates_named_by
from .._manifests.meta import ANNOTATION_RENDERED, ANNOTATION_SPEC_PARTS, changed_keys, spec_hash
from . import history, room
from .continued import with_live_placement, with_live_programs, with_live_specs
from .failing import MissingImages, RepeatedFailures
from .kind import Backend, Desired, Goal, Kind, Observed, Request
from .logs import failure_of, missing_image_of, repeated_failure_of

_NOT_YET: dict[Goal, str] = {"running": "is not running", "step": "makes no step", "completed": "has not ended"}


def present(request: Request, desired: Desired) -> tuple[Report, Observed]:
    """Create or change the training and wait for it; an ended one is left unchanged, unless a restart is requested.

    Raises Overtaken if another run has created, at the same moment, an object with a generated value.
    """
    _require_kind(request, desired.backend)
    before = desired.kind.observe(request.cluster, desired.namespace, desired.name)
    config = request.cluster.get(Ref("v1", "ConfigMap", desired.config, desired.namespace)) if before.exists else None
    changed = _changed_options(desired, config) if before.exists else []
    if before.exists and before.status.backend != desired.backend.name and not changed:
        changed = ["backend"]
    if changed and not (request.recreate or request.restart):
        raise _immutable(desired, changed)
    again = before.exists and bool(changed or request.restart)
    if again:
        desired = _without_templates_of(before.workloads, desired)
    if before.exists and not again:
        desired = _continued(desired, before, config)
    if before.has_ended and not again:
        return _leave(request, desired, before)
    if desired.precondition:
        desired.precondition(request.cluster)
    if request.preflight and not desired.suspended:
        room.require(request, desired, before, again=again)
    stopped = Report()
    if again:
        history.record(request, desired.kind, desired.namespace, desired.name, stopped="trained again")
        for caveat in require(request.cluster, desired.objects, desired.objects, request.promised):
            request.warn(caveat)
        stopped = _stop(request, desired, before)
    elif before.exists:
        for warning in desired.backend.warnings(before) if desired.backend.warnings else ():
            request.warn(warning)
    made_of = {} if before.exists and not again else dict.fromkeys(desired.made_once)
    # In check mode, objects to be recreated still exist, and the API server would refuse to change them.
    again_later = {change.ref for change in stopped.changes if change.action == "deleted"} if request.check else set()
    left = {*again_later, *desired.kept}
    applied = _apply(request, desired, [item for item in desired.objects if ref_of(item) not in left], made_of)
    applied.changes += [Change(ref, "unchanged", "stays as an earlier version of Muster made it") for ref in desired.kept]
    report = _as_one(stopped, applied, desired.objects) if again else applied
    if request.check:
        return report, before
    if before.exists and not again:
        _scale(request, desired, before)
    return _wait_and_release(request, desired, before, report)


def _require_kind(request: Request, backend: Backend) -> None:
    """Raise if the cluster does not serve the kind of the workload, except in check mode: the run may be about to create the definition."""
    if not backend.installed_by or request.check:
        return
    served = backend.workloads[0]
    if request.cluster.resource(served.api_version, served.kind) is None:
        raise MissingKind(
            f"{f'backend {backend.name}: t' if backend.name else 'T'}his cluster does not serve {served.kind} ({served.api_version}).",
            hint=f"Install {backend.installed_by}{', or use backend: native' if backend.name else ''}.",
        )


def _changed_options(desired: Desired, config: Manifest | None) -> list[str]:
    """Options in which the desired training differs from the live one, according to the latter's ConfigMap."""
    made_with = annotations_of(config or {}).get(ANNOTATION_SPEC_PARTS)
    return changed_keys(json.loads(made_with), desired.parts) if made_with else []


def _immutable(desired: Desired, changed: list[str]) -> Immutable:
    role = desired.kind.role
    of_role = f" (of role {role}: {role}_restart_on_change)" if role else ""
    return Immutable(
        f"{desired} exists with other options: {', '.join(changed)}; {desired.backend.immutable_because}.",
        hint=f"recreate: true{of_role} ends its pods and trains with the new options, from its last checkpoint; another name trains "
        "beside it.",
        details={"changed_options": changed},
    )


def _leave(request: Request, desired: Desired, before: Observed) -> tuple[Report, Observed]:
    """Leave an ended training as it is, and release pods that it no longer needs."""
    unchanged = Report([Change(ref_of(item), "unchanged") for item in desired.objects])
    report = _release_resources(request, desired, before, unchanged)
    if request.check or (before.status.state == "Succeeded" and not report.changed):
        return report, before  # nothing has changed, so there is nothing to wait for
    return _wait_and_release(request, desired, before, report)


def _apply(request: Request, desired: Desired, objects: Sequence[Manifest], made_of: Mapping[Ref, str | None] | None = None) -> Report:
    kinds = {one.group_kind for one in desired.backend.workloads}
    for item in objects:
        if group_kind(item) in kinds and ANNOTATION_RENDERED not in annotations_of(item):
            item["metadata"].setdefault("annotations", {})[ANNOTATION_RENDERED] = spec_hash(item["spec"])
    report = apply_objects(
        request.cluster,
        objects,
        owner=desired.owner,
        check=request.check,
        adopt=request.adopt,
        force_conflicts=request.force_conflicts,
        recreate=request.recreate,
        references=request.promised,
        made_of=made_of,
        on_progress=request.progress,
    )
    if desired.unwanted:
        report.merge(delete_unwanted(request.cluster, desired.unwanted, desired.owner, check=request.check))
    return report


def _stop(request: Request, desired: Desired, before: Observed) -> Report:
    """Delete the pods of the live training, whichever backend runs it; its storage stays."""
    backend = desired.kind.backend(before.status.backend)
    if backend.stop:
        return backend.stop(request, desired.owner, before)
    refs = [ref_of(item) for item in before.workloads]
    return delete_objects(request.cluster, refs, desired.owner, check=request.check, wait=True, wait_timeout=request.wait_timeout)


def _continued(desired: Desired, before: Observed, config: Manifest | None) -> Desired:
    """Return the desired training with the values that the live one keeps while it runs."""
    objects: Sequence[Manifest] = with_live_programs(desired.objects, config, before.workloads)
    if desired.backend.continued:
        objects = desired.backend.continued(objects, before.workloads)
    objects = with_live_specs(desired.backend, objects, before.workloads, desired.size)
    if desired.queue:
        objects = with_live_placement(objects, before.workloads)
    live = {ref_of(item): item["spec"] for item in before.workloads}
    kept = [ref for item in objects if (spec := live.get(ref := ref_of(item))) and {**spec, **item["spec"]} == spec]
    return dataclasses.replace(desired, objects=objects, kept=kept)


def _without_templates_of(workloads: Sequence[Manifest], desired: Desired) -> Desired:
    """The desired training, to which templates of devices do not belong that only the live one uses."""
    gone = sorted(templates_named_by(workloads) - templates_named_by(desired.objects))
    unwanted = [*desired.unwanted, *(Ref(*TEMPLATE, name, desired.namespace) for name in gone)]
    return dataclasses.replace(desired, unwanted=unwanted)


def _as_one(stopped: Report, applied: Report, objects: Sequence[Manifest]) -> Report:
    """The report, with an object that was deleted and created again listed once, as recreated."""
    desired = {ref_of(item) for item in objects}
    made = {change.ref: change for change in applied.changes}
    gone = {change.ref for change in stopped.changes}
    changes = [change for change in applied.changes if change.ref not in gone]
    for change in stopped.changes:
        if change.action == "deleted" and change.ref in desired:
            after = made[change.ref].after if change.ref in made else None
            changes.append(Change(change.ref, "recreated", "trains again", after=after))
        else:
            changes.append(change)
    return Report(changes, stopped.warnings + applied.warnings, applied.objects)


# Waits


def _scale(request: Request, desired: Desired, before: Observed) -> None:
    """If the number of pods has changed, wait until the training makes progress with it; otherwise scale back."""
    size = sum(group.desired for group in before.status.groups)
    missing = desired.kind.scaling_pending_reason
    if missing is None or desired.size in (None, size) or not request.wait:
        return

    def pending_reason(observed: Observed) -> str | None:
        return missing(desired, before, observed)

    try:
        goal = f"{desired} does not continue with {desired.size} pods"
        _follow(request, desired, pending_reason, goal, request.world_timeout)
    except (WaitTimeout, KeepsFailing) as exc:
        objects = desired.backend.sized(desired.objects, size)
        # The error of a rank that keeps failing has lines of its log.
        said = f"{exc.message}\n" if isinstance(exc, KeepsFailing) else f"{exc.message} "
        try:
            _apply(request, desired, objects)
        except MusterError as second:
            raise WaitTimeout(f"{said}Going back to {size} failed, too: {second}") from exc
        raise WaitTimeout(
            f"{said}It is back at {size} replicas.",
            last_seen=exc.details["last_seen"],
            hint="Correct the cause (nodes, GPUs, the script's logs) and scale again, or raise world_timeout.",
        ) from exc


def _wait_and_release(request: Request, desired: Desired, before: Observed, report: Report) -> tuple[Report, Observed]:
    """Wait as requested, and release objects that the training no longer needs if it has ended meanwhile."""
    goal = request.wait_for
    if not request.wait:
        observed = desired.kind.observe(request.cluster, desired.namespace, desired.name)
        if observed.status.state == "Failed":
            request.warn(str(failure_of(request.cluster, observed.status)))
        return report, observed

    def pending_reason(observed: Observed) -> str | None:
        if desired.kind.pending_reason:
            return desired.kind.pending_reason(desired, before, observed, goal)
        return None if goal == "running" and observed.status.state == "Running" else observed.line()

    role = desired.kind.role
    of_role = f" (role {role}: {role}_verify: false)" if role else ""
    no_steps = f"Read its logs (job_logs), and where it hangs (job_stacks). If its script reports no steps, use wait_for: running{of_role}."
    hint = no_steps if goal == "step" else None
    try:
        observed = _follow(request, desired, pending_reason, f"{desired} {_NOT_YET[goal]}", request.wait_timeout, hint)
    except Failed:
        history.record(request, desired.kind, desired.namespace, desired.name)
        raise
    if observed.has_ended:
        history.record(request, desired.kind, desired.namespace, desired.name, seen=observed)
    if observed.status.state == "Succeeded":
        report = _release_resources(request, desired, observed, report)
    return report, observed


def _release_resources(request: Request, desired: Desired, observed: Observed, report: Report) -> Report:
    """Release objects that an ended training does not need. The report lists each object once: if created and scaled down, as created."""
    backend, after = desired.backend, Report()
    if backend.scaled_down:
        after.merge(_apply(request, desired, backend.scaled_down(desired.objects)))
    if backend.finish:
        after.merge(backend.finish(request, observed))
    listed = {change.ref for change in report.changes if change.changed}
    # In check mode, pods of a training that would be created and end in one run are unknown, too.
    later = [c for c in after.changes if c.ref not in listed and not (listed and c.ref.group_kind == POD)]
    known = {change.ref for change in later}
    changes = [change for change in report.changes if change.ref not in known]
    return Report([*changes, *later], report.warnings + after.warnings, {**report.objects, **after.objects})


def _follow(
    request: Request, desired: Desired, pending_reason: Callable[[Observed], str | None], goal: str, timeout: float, hint: str | None = None
) -> Observed:
    """Observe the training whenever one of its pods changes, until nothing is missing, it has ended or it keeps failing."""
    failures, images = RepeatedFailures(), MissingImages(request.image_timeout, request.cluster.clock)

    def observe_once(cluster: Cluster) -> tuple[Observed, str | None]:
        # Its place in a queue is read when the reason is shown, not whenever a pod changes.
        completed = request.wait_for == "completed"
        observed = desired.kind.observe(cluster, desired.namespace, desired.name, progress=completed, placed=False)
        if observed.status.state == "Failed":
            raise failure_of(cluster, observed.status)
        again = failures.find(observed.status)
        if again and not observed.has_ended:
            raise repeated_failure_of(cluster, observed.status, *again)
        without_image = images.find(observed.status)
        if without_image:
            raise missing_image_of(observed.status, without_image)
        missing = None if observed.has_ended else pending_reason(observed)
        if missing and desired.queue and observed.status.state == "Pending":
            missing = Missing.ending(missing, functools.partial(place_of, cluster, observed.workloads[0]))
        return observed, missing

    pods = watching.Changes.of_pods(desired.namespace, desired.backend.selector(desired.name))
    return watching.watch_until(
        request.cluster, pods, observe_once, goal=goal, timeout=float(timeout), progress=request.progress, hint=hint
    )


# Removal


def absent(request: Request, kind: Kind, namespace: str, name: str) -> Report:
    """Delete the training; its storage only with delete_data. The record of it stays."""
    history.record(request, kind, namespace, name, stopped="removed")
    report = kind.before_removal(request, namespace, name) if kind.before_removal else Report()
    deleted = delete_objects(
        request.cluster,
        None,
        kind.owner(namespace, name),
        check=request.check,
        namespace=namespace,
        wait=request.wait,
        wait_timeout=request.wait_timeout,
        delete_data=request.delete_data,
        on_progress=request.progress,
    )
    known = {change.ref for change in report.changes}
    deleted.changes = [change for change in deleted.changes if change.ref not in known]
    return report.merge(deleted)

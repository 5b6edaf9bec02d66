# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an object is ready, and if not, why: one pure predicate per kind. Each accepts None for a missing object."""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
import typing as t

from .._core.conditions import condition, conditions, is_true, reason_of
from .objects import LEADER_WORKER_SET, NAMESPACE, GroupKind, Manifest, group_kind, group_of
from .pod_status import why_not_running


@dataclasses.dataclass(frozen=True)
class State:
    """``reason`` is a clause for people; ``failed`` means that waiting longer is of no use."""

    ready: bool
    reason: str = ""
    failed: bool = False


READY = State(True)
Predicate = t.Callable[["Manifest | None"], State]  # quoted, because Manifest does not support | at run time


def state_of(manifest: Manifest | None, kind: str, api_version: str) -> State:
    """The state of an object of any kind."""
    predicate = PREDICATES.get((group_of(api_version), kind), by_conditions)
    return predicate(manifest)


def deletion_state(manifest: Manifest | None) -> State:
    """The predicate for deletion."""
    if manifest is None:
        return READY
    if not manifest["metadata"].get("deletionTimestamp"):
        return State(False, "is not being deleted yet")
    finalizers = [*(manifest["metadata"].get("finalizers") or []), *_of_namespace(manifest)]
    waits = f" and waits for its finalizers {', '.join(finalizers)}" if finalizers else ""
    return State(False, "; ".join([f"is being deleted since {_deletion_requested_at(manifest)}{waits}", *_remains(manifest)]))


def _deletion_requested_at(manifest: Manifest) -> str:
    """The time at which deletion was requested. deletionTimestamp is the end of the grace period, which for a pod may be in the future."""
    metadata = manifest["metadata"]
    grace = metadata.get("deletionGracePeriodSeconds") or 0
    try:
        ends = dt.datetime.fromisoformat(metadata["deletionTimestamp"])
    except ValueError:
        return str(metadata["deletionTimestamp"])
    return (ends - dt.timedelta(seconds=grace)).isoformat().replace("+00:00", "Z")


def _of_namespace(manifest: Manifest) -> list[str]:
    """A namespace's own finalizers, without ``kubernetes``: what that one waits for is in the conditions."""
    if group_kind(manifest) != NAMESPACE:
        return []
    return [entry for entry in (manifest.get("spec") or {}).get("finalizers") or [] if entry != "kubernetes"]


def _remains(manifest: Manifest) -> list[str]:
    """The conditions that prevent the deletion of a namespace: those that are true."""
    if group_kind(manifest) != NAMESPACE:
        return []
    return [f"{row['type']}: {row.get('message') or row.get('reason')}" for row in conditions(manifest) if row.get("status") == "True"]


def recreated_by(manifest: Manifest) -> str:
    """A clause that says who created the object that has the name of a deleted one, and for whom."""
    metadata = manifest["metadata"]
    entries = [entry for entry in metadata.get("managedFields") or [] if not entry.get("subresource")]
    first: Manifest = min(entries, key=lambda entry: str(entry.get("time")), default={})
    owner = next((row for row in metadata.get("ownerReferences") or [] if row.get("controller")), None)
    by = f" by {first['manager']}" if first.get("manager") else ""
    behalf = f" for {owner['kind']} {owner['name']}" if owner else ""
    return f"was deleted and created again{by}{behalf}"


def _status(manifest: Manifest) -> Manifest:
    return manifest.get("status") or {}


def _of_existing(judge: t.Callable[[Manifest], State]) -> Predicate:
    """The predicate that JUDGE is for an existing object; a missing one is never ready."""

    @functools.wraps(judge)
    def predicate(manifest: Manifest | None) -> State:
        return State(False, "does not exist") if manifest is None else judge(manifest)

    return predicate


def _of_observed(judge: t.Callable[[Manifest], State]) -> Predicate:
    """Judge an object whose controller reports observedGeneration. Until it has seen this generation, the status is of an older spec."""

    @functools.wraps(judge)
    def judge_observed(manifest: Manifest) -> State:
        if _status(manifest).get("observedGeneration", 0) < manifest["metadata"].get("generation", 0):
            return State(False, "its controller has not seen the change yet")
        return judge(manifest)

    return _of_existing(judge_observed)


@_of_existing
def exists(_manifest: Manifest) -> State:
    """Judge kinds whose status does not matter: ready as soon as the object exists."""
    return READY


@_of_observed
def deployment(manifest: Manifest) -> State:
    desired, status = manifest["spec"].get("replicas", 1), _status(manifest)
    progressing = condition(manifest, "Progressing")
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        # Not a failure yet: the cause may just have been repaired, and the condition only tells of the past.
        return State(False, f"{reason_of(progressing)}{_pod_creation_failure(manifest)}")
    updated, available = status.get("updatedReplicas", 0), status.get("availableReplicas", 0)
    refused = _pod_creation_failure(manifest)
    if updated < desired:
        return State(False, f"{updated} of {desired} updated{refused}")
    if status.get("replicas", 0) > updated:
        return State(False, f"{status['replicas'] - updated} old replicas are still there{refused}")
    # replicas: 0 is ready with nothing running
    return READY if available >= desired else State(False, f"{available} of {desired} available{refused}")


def _pod_creation_failure(manifest: Manifest) -> str:
    """Return why pods could not be created. Deployment and ReplicaSet have a condition for it; for others only events show it."""
    failure = condition(manifest, "ReplicaFailure")
    return f"; {reason_of(failure)}" if failure.get("status") == "True" else ""


@_of_observed
def replica_set(manifest: Manifest) -> State:
    desired, status = manifest["spec"].get("replicas", 1), _status(manifest)
    available = status.get("availableReplicas", 0)
    if status.get("replicas", 0) > desired:
        return State(False, f"{status['replicas'] - desired} replicas too many are still there")
    return READY if available >= desired else State(False, f"{available} of {desired} available{_pod_creation_failure(manifest)}")


@_of_observed
def stateful_set(manifest: Manifest) -> State:
    spec, status = manifest["spec"], _status(manifest)
    desired, ready = spec.get("replicas", 1), status.get("readyReplicas", 0)
    if ready < desired:
        return State(False, f"{ready} of {desired} ready")
    if status.get("replicas", 0) > desired:
        return State(False, f"{status['replicas'] - desired} replicas too many are still there")
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return READY
    partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
    updated = status.get("updatedReplicas", 0)
    if status.get("updateRevision") != status.get("currentRevision") and updated < desired - partition:
        return State(False, f"{updated} of {desired - partition} updated")
    return READY


@_of_observed
def leader_worker_set(manifest: Manifest) -> State:
    """Judge the groups; one is ready when all of its pods are."""
    desired, status = manifest["spec"].get("replicas", 1), _status(manifest)
    for said in ("updated", "ready"):
        if status.get(f"{said}Replicas", 0) < desired:
            return State(False, f"{status.get(f'{said}Replicas', 0)} of {desired} {said}")
    more = status.get("replicas", 0) - desired
    return State(False, f"{more} replicas too many are still there") if more > 0 else READY


@_of_observed
def daemon_set(manifest: Manifest) -> State:
    status = _status(manifest)
    desired, ready = status.get("desiredNumberScheduled", 0), status.get("numberReady", 0)
    updated = status.get("updatedNumberScheduled", 0)
    on_delete = (manifest["spec"].get("updateStrategy") or {}).get("type") == "OnDelete"
    if updated < desired and not on_delete:
        return State(False, f"{updated} of {desired} updated")
    return READY if ready >= desired else State(False, f"{ready} of {desired} ready")


@_of_existing
def job(manifest: Manifest) -> State:
    """Ready means complete."""
    failed = condition(manifest, "Failed")
    if failed.get("status") == "True":
        return State(False, f"failed ({reason_of(failed)})", failed=True)
    if is_true(manifest, "Complete"):
        return READY
    status = _status(manifest)
    desired = manifest["spec"].get("completions") or manifest["spec"].get("parallelism", 1)
    if manifest["spec"].get("suspend"):
        return State(False, "is suspended")
    progress = f"{status.get('succeeded', 0)} of {desired} succeeded"
    return State(False, f"{progress}, {status['failed']} failed" if status.get("failed") else progress)


@_of_existing
def pod(manifest: Manifest) -> State:
    status = _status(manifest)
    phase = status.get("phase", "Pending")
    if phase == "Succeeded":
        return READY
    reason, _stuck = why_not_running(manifest)
    if phase == "Failed":
        return State(False, f"failed ({reason})", failed=True)
    if phase == "Running" and is_true(manifest, "Ready"):
        return READY
    reason = reason or ("not ready" if phase == "Running" else "")
    return State(False, f"{phase}: {reason}" if reason else str(phase))


@_of_existing
def claim(manifest: Manifest) -> State:
    """Bound, or waiting for its first pod, as WaitForFirstConsumer demands."""
    phase = _status(manifest).get("phase", "Pending")
    if phase == "Lost":
        return State(False, "lost its volume", failed=True)
    return State(phase == "Bound", "" if phase == "Bound" else str(phase))


@_of_existing
def definition(manifest: Manifest) -> State:
    names = condition(manifest, "NamesAccepted")
    if names.get("status") == "False":
        return State(False, f"its names are not accepted ({reason_of(names)})", failed=True)
    if is_true(manifest, "Established"):
        return READY
    return State(False, "is not established yet")


@_of_existing
def namespace(manifest: Manifest) -> State:
    phase = _status(manifest).get("phase", "Active")
    return READY if phase == "Active" else State(False, "; ".join([f"is {phase}", *_remains(manifest)]))


@_of_existing
def service(manifest: Manifest) -> State:
    """Has its address, which a load balancer gets only after a while."""
    if manifest.get("spec", {}).get("type") != "LoadBalancer":
        return READY
    ingress = (_status(manifest).get("loadBalancer") or {}).get("ingress")
    return READY if ingress else State(False, "has no load balancer address yet, which a cloud or a controller like MetalLB gives")


@_of_existing
def by_conditions(manifest: Manifest) -> State:
    """Judge custom resources and all other kinds by the conventional conditions: ready if it has none of them."""
    status: t.Any = _status(manifest)
    if not isinstance(status, dict):
        return READY  # a custom resource may use the field for anything
    observed = status.get("observedGeneration")
    if isinstance(observed, int) and observed < manifest["metadata"].get("generation", 0):
        return State(False, "its controller has not seen the change yet")
    for kind in ("Failed", "Stalled"):
        found = condition(manifest, kind)
        if found.get("status") == "True":
            return State(False, f"{kind.lower()} ({reason_of(found)})", failed=True)
    for kind in ("Ready", "Available", "Complete", "Succeeded"):
        found = condition(manifest, kind)
        if found:
            return READY if found.get("status") == "True" else State(False, reason_of(found) or f"is not {kind}")
    return READY


@_of_existing
def gateway(manifest: Manifest) -> State:
    """Judge a Gateway of the Gateway API: its controller has accepted it, and its listeners are programmed."""
    return _all_true(manifest, conditions(manifest), ("Accepted", "Programmed"))


@_of_existing
def route(manifest: Manifest) -> State:
    """Judge a route of the Gateway API: each Gateway that it names has accepted it, with resolved backends."""
    named = len((manifest["spec"] or {}).get("parentRefs") or ())
    parents = _status(manifest).get("parents") or []
    if len(parents) < named:
        return State(False, f"{named - len(parents)} of its {named} Gateways has no controller that took it up")
    states = (_all_true(manifest, row.get("conditions") or [], ("Accepted", "ResolvedRefs")) for row in parents)
    return next((state for state in states if not state.ready), READY)


def _all_true(manifest: Manifest, rows: t.Sequence[t.Mapping[str, t.Any]], kinds: tuple[str, ...]) -> State:
    """Whether conditions are true, and about the generation that there is."""
    generation = manifest["metadata"].get("generation", 0)
    seen = {"status": {"conditions": list(rows)}}
    for kind in kinds:
        found = condition(seen, kind)
        if found.get("observedGeneration", generation) < generation:
            return State(False, "its controller has not seen the change yet")
        if not is_true(seen, kind):
            return State(False, f"is not {kind}: {reason_of(found)}" if found else f"is not {kind} yet")
    return READY


@_of_existing
def pod_autoscaler(manifest: Manifest) -> State:
    """Reads its metrics. One that was switched off, with 0 replicas, has nothing to read."""
    active = condition(manifest, "ScalingActive")
    if active.get("status") == "True" or active.get("reason") == "ScalingDisabled":
        return READY
    able = condition(manifest, "AbleToScale")
    failing = active or (able if able.get("status") == "False" else {})
    return State(False, f"does not scale ({reason_of(failing)})" if failing else "its controller has not seen it yet")


PREDICATES: dict[GroupKind, Predicate] = {
    ("", "Namespace"): namespace,
    ("", "PersistentVolumeClaim"): claim,
    ("", "Pod"): pod,
    ("", "ReplicationController"): replica_set,
    ("", "Service"): service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): definition,
    ("apps", "DaemonSet"): daemon_set,
    ("apps", "Deployment"): deployment,
    ("apps", "ReplicaSet"): replica_set,
    ("apps", "StatefulSet"): stateful_set,
    ("autoscaling", "HorizontalPodAutoscaler"): pod_autoscaler,
    ("batch", "CronJob"): exists,
    ("batch", "Job"): job,
    ("gateway.networking.k8s.io", "Gateway"): gateway,
    ("gateway.networking.k8s.io", "GRPCRoute"): route,
    ("gateway.networking.k8s.io", "HTTPRoute"): route,
    LEADER_WORKER_SET: leader_worker_set,
}

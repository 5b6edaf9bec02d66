# SPDX-License-Identifier: GPL-3.0-or-later
"""Reasons why a pod does not run, as the scheduler, the kubelet or the container report them. Pure functions."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

from .._core.conditions import condition, is_true, reason_of
from .._core.errors import Causes, cause_of
from .objects import Manifest, annotations_of

STUCK = {
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "RunContainerError",
}
"""Reasons why a container waits that do not pass by themselves."""
_PULLING = ("ErrImagePull", "ImagePullBackOff")
_REFUSED, _UNBOUND = "refused image", "unbound claim"
_CAUSES: Causes = (
    # "pod has unbound immediate PersistentVolumeClaims", of the scheduler's plugin VolumeBinding.
    (_UNBOUND, re.compile("PersistentVolumeClaim")),
    # Answers of a registry, and not that it cannot be reached.
    (_REFUSED, re.compile(r"not found|notfound|unauthorized|forbidden|denied|authorization failed", re.IGNORECASE)),
)
_PREEMPTION = re.compile(r"[.,]? (?:(?:no new claims to deallocate|still not schedulable), )?preemption: .*$", re.DOTALL)
"""Text that the scheduler adds to the cause where preemption would not help (its plugins DynamicResources, DefaultPreemption; 1.36.3)."""
_DEVICES = re.compile(r"all claims|resource ?claim|device", re.IGNORECASE)
"""The words of the scheduler's plugin DynamicResources for what it cannot allocate (1.36.3)."""
_STARTING = ("ContainerCreating", "PodInitializing")
_KILLED = (137, 143)
"""Exit status of a process that was ended by SIGKILL or SIGTERM."""
_LOST = ("ContainerStatusUnknown", "Unknown")
"""The reason that the kubelet gives for a container that ended with its node."""


@dataclasses.dataclass(frozen=True, order=True)
class EndedRun:
    """A run of a container that has ended. In the order of their ends; times are as Kubernetes writes them."""

    finished: str
    started: str
    pod: str
    container: str
    reason: str
    exit_code: int
    was_ended: bool = False
    """Whether it did not end by itself: it was killed, or its pod was evicted."""

    def __str__(self) -> str:
        return f"{self.reason} (exit status {self.exit_code})"


def ended_runs(pod: Manifest) -> Iterator[EndedRun]:
    """The ended runs that the pod's status knows: of each container the latest, and the one before."""
    disrupted = is_true(pod, "DisruptionTarget")
    for container in container_statuses(pod):
        for state in ("lastState", "state"):
            ended = (container.get(state) or {}).get("terminated")
            if ended:
                code, reason = int(ended.get("exitCode") or 0), ended.get("reason") or "Error"
                killed = reason in _LOST or (code in _KILLED and reason != "OOMKilled")
                times = str(ended.get("finishedAt") or ""), str(ended.get("startedAt") or "")
                where = pod["metadata"]["name"], container.get("name") or ""
                yield EndedRun(*times, *where, reason, code, disrupted or killed)


def why_not_running(pod: Manifest) -> tuple[str, bool]:
    """Return the reason (empty if the pod's status has none), and whether it stays until a user acts."""
    status = pod.get("status") or {}
    if status.get("phase") == "Failed":
        return _ended_badly(pod), True
    scheduled = condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        claims = f"; claims of devices: {', '.join(found)}" if (found := device_claims(pod)) else ""
        return (_PREEMPTION.sub("", reason_of(scheduled)) or "Unschedulable") + claims, True
    containers = container_statuses(pod)
    for container in containers:
        reason, stuck = _of_container(container)
        if reason:
            return (f"container {container.get('name')}: {reason}" if len(containers) > 1 else reason), stuck
    return "", False


def device_claims(pod: Manifest) -> dict[str, str]:
    """The claims of devices that keep a pod from a node: the name in the pod -> the ResourceClaim, empty if it is not made yet.

    The scheduler does not say which of them it cannot allocate.
    """
    if not _DEVICES.search(reason_of(condition(pod, "PodScheduled"))):
        return {}
    made = {one["name"]: one.get("resourceClaimName") for one in (pod.get("status") or {}).get("resourceClaimStatuses") or ()}
    claims = (pod.get("spec") or {}).get("resourceClaims") or ()
    return {one["name"]: one.get("resourceClaimName") or made.get(one["name"]) or "" for one in claims}


def waits_for_claim(pod: Manifest) -> bool:
    """Whether the scheduler names claims as the reason."""
    return cause_of(condition(pod, "PodScheduled").get("message"), _CAUSES) == _UNBOUND


def image_trouble(pod: Manifest) -> tuple[str, bool]:
    """Return why the image of a pod is not pulled (empty if it is), and whether the registry has refused it: trying again does not help."""
    for container in container_statuses(pod):
        waiting = (container.get("state") or {}).get("waiting") or {}
        refused = waiting.get("reason") == "InvalidImageName" or cause_of(waiting.get("message"), _CAUSES) == _REFUSED
        if waiting.get("reason") in (*_PULLING, "InvalidImageName"):
            return reason_of(waiting), refused
    return "", False


def main_container(pod: Manifest) -> Manifest:
    """The main container of a pod, as kubectl chooses it. Others, such as an injected proxy, may stand before it."""
    containers = (pod.get("spec") or {}).get("containers") or [{}]
    named = annotations_of(pod).get("kubectl.kubernetes.io/default-container")
    return next((one for one in containers if one.get("name") == named), containers[0])


def main_status(pod: Manifest) -> Manifest:
    """The status of the main container, by its name: the kubelet orders them by name. Empty if it has told none yet."""
    name, found = main_container(pod).get("name"), (pod.get("status") or {}).get("containerStatuses") or []
    return next((one for one in found if one.get("name") == name), {})


def sidecars_of(pod: Manifest) -> set[str]:
    """The containers that run beside the main one."""
    spec, main = pod.get("spec") or {}, main_container(pod)
    beside = [one for one in spec.get("initContainers") or [] if one.get("restartPolicy") == "Always"]
    return {one["name"] for one in (*beside, *(spec.get("containers") or [])) if one is not main}


def container_statuses(pod: Manifest) -> list[Manifest]:
    """The statuses of its containers: those of init containers first, then that of the main one."""
    status, main = pod.get("status") or {}, main_container(pod).get("name")
    started = sorted(status.get("containerStatuses") or [], key=lambda one: bool(one.get("name") != main))
    return [*(status.get("initContainerStatuses") or []), *started]


def _of_container(container: Manifest) -> tuple[str, bool]:
    state = container.get("state") or {}
    waiting, terminated = state.get("waiting") or {}, state.get("terminated") or {}
    if waiting.get("reason") and waiting["reason"] not in _STARTING:
        last = (container.get("lastState") or {}).get("terminated")
        return f"{waiting['reason']} after {_ended(last)}" if last else reason_of(waiting), waiting["reason"] in STUCK
    return _ended(terminated) if terminated.get("exitCode") else "", False


def _ended_badly(pod: Manifest) -> str:
    """Return the container that failed of a failed pod, the main one first, or what ended the pod as a whole (an eviction)."""
    ended = [(container.get("state") or {}).get("terminated") or {} for container in (main_status(pod), *container_statuses(pod))]
    failed = next((one for one in ended if one.get("exitCode")), None)
    return _ended(failed) if failed else reason_of(pod["status"]) or "Error"


def _ended(terminated: Manifest) -> str:
    return f"{terminated.get('reason') or 'Error'} (exit status {terminated.get('exitCode')})"

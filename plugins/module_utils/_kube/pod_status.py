# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a pod does not run, in the words of the scheduler, the kubelet or the container. Pure.

Private to the collection.
"""

from __future__ import annotations

from .._core.conditions import condition, reason_of
from .objects import Manifest

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
_STARTING = ("ContainerCreating", "PodInitializing")


def why_not_running(pod: Manifest) -> tuple[str, bool]:
    """The reason (empty if the pod's status has none), and whether it stays until somebody acts."""
    status = pod.get("status") or {}
    if status.get("phase") == "Failed":
        return _ended_badly(status), True
    scheduled = condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        return reason_of(scheduled) or "Unschedulable", True
    containers = _containers(status)
    for container in containers:
        reason, stuck = _of_container(container)
        if reason:
            return (f"container {container.get('name')}: {reason}" if len(containers) > 1 else reason), stuck
    return "", False


def _containers(status: Manifest) -> list[Manifest]:
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def _of_container(container: Manifest) -> tuple[str, bool]:
    state = container.get("state") or {}
    waiting, terminated = state.get("waiting") or {}, state.get("terminated") or {}
    if waiting.get("reason") and waiting["reason"] not in _STARTING:
        last = (container.get("lastState") or {}).get("terminated")
        return f"{waiting['reason']} after {_ended(last)}" if last else reason_of(waiting), waiting["reason"] in STUCK
    return _ended(terminated) if terminated.get("exitCode") else "", False


def _ended_badly(status: Manifest) -> str:
    """For a failed pod: the container that failed, or what ended the pod as a whole (an eviction)."""
    ended = [(container.get("state") or {}).get("terminated") or {} for container in _containers(status)]
    failed = next((one for one in ended if one.get("exitCode")), None)
    return _ended(failed) if failed else reason_of(status) or "Error"


def _ended(terminated: Manifest) -> str:
    return f"{terminated.get('reason') or 'Error'} (exit status {terminated.get('exitCode')})"

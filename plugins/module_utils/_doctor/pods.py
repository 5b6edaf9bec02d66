# SPDX-License-Identifier: GPL-3.0-or-later
"""Find pods that do not run, are not ready, have failed or stay in deletion, with the causes.

The reasons are those of the scheduler, the kubelet and the controllers of Kubernetes 1.36; tests/faults/test_doctor.py makes each for real.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Container, Iterator

from .._core.conditions import condition, is_true, reason_of
from .._core.errors import Causes, MusterError, cause_of
from .._kube.objects import Manifest, ref_of
from .._kube.pod_status import EndedRun, container_statuses, device_claims, ended_runs, image_trouble, sidecars_of, why_not_running
from .._kube.ready import deletion_state
from .findings import Finding, Severity
from .reading import Snapshot

_SETTLED = 20.0
"""Seconds in which a pod may start, stop or become ready without a finding."""
_LINES, _LONGEST = 5, 200
"""Lines of a log that a finding quotes, and letters of one."""
_NO_LOG = "unable to retrieve container logs for "
"""Answer of the kubelet instead of the log of a container that it has removed (pkg/kubelet/kuberuntime of Kubernetes 1.36)."""
_RECENT = 600.0
"""Seconds for which a container that runs again is remembered as one that was ended."""

_FITS = (
    (r"Insufficient ([\w./-]+)", "Lower the pod's request of {0}, add nodes with it, or end what takes it."),
    (r"untolerated taints?", "Add a toleration for the taint, or remove the taint from a node."),
    (r"didn't match Pod's node affinity/selector", "Correct the node selector or affinity, or label a node so that it matches."),
    (r"volume node affinity conflict", "The volume is in another zone or on another node: run the pod there, or create another volume."),
    (r"Too many pods", "Add nodes, or raise the number of pods of a node (maxPods of its kubelet)."),
    (r"unschedulable", "Make a node schedulable again: kubectl uncordon NODE."),
    (r"pod (anti-)?affinity rules", "Loosen the pod's affinity or anti-affinity, or add nodes."),
    (r"topology spread constraints", "Loosen the topology spread constraints, or add nodes in the missing zones."),
    (r"free ports", "The host port is taken on each node: use another one, or none."),
    (r"no nodes available", "Add a node to the cluster."),
    (
        r"cannot allocate all claims|resourceclaim",
        "Ask for fewer devices, add nodes with them, or end what has them: kubectl describe resourceclaim, kubectl get resourceslice.",
    ),
)
"""Reasons of the scheduler's plugins (pkg/scheduler/framework/plugins of Kubernetes 1.36) with the next step."""
_WAITING = {
    "ErrImageNeverPull": ("image is not on the node", "Load the image on the node, or let the pod pull it (imagePullPolicy)."),
    "CreateContainerError": ("container cannot be created", "Correct what the evidence names; kubectl describe pod has the events."),
    "RunContainerError": ("command cannot be started", "Correct the container's command, or use an image that has it."),
}
_EVENTS = {
    "FailedMount": ("volume cannot be mounted", "Create what the volume names, or correct the name."),
    "FailedAttachVolume": ("volume cannot be attached", "See which node still has the volume, and the log of the storage driver."),
    "FailedCreatePodSandBox": ("network of the pod cannot be set up", "See the log of the node's network plugin and container runtime."),
    "NodeNotReady": ("node is lost", "Repair or remove the node: see the finding about it."),
}
"""Warnings about a pod that has not started, with cause and next step."""
_NAMED, _ROOT = "names an object that does not exist", "image runs as root, which the pod forbids"
_KUBELET: Causes = ((_NAMED, re.compile(r"not found|couldn't find key")), (_ROOT, re.compile(r"runAsNonRoot|non-root")))
"""Reasons for which the kubelet refuses the configuration of a container."""
_SIGNAL = 128
"""Exit statuses above are 128 and the number of the signal that ended the process."""
_DISRUPTED = {
    "PreemptionByScheduler": ("preempted", "Give the workload a higher priority class, or add nodes."),
    "DeletionByTaintManager": ("evicted by a taint of its node", "Repair the node, or add a toleration."),
    "EvictionByEvictionAPI": ("evicted, as when its node is drained", "It starts again where its controller makes a new one."),
    "TerminationByKubelet": ("evicted by its node", "The node ran out of what the evidence names: set requests and limits, or free it."),
    "DeletionByPodGC": ("ended with its node", "Repair or remove the node."),
}
"""Reasons of a pod's condition DisruptionTarget (documentation of Kubernetes, Disruptions) with cause and next step."""


def pods(seen: Snapshot) -> Iterator[Finding]:
    """The findings about all pods of the namespace."""
    done = {one["metadata"].get("uid") for one in seen.of("Job") if is_true(one, "Complete")}
    for pod in seen.of("Pod"):
        if not _is_over(pod, done):
            yield from _of_pod(seen, pod)


def _is_over(pod: Manifest, done: Container[str]) -> bool:
    """Whether it has succeeded, or belongs to one of the Jobs DONE, which have succeeded in spite of it."""
    owners = pod["metadata"].get("ownerReferences") or []
    return (pod.get("status") or {}).get("phase") == "Succeeded" or any(owner.get("uid") in done for owner in owners)


def _finding(
    pod: Manifest, cause: str, evidence: str, advice: str, severity: Severity = "error", log: Callable[[], str] | None = None
) -> Finding:
    owners = pod["metadata"].get("ownerReferences") or []
    group = next((f"{owner['kind']} {owner['name']}" for owner in owners if owner.get("controller")), "")
    return Finding(severity, str(ref_of(pod)), cause, evidence, advice, group, log)


def _of_pod(seen: Snapshot, pod: Manifest) -> Iterator[Finding]:
    status = pod.get("status") or {}
    if pod["metadata"].get("deletionTimestamp"):
        yield from _terminating(seen, pod)
    elif status.get("phase") == "Failed":
        yield _failed(seen, pod)
    elif condition(pod, "PodScheduled").get("status") == "False":
        yield from _unscheduled(pod)
    else:
        waiting = list(_waiting(seen, pod))
        yield from waiting or _not_ready(seen, pod)


def _terminating(seen: Snapshot, pod: Manifest) -> Iterator[Finding]:
    if seen.age(pod["metadata"]["deletionTimestamp"]) < _SETTLED:
        return
    finalizers, node = pod["metadata"].get("finalizers"), seen.node(pod)
    if finalizers:
        advice = f"What set {', '.join(finalizers)} must remove it; where that is gone, remove the finalizer."
    elif node is None or condition(node, "Ready").get("status") != "True":
        advice = "Its node does not answer. Repair it; or delete the Node object, if the machine is gone for good."
    else:
        advice = "See the log of the kubelet and of the container runtime on its node."
    yield _finding(pod, "stays in deletion", deletion_state(pod).reason, advice)


def _failed(seen: Snapshot, pod: Manifest) -> Finding:
    status = pod["status"]
    reason, message = status.get("reason") or "", status.get("message") or ""
    disrupted = condition(pod, "DisruptionTarget")
    if reason == "Evicted":
        return _finding(pod, "evicted by its node", message, _DISRUPTED["TerminationByKubelet"][1])
    if reason == "DeadlineExceeded":
        return _finding(pod, "deadline exceeded", message, "Raise activeDeadlineSeconds, or make the program faster.")
    if disrupted.get("status") == "True":
        cause, advice = _DISRUPTED.get(str(disrupted.get("reason")), ("ended from outside", "See what ended it."))
        return _finding(pod, cause, reason_of(disrupted), advice)
    if reason and not list(ended_runs(pod)):
        return _finding(pod, f"refused by its node ({reason})", message, "Correct what the evidence names, and create the pod again.")
    beside = sidecars_of(pod)
    last = max(ended_runs(pod), key=lambda run: (bool(run.exit_code), run.container not in beside, run), default=None)
    return _ended(seen, pod, last, previous=False) if last else _finding(pod, "failed", why_not_running(pod)[0], "See its log.")


def _ended(seen: Snapshot, pod: Manifest, run: EndedRun, *, previous: bool, again: bool = False) -> Finding:
    """Return the finding about a container that ended: by too much memory, by a signal, or by itself, with the last lines of its log."""
    where = f"container {run.container}: {run}"
    if run.reason == "OOMKilled":
        return _finding(pod, "out of memory", where, "Raise the container's memory limit, or use less, such as by smaller batches.")
    if run.reason == "StartError":
        return _finding(pod, "command cannot be started", f"{where}: {_message(pod, run)}", _WAITING["RunContainerError"][1])
    cause, advice = "crashes again and again" if again else "failed", "Correct what the log tells, then run it again."
    if run.exit_code > _SIGNAL and not again:
        cause = f"ended by signal {run.exit_code - _SIGNAL}"
        advice = "See what sent the signal: the program itself, a probe, a user, or its node."
    return _finding(pod, cause, where, advice, log=functools.partial(_log, seen, pod, run.container, previous=previous))


def _message(pod: Manifest, run: EndedRun) -> str:
    """The message of the container runtime about a container that did not start."""
    for container in container_statuses(pod):
        for name in ("state", "lastState"):
            ended = (container.get(name) or {}).get("terminated") or {}
            if container.get("name") == run.container and ended.get("message"):
                return " ".join(str(ended["message"]).split())[:_LONGEST]
    return ""


def _log(seen: Snapshot, pod: Manifest, container: str, *, previous: bool) -> str:
    ref = ref_of(pod)
    try:
        text = seen.cluster.logs(ref.namespace or "", ref.name, container=container, tail_lines=_LINES, previous=previous)
    except MusterError:
        return ""  # it only helps to say more
    return " | ".join(line.strip()[:_LONGEST] for line in text.splitlines() if line.strip() and not line.startswith(_NO_LOG))


def _unscheduled(pod: Manifest) -> Iterator[Finding]:
    found = condition(pod, "PodScheduled")
    why = why_not_running(pod)[0]
    if found.get("reason") == "SchedulingGated":
        gates = ", ".join(gate["name"] for gate in pod["spec"].get("schedulingGates") or [])
        yield _finding(pod, "held by a scheduling gate", f"gates: {gates}", "What set the gate must remove it, such as a queue.", "warning")
    elif "PersistentVolumeClaim" not in why and '"persistentvolumeclaim' not in why.lower():
        claims = [f"{name}: ResourceClaim {made or 'is not made yet'}" for name, made in device_claims(pod).items()]
        why = "; ".join([why, *claims])
        steps = [advice.format(*match.groups()) for text, advice in _FITS if (match := re.search(text, why))]
        yield _finding(pod, "fits on no node", why, " ".join(steps) or "See the evidence for what each node lacks.")


def _waiting(seen: Snapshot, pod: Manifest) -> Iterator[Finding]:
    """The first container that waits for what does not come by itself."""
    image, refused = image_trouble(pod)
    if image:
        yield _image(pod, image, refused=refused)
        return
    for container in container_statuses(pod):
        waiting = (container.get("state") or {}).get("waiting") or {}
        reason, evidence = waiting.get("reason"), f"container {container.get('name')}: {reason_of(waiting)}"
        last = max((run for run in ended_runs(pod) if run.container == container.get("name")), default=None)
        ended = (container.get("state") or {}).get("terminated") or {}
        if last and (reason == "CrashLoopBackOff" or (ended.get("exitCode") and container.get("restartCount"))):
            yield _ended(seen, pod, last, previous=not ended, again=True)
        elif reason == "CreateContainerConfigError":
            yield _configuration(pod, evidence)
        elif reason in _WAITING:
            yield _finding(pod, _WAITING[reason][0], evidence, _WAITING[reason][1])
        else:
            continue
        return


def _image(pod: Manifest, evidence: str, *, refused: bool) -> Finding:
    if evidence.partition(":")[0] == "InvalidImageName":
        return _finding(pod, "name of the image is wrong", evidence, "It is REGISTRY/PATH:TAG, the path in lower case and without spaces.")
    if refused:
        advice = "Correct the image's name, push it, or name the Secret with the registry's credentials in image_pull_secrets."
        return _finding(pod, "image is refused by its registry", evidence, advice)
    return _finding(pod, "registry cannot be reached", evidence, "See whether the node can resolve and reach the registry (DNS, proxy).")


def _configuration(pod: Manifest, evidence: str) -> Finding:
    cause = cause_of(evidence, _KUBELET)
    if cause == _NAMED:
        return _finding(pod, cause, evidence, "Create it, or correct the name.")
    if cause == _ROOT:
        advice = "Set run_as_user to a user other than 0, or use an image whose user is a number other than 0."
        return _finding(pod, cause, evidence, advice)
    return _finding(pod, "container cannot be created", evidence, _WAITING["CreateContainerError"][1])


def _not_ready(seen: Snapshot, pod: Manifest) -> Iterator[Finding]:
    """Findings about a pod that has not started or is not ready, from its events; and about one that was ended and runs again."""
    ready = condition(pod, "Ready")
    reason, message = seen.warning(pod)
    since = seen.age(ready.get("lastTransitionTime")) if ready else seen.age_of(pod)
    if ready.get("status") != "True" and since > _SETTLED:
        if reason in _EVENTS:
            yield _finding(pod, _EVENTS[reason][0], message, _EVENTS[reason][1])
        elif reason == "Unhealthy":
            probe = message.partition(" ")[0].lower()
            advice = "See its log; correct the probe's path and port, or give the program more time (startupProbe)."
            yield _finding(pod, f"{probe} probe fails", message, advice)
        return
    last = max(ended_runs(pod), default=None)
    if last and last.exit_code and not last.was_ended and seen.age(last.finished) < _RECENT:
        found = _ended(seen, pod, last, previous=True)
        yield dataclasses.replace(found, cause=f"{found.cause}, and was started again", severity="warning")

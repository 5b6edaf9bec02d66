# SPDX-License-Identifier: GPL-3.0-or-later
"""Find workloads without pods, failed ones, those that wait in a queue, and Services and autoscalers that do not work."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .._core.conditions import condition, conditions, is_true, reason_of
from .._kube.objects import JOB, Manifest, group_kind, labels_of, ref_of, selector_of
from .._kube.uses import TRAININGS
from .findings import Finding
from .reading import KUEUE, Snapshot, state

_SETTLED = 30.0
"""Seconds in which a controller may see to an object without a finding."""
_ADDRESS = 120.0
"""Seconds in which a load balancer gets its address without a finding."""
_REFUSED = (
    (r"exceeded quota|insufficient quota", "quota is used up", "Raise the ResourceQuota, lower the requests, or end what uses it."),
    ("must specify", "quota wants requests and limits", "Set requests and limits of what the evidence names on each container."),
    ("violates PodSecurity", "forbidden by Pod Security", "Set what the evidence names in the pod, or label the namespace otherwise."),
    (
        r"(maximum|minimum) [\w./-]+ usage per|max limit to request ratio",
        "outside of a LimitRange",
        "Change the requests or limits, or the LimitRange.",
    ),
    ("error looking up service account|serviceaccount .* not found", "service account does not exist", "Create it, or correct its name."),
    ("no PriorityClass with name", "priority class does not exist", "Create it, or correct its name."),
    ("RuntimeClass .*not found", "runtime class does not exist", "Create it, or correct its name."),
    (
        "failed calling webhook",
        "webhook does not answer",
        "Get the pods behind it ready, or delete its configuration if its operator was removed.",
    ),
    ("admission webhook|ValidatingAdmissionPolicy", "refused by a policy", "Change what the evidence names, or the policy."),
)
"""Refusals of pods by the API server's admission plugins, with cause and next step."""
_MAKERS = ("Job", "ReplicaSet", "StatefulSet", "DaemonSet")


def workloads(seen: Snapshot) -> Iterator[Finding]:
    """The findings about workloads, Services, routes, autoscalers and budgets."""
    for rule in (_without_pods, _jobs, _trainings, _queued, _services, _gateways, _autoscalers, _budgets):
        yield from rule(seen)


def _finding(item: Manifest, cause: str, evidence: str, advice: str) -> Finding:
    return Finding("error", str(ref_of(item)), cause, evidence, advice)


def _without_pods(seen: Snapshot) -> Iterator[Finding]:
    """Workloads whose last attempt to create a pod was refused."""
    for item in (row for kind in _MAKERS for row in seen.of(kind)):
        reason, message = seen.warning(item)
        if reason != "FailedCreate" or _has_its_pods(item):
            continue
        cause, advice = next(
            ((cause, advice) for text, cause, advice in _REFUSED if re.search(text, message)),
            ("pods cannot be created", "Correct what the evidence names."),
        )
        yield _finding(item, cause, message, advice)


def _has_its_pods(item: Manifest) -> bool:
    spec, status = item.get("spec") or {}, item.get("status") or {}
    if group_kind(item) == JOB:
        left = int(spec.get("completions") or spec.get("parallelism") or 1) - int(status.get("succeeded") or 0)
        enough = int(status.get("active") or 0) >= min(int(spec.get("parallelism") or 1), left)
        return enough or is_true(item, "Complete", "Failed") or bool(spec.get("suspend"))
    if group_kind(item) == ("apps", "DaemonSet"):
        return bool(status.get("currentNumberScheduled", 0) >= status.get("desiredNumberScheduled", 0))
    return bool(int(status.get("replicas") or 0) >= int(spec.get("replicas", 1)))


def _jobs(seen: Snapshot) -> Iterator[Finding]:
    """Jobs that have failed as a whole. Why a pod failed is a finding about the pod."""
    for item in seen.of("Job"):
        failed = condition(item, "Failed")
        if failed.get("status") == "True":
            late = failed.get("reason") == "DeadlineExceeded"
            advice = (
                "Raise activeDeadlineSeconds, or make the program faster."
                if late
                else "See the findings about its pods; then run it again."
            )
            yield _finding(item, "deadline exceeded" if late else "Job has failed", reason_of(failed), advice)


def _trainings(seen: Snapshot) -> Iterator[Finding]:
    """Trainings of operators that have failed, by their own condition."""
    for _group, kind in TRAININGS:
        for item in seen.of(kind):
            failed = condition(item, "Failed")
            if failed.get("status") == "True":
                yield _finding(item, "training has failed", reason_of(failed), "See the findings about its pods; then set restart: true.")


def _queued(seen: Snapshot) -> Iterator[Finding]:
    """Workloads of Kueue that wait for quota, and queues that admit nothing."""
    for item in seen.of("LocalQueue"):
        active = condition(item, "Active")
        if item["apiVersion"].startswith(KUEUE) and active.get("status") == "False":
            yield _finding(
                item, "queue admits nothing", reason_of(active), "Create or repair the ClusterQueue and the flavors that it names."
            )
    for item in seen.of("Workload"):
        waits = condition(item, "QuotaReserved")
        if waits.get("status") == "False" and seen.age_of(item) > _SETTLED and not is_true(item, "Finished"):
            advice = "It starts when others end. Lower its requests if they exceed the quota of its ClusterQueue."
            yield Finding("warning", str(ref_of(item)), "waits in its queue", reason_of(waits), advice)


def _services(seen: Snapshot) -> Iterator[Finding]:
    """Services that select nothing, and those whose load balancer has no address."""
    for item in seen.of("Service"):
        spec = item.get("spec") or {}
        selector = spec.get("selector") or {}
        if selector and seen.age_of(item) > _SETTLED and not seen.pods_of(selector) and not _is_made(seen, selector):
            evidence = f"no pod, and no workload's pod template, has the labels {selector_of(selector)}"
            yield Finding(
                "warning", str(ref_of(item)), "Service selects no pods", evidence, "Correct its selector, or the labels of the pods."
            )
        if spec.get("type") == "LoadBalancer" and not state(item).ready and seen.age_of(item) > _ADDRESS:
            evidence = " ".join(filter(None, [state(item).reason, *seen.warning(item)]))
            yield _finding(
                item,
                "load balancer has no address",
                evidence,
                "See whether the cluster has a controller for load balancers, and its quota.",
            )


def _is_made(seen: Snapshot, selector: dict[str, str]) -> bool:
    """Whether a workload would make such pods: one that was scaled to 0, or whose pods are refused."""
    for kind in ("Deployment", *_MAKERS):
        for item in seen.of(kind):
            if selector.items() <= labels_of((item.get("spec") or {}).get("template") or {}).items():
                return True
    return False


def _gateways(seen: Snapshot) -> Iterator[Finding]:
    for kind in ("Gateway", "HTTPRoute", "GRPCRoute"):
        for item in seen.of(kind):
            found = state(item)
            if not found.ready and seen.age_of(item) > _SETTLED:
                yield _finding(
                    item, f"{kind} is not in effect", found.reason, "Correct the Gateway, class, listener or Service that it names."
                )


def _autoscalers(seen: Snapshot) -> Iterator[Finding]:
    for item in seen.of("HorizontalPodAutoscaler"):
        found = state(item)
        if not found.ready and conditions(item) and seen.age_of(item) > _SETTLED:
            advice = "See that metrics-server or prometheus-adapter serves the metric, and that the pods have requests."
            yield _finding(item, "autoscaler does not scale", found.reason, advice)


def _budgets(seen: Snapshot) -> Iterator[Finding]:
    """PodDisruptionBudgets that block every drain, although their pods are healthy."""
    for item in seen.of("PodDisruptionBudget"):
        status = item.get("status") or {}
        pods, healthy = int(status.get("expectedPods") or 0), int(status.get("currentHealthy") or 0)
        if pods and healthy >= pods and not status.get("disruptionsAllowed") and seen.age_of(item) > _SETTLED:
            evidence = f"{healthy} of {pods} pods are healthy, {status.get('desiredHealthy')} must be, so that none may be evicted"
            yield Finding(
                "warning", str(ref_of(item)), "no pod may be evicted", evidence, "A drain of a node will wait: allow one, or add a replica."
            )

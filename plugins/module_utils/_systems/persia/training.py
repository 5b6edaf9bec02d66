# SPDX-License-Identifier: GPL-3.0-or-later
"""The specifics of a PERSIA training: servers that are useless after it, and an operator with a finalizer.

Other PERSIA trainings at the same NATS servers.

The subjects of PERSIA's messages name a service and the index of a pod, and not the training (persia 0.1.dev251, seen: two trainings at
the same servers get each other's batches, and load and clear each other's embeddings). So only one at a time can use them.
"""

from __future__ import annotations

import copy
import functools
import re
import typing as t
import uuid
from collections.abc import Mapping, Sequence

from ..._core.clock import Deadline
from ..._core.errors import Forbidden, InvalidInput, WaitTimeout
from ..._core.waiting import fixed_interval, wait_for
from ..._kube import watching
from ..._kube.cluster import Cluster
from ..._kube.deletion import Ownership
from ..._kube.objects import DEPLOYMENT, LABEL_OWNER, Manifest, Ref, annotations_of, group_kind, labels_of, ref_of
from ..._kube.ready import job as job_state
from ..._kube.removal import delete_objects
from ..._kube.report import Change, Report
from ..._manifests import network_policy
from ..._manifests.meta import LABEL_JOB, LABEL_POD_GROUP, LABEL_ROLE, check_pattern
from ..._training.kind import Backend, Desired, Kind, Observed, Request
from ..._training.status import JOB, STATEFUL_SET, Workload, job_status
from . import gateway, native, operator
from .operator import API_VERSION, FINALIZER, JOB_LABEL
from .spec import NATS_ENV, WORDS, PersiaJob, from_params

ENDING_SECONDS = 60.0
"""The time that pods of a deleted or ended training may take to end; Kubernetes' default is 30 s."""


def require_alone(nats_url: str, namespace: str, name: str, cluster: Cluster) -> None:
    """Raise if pods of another training in the namespace use these NATS servers, and wait for those that end.

    Pods of other namespaces are not searched.
    """

    def observe() -> tuple[None, str | None]:
        try:
            pods = [(pod, label) for label in (LABEL_JOB, JOB_LABEL) for pod in cluster.list("v1", "Pod", namespace, label)]
        except Forbidden:
            return None, None
        others = [(pod, labels_of(pod)[label]) for pod, label in pods if labels_of(pod)[label] != name and _uses(pod, nats_url)]
        running = sorted({other for pod, other in others if not pod["metadata"].get("deletionTimestamp")})
        if running:
            raise InvalidInput(
                f"Training {namespace}/{name} would use the same NATS servers ({nats_url}) as {', '.join(running)}, whose pods run. PERSIA "
                "does not tell trainings apart there: each would get the other's batches and embeddings.",
                "Wait for its end, delete it (state: absent), or give this one its own servers (nats_url; role persia: persia_nats_name).",
            )
        return None, f"pod {others[0][0]['metadata']['name']} is ending" if others else None

    goal = f"Pods of another training still use {nats_url}, at which training {namespace}/{name} has to be alone"
    wait_for(observe, goal=goal, deadline=Deadline(ENDING_SECONDS, cluster.clock), pause=fixed_interval(1.0, cluster.clock))


def _uses(pod: Manifest, nats_url: str) -> bool:
    if pod.get("status", {}).get("phase") not in ("Pending", "Running"):
        return False
    env = [row for container in pod["spec"]["containers"] for row in container.get("env") or []]
    return {"name": NATS_ENV, "value": nats_url} in env


# Seconds that the finalizer of PERSIA's operator may take before remove_finalizer applies.
_OPERATOR_PATIENCE = 20.0
_UNRETRIABLE = {"kueue.x-k8s.io/retriable-in-group": "false"}
TRAINER = WORDS["nn_worker"].launcher


def desired(params: Mapping[str, t.Any]) -> Desired:
    """The training that module options describe."""
    job = from_params(params)
    objects = native.manifests(job, uuid.uuid4().hex[:8]) if job.backend == "native" else operator.manifests(job)
    results = params.get("results_pattern")
    return Desired(
        kind=KIND,
        backend=KIND.backend(job.backend),
        name=job.name,
        namespace=job.namespace,
        objects=objects,
        queue=job.queue_name,
        # A restart keeps the gateway.
        made_once=[ref_of(item) for item in objects if LABEL_POD_GROUP in _pod_labels(item) and group_kind(item) != DEPLOYMENT],
        config=job.config_name,
        parts=job.parts,
        precondition=functools.partial(_require, job),
        unwanted=_unwanted(job),
        results_pattern=check_pattern(results, "results_pattern", re.MULTILINE) if results else None,
    )


def _require(job: PersiaJob, cluster: Cluster) -> None:
    """Raise if something that the training uses and does not create is missing, or is used by another training."""
    if job.metrics.enabled:
        gateway.require(job.metrics.address, job.namespace, cluster)
    require_alone(job.nats_url, job.namespace, job.name, cluster)


def _unwanted(job: PersiaJob) -> list[Ref]:
    """Objects that other options would have created."""
    refs = []
    if not job.network_policy:
        refs.append(Ref(network_policy.API_VERSION, network_policy.KIND, job.policy_name, job.namespace))
    if not job.metrics.makes_gateway and job.backend == "native":
        refs.append(Ref("apps/v1", "Deployment", job.gateway, job.namespace))
        refs.append(Ref("v1", "Service", f"{job.gateway}-service", job.namespace))
    return refs


def _pod_labels(item: Manifest) -> dict[str, str]:
    return labels_of((item.get("spec") or {}).get("template") or {})


def _continued(objects: Sequence[Manifest], workloads: Sequence[Manifest]) -> list[Manifest]:
    """The objects of a training in a queue, with the live name of the group of its pods."""
    live = next((name for item in workloads if (name := _pod_labels(item).get(LABEL_POD_GROUP))), None)
    found = copy.deepcopy(list(objects))
    for item in found:
        if live and LABEL_POD_GROUP in _pod_labels(item):
            _pod_labels(item)[LABEL_POD_GROUP] = live
    return found


def _leave_queue(request: Request, observed: Observed) -> Report:
    """End the group of pods in its queue, which gives the quota of its servers back: as soon as no pod runs, where one is marked so."""
    queued = any(LABEL_POD_GROUP in _pod_labels(item) for item in observed.workloads)
    ref = next((Ref("v1", "Pod", rank.pod, observed.status.namespace) for rank in KIND.trainers(observed.status) if queued), None)
    pod = ref and request.cluster.get(ref)
    if not ref or not pod or _UNRETRIABLE.items() <= annotations_of(pod).items():
        return Report()
    patch = {"metadata": {"annotations": _UNRETRIABLE}}
    request.cluster.patch(ref, patch, dry_run=request.check)
    return Report([Change(ref, "updated", "its group leaves the queue", {"metadata": {"annotations": {}}}, patch)])


def _suspend_loaders(request: Request, observed: Observed) -> Report:
    """Suspend the Jobs that would recreate their pods, but neither that of the trainers nor one that has ended."""
    report = _leave_queue(request, observed)
    for live in observed.workloads:
        if group_kind(live) != JOB.group_kind or labels_of(live).get(LABEL_ROLE) == TRAINER:
            continue
        state = job_state(live)
        if not (state.ready or state.failed or live["spec"].get("suspend")):
            before, after = {"spec": {"suspend": False}}, {"spec": {"suspend": True}}
            request.cluster.patch(ref_of(live), after, dry_run=request.check)
            report.changes.append(Change(ref_of(live), "updated", "the training has ended", before, after))
    return report


# PERSIA's operator creates bare pods only once, and puts a finalizer on the PersiaJob.


def _warnings(observed: Observed) -> list[str]:
    """Warn of lost bare pods: they stay lost, because the operator creates pods only once."""
    lost = [group for group in observed.status.groups if len(group.ranks) < group.desired]
    # The operator first adds its finalizer and then creates all pods at once, so with the finalizer no pod is missing only because it is
    # new.
    seen = any(FINALIZER in (item["metadata"].get("finalizers") or []) for item in observed.workloads)
    if not lost or not seen:
        return []
    by_group = "; ".join(f"{group.name}: {group.desired - len(group.ranks)} of {group.desired}" for group in lost)
    return [
        f"Pods of training {observed.status} are lost ({by_group}), and PERSIA's operator does not create them again. "
        "restart: true trains again; backend: native repairs itself."
    ]


def _delete_pods(request: Request, observed: Observed) -> Report:
    """Delete the pods that still run. They stay deleted, because the operator creates pods only once. Ended pods keep their logs."""
    status = observed.status
    left = [r.pod for g in status.groups for r in g.ranks if r.phase in ("Running", "Pending")]
    refs = [Ref("v1", "Pod", name, status.namespace) for name in left]
    made = Ownership(status.name, JOB_LABEL, applied=False)
    return delete_objects(request.cluster, refs, made, check=request.check) if refs else Report()


def _stop(request: Request, mine: str, observed: Observed) -> Report:
    """Delete the PersiaJob. Its finalizer needs the operator, or is removed here if that is allowed."""
    live = observed.workloads[0]
    ref = ref_of(live)
    if labels_of(live).get(LABEL_OWNER) != mine:
        raise InvalidInput(f"{ref} was not created by this module.", "Delete it with the tool that created it.")
    timeout, by_hand = float(request.wait_timeout), request.remove_finalizer
    patience = min(timeout, _OPERATOR_PATIENCE if by_hand else timeout)
    deadline = Deadline(timeout, request.cluster.clock)
    try:
        report = delete_objects(request.cluster, [ref], mine, check=request.check, wait=True, wait_timeout=patience)
    except WaitTimeout as exc:
        if not by_hand:
            raise WaitTimeout(
                f"{ref} waits for its finalizer {FINALIZER}, which only PERSIA's operator removes.",
                last_seen=exc.last_seen,
                hint="Is the operator running? remove_finalizer: true deletes the pods and the finalizer without it.",
                ref=ref,
            ) from exc
        report = _do_operators_work(request, ref)
    if not request.check:
        _wait_for_pods(request, ref, deadline.answer_timeout)
    return report


def _wait_for_pods(request: Request, ref: Ref, timeout: float) -> None:
    """Wait for the pods to be gone. The operator does not, and old pods would disturb a new training of the same name."""
    selector, namespace = f"{JOB_LABEL}={ref.name}", ref.namespace or ""

    def observe_once(cluster: Cluster) -> tuple[None, str | None]:
        left = cluster.list("v1", "Pod", namespace, selector)
        return None, f"{len(left)} pods are still there" if left else None

    goal = f"The pods of training {namespace}/{ref.name} are not gone"
    pods = watching.Changes.of_pods(namespace, selector)
    watching.watch_until(request.cluster, pods, observe_once, goal=goal, timeout=timeout, progress=request.progress)


def _do_operators_work(request: Request, ref: Ref) -> Report:
    """Do without the operator what it does for a deleted PersiaJob."""
    refs = [
        Ref("v1", kind, item["metadata"]["name"], ref.namespace)
        for kind in ("Service", "Pod")
        for item in request.cluster.list("v1", kind, ref.namespace, f"{JOB_LABEL}={ref.name}")
    ]
    made = Ownership(ref.name, JOB_LABEL, applied=False)
    report = delete_objects(request.cluster, refs, made, check=request.check)
    live = request.cluster.get(ref)
    if live is not None:
        kept = [entry for entry in live["metadata"].get("finalizers") or [] if entry != FINALIZER]
        request.cluster.patch(ref, {"metadata": {"finalizers": kept or None}}, dry_run=request.check)
    return Report([Change(ref, "deleted", "without PERSIA's operator"), *report.changes], report.warnings)


def _before_removal(request: Request, namespace: str, name: str) -> Report:
    """Delete the PersiaJob first, because its finalizer needs the operator."""
    live = request.cluster.get(Ref(API_VERSION, operator.KIND, name, namespace))
    if live is None:
        return Report()
    mine = KIND.owner(namespace, name)
    config = request.cluster.get(Ref("v1", "ConfigMap", f"{name}-config", namespace))
    if config is not None and labels_of(live).get(LABEL_OWNER) != mine:
        return Report()  # a workload of another owner with the name of the training
    return _stop(request, mine, Observed(job_status(name, namespace, ()), [live]))


KIND = Kind(
    name="persia_job",
    title="PERSIA",
    role="persia",
    label=LABEL_JOB,
    trainer_role=TRAINER,
    backends=(
        Backend(
            name="native",
            label=LABEL_JOB,
            workloads=(STATEFUL_SET, JOB),
            immutable_because="a Job's pods cannot be changed",
            scaled_down=native.scaled_to_zero,
            continued=_continued,
            finish=_suspend_loaders,
        ),
        Backend(
            name="operator",
            label=JOB_LABEL,
            workloads=(Workload(API_VERSION, operator.KIND, pod_sets=operator.pod_sets),),
            named=True,
            installed_by="PERSIA's operator (role muster.ml.persia_operator)",
            immutable_because="PERSIA's operator ignores edits",
            judge=operator.groups,
            warnings=_warnings,
            stop=_stop,
            finish=_delete_pods,
        ),
    ),
    logged=gateway.logged,
    before_removal=_before_removal,
)

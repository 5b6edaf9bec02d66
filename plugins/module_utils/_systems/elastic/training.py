# SPDX-License-Identifier: GPL-3.0-or-later
"""The specifics of an elastic PyTorch job: its size may change while it runs, and its logs show its progress."""

from __future__ import annotations

import typing as t
import uuid
from collections.abc import Mapping, Sequence

from ..._core.brief import Missing
from ..._kube.cluster import Cluster
from ..._kube.objects import Manifest, Ref, group_kind
from ..._training.kind import Backend, Desired, Goal, Kind, Observed
from ..._training.logs import read_logs
from ..._training.status import JOB, Workload
from . import native, pytorch_job, train_job
from .spec import ElasticJob, from_params
from .world import World, with_reported, world

# Lines of a log, more than are written between two repetitions of the round; see the launcher.
_TAIL = 300
_PYTORCH_JOB = Workload(pytorch_job.API_VERSION, pytorch_job.KIND, size=(pytorch_job.SIZE,), ends=True, pod_sets=pytorch_job.pod_sets)
_TRAIN_JOB = Workload(train_job.API_VERSION, train_job.KIND, size=(train_job.SIZE,), ends=True, pod_sets=lambda _item: ())
_RUNTIME = Workload(train_job.API_VERSION, train_job.RUNTIME, size=(), pod_sets=train_job.pod_sets)
_UNCHANGEABLE = "only replicas can change while it runs"


def desired(params: Mapping[str, t.Any]) -> Desired:
    """The training that module options describe."""
    job = from_params(params)
    if job.backend == "pytorchjob":
        # A new run must not use what an old one has left in etcd.
        objects = pytorch_job.manifests(job, f"{job.name}-{uuid.uuid4().hex[:12]}")
    else:
        objects = train_job.manifests(job) if job.backend == "trainjob" else native.manifests(job)
    return Desired.of_program(
        KIND,
        job,
        objects,
        backend=KIND.backend(job.backend),
        made_once=(Ref(pytorch_job.API_VERSION, pytorch_job.KIND, job.name, job.namespace),),
        size=job.replicas,
        # A queue admits all replicas or none.
        least=None if job.queue_name else job.min_replicas,
    )


def _continued(objects: Sequence[Manifest], workloads: Sequence[Manifest]) -> list[Manifest]:
    """The training with the rendezvous of the live run, which a continued run keeps."""
    live = next((item for item in workloads if group_kind(item) == pytorch_job.GROUP_KIND), None)
    return [pytorch_job.with_run_of(item, live) if live and group_kind(item) == group_kind(live) else item for item in objects]


def _read(cluster: Cluster, observed: Observed) -> World:
    """The world, from the logs of a few pods only, however many there are, and from what pods reported to Kubeflow Trainer."""
    namespace, all_ranks = observed.status.namespace, [rank for group in observed.status.groups for rank in group.ranks]
    # The logs of these suffice: the first one logs the steps, the youngest pods log why they could not join.
    spoke = [rank for rank in all_ranks if rank.phase in ("Running", "Succeeded", "Failed")]
    # The rendezvous ranks pods by their host names: digits-1.digits, digits-10.digits, digits-2.digits.
    first = sorted(spoke, key=lambda rank: (rank.phase == "Failed", f"{rank.rank}."))[:3]
    youngest = sorted(spoke, key=lambda rank: (rank.created, rank.rank))[-2:]
    ranks = first + [rank for rank in youngest if rank not in first]
    texts = read_logs(cluster, namespace, ranks, required=False, tail_lines=_TAIL, timestamps=True) if ranks else []
    found = world(texts)
    if found.nodes is None and any(text.count("\n") >= _TAIL for text in texts):
        # The script logs so much that the line of the rendezvous is not in the tail: read the whole log.
        found = world(read_logs(cluster, namespace, ranks[:1], required=False, timestamps=True))
    reported = next((told for item in observed.workloads if (told := (item.get("status") or {}).get("trainerStatus"))), None)
    return with_reported(found, reported) if reported else found


def _pending_reason(desired: Desired, before: Observed, observed: Observed, goal: Goal) -> str | None:
    """Return what the goal still lacks. running: all pods are in the rendezvous; step: a step was logged after it and during this run."""
    seen, now = _world(before), _world(observed)
    steps_on = now.makes_progress and now.stepped > seen.stepped
    if now.nodes == desired.size and (goal == "running" or (goal == "step" and steps_on)):
        return None
    said = f"{observed.status.state}; {now.nodes or 0} of {desired.size} pods have met"
    if trained := observed.progress.line():
        if goal == "completed" and now.nodes == desired.size and not now.reason:
            return Missing(f"{said}; {trained}", observed.line().brief)
        said = f"{said}; {trained}"
    return _with_reason(said, observed)


def _scaling_pending_reason(desired: Desired, before: Observed, observed: Observed) -> str | None:
    """Return what is missing until the rendezvous has the new size and new steps are logged."""
    seen, now = _world(before), _world(observed)
    if now.nodes != desired.size or now.formed <= seen.formed:
        return _with_reason(f"the rendezvous has {now.nodes or 0} of {desired.size} pods", observed)
    if seen.stepped and not now.makes_progress:
        return _with_reason(f"{now.nodes} pods have met and made no step yet", observed)
    return None


def _results(observed: Observed) -> dict[str, t.Any]:
    """The results as values and as lines. Logs vanish with their pods, so a later run may know less than the one that trained."""
    world = _world(observed)
    summary = {
        **observed.status.summary(),
        "accuracy": world.accuracy,
        "nodes": world.nodes,
        "world_size": world.world_size,
        "epochs": None if world.epoch is None else world.epoch + 1,
        "rounds": None if world.round is None else world.round + 1,
        "steps": world.step,
        "backend": _rendezvous(observed.workloads),
    }
    shown = {key: "?" if value in (None, "") else value for key, value in summary.items()}
    accuracy = "" if world.accuracy is None else f", accuracy {world.accuracy} on held-out data"
    table = [
        f"{KIND.title} {shown['job']}: {shown['state']}{accuracy}",
        f"world: {shown['world_size']} processes in {shown['nodes']} pods; "
        f"rounds of the rendezvous by {shown['backend']}: {shown['rounds']}",
        f"trained: {shown['epochs']} epochs, {shown['steps']} steps",
    ]
    return {"world": world.result(), "summary": summary, "table": table}


def _world(observed: Observed) -> World:
    return t.cast(World, observed.world)


def _with_reason(said: str, observed: Observed) -> Missing:
    world, status = _world(observed), observed.status
    full, brief = world.reason or status.reason, world.reason or status.brief_reason
    return Missing(f"{said} ({full})" if full else said, f"{said} ({brief})" if brief else said)


def _rendezvous(workloads: Sequence[Manifest]) -> str:
    """The rendezvous backend of a live job."""
    for live in workloads:
        if group_kind(live) == pytorch_job.GROUP_KIND:
            return str((live["spec"].get("elasticPolicy") or {}).get("rdzvBackend") or "")
        if group_kind(live) == train_job.GROUP_KIND:
            continue
        of_trainer = group_kind(live)[0] == train_job.GROUP_KIND[0]
        template = train_job.pod_sets(live)[0].template if of_trainer else live["spec"]["template"]
        env = template["spec"]["containers"][0].get("env") or []
        return next((str(entry.get("value")) for entry in env if entry["name"] == native.RENDEZVOUS), "")
    return ""


KIND = Kind(
    name="elastic_job",
    title="Elastic PyTorch",
    role="elastic",
    label=ElasticJob.label,
    backends=(
        Backend(name="native", label=ElasticJob.label, workloads=(JOB,), immutable_because=_UNCHANGEABLE),
        Backend(
            name="pytorchjob",
            label=ElasticJob.label,
            workloads=(_PYTORCH_JOB,),
            installed_by="training-operator (role muster.ml.training_operator)",
            immutable_because=_UNCHANGEABLE,
            continued=_continued,
        ),
        Backend(
            name="trainjob",
            label=ElasticJob.label,
            workloads=(_TRAIN_JOB, _RUNTIME),
            installed_by="Kubeflow Trainer 2 (role muster.ml.trainer)",
            immutable_because="a TrainJob cannot change, its size neither",
        ),
    ),
    world=_read,
    pending_reason=_pending_reason,
    scaling_pending_reason=_scaling_pending_reason,
    results=_results,
)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Follow the Job that fetches a data set, by its log."""

from __future__ import annotations

import contextlib
import typing as t

from ..._core.errors import Failed, Forbidden, InvalidInput, MusterError
from ..._kube import reasons, storage, watching
from ..._kube.cluster import Cluster
from ..._kube.objects import Manifest, Ref, labels_of, ref_of
from ..._kube.ready import job as job_state
from ..._kube.removal import delete_objects
from ..._training.status import Rank, rank_of
from .manifests import Dataset, nested, place_of


def _newest(pods: t.Sequence[Manifest]) -> Rank | None:
    ordered = sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp")))
    return rank_of(ordered[-1]) if ordered else None


def check_neighbours(cluster: Cluster, data: Dataset) -> None:
    """Refuse the folder if it contains that of another data set on the same claim, or lies in it.

    The pod checks the claim itself; this fails before there is a pod.
    """
    try:
        jobs = cluster.list("batch/v1", "Job", data.namespace, "app.kubernetes.io/name=dataset")
    except Forbidden:
        return
    for job in jobs:
        other = labels_of(job).get("app.kubernetes.io/instance", "")
        claim, folder = place_of(job)
        if other != data.name and claim == data.claim_name and folder and nested(folder, data.folder):
            raise InvalidInput(
                f"Data set {data.namespace}/{data.name} would have the folder {data.folder} of the claim {claim}, and data set "
                f"{other} has {folder}: an update of one would change files of the other.",
                ref=ref_of(job),
                hint=f"Choose another path; or, where {other} is no longer needed, remove it first (state: absent keeps its data).",
            )


def delete_failed(cluster: Cluster, job: Manifest, owner: str, *, check: bool) -> None:
    """Delete a failed Job, so that it is created again."""
    if job_state(job).failed:
        delete_objects(cluster, [ref_of(job)], owner, check=check, wait=True)


def wait(cluster: Cluster, data: Dataset, name: str, *, timeout: float, progress: t.Callable[[str], None]) -> str:
    """Wait until the Job is complete; Failed, with the pod's last message, as soon as it has failed."""
    selector, ref = f"job-name={name}", Ref("batch/v1", "Job", name, data.namespace)
    claim = Ref("v1", "PersistentVolumeClaim", data.claim_name, data.namespace)

    def observe_once(cluster: Cluster) -> tuple[str, str | None]:
        found = cluster.get(ref)
        state = job_state(found)
        pod = _newest(cluster.list("v1", "Pod", data.namespace, selector))
        if state.ready:
            return pod.message if pod else "", None
        if state.failed:
            why = pod.message if pod and pod.message else state.reason
            raise Failed(
                f"Data set {data.namespace}/{data.name} was not fetched: {why}",
                ref=ref,
                hint="Correct the cause and run again; retry: true repeats the same download.",
            )
        refused = reasons.why_no_pods(cluster, found) if found and pod is None else ""
        return "", _line(cluster, pod) or "; ".join(filter(None, [state.reason, refused]))

    def _line(cluster: Cluster, pod: Rank | None) -> str:
        if pod and pod.phase == "Pending":
            return storage.why_unbound(cluster, claim) or pod.pending_reason
        if pod is None or pod.reason:
            return pod.pending_reason if pod else ""
        with contextlib.suppress(MusterError):
            return cluster.logs(data.namespace, pod.pod, tail_lines=1).strip()
        return pod.phase

    goal = f"Data set {data.namespace}/{data.name} is not complete"
    pods = watching.Changes.of_pods(data.namespace, selector)
    return watching.watch_until(cluster, pods, observe_once, goal=goal, timeout=timeout, progress=progress)

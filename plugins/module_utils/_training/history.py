# SPDX-License-Identifier: GPL-3.0-or-later
"""The records of trainings that have ended, in a ConfigMap of their namespace, which stay when the trainings are removed.

A training is recorded before its pods are deleted or recreated, so that a run that is killed loses nothing: the next one records it.
The uid of its workload tells one training from another of the same name. Options are recorded by fingerprint, files by hash.
"""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import hashlib
import json
import typing as t
from collections.abc import Container, Sequence

from .._core.clock import utc
from .._core.errors import Conflict, Forbidden, MusterError
from .._gang.resources import requests_of
from .._kube.cluster import Cluster
from .._kube.objects import (
    FIELD_MANAGER,
    HISTORY,
    LABEL_HISTORY,
    LABEL_MANAGED_BY,
    Manifest,
    Ref,
    annotations_of,
    is_of,
    labels_of,
    owner_selector,
)
from .._kube.pod_status import main_status
from .._manifests.meta import ANNOTATION_SPEC_PARTS
from .kind import Kind, Observed, Request
from .progress import duration

MOST = 100
_MOST_BYTES = 900_000
"""The API server refuses a ConfigMap of more than 1 MiB, of which the fields beside the records are a part."""
_LONGEST = 500
_TRIES = 5
"""Number of attempts to write while other runs write, too."""
_ACCELERATORS = ("/gpu", ".com/tpu")
_KEY = "trainings"


def records(cluster: Cluster, namespace: str | None) -> list[dict[str, t.Any]]:
    """The records of a namespace, or of all, the newest first."""
    found = cluster.list("v1", "ConfigMap", namespace, f"{LABEL_HISTORY}=true")
    kept = [one for item in found for one in _records_in(item)]
    return sorted(kept, key=lambda one: str(one["ended"]), reverse=True)


def record(request: Request, kind: Kind, namespace: str, name: str, *, stopped: str = "", seen: Observed | None = None) -> None:
    """Record a training that has ended, or that this run is about to stop for this reason. Failing to do so is a warning.

    SEEN: the training as this run has just observed it. Where it is on record like this, its log is not read again.
    """
    if request.check:
        return
    ref = Ref("v1", "ConfigMap", HISTORY, namespace)
    try:
        if seen and _has(request.cluster.get(ref), {item["metadata"]["uid"] for item in seen.workloads}, seen.status.state):
            return
        observed = kind.observe(request.cluster, namespace, name, progress=True)
        owner = kind.owner(namespace, name)
        live = next((item for item in observed.workloads if is_of(item, [owner])), None)
        if live and (observed.has_ended or stopped):
            _keep(request.cluster, ref, entry_of(request.cluster, kind, observed, live, stopped))
    except MusterError as exc:
        request.warn(f"Training {namespace}/{name} is not recorded in ConfigMap {HISTORY}: {exc.message}")


def _keep(cluster: Cluster, ref: Ref, entry: dict[str, t.Any]) -> None:
    """Add the record, unless it is there. Of two runs that write at once, the second one reads again what the first one has written."""
    for _try in range(_TRIES):
        live = cluster.get(ref)
        if live and LABEL_HISTORY not in labels_of(live):
            break
        if _has(live, {entry["uid"]}, entry["state"]):
            return
        kept = _records_in(live or {})
        entry["by"] = entry.get("by") or _user(cluster)
        lines = [json.dumps(one, sort_keys=True) for one in kept if one["uid"] != entry["uid"]]
        lines = [*lines, json.dumps(entry, sort_keys=True)][-MOST:]
        while sum(len(line.encode()) + 1 for line in lines) > _MOST_BYTES:
            del lines[0]
        try:
            if live is None:
                cluster.create(_manifest(ref, lines), dry_run=False, manager=HISTORY)
            else:
                version = {key: live["metadata"][key] for key in ("uid", "resourceVersion")}
                cluster.apply(_manifest(ref, lines, **version), dry_run=False, force_conflicts=True, manager=HISTORY)
        except Conflict:
            continue
        return
    raise Conflict("it is changed by others all the time, or not Muster's", ref=ref)


def _has(live: Manifest | None, uids: Container[str], state: str) -> bool:
    """Whether a workload with one of these uids is on record in this state."""
    return any(one["uid"] in uids and one["state"] == state for one in _records_in(live or {}))


def _manifest(ref: Ref, lines: Sequence[str], **version: str) -> Manifest:
    labels = {LABEL_MANAGED_BY: FIELD_MANAGER, LABEL_HISTORY: "true"}
    metadata = {"name": ref.name, "namespace": ref.namespace, "labels": labels, **version}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {_KEY: "".join(f"{line}\n" for line in lines)}}


def _records_in(live: Manifest) -> list[dict[str, t.Any]]:
    """The records of a ConfigMap. Lines that are no records, because another client changed them, are skipped."""
    found = []
    for line in (live.get("data") or {}).get(_KEY, "").splitlines():
        with contextlib.suppress(ValueError):
            one = json.loads(line)
            found += [one] if isinstance(one, dict) and {"uid", "state", "ended"} <= one.keys() else []
    return found


def entry_of(cluster: Cluster, kind: Kind, observed: Observed, live: Manifest, stopped: str = "") -> dict[str, t.Any]:
    """The record of a training as it is now, or of one that is stopped for this reason; LIVE is its workload."""
    status = observed.status
    pods = cluster.list("v1", "Pod", status.namespace, kind.backend(status.backend).selector(status.name))
    ranks = kind.trainers(status)
    configs: Sequence[Manifest] = ()
    with contextlib.suppress(Forbidden):  # a user who may read pods only
        configs = cluster.list("v1", "ConfigMap", status.namespace, owner_selector(kind.owner(status.namespace, status.name)))
    now = utc(cluster.clock).strftime("%Y-%m-%dT%H:%M:%SZ")
    ended = max((rank.finished for rank in ranks if rank.finished), default=now) if observed.has_ended else now
    started = min((rank.started for rank in ranks if rank.started), default=live["metadata"].get("creationTimestamp") or ended)
    world = observed.world.result() if observed.world else {}
    return {
        "uid": live["metadata"]["uid"],
        "namespace": status.namespace,
        "name": status.name,
        "kind": kind.name,
        "backend": status.backend,
        "state": "Stopped" if stopped and not observed.has_ended else status.state,
        "reason": f"{stopped} while it was {status.state}" if stopped and not observed.has_ended else status.reason[:_LONGEST],
        "started": started,
        "ended": ended,
        "lasted": duration(_seconds(started, ended)),
        "pods": len(ranks),
        "world_size": world.get("world_size"),
        "restarts": sum(rank.restarts for group in status.groups for rank in group.ranks),
        "gpu_hours": round(sum(_gpu_hours(pod, ended) for pod in pods), 2),
        "images": dict(sorted((str(main.get("image")), str(main.get("imageID"))) for pod in pods if (main := main_status(pod)))),
        "progress": observed.progress.result(),
        **_made_of(configs),
    }


def _made_of(configs: Sequence[Manifest]) -> dict[str, t.Any]:
    """The fingerprint of each option, and the hash of each file, from the training's ConfigMaps."""
    made_with = [found for config in configs if (found := annotations_of(config).get(ANNOTATION_SPEC_PARTS))]
    files = {name: text.encode() for config in configs for name, text in (config.get("data") or {}).items()}
    files |= {name: base64.b64decode(text) for config in configs for name, text in (config.get("binaryData") or {}).items()}
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}
    return {"options": json.loads(made_with[0]) if made_with else {}, "files": hashes}


def _gpu_hours(pod: Manifest, until: str) -> float:
    """The hours of GPUs and TPUs that a pod had, until its container ended, or until now."""
    state = main_status(pod).get("state") or {}
    ended = state.get("terminated") or {}
    began = ended.get("startedAt") or (state.get("running") or {}).get("startedAt")
    devices = sum(count for name, count in requests_of(pod["spec"]).items() if name.endswith(_ACCELERATORS))
    if not (devices and began):
        return 0.0
    return devices * _seconds(began, ended.get("finishedAt") or until) / 3600


def _seconds(begin: str, end: str) -> float:
    return max(0.0, (dt.datetime.fromisoformat(end) - dt.datetime.fromisoformat(begin)).total_seconds())


def _user(cluster: Cluster) -> str:
    """The user whom the API server takes this run for; empty if it does not say."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}}
    try:
        return str(cluster.create(review, dry_run=False)["status"]["userInfo"]["username"])
    except MusterError:
        return ""

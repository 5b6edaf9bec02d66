# SPDX-License-Identifier: GPL-3.0-or-later
"""A model's folder on a volume, written by a temporary pod.

The written files are recorded in a ConfigMap, so that a run without changes needs no pod.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import re
import typing as t
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from ..._core.errors import Failed, NotFound, Unreachable
from ..._core.json_http import send
from ..._kube import forward
from ..._kube.cluster import Cluster
from ..._kube.engine import apply_objects
from ..._kube.objects import Manifest, Ref, ref_of
from ..._kube.removal import delete_objects
from ..._kube.report import Report
from ..._manifests.pods import READ_ONLY_CONTAINER, PodSettings, pod_template
from ..._manifests.programs import program
from ..._manifests.storage import Storage
from ..._pod_programs import model_writer
from .model_config import FILE
from .model_plan import Stored
from .model_source import Source

_PORT = 8765
_ANSWERS_S = 3600.0
"""Seconds for one file: the pod computes its SHA-256, and a volume may be slow."""
_FOLDER = "/opt/muster"
_FILES = "files.json"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Volume:
    """A model repository on a claim. ``timeout``: seconds for the pod to start."""

    server: str
    model: str
    namespace: str
    folder: str
    storage: Storage
    pod: PodSettings
    timeout: float

    @property
    def name(self) -> str:
        """The name of the objects of the model. Names of models may have what those of objects may not."""
        plain = re.sub(r"[^a-z0-9]+", "-", self.model.lower()).strip("-")[:20].rstrip("-")
        return "-".join(filter(None, [self.server, "model", plain, hashlib.sha256(self.model.encode()).hexdigest()[:6]]))

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the writer. They differ from those of the server's pods, or its Service would select the writer."""
        return {"app.kubernetes.io/name": "triton-model", "app.kubernetes.io/instance": self.server}

    @property
    def note_ref(self) -> Ref:
        """The ConfigMap."""
        return Ref("v1", "ConfigMap", self.name, self.namespace)


def note(volume: Volume, stored: Stored) -> Manifest:
    """The ConfigMap with the written files and their place."""
    where = {"claim": volume.storage.claim_name, "folder": volume.folder, "model": volume.model}
    data = {**where, _FILES: json.dumps(dict(sorted(stored.files.items())), indent=1), FILE: stored.config or ""}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _metadata(volume, volume.name), "data": data}


def noted(volume: Volume, found: Manifest | None) -> Stored:
    """Return the files that a ConfigMap records; none if it is about another claim or folder."""
    data = (found or {}).get("data") or {}
    if (data.get("claim"), data.get("folder")) != (volume.storage.claim_name, volume.folder):
        return Stored()
    with contextlib.suppress(ValueError, KeyError):
        return Stored(json.loads(data[_FILES]), data.get(FILE) or None)
    return Stored()


def writer(volume: Volume) -> list[Manifest]:
    """The pod that writes, for as long as that takes, and the ConfigMap with its program."""
    metadata = _metadata(volume, f"{volume.name}-writer")
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"writer.py": program(model_writer)}}
    connects = f"import socket; socket.create_connection(('127.0.0.1', {_PORT}), 5)"
    pod = dataclasses.replace(
        volume.pod,
        command=("python3", f"{_FOLDER}/writer.py", f"{volume.folder}/{volume.model}", str(_PORT)),
        volumes=(
            {"name": "models", "persistentVolumeClaim": {"claimName": volume.storage.claim_name}},
            {"name": "program", "configMap": {"name": metadata["name"]}},
        ),
        volume_mounts=(
            {"name": "models", "mountPath": volume.storage.mount_path},
            {"name": "program", "mountPath": _FOLDER, "readOnly": True},
        ),
        env=({"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}, *volume.pod.env),
        security_context=volume.pod.security_context or READ_ONLY_CONTAINER,
        readiness_probe={"exec": {"command": ["python3", "-c", connects]}, "periodSeconds": 1, "timeoutSeconds": 5},
        termination_grace_period_seconds=1,
    )
    template = pod_template(pod, container="writer", labels=volume.labels, selector=volume.labels)
    spec = {**template["spec"], "restartPolicy": "Never"}
    return [config, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}]


def _metadata(volume: Volume, name: str) -> Manifest:
    return {"name": name, "namespace": volume.namespace, "labels": volume.labels}


class VolumeStore:
    """One model on a volume. The pod is created at the first access, and deleted at the end of the with block."""

    def __init__(self, cluster: Cluster, volume: Volume, owner: str, stack: contextlib.ExitStack) -> None:
        self._cluster, self._volume, self._owner, self._stack = cluster, volume, owner, stack
        self._way: forward.Forward | None = None

    def read(self) -> Stored:
        """Read the recorded state."""
        return noted(self._volume, self._cluster.get(self._volume.note_ref))

    def verify(self) -> Stored:
        """Read the actual state of the volume."""
        found = self._ask("GET", "")
        return Stored(found.get("files") or {}, found.get("config"))

    def put(self, source: Source, names: Iterable[str]) -> None:
        """Write files of SOURCE: versions that were not there appear as a whole."""
        for name in names:
            with source.path(name).open("rb") as content:
                size = source.path(name).stat().st_size
                self._ask("PUT", f"{quote(name)}?sha256={source.files[name]}", content, size=size)
        self._ask("POST", "")

    def put_config(self, text: str) -> None:
        """Replace the configuration, at once."""
        body = text.encode()
        self._ask("PUT", f"{FILE}?sha256={hashlib.sha256(body).hexdigest()}", body, size=len(body))

    def delete(self, names: Iterable[str]) -> None:
        """Delete files."""
        for name in names:
            self._ask("DELETE", quote(name))

    def note(self, stored: Stored, *, check: bool) -> Report:
        """Record the present state; delete the record if the volume has no files of the model."""
        if stored.files or stored.config:
            return apply_objects(self._cluster, [note(self._volume, stored)], owner=self._owner, check=check)
        return delete_objects(self._cluster, [self._volume.note_ref], self._owner, check=check)

    def _ask(self, method: str, path: str, body: t.Any = None, size: int = 0) -> dict[str, t.Any]:
        way = self._way = self._way or self._open()
        try:
            found = send(way.address, str(self._pod), method, f"/{path}", body, size=size, timeout=_ANSWERS_S)
        except Unreachable as error:
            raise way.trouble or error from error
        if "error" in found:
            raise Failed(f"{self._pod} cannot write model {self._volume.model}: {found['error']}.", "Is the volume full, or read-only?")
        return found

    @property
    def _pod(self) -> Ref:
        return Ref("v1", "Pod", f"{self._volume.name}-writer", self._volume.namespace)

    def _open(self) -> forward.Forward:
        claim = Ref("v1", "PersistentVolumeClaim", self._volume.storage.claim_name, self._volume.namespace)
        if self._cluster.get(claim) is None:
            raise NotFound(f"{claim}, the volume of the models, does not exist.", "Correct storage.claim_name, or create it.", ref=claim)
        objects = writer(self._volume)
        self._stack.callback(self._remove)
        self._remove()  # objects that a killed run has left
        apply_objects(self._cluster, objects, owner=self._owner, check=False, wait=True, wait_timeout=self._volume.timeout)
        hint = "Run again."
        return self._stack.enter_context(forward.forwarded(self._cluster, self._pod, _PORT, hint))

    def _remove(self) -> None:
        refs = [ref_of(one) for one in writer(self._volume)]
        delete_objects(self._cluster, refs, self._owner, check=False, wait=True, wait_timeout=self._volume.timeout)


@contextlib.contextmanager
def opened(cluster: Cluster, volume: Volume, owner: str) -> Iterator[VolumeStore]:
    """The model on VOLUME, for the time of the with block."""
    with contextlib.ExitStack() as stack:
        yield VolumeStore(cluster, volume, owner, stack)

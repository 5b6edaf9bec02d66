# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects, volumes and mounts that the pods of a training share: configuration, the user's files, and storage."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import typing as t
from collections.abc import Mapping

from .._core.errors import InvalidInput
from .meta import Manifest
from .storage import Storage

# Limit of the API server for all values of a ConfigMap together, in bytes (ValidateConfigMap of Kubernetes 1.36).
CONFIG_MAP_MAX = 1024 * 1024
# What the API server takes as a key; a key that is ".." or begins with it is refused, too.
_KEY = re.compile(r"(?!\.\.)[-._a-zA-Z0-9]{1,253}")
File = t.Union[str, Mapping[str, str]]  # noqa: UP007 -- Ansible's pylint refuses the other form in an alias
"""A text, or ``{"base64": ...}`` for a file that is no text."""


def check_files(files: Mapping[str, t.Any]) -> None:
    """Check the files for all pods: relative paths, texts or base64, and together no larger than a ConfigMap may be."""
    for path, content in files.items():
        parts = str(path).split("/")
        if "" in parts or "." in parts or any(part.startswith("..") for part in parts):
            raise InvalidInput(f"files: '{path}' must be a plain file name, or a path below the folder of the files.")
        if not isinstance(content, str | Mapping) or (isinstance(content, Mapping) and set(content) != {"base64"}):
            raise InvalidInput(f"files.{path}: not text.", "A file that is no text is given as {base64: ...}.")
        inside = next((other for other in files if other.startswith(f"{path}/")), None)
        if inside:
            raise InvalidInput(f"files: '{path}' is a file, and so it cannot be the folder of '{inside}'.")
    size = sum(len(_bytes(path, content)) for path, content in files.items())
    if size > CONFIG_MAP_MAX:
        raise InvalidInput(f"files: {size} bytes, a ConfigMap holds 1 MiB.", "Put large files on the shared storage.")


def _bytes(path: str, content: File) -> bytes:
    if isinstance(content, str):
        return content.encode()
    try:
        return base64.b64decode(content["base64"], validate=True)
    except (binascii.Error, TypeError, ValueError) as exc:
        raise InvalidInput(f"files.{path}: no valid base64.") from exc


def _key(path: str) -> str:
    """The key for a path: the path itself where it can be one, else one that no other path has."""
    if _KEY.fullmatch(path):
        return path
    digest = hashlib.sha256(path.encode()).hexdigest()[:12]
    return f"{digest}-{re.sub(r'[^-._a-zA-Z0-9]', '_', path)[-200:]}"


def files_config_map(metadata: Manifest, files: Mapping[str, File]) -> Manifest:
    """A ConfigMap of files; ``items`` maps its keys, which have no slash, to the paths."""
    texts = {_key(path): content for path, content in files.items() if isinstance(content, str)}
    binary = {_key(path): content["base64"] for path, content in files.items() if isinstance(content, Mapping)}
    return {**config_map(metadata, texts), **({"binaryData": binary} if binary else {})}


def items(files: Mapping[str, File]) -> list[Manifest]:
    """The ``items`` of a volume with these files; none where each key is the path."""
    if all(_key(path) == path for path in files):
        return []
    return [{"key": _key(path), "path": path} for path in sorted(files)]


def config_map(metadata: Manifest, data: Mapping[str, str]) -> Manifest:
    """A ConfigMap with these files."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(data)}


def mounted(
    prefix: str, config_maps: Mapping[str, tuple[str, str]], storage: Storage | None, files: Mapping[str, File] | None = None
) -> tuple[list[Manifest], list[Manifest]]:
    """Volumes and mounts of CONFIG_MAPS (word -> name and path; ``files`` has FILES) and of the storage. Their names begin with PREFIX."""
    volumes: list[Manifest] = []
    mounts: list[Manifest] = []
    for word, (name, path) in config_maps.items():
        paths = items(files or {}) if word == "files" else []
        source = {"name": name, **({"items": paths} if paths else {})}
        volumes.append({"name": f"{prefix}-{word}", "configMap": source})
        mounts.append({"name": f"{prefix}-{word}", "mountPath": path, "readOnly": True})
    if storage:
        volumes.append({"name": f"{prefix}-storage", "persistentVolumeClaim": {"claimName": storage.claim_name}})
        mounts.append({"name": f"{prefix}-storage", "mountPath": storage.mount_path})
    return volumes, mounts

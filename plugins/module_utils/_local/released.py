# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests that a project releases, made from the Go module with their sources, byte by byte as the project's own release does.

The module is pinned by go.sum, and the result by the digest of the released file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import tempfile
import typing as t
from pathlib import Path

from .._core.errors import InvalidInput, Rejected
from .._core.files import replaced
from .gobuild import downloaded, pins
from .host import run
from .once import making


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReleasedManifest:
    """One file. ``kustomization``: what kustomize builds, with folders of the module as resources.

    Without it, ``sources`` are joined: ``text`` as it is, or the files of the glob pattern ``files``, each after ``before`` (in which
    ``{path}`` is its path) and with ``replace`` applied.
    """

    path: Path
    sha256: str
    module: str
    module_dir: Path
    kustomization: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    sources: t.Sequence[t.Mapping[str, t.Any]] = ()

    def is_there(self) -> bool:
        return self.path.is_file() and _digest(self.path.read_bytes()) == self.sha256


def write(desired: ReleasedManifest, kustomize: t.Callable[[], Path], runner: t.Callable[..., str] = run) -> None:
    """Write the file, whole or not at all. KUSTOMIZE returns the path of that program, which it may have to build first."""
    with making(desired.path) as _missing:
        if desired.is_there():
            return
        folder = module_folder(desired, runner)
        text = _built(desired, folder, kustomize(), runner) if desired.kustomization else _joined(desired, folder)
        body = text.encode()
        if _digest(body) != desired.sha256:
            raise Rejected(
                f"{desired.path.name}: made of {desired.module}, it has sha256 {_digest(body)}, expected {desired.sha256}.",
                hint="Pin the digest of the file that the project released for the version in go.sum. Nothing was written.",
            )
        with replaced(desired.path, mode=0o644) as file:
            file.write(body)


def module_folder(desired: ReleasedManifest, runner: t.Callable[..., str] = run) -> Path:
    """The folder in which Go keeps the module, downloaded if it is missing."""
    for one in pins(desired.module_dir):
        if one.path == desired.module:
            return Path(downloaded([one], desired.module_dir, runner=runner)[0]["Dir"])
    raise InvalidInput(f"go.sum in {desired.module_dir} does not pin {desired.module}.", hint="Give the folder with the go.sum that does.")


def _built(desired: ReleasedManifest, folder: Path, kustomize: Path, runner: t.Callable[..., str]) -> str:
    with tempfile.TemporaryDirectory() as own:
        # Bases of a kustomization are relative to it.
        bases = [os.path.relpath(folder / base, Path(own).resolve()) for base in desired.kustomization["resources"]]
        page = {**desired.kustomization, "resources": bases}
        (Path(own) / "kustomization.yaml").write_text(json.dumps(page), encoding="utf-8")
        return runner([str(kustomize), "build", own])


def _joined(desired: ReleasedManifest, folder: Path) -> str:
    parts = []
    for source in desired.sources:
        parts.append(source.get("text") or "")
        for path in _files(folder, source.get("files") or "", desired):
            text = path.read_text(encoding="utf-8")
            for old, new in (source.get("replace") or {}).items():
                text = text.replace(old, str(new))
            before = (source.get("before") or "").replace("{path}", path.relative_to(folder).as_posix())
            parts += [before, text]
    return "".join(parts)


def _files(folder: Path, pattern: str, desired: ReleasedManifest) -> list[Path]:
    found = sorted(folder.glob(pattern)) if pattern else []
    if pattern and not found:
        raise InvalidInput(f"{desired.path.name}: module {desired.module} has no file {pattern}.")
    return found


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()

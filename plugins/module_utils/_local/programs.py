# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The programs that a local cluster needs, and their sources: released files by URL and checksum, or Go modules.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import hashlib
import http.client
import tarfile
import tempfile
import typing as t
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from .._core.errors import InvalidInput, Rejected, Unreachable
from .._core.files import NO_ROOM, naming
from .gobuild import GoBuild

CHUNK = 1 << 20
PROBE_SECONDS = 3.0
ALGORITHMS = {"sha256": 64, "sha512": 128}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Release:
    """A released file: the program itself, or an archive with the program as a member."""

    name: str
    url: str
    checksum: str
    member: str
    cache_dir: Path

    def __post_init__(self) -> None:
        algorithm, _colon, digest = self.checksum.partition(":")
        if ALGORITHMS.get(algorithm) != len(digest):
            raise InvalidInput(
                f"{self.name}: no checksum is pinned for {self.url}.",
                hint="Give one as sha256:... or sha512:..., or build from Go modules (local_cluster_source: go).",
            )

    @property
    def path(self) -> Path:
        return self.cache_dir / "bin" / self.checksum.partition(":")[2][:16] / self.name


def _opener() -> urllib.request.OpenerDirector:
    """Opens URLs through the proxies of the environment; never files of this host."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


def is_reachable(url: str, timeout: float = PROBE_SECONDS) -> bool:
    """Whether a released file can be reached: one short request, without its content."""
    request = urllib.request.Request(url, method="HEAD")  # noqa: S310 - the URL is pinned in the role
    try:
        with _opener().open(request, timeout=timeout) as answer:
            return bool(answer.status < 400)
    except (OSError, ValueError, http.client.HTTPException):
        return False


def fetch(desired: Release, timeout: float = 60.0) -> Path:
    """Download, verify the checksum, and only then extract the program. It appears in the cache whole or not at all."""
    folder = desired.path.parent
    folder.mkdir(parents=True, exist_ok=True)
    # A separate draft for each run, because another one may fetch the same file at the same time.
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{desired.name}.") as own:
        download, draft = Path(own) / "download", Path(own) / "program"
        _download(desired, download, timeout)
        _extract(desired, download, draft)
        draft.chmod(0o755)
        draft.replace(desired.path)
    return desired.path


def _download(desired: Release, target: Path, timeout: float) -> None:
    algorithm, _colon, expected = desired.checksum.partition(":")
    digest = hashlib.new(algorithm)
    try:
        with naming(desired.path), _opener().open(desired.url, timeout=timeout) as answer, target.open("wb") as out:
            while chunk := answer.read(CHUNK):
                digest.update(chunk)
                out.write(chunk)
    except (OSError, ValueError, http.client.HTTPException) as exc:
        if isinstance(exc, OSError) and exc.errno in NO_ROOM:
            raise
        raise Unreachable(
            f"{desired.name}: {desired.url} could not be fetched: {exc}.",
            hint="Check the network or the proxy settings, or set local_cluster_source to go.",
        ) from exc
    if digest.hexdigest() != expected:
        raise Rejected(
            f"{desired.name}: {desired.url} has {algorithm} {digest.hexdigest()}, expected {expected}.",
            hint="The file is not the one that was pinned, so it was deleted. Do not use it.",
        )


def _extract(desired: Release, download: Path, draft: Path) -> None:
    if not desired.member:
        download.replace(draft)
        return
    with tarfile.open(download) as archive:
        try:
            source = archive.extractfile(desired.member)
        except KeyError:
            source = None
        if source is None:
            raise InvalidInput(f"{desired.name}: {desired.url} has no file {desired.member}.")
        with source, draft.open("wb") as out:
            while chunk := source.read(CHUNK):
                out.write(chunk)


def go_build(row: t.Mapping[str, t.Any], cache_dir: Path, architecture: str) -> GoBuild:
    """A row of the role's table of programs, as something to build."""
    return GoBuild(
        name=row["name"],
        module_dir=Path(row["module_dir"]),
        package=row["package"],
        cache_dir=cache_dir,
        ldflags=row.get("ldflags") or "",
        tags=tuple(row.get("tags") or ()),
        cgo=bool(row.get("cgo")),
        architecture=architecture,
    )

# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that a local cluster needs, and their sources: released files by URL and checksum, or Go modules."""

from __future__ import annotations

import dataclasses
import re
import shutil
import tarfile
import tempfile
import typing as t
from pathlib import Path

from .._core.clock import Clock
from .._core.errors import InvalidInput, Rejected
from .._core.files import draft_prefix, naming
from .download import save
from .gobuild import GoBuild
from .once import making


@dataclasses.dataclass(frozen=True, kw_only=True)
class Release:
    """A released file with programs: name of each -> its path in the archive, or an empty text if the file is the program."""

    name: str
    url: str
    checksum: str
    program_paths: t.Mapping[str, str]
    cache_dir: Path

    def __post_init__(self) -> None:
        if not re.fullmatch(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}", self.checksum):
            raise InvalidInput(
                f"{self.name}: no checksum is pinned for {self.url}.",
                hint="Give one as sha256:... or sha512:..., or build from Go modules (local_cluster_source: build).",
            )
        for program, member in self.program_paths.items():
            require_name(program)
            if not isinstance(member, str):
                raise InvalidInput(f"{self.name}: the path of {program} in the archive is {member!r}, which is no text.", hint="Quote it.")

    @property
    def folder(self) -> Path:
        """The folder of its programs in the cache, named by content."""
        return self.cache_dir / "bin" / self.checksum.partition(":")[2][:16]

    def is_there(self) -> bool:
        return all((self.folder / program).is_file() for program in self.program_paths)


def require_name(name: str) -> None:
    """Refuse the name of a program or an image that is no name of a file, because it becomes one in the cache."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise InvalidInput(f"{name!r} is no name of a program or an image.", hint="Give a name of letters, digits, '.', '_' and '-'.")


def fetch(desired: Release, clock: Clock) -> None:
    """Download, verify the checksum, and only then extract the programs. Each appears in the cache whole or not at all."""
    desired.folder.mkdir(parents=True, exist_ok=True)
    file = desired.folder / "download"
    with making(file) as _missing:
        if desired.is_there():
            return
        with naming(file), tempfile.TemporaryDirectory(dir=desired.folder, prefix=draft_prefix(file)) as own:
            save(desired.url, Path(own) / "download", desired.checksum, clock)
            for program, member in desired.program_paths.items():
                draft = Path(own) / f"program-{program}"
                _extract(desired, Path(own) / "download", member, draft)
                draft.chmod(0o755)
                draft.replace(desired.folder / program)


def _extract(desired: Release, download: Path, member: str, draft: Path) -> None:
    if not member:
        shutil.copyfile(download, draft)
        return
    try:
        with tarfile.open(download) as archive, draft.open("wb") as out:
            # Some projects pack "./name", some "name".
            entry = next((one for one in archive if one.isfile() and one.name.removeprefix("./") == member.removeprefix("./")), None)
            if entry is None:
                raise InvalidInput(f"{desired.name}: {desired.url} has no file {member}.", hint="Correct its path in the archive.")
            shutil.copyfileobj(t.cast("t.IO[bytes]", archive.extractfile(entry)), out, 1 << 20)
    except tarfile.TarError as exc:
        raise Rejected(f"{desired.name}: {desired.url} is no archive: {exc}.", hint="Pin a file that tar can read.") from exc


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

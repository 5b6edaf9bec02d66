# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of what Muster creates on a host or on the controller, and the removal of files and folders by that record.

Each thing is recorded before it is created, so that a run that is killed in between leaves nothing unrecorded. What exists already and is
not in the record belongs to others: it is not recorded, and so never deleted. A removal deletes files by name, follows no symbolic link,
enters no mount point, and keeps and names what it cannot judge (_core/deletion.py).
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fnmatch
import glob
import hashlib
import json
import os
import stat
import typing as t
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from .deletion import Candidate, why_kept
from .errors import Conflict, Failed
from .files import draft_prefix, locked, replaced

MOUNTS = Path("/proc/self/mountinfo")
# The only entry of an empty file system of type ext4.
_OF_AN_EMPTY_DISK = {"lost+found"}


@dataclasses.dataclass
class File:
    """A file that Muster writes, or a program that Muster runs."""

    digests: list[str] = dataclasses.field(default_factory=list)
    """SHA-256 of the content that Muster wrote, and of the one that it is about to write. Empty for a file of a program."""
    data: bool = False
    """It cannot be created again, such as a key: a removal deletes it only when data are to be deleted."""


@dataclasses.dataclass
class Contents:
    """A folder that a program fills, such as its data or its logs."""

    names: list[str] = dataclasses.field(default_factory=list)
    """Patterns (fnmatch) of the entries that the program creates."""
    made: bool = True
    """The folder did not exist. With false it existed and was empty, such as a mounted disk: it stays, and its entries do not."""
    package: str = ""
    """The package whose program fills it; while that is installed and stays, the entries stay."""


@dataclasses.dataclass
class Record:
    """The content of a record. Paths are absolute."""

    files: dict[str, File] = dataclasses.field(default_factory=dict)
    folders: list[str] = dataclasses.field(default_factory=list)
    """Folders that Muster creates for its files. They are removed when they are empty."""
    contents: dict[str, Contents] = dataclasses.field(default_factory=dict)
    things: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    """Names of what is no file, by kind (``packages``, ``nft_tables``)."""

    @classmethod
    def of(cls, found: t.Mapping[str, t.Any]) -> Record:
        """Build it of parsed JSON; raises TypeError, KeyError or ValueError for anything that ``save`` did not write."""
        if found["muster"] != 1:
            raise ValueError(found["muster"])
        return cls(
            files={path: File(**one) for path, one in found["files"].items()},
            folders=list(found["folders"]),
            contents={path: Contents(**one) for path, one in found["contents"].items()},
            things={kind: list(names) for kind, names in found["things"].items()},
        )

    def is_empty(self, path: Path) -> bool:
        """Whether nothing is recorded but the folders that the record itself, at PATH, is in."""
        folders = [one for one in self.folders if Path(one) not in path.parents]
        return not (self.files or folders or self.contents or any(self.things.values()))


def read(path: Path) -> Record:
    """Return the record at PATH, an empty one if there is none. Raises Failed if it cannot be read."""
    try:
        return Record.of(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return Record()
    except (OSError, TypeError, KeyError, ValueError, AttributeError) as error:
        raise Failed(
            f"{path}, the record of what Muster created, cannot be read: {error}.",
            hint="Nothing was changed. Restore the file, or run as the user who owns it. Without a record everything is kept.",
        ) from error


def save(path: Path, record: Record) -> None:
    """Write the record, or delete it if nothing is recorded. Its folder exists while it is ``opened``."""
    if not record.is_empty(path):
        with replaced(path) as file:
            file.write((json.dumps({"muster": 1, **dataclasses.asdict(record)}, indent=1, sort_keys=True) + "\n").encode())
            file.flush()
            os.fsync(file.fileno())
        return
    path.unlink(missing_ok=True)


@contextlib.contextmanager
def opened(path: Path, *, check: bool, removing: bool = False) -> Iterator[Record]:
    """The record at PATH while no other run changes it; ``save`` writes it. What the system refuses meanwhile is Failed.

    Without a lock with CHECK, which only reads, and for a removal where there is not even the folder of a record.
    """
    try:
        if check or (removing and not path.parent.exists()):
            yield read(path)
        else:
            with _locked_record(path) as record:
                yield record
    except OSError as error:
        raise Failed(
            f"{error.filename or path}: {error.strerror or error}.",
            hint="Run as a user who may write there, and have room on the disk. A new run continues.",
        ) from error


@contextlib.contextmanager
def _locked_record(path: Path) -> Iterator[Record]:
    made = [str(one) for one in path.parents if not one.exists()]
    record = Record()
    try:
        for folder in reversed(made):
            Path(folder).mkdir(mode=0o700, exist_ok=True)
        if not path.name or path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        with locked(path.with_name(f".{path.name}.lock")):
            _clear_drafts(path)
            record = read(path)
            record.folders += [one for one in made if one not in record.folders]
            yield record
    finally:
        if not path.exists():
            # A record of nothing: what was created for it and its lock goes, the innermost folder first.
            for folder in sorted({*made, *record.folders}, reverse=True):
                _remove_empty(Path(folder))


# Writing


def digest(content: bytes) -> str:
    """The digest of a file's content, as records have it."""
    return hashlib.sha256(content).hexdigest()


def content_of(path: Path) -> bytes | None:
    """The content of a regular file, None for no or any other file. A symbolic link is another file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO):
            return None
        raise
    with os.fdopen(handle, "rb") as file:
        return file.read() if stat.S_ISREG(os.fstat(handle).st_mode) else None


def note_file(record: Record, path: Path, content: bytes, *, data: bool = False) -> None:
    """Record that CONTENT is about to be written to PATH, unless a file of others is there. An empty file holds no data."""
    _clear_drafts(path)
    known = record.files.get(str(path))
    if known is None and os.path.lexists(path) and content_of(path) != b"":
        return
    before = known.digests if known else []
    record.files[str(path)] = File([*(one for one in before if one != digest(content)), digest(content)], data)


def _clear_drafts(path: Path) -> None:
    """Delete what killed runs left of a file while they wrote it. Other runs write it only while they hold the lock of the record."""
    for name in _entries(path.parent, [f"{glob.escape(draft_prefix(path))}*"]):
        (path.parent / name).unlink(missing_ok=True)


def settle_file(record: Record, path: Path) -> None:
    """Forget the digests of earlier contents of PATH, after the new one was written."""
    if known := record.files.get(str(path)):
        known.digests = known.digests[-1:]


def is_foreign(record: Record, path: Path) -> bool:
    """Whether something is at PATH that Muster did not create there: it is not recorded and holds something, or is not a file any more."""
    if not os.path.lexists(path):
        return False
    content = content_of(path)
    return content is None or (str(path) not in record.files and content != b"")


def not_ours(paths: Iterable[str], record_path: Path) -> Conflict:
    """The error for files of others in places where Muster would write."""
    return Conflict(
        f"{', '.join(paths)}: this file is there, and {record_path} does not say that Muster wrote it.",
        hint="Move it away, and its settings into the variables, and run again.",
    )


def claim_files(record: Record, paths: Iterable[str]) -> None:
    """Record files that a program is about to create, if there are none."""
    for one in paths:
        if one not in record.files and not os.path.lexists(one):
            record.files[one] = File()


def claim_folders(record: Record, paths: Iterable[str]) -> None:
    """Record folders that are about to be created, if there are none."""
    for one in paths:
        if one not in record.folders and not os.path.lexists(one):
            record.folders.append(one)


def claim_contents(record: Record, path: str, names: Sequence[str], package: str) -> None:
    """Record a folder that a program is about to fill, if there is none, or nothing in it."""
    known = record.contents.get(path)
    if known:
        known.names = list(dict.fromkeys([*known.names, *names]))
        return
    if not os.path.lexists(path):
        record.contents[path] = Contents(list(names), True, package)
    elif Path(path).is_dir() and not Path(path).is_symlink() and set(_entries(Path(path), ["*"])) <= _OF_AN_EMPTY_DISK:
        record.contents[path] = Contents(list(names), False, package)


# Removing


@dataclasses.dataclass
class Removal:
    """The plan of a removal: what it deletes, and what it keeps, each with the reason."""

    record: Record
    delete_data: bool
    check: bool
    removed: list[str] = dataclasses.field(default_factory=list)
    kept: list[str] = dataclasses.field(default_factory=list)
    unjudged: list[str] = dataclasses.field(default_factory=list)
    """The entries of ``kept`` that are not kept for their data."""

    def judge(self, name: str, *, unknown: str = "", needed: str = "", data: str = "") -> bool:
        """Whether a recorded thing may be deleted. If not, its name and the reason are noted."""
        candidate = Candidate(name=name, marked=True, recorded=True, unknown=unknown, needed=needed, data=data)
        why = why_kept(candidate, delete_data=self.delete_data)
        if not why:
            self.removed.append(name)
            return True
        self.keep(f"{name}: it {why}", for_data=not (unknown or needed))
        return False

    def keep(self, what: str, *, for_data: bool = False) -> None:
        self.kept.append(what)
        if not for_data:
            self.unjudged.append(what)

    def files(self, paths: Iterable[str]) -> None:
        """Delete recorded files that are as they were written."""
        for one in paths:
            path, known = Path(one), self.record.files[one]
            if not self.check:
                _clear_drafts(path)
            if not os.path.lexists(path):
                self._forget_file(one)
                continue
            data = "holds a key or data" if known.data else ""
            unknown = self._behind_a_link(path) or _why_changed(path, known)
            if self.judge(f"file {one}", unknown=unknown, data=data) and not self.check:
                with self._naming_what_fails(f"file {one}"):
                    path.unlink()
                    self._forget_file(one)

    def _behind_a_link(self, path: Path) -> str:
        """Whether a folder of the record that the path is in is a symbolic link now, which leads to files of others."""
        known = {*self.record.folders, *self.record.contents}
        link = any(str(one) in known and one.is_symlink() for one in path.parents)
        return "its folder is a symbolic link, which Muster did not create" if link else ""

    def _forget_file(self, path: str) -> None:
        if not self.check:
            del self.record.files[path]

    def contents(self, staying_packages: Iterable[str] = ()) -> None:
        """Delete what programs created in recorded folders."""
        points, staying = mount_points(), set(staying_packages)
        for one, known in list(self.record.contents.items()):
            path = Path(one)
            unknown = self._behind_a_link(path / "*")
            if not unknown and known.made and one in points:
                unknown = "a disk was mounted there after Muster recorded the folder"
            entries = _entries(path, known.names)
            needed = f"is used by the package {known.package}, which stays" if known.package in staying else ""
            name = f"{', '.join(entries)} in {one}"
            if not entries:
                self._forget_contents(one)
            elif self.judge(name, unknown=unknown, needed=needed, data="holds data") and not self.check:
                with self._naming_what_fails(name):
                    for failed in delete_entries(path, entries, points):
                        self.keep(failed)
                if not _entries(path, known.names):
                    self._forget_contents(one)

    def _forget_contents(self, path: str) -> None:
        if not self.check and self.record.contents.pop(path).made and path not in self.record.folders:
            self.record.folders.append(path)

    def folders(self, record_path: Path) -> None:
        """Remove recorded folders that are empty, and name what else is in the others. That of the record goes with the record."""
        points, inner = mount_points(), self._recorded()
        for one in sorted([] if self.check else self.record.folders, reverse=True):
            path = Path(one)
            if path in record_path.parents:
                continue
            if one not in points and not self._behind_a_link(path / "*"):
                _remove_empty(path)
            if not os.path.lexists(path):
                self.removed.append(f"folder {one}")
                self.record.folders.remove(one)
            elif others := [name for name in _entries(path, ["*"]) if not _is_inside(str(path / name), inner)]:
                self.keep(f"{', '.join(others)} in {one}: Muster did not create it")
                if not any(recorded.startswith(f"{one}/") for recorded in self._recorded()):
                    self.record.folders.remove(one)

    def _recorded(self) -> list[str]:
        return [*self.record.files, *self.record.folders, *self.record.contents]

    @contextlib.contextmanager
    def _naming_what_fails(self, name: str) -> Iterator[None]:
        """One thing that cannot be deleted (read-only, immutable, mounted) does not keep the others from being deleted."""
        try:
            yield
        except OSError as error:
            self.removed.remove(name)
            self.keep(f"{name}: {error.strerror}")


def _is_inside(path: str, recorded: Iterable[str]) -> bool:
    """Whether PATH is recorded, or a folder with something recorded in it."""
    return any(one == path or one.startswith(f"{path}/") for one in recorded)


def _why_changed(path: Path, known: File) -> str:
    content = content_of(path)
    if content is None:
        return "it is not the file that Muster created, but a link, a folder or a device"
    if known.digests and digest(content) not in known.digests:
        return "it was changed since Muster wrote it"
    return ""


def _entries(folder: Path, names: Sequence[str]) -> list[str]:
    try:
        found = [one.name for one in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(one for one in found if any(fnmatch.fnmatchcase(one, name) for name in names))


def _remove_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # it has files, is mounted, or is gone
        folder.rmdir()


def mount_points(source: Path | None = None) -> set[str]:
    """Paths on which something is mounted. The kernel writes spaces and the like as octal numbers (proc(5))."""
    lines = (source or MOUNTS).read_bytes().splitlines()
    return {os.fsdecode(line.split()[4].decode("unicode_escape").encode("latin-1")) for line in lines}


def delete_entries(folder: Path, names: Iterable[str], points: set[str]) -> list[str]:
    """Delete entries of FOLDER with everything in them; return what could not be deleted, with the reason."""
    kept: list[str] = []
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for name in names:
            _delete(handle, folder, name, points, kept)
    finally:
        os.close(handle)
    return kept


def _delete(handle: int, folder: Path, name: str, points: set[str], kept: list[str]) -> None:
    """Delete one entry by the handle of its folder, so that a link put there meanwhile leads nowhere else."""
    path = folder / name
    if str(path) in points:
        kept.append(f"{path}: something is mounted there")
        return
    try:
        if not stat.S_ISDIR(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=handle)
            return
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
        try:
            for one in os.listdir(inner):  # noqa: PTH208 - by the handle
                _delete(inner, path, one, points, kept)
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=handle)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY):
            kept.append(f"{path}: {error.strerror}")

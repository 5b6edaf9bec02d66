# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program that fetches a data set inside a pod. Its source goes into a ConfigMap, so it imports nothing of ours.

Python 3.9 or newer and its standard library are enough for https and gs (on Google Cloud); s3 needs boto3 in the image.

Exit status: 0 done; 65 trying again does not help; 75 it may help.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import http.client
import json
import os
import shutil
import signal
import stat
import sys
import tarfile
import time
import typing as t
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path

EXIT_PERMANENT = 65
EXIT_TEMPORARY = 75
MARKER = ".muster-dataset.json"
_CHUNK = 1 << 18
_ATTEMPTS = 8
_SPEAK_EVERY = 5.0
_METADATA = "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token"


class Permanent(Exception):
    """Trying again would end the same way."""


class Temporary(Exception):
    """The next attempt may succeed."""


def say(text: str) -> None:
    """One line of the log, at once."""
    sys.stdout.write(f"dataset: {text}\n")
    sys.stdout.flush()


def shown(url: str) -> str:
    """The address without what may be secret in it."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def key_of(url: str, sha256: str) -> str:
    """What the marker is compared by."""
    return hashlib.sha256(f"{shown(url)} {sha256}".encode()).hexdigest()[:16]


# Sources: each opens the object at an offset and says how long the whole is


class Answer(t.NamedTuple):
    """A stream that begins at `offset` of an object of `total` bytes (None: unknown)."""

    stream: t.Any
    offset: int
    total: int | None


def open_at(url: str, offset: int) -> Answer:
    """Open the object from OFFSET on; the answer says where it really begins."""
    scheme = urllib.parse.urlsplit(url).scheme
    if scheme == "s3":
        return _open_s3(url, offset)
    if scheme == "gs":
        return _open_http(_gs_address(url), offset, _google_authorization())
    if scheme in ("http", "https"):
        return _open_http(url, offset, os.environ.get("AUTHORIZATION"))
    raise Permanent(f"{shown(url)}: only https, http, s3 and gs are understood")


def _opener() -> urllib.request.OpenerDirector:
    """The standard library's: in a pod there is no Ansible with its own."""
    return urllib.request.build_opener()


def _open_http(url: str, offset: int, authorization: str | None) -> Answer:
    headers = {"Accept-Encoding": "identity", **({"Authorization": authorization} if authorization else {})}
    if offset:
        headers["Range"] = f"bytes={offset}-"
    try:
        answer = _opener().open(urllib.request.Request(url, headers=headers), timeout=60)  # noqa: S310 - schemes: open_at
    except urllib.error.HTTPError as exc:
        exc.close()
        if exc.code == 416:
            # What is there is as long as the object, or longer: begin again, the checksum decides.
            return _open_http(url, 0, authorization) if offset else _refuse(url, exc)
        return _refuse(url, exc)
    length = answer.headers.get("Content-Length")
    if answer.status == 206:
        total = answer.headers.get("Content-Range", "").rpartition("/")[2]
        return Answer(answer, offset, int(total) if total.isdigit() else None)
    return Answer(answer, 0, int(length) if length else None)


def _refuse(url: str, exc: urllib.error.HTTPError) -> t.NoReturn:
    told = f"{shown(url)}: the server answers {exc.code} {exc.reason}"
    if exc.code in (408, 425, 429) or exc.code >= 500:
        raise Temporary(told)
    hint = {401: "Give credentials.", 403: "May these credentials read it? A signed address may have run out."}
    raise Permanent(f"{told}. {hint.get(exc.code, 'Is the address right?')}")


def _gs_address(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    name = urllib.parse.quote(parts.path.lstrip("/"), safe="")
    return f"https://storage.googleapis.com/storage/v1/b/{parts.netloc}/o/{name}?alt=media"


def _google_authorization() -> str | None:
    """The token of the pod's own account (Workload Identity); none for public objects elsewhere."""
    request = urllib.request.Request(_METADATA, headers={"Metadata-Flavor": "Google"})
    try:
        with _opener().open(request, timeout=5) as answer:
            return f"Bearer {json.load(answer)['access_token']}"
    except (OSError, KeyError, ValueError):
        return None


def _open_s3(url: str, offset: int) -> Answer:
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError as exc:
        raise Permanent("s3:// needs boto3 in dataset_image; or give a presigned https address") from exc
    parts = urllib.parse.urlsplit(url)
    more = {"Range": f"bytes={offset}-"} if offset else {}
    try:
        found = boto3.client("s3").get_object(Bucket=parts.netloc, Key=parts.path.lstrip("/"), **more)
    except ClientError as exc:
        status = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
        if status == 416 and offset:
            return _open_s3(url, 0)
        told = f"{shown(url)}: {exc}"
        raise (Temporary if status >= 500 or status == 429 else Permanent)(told) from exc
    except BotoCoreError as exc:
        raise Temporary(f"{shown(url)}: {exc}") from exc
    return Answer(found["Body"], offset, offset + int(found["ContentLength"]))


# Download


def check_space(where: Path, needed: int, what: str) -> None:
    """Refuse before the first byte what cannot fit."""
    free = shutil.disk_usage(where).free
    if needed > free:
        raise Permanent(
            f"{what} needs {needed} bytes and the claim has {free} free. Make the claim larger, or room on it."
        )


def download(url: str, part: Path, size: int | None) -> None:
    """Complete PART, from where an earlier attempt left it."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _download_once(url, part, size)
        except (Temporary, OSError, http.client.HTTPException) as exc:
            if isinstance(exc, OSError) and exc.errno == 28:
                raise Permanent(f"{shown(url)}: no space left on the claim. Make it larger.") from exc
            if attempt == _ATTEMPTS:
                raise Temporary(f"{shown(url)}: {exc} (after {attempt} attempts)") from exc
            say(f"attempt {attempt} of {_ATTEMPTS} ended: {exc}")
            time.sleep(min(30, 2**attempt))
    return None


def _download_once(url: str, part: Path, size: int | None) -> None:
    have = part.stat().st_size if part.exists() else 0
    answer = open_at(url, have)
    with contextlib.closing(answer.stream):
        if size is not None and answer.total is not None and answer.total != size:
            raise Permanent(f"{shown(url)} has {answer.total} bytes, not {size}. Correct dataset_size, or the address.")
        if answer.total is not None:
            check_space(part.parent, answer.total - answer.offset, shown(url))
        say(f"resumes at byte {answer.offset}" if answer.offset else "begins")
        _copy(answer, part)
    have = part.stat().st_size
    if answer.total is not None and have < answer.total:
        raise Temporary(f"the connection ended at byte {have} of {answer.total}")


def _copy(answer: Answer, part: Path) -> None:
    done, told = answer.offset, time.monotonic()
    with part.open("r+b" if answer.offset else "wb") as out:
        out.seek(answer.offset)
        out.truncate()
        while chunk := answer.stream.read(_CHUNK):
            out.write(chunk)
            done += len(chunk)
            if time.monotonic() - told >= _SPEAK_EVERY:
                told = time.monotonic()
                share = f" of {answer.total} ({100 * done // answer.total} %)" if answer.total else ""
                say(f"{done}{share} bytes")
        out.flush()
        os.fsync(out.fileno())


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


# Unpack: nothing leaves the folder, whatever the archive says


def kind_of(name: str, wanted: str) -> str:
    """tar, zip or none."""
    if wanted != "auto":
        return wanted
    if name.lower().endswith((".zip", ".whl")):
        return "zip"
    return "tar" if ".tar" in name.lower() or name.lower().endswith((".tgz", ".tbz2", ".txz")) else "none"


def _inside(folder: Path, name: str) -> Path:
    target = folder / name
    real = Path(os.path.realpath(target))
    if Path(name).is_absolute() or (real != folder and folder not in real.parents):
        raise Permanent(f"the archive's member {name!r} would leave its folder: nothing of it is used")
    return target


def unpack_tar(archive: Path, folder: Path) -> int:
    """Extract files, folders and links that stay inside; anything else is refused."""
    folder, count = Path(os.path.realpath(folder)), 0
    with tarfile.open(archive, "r:*") as tar:
        for member in tar:
            target = _inside(folder, member.name)
            if member.issym():
                _inside(folder, str(target.parent.relative_to(folder) / member.linkname))
                if Path(member.linkname).is_absolute():
                    raise Permanent(f"the archive's link {member.name!r} is absolute: nothing of it is used")
            elif member.islnk():
                _inside(folder, member.linkname)
            elif not (member.isfile() or member.isdir()):
                raise Permanent(f"the archive's member {member.name!r} is neither file, folder nor link")
            check_space(folder, member.size, member.name)
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
            tar.extract(member, folder, set_attrs=not member.issym())
            count += member.isfile()
    return count


def unpack_zip(archive: Path, folder: Path) -> int:
    """Extract files and folders that stay inside."""
    folder, count = Path(os.path.realpath(folder)), 0
    with zipfile.ZipFile(archive) as packed:
        check_space(folder, sum(entry.file_size for entry in packed.infolist()), archive.name)
        for entry in packed.infolist():
            _inside(folder, entry.filename)
            if stat.S_ISLNK(entry.external_attr >> 16):
                raise Permanent(f"the archive's member {entry.filename!r} is a link: nothing of it is used")
            packed.extract(entry, folder)
            count += not entry.is_dir()
    return count


# The whole


def publish(url: str, part: Path, work: Path, target: Path, unpack: str, note: dict[str, t.Any]) -> int:
    """Put the data, with the marker, where they belong, in one step."""
    fresh = work / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    name = Path(urllib.parse.urlsplit(url).path).name or "data"
    kind = kind_of(name, unpack)
    try:
        if kind == "none":
            part.rename(fresh / name)
            files = 1
        else:
            files = unpack_tar(part, fresh) if kind == "tar" else unpack_zip(part, fresh)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as exc:
        raise Permanent(f"{shown(url)} is no readable {kind} archive: {exc}. Set dataset_unpack.") from exc
    (fresh / MARKER).write_text(json.dumps({**note, "files": files}), encoding="utf-8")
    if target.exists():
        old = work / "old"
        shutil.rmtree(old, ignore_errors=True)
        target.rename(old)
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh.rename(target)
    return files


def marker_of(target: Path) -> dict[str, t.Any]:
    """What is there already, empty where nothing of ours is."""
    try:
        return dict(json.loads((target / MARKER).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def fetch(
    root: Path, url: str, sha256: str, path: str, unpack: str = "auto", size: int | None = None
) -> dict[str, t.Any]:
    """Have the data below ROOT/PATH; the marker's content."""
    target, key = root / path, key_of(url, sha256)
    work = root / ".muster" / path.replace("/", "_")
    work.mkdir(parents=True, exist_ok=True)
    with (work / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        there = marker_of(target)
        if there.get("key") == key:
            say("is there already")
            return there
        if not there and target.exists() and any(target.iterdir()):
            raise Permanent(f"{path} of the claim holds other data. Choose another dataset_path, or empty it.")
        part = work / f"{key}.part"
        if not (part.exists() and digest(part) == sha256):
            download(url, part, size)
        found = digest(part)
        if found != sha256:
            part.unlink()
            raise Permanent(
                f"{shown(url)} has the SHA-256 {found}, not {sha256}. Correct dataset_sha256, or distrust it."
            )
        note = {"key": key, "url": shown(url), "sha256": sha256, "bytes": part.stat().st_size}
        say("checksum is right")
        note["files"] = publish(url, part, work, target, unpack, note)
        shutil.rmtree(work / "old", ignore_errors=True)
        part.unlink(missing_ok=True)
    return note


def _stop(*_signal: object) -> t.NoReturn:
    raise SystemExit(EXIT_TEMPORARY)


def main() -> int:
    """Fetch what the environment names; the last word goes where Kubernetes shows it."""
    # As the first process of a pod it would otherwise go on until it is killed.
    signal.signal(signal.SIGTERM, _stop)
    env = os.environ
    size = env.get("DATASET_SIZE")
    try:
        done = fetch(
            Path(env.get("DATASET_ROOT", "/data")), env["DATASET_URL"], env["DATASET_SHA256"], env["DATASET_PATH"],
            env.get("DATASET_UNPACK", "auto"), int(size) if size else None,
        )  # fmt: skip
        word, status = f"{done['files']} files from {done['bytes']} bytes", 0
    except Permanent as exc:
        word, status = str(exc), EXIT_PERMANENT
    except (Temporary, OSError) as exc:
        word, status = str(exc), EXIT_TEMPORARY
    say(word)
    with contextlib.suppress(OSError):
        Path("/dev/termination-log").write_text(word, encoding="utf-8")
    return status


if __name__ == "__main__":
    raise SystemExit(main())

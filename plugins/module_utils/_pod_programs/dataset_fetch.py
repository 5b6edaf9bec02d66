# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that fetches a data set inside a pod, or with the arguments URL FILE [SHA256] one file, such as the script of an elastic job.

Its source goes into a ConfigMap, so it imports nothing of ours.

Python 3.9 or newer and its standard library are enough: an image with the SDK of every cloud would be one more thing to keep.

Exit status: 0 done; 65 trying again does not help; 75 it may help.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import hmac
import http.client
import json
import os
import re
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
import uuid
import zipfile
from pathlib import Path

EXIT_PERMANENT = 65
EXIT_TEMPORARY = 75
MARKER = ".muster-dataset.json"
_CHUNK = 1 << 18
_ATTEMPTS = 8
_SPEAK_EVERY = 5.0
_METADATA = "/computeMetadata/v1/instance/service-accounts/default/token"
_FULL = "no space left on the claim. Make it larger, or room on it."
_NO_RANGES = "The server serves no ranges, so that every attempt begins again: put the file where a download can be resumed."
_EMPTY = hashlib.sha256(b"").hexdigest()
# Seconds without a sign of life after which another run's draft, or its turn at the folder, may be taken over: more than the
# longest that a run which lives is silent (a read that times out, then a pause between attempts).
_QUIET = 600.0
# Seconds after which files of an interrupted download are removed.
_ABANDONED = 86400.0
# Everything that this program puts into .muster, apart from the turn itself. What does not look like this is never removed.
_OURS = re.compile(r"[0-9a-f]{16}(\.[\w-]+)?\.part|(fresh|marker|now|turn)\.[\w-]+")


class Permanent(Exception):
    """Trying again would end the same way."""


class Temporary(Exception):
    """The next attempt may succeed."""


def say(text: str) -> None:
    """One line of the log, at once."""
    sys.stdout.write(f"fetch: {text}\n")
    sys.stdout.flush()


def shown(url: str) -> str:
    """The address without what may be secret in it."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def key_of(sha256: str, kind: str, name: str) -> str:
    """What the marker is compared by: all that decides the result. NAME counts for a file only: an archive has its own names."""
    return hashlib.sha256(f"{sha256} {kind} {name if kind == 'none' else ''}".encode()).hexdigest()[:16]


def name_of(url: str) -> str:
    """What a file is called that comes from there."""
    name = Path(urllib.parse.urlsplit(url).path).name
    return "data" if name in ("", "..", MARKER) else name


# Sources: each opens the object at an offset and says how long the whole is


class Answer(t.NamedTuple):
    """A stream that begins at `offset` of an object of `total` bytes (None: unknown)."""

    stream: t.Any
    offset: int
    total: int | None


def open_at(url: str, offset: int) -> Answer:
    """Open the object from OFFSET on; the answer says where it really begins."""
    try:
        parts = urllib.parse.urlsplit(url)
        scheme, _port = parts.scheme, parts.port
    except ValueError:
        raise Permanent("the address is no URL: its host or port is wrong") from None
    if scheme == "s3":
        return _open_s3(url, offset)
    if scheme == "gs":
        return _open_http(url, offset, _gs_address(url), _google_headers())
    if scheme in ("http", "https"):
        return _open_http(url, offset, url, _given_headers())
    raise Permanent(f"{shown(url)}: only https, http, s3 and gs are understood")


def _opener() -> urllib.request.OpenerDirector:
    """The standard library's: in a pod there is no Ansible with its own."""
    return urllib.request.build_opener()


def _request(address: str, headers: dict[str, str], data: bytes | None = None) -> urllib.request.Request:
    request = urllib.request.Request(address, data)  # noqa: S310 - schemes: open_at
    for name, value in {"Accept-Encoding": "identity", **headers}.items():
        # Where a server sends us elsewhere, credentials are not for that place.
        request.add_unredirected_header(name, value)
    return request


def _given_headers() -> dict[str, str]:
    given = os.environ.get("AUTHORIZATION")
    return {"Authorization": given} if given else {}


def _open_http(url: str, offset: int, address: str, headers: dict[str, str]) -> Answer:
    # A path may have umlauts, a request may not; what is quoted stays.
    request = _request(urllib.parse.quote(address, safe="%/:=&?~#+!$,;'@()*[]"), headers)
    if offset:
        request.add_header("Range", f"bytes={offset}-")
    try:
        answer = _opener().open(request, timeout=60)
    except urllib.error.HTTPError as exc:
        with exc:
            if exc.code == 416 and offset:
                # What is there is as long as the object, or longer: begin again, the checksum decides.
                return _open_http(url, 0, address, headers)
            raise _refusal(url, exc) from exc
    except (ValueError, http.client.InvalidURL):
        raise Permanent(f"{shown(url)} is no address that can be asked") from None
    part = answer.status == 206
    total = answer.headers.get("Content-Range", "").rpartition("/")[2] if part else answer.headers.get("Content-Length")
    return Answer(answer, offset if part else 0, int(total) if re.fullmatch("[0-9]+", total or "") else None)


def _refusal(url: str, exc: urllib.error.HTTPError) -> Exception:
    # Of S3's answer the code only: the rest may repeat what was signed.
    code = re.search(rb"<Code>(\w+)</Code>", exc.read(4096))
    told = f"{shown(url)}: the server answers {exc.code} {exc.reason}" + (f" ({code[1].decode()})" if code else "")
    if exc.code in (408, 425, 429) or exc.code >= 500:
        return Temporary(told)
    hint = {401: "Give credentials.", 403: "May these credentials read it? A signed address may have run out."}
    return Permanent(f"{told}. {hint.get(exc.code, 'Is the address right?')}")


def _endpoint(*names: str) -> str | None:
    """Another server than the cloud's own: what was asked for, or what its clients go by."""
    for name in ("DATASET_ENDPOINT_URL", *names):
        if given := os.environ.get(name):
            return (given if "://" in given else f"http://{given}").rstrip("/")
    return None


# Google Cloud Storage: with the pod's own account (Workload Identity), or what the Secret has


def _gs_address(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    name = urllib.parse.quote(parts.path.lstrip("/"), safe="")
    server = _endpoint("STORAGE_EMULATOR_HOST") or "https://storage.googleapis.com"
    return f"{server}/storage/v1/b/{parts.netloc}/o/{name}?alt=media"


def _google_headers() -> dict[str, str]:
    """The token of the pod's account; nothing where there is none, which is enough for public objects."""
    if given := _given_headers():
        return given
    host = os.environ.get("GCE_METADATA_HOST", "metadata.google.internal")
    with contextlib.suppress(OSError, KeyError, ValueError):
        request = _request(f"http://{host}{_METADATA}", {"Metadata-Flavor": "Google"})
        with _opener().open(request, timeout=5) as answer:
            return {"Authorization": f"Bearer {json.load(answer)['access_token']}"}
    return {}


# Amazon S3 and what speaks like it. The node's own role is never asked for.


class Keys(t.NamedTuple):
    """What requests are signed with."""

    access: str
    secret: str
    token: str | None


def _s3_keys() -> Keys | None:
    """Those of the Secret, of the pod's account by IRSA, or by Pod Identity; without any, for public objects."""
    env = os.environ
    if env.get("AWS_ACCESS_KEY_ID"):
        return Keys(env["AWS_ACCESS_KEY_ID"], env.get("AWS_SECRET_ACCESS_KEY", ""), env.get("AWS_SESSION_TOKEN"))
    try:
        if env.get("AWS_WEB_IDENTITY_TOKEN_FILE"):
            return _web_identity(Path(env["AWS_WEB_IDENTITY_TOKEN_FILE"]).read_text(encoding="utf-8"), env)
        if env.get("AWS_CONTAINER_CREDENTIALS_FULL_URI"):
            token = Path(env["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]).read_text(encoding="utf-8")
            return _pod_identity(token.strip(), env["AWS_CONTAINER_CREDENTIALS_FULL_URI"])
    except urllib.error.HTTPError as exc:
        with exc:
            raise _refusal("credentials of the ServiceAccount", exc) from exc
    except (KeyError, TypeError) as exc:
        raise Permanent(f"credentials of the ServiceAccount: {exc} is missing") from exc
    return None


def _web_identity(token: str, env: t.Mapping[str, str]) -> Keys:
    form = {
        "Action": "AssumeRoleWithWebIdentity",
        "Version": "2011-06-15",
        "RoleArn": env["AWS_ROLE_ARN"],
        "RoleSessionName": env.get("AWS_ROLE_SESSION_NAME", "muster-dataset"),
        "WebIdentityToken": token,
    }
    server = env.get("AWS_ENDPOINT_URL_STS") or f"https://sts.{_region()}.{_domain(_region())}"
    with _opener().open(_request(server, {}, urllib.parse.urlencode(form).encode()), timeout=30) as answer:
        text = answer.read().decode()
    names = ("AccessKeyId", "SecretAccessKey", "SessionToken")
    return Keys(*(t.cast("re.Match[str]", re.search(f"<{name}>([^<]+)</{name}>", text))[1] for name in names))


def _pod_identity(token: str, address: str) -> Keys:
    with _opener().open(_request(address, {"Authorization": token}), timeout=30) as answer:
        found = json.load(answer)
    return Keys(found["AccessKeyId"], found["SecretAccessKey"], found["Token"])


def _region() -> str:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def _domain(region: str) -> str:
    return "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"


def _s3_address(url: str, region: str) -> str:
    parts = urllib.parse.urlsplit(url)
    path = urllib.parse.quote(parts.path.lstrip("/"), safe="/-_.~")
    if server := _endpoint("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        return f"{server}/{parts.netloc}/{path}"
    server = f"s3.{region}.{_domain(region)}"
    # A dot in the bucket's name would not fit the server's certificate.
    dotted = "." in parts.netloc
    return f"https://{server}/{parts.netloc}/{path}" if dotted else f"https://{parts.netloc}.{server}/{path}"


def signed(address: str, keys: Keys, region: str, moment: str) -> dict[str, str]:
    """Headers of a GET by AWS's Signature Version 4, at MOMENT (20261121T160000Z)."""
    parts = urllib.parse.urlsplit(address)
    headers = {"host": parts.netloc, "x-amz-content-sha256": _EMPTY, "x-amz-date": moment}
    if keys.token:
        headers["x-amz-security-token"] = keys.token
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    asked = f"GET\n{parts.path}\n{parts.query}\n{lines}\n{names}\n{_EMPTY}"
    scope = f"{moment[:8]}/{region}/s3/aws4_request"
    key = f"AWS4{keys.secret}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(asked.encode()).hexdigest()}"
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    del headers["host"]
    credential = f"AWS4-HMAC-SHA256 Credential={keys.access}/{scope}"
    return {**headers, "Authorization": f"{credential}, SignedHeaders={names}, Signature={signature}"}


def _open_s3(url: str, offset: int) -> Answer:
    keys, region = _s3_keys(), _region()
    for attempt in (region, None):
        address = _s3_address(url, region)
        headers = signed(address, keys, region, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())) if keys else {}
        try:
            return _open_http(url, offset, address, headers)
        except (Permanent, Temporary) as exc:
            cause = exc.__cause__
            elsewhere = cause.headers.get("x-amz-bucket-region") if isinstance(cause, urllib.error.HTTPError) else None
            if attempt is None or elsewhere in (None, region):
                raise
            region = elsewhere  # the bucket's own, which every answer about it tells
    raise AssertionError


# Download


def check_space(where: Path, needed: int, what: str) -> None:
    """Refuse before the first byte what cannot fit."""
    free = shutil.disk_usage(where).free
    if needed > free:
        raise Permanent(f"{what} needs {needed} bytes and the claim has {free} free. Make the claim larger, or room on it.")


def download(url: str, part: Path, size: int | None) -> None:
    """Complete PART, from where an earlier attempt left it."""
    if size is not None:
        check_space(part.parent, size - _length(part), shown(url))
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _download_once(url, part, size)
        except (Temporary, OSError, http.client.HTTPException) as exc:
            if isinstance(exc, OSError) and exc.errno == errno.ENOSPC:
                raise Permanent(f"{shown(url)}: {_FULL}") from exc
            told = str(exc)
            if isinstance(exc, OSError):
                told = f"{shown(url)}: no answer: {getattr(exc, 'reason', exc)}. Can pods of this cluster reach it?"
            if attempt == _ATTEMPTS:
                raise Temporary(f"{told} (after {attempt} attempts)") from exc
            say(f"attempt {attempt} of {_ATTEMPTS} ended: {told}")
            time.sleep(min(30, 2**attempt))
    return None


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _download_once(url: str, part: Path, size: int | None) -> None:
    have = _length(part)
    answer = open_at(url, have)
    with contextlib.closing(answer.stream):
        if size is not None and answer.total is not None and answer.total != size:
            raise Permanent(f"{shown(url)} has {answer.total} bytes, not {size}. Correct option size_bytes, or the address.")
        if answer.total is not None:
            check_space(part.parent, answer.total - have, shown(url))
        again = have and not answer.offset
        say(f"resumes at byte {answer.offset}" if answer.offset else f"begins{' again' if again else ''}")
        _copy(answer, part, size if answer.total is None else answer.total, shown(url))
    have = _length(part)
    if answer.total is not None and have < answer.total:
        told = f"{shown(url)}: the connection ended at byte {have} of {answer.total}"
        raise Temporary(told + (f". {_NO_RANGES}" if again else ""))


def _copy(answer: Answer, part: Path, most: int | None, what: str) -> None:
    done, told = answer.offset, time.monotonic()
    with part.open("r+b" if answer.offset else "wb") as out:
        if answer.offset:
            out.seek(answer.offset)
            out.truncate()
        while chunk := answer.stream.read(_CHUNK):
            done += len(chunk)
            if most is not None and done > most:
                raise Permanent(f"{what} has more than the {most} bytes that were announced. Correct option size_bytes, or the address.")
            out.write(chunk)
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


def kind_of(name: str, desired: str) -> str:
    """tar, zip or none."""
    if desired != "auto":
        return desired
    if name.lower().endswith((".zip", ".whl")):
        return "zip"
    return "tar" if ".tar" in name.lower() or name.lower().endswith((".tgz", ".tbz2", ".txz")) else "none"


def _name_inside(name: str) -> str:
    """The member's path in the folder, without . and .. in it. No link is there yet, so this is where it really ends up."""
    found = os.path.normpath(name)
    if os.path.isabs(name) or found.split("/")[0] == "..":  # noqa: PTH117 - a text, not a file
        raise Permanent(f"the archive's member {name!r} would leave its folder: nothing of it is used")
    return found


def _write(folder: Path, name: str, stream: t.Any, size: int, mode: int) -> Path:
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with open(os.open(target, flags, 0o600), "wb") as out:  # noqa: PTH123 - a descriptor
        shutil.copyfileobj(stream, out, _CHUNK)
        if out.tell() != size:
            raise EOFError(f"{name} ends after {out.tell()} of {size} bytes")
    target.chmod(mode)
    return target


def unpack_tar(archive: Path, folder: Path) -> int:
    """Extract files and folders, then the links between them; refuse what would leave the folder.

    Links are made last, so that no member is ever written through one, and looked at when all are there: what one points to may be
    decided by a later one.
    """
    folder, count = Path(os.path.realpath(folder)), 0
    links: dict[str, tarfile.TarInfo] = {}
    with tarfile.open(archive, "r:*") as tar:
        for member in tar:
            name = _name_inside(member.name)
            if name == MARKER:
                continue
            if member.isdir():
                (folder / name).mkdir(parents=True, exist_ok=True)
            elif member.issym() or member.islnk():
                links[name] = member
            elif member.isfile():
                check_space(folder, member.size, member.name)
                mode = 0o755 if member.mode & 0o100 else 0o644
                path = _write(folder, name, tar.extractfile(member), member.size, mode)
                os.utime(path, (member.mtime, member.mtime))
                count += 1
            else:
                raise Permanent(f"the archive's member {member.name!r} is neither file, folder nor link")
    _make_links(folder, links)
    return count


def _make_links(folder: Path, links: dict[str, tarfile.TarInfo]) -> None:
    for name, member in sorted(links.items(), key=lambda link: link[1].issym()):
        target = folder / name
        if any(folder in parent.parents and parent.is_symlink() for parent in target.parents):
            raise Permanent(f"the archive's member {name!r} lies below a link: nothing of it is used")
        target.parent.mkdir(parents=True, exist_ok=True)
        if member.issym():
            target.symlink_to(member.linkname)
            continue
        source = folder / _name_inside(member.linkname)
        if not source.is_file():
            raise Permanent(f"the archive's link {name!r} is of no file in it: nothing of it is used")
        os.link(source, target)
    for name, member in links.items():
        real = Path(os.path.realpath(folder / name))
        if os.path.isabs(member.linkname) or (real != folder and folder not in real.parents):  # noqa: PTH117
            raise Permanent(f"the archive's link {name!r} would leave its folder: nothing of it is used")


def unpack_zip(archive: Path, folder: Path) -> int:
    """Extract files and folders that stay inside. Links are refused, so none is ever there to write through."""
    folder, count = Path(os.path.realpath(folder)), 0
    with zipfile.ZipFile(archive) as packed:
        check_space(folder, sum(entry.file_size for entry in packed.infolist()), archive.name)
        for entry in packed.infolist():
            name = _name_inside(entry.filename)
            if stat.S_ISLNK(entry.external_attr >> 16):
                raise Permanent(f"the archive's member {entry.filename!r} is a link: nothing of it is used")
            if entry.is_dir():
                (folder / name).mkdir(parents=True, exist_ok=True)
            elif name != MARKER:
                with packed.open(entry) as stream:
                    _write(folder, name, stream, entry.file_size, 0o644)
                count += 1
    return count


def unpack_into(fresh: Path, part: Path, kind: str, name: str, url: str) -> None:
    """What the data set will be, in a folder of this run."""
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    if kind == "none":
        part.rename(fresh / name)
        return
    try:
        (unpack_tar if kind == "tar" else unpack_zip)(part, fresh)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, RuntimeError) as exc:
        raise Permanent(f"{shown(url)} is no readable {kind} archive: {exc}. Set the option unpack.") from exc
    except (FileExistsError, IsADirectoryError, NotADirectoryError) as exc:
        raise Permanent(f"{shown(url)} contradicts itself: {exc}. Nothing of it is used.") from exc


# The folder: whose is what


def names_in(folder: Path) -> set[str]:
    """The path of everything below the folder; that of a folder ends in a slash. Links are not followed."""

    def refuse(exc: OSError) -> t.NoReturn:
        raise exc

    found = set()
    for here, folders, files in os.walk(folder, onerror=refuse):
        below = os.path.relpath(here, folder) + "/" if here != str(folder) else ""
        found |= {f"{below}{name}" for name in files}
        found |= {f"{below}{name}" if (Path(here) / name).is_symlink() else f"{below}{name}/" for name in folders}
    return found


def some(names: t.Iterable[str]) -> str:
    """The first of many names."""
    ordered = sorted(names)
    return ", ".join(ordered[:5]) + (f" and {len(ordered) - 5} more" if len(ordered) > 5 else "")


def marker_of(target: Path) -> dict[str, t.Any]:
    """What is there already, empty where nothing of ours is, or nothing that can be read."""
    try:
        return dict(json.loads((target / MARKER).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def is_there(marker: dict[str, t.Any], sha256: str, kind: str, name: str) -> bool:
    """Whether the marker says that the folder holds what is wanted."""
    return bool(marker.get("key") == key_of(sha256, kind, name))


def check_folder(root: Path, path: str, marker: dict[str, t.Any]) -> None:
    """Refuse, before anything changes, a folder that belongs to another data set, or has files that no record names."""
    target = root / path
    real = Path(os.path.realpath(target))
    if Path(os.path.realpath(root)) not in real.parents:
        raise Permanent(f"{path} leads out of the claim. Choose another dataset_path.")
    above = [str(one) for one in Path(path).parents if str(one) != "." and (root / one / MARKER).exists()]
    names = names_in(target) if target.is_dir() and not above else set()
    below = [
        f"{path}/{Path(name).parent}"
        for name in sorted(names - set(marker.get("names", ())))
        if Path(name).name == MARKER and name != MARKER
    ]
    if above or below:
        raise Permanent(
            f"The data sets {path} and {(above + below)[0]} would lie in each other: an update of one would meet the files of "
            f"the other. Nothing was changed. Choose another dataset_path."
        )
    if not marker and (names or (target.exists() and not target.is_dir())):
        raise Permanent(f"{path} of the claim holds other data. Choose another dataset_path, or empty it.")


def clashes(theirs: set[str], desired: set[str]) -> list[str]:
    """What others put where the data set needs the place: a file of the same path, or one kind of thing where the other must be."""
    files = {name for name in desired if not name.endswith("/")}
    return sorted(
        name
        for name in theirs
        if name.rstrip("/") in files or f"{name}/" in desired or any(str(parent) in files for parent in Path(name).parents)
    )


def flush(folder: Path) -> None:
    """Everything on this storage survives a power loss from here on."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        # Linux and its C libraries have it, Python does not.
        if ctypes.CDLL(None, use_errno=True).syncfs(handle):
            raise OSError(ctypes.get_errno(), "what was written could not be made safe", str(folder))
    finally:
        os.close(handle)


def write_marker(draft: Path, target: Path, marker: dict[str, t.Any]) -> None:
    """Replace the folder's marker at once, when all before it is safe."""
    draft.write_text(json.dumps(marker), encoding="utf-8")
    flush(target)
    draft.replace(target / MARKER)
    flush(target)


class Turn:
    """Whose turn it is to change a folder. On shared storage a file that only one can make is right everywhere; locks are not."""

    def __init__(self, work: Path, run: str) -> None:
        self.work, self.run, self.path = work, run, work / "turn"
        self._told = 0.0

    def __enter__(self) -> Turn:
        waiting = False
        while True:
            try:
                with self.path.open("x", encoding="utf-8") as out:
                    out.write(self.run)
            except FileExistsError:
                if self._taken_over():
                    continue
                if not waiting:
                    say("another run changes this folder: waits for it")
                waiting = True
                time.sleep(5)
            else:
                return self

    def _taken_over(self) -> bool:
        """Free it where its holder is gone. A run of the same Job is the one that came before this one, and has ended."""
        aside = self.work / f"turn.{self.run}"
        try:
            holder = self.path.read_text(encoding="utf-8")
            if holder != self.run and silent(self.work, self.path, self.run) < _QUIET:
                return False
            # Of several who wait one gets it.
            self.path.rename(aside)
        except FileNotFoundError:
            return True
        if aside.read_text(encoding="utf-8") != holder:
            # Another process had made a new one.
            with contextlib.suppress(FileExistsError):
                os.link(aside, self.path)
        aside.unlink()
        return True

    def renew(self) -> None:
        """A sign of life; ends this run where another one took over meanwhile."""
        if time.monotonic() - self._told < _SPEAK_EVERY:
            return
        self._told = time.monotonic()
        try:
            mine = self.path.read_text(encoding="utf-8") == self.run
            os.utime(self.path)
        except FileNotFoundError:
            mine = False
        if not mine:
            raise Temporary("another run changes this folder now")

    def __exit__(self, *_exc: object) -> None:
        with contextlib.suppress(FileNotFoundError):
            if self.path.read_text(encoding="utf-8") == self.run:
                self.path.unlink()


def silent(work: Path, path: Path, run: str) -> float:
    """Seconds since the last write to it. By the storage's own clock: those of nodes differ."""
    probe = work / f"now.{run}"
    probe.touch()
    now = probe.stat().st_mtime
    probe.unlink()
    return now - path.lstat().st_mtime


def merge(fresh: Path, target: Path, turn: Turn, marker: dict[str, t.Any]) -> list[str]:
    """Replace what we put there by what is wanted; what others put there stays where it is, and is returned.

    Between any two steps the marker names everything that is ours, so the next run can go on after a power loss.
    """
    draft, old = turn.work / f"marker.{turn.run}", set(marker_of(target).get("names", ()))
    new, present = set(marker["names"]), names_in(target)
    theirs = present - old - {MARKER}
    if found := clashes(theirs, new):
        raise Permanent(f"Others put {some(found)} where this data set has a file or folder of its own. Nothing was changed. Move it away.")
    write_marker(draft, target, {**marker, "key": "", "names": sorted(old | new)})
    # The deepest first. A folder goes when it is empty; what became something else is no longer ours.
    for name in sorted((old - new) & present, key=lambda one: one.count("/"), reverse=True):
        turn.renew()
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            if not name.endswith("/"):
                (target / name).unlink()
    for name in sorted((old - new) & present, key=len, reverse=True):
        if name.endswith("/"):
            with contextlib.suppress(OSError):
                (target / name).rmdir()
    for name in sorted(new):
        turn.renew()
        if name.endswith("/"):
            (target / name).mkdir(exist_ok=True)
        else:
            (fresh / name).replace(target / name)
    write_marker(draft, target, marker)
    return sorted(name for name in theirs if not name.endswith("/"))


# The whole


def publish(root: Path, path: str, fresh: Path, turn: Turn, marker: dict[str, t.Any]) -> list[str]:
    """Publish the data with the marker: by one rename where the folder is new, file by file otherwise. Return what others put there."""
    target = root / path
    # A concurrent fetch may have published meanwhile.
    there = marker_of(target)
    if there.get("key") == marker["key"]:
        return []
    check_folder(root, path, there)
    if target.exists() and any(target.iterdir()):
        return merge(fresh, target, turn, marker)
    write_marker(turn.work / f"marker.{turn.run}", fresh, marker)
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh.rename(target)
    flush(target)
    return []


def take_draft(work: Path, sha256: str, run: str) -> Path:
    """This run's own draft; no two runs ever write to one. What an earlier run left of the same file is gone on with."""
    own = work / f"{sha256[:16]}.{run}.part"
    for left in sorted(work.glob(f"{sha256[:16]}.*part")):
        with contextlib.suppress(FileNotFoundError):  # another run took it first
            if not own.exists() and (left == left_behind(work, sha256) or silent(work, left, run) > _QUIET):
                left.rename(own)
    return own


def left_behind(work: Path, sha256: str) -> Path:
    """Where a run that ends leaves its draft for the next one."""
    return work / f"{sha256[:16]}.part"


def remove_abandoned(folder: Path, run: str) -> None:
    """What runs that never came back have left there, of all data sets of the claim. Only what is called as we call it."""
    for work in (one for one in folder.iterdir() if one.is_dir()):
        for left in list(work.iterdir()):
            with contextlib.suppress(FileNotFoundError):
                if _OURS.fullmatch(left.name) and silent(work, left, run) > _ABANDONED:
                    shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()


def remove_own(work: Path, sha256: str, run: str) -> None:
    """What this run, or an earlier one of its Job, needed on the way."""
    shutil.rmtree(work / f"fresh.{run}", ignore_errors=True)
    Turn(work, run).__exit__()
    for left in (work / f"{sha256[:16]}.{run}.part", left_behind(work, sha256), *work.glob(f"*.{run}")):
        left.unlink(missing_ok=True)


def complete(url: str, part: Path, sha256: str, size: int | None) -> None:
    """Download until the checksum is right. What an earlier run left is no reason to refuse the file."""
    while True:
        resumed = part.exists()
        if not (resumed and digest(part) == sha256):
            download(url, part, size)
        found = digest(part)
        if found == sha256:
            return say("checksum is right")
        part.unlink()
        if not resumed:
            raise Permanent(f"{shown(url)} has the SHA-256 {found}, not {sha256}. Correct the sum, or distrust the file.")
        say("what was there of it does not fit: begins again")


def fetch(root: Path, url: str, sha256: str, path: str, unpack: str = "auto", size: int | None = None) -> dict[str, t.Any]:
    """Have the data below ROOT/PATH; the marker's content, and as `kept` what others put there."""
    target, name = root / path, name_of(url)
    kind = kind_of(name, unpack)
    there = marker_of(target)
    # Pods of one Job come one after the other, so they share their drafts at once.
    run = re.sub(r"[^\w-]", "", os.environ.get("DATASET_RUN", "")) or uuid.uuid4().hex
    work = root / ".muster" / urllib.parse.quote(path, safe="")
    if is_there(there, sha256, kind, name):
        say("is there already")
        remove_own(work, sha256, run)
        return there
    check_folder(root, path, there)
    work.mkdir(parents=True, exist_ok=True)
    remove_abandoned(work.parent, run)
    part, fresh = take_draft(work, sha256, run), work / f"fresh.{run}"
    try:
        complete(url, part, sha256, size)
        marker = {"key": key_of(sha256, kind, name), "url": shown(url), "sha256": sha256, "bytes": _length(part)}
        unpack_into(fresh, part, kind, name, url)
        names = sorted(names_in(fresh))
        marker.update(files=sum(not one.endswith("/") for one in names), names=names)
        with Turn(work, run) as turn:
            kept = publish(root, path, fresh, turn, marker)
        remove_own(work, sha256, run)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            part.rename(left_behind(work, sha256))
    if kept:
        say(f"kept what others put there: {some(kept)}")
    return {**marker, "kept": kept}


def fetch_file(url: str, path: Path, sha256: str = "") -> str:
    """Have the object at PATH, whole, with this sum if one is given, or not at all; the last word."""
    part = path.with_name(f"{path.name}.part")
    if sha256:
        complete(url, part, sha256, None)
    else:
        download(url, part, None)
    part.replace(path)
    return f"{shown(url)}: {_length(path)} bytes"


def fetch_desired(env: t.Mapping[str, str]) -> str:
    """Have the data set that the environment names; the last word."""
    size = env.get("DATASET_SIZE")
    done = fetch(
        Path(env.get("DATASET_ROOT", "/data")), env["DATASET_URL"], env["DATASET_SHA256"], env["DATASET_PATH"],
        env.get("DATASET_UNPACK", "auto"), int(size) if size else None,
    )  # fmt: skip
    kept = f"; kept what others put there: {some(done['kept'])}" if done.get("kept") else ""
    return f"{done['files']} files from {done['bytes']} bytes{kept}"


def _stop(*_signal: object) -> t.NoReturn:
    raise SystemExit(EXIT_TEMPORARY)


def main() -> int:
    """Fetch what arguments or environment name; the last word goes where Kubernetes shows it."""
    # As the first process of a pod it would otherwise go on until it is killed.
    signal.signal(signal.SIGTERM, _stop)
    try:
        word = fetch_file(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:4]) if sys.argv[1:] else fetch_desired(os.environ)
        status = 0
    except Permanent as exc:
        word, status = str(exc), EXIT_PERMANENT
    except (Temporary, OSError) as exc:
        full = isinstance(exc, OSError) and exc.errno == errno.ENOSPC
        word, status = (_FULL, EXIT_PERMANENT) if full else (str(exc), EXIT_TEMPORARY)
    say(word)
    with contextlib.suppress(OSError):
        Path("/dev/termination-log").write_text(word, encoding="utf-8")
    return status


if __name__ == "__main__":
    raise SystemExit(main())

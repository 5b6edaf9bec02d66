# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The program that fetches a data set inside a pod. Its source goes into a ConfigMap, so it imports nothing of ours.

Python 3.9 or newer and its standard library are enough: an image with the SDK of every cloud would be one more thing to keep.

Exit status: 0 done; 65 trying again does not help; 75 it may help.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
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
_NO_RANGES = (
    "The server serves no ranges, so that every attempt begins again: put the file where a download can be resumed."
)
_EMPTY = hashlib.sha256(b"").hexdigest()


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
    request = _request(address, headers)
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
    length = answer.headers.get("Content-Length")
    if answer.status == 206:
        total = answer.headers.get("Content-Range", "").rpartition("/")[2]
        return Answer(answer, offset, int(total) if total.isdigit() else None)
    return Answer(answer, 0, int(length) if length else None)


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
        raise Permanent(
            f"{what} needs {needed} bytes and the claim has {free} free. Make the claim larger, or room on it."
        )


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
            raise Permanent(f"{shown(url)} has {answer.total} bytes, not {size}. Correct dataset_size, or the address.")
        if answer.total is not None:
            check_space(part.parent, answer.total - have, shown(url))
        again = have and not answer.offset
        say(f"resumes at byte {answer.offset}" if answer.offset else f"begins{' again' if again else ''}")
        _copy(answer, part)
    have = _length(part)
    if answer.total is not None and have < answer.total:
        told = f"{shown(url)}: the connection ended at byte {have} of {answer.total}"
        raise Temporary(told + (f". {_NO_RANGES}" if again else ""))


def _copy(answer: Answer, part: Path) -> None:
    done, told = answer.offset, time.monotonic()
    with part.open("r+b" if answer.offset else "wb") as out:
        if answer.offset:
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
        full = isinstance(exc, OSError) and exc.errno == errno.ENOSPC
        word, status = (_FULL, EXIT_PERMANENT) if full else (str(exc), EXIT_TEMPORARY)
    say(word)
    with contextlib.suppress(OSError):
        Path("/dev/termination-log").write_text(word, encoding="utf-8")
    return status


if __name__ == "__main__":
    raise SystemExit(main())

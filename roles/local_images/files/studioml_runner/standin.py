# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for StudioML's runner (leaf-ai/studio-go-runner), where its image cannot be had. None of its code is in here.

It holds the same contract: variables, mounts, queues, messages, metrics, lines of the log, the ConfigMap with its state. Lines that
upstream writes are those that it wrote, with the values of now: they are read from a recording (recorded.json beside it, or
MUSTER_RECORDED). LOGXI decides which of them are written. Lines that begin with "stand-in:" are its own. What differs:

- One experiment at a time, without GPUs and without a cache.
- An experiment runs with the Python and the packages of the image. What it lists in ``pythonenv`` is not installed, and that is logged.
- It does not get the broker's address in its environment.
- One that ends with an error is answered and given back, and begun again, as 0.14.2 does (scene "failed" of its recording).
- While it is drained, it takes nothing from queues that it knows already, either.
- Bindings of other vhosts than its own are left alone.
- Reports are sent to the default exchange, with the name of the response queue as key. They are sealed like requests if there is a key.
- MUSTER_POLL_SECONDS is the number of seconds between two tries to take work (5).

Nothing is shared with the collection's own code for messages: a program of an image is one file, and a second reading of the format shows
mistakes of the first. Needs python3-pika, python3-cryptography, python3-nacl and python3-boto3.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import datetime as dt
import functools
import hashlib
import http.server
import json
import os
import random
import re
import secrets
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import typing as t
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

EXCHANGE, KEY_PREFIX = "StudioML.topic", "StudioML."
RUNNING = "Running"
LEVELS = ("TRC", "DBG", "INF", "WRN", "ERR")
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
PLACEHOLDER = "info"
ALGORITHM = b"ssh-ed25519"
PATIENCE = 10.0
# Seconds, in which a large result can be stored while nobody answers the broker.
HEARTBEAT = 600
# Looks that a queue is left alone after a refusal that may pass.
BACKOFF = 10
LONGEST = 96 * 3600.0
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class Refused(Exception):
    """Why an experiment is not run. ``hard``: trying again would not help."""

    def __init__(self, reason: str, *, hard: bool = False) -> None:
        super().__init__(reason)
        self.hard = hard


class Interrupted(Exception):
    """The broker is gone, and gives the message to the next who asks."""


# The log


def log(text: str, **fields: object) -> None:
    """Write a line of the stand-in's own."""
    told = " ".join(f"{name} {value}" for name, value in fields.items())
    written(f"{moment()} WRN stand-in: {text} [{told}]")


def moment() -> str:
    """Now, as upstream's logger writes it."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S+0000")


def written(line: str) -> None:
    """Write a line to standard error at once."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


@functools.cache
def recording(path: str) -> dict[str, t.Any]:
    """What a real runner wrote, by scene."""
    return t.cast("dict[str, t.Any]", json.loads(Path(path).read_text(encoding="utf-8"))["scenes"])


def replayed(scene: str, words: str, error: str = "", **fields: object) -> str:
    """The first line of a scene with WORDS, with the time, the host and the values of now. ``error`` is what stands before the stack."""
    scenes = recording(setting("MUSTER_RECORDED", str(Path(__file__).with_name("recorded.json"))))
    line = next(line for line in scenes[scene]["log"] if f" runner {words}" in line)
    line = re.sub(r"^\S+", moment(), line)
    if error:
        line = re.sub(
            r"(?<=error: ).*?(?= stack=)|(?<=_: \[error ).*?(?= stack=)|(?<=_: \[)(?!\[|error ).*?(?= stack=)",
            lambda _found: error,
            line,
            count=1,
        )
    for name, value in {**fields, "host": socket.gethostname()}.items():
        # The last one: an address before it may have the same word.
        found = list(re.finditer(rf"(?<=[ \[]){name}:? ([^ \]]*)", line))[-1]
        line = f"{line[: found.start(1)]}{value}{line[found.end(1) :]}"
    return line


def say(scene: str, words: str, error: str = "", **fields: object) -> None:
    """Write a line of upstream's, if LOGXI asks for its level."""
    line = replayed(scene, words, error, **fields)
    least = setting("LOGXI", "*=INF").rpartition("=")[2]
    if LEVELS.index(line.split(" ")[1]) >= LEVELS.index(least):
        written(line)


# Settings


def setting(name: str, default: str = "") -> str:
    """Return a variable; an empty one counts as missing."""
    return os.environ.get(name) or default


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the environment says."""

    user: str
    password: str = dataclasses.field(repr=False)
    host: str
    port: int
    vhost: str
    tls: bool
    management: str
    poll: float = dataclasses.field(default_factory=lambda: float(setting("MUSTER_POLL_SECONDS", "5")))
    match: re.Pattern[str] = dataclasses.field(default_factory=lambda: re.compile(setting("QUEUE_MATCH", "^(rmq|sqs)_.*$")))
    mismatch: str = dataclasses.field(default_factory=lambda: setting("QUEUE_MISMATCH"))
    keys: Path = dataclasses.field(default_factory=lambda: Path(setting("ENCRYPT_DIR", "./certs/message")))
    signers: Path = dataclasses.field(default_factory=lambda: Path(setting("REQUEST_SIGNATURES_DIR", "./certs/queues/signing")))
    readers: Path = dataclasses.field(default_factory=lambda: Path(setting("RESPONSE_SIGNATURES_DIR", "./certs/queues/response-encrypt")))
    clear_text: bool = dataclasses.field(default_factory=lambda: setting("CLEAR_TEXT_MESSAGES") == "true")
    env_secrets: bool = dataclasses.field(default_factory=lambda: setting("ALLOW_ENV_SECRETS") == "true")

    @property
    def identity(self) -> str:
        """The broker, without user and password."""
        return f"{'amqps' if self.tls else 'amqp'}://{self.host}:{self.port}/{urllib.parse.quote(self.vhost, safe='')}"


def settings() -> Settings:
    """Read the environment. With AMQP_MGT_URL user and password are those that it has (cmd/runner/rabbit.go, line 57)."""
    check_settings()
    url = urllib.parse.urlsplit(os.path.expandvars(setting("AMQP_URL")))
    other = urllib.parse.urlsplit(os.path.expandvars(setting("AMQP_MGT_URL")))
    login = other if other.netloc else url
    if not login.username or not login.password:
        raise SystemExit(
            "Username password missing or malformed; upstream ends with an invalid memory address (internal/runner/rmq.go:169)"
        )
    tls = url.scheme == "amqps"
    port = url.port or (5671 if tls else 5672)
    derived = f"{'https' if tls else 'http'}://{url.hostname}:{port + 10_000}"
    vhost = urllib.parse.unquote(url.path.removeprefix("/")) or "/"
    management = f"{other.scheme}://{other.netloc.rpartition('@')[2]}" if other.netloc else derived
    return Settings(login.username, login.password, url.hostname or "", port, vhost, tls, management)


# Limits, with file and line of leaf-ai/studio-go-runner at 0.14.2

GIBIBYTE = 1024**3
"""CACHE_SIZE must not be less (cmd/runner/cache.go:49)."""
STORE_CA_MAX = 128 * 1024
"""Bytes of the file S3_CA (internal/s3/s3.go:139)."""
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgtpe]?)(i?)b?\s*", re.IGNORECASE)


def size(text: object) -> int:
    """A size as go-humanize reads it. An empty one is an error, too: ``ram`` and ``hdd`` must be there (cmd/runner/resource.go:45, 48)."""
    found = _SIZE.fullmatch(str(text or ""))
    if not found:
        raise Refused(f'strconv.ParseFloat: parsing "{text or ""}": invalid syntax')
    base = 1024 if found[3] else 1000
    return int(float(found[1]) * base ** " kmgtpe".index(found[2].lower() or " "))


def check_settings() -> None:
    """End as the runner does at its start."""
    if size(setting("CACHE_SIZE", "1gib")) < GIBIBYTE:
        raise SystemExit("option cache-size was ignored, too small to be useful, less than 1Gb (cmd/runner/cache.go:50)")


def store_authorities() -> str | None:
    """The path of the authorities of stores; refused again for each artifact where the file cannot be used."""
    path = setting("S3_CA")
    if not path:
        return None
    try:
        length = Path(path).stat().st_size
    except OSError:
        raise Refused("unable to read a PEM, or Certificate file from disk for S3 security (internal/s3/s3.go:137)") from None
    if length > STORE_CA_MAX:
        raise Refused("the PEM, or Certificate file is suspicously large, too large to be a PEM file (internal/s3/s3.go:140)")
    if not length:
        raise Refused("PEM, or Certificate file was empty, PEM data is needed when the file name is specified (internal/s3/s3.go:147)")
    return path


# Messages


def read_key(folder: Path) -> t.Any:
    """The private key that opens requests, as the mounts have it."""
    from cryptography.hazmat.primitives import serialization

    try:
        pem = (folder / "encryption" / "ssh-privatekey").read_bytes()
        passphrase = (folder / "passphrase" / "ssh-passphrase").read_bytes()
        (folder / "encryption" / "ssh-publickey").read_bytes()
    except OSError as error:
        raise Refused(f"{error.filename} cannot be read") from None
    if not pem.startswith(b"-----BEGIN RSA PRIVATE KEY-----"):
        raise Refused("ssh-privatekey is not of the type RSA PRIVATE KEY")
    try:
        return serialization.load_pem_private_key(pem, passphrase)
    except (ValueError, TypeError):
        raise Refused("ssh-privatekey cannot be decrypted with ssh-passphrase") from None


def request_of(body: bytes, queue: str, where: Settings, key: t.Any) -> dict[str, t.Any]:
    """The request in a message, in upstream's order: envelope, signature, payload."""
    found = parsed(body)
    message = found.get("message") if isinstance(found, dict) else None
    if not isinstance(message, dict) or not isinstance(message.get("payload"), str):
        if not where.clear_text:
            raise Refused("unencrypted messages not enabled: the message has no payload", hard=True)
        plain = found
    else:
        check_signature(message, queue, where.signers)
        plain = parsed(unsealed(message["payload"], key))
    if not isinstance(plain, dict) or not isinstance(plain.get("experiment"), dict):
        raise Refused("the message is not a request", hard=True)
    return t.cast("dict[str, t.Any]", plain)


def parsed(text: bytes) -> t.Any:
    """JSON, or None."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def of_prefix(folder: Path, queue: str) -> tuple[str, bytes] | None:
    """The longest prefix of a queue's name that has a file, and what is in it."""
    names = [path.name for path in folder.glob("[!.]*") if path.is_file() and path.name != PLACEHOLDER]
    fitting = [name for name in names if queue.startswith(name)]
    if not fitting:
        return None
    prefix = max(fitting, key=len)
    return prefix, (folder / prefix).read_bytes()


def check_signature(message: t.Mapping[str, t.Any], queue: str, folder: Path) -> None:
    """Raise if the payload was not signed with the key of its queue."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import serialization

    for name in ("signature", "fingerprint"):
        if not message.get(name):
            raise Refused(f"encrypted payload has no {name}")
    signer = of_prefix(folder, queue)
    if signer is None:
        raise Refused(f"no key is known for signatures of queue {queue}")
    prefix, text = signer
    try:
        public: t.Any = serialization.load_ssh_public_key(text.splitlines()[0])
        raw = base64.b64decode(str(message["signature"]), validate=True)
        # Either as SSH writes it, with its name and both lengths, or the 64 bytes alone.
        head = b"".join(len(part).to_bytes(4, "big") + part for part in (ALGORITHM,)) + (64).to_bytes(4, "big")
        public.verify(raw.removeprefix(head), str(message["payload"]).encode())
    except (ValueError, IndexError, InvalidSignature):
        raise Refused(f"the signature is not by the key of {prefix}, with which requests of queue {queue} are checked") from None


def oaep() -> t.Any:
    """The padding of sealed keys."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    return padding.OAEP(mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=None)


def unsealed(payload: str, key: t.Any) -> bytes:
    """What is in a payload: a key sealed for us, a comma, and a box that it opens."""
    import nacl.exceptions
    import nacl.secret

    try:
        sealed, box = (base64.b64decode(part, validate=True) for part in payload.split(","))
    except ValueError:
        raise Refused("the payload is not a key and a box in base64", hard=True) from None
    try:
        opener = nacl.secret.SecretBox(key.decrypt(sealed, oaep()))
    except ValueError:
        raise Refused("the payload was encrypted for another key", hard=True) from None
    try:
        return bytes(opener.decrypt(box))
    except (nacl.exceptions.CryptoError, ValueError):
        raise Refused("the payload was changed after it was encrypted", hard=True) from None


def sealed_for(text: bytes, pem: bytes) -> bytes:
    """A report that only the owner of a public key can read."""
    import nacl.secret
    from cryptography.hazmat.primitives import serialization

    public: t.Any = serialization.load_pem_public_key(pem)
    key = secrets.token_bytes(32)
    parts = (public.encrypt(key, oaep()), bytes(nacl.secret.SecretBox(key).encrypt(text)))
    return b",".join(base64.b64encode(part) for part in parts)


# Metrics


class Metrics:
    """Counters and gauges by name and labels, served as Prometheus reads them."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        self._lock = threading.Lock()

    def add(self, name: str, amount: float = 1, /, **labels: str) -> None:
        """Count."""
        key = (name, tuple(sorted({"host": socket.gethostname(), **labels}.items())))
        with self._lock:
            self._values[key] = self._values.get(key, 0) + amount

    def text(self) -> str:
        """All of them."""
        with self._lock:
            rows = sorted(self._values.items())
        lines = []
        for (name, labels), value in rows:
            told = ",".join(f'{key}="{escaped(text)}"' for key, text in labels)
            lines.append(f"{name}{{{told}}} {value:g}\n")
        return "".join(lines)

    def serve(self, address: str) -> None:
        """Answer at PROM_ADDRESS, which may lack the host."""
        metrics = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = metrics.text().encode()
                self.send_response(200 if self.path == "/metrics" else 404)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_args: object) -> None:
                """Nothing: it is asked every few seconds."""

        host, _colon, port = address.rpartition(":")
        server = http.server.ThreadingHTTPServer((host, int(port)), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()


def escaped(text: str) -> str:
    """As a label's value is written."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


# State


class RunnerState:
    """What the ConfigMap of all runners, and the one of this pod, say: the one that changed last."""

    def __init__(self) -> None:
        self.current = RUNNING
        self._seen: dict[str, str] = {}
        self._told = False

    def refresh(self) -> str:
        """Read both; the state as it is now."""
        host, port = setting("KUBERNETES_SERVICE_HOST"), setting("KUBERNETES_SERVICE_PORT", "443")
        if not host or not (ACCOUNT / "token").exists():
            if not self._told:
                log("this is no pod of a cluster, so its ConfigMaps are not read")
            self._told = True
            return self.current
        host = f"[{host}]" if ":" in host else host
        folder = f"https://{host}:{port}/api/v1/namespaces/{setting('K8S_NAMESPACE', 'default')}/configmaps"
        for name in (setting("K8S_CONFIGMAP", "studioml-go-runner"), setting("HOSTNAME")):
            said = self._said(f"{folder}/{name}") if name else ""
            if said and said != self._seen.get(name):
                self._seen[name] = self.current = said
                log(f"server state is {said}")
        return self.current

    def _said(self, address: str) -> str:
        headers = {"Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}"}
        request = urllib.request.Request(address, headers=headers)  # noqa: S310 - https, by the caller
        trust = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ACCOUNT / "ca.crt"))
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), trust)
        try:
            with opener.open(request, timeout=PATIENCE) as answer:
                return str((json.load(answer).get("data") or {}).get("STATE", ""))
        except urllib.error.HTTPError as error:
            if error.code != 404:
                log(f"the state cannot be read: {error.code} {error.reason}")
        except (OSError, ValueError) as error:
            log(f"the state cannot be read: {error}")
        return ""


# Broker


def ask_management(where: Settings, *path: str) -> t.Any:
    """An answer of the management API; None if it has no such object."""
    words = "/".join(urllib.parse.quote(word, safe="") for word in path)
    login = base64.b64encode(f"{where.user}:{where.password}".encode()).decode()
    headers = {"Authorization": f"Basic {login}"}
    request = urllib.request.Request(f"{where.management}/api/{words}", headers=headers)  # noqa: S310 - of the broker
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=PATIENCE) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise Interrupted(f"Error: API responded with a {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise Interrupted(cause_of(error.reason)) from None
    except (OSError, ValueError) as error:
        raise Interrupted(cause_of(error)) from None


def cause_of(error: object) -> str:
    """In the words of Go, as they are recorded."""
    if isinstance(error, ConnectionRefusedError):
        return "connect: connection refused"
    if isinstance(error, socket.gaierror):
        return "no such host"
    if isinstance(error, TimeoutError):
        return "i/o timeout"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"tls: failed to verify certificate: x509: certificate signed by unknown authority ({error.verify_message})"
    return type(error).__name__


def queues(where: Settings) -> list[str]:
    """The queues that are bound to the exchange and have a name that is taken."""
    names = {
        str(row["destination"])
        for row in ask_management(where, "bindings") or []
        if (row.get("source"), row.get("vhost"), row.get("destination_type")) == (EXCHANGE, where.vhost, "queue")
        and str(row.get("routing_key", "")).startswith(KEY_PREFIX)
    }
    left_out = re.compile(where.mismatch) if where.mismatch else None
    return sorted(name for name in names if where.match.search(name) and not (left_out and left_out.search(name)))


@contextlib.contextmanager
def connected(where: Settings) -> t.Iterator[tuple[t.Any, t.Any]]:
    """A connection to the broker and a channel on it."""
    import pika
    import pika.exceptions

    options = pika.SSLOptions(ssl.create_default_context(), where.host) if where.tls else None
    parameters = pika.ConnectionParameters(
        where.host, where.port, where.vhost, pika.PlainCredentials(where.user, where.password),
        heartbeat=HEARTBEAT, ssl_options=options, socket_timeout=PATIENCE, blocked_connection_timeout=PATIENCE,
    )  # fmt: skip
    try:
        connection = pika.BlockingConnection(parameters)
        try:
            channel = connection.channel()
            channel.exchange_declare(EXCHANGE, "topic", durable=True, auto_delete=True)
            yield connection, channel
        finally:
            with contextlib.suppress(pika.exceptions.AMQPError):
                connection.close()
    except (pika.exceptions.AMQPError, OSError) as error:
        raise Interrupted(f"the connection to the broker is lost: {type(error).__name__}") from None


# Storage


@dataclasses.dataclass(frozen=True)
class Artifact:
    """Where an artifact is stored."""

    group: str
    endpoint: str
    bucket: str
    key: str
    mutable: bool
    unpack: bool
    credentials: tuple[str, str] = dataclasses.field(repr=False)
    region: str = "us-east-1"
    authorities: str | None = None

    def client(self) -> t.Any:
        """A client of the store."""
        import boto3
        import botocore.config

        retries = {"max_attempts": 3, "mode": "standard"}
        style = botocore.config.Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries=retries, connect_timeout=PATIENCE)
        return boto3.client(
            "s3", endpoint_url=self.endpoint, verify=self.authorities, aws_access_key_id=self.credentials[0],
            aws_secret_access_key=self.credentials[1], region_name=self.region, config=style,
        )  # fmt: skip


def places(request: t.Mapping[str, t.Any], *, env_secrets: bool) -> list[Artifact]:
    """The artifacts of a request that are stored somewhere."""
    config, found, authorities = request.get("config") or {}, [], store_authorities()
    env = config.get("env") or {}
    for name in ("ram", "hdd"):
        size((request["experiment"].get("resources_needed") or {}).get(name))
    for group, row in sorted((request["experiment"].get("artifacts") or {}).items()):
        qualified = urllib.parse.urlsplit(str(row.get("qualified") or ""))
        if not qualified.netloc:
            continue
        bucket, _slash, key = qualified.path.removeprefix("/").partition("/")
        aws = (row.get("credentials") or {}).get("aws") or {}
        # The client writes secret_access_key; upstream's documents have both.
        pair = (str(aws.get("access_key", "")), str(aws.get("secret_access_key") or aws.get("secret_key", "")))
        if not pair[0] and env_secrets:
            pair = (str(env.get("AWS_ACCESS_KEY_ID", "")), str(env.get("AWS_SECRET_ACCESS_KEY", "")))
        if not pair[0]:
            raise Refused(f"artifact {group} has no credentials for its storage", hard=True)
        # TLS is for AWS, and for every store if there are authorities (internal/s3/s3.go:106 and 149).
        scheme = "https" if authorities or (qualified.hostname or "").endswith(".amazonaws.com") else "http"
        place = Artifact(
            group, f"{scheme}://{qualified.netloc}", str(row.get("bucket") or bucket), str(row.get("key") or key),
            bool(row.get("mutable")), bool(row.get("unpack")), pair, str(env.get("AWS_DEFAULT_REGION") or "us-west-1"), authorities,
        )  # fmt: skip
        found.append(place)
    return found


@contextlib.contextmanager
def stored(place: Artifact, doing: str) -> t.Iterator[None]:
    """Say what the store answered."""
    import botocore.exceptions

    try:
        yield
    except botocore.exceptions.ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        raise Refused(f"{doing} {place.bucket}/{place.key} of {place.endpoint} failed: {code} (status {status})") from None
    except botocore.exceptions.BotoCoreError as error:
        raise Refused(f"{doing} {place.bucket}/{place.key} of {place.endpoint} failed: {type(error).__name__}") from None


def check_bucket(place: Artifact) -> None:
    """Raise before an experiment whose result could not be stored."""
    import botocore.exceptions

    with stored(place, "checking the bucket of"):
        try:
            place.client().head_bucket(Bucket=place.bucket)
        except botocore.exceptions.ClientError as error:
            if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 404:
                raise Refused(f"bucket {place.bucket} of {place.endpoint} does not exist") from None
            raise


def fetch(place: Artifact, folder: Path) -> None:
    """Have an artifact in FOLDER. A mutable one may not be there yet."""
    import botocore.exceptions

    target = folder / place.group
    with tempfile.TemporaryFile() as file, stored(place, "fetching"):
        try:
            place.client().download_fileobj(place.bucket, place.key, file)
        except botocore.exceptions.ClientError as error:
            if place.mutable and error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 404:
                return
            raise
        file.seek(0)
        target.mkdir(parents=True, exist_ok=True)
        if not place.unpack:
            with (target / Path(place.key).name).open("wb") as copy:
                shutil.copyfileobj(file, copy)
            return
        try:
            with tarfile.open(fileobj=file) as tar:
                unpack(tar, target, place.group)
        except tarfile.TarError as error:
            raise Refused(f"artifact {place.group} is not a tar file: {type(error).__name__}", hard=True) from None


def unpack(tar: tarfile.TarFile, target: Path, group: str) -> None:
    """Files and folders only, and none beside the target: Debian 12's Python has no filter for that."""
    for member in tar.getmembers():
        inside = (target / member.name).resolve().is_relative_to(target.resolve())
        if not inside or not (member.isfile() or member.isdir()):
            raise Refused(f"artifact {group} has {member.name!r}, which is no plain file or folder below it", hard=True)
        member.mode &= 0o755
    tar.extractall(target)  # noqa: S202 - every member was checked


def upload(place: Artifact, folder: Path) -> None:
    """Store what is in a folder, as one tar file."""
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w") as tar:
            for path in sorted((folder / place.group).iterdir()):
                tar.add(path, arcname=path.name)
        file.seek(0)
        with stored(place, "storing"):
            place.client().upload_fileobj(file, place.bucket, place.key)


# Experiments


def seconds(duration: object) -> float | None:
    """A duration such as 1h30m; None if there is none."""
    parts = _DURATION.findall(str(duration or ""))
    return sum(float(number) * _UNITS[unit] for number, unit in parts) if parts else None


def time_limit(request: t.Mapping[str, t.Any], now: float) -> float:
    """Seconds that an experiment may take: its own limit, and what is left of its life."""
    experiment, limits = request["experiment"], [LONGEST]
    lifetime, added = seconds((request.get("config") or {}).get("experimentLifetime")), experiment.get("time_added")
    if lifetime is not None and isinstance(added, int | float) and added > 10:
        limits.append(added + lifetime - now)
    if (most := seconds(experiment.get("max_duration"))) is not None:
        limits.append(most)
    return min(limits)


def start(request: t.Mapping[str, t.Any], folder: Path, output: t.IO[bytes]) -> subprocess.Popen[bytes]:
    """Begin an experiment in its folder, with its variables."""
    experiment, config = request["experiment"], request.get("config") or {}
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    own = {name: value for name, value in os.environ.items() if not name.startswith("AMQP_")}
    own |= {str(name): str(value) for name, value in (config.get("env") or {}).items()}
    own |= {"STUDIOML_EXPERIMENT": str(experiment.get("key", "")), "STUDIOML_HOME": str(folder), "PYTHONUNBUFFERED": "1"}
    if setting("CPU_ONLY") == "true":
        own |= {"CUDA_VISIBLE_DEVICES": "-1", "NVIDIA_VISIBLE_DEVICES": "-1"}
    missing = [name for name in experiment.get("pythonenv") or [] if not str(name).startswith("studioml")]
    if missing:
        log("the packages of pythonenv are not installed", packages=" ".join(map(str, missing)))
    # Upstream writes them into a script: quotes are a shell's.
    line = " ".join([str(experiment.get("filename", "")), *map(str, experiment.get("args") or [])])
    try:
        words = [sys.executable, *shlex.split(line)]
    except ValueError as error:
        raise Refused(f"the arguments cannot be read as a shell does: {error}", hard=True) from None
    return subprocess.Popen(
        words, cwd=workspace, env=own, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
    )


def ending(returncode: int) -> str:
    """What stands at the end of an output."""
    if returncode == 0:
        return json.dumps({"studioml": {"stop_time": dt.datetime.now().astimezone().isoformat()}}) + "\n"
    aborted = "The execution was aborted because a command exited with an error status code."
    return f"{aborted}\nfailed when downloading user data\nexit status {returncode}\n"


def leave(stores: t.Sequence[Artifact], folder: Path, text: str) -> None:
    """Store the reason why an experiment did not begin, if that can be stored."""
    for place in stores:
        if place.group == "output":
            (folder / "output").mkdir(exist_ok=True)
            (folder / "output" / "output").write_text(text, encoding="utf-8")
            with contextlib.suppress(Refused):
                upload(place, folder)


class Runner:
    """Takes one experiment after the other."""

    def __init__(self, where: Settings) -> None:
        self.where = where
        self.metrics = Metrics()
        self.state = RunnerState()
        self.key: t.Any = None
        self.rested: dict[str, float] = {}
        self.work = Path(setting("WORKING_DIR") or setting("TMPDIR", "/tmp")) / "gorun_standin"  # noqa: S108  # as upstream

    def look(self) -> None:
        """One look for work, if the state and the keys allow it."""
        identity = self.where.identity
        if self.state.refresh() != RUNNING:
            self.metrics.add("runner_queue_ignored", queue_type="rabbitMQ", queue_name="*")
            return
        try:
            found = queues(self.where)
        except Interrupted as error:
            say("refused", "unable to refresh RMQ manifest", str(error))
            return
        if not found:
            say("idle", "no queues", identity=identity, matcher=self.where.match.pattern)
            return
        self.metrics.add("runner_queue_refresh_success", project=identity)
        self.metrics.add("runner_queue_checked", queue_type="rabbitMQ", queue_name=identity)
        if self.key is None:
            try:
                self.key = read_key(self.where.keys)
            except Refused as error:
                say("no_keys_in_a_pod", "unable to load message encryption secrets", error=str(error))
                return
            say("idle", "wrapper secrets loaded")
        random.shuffle(found)
        try:
            with connected(self.where) as (connection, channel):
                for queue in found:
                    self.take(connection, channel, queue)
        except Interrupted as error:
            log(f"{error}", identity=identity)

    def take(self, connection: t.Any, channel: t.Any, queue: str) -> None:
        """Run the next experiment of a queue, and acknowledge it when its result is stored."""
        if time.monotonic() < self.rested.get(queue, 0) or self.state.refresh() != RUNNING:
            return
        method, _properties, body = channel.basic_get(queue)
        if method is None:
            return
        if method.redelivered:
            log("an experiment that was begun before is run again", queue=queue)
        try:
            request = request_of(body, queue, self.where, self.key)
            stores = places(request, env_secrets=self.where.env_secrets)
            for place in stores:
                if place.mutable:
                    check_bucket(place)
            with self.counted(queue, request):
                ended = self.handle(connection, channel, queue, request, stores)
            if ended:
                channel.basic_nack(method.delivery_tag, requeue=True)
            else:
                channel.basic_ack(method.delivery_tag)
        except (Refused, OSError) as error:
            hard = isinstance(error, Refused) and error.hard
            scene = "dumped" if hard else "retried"
            say(scene, "backing off, receive failed", str(error), project_id=self.where.identity, subscription_id=f"%2F?{queue}")
            if hard:
                channel.basic_ack(method.delivery_tag)
            else:
                self.rested[queue] = time.monotonic() + BACKOFF * self.where.poll
                channel.basic_nack(method.delivery_tag, requeue=True)

    @contextlib.contextmanager
    def counted(self, queue: str, request: t.Mapping[str, t.Any]) -> t.Iterator[None]:
        """Show that an experiment runs, until it is acknowledged."""
        name, database = str(request["experiment"].get("key", "")), (request.get("config") or {}).get("database") or {}
        project = str(database.get("projectId") or "")
        labels = {"queue_type": "rmq", "queue_name": queue, "project": project, "experiment": name}
        self.metrics.add("runner_project_running", **labels)
        told = {"experiment_id": name, "project_id": project, "subscription": f"%2F?{queue}"}
        say("finished", "experiment started", **told)
        try:
            yield
        finally:
            self.metrics.add("runner_project_running", -1, **labels)
            self.metrics.add("runner_project_completed", **labels)
            say("finished", "experiment completed", **told)

    def handle(self, connection: t.Any, channel: t.Any, queue: str, request: t.Mapping[str, t.Any], stores: t.Sequence[Artifact]) -> int:
        """Run in a folder of its own, store, answer; the exit status."""
        name = str(request["experiment"].get("key", ""))
        self.report(channel, queue, name, "start", {})
        self.work.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.", dir=self.work))
        try:
            ended = self.run(connection, request, stores, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        said = {"success": "True"} if ended == 0 else {"success": "False", "error": f"exit status {ended}"}
        self.report(channel, queue, name, "stop", said)
        return ended

    def run(self, connection: t.Any, request: t.Mapping[str, t.Any], stores: t.Sequence[Artifact], folder: Path) -> int:
        """Run an experiment in FOLDER, and store what it made. The broker is answered meanwhile."""
        try:
            for place in stores:
                fetch(place, folder)
        except Refused as error:
            leave(stores, folder, f"failed when downloading user data\n{error}")
            raise
        limit = time_limit(request, time.time())
        if limit <= 0:
            raise Refused("the experiment's life time is over", hard=True)
        output = folder / "output"
        output.mkdir(exist_ok=True)
        with (output / "output").open("wb") as file:
            told = {"experiment": {"key": request["experiment"].get("key"), "project": request["experiment"].get("project")}}
            for row in (told, {"host": socket.gethostname()}, {"start_time": dt.datetime.now().astimezone().isoformat()}):
                file.write(json.dumps({"studioml": row}).encode() + b"\n")
            file.flush()
            say("finished", "run starting", experiment_id=str(request["experiment"].get("key", "")))
            child = start(request, folder, file)
            pause = seconds((request.get("config") or {}).get("saveWorkspaceFrequency")) or 0.0
            pause = pause if 120 < pause < 43200 else 36000.0
            stored = time.monotonic()
            deadline = stored + limit
            try:
                while child.poll() is None and time.monotonic() < deadline:
                    connection.process_data_events(time_limit=0.2)
                    if time.monotonic() - stored >= pause:
                        self.store(stores, folder)
                        stored = time.monotonic()
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
            file.seek(0, os.SEEK_END)
            file.write(ending(child.returncode).encode())
        self.store(stores, folder)
        return child.returncode

    @staticmethod
    def store(stores: t.Sequence[Artifact], folder: Path) -> None:
        """Store what an experiment has made until now."""
        for place in stores:
            if place.mutable and (folder / place.group).is_dir() and any((folder / place.group).iterdir()):
                upload(place, folder)

    def report(self, channel: t.Any, queue: str, experiment: str, word: str, fields: t.Mapping[str, str]) -> None:
        """Answer on the response queue, if there is one."""
        response = f"{queue}_response"
        try:
            if ask_management(self.where, "queues", self.where.vhost, response) is None:
                return
        except Interrupted as error:
            log("the response queue is not answered", queue=response, error=error)
            return
        body = report_text(experiment, word, fields).encode()
        reader = of_prefix(self.where.readers, queue)
        channel.basic_publish("", response, sealed_for(body, reader[1]) if reader else body)

    def forever(self) -> t.NoReturn:
        """Look for work again and again."""
        self.metrics.serve(setting("PROM_ADDRESS", ":9090"))
        while True:
            self.look()
            time.sleep(self.where.poll)


def report_text(experiment: str, word: str, fields: t.Mapping[str, str]) -> str:
    """A report in the text form of upstream's proto/reports.proto."""
    now = time.time()
    moment = f"{{ seconds: {int(now)} nanos: {int(now % 1 * 1e9)} }}"
    more = " ".join(f"fields {{ key: {json.dumps(name)} value: {json.dumps(value)} }}" for name, value in fields.items())
    return (
        f"time {moment} experiment_id {{ value: {json.dumps(experiment)} }} unique_id {{ value: {json.dumps(secrets.token_hex(8))} }} "
        f"executor_id {{ value: {json.dumps(socket.gethostname())} }} "
        f"logging {{ time {moment} severity: Info message {{ value: {json.dumps(word)} }} {more} }}"
    )


def main() -> None:
    """Run until killed: like upstream's, this program does not end at SIGTERM."""
    # A function, and not SIG_IGN, which experiments would inherit.
    signal.signal(signal.SIGTERM, lambda *_signal: log("SIGTERM is ignored"))
    log("for studio-go-runner 0.14, and none of its code")
    say("idle", "version")
    Runner(settings()).forever()


if __name__ == "__main__":
    main()

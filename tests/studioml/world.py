# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in in the root file system of its image, an object store that others wrote, and an API server with one ConfigMap."""

import base64
import contextlib
import io
import itertools
import os
import re
import secrets
import signal
import socket
import subprocess
import tarfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import botocore.config
import pytest
from faults.proxy import certificates
from rabbitmq.server import FIRST_PASSWORD, FIRST_USER, HOST, Broker, debian_root, free_ports
from support.places import ROOT, cache_home
from support.reading import load

from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._kube.made_once import to_be_dropped
from ansible_collections.muster.ml.plugins.module_utils._local.gobuild import GoBuild, architecture, ensure
from ansible_collections.muster.ml.plugins.module_utils._local.host import wait_until
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import keys, message
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml.runner_metrics import RunnerView, view
from ansible_collections.muster.ml.tests.unit.fakes.served import Answering, Served

PROGRAM = ROOT / "roles" / "local_images" / "files" / "studioml_runner" / "standin.py"
RECORDED = ROOT / "roles" / "local_images" / "files" / "studioml_runner" / "0.14.2.json"
FOLDERS = ["dev", "proc", "tmp", "runner", "etc/studioml", "var/run/secrets/kubernetes.io/serviceaccount"]
# Its mounts, as a pod has them.
_ENTER = """
set -e
mount --rbind /dev "$0/dev"
mount --rbind /proc "$0/proc"
mount --bind "$1/tmp" "$0/tmp"
mount --bind "$1/runner" "$0/runner"
mount --bind "$1/ca" "$0/etc/studioml"
mount --bind "$1/account" "$0/var/run/secrets/kubernetes.io/serviceaccount"
shift
exec chroot "$0" "$@"
"""
WITHIN_S = 300.0
PASSWORD, PHRASE = (f"canary-{secrets.token_hex(12)}" for _name in range(2))
SECRETS = {"password": PASSWORD, "passphrase": PHRASE}
EXCHANGE = "StudioML.topic"
ON_ONE = pytest.mark.parametrize("shared", ["trixie"], indirect=True, scope="session")
"""For tests that do not depend on the version of RabbitMQ."""
TRAINING = """
import json, os, sys, time
print(json.dumps({"experiment": {"arguments": sys.argv[1:], "loss": 0.25}}))
print("CUDA", os.environ["CUDA_VISIBLE_DEVICES"], "of team", os.environ["TEAM"], sorted(n for n in os.environ if "AMQP" in n))
while os.path.exists("/tmp/wait"):
    time.sleep(0.05)
"""
S3_ROOT = "owner"


def standin_root() -> Path:
    """With the packages of the image's recipe."""
    recipe = load(ROOT / "roles" / "local_images" / "vars" / "main.yml")["__local_images_studioml"]
    packages = re.search(r"'packages': \[(.*?)\]", recipe, re.DOTALL)
    assert packages
    found = debian_root("studioml", "bookworm", re.findall(r"'([^']+)'", packages[1]), FOLDERS)
    for name in FOLDERS:  # it may be older than one of them
        (found / name).mkdir(parents=True, exist_ok=True)
    return found


@dataclass
class Standin:
    """One that can be started and killed."""

    folder: Path
    settings: dict[str, str]
    root: Path
    port: int = field(default_factory=lambda: free_ports(1)[0])
    _process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8")

    @property
    def view(self) -> RunnerView:
        """As module studioml_runner reads it."""
        return view("pod", self.metrics(), self.log)

    def metrics(self) -> str:
        with urllib.request.urlopen(f"http://{HOST}:{self.port}/metrics", timeout=60) as answer:
            return str(answer.read().decode())

    def start(self) -> None:
        inside = ["--map-root-user"] if os.geteuid() else []
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "PYTHONUNBUFFERED": "1", "PROM_ADDRESS": f"{HOST}:{self.port}",
            "MUSTER_POLL_SECONDS": "0.2", "LOGXI": "*=DBG",
            "QUEUE_MATCH": "^rmq_.*$", "CLEAR_TEXT_MESSAGES": "false", "ALLOW_ENV_SECRETS": "true",
            "CPU_ONLY": "true", "ENCRYPT_DIR": "/runner/certs/message", "REQUEST_SIGNATURES_DIR": "/runner/certs/queues/signing",
            "RESPONSE_SIGNATURES_DIR": "/runner/certs/queues/response-encrypt", "SSL_CERT_FILE": "/etc/studioml/ca.crt", **self.settings,
        }  # fmt: skip
        words = ["unshare", "--mount", *inside, "sh", "-c", _ENTER, self.root, self.folder, "/usr/bin/python3", "/runner/runner.py"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)

    def send(self, how: signal.Signals) -> None:
        assert self._process
        self._process.send_signal(how)

    @property
    def ended(self) -> bool:
        assert self._process
        return self._process.poll() is not None

    def kill(self) -> None:
        """As the kubelet or a power cut does: its experiment ends with the pod."""
        if self._process:
            children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
            experiments = children.read_text().split() if children.exists() else []
            for pid in (str(self._process.pid), *experiments):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            self._process.wait()
            self._process = None

    def says(self, text: str) -> None:
        """Wait for a line of its log."""

        def found() -> str | None:
            return None if text in self.log else f"{text!r} is not in {self.log[-2000:]}"

        wait_until(found, timeout=WITHIN_S, what="its log", clock=time, interval=0.1)


def mounts(folder: Path, files: Mapping[str, str], authority: str) -> None:
    """What is mounted: files below certs."""
    for name in ("tmp", "runner", "account", "ca"):
        (folder / name).mkdir(parents=True)
    for name in ("message/encryption", "message/passphrase", "queues/signing", "queues/response-encrypt"):
        (folder / "runner" / "certs" / name).mkdir(parents=True)
    for name, text in files.items():
        (folder / "runner" / "certs" / name).write_text(text)
    (folder / "ca" / "ca.crt").write_text(authority)
    (folder / "runner" / "runner.py").write_bytes(PROGRAM.read_bytes())
    (folder / "runner" / "recorded.json").write_bytes(RECORDED.read_bytes())


@dataclass
class Store:
    """versitygw, with one bucket."""

    port: int
    secret: str
    bucket: str = "leaf-store"

    @property
    def endpoint(self) -> str:
        return f"http://{HOST}:{self.port}"

    def client(self) -> Any:
        style = botocore.config.Config(s3={"addressing_style": "path"})
        return boto3.client("s3", endpoint_url=self.endpoint, aws_access_key_id=S3_ROOT, aws_secret_access_key=self.secret,
                            region_name="us-east-1", config=style)  # fmt: skip


@contextlib.contextmanager
def store(folder: Path) -> Iterator[Store]:
    """Run it for the time of the with block; built once per machine."""
    pins = ROOT / "roles" / "local_images" / "files" / "go" / "versitygw"
    built = GoBuild(name="versitygw", module_dir=pins, package="github.com/versity/versitygw/cmd/versitygw", cache_dir=cache_home(),
                    architecture=architecture())  # fmt: skip
    program = ensure(built, "building versitygw", print)
    found = Store(free_ports(1)[0], secrets.token_hex(20))
    (folder / "buckets").mkdir()
    keys = {"ROOT_ACCESS_KEY": S3_ROOT, "ROOT_SECRET_KEY": found.secret, "PATH": os.environ["PATH"]}
    with (folder / "log").open("wb") as log:
        words = [program, "--port", f"{HOST}:{found.port}", "posix", folder / "buckets"]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=keys)
    try:
        wait_until(lambda: _unreachable(found.port), timeout=WITHIN_S, what="versitygw", clock=time, interval=0.1)
        found.client().create_bucket(Bucket=found.bucket)
        yield found
    finally:
        process.kill()
        process.wait()


def _unreachable(port: int) -> str | None:
    try:
        socket.create_connection((HOST, port), 1).close()
    except OSError as error:
        return str(error)
    return None


class ApiServer(Served):
    """Answers for ConfigMaps, with TLS and a token, as the one of a pod's cluster."""

    def __init__(self, folder: Path) -> None:
        self.states: dict[str, str] = {}
        self.token = secrets.token_hex(20)
        pem, self.authority = certificates(folder, HOST)
        server = self

        class Handler(Answering):
            def do_GET(self) -> None:
                allowed = self.headers.get("Authorization") == f"Bearer {server.token}"
                name = self.path.removeprefix("/api/v1/namespaces/studioml/configmaps/")
                status = 403 if not allowed else 200 if name in server.states else 404
                self.reply(status, {"data": {"STATE": server.states.get(name, "")}} if status == 200 else {})

        super().__init__(Handler, pem)

    def settings(self, standin: Standin, name: str) -> None:
        """Let it find us as a pod of namespace studioml does."""
        (standin.folder / "account" / "token").write_text(self.token)
        (standin.folder / "account" / "ca.crt").write_text(self.authority)
        port = str(self.port)
        standin.settings |= {
            "KUBERNETES_SERVICE_HOST": HOST, "KUBERNETES_SERVICE_PORT": port, "K8S_NAMESPACE": "studioml",
            "K8S_CONFIGMAP": "studioml-go-runner", "HOSTNAME": name,
        }  # fmt: skip


class World:
    """A broker, a store, keys, and runners."""

    def __init__(self, broker: Broker, shop: Store, folder: Path, *, root: Path | None = None) -> None:
        """``root``: the root file system of runners; by default that of the stand-in's image."""
        self.broker, self.store, self.folder = broker, shop, folder
        key = keys.new_rsa_key(to_be_dropped())
        self.key = keys.rsa_pair(key, Sensitive(PHRASE))
        self.other_key = keys.rsa_pair(keys.new_rsa_key(to_be_dropped()), Sensitive(PHRASE))
        self.signer, self.other_signer = keys.new_signing_pair(to_be_dropped()), keys.new_signing_pair(to_be_dropped())
        self.started: list[Standin] = []
        self._numbers = itertools.count()
        self.root = root or standin_root()
        with broker.api(FIRST_USER, FIRST_PASSWORD) as api:
            api.call("PUT", ("users", "runner"), {"password": PASSWORD, "tags": "management"})
            api.call("PUT", ("permissions", "/", "runner"), {"configure": ".*", "write": ".*", "read": ".*"})
            # As the runner declares it, which would fail if it differed.
            api.call("PUT", ("exchanges", "/", EXCHANGE), {"type": "topic", "durable": True, "auto_delete": True})
        for queue in ("rmq_test", "rmq_other", "sqs_test"):
            self.queue(queue)

    def call(self, method: str, *path: str, **body: Any) -> Any:
        with self.broker.api(FIRST_USER, FIRST_PASSWORD, startup_timeout=30) as api:
            return api.call(method, path, body)

    def queue(self, name: str, *, bound: bool = True) -> None:
        self.call("PUT", "queues", "/", name, durable=True, auto_delete=False, arguments={})
        if bound:
            self.call("POST", "bindings", "/", "e", EXCHANGE, "q", name, routing_key=f"StudioML.{name}", arguments={})

    def send(self, queue: str, body: bytes) -> None:
        payload = {"payload": base64.b64encode(body).decode(), "payload_encoding": "base64", "properties": {"delivery_mode": 2}}
        assert self.call("POST", "exchanges", "/", EXCHANGE, "publish", routing_key=f"StudioML.{queue}", **payload)["routed"]

    def received(self, queue: str) -> list[str]:
        rows = self.call("POST", "queues", "/", queue, "get", count=20, ackmode="ack_requeue_false", encoding="auto")
        return [row["payload"] for row in rows]

    def waiting(self, queue: str) -> int:
        """Messages that somebody could get now."""
        return len(self.call("POST", "queues", "/", queue, "get", count=20, ackmode="ack_requeue_true", encoding="auto"))

    def request(self, name: str, **more: Any) -> dict[str, Any]:
        """As the client sends it; the workspace is in the store."""
        where = f"s3://{HOST}:{self.store.port}/{more.pop('bucket', self.store.bucket)}/experiments/{name}"
        workspace = io.BytesIO()
        with tarfile.open(fileobj=workspace, mode="w") as tar:
            info = tarfile.TarInfo("train.py")
            info.size = len(TRAINING)
            tar.addfile(info, io.BytesIO(TRAINING.encode()))
        self.store.client().put_object(Bucket=self.store.bucket, Key=f"experiments/{name}/workspace.tar", Body=workspace.getvalue())
        artifacts = {
            "workspace": {
                "qualified": f"s3://{HOST}:{self.store.port}/{self.store.bucket}/experiments/{name}/workspace.tar",
                "unpack": True,
            },
            "output": {"qualified": f"{where}/output.tar", "mutable": True, "unpack": True},
            "modeldir": {"qualified": f"{where}/modeldir.tar", "mutable": True, "unpack": True},
        }
        env = {
            "AWS_ACCESS_KEY_ID": S3_ROOT,
            "AWS_SECRET_ACCESS_KEY": more.pop("secret", self.store.secret),
            "AWS_DEFAULT_REGION": "us-east-1",
            "TEAM": "evolution",
        }
        experiment = {
            "key": name, "project": "canaries", "filename": "train.py", "args": ["--epochs", "2"], "artifacts": artifacts,
            "status": "waiting",
            "pythonver": "3", "time_added": time.time(), "resources_needed": {"cpus": 1, "ram": "1gb", "hdd": "100mb"}, "pythonenv": [],
            **more,
        }  # fmt: skip
        return {"config": {"experimentLifetime": "30m", "env": env, "database": {"projectId": "leaf"}}, "experiment": experiment}

    def message(self, name: str, **more: Any) -> bytes:
        return message.build(self.request(name, **more), self.key.public, self.signer.private)

    def runner(self, name: str, *, passphrase: str = PHRASE, **settings: str) -> Standin:
        folder = self.folder / f"{name}-{next(self._numbers)}"
        files = {
            "message/encryption/ssh-privatekey": self.key.private.reveal(), "message/encryption/ssh-publickey": self.key.public,
            "message/passphrase/ssh-passphrase": passphrase, "queues/signing/info": "none\n", "queues/signing/rmq_": self.signer.public,
            "queues/signing/rmq_other": self.other_signer.public, "queues/response-encrypt/info": "none\n",
        }  # fmt: skip
        mounts(folder, files, self.broker.authority.read_text())
        url = f"amqp://runner:{PASSWORD}@{HOST}:{self.broker.ports['amqp']}/%2f?connection_attempts=30&retry_delay=.5&socket_timeout=5"
        own = {"AMQP_URL": url, "AMQP_MGT_URL": f"https://runner:{PASSWORD}@{HOST}:{self.broker.port}", "HOSTNAME": name}
        found = Standin(folder, {**own, **settings}, self.root)
        self.started.append(found)
        return found

    def started_runner(self, name: str, **more: Any) -> Standin:
        found = self.runner(name, **more)
        found.start()
        return found

    def result(self, name: str) -> str:
        """The output of an experiment, as its experimenter gets it."""
        body = self.store.client().get_object(Bucket=self.store.bucket, Key=f"experiments/{name}/output.tar")["Body"].read()
        with tarfile.open(fileobj=io.BytesIO(body)) as tar:
            file = tar.extractfile("output")
            assert file
            return file.read().decode()

    def secrets(self) -> dict[str, str]:
        middle = self.key.private.reveal().splitlines()[10]
        return {**SECRETS, "storage": self.store.secret, "key": middle}


def until(what: str, ready: Callable[[], bool]) -> None:
    wait_until(lambda: None if ready() else "not yet", timeout=WITHIN_S, what=what, clock=time, interval=0.1)

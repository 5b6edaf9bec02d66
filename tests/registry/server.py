# SPDX-License-Identifier: GPL-3.0-or-later
"""The registry of CNCF distribution, with TLS and a login, for the time of a test."""

import contextlib
import os
import re
import socket
import ssl
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from faults.proxy import certificates
from support.places import ROOT

from ansible_collections.muster.ml.plugins.module_utils._core.clock import SYSTEM_CLOCK
from ansible_collections.muster.ml.plugins.module_utils._local.gobuild import GoBuild, architecture, ensure
from ansible_collections.muster.ml.plugins.module_utils._local.host import wait_until

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "muster"
USER, PASSWORD = "team", "canary-of-the-registry"
# Of that password, by bcrypt, the one hash that distribution takes.
HTPASSWD = f"{USER}:$2b$05$U3sIwNXBWbeS70xFIOmFeO2EDKj1sNAoqE43c7oYCM8xhgmM0wOHu\n"


@dataclass(frozen=True)
class Registry:
    """One that runs; what it was asked is in its log."""

    address: str
    authority: Path
    log: Path

    def uploads(self) -> list[str]:
        """The requests that wrote."""
        return re.findall(r'"((?:PUT|POST|PATCH|DELETE) \S+)', self.log.read_text(encoding="utf-8"))

    def manifest_of(self, path: str) -> bytes:
        """What is there, asked without any program of ours."""
        request = urllib.request.Request(f"https://{self.address}/v2/{path}")
        request.add_header("Accept", "application/vnd.oci.image.manifest.v1+json")
        keys = urllib.request.HTTPPasswordMgrWithDefaultRealm()
        keys.add_password(None, f"https://{self.address}", USER, PASSWORD)
        trust = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=self.authority))
        opener = urllib.request.build_opener(trust, urllib.request.HTTPBasicAuthHandler(keys))
        with opener.open(request, timeout=60) as answer:
            found: bytes = answer.read()
        return found


def address_for(kubeconfig: Path) -> str:
    """An address of this machine that the nodes of its local cluster reach, and nobody else: that of their bridge."""
    server = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))["clusters"][0]["cluster"]["server"]
    node = urllib.parse.urlsplit(server).hostname
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.connect((node, 9))  # sends nothing; the kernel says which way it would go
        return str(asked.getsockname()[0])


def program() -> Path:
    """Built once per machine, without the drivers for clouds."""
    pins = ROOT / "tests" / "registry" / "go"
    registry = GoBuild(name="registry", module_dir=pins, package=".", cache_dir=CACHE, architecture=architecture())
    return ensure(registry, "building the registry", print)


@contextlib.contextmanager
def running(folder: Path, host: str) -> Iterator[Registry]:
    """Run it for the time of the with block. It ends by its own process id."""
    pem, authority = certificates(folder, host)
    (folder / "ca.crt").write_text(authority)
    (folder / "htpasswd").write_text(HTPASSWD)
    with socket.create_server((host, 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "version": 0.1,
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(folder / "data")}},
        "auth": {"htpasswd": {"realm": "test", "path": str(folder / "htpasswd")}},
        "http": {"addr": f"{host}:{port}", "tls": {"certificate": str(pem), "key": str(pem)}},
    }
    (folder / "config.yml").write_text(yaml.safe_dump(settings))
    log = folder / "log"
    quiet = {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}
    with log.open("wb") as out:
        process = subprocess.Popen([program(), "serve", folder / "config.yml"], stdout=out, stderr=out, env={**os.environ, **quiet})
    try:
        wait_until(lambda: unanswered(process, log, host, port), timeout=180, what="the registry", clock=SYSTEM_CLOCK, interval=0.1)
        yield Registry(f"{host}:{port}", folder / "ca.crt", log)
    finally:
        process.terminate()
        process.wait(30)


def unanswered(process: subprocess.Popen[bytes], log: Path, host: str, port: int) -> str | None:
    """Why it cannot be used yet; None when it can."""
    assert process.poll() is None, log.read_text(encoding="utf-8")
    try:
        socket.create_connection((host, port), timeout=10).close()
    except OSError as error:
        return str(error)
    return None

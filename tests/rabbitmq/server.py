# SPDX-License-Identifier: GPL-3.0-or-later
"""A real broker of Debian, in a root file system of its own, with TLS before its management API, for the time of a test.

Debian's packages are unpacked, not installed: processes run in a mount namespace with that root, and end by their own ids.
"""

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults.proxy import certificates
from support.places import cache_home

from ansible_collections.muster.ml.plugins.module_utils._core.clock import SYSTEM_CLOCK
from ansible_collections.muster.ml.plugins.module_utils._core.errors import MusterError
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._local.gobuild import architecture
from ansible_collections.muster.ml.plugins.module_utils._local.host import wait_until
from ansible_collections.muster.ml.plugins.module_utils._local.oci import OciImage
from ansible_collections.muster.ml.plugins.module_utils._local.oci_layers import debian_layer
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq.api import Address, Login, ManagementApi

# The suites of Debian, and the series of RabbitMQ that each has.
SUITES = {"bookworm": "3.10", "trixie": "4.0"}
HOST = "127.0.0.1"
FIRST_USER, FIRST_PASSWORD = "guest", "guest"
STARTS_S = 240
_LINKS = ("bin", "sbin", "lib", "lib64")
_ENTER = 'mount --rbind /dev "$0/dev" && mount --rbind /proc "$0/proc" && mount --bind "$1" "$0/data" && shift && exec chroot "$0" "$@"'
_ACCESS = re.compile(r'"(?P<method>[A-Z]+) (?P<path>\S+) HTTP')


def root_of(suite: str) -> Path:
    """A root file system with the suite's RabbitMQ."""
    return debian_root("rabbitmq", suite, ["rabbitmq-server", "dash", "coreutils"], ["dev", "proc", "data"])


def debian_root(name: str, suite: str, packages: list[str], folders: list[str]) -> Path:
    """A root file system with packages and empty folders, unpacked once per machine and state of the packages' list."""
    debian = {"suite": suite, "packages": packages, "variant": "extract", "mirror": "", "security_mirror": ""}
    image = OciImage(
        name=f"muster.local/{name}:{suite}",
        recipe={"architectures": [], "debian": debian, "wheels": [], "programs": [], "files": [], "links": []},
        cache_dir=cache_home(),
        architecture=architecture(),
    )
    archive = debian_layer(image, print)
    root: Path = cache_home() / name / archive.stem
    if root.is_dir():
        return root
    draft = root.with_name(f".{root.name}.{os.getpid()}")
    draft.mkdir(parents=True)
    subprocess.run(["tar", "--extract", "--file", archive, "--directory", draft, "--exclude=./dev/*"], check=True)
    for folder in folders:
        (draft / folder).mkdir(parents=True, exist_ok=True)
    for link in _LINKS:  # the package base-files would make them when it is configured
        if not (draft / link).exists() and (draft / "usr" / link).exists():
            (draft / link).symlink_to(f"usr/{link}")
    (draft / "etc" / "hosts").write_text("127.0.0.1 localhost\n")
    try:
        draft.rename(root)
    except OSError:  # somebody else was faster
        shutil.rmtree(draft)
    return root


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as held:
        return [held.enter_context(socket.create_server((HOST, 0))).getsockname()[1] for _port in range(count)]


@dataclass
class Broker:
    """One that can be started and stopped; its data stay in FOLDER."""

    folder: Path
    root: Path
    ports: dict[str, int]
    authority: Path
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _settings: dict[str, Any] = field(default_factory=dict)

    @property
    def port(self) -> int:
        """Of the management API, with TLS."""
        return self.ports["management"]

    @property
    def log(self) -> str:
        found = [self.folder / "rabbit.log", self.folder / "out"]
        return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in found if path.exists())

    def requests(self) -> list[str]:
        """Every request that the management API has served, as its own access log has them."""
        texts = [path.read_text() for path in sorted((self.folder / "access").glob("access*"))]
        return [f"{found['method']} {found['path']}" for text in texts for found in _ACCESS.finditer(text)]

    def writes(self) -> list[str]:
        return [request for request in self.requests() if not request.startswith("GET ")]

    def login(self, user: str, password: str, **more: Any) -> dict[str, Any]:
        """Connection options of the modules."""
        where = {"login_host": HOST, "login_port": self.port, "ca_cert": str(self.authority)}
        return {**where, "login_user": user, "login_password": password, **more}

    def api(self, user: str, password: str, startup_timeout: float = 0) -> ManagementApi:
        address = Address(HOST, self.port, ca_cert=str(self.authority), startup_timeout=startup_timeout)
        return ManagementApi(address, Login(user, Sensitive(password)), SYSTEM_CLOCK)

    def configure(self, settings: dict[str, Any]) -> None:
        """Settings for the next start, beside those that it has."""
        self._settings |= settings
        text = "".join(f"{key} = {value}\n" for key, value in self._settings.items())
        (self.folder / "rabbitmq.conf").write_text(text)

    def setting(self, name: str) -> str:
        """One of its settings."""
        return str(self._settings[name])

    def start(self, *, wait: bool = True) -> None:
        (erlang,) = (path for path in (self.root / "usr/lib/erlang").glob("erts-*/bin"))
        programs = f"/{erlang.relative_to(self.root)}"
        self._spawn(f"{programs}/epmd", "-address", HOST, "-port", str(self.ports["epmd"]))
        self._spawn(
            f"{programs}/erlexec", "-noinput", "-s", "rabbit", "boot", "-boot", "start_sasl", "+W", "w", "+S", "2",
            # Idle schedulers sleep instead of spinning (RabbitMQ's documentation, "Runtime Tuning", busy waiting).
            "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none",
            "-kernel", "inet_dist_use_interface", "{127,0,0,1}", "-syslog", "logger", "[]", "-syslog", "syslog_error_logger", "false",
        )  # fmt: skip
        if wait:
            wait_until(self._unanswered, timeout=STARTS_S, what="the broker", clock=SYSTEM_CLOCK)

    def _spawn(self, *words: str) -> None:
        """A process in the broker's root. It has the id of what is started here: every program on the way becomes the next."""
        inside = ["--map-root-user"] if os.geteuid() else []
        with (self.folder / "out").open("ab") as out:
            self._running.append(
                subprocess.Popen(
                    ["unshare", "--mount", *inside, "sh", "-c", _ENTER, self.root, self.folder, *words],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    env=self._environment(),
                )
            )

    def _environment(self) -> dict[str, str]:
        (erts,) = (self.root / "usr/lib/erlang").glob("erts-*")
        (home,) = (self.root / "usr/lib/rabbitmq/lib").glob("rabbitmq_server-*")
        rabbit = f"/{home.relative_to(self.root)}"
        own = {
            "NODENAME": "muster-test@localhost", "DIST_PORT": str(self.ports["distribution"]), "HOME": rabbit,
            "CONFIG_FILE": "/data/rabbitmq.conf", "ADVANCED_CONFIG_FILE": "/data/none.config", "CONF_ENV_FILE": "/dev/null",
            "ENABLED_PLUGINS_FILE": "/data/enabled_plugins", "MNESIA_BASE": "/data/mnesia", "LOG_BASE": "/data/log",
            "GENERATED_CONFIG_DIR": "/data/generated", "PID_FILE": "/data/pid",
        }  # fmt: skip
        return {
            **{f"RABBITMQ_{name}": value for name, value in own.items()},
            "ROOTDIR": "/usr/lib/erlang", "BINDIR": f"/usr/lib/erlang/{erts.name}/bin", "EMU": "beam", "PROGNAME": "erlexec",
            "PATH": f"/usr/lib/erlang/{erts.name}/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/data", "LC_ALL": "C.UTF-8",
            "ERL_LIBS": f"{rabbit}/plugins", "ERL_EPMD_ADDRESS": HOST, "ERL_EPMD_PORT": str(self.ports["epmd"]),
            "ERL_CRASH_DUMP": "/dev/null", "SYS_PREFIX": "",
        }  # fmt: skip

    def _unanswered(self) -> str | None:
        """Why it cannot be used yet; None when it can."""
        assert all(process.poll() is None for process in self._running), self.log
        try:
            with self.api("nobody", "nothing") as api:
                api.get("whoami")
        except MusterError as error:
            return None if "refuses the password" in error.message else error.message
        return None

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        for process in reversed(self._running):
            process.send_signal(how)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running.clear()


@contextlib.contextmanager
def running(folder: Path, suite: str) -> Iterator[Broker]:
    """Run one for the time of the with block."""
    root = root_of(suite)
    names = ("management", "amqp", "epmd", "distribution")
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    pem, authority = certificates(folder, HOST)
    (folder / "ca.crt").write_text(authority)
    # Its FOLDER is /data inside. The access log is what judges reruns.
    settings = {
        "listeners.tcp.1": f"{HOST}:{ports['amqp']}",
        "management.ssl.ip": HOST,
        "management.ssl.port": ports["management"],
        "management.ssl.cacertfile": "/data/ca.crt",
        "management.ssl.certfile": f"/data/{pem.name}",
        "management.ssl.keyfile": f"/data/{pem.name}",
        "management.http_log_dir": "/data/access",
        "log.console": "false",
        "log.file": "/data/rabbit.log",
        "disk_free_limit.absolute": "1MB",
    }
    (folder / "enabled_plugins").write_text("[rabbitmq_management].\n")
    broker = Broker(folder, root, ports, folder / "ca.crt")
    broker.configure(settings)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop(signal.SIGKILL)

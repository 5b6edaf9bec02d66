# SPDX-License-Identifier: GPL-3.0-or-later
"""Record what a real runner of StudioML writes: its log, its metrics and the output of its experiments, at a real broker and store.

Usage: python tests/studioml/record.py VERSION COMMIT PROGRAM [experiments]. PROGRAM is cmd/runner of leaf-ai/studio-go-runner at COMMIT,
built with the tags NO_CUDA, osusergo and netgo. The log is recorded at the level DBG, which has the lines of every other level, too.

What differs from one machine to the next is replaced: passwords, ports, paths and the name of the host. Metrics of Go itself are left out,
and so is what a runner writes whenever it starts, except in the first scene.
"""

import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faults.proxy import certificates
from rabbitmq.server import FIRST_PASSWORD, FIRST_USER, HOST, free_ports, running
from support.places import ROOT

from ansible_collections.muster.ml.plugins.module_utils._local.host import wait_until
from studioml.world import EXCHANGE, PASSWORD, PHRASE, World, store

RECORDED = ROOT / "roles" / "local_images" / "files" / "studioml_runner"
SCENE_S = 420
LAST = 12
# Not recorded, but read in the source: outside of a cluster the runner says something else.
EXTRACTED = {
    "no_keys_in_a_pod": {
        "source": "cmd/runner/project.go:58",
        "log": ["2021-07-02T00:00:00+0000 WRN runner unable to load message encryption secrets _: "
                '[error x509: decryption password incorrect stack="[secret_store.go:164 project.go:51 project.go:70]" host runner-0]'],
        "metrics": [],
    },
}  # fmt: skip


class Real:
    """The program in a folder of its own, with the mounts that a pod has."""

    def __init__(self, program: str, world: World, name: str, **settings: str) -> None:
        made = world.runner(name, passphrase=settings.pop("passphrase", PHRASE))
        self.folder, (self.port,) = made.folder, free_ports(1)
        certs = self.folder / "runner" / "certs"
        pyenv = os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv"))
        environment = {
            "PATH": f"{pyenv}/bin:/usr/bin:/bin", "HOME": str(self.folder / "tmp"), "PYENV_ROOT": pyenv, "LC_ALL": "C.UTF-8",
            "TMPDIR": str(self.folder / "tmp"), "PROM_ADDRESS": f"{HOST}:{self.port}", "QUEUE_MATCH": "^rmq_.*$",
            "CLEAR_TEXT_MESSAGES": "false", "ALLOW_ENV_SECRETS": "true", "CPU_ONLY": "true", "ENCRYPT_DIR": str(certs / "message"),
            "REQUEST_SIGNATURES_DIR": str(certs / "queues" / "signing"),
            "RESPONSE_SIGNATURES_DIR": str(certs / "queues" / "response-encrypt"),
            "SSL_CERT_FILE": str(self.folder / "ca" / "ca.crt"), "LOGXI_FORMAT": "happy,maxcol=1024", "LOGXI": "*=DBG",
            "AMQP_URL": made.settings["AMQP_URL"], "AMQP_MGT_URL": f"https://runner:{PASSWORD}@{HOST}:{world.broker.port}", **settings,
        }  # fmt: skip
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [program],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={name: value for name, value in environment.items() if value},
                cwd=self.folder / "runner",
                start_new_session=True,
            )

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def metrics(self) -> str:
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.port}/metrics", timeout=5) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    def wait(self, ready: Callable[[], bool]) -> None:
        def missing() -> str | None:
            return None if ready() or self._process.poll() is not None else "not yet"

        wait_until(missing, timeout=SCENE_S, what="the scene", clock=time)

    def end(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def shortened(lines: list[str]) -> list[str]:
    """The results and the end. Between them the script shows its variables and what pip does, hundreds of lines."""
    return [line for line in lines[:-LAST] if re.fullmatch(r"[{[].*[]}]", line)] + lines[-LAST:]


def once(lines: list[str]) -> list[str]:
    """Without those that repeat one before them with other numbers, as a runner does every few seconds."""
    found: dict[str, str] = {}
    for line in lines:
        found.setdefault(re.sub(r"\d+", "", line), line)
    return list(found.values())


def resolver() -> str:
    """The name server of this machine, as Go names it."""
    found = re.search(r"^nameserver (\S+)", Path("/etc/resolv.conf").read_text(encoding="utf-8"), re.MULTILINE)
    return f"{found[1]}:53" if found else "no name server"


class Recorder:
    """One version, scene by scene."""

    def __init__(self, program: str, world: World) -> None:
        self.program, self.world = program, world
        self.scenes: dict[str, dict[str, Any]] = {}

    def scene(self, name: str, until: str, *, more: Callable[[Real], dict[str, Any]] | None = None, **settings: str) -> None:
        """Run until a line has UNTIL, or the metrics have it, and keep what was said."""
        runner = Real(self.program, self.world, name, **settings)
        try:
            runner.wait(lambda: re.search(until, runner.log + runner.metrics()) is not None)
            found = more(runner) if more else {}
            metrics = [line for line in runner.metrics().splitlines() if re.match(r"(# \w+ )?runner_", line)]
            lines = [self._plain(line, runner) for line in runner.log.splitlines() if re.match(r"\d{4}-", line)]
            start = {line.partition(" ")[2] for line in self.scenes.get("idle", {"log": []})["log"]}
            self.scenes[name] = {"log": once([line for line in lines if line.partition(" ")[2] not in start]),
                                 "metrics": [self._plain(line, runner) for line in metrics], **found}  # fmt: skip
        finally:
            runner.end()
        sys.stdout.write(f"{name}: {len(self.scenes[name]['log'])} lines\n")
        sys.stdout.flush()

    def _plain(self, line: str, runner: Real) -> str:
        """Without what belongs to this machine or this run."""
        ports = self.world.broker.ports
        for text, name in (
            (PASSWORD, "PASSWORD"), (PHRASE, "PASSPHRASE"), (self.world.store.secret, "SECRET"), (str(runner.folder), ""),
            (str(Path.home()), "~"), (f" on {resolver()}", ""), (f":{ports['management']}", ":15671"), (f":{ports['amqp']}", ":5672"),
            (f":{self.world.store.port}", ":7070"), (f":{runner.port}", ":9090"),
        ):  # fmt: skip
            line = line.replace(text, name)
        return (
            line.replace(platform.node(), "runner-0")
            if len(platform.node()) > 3
            else re.sub(rf"(host |host=\"|\b){re.escape(platform.node())}\b", r"\1runner-0", line)
        )

    def experiment(self, name: str, until: str, **more: Any) -> None:
        """A scene with one experiment, and what was stored as its output; null if nothing was."""
        world = self.world
        world.send("rmq_test", world.message(name, **more))

        def kept(runner: Real) -> dict[str, Any]:
            stored = world.store.client().list_objects_v2(Bucket=world.store.bucket, Prefix=f"experiments/{name}/output")
            lines = world.result(name).splitlines() if stored.get("Contents") else None
            return {"output": lines and shortened([self._plain(line, runner) for line in lines])}

        self.scene(name, until, more=kept)
        self.scenes[name]["left_in_queue"] = len(world.received("rmq_test"))


def record(recorder: Recorder, *, experiments: bool) -> None:
    """All scenes; those with experiments take minutes each."""
    world = recorder.world
    where = f"{HOST}:{world.broker.port}"
    for queue in ("rmq_test", "rmq_other", "sqs_test"):
        world.call("DELETE", "queues", "/", queue)
    recorder.scene("idle", r"no queues")
    unread = r"unable to refresh RMQ manifest"
    recorder.scene("refused", unread, AMQP_MGT_URL=f"https://runner:{PASSWORD}@{HOST}:{free_ports(1)[0]}")
    recorder.scene("unknown_host", unread, AMQP_MGT_URL=f"https://runner:{PASSWORD}@broker.invalid:15671")
    recorder.scene("unauthorized", unread, AMQP_MGT_URL=f"https://runner:wrong@{where}")
    world.call("PUT", "users", "untagged", password=PASSWORD, tags="")
    recorder.scene("forbidden", unread, AMQP_MGT_URL=f"https://untagged:{PASSWORD}@{where}")
    other = certificates(Path(tempfile.mkdtemp()), HOST)[1]
    stranger = Path(tempfile.mkdtemp()) / "ca.crt"
    stranger.write_text(other)
    recorder.scene("untrusted", unread, SSL_CERT_FILE=str(stranger))
    # The exchange went with its last binding.
    world.call("PUT", "exchanges", "/", EXCHANGE, type="topic", durable=True, auto_delete=True)
    world.queue("rmq_test")
    recorder.scene(
        "no_keys", r"unable to load message encryption secrets[\s\S]*runner_queue|getWrapper[\s\S]*getWrapper", passphrase="wrong"
    )
    recorder.scene("working", r"runner_queue_refresh_success\{")
    if not experiments:
        return
    # No line tells that it failed: its message is given back, and it is begun again at once.
    recorder.experiment("failed", r"experiment completed", filename="missing.py")
    recorder.experiment("finished", r"experiment completed")
    recorder.experiment("artifact_missing", r"backing off, receive failed", artifacts=gone(world))
    world.send("rmq_test", b"what is this")
    recorder.scene("dumped", r"backing off, receive failed")
    recorder.scenes["dumped"]["left_in_queue"] = len(world.received("rmq_test"))
    unsigned = json.loads(world.message("unsigned"))
    unsigned["message"].pop("signature")
    world.send("rmq_test", json.dumps(unsigned).encode())
    recorder.scene("retried", r"backing off, receive failed")
    recorder.scenes["retried"]["left_in_queue"] = len(world.received("rmq_test"))


def gone(world: World) -> dict[str, Any]:
    """Artifacts of an experiment whose workspace is not in the store."""
    found: dict[str, Any] = world.request("artifact_missing")["experiment"]["artifacts"]
    found["workspace"]["qualified"] += ".gone.tar"
    return found


def main() -> None:
    version, commit, program, *experiments = sys.argv[1:]
    folder = Path(tempfile.mkdtemp())
    for name in ("broker", "store"):
        (folder / name).mkdir()
    with running(folder / "broker", "bookworm") as broker, store(folder / "store") as shop:
        recorder = Recorder(program, World(broker, shop, folder, root=Path("/")))
        with broker.api(FIRST_USER, FIRST_PASSWORD) as api:
            broker_version = api.get("overview")["rabbitmq_version"]
        record(recorder, experiments=bool(experiments))
    found = {
        "version": version, "repository": "leaf-ai/studio-go-runner", "commit": commit, "broker": f"RabbitMQ {broker_version}",
        "recorded": time.strftime("%Y-%m-%d"), "scenes": {**recorder.scenes, **EXTRACTED},
    }  # fmt: skip
    (RECORDED / f"{version}.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

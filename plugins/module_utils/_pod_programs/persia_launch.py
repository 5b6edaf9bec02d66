# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start one part of a PERSIA training: launch.py nn-worker|data-loader|embedding-worker|embedding-parameter-server

PERSIA's processes find each other once, at their start. A replaced embedding server has lost what the trainers told it, and trainers
that were replaced have lost their data loaders' batches. This program therefore watches the addresses behind the groups' headless
Services and starts the remaining parts again together; the training itself resumes from its checkpoint. It needs no controller and
no access to the API server.

Exit status: 0 done; 75 another part of the training was replaced, start me again; 78 wrong configuration, starting again does not
help; 143 asked to stop; anything else is persia-launcher's own.

Python 3.7 and its standard library are enough: PERSIA's wheels are made for 3.7 to 3.9.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import typing as t

EXIT_PEER_REPLACED = 75
EXIT_MISCONFIGURED = 78
EXIT_STOPPED = 143
# In the success file of a training that had ended before: no process of PERSIA has done anything that could be measured.
NOTHING_LEFT = b'"trained": false'
# Beside this program in a pod.
METRICS = "metrics.py"
PROGRAM = "program.py"
# Seconds that a process has between SIGTERM and SIGKILL.
END_SECONDS = 10
TERMINATION_LOG = "/dev/termination-log"
TRAINER = "nn-worker"
LOADER = "data-loader"
# Not a group of PERSIA: this program looks at the image, in a process that leaves nothing behind.
GPU_CHECK = "gpu-check"
SERVERS = ("embedding-worker", "embedding-parameter-server")
# The addresses of each Service.
Peers = t.Dict[str, t.FrozenSet[str]]


class Stopped(Exception):
    """The pod was asked to end while no process of PERSIA ran."""


def say(text: str) -> None:
    """Write one line to the log."""
    sys.stderr.write(f"launch.py: {text}\n")
    sys.stderr.flush()


def write_termination_log(text: str) -> None:
    """Keep the reason where Kubernetes shows it: kubectl describe pod, and job_info."""
    with contextlib.suppress(OSError), open(TERMINATION_LOG, "w") as log:
        log.write(text)


def leave(status: int, reason: str) -> t.NoReturn:
    """End this pod's container and say why."""
    say(reason)
    write_termination_log(reason + "\n")
    raise SystemExit(status)


def setting(name: str, default: str = "") -> str:
    """Return a variable of the environment; an empty one counts as missing."""
    return os.environ.get(name) or default


def readable(name: str) -> str:
    """Return the path in variable NAME; exit with EXIT_MISCONFIGURED if the file cannot be read."""
    path = setting(name)
    if not os.access(path, os.R_OK):
        leave(EXIT_MISCONFIGURED, f"{name}={path} cannot be read in this pod")
    return path


def script(name: str) -> str:
    """Return the program that runs the script in a variable and ends with its status; the program gets the path by MUSTER_ENTRY."""
    os.environ["MUSTER_ENTRY"] = readable(name)
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), PROGRAM)


def replica() -> tuple[str, str]:
    """Return and set the index of this pod and the size of its group."""
    # In a Job the index is given; the name of a StatefulSet's pod ends with it.
    index = setting("REPLICA_INDEX", setting("HOSTNAME", "0").rpartition("-")[2])
    size = setting("REPLICA_SIZE", "1")
    os.environ.update(REPLICA_INDEX=index, REPLICA_SIZE=size)
    return index, size


def arguments(role: str) -> list[str]:
    """Return what persia-launcher is told besides the role."""
    index, size = replica()
    flags = ["--replica-index", index, "--replica-size", size]
    if role == TRAINER:
        entry, processes = script("PERSIA_NN_WORKER_ENTRY"), setting("NPROC_PER_NODE", "1")
        return [entry, "--nproc-per-node", processes, "--nnodes", size, "--node-rank", index]
    if role == LOADER:
        return [script("PERSIA_DATALOADER_ENTRY"), *flags]
    if role in SERVERS:
        config, embedding = readable("PERSIA_GLOBAL_CONFIG"), readable("PERSIA_EMBEDDING_CONFIG")
        return ["--global-config", config, "--embedding-config", embedding, *flags]
    return leave(EXIT_MISCONFIGURED, f"unknown role {role}")


def own_script(role: str) -> list[str]:
    """Return the command of a launch script of the user's; empty without one. It gets ranks and sizes by its environment."""
    path, _space, word = setting("MUSTER_LAUNCH_SCRIPT").rpartition(" ")
    if not path:
        return []
    try:
        with open(path, "rb") as file:
            first = file.readline()
    except OSError as error:
        leave(EXIT_MISCONFIGURED, f"the launch script cannot be read in this pod: {error}")
    index, size = replica()
    if role == TRAINER:
        world = int(size) * int(setting("NPROC_PER_NODE", "1"))
        os.environ.update(NODE_RANK=index, WORLD_SIZE=str(world))
    # The files of a ConfigMap are not executable.
    return [*(first[2:].decode().split() if first.startswith(b"#!") else ["/bin/sh"]), path, word]


def gpu_problem(asked: int) -> str:
    """Why the programs in this image cannot use the GPUs of this pod; empty where they can."""
    try:
        torch, persia = importlib.import_module("torch"), importlib.import_module("persia_core")
        if torch.version.cuda is None:
            return f"torch {torch.__version__} is built without CUDA"
        if not persia.is_cuda_feature_available():
            return "PERSIA is built without CUDA, as the one on PyPI is"
        found = torch.cuda.device_count()
        if found < asked:
            return f"torch sees {found} of them: the node has no driver that fits, or an older one than CUDA {torch.version.cuda} needs"
        for device in range(asked):
            torch.zeros(1, device=device).add(1).item()
    except (ImportError, RuntimeError) as error:
        # A GPU newer than CUDA is found, and only computing on it fails.
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    return ""


def check_gpus() -> None:
    """Leave if nothing in this image can use the GPUs that the pod asks for: it would hold them and train on the CPU."""
    asked = setting("MUSTER_GPUS")
    if not asked:
        return
    done = subprocess.run([sys.executable, __file__, GPU_CHECK], stdout=subprocess.PIPE, check=False)
    if done.returncode:
        said = done.stdout.decode(errors="replace").split("\n")
        reason = next((line for line in reversed(said) if line), f"status {done.returncode}")
        # From NVIDIA's device plugin: tells on a node which ones they are.
        given = setting("NVIDIA_VISIBLE_DEVICES")
        got = f" and got {given}" if given else ""
        leave(EXIT_MISCONFIGURED, f"this pod asks for {asked} GPUs{got}, and its image cannot use them: {reason}")


def resolve(desired: t.Mapping[str, int]) -> tuple[Peers, str]:
    """Look up every Service; also the name of the first one of which a pod has no address yet."""
    found: Peers = {}
    for service, count in desired.items():
        try:
            addresses = frozenset(str(entry[4][0]) for entry in socket.getaddrinfo(service, None))
        except OSError:
            addresses = frozenset()
        if len(addresses) != count:
            return found, service
        found[service] = addresses
    return found, ""


class Launch:
    """persia-launcher in one role, started again in place as often as its peers are replaced."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.command = own_script(role) or ["persia-launcher", role, *arguments(role)]
        # MUSTER_PEERS: SERVICE:COUNT ...
        counts = (peer.rpartition(":") for peer in setting("MUSTER_PEERS").split())
        self.peers = {service: int(count) for service, _colon, count in counts}
        self.peer_timeout = float(setting("MUSTER_PEER_TIMEOUT", "600"))
        self.interval = float(setting("MUSTER_WATCH_INTERVAL", "5"))
        self.success_file = os.environ.get("MUSTER_SUCCESS_FILE", "")
        self.began = time.monotonic()
        self.child: subprocess.Popen[bytes] | None = None
        self.starting = False
        self.ending = 0
        self.replaced = False
        self.stopping = False

    def on_stop(self, *_signal: object) -> None:
        """Handle SIGTERM and SIGINT: end the child, or whatever this process waits for."""
        say("asked to stop")
        first, self.stopping = not self.stopping, True
        if self.child is not None:
            self.end_child()
        elif first and not self.starting:
            raise Stopped

    def on_alarm(self, *_signal: object) -> None:
        """Kill what did not end in time."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.ending, signal.SIGKILL)

    def end_child(self) -> None:
        """End the child's whole session, so that the signal reaches torch's and the launcher's children, too."""
        child = self.child
        if child is not None:
            self.ending = child.pid
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)
            signal.alarm(END_SECONDS)

    def wait_for_peers(self) -> Peers:
        """Wait until every pod that PERSIA will meet has an address."""
        deadline, told = time.monotonic() + self.peer_timeout, ""
        while True:
            known, missing = resolve(self.peers)
            if not missing:
                return known
            if missing != told:
                say(f"waiting for every pod of {missing} to have an address")
                told = missing
            if time.monotonic() >= deadline:
                leave(1, f"gave up after {self.peer_timeout:g} s: not every pod of {missing} has an address")
            time.sleep(min(1, self.interval))

    def watch_peers(self, known: Peers, done: threading.Event) -> None:
        """End the child when a peer was replaced. While a pod is missing, the training cannot start again."""
        while not done.wait(self.interval):
            now, missing = resolve(self.peers)
            if not missing and now != known and not done.is_set():
                say("another part of the training was replaced")
                self.replaced = True
                self.end_child()
                return

    def run(self, known: Peers) -> int:
        """Run PERSIA once; its exit status as a shell would give it."""
        self.replaced = False
        if self.success_file:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.success_file)
        self.starting = True
        try:
            self.child = subprocess.Popen(self.command, start_new_session=True)
        except OSError as error:
            leave(EXIT_MISCONFIGURED, f"{self.command[0]} cannot be started in this image: {error}")
        self.starting = False
        if self.stopping:
            # The signal came after the fork, before the process ID was stored.
            self.end_child()
        done = threading.Event()
        if self.peers:
            threading.Thread(target=self.watch_peers, args=(known, done), daemon=True).start()
        code = self.child.wait()
        done.set()
        self.child = None
        # As the first process of the pod this one inherits what its children leave behind.
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        return code if code >= 0 else 128 - code

    def end_training(self, code: int) -> t.NoReturn:
        """End a trainer's pod by what the training wrote into the success file, else by its exit status."""
        results = b""
        with contextlib.suppress(OSError), open(self.success_file, "rb") as file:
            results = file.read()
        done = sum(1 for line in results.splitlines() if line)
        # The training said that its results are saved: an abort while the interpreter shuts down changes nothing.
        if done >= int(setting("NPROC_PER_NODE", "1")):
            if code:
                say(f"status {code} after the training saved its results: done")
            code = 0
        if code == 0 and NOTHING_LEFT not in results:
            self.ask_gateway()
        if code == 0 and done:
            write_termination_log(results[:3000].decode(errors="replace"))
        elif code and self.replaced:
            # Let every other part see the change before a new trainer meets it.
            with contextlib.suppress(Stopped):
                time.sleep(2 * self.interval)
            leave(EXIT_PEER_REPLACED, "another part of the training was replaced: begin again from the last checkpoint")
        # A failure gets no message from here: the last lines of the log say more.
        raise SystemExit(code)

    def ask_gateway(self) -> None:
        """Let the first trainer say what the push gateway has of this training; PERSIA's servers still run. Its end changes nothing."""
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), METRICS)
        if os.path.exists(program) and os.environ["REPLICA_INDEX"] == "0":
            with contextlib.suppress(Stopped):
                subprocess.run([sys.executable, program, str(time.monotonic() - self.began)], check=False)

    def trainers_are_gone(self, known: Peers) -> bool:
        """Wait for the trainers to end. Should they start again instead, they need all data again."""
        limit, gone = float(setting("MUSTER_LINGER_SECONDS", "90")), 0.0
        # A request to stop after the end of the work changes nothing.
        with contextlib.suppress(Stopped):
            say("all data sent, waiting for the trainers to end")
            while self.peers and gone < limit:
                time.sleep(self.interval)
                now, missing = resolve(self.peers)
                if not missing and now != known:
                    return False
                gone = gone + self.interval if missing else 0.0
        return True

    def run_until_done(self) -> t.NoReturn:
        """Start PERSIA again in place, keeping the pod's address, until it ends by itself."""
        while True:
            known = self.wait_for_peers()
            say(f"starting: {' '.join(self.command)}")
            code = self.run(known)
            if self.stopping:
                raise Stopped
            if self.role == TRAINER:
                self.end_training(code)
            if self.replaced:
                continue
            if self.role != LOADER or code or self.trainers_are_gone(known):
                raise SystemExit(code)


def main() -> t.NoReturn:
    """Launch the role that the command line names."""
    role = sys.argv[1] if len(sys.argv) > 1 else ""
    if role == GPU_CHECK:
        problem = gpu_problem(int(setting("MUSTER_GPUS", "0")))
        sys.stdout.write(f"{problem}\n")
        raise SystemExit(bool(problem))
    launch = Launch(role)
    signal.signal(signal.SIGALRM, launch.on_alarm)
    try:
        signal.signal(signal.SIGTERM, launch.on_stop)
        signal.signal(signal.SIGINT, launch.on_stop)
        if role == TRAINER and launch.command[0] == "persia-launcher":
            check_gpus()
        launch.run_until_done()
    except Stopped:
        raise SystemExit(EXIT_STOPPED) from None
    finally:
        signal.alarm(0)  # while Python ends it has no handlers any more, and the alarm would end it with a status of its own


if __name__ == "__main__":
    main()

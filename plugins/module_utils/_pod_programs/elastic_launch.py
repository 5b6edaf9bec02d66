# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a training script with torchrun's agent, configured by torchrun's own PET_* variables: launch.py SCRIPT [ARGUMENT...]

torchrun alone learns of a lost pod when collectives fail, which costs every other pod one of its restarts, and keeps the place of one
that was asked to leave until its heartbeats run out. The agent here leaves the rendezvous when it is asked to end, takes a shrunk
round for the change of membership that it is, stays through a short outage of etcd, and starts again in place where the rendezvous
itself was lost. While pods meet, the processes to come import torch already.

A pod whose processes have ended well is done, not lost: it records that in the state of the rendezvous, keeps sending heartbeats, and
waits as long as the others work. torch's own exit barrier lasts 300 seconds, and with c10d it holds the connection that the heartbeats
need, so that the others take the waiting pod for lost after keep_alive_interval * keep_alive_max_attempt and start again. If a pod that
is not done is lost or fails, those that are done start again with the others. The run has succeeded when all pods of one round are done.

Exit status: 0 all pods of the last round are done; 70 the script failed more often than PET_MAX_RESTARTS, here or in another pod;
78 wrong configuration; 143 asked to end; anything else, such as MUSTER_EXIT_AGAIN: start me again.

Python 3.7 and torch 1.10 are enough. This file can be imported without torch: what needs it imports it when it is called.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import http.client
import json
import os
import runpy
import signal
import socket
import ssl
import subprocess
import sys
import time
import traceback
import typing as t
import warnings
import zipfile
from datetime import timedelta

EXIT_SCRIPT_FAILED = 70
EXIT_MISCONFIGURED = 78
EXIT_STOPPED = 143
# For MUSTER_EXIT_AGAIN where only an exit status from 128 on means that a pod is to be made again.
EXIT_AGAIN = 175
LOG_PREFIX = "muster.ml/elastic "
TERMINATION_LOG = "/dev/termination-log"
SHM = "/dev/shm"  # noqa: S108
STANDBY = "--standby"
SCRIPT = "--script"
# How often a lost rendezvous is begun again.
TRIES = 20
# Seconds after which the first rank logs the round again, so that the end of a long log has it, too.
REPEAT = 15
# Seconds for an answer of etcd. torch takes 60, and so long waits who connects to the old address of a member that is made again.
ANSWER = 5
# Seconds that pod 0 waits for the others to end.
PEERS_END = 10
# torch's classes are known in the pods only.
Torch: t.Any = object


class Settings(t.NamedTuple):
    """What the environment says."""

    rank: int
    backend: str
    host: str
    port: int
    conf: str
    poll: float
    grace: int
    again: int
    warm_start: bool
    service: str

    @property
    def hosts_store(self) -> bool:
        """Whether the rendezvous is served by this pod."""
        return self.backend == "c10d" and self.rank == 0

    def option(self, name: str, default: str = "") -> str:
        """One of the settings in --rdzv-conf."""
        return dict(part.split("=", 1) for part in self.conf.split(",") if part).get(name, default)

    @property
    def join_timeout(self) -> int:
        """Seconds for the pods to join."""
        return int(self.option("join_timeout", "600"))


@functools.lru_cache(maxsize=None)
def settings() -> Settings:
    """Read the environment, once: that of a process that stands by is replaced."""
    env = os.environ
    host, port = env["PET_RDZV_ENDPOINT"].rsplit(":", 1)
    return Settings(
        rank=int(env.get("JOB_COMPLETION_INDEX", "0")),
        backend=env["PET_RDZV_BACKEND"],
        host=host,
        port=int(port),
        conf=env.get("PET_RDZV_CONF", ""),
        # Seconds between two looks at the rendezvous; torch itself takes one.
        poll=min(1.0, float(env.get("PET_MONITOR_INTERVAL", "1"))),
        # Seconds that a script has between SIGTERM and SIGKILL, for which torch itself has 30.
        grace=int(env.get("MUSTER_GRACE", "30")),
        again=int(env.get("MUSTER_EXIT_AGAIN", "1")),
        warm_start=env.get("MUSTER_WARM_START") == "1",
        service=env.get("MUSTER_SERVICE", ""),
    )


def say(event: str, **fields: t.Any) -> None:
    """Log an event that the module reads."""
    fields = {"event": event, "index": settings().rank, "time": round(time.time(), 3), **fields}
    # In one piece: the script writes to the same place.
    sys.stdout.write(LOG_PREFIX + json.dumps(fields) + "\n")
    sys.stdout.flush()


def end(code: int) -> t.NoReturn:
    """End at once, whatever threads of torch still run."""
    sys.stdout.flush()
    os._exit(code)


def leave(code: int, reason: str, event: str = "failed") -> t.NoReturn:
    """End and keep the reason where Kubernetes shows it: kubectl describe pod, and job_info."""
    say(event, reason=reason)
    with contextlib.suppress(OSError), open(TERMINATION_LOG, "w") as log:
        log.write(reason + "\n")
    end(code)


def wait_for_endpoint() -> None:
    """Wait until the rendezvous answers. torchrun gives up where a name does not resolve, and in a new job it does not yet."""
    own = settings()
    deadline, told = time.monotonic() + own.join_timeout, False
    while True:
        try:
            if own.hosts_store:
                socket.getaddrinfo(own.host, own.port)
            else:
                socket.create_connection((own.host, own.port), timeout=2).close()
        except OSError as error:
            place = f"{own.host}:{own.port}"
            if time.monotonic() > deadline:
                leave(own.again, f"the rendezvous at {place} did not answer for {own.join_timeout} s: {error}")
            if not told:
                say("waiting", reason=f"{place}: {error}")
                told = True
            time.sleep(0.5)
        else:
            if told:
                say("rendezvous_reachable")
            return


def check_script(script: str) -> None:
    """End where Python cannot run the file. A folder or a ZIP archive needs __main__.py, a file the syntax of this Python."""
    if not os.access(script, os.R_OK):
        leave(EXIT_MISCONFIGURED, f"the script {script} cannot be read in this pod")
    if os.path.isdir(script):
        inside = os.listdir(script)
    elif zipfile.is_zipfile(script):
        with zipfile.ZipFile(script) as archive:
            inside = archive.namelist()
    elif script.endswith(".pyc"):
        return
    else:
        try:
            with open(script, "rb") as file, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                head = file.read(512)
                # Null bytes are refused; an archive may be too large to be read.
                text = head if b"\0" in head else head + file.read()
                tree: t.Any = compile(text, script, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
                compile(tree, script, "exec", dont_inherit=True)
            # Such as JSON with the error of a store, or YAML: Python runs it, and it would succeed.
            if not any(isinstance(node, (ast.Call, ast.Import, ast.ImportFrom)) for node in ast.walk(tree)):
                raise ValueError("it calls nothing and imports nothing")
        except (SyntaxError, ValueError) as error:
            leave(EXIT_MISCONFIGURED, f"the script {script} is no program for Python {sys.version.split()[0]}: {error}")
        return
    if "__main__.py" not in inside:
        leave(EXIT_MISCONFIGURED, f"the script {script} has several files and no __main__.py, with which Python begins")


def check_etcd() -> None:
    """End where the etcd at the endpoint has no v2 API, which torch needs.

    3.6.8, and 3.5.35 without --enable-v2, answer 404. With TLS, 3.5.35 ends a connection without it and gives no answer.
    """
    own, tls = settings(), settings().option("protocol") == "https"
    if own.backend != "etcd-v2":
        return
    place, connection = f"{own.host}:{own.port}", http.client.HTTPConnection(own.host, own.port, timeout=ANSWER)
    try:
        if tls:
            context = ssl.create_default_context(cafile=own.option("ca_cert") or None)
            if own.option("ssl_cert"):
                context.load_cert_chain(own.option("ssl_cert"), own.option("ssl_cert_key") or None)
            connection = http.client.HTTPSConnection(own.host, own.port, timeout=ANSWER, context=context)
        connection.request("GET", "/v2/keys")
        if connection.getresponse().status == 404:
            leave(EXIT_MISCONFIGURED, f"etcd at {place} has no v2 API, which etcd up to 3.5 has with --enable-v2")
    except (OSError, http.client.HTTPException) as error:
        # The rendezvous decides what that means.
        say("waiting", reason=f"etcd at {place}: {error}" + ("" if tls else "; with TLS it needs rdzv_conf: {protocol: https}"))
    finally:
        connection.close()


# Processes that run the script, which may stand by until they know which one: they have torch imported then


def stand_by() -> None:
    """Import torch, wait for an order, become the script that it names."""
    # Threads that torch starts must not get the signals that are for the script.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    import torch.distributed  # noqa: F401

    text = sys.stdin.readline()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    if not text:
        return
    order = json.loads(text)
    os.environ.clear()
    os.environ.update(order["env"])
    become(order["argv"])


def become(argv: t.Sequence[str]) -> None:
    """Run a script as Python does, and tell torch the reason if it fails."""
    sys.argv = list(argv)
    sys.path[0] = os.path.dirname(os.path.abspath(argv[0]))
    with contextlib.suppress(OSError), open("/proc/self/comm", "w") as name:
        name.write(os.path.basename(argv[0])[:15])
    try:
        runpy.run_path(argv[0], run_name="__main__")
    except BaseException as error:
        if not isinstance(error, SystemExit) or isinstance(error.code, str):
            record_failure(error)
        raise


def record_failure(error: BaseException) -> None:
    """Write the error to where torch's agent reads it, as torch's decorator record does; the latter's file is kept."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE", "")
    reason = "".join(traceback.format_exception_only(type(error), error)).strip()
    more = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
    with contextlib.suppress(OSError):
        if path and not os.path.exists(path):
            with open(path, "w") as file:
                json.dump({"message": {"message": reason, "extraInfo": more}}, file)


class Reserve:
    """Processes that stand by."""

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []

    def prepare(self, count: int) -> None:
        """Start standby processes until there are COUNT."""
        self.processes = [process for process in self.processes if process.poll() is None]
        command = [sys.executable, "-u", os.path.abspath(__file__), STANDBY]
        while settings().warm_start and len(self.processes) < count:
            self.processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True))

    def start(self, args: t.Sequence[str], env: t.Mapping[str, str]) -> subprocess.Popen[bytes] | None:
        """Let one of them become the script; None where it has to be started anew."""
        if not self.processes:
            return None
        process = self.processes.pop()
        try:
            with t.cast("t.IO[bytes]", process.stdin) as stdin:
                stdin.write(json.dumps({"argv": list(args[2:]), "env": dict(env)}).encode() + b"\n")
        except OSError:
            return None
        return process


# What torch's agent and rendezvous do otherwise here


def is_unreachable(error: Exception) -> bool:
    """Whether the store of the rendezvous gave no answer."""
    from torch.distributed.elastic.rendezvous.api import RendezvousConnectionError

    return isinstance(error, RendezvousConnectionError)


def is_signal(error: Exception) -> bool:
    """Whether the agent was asked to end."""
    from torch.distributed.elastic.multiprocessing.api import SignalException

    return isinstance(error, SignalException)


class AllDone(Exception):
    """All pods of the last round are done, so that there is no further one to join."""


def done_in_round(state: t.Any) -> set[t.Any]:
    """The pods whose processes have ended well in the current round. STATE is torch's, with a field of the launcher's own."""
    return {node for node, turn in getattr(state, "done", {}).items() if turn == state.round}


def has_succeeded(state: t.Any) -> bool:
    """Whether all pods of the last round are done. A closed rendezvous alone is no success: a pod that fails closes it, too."""
    return bool(getattr(state, "succeeded", False))


def waiting_lists(state: t.Any) -> list[set[t.Any]]:
    """The pods that wait for the next round; torch has had the second list since 2.2."""
    return [state.wait_list, getattr(state, "redundancy_list", set())]


def members(state: t.Any) -> set[t.Any]:
    """The pods that send heartbeats, in the round or waiting for the next one."""
    return {*state.participants}.union(*waiting_lists(state))


def host_name(node: t.Any) -> str:
    """The host name of a member of the rendezvous; torch before 2.0 calls it fqdn."""
    return str(node.addr if hasattr(node, "addr") else node.fqdn)


class PatientHolder(Torch):
    """The state of the rendezvous. While no agent could send a heartbeat, none counts as lost."""

    was_away = False
    patient_until = 0.0

    def sync(self) -> t.Any:
        try:
            return super().sync()
        except Exception as error:
            self.was_away = self.was_away or is_unreachable(error)
            raise

    def _sanitize(self) -> None:
        if self.was_away:
            window = self._settings.keep_alive_interval * self._settings.keep_alive_max_attempt
            # The others may have begun to wait for an answer just before there was one again.
            self.was_away, self.patient_until = False, time.monotonic() + window.total_seconds() + ANSWER
        if time.monotonic() >= self.patient_until:
            super()._sanitize()


class LeavingHandler(Torch):
    """The rendezvous, which logs its rounds, sees that one shrank, and can be left."""

    formed: tuple[int, int] = (0, 0)
    world: t.Mapping[str, t.Any] = {}
    told = 0.0
    keep_open = False
    unreachable = False

    def get_backend(self) -> str:
        return f"muster-{settings().backend}"

    def next_rendezvous(self) -> t.Any:
        result = self._join()
        rank, nodes = result[1:] if isinstance(result, tuple) else (result.rank, result.world_size)
        self.formed = (self._state_holder.state.round, nodes)
        self.world = {"round": self.formed[0], "group_rank": rank, "nodes": nodes, "formed": round(time.time(), 3)}
        self.tell()
        return result

    def _join(self) -> t.Any:
        """Join the next round. While pods of the current one are done there is none, however long the others work."""
        from torch.distributed.elastic.rendezvous import api as rendezvous

        while True:
            try:
                return super().next_rendezvous()
            except rendezvous.RendezvousError as error:
                state = self._state_holder.state
                if has_succeeded(state):
                    self.take_leave()
                    raise AllDone from error
                if state.closed:
                    raise rendezvous.RendezvousClosedError from error
                if not (isinstance(error, rendezvous.RendezvousTimeoutError) and done_in_round(state)):
                    raise

    def tell(self) -> None:
        """Log the round."""
        self.told = time.monotonic()
        say("rendezvous", **self.world)

    def num_nodes_waiting(self) -> int:
        """Ask for a new rendezvous, by any number but 0, when pods wait for one or have left this one."""
        try:
            waiting = int(super().num_nodes_waiting())
        except Exception as error:
            # The workers do not need etcd to go on, only to meet again.
            if not is_unreachable(error) or self._backend_name == "c10d":
                raise
            if not self.unreachable:
                say("rendezvous_unreachable")
            self.unreachable = True
            return 0
        if self.unreachable:
            say("rendezvous_reachable")
            self.unreachable = False
        if done_in_round(self._state_holder.state):
            # A new round would stop the last work of this one.
            waiting = 0
        if not waiting and self._has_shrunk():
            return 1
        if self.world["group_rank"] == 0 and time.monotonic() > self.told + REPEAT:
            self.tell()
        return waiting

    def _has_shrunk(self) -> bool:
        state, (turn, nodes) = self._state_holder.state, self.formed
        here = len({*state.participants, *done_in_round(state)})
        shrunk = not state.closed and (state.round != turn or not state.complete or here < nodes)
        if shrunk:
            say("membership", round=turn, nodes=nodes, left=max(1, nodes - here))
        return shrunk

    def shutdown(self) -> bool:
        if self.keep_open:
            self._stop_heartbeats()
            return False
        closed = bool(super().shutdown())
        # They end by themselves once they have read that.
        self._serve_while(lambda state: bool(done_in_round(state) & {*state.participants}))
        return closed

    def record_done(self) -> bool:
        """Record that the processes of this pod have ended well; whether those of all pods of the round have."""
        from torch.distributed.elastic.rendezvous.api import RendezvousClosedError

        me, (turn, nodes), holder = self._this_node, self.formed, self._state_holder

        def add(state: t.Any) -> bool:
            done = done_in_round(state)
            if state.closed or state.round != turn or me in done:
                return False
            state.done = dict.fromkeys([*done, me], turn)
            state.closed = state.succeeded = len(state.done) == nodes
            return True

        try:
            with self._heartbeat_lock:
                self._change(add)
        except Exception as error:
            # num_nodes_waiting, which the agent calls next, decides what that means.
            if not is_unreachable(error):
                raise
            return False
        if holder.state.closed and not has_succeeded(holder.state):
            self.leave_round()
            raise RendezvousClosedError
        return has_succeeded(holder.state)

    def _change(self, change: t.Callable[[t.Any], bool]) -> bool:
        """Change the shared state, again where another pod was faster; whether CHANGE, which is given the state, changed it."""
        holder = self._state_holder
        for _try in range(50):
            holder._last_sync_time = -1
            holder.sync()
            if not change(holder.state):
                return False
            holder.mark_dirty()
            if holder.sync():
                return True
            time.sleep(0.02)
        return False

    def leave_round(self) -> bool:
        """Give up the place at once, instead of when the heartbeats run out; whether there was one."""
        from torch.distributed.elastic.rendezvous import dynamic_rendezvous

        self._stop_heartbeats()
        me = self._this_node

        def leave(state: t.Any) -> bool:
            informed: frozenset[str] = getattr(state, "informed", frozenset())
            tells = has_succeeded(state) and host_name(me) not in informed
            if not tells and me not in members(state):
                return False
            if tells:
                state.informed = informed | {host_name(me)}
            state.participants.pop(me, None)
            for names in waiting_lists(state):
                names.discard(me)
            state.last_heartbeats.pop(me, None)
            dynamic_rendezvous._remove_participant_epilogue(state, self._settings)
            return True

        return self._change(leave)

    def take_leave(self) -> None:
        """Leave a run that has succeeded. The pod that serves the rendezvous stays until all others know that."""
        self.keep_open = True
        try:
            if not settings().hosts_store:
                self.leave_round()
            deadline = time.monotonic() + settings().join_timeout
            self._serve_while(lambda state: self._is_unknown(state, time.monotonic() < deadline))
        except Exception:  # noqa: BLE001  # nothing that happens to the rendezvous changes the result
            return

    def _is_unknown(self, state: t.Any, also_lost: bool) -> bool:
        """Whether another pod has yet to read that the run has succeeded.

        With ALSO_LOST that is also a pod which was lost after it was done, where each pod has to succeed and is therefore made again.
        """
        me = self._this_node
        unknown = {host_name(node) for node in state.done} - {host_name(me), *getattr(state, "informed", ())}
        return bool(members(state) - {me}) or (also_lost and settings().again == EXIT_AGAIN and bool(unknown))

    def _serve_while(self, is_needed: t.Callable[[t.Any], bool]) -> None:
        """Stay, if this pod serves the rendezvous, while IS_NEEDED says of its state that another pod has yet to read it."""
        holder = self._state_holder
        while settings().hosts_store:
            with self._heartbeat_lock:
                holder._last_sync_time = -1
                holder.sync()
            if not is_needed(holder.state):
                return
            time.sleep(settings().poll)


class LeavingAgent(Torch):
    """torchrun's agent, which leaves the rendezvous when it is asked to end, and does not close it because it failed itself.

    It ends when all pods of the round are done, and watches the membership until then.
    """

    reserve = Reserve()
    # What torch says of processes that have ended well.
    ended: t.Any = None

    @property
    def handler(self) -> LeavingHandler:
        """The rendezvous of this agent."""
        return t.cast("LeavingHandler", self._worker_group.spec.rdzv_handler)

    def _rendezvous(self, worker_group: t.Any) -> t.Any:
        self.ended = None
        self.reserve.prepare(worker_group.spec.local_world_size)
        return super()._rendezvous(worker_group)

    def _monitor_workers(self, worker_group: t.Any) -> t.Any:
        from torch.distributed.elastic.agent.server.api import WorkerState

        if self.ended is None:
            result = super()._monitor_workers(worker_group)
            if result.state != WorkerState.SUCCEEDED:
                return result
            self.ended = result
            say("finished", round=self.handler.formed[0])
        if self.handler.record_done():
            return self.ended
        return dataclasses.replace(self.ended, state=WorkerState.HEALTHY)

    def _exit_barrier(self) -> None:
        """Leave the other agents, all of which are done; after a failure there is no agent to wait for."""
        if self.ended is not None:
            signal.signal(signal.SIGTERM, lambda *_signal: os._exit(0))
            self.handler.take_leave()

    def _invoke_run(self, *args: t.Any, **kwargs: t.Any) -> t.Any:
        try:
            return super()._invoke_run(*args, **kwargs)
        except Exception as error:
            if is_signal(error):
                if self.ended is not None and has_succeeded(self.handler._state_holder.state):
                    self._exit_barrier()
                    return self.ended
                try:
                    if self.handler.leave_round():
                        say("left", round=self.handler.formed[0])
                except Exception as second:  # noqa: BLE001  # the signal ends the pod, whatever the rendezvous says
                    say("left_without_notice", reason=str(second))
            # To close the rendezvous is to end the job for all pods. Since 2.4 torch does so whatever ended the agent.
            self.handler.keep_open = True
            raise


def create_handler(params: t.Any) -> t.Any:
    """Make the rendezvous that torchrun's options PARAMS describe, as torch's own factory does."""
    from torch.distributed.elastic.rendezvous import dynamic_rendezvous as dynamic

    if settings().backend == "c10d":
        from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import create_backend
    else:
        from torch.distributed.elastic.rendezvous.etcd_rendezvous_backend import create_backend

        params.config.setdefault("read_timeout", str(ANSWER))
    backend, store = create_backend(params)

    def seconds(name: str, default: int) -> timedelta:
        return timedelta(seconds=params.get_as_int(name, default))

    rendezvous = dynamic.RendezvousSettings(
        params.run_id,
        params.min_nodes,
        params.max_nodes,
        dynamic.RendezvousTimeout(seconds("join_timeout", 600), seconds("last_call_timeout", 30), seconds("close_timeout", 30)),
        keep_alive_interval=seconds("keep_alive_interval", 5),
        keep_alive_max_attempt=params.get_as_int("keep_alive_max_attempt", 3),
    )
    holder_type = type("Holder", (PatientHolder, dynamic._BackendRendezvousStateHolder), {})
    handler_type: t.Any = type("Handler", (LeavingHandler, dynamic.DynamicRendezvousHandler), {})
    node = handler_type._node_desc_generator.generate()
    holder = holder_type(backend, rendezvous, settings().poll)
    return handler_type(node, rendezvous, backend.name, store, holder)


def use_plain_store() -> None:
    """Have torch 2.4 and newer do without libuv where it was built without, as Debian does."""
    import torch.distributed as dist

    try:
        dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    except RuntimeError as error:
        if "libuv" not in str(error):
            raise
        from torch.distributed.elastic.rendezvous import c10d_rendezvous_backend as c10d

        os.environ["USE_LIBUV"] = "0"
        c10d.TCPStore = functools.partial(dist.TCPStore, use_libuv=False)


def install() -> None:
    """Teach torch the rendezvous backends muster-c10d and muster-etcd-v2, and the agent to leave."""
    from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
    from torch.distributed.elastic.multiprocessing import api as processes
    from torch.distributed.elastic.rendezvous import api as rendezvous
    from torch.distributed.elastic.rendezvous import dynamic_rendezvous as dynamic
    from torch.distributed.launcher import api as launcher

    # Since 2.4 all rounds would share the store of the first one, whose pod may be lost meanwhile.
    os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    use_plain_store()
    # Since Python 3.11 an enumeration leaves out its zero, and torch before 2.0 then finds nothing for "no redirection".
    from_str = processes.Std.from_str
    processes.Std.from_str = staticmethod(lambda text: from_str(text) or processes.Std.NONE)
    rendezvous.rendezvous_handler_registry.register(f"muster-{settings().backend}", create_handler)
    launcher.LocalElasticAgent = type("Agent", (LeavingAgent, LocalElasticAgent), {})
    own_popen = processes.SubprocessHandler._popen

    def popen(self: t.Any, args: t.Any, env: t.Any) -> t.Any:
        if list(args[:2]) != [sys.executable, "-u"] or args[2].startswith("-"):
            return own_popen(self, args, env)
        ready = None if self._stdout or self._stderr else LeavingAgent.reserve.start(args, env)
        return ready or own_popen(self, (*args[:2], os.path.abspath(__file__), SCRIPT, *args[2:]), env)

    processes.SubprocessHandler._popen = popen
    own_close = processes.SubprocessContext._close
    # After this time the processes are killed, where the pod is to end and at each change of membership.
    processes.SubprocessContext._close = lambda self, death_sig, **_timeout: own_close(self, death_sig, settings().grace)
    delay, poll = dynamic._delay, settings().poll
    dynamic._delay = lambda seconds: delay(seconds if isinstance(seconds, tuple) else min(seconds, poll))
    signal.signal(signal.SIGTERM, processes._terminate_process_handler)


# The run


def launch(arguments: t.Sequence[str]) -> int | None:
    """Run the agent until the script has ended; an exit status, or None where the rendezvous was lost."""
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.elastic.rendezvous import api as rendezvous

    own = settings()
    host = [f"is_host={int(own.hosts_store)}"] if own.backend == "c10d" else []
    conf = ",".join(part for part in (own.conf, *host) if part)
    options = [f"--rdzv_backend=muster-{own.backend}", f"--rdzv_conf={conf}"]
    try:
        run.run(run.parse_args([*options, *arguments]))
    except ChildFailedError as error:
        leave(EXIT_SCRIPT_FAILED, f"the script failed more often than max_restarts allows: {describe_first_failure(error)}")
    except AllDone:
        say("closed", reason="the others are done")
    except rendezvous.RendezvousClosedError:
        leave(EXIT_SCRIPT_FAILED, "the rendezvous was closed before all pods were done: another one failed", "closed")
    except SignalException:
        return EXIT_STOPPED
    except Exception as error:  # noqa: BLE001  # torch has no common class for errors of a rendezvous
        traceback.print_exc()
        say("rendezvous_lost", reason=f"{type(error).__name__}: {error}"[:300])
        return None
    return 0


def describe_first_failure(error: t.Any) -> str:
    """Say which rank failed first, and how."""
    try:
        rank, failure = error.get_first_failure()
        message = failure.message["message"] if isinstance(failure.message, dict) else str(failure.message)
        # torch's words for a process that left no error.
        parts = [f"rank {rank} ended with {failure.exitcode}", "" if "elastic/errors.html" in message else message[:500]]
        return ": ".join(filter(None, [*parts, exhausted(failure.exitcode, message)]))
    except Exception:  # noqa: BLE001  # the form of a failure differs between versions of torch
        return str(error)[:500]


def exhausted(code: int, message: str) -> str:
    """Say of what there was too little, if it was that: shared memory, memory or disk."""
    shared, no_space = os.statvfs(SHM), "No space left on device" in message
    words = ("shared memory", "Bus error", "/torch_", SHM)
    if code == -signal.SIGBUS or any(word in message for word in words) or (no_space and not shared.f_bavail):
        return f"{SHM} has {shared.f_blocks * shared.f_frsize >> 20} MiB, which option shm_size sets"
    if no_space:
        return "a volume, or the disk of the node, is full"
    if code == -signal.SIGKILL and killed_for_memory():
        return "the pod has used more memory than its limit in option resources"
    return ""


def killed_for_memory() -> bool:
    """Whether the kernel has ended a process of this container because of its memory limit."""
    for path in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        with contextlib.suppress(OSError), open(path) as file:
            if any(line.startswith("oom_kill ") and line.split()[1] != "0" for line in file):
                return True
    return False


def wait_for_peers(service: str, seconds: float) -> None:
    """Let the others end before pod 0, with which the job is done: none is cut off and loses its log."""
    deadline = time.monotonic() + seconds
    while service and settings().rank == 0 and time.monotonic() < deadline:
        try:
            if len({entry[4][0] for entry in socket.getaddrinfo(service, None)}) <= 1:
                return
        except OSError:
            return
        time.sleep(0.5)


def run_until_done(arguments: t.Sequence[str]) -> t.NoReturn:
    """Begin again in place where the rendezvous was lost."""
    own = settings()
    for _try in range(TRIES):
        code = launch(arguments)
        if code is not None:
            if code == 0:
                say("done")
                wait_for_peers(own.service, PEERS_END)
            end(code)
        if own.hosts_store:
            leave(own.again, "the rendezvous that this pod hosts was lost")
        wait_for_endpoint()
    leave(own.again, f"the rendezvous was lost {TRIES} times")


def main() -> None:
    """Run the script that the command line names, or stand by to become one."""
    arguments = sys.argv[1:]
    if arguments[0] == STANDBY:
        stand_by()
        return
    if arguments[0] == SCRIPT:
        become(arguments[1:])
        return
    signal.signal(signal.SIGTERM, lambda *_signal: os._exit(EXIT_STOPPED))
    check_script(arguments[0])
    wait_for_endpoint()
    check_etcd()
    try:
        install()
    except Exception as error:  # noqa: BLE001  # whatever a torch that is too old raises
        leave(EXIT_MISCONFIGURED, f"this image's torch cannot be used: {type(error).__name__}: {error}")
    run_until_done(arguments)


if __name__ == "__main__":
    main()

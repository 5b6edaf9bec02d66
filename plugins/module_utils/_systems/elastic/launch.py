# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What every pod of an elastic job runs: torchrun's own agent with a rendezvous that knows when somebody has left.

torchrun alone learns of a lost pod when collectives fail, which costs every other pod one of its restarts, and keeps
the place of one that was asked to leave until its heartbeats run out. The agent here leaves the rendezvous when it is
asked to end, takes a shrunk round for the change of membership that it is, stays through a short outage of etcd, and
begins again in place where the rendezvous itself was lost. While pods meet, the processes to come import torch already.
"""

from __future__ import annotations

EXIT_SCRIPT_FAILED = 70
EXIT_MISCONFIGURED = 78
# What MUSTER_EXIT_AGAIN is where only an exit status from 128 on means that a pod is to be made again.
EXIT_AGAIN = 175

LOG_PREFIX = "muster.ml/elastic "

LAUNCHER = r'''"""launch.py SCRIPT [ARGUMENT...]: torchrun, configured by its own PET_* variables.

Exit status: 0 done; 70 the script failed more often than PET_MAX_RESTARTS; 78 wrong configuration; 143 asked to end;
anything else, such as MUSTER_EXIT_AGAIN: start me again.
"""
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import time
import traceback

INDEX = int(os.environ.get("JOB_COMPLETION_INDEX", "0"))
BACKEND = os.environ["PET_RDZV_BACKEND"]
HOST, PORT = os.environ["PET_RDZV_ENDPOINT"].rsplit(":", 1)
CONF = os.environ.get("PET_RDZV_CONF", "")
JOIN_TIMEOUT = int(dict(part.split("=", 1) for part in CONF.split(",") if part).get("join_timeout", "600"))
HOSTS_STORE = BACKEND == "c10d" and INDEX == 0
TRIES = 20
# Seconds between two looks at the rendezvous while waiting for it; torch itself takes one.
POLL = min(1.0, float(os.environ.get("PET_MONITOR_INTERVAL", "1")))
REPEAT = 15
# Seconds for an answer of etcd. torch takes 60, and so long waits who connects to the old address of a member that is made again.
ANSWER = 5
WARM_START = os.environ.get("MUSTER_WARM_START") == "1"
AGAIN = int(os.environ.get("MUSTER_EXIT_AGAIN", "1"))
STANDBY = "--standby"


def say(event, **fields):
    fields = {"event": event, "index": INDEX, "time": round(time.time(), 3), **fields}
    # In one piece: the script writes to the same place.
    print("muster.ml/elastic " + json.dumps(fields) + "\n", end="", flush=True)


def leave(code, reason):
    say("failed", reason=reason)
    try:
        with open("/dev/termination-log", "w") as log:
            log.write(reason + "\n")
    except OSError:
        pass
    sys.stdout.flush()
    os._exit(code)


def wait_for_endpoint():
    """torchrun gives up at once where a name does not resolve, and in a new job it does not yet."""
    deadline, told = time.monotonic() + JOIN_TIMEOUT, False
    while True:
        try:
            if HOSTS_STORE:
                socket.getaddrinfo(HOST, int(PORT))
            else:
                socket.create_connection((HOST, int(PORT)), timeout=2).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                leave(AGAIN, f"the rendezvous at {HOST}:{PORT} did not answer for {JOIN_TIMEOUT} s: {error}")
            if not told:
                say("waiting", reason=f"{HOST}:{PORT}: {error}")
                told = True
            time.sleep(0.5)


def stand_by():
    """A process that has torch imported and waits to be told which script it is."""
    # Threads that torch starts must not get the signals that are for the script.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    import torch.distributed

    order = sys.stdin.readline()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    if not order:
        return
    order = json.loads(order)
    os.environ.clear()
    os.environ.update(order["env"])
    sys.argv = order["argv"]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    with open("/proc/self/comm", "w") as name:
        name.write(os.path.basename(sys.argv[0])[:15])
    runpy.run_path(sys.argv[0], run_name="__main__")


class Reserve:
    """Processes that stand by."""

    def __init__(self):
        self.processes = []

    def prepare(self, count):
        self.processes = [process for process in self.processes if process.poll() is None]
        command = [sys.executable, "-u", os.path.abspath(__file__), STANDBY]
        while WARM_START and len(self.processes) < count:
            self.processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True))

    def start(self, args, env):
        """One of them becomes the script, None where it has to be started anew."""
        if not self.processes or list(args[:2]) != [sys.executable, "-u"] or not args[2].endswith(".py"):
            return None
        process = self.processes.pop()
        try:
            process.stdin.write(json.dumps({"argv": list(args[2:]), "env": env}).encode() + b"\n")
            process.stdin.close()
        except OSError:
            return None
        return process


def install():
    """Teach torch the rendezvous backends muster-c10d and muster-etcd-v2, and the agent to leave."""
    from datetime import timedelta

    from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
    from torch.distributed.elastic.multiprocessing import api as processes
    from torch.distributed.elastic.rendezvous import api as rendezvous
    from torch.distributed.elastic.rendezvous import dynamic_rendezvous as dynamic
    from torch.distributed.launcher import api as launcher

    class Holder(dynamic._BackendRendezvousStateHolder):
        """Nobody is lost only because nobody could send a heartbeat."""

        was_away = False
        patient_until = 0.0

        def sync(self):
            try:
                return super().sync()
            except rendezvous.RendezvousConnectionError:
                self.was_away = True
                raise

        def _sanitize(self):
            if self.was_away:
                window = self._settings.keep_alive_interval * self._settings.keep_alive_max_attempt
                # The others may have begun to wait for an answer just before there was one again.
                self.was_away, self.patient_until = False, time.monotonic() + window.total_seconds() + ANSWER
            if time.monotonic() >= self.patient_until:
                super()._sanitize()

    class Handler(dynamic.DynamicRendezvousHandler):
        formed = None
        keep_open = False
        unreachable = False

        def get_backend(self):
            return "muster-" + BACKEND

        def next_rendezvous(self):
            result = super().next_rendezvous()
            rank, nodes = result[1:] if isinstance(result, tuple) else (result.rank, result.world_size)
            self.formed = (self._state_holder.state.round, nodes)
            self.world = {"round": self.formed[0], "group_rank": rank, "nodes": nodes, "formed": round(time.time(), 3)}
            self.tell()
            return result

        def tell(self):
            """Whoever reads only the end of a log finds the round there, too."""
            self.told = time.monotonic()
            say("rendezvous", **self.world)

        def num_nodes_waiting(self):
            try:
                waiting = super().num_nodes_waiting()
            except rendezvous.RendezvousConnectionError:
                if self._backend_name == "c10d":
                    raise
                # The workers do not need it to go on, only to meet again.
                if not self.unreachable:
                    say("rendezvous_unreachable")
                self.unreachable = True
                return 0
            if self.unreachable:
                say("rendezvous_reachable")
                self.unreachable = False
            state = self._state_holder.state
            turn, nodes = self.formed
            if not waiting and not state.closed and (
                state.round != turn or not state.complete or len(state.participants) < nodes
            ):
                say("membership", round=turn, nodes=nodes, left=max(1, nodes - len(state.participants)))
                return 1
            if self.world["group_rank"] == 0 and time.monotonic() > self.told + REPEAT:
                self.tell()
            return waiting

        def shutdown(self):
            if self.keep_open:
                self._stop_heartbeats()
                return False
            return super().shutdown()

        def leave_round(self):
            """Give up the place at once, instead of when the heartbeats run out."""
            self._stop_heartbeats()
            me, holder = self._this_node, self._state_holder
            for _try in range(50):
                holder._last_sync_time = -1
                holder.sync()
                state = holder.state
                if me not in state.participants and me not in state.wait_list:
                    return
                state.participants.pop(me, None)
                state.wait_list.discard(me)
                state.last_heartbeats.pop(me, None)
                dynamic._remove_participant_epilogue(state, self._settings)
                holder.mark_dirty()
                if holder.sync():
                    say("left", round=state.round)
                    return
                time.sleep(0.02)

    reserve = Reserve()

    class Agent(LocalElasticAgent):
        def _rendezvous(self, worker_group):
            reserve.prepare(worker_group.spec.local_world_size)
            return super()._rendezvous(worker_group)

        @property
        def handler(self):
            return self._worker_group.spec.rdzv_handler

        def _invoke_run(self, *args, **kwargs):
            try:
                return super()._invoke_run(*args, **kwargs)
            except processes.SignalException:
                try:
                    self.handler.leave_round()
                except Exception as error:
                    say("left_without_notice", reason=str(error))
                raise

        def run(self, *args, **kwargs):
            try:
                return super().run(*args, **kwargs)
            except processes.SignalException:
                raise
            except Exception:
                # To close it is to end the job for everybody.
                self.handler.keep_open = True
                raise

    def create(params):
        if BACKEND == "c10d":
            from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import create_backend
        else:
            from torch.distributed.elastic.rendezvous.etcd_rendezvous_backend import create_backend

            params.config.setdefault("read_timeout", str(ANSWER))
        backend, store = create_backend(params)

        def seconds(name, default):
            return timedelta(seconds=params.get_as_int(name, default))

        timeout = dynamic.RendezvousTimeout(
            seconds("join_timeout", 600), seconds("last_call_timeout", 30), seconds("close_timeout", 30)
        )
        settings = dynamic.RendezvousSettings(
            params.run_id,
            params.min_nodes,
            params.max_nodes,
            timeout,
            keep_alive_interval=seconds("keep_alive_interval", 5),
            keep_alive_max_attempt=params.get_as_int("keep_alive_max_attempt", 3),
        )
        node = Handler._node_desc_generator.generate()
        holder = Holder(backend, settings, POLL)
        return Handler(node, settings, backend.name, store, holder)

    # Since Python 3.11 an enumeration leaves out its zero, and torch before 2.0 then finds nothing for "no redirection".
    from_str = processes.Std.from_str
    processes.Std.from_str = staticmethod(lambda text: from_str(text) or processes.Std.NONE)
    rendezvous.rendezvous_handler_registry.register("muster-" + BACKEND, create)
    launcher.LocalElasticAgent = Agent
    processes_popen = processes.SubprocessHandler._popen

    def popen(self, args, env):
        ready = None if self._stdout or self._stderr else reserve.start(args, env)
        return ready or processes_popen(self, args, env)

    processes.SubprocessHandler._popen = popen
    delay = dynamic._delay
    dynamic._delay = lambda seconds: delay(seconds if isinstance(seconds, tuple) else min(seconds, POLL))
    signal.signal(signal.SIGTERM, processes._terminate_process_handler)


def launch(arguments):
    """Run the agent until the script has ended; an exit status, or None where the rendezvous was lost."""
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.elastic.rendezvous import api as rendezvous

    conf = ",".join(part for part in (CONF, f"is_host={int(HOSTS_STORE)}" if BACKEND == "c10d" else "") if part)
    options = [f"--rdzv_backend=muster-{BACKEND}", f"--rdzv_conf={conf}"]
    try:
        run.run(run.parse_args(options + arguments))
        return 0
    except ChildFailedError as error:
        leave(70, "the script failed more often than max_restarts allows: " + first_failure(error))
    except rendezvous.RendezvousClosedError:
        say("closed", reason="the others are done")
        return 0
    except SignalException:
        return 143
    except Exception as error:
        traceback.print_exc()
        say("rendezvous_lost", reason=f"{type(error).__name__}: {error}"[:300])
        return None


def first_failure(error):
    try:
        rank, failure = error.get_first_failure()
        return f"rank {rank} ended with {failure.exitcode}: {str(failure.message)[:500]}"
    except Exception:
        return str(error)[:500]


def wait_for_peers(service, seconds):
    """The job is done when pod 0 is; let the others end before it, so that none is cut off and loses its log."""
    deadline = time.monotonic() + seconds
    while service and INDEX == 0 and time.monotonic() < deadline:
        try:
            if len({entry[4][0] for entry in socket.getaddrinfo(service, None)}) <= 1:
                return
        except OSError:
            return
        time.sleep(0.5)


def main():
    if sys.argv[1] == STANDBY:
        return stand_by()
    signal.signal(signal.SIGTERM, lambda *_signal: os._exit(143))
    if not os.access(sys.argv[1], os.R_OK):
        leave(78, f"the script {sys.argv[1]} cannot be read in this pod")
    wait_for_endpoint()
    try:
        install()
    except Exception as error:
        leave(78, f"this image's torch cannot be used: {type(error).__name__}: {error}")
    for _try in range(TRIES):
        code = launch(sys.argv[1:])
        if code is not None:
            if code == 0:
                say("done")
                wait_for_peers(os.environ.get("MUSTER_SERVICE"), 10)
            sys.stdout.flush()
            os._exit(code)
        if HOSTS_STORE:
            leave(AGAIN, "the rendezvous that this pod hosts was lost")
        wait_for_endpoint()
    leave(AGAIN, f"the rendezvous was lost {TRIES} times")


if __name__ == "__main__":
    main()
'''

FETCH_SCRIPT = r"""set -eu
# The image's own client fetches the script: aws or boto3 for s3://, gcloud, gsutil or google-cloud-storage for gs://.
url=$1 to=$2
case $url in
s3://*)
    if command -v aws >/dev/null; then exec aws s3 cp --no-progress "$url" "$to"; fi
    exec python3 -c 'import sys, boto3
bucket, key = sys.argv[1][5:].split("/", 1)
boto3.client("s3").download_file(bucket, key, sys.argv[2])' "$url" "$to"
    ;;
gs://*)
    if command -v gcloud >/dev/null; then exec gcloud storage cp "$url" "$to"; fi
    if command -v gsutil >/dev/null; then exec gsutil cp "$url" "$to"; fi
    exec python3 -c 'import sys
from google.cloud import storage
bucket, key = sys.argv[1][5:].split("/", 1)
storage.Client().bucket(bucket).blob(key).download_to_filename(sys.argv[2])' "$url" "$to"
    ;;
esac
"""

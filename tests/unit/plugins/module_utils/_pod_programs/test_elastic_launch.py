# SPDX-License-Identifier: GPL-3.0-or-later
"""elastic_launch.py, run as pods run it, with as much of a torch as it touches. The scenario elastic runs it with the real one."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import sys
import typing as t
import zipfile
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._manifests.programs import program
from ansible_collections.muster.ml.plugins.module_utils._pod_programs import elastic_launch
from ansible_collections.muster.ml.tests.unit.fakes.ports import refused_port
from ansible_collections.muster.ml.tests.unit.fakes.served import Answering, Served
from ansible_collections.muster.ml.tests.unit.fakes.triton import certificate_in

# The names that torch 1.10 to 2.15 have. Its agent runs the script itself, so that a test can see the rendezvous from it, and then goes
# on as torch's: it looks at the processes, which have ended well unless the script says otherwise, and at the rendezvous. The other pod,
# "you", is done from the beginning; what it does later is in the holder's list of news, one entry for each look at the state.
TORCH = {
    "distributed/__init__.py": """
import os

class TCPStore:
    def __init__(self, host, port, is_master, wait_for_workers=False, use_libuv=True):
        if use_libuv and os.environ.get("BUILT_WITHOUT_LIBUV"):
            raise RuntimeError("use_libuv was requested but PyTorch was build without libuv support")
""",
    "distributed/run.py": """
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.elastic.rendezvous import api as rendezvous
from torch.distributed.launcher import api as launcher

class Params:
    run_id, min_nodes, max_nodes = "run", 1, 3
    def __init__(self):
        self.config = {}
    def get_as_int(self, name, default):
        return default

def parse_args(arguments):
    return arguments

def run(arguments):
    backend, conf, script, *rest = arguments
    handler = rendezvous.rendezvous_handler_registry.known[backend.partition("=")[2]](Params())
    print("conf", conf, flush=True)
    agent = launcher.LocalElasticAgent(handler, script)
    try:
        agent.run()
        if agent.failed:
            raise ChildFailedError()
    finally:
        print("closes" if handler.shutdown() else "stays open", flush=True)
""",
    "distributed/launcher/api.py": "",
    "distributed/elastic/agent/server/api.py": """
import dataclasses
import enum

class WorkerState(enum.Enum):
    HEALTHY, SUCCEEDED, FAILED = range(3)

@dataclasses.dataclass
class RunResult:
    state: WorkerState
""",
    "distributed/elastic/agent/server/local_elastic_agent.py": """
import time
import types
from torch.distributed.elastic.agent.server.api import RunResult, WorkerState

class LocalElasticAgent:
    failed = False
    working = 0
    def __init__(self, handler, script):
        self.script = script
        self._worker_group = types.SimpleNamespace(spec=types.SimpleNamespace(rdzv_handler=handler, local_world_size=1))
    def _rendezvous(self, worker_group):
        return self.handler.next_rendezvous()
    def _monitor_workers(self, worker_group):
        self.working -= 1
        if self.working >= 0:
            return RunResult(WorkerState.HEALTHY)
        return RunResult(WorkerState.FAILED if self.failed else WorkerState.SUCCEEDED)
    def _exit_barrier(self):
        raise AssertionError("torch's barrier is over after 300 seconds")
    def _invoke_run(self):
        self._rendezvous(self._worker_group)
        with open(self.script) as file:
            exec(file.read(), {
                "agent": self, "handler": self.handler, "holder": self.handler._state_holder,
                "state": self.handler._state_holder.state, "news": self.handler._state_holder.news})
        while True:
            result = self._monitor_workers(self._worker_group)
            if result.state != WorkerState.HEALTHY:
                self._exit_barrier()
                return result
            if self.handler.num_nodes_waiting() > 0:
                self._rendezvous(self._worker_group)
            time.sleep(0.01)
    def run(self):
        try:
            self._invoke_run()
        finally:
            # As torch 2.4 and newer, whatever it was.
            print("closes" if self.handler.shutdown() else "stays open", flush=True)
""",
    "distributed/elastic/multiprocessing/api.py": """
class SignalException(Exception):
    pass

class Std:
    NONE = 0
    from_str = staticmethod(lambda text: None)

class SubprocessHandler:
    def _popen(self, args, env):
        print("popen", *[arg.rpartition("/")[2] for arg in args], flush=True)

class SubprocessContext:
    def _close(self, death_sig, timeout=30):
        print("killed after", timeout, flush=True)

def _terminate_process_handler(number, frame):
    raise SignalException(number)
""",
    "distributed/elastic/multiprocessing/errors.py": """
import types

class ChildFailedError(Exception):
    failure = types.SimpleNamespace(exitcode=9, message="out of memory")
    def get_first_failure(self):
        return 3, self.failure
""",
    "distributed/elastic/rendezvous/api.py": """
class RendezvousError(Exception):
    pass

class RendezvousClosedError(RendezvousError):
    pass

class RendezvousConnectionError(RendezvousError):
    pass

class RendezvousTimeoutError(RendezvousError):
    pass

class rendezvous_handler_registry:
    known = {}
    @classmethod
    def register(cls, name, create):
        cls.known[name] = create
""",
    "distributed/elastic/rendezvous/c10d_rendezvous_backend.py": """
import types
from torch.distributed import TCPStore

def create_backend(params):
    return types.SimpleNamespace(name="c10d"), TCPStore("127.0.0.1", 0, True)
""",
    "distributed/elastic/rendezvous/etcd_rendezvous_backend.py": """
import types

def create_backend(params):
    print("read_timeout", params.config["read_timeout"], flush=True)
    return types.SimpleNamespace(name="etcd-v2"), None
""",
    "distributed/elastic/rendezvous/dynamic_rendezvous.py": """
import threading
import types
from torch.distributed.elastic.rendezvous.api import RendezvousClosedError, RendezvousConnectionError

class Node(str):
    fqdn = property(str)

def _delay(seconds):
    pass

def _remove_participant_epilogue(state, settings):
    state.complete = False

def RendezvousTimeout(*timeouts):
    return timeouts

def RendezvousSettings(run_id, least, most, timeout, **others):
    return types.SimpleNamespace(**others)

class _BackendRendezvousStateHolder:
    reachable = True
    sanitized = 0
    def __init__(self, backend, settings, poll):
        self._settings = settings
        self.news = []
        self.state = types.SimpleNamespace(
            round=4, complete=True, closed=False, participants={Node("me"): 0, Node("you"): 1}, wait_list=set(),
            last_heartbeats={}, done={Node("you"): 4})
    def sync(self):
        if not self.reachable:
            raise RendezvousConnectionError("no route")
        if self.news:
            exec(self.news.pop(0), {"state": self.state, "Node": Node})
        self._sanitize()
        return True
    def _sanitize(self):
        self.sanitized += 1
    def mark_dirty(self):
        pass

class DynamicRendezvousHandler:
    class _node_desc_generator:
        generate = staticmethod(lambda: Node("me"))
    errors = ()
    def __init__(self, node, settings, name, store, holder):
        self._heartbeat_lock = threading.Lock()
        self._this_node, self._settings, self._backend_name, self._state_holder = node, settings, name, holder
    def next_rendezvous(self):
        self._state_holder.sync()
        if self.errors:
            raise self.errors.pop()
        if self._state_holder.state.closed:
            raise RendezvousClosedError("closed")
        return None, 0, 2
    def num_nodes_waiting(self):
        self._state_holder.sync()
        return len(self._state_holder.state.wait_list)
    def shutdown(self):
        self._state_holder.state.closed = True
        return True
    def _stop_heartbeats(self):
        pass
""",
}
LOST = "from torch.distributed.elastic.rendezvous.api import RendezvousConnectionError as Lost\nraise Lost('no route')\n"
# The other pod leaves the rendezvous, which it does when it knows that all are done, or that it is closed; is the last one to be done.
LEAVES = "state.participants.pop('you')"
END = "state.done[Node('you')] = 4; state.closed = state.succeeded = True"


class Ended(t.NamedTuple):
    status: int
    events: list[dict[str, t.Any]]
    lines: list[str]
    last_words: str

    @property
    def said(self) -> list[str]:
        return [event["event"] for event in self.events]

    def event(self, name: str) -> dict[str, t.Any]:
        (found,) = [event for event in self.events if event["event"] == name]
        return found


class Pod:
    """A place that looks to the program like a pod."""

    def __init__(self, here: Path, port: int) -> None:
        self.here = here
        self.env = {
            "PYTHONPATH": str(here), "PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": f"127.0.0.1:{port}",
            "PET_RDZV_CONF": "join_timeout=0", "PET_MONITOR_INTERVAL": "0.01",
        }  # fmt: skip
        # The only change: a pod's own place for its last words.
        text = program(elastic_launch).replace(elastic_launch.TERMINATION_LOG, str(here / "termination-log"))
        (here / "launch.py").write_text(text)
        for name, code in TORCH.items():
            path = here / "torch" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code)
        (here / "torch/distributed/launcher/api.py").write_text(
            "from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent\n"
        )

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-u", str(self.here / "launch.py"), *arguments]

    def run(self, script: str, **env: str) -> Ended:
        (self.here / "train.py").write_text(f"import os\n{script}")
        return self.execute(str(self.here / "train.py"), **env)

    def execute(self, *arguments: str, **env: str) -> Ended:
        done = subprocess.run(self.command(*arguments), env={**self.env, **env}, capture_output=True, text=True, check=False, timeout=120)
        lines, prefix = done.stdout.splitlines(), elastic_launch.LOG_PREFIX
        said = [json.loads(line[len(prefix) :]) for line in lines if line.startswith(prefix)]
        words = self.here / "termination-log"
        return Ended(done.returncode, said, lines, words.read_text() if words.exists() else "")


@pytest.fixture
def pod(tmp_path: Path) -> t.Iterator[Pod]:
    with socket.create_server(("127.0.0.1", 0)) as store:
        yield Pod(tmp_path, store.getsockname()[1])


@contextlib.contextmanager
def etcd(pod: Pod, status: int = 200) -> t.Iterator[None]:
    """Let the pods meet at an etcd that answers so to the question about its v2 API."""

    class Etcd(Answering):
        def do_GET(self) -> None:
            self.send_error(status if self.path == "/v2/keys" else 500)

    served = Served(Etcd)
    pod.env |= {"PET_RDZV_BACKEND": "etcd-v2", "PET_RDZV_ENDPOINT": f"127.0.0.1:{served.port}"}
    yield
    served.stop()


def test_a_script_that_ends_well(pod: Pod) -> None:
    ended = pod.run(f"news += ['', '', \"{LEAVES}\"]", MUSTER_SERVICE="no.such.service.invalid")
    assert ended.status == 0
    assert ended.said == ["rendezvous", "finished", "done"]
    assert ended.event("rendezvous").items() >= {"round": 4, "group_rank": 0, "nodes": 2, "index": 0}.items()
    assert "conf --rdzv_conf=join_timeout=0,is_host=1" in ended.lines
    assert ended.last_words == ""


def test_a_script_that_failed_too_often(pod: Pod) -> None:
    ended = pod.run(f"agent.failed = True\nnews += ['', \"{LEAVES}\"]")
    assert ended.status == elastic_launch.EXIT_SCRIPT_FAILED
    assert "max_restarts allows: rank 3 ended with 9: out of memory" in ended.last_words
    assert "closes" in ended.lines


LINK = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"  # torch 2.6, errors/__init__.py


@pytest.mark.parametrize(
    ("code", "message", "told"),
    [
        (1, {"message": "ValueError: no data", "extraInfo": {"timestamp": "1"}}, "ended with 1: ValueError: no data"),
        (1, LINK, "ended with 1"),
        (-7, "Signal 7 (SIGBUS) received by PID 12", "SIGBUS.* MiB, which option shm_size sets"),
        (1, "RuntimeError: unable to write to file </torch_9_1>: No space left on device (28)", "option shm_size sets"),
        (1, "OSError: [Errno 28] No space left on device: '/workspace/a'", "a volume, or the disk of the node, is full"),
    ],
)
def test_the_reason_is_what_the_script_said_or_what_there_was_too_little_of(pod: Pod, code: int, message: t.Any, told: str) -> None:
    script = "from torch.distributed.elastic.multiprocessing.errors import ChildFailedError as E\nagent.failed = True\n"
    ended = pod.run(f"{script}E.failure.exitcode, E.failure.message = {code}, {message!r}\nnews += ['', \"{LEAVES}\"]")
    assert re.search(f"max_restarts allows: rank 3 .*{told}$", ended.last_words.strip())


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("raise ValueError('no data')", "ValueError: no data"),
        ("import sys\nsys.exit('no data')", "SystemExit: no data"),
        ("import sys\nsys.exit(3)", None),
        ("print('fine')", None),
    ],
)
def test_a_script_leaves_its_error_where_torch_reads_it(pod: Pod, script: str, said: str | None) -> None:
    (pod.here / "train.py").write_text(script)
    error = pod.here / "error.json"
    pod.execute(elastic_launch.SCRIPT, str(pod.here / "train.py"), TORCHELASTIC_ERROR_FILE=str(error))
    found = json.loads(error.read_text())["message"] if error.exists() else {}
    assert found.get("message") == said
    assert not found or found["extraInfo"]["timestamp"].isdigit()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("run.sh", b"#!/bin/sh\npython train.py\n", "invalid syntax"),
        ("train.tar.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00", "null bytes"),
        ("train.py", b"def f(:\n", r"invalid syntax \(train.py, line 1\)"),
        ("train", b"\x7fELF\x02\x01\x01\x00", "null bytes"),
        ("train.py", b'{"error": {"code": 404, "message": "No such object"}}', "calls nothing and imports nothing"),
        ("train", b"epochs: 3\nlr: 0.1\n", "calls nothing and imports nothing"),
        ("train.py", b"", "calls nothing and imports nothing"),
    ],
)
def test_what_is_no_program_for_python_is_told_before_pods_meet(pod: Pod, name: str, content: bytes, said: str) -> None:
    (pod.here / name).write_bytes(content)
    ended = pod.execute(str(pod.here / name))
    assert (ended.status, ended.said) == (elastic_launch.EXIT_MISCONFIGURED, ["failed"])
    assert re.search(f"{name} is no program for Python .*{said}", ended.last_words)


def test_an_archive_and_a_folder_are_programs_if_python_can_begin(pod: Pod) -> None:
    archive = pod.here / "train.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("model.py", "said = 'with a module'")
    assert "no __main__.py" in pod.execute(str(archive)).last_words
    with zipfile.ZipFile(archive, "a") as file:
        file.writestr("__main__.py", "import model\nprint(model.said)")
    assert pod.execute(elastic_launch.SCRIPT, str(archive)).lines == ["with a module"]
    (pod.here / "folder").mkdir()
    assert "no __main__.py" in pod.execute(str(pod.here / "folder")).last_words


@pytest.mark.parametrize(
    ("status", "said"),
    [
        # GET /v2/keys of etcd 3.6.8, and of 3.5.35 without --enable-v2.
        (404, "has no v2 API"),
        (200, ""),
        (503, ""),
    ],
)
def test_etcd_is_asked_once_whether_torch_can_use_it(pod: Pod, status: int, said: str) -> None:
    with etcd(pod, status):
        ended = pod.run("news.append('state.closed = state.succeeded = True')")
    assert (ended.status == elastic_launch.EXIT_MISCONFIGURED, said in ended.last_words) == (bool(said), True)


def test_an_etcd_with_tls_that_was_not_said_is_told(pod: Pod) -> None:
    served = Served(Answering, certificate_in(pod.here, "etcd"))
    here = {"PET_RDZV_BACKEND": "etcd-v2", "PET_RDZV_ENDPOINT": f"127.0.0.1:{served.port}"}
    ended = pod.run("news.append('state.closed = state.succeeded = True')", **here)
    served.stop()
    assert "with TLS it needs rdzv_conf: {protocol: https}" in ended.event("waiting")["reason"]


def test_a_script_has_the_grace_period_for_its_checkpoint(pod: Pod) -> None:
    script = (
        "from torch.distributed.elastic.multiprocessing.api import SubprocessContext\n"
        f"SubprocessContext()._close(death_sig=15, timeout=30)\nnews += ['', '', \"{LEAVES}\"]"
    )
    assert "killed after 147" in pod.run(script, MUSTER_GRACE="147").lines


@pytest.mark.parametrize(
    ("done_first", "later", "said"),
    [
        # The other one works on for any time.
        ("me", [*[""] * 20, END], ["rendezvous", "finished", "done"]),
        # It is done, and lost or stopped afterwards; a third one comes. This one works on.
        ("you", ["", "", LEAVES, "", ""], ["rendezvous", "finished", "done"]),
        ("you", ["", "state.wait_list.add(Node('it'))", "", ""], ["rendezvous", "finished", "done"]),
        # It is lost before it is done, or its script fails and begins again: this one begins again, too.
        (
            "me",
            ["", "", LEAVES, "state.round, state.done = 5, {Node('you'): 5}", ""],
            ["rendezvous", "finished", "membership", "rendezvous", "finished", "done"],
        ),
    ],
)
def test_a_pod_that_is_done_is_not_lost(pod: Pod, done_first: str, later: list[str], said: list[str]) -> None:
    begin = "state.done.clear()" if done_first == "me" else "agent.working = 5"
    ended = pod.run(f"{begin}\nnews += {later}", JOB_COMPLETION_INDEX="1")
    assert (ended.status, ended.said) == (0, said)


@pytest.mark.parametrize("later", [["", "", "state.closed = True"], ["state.closed = True"]])
def test_a_closed_rendezvous_is_no_success(pod: Pod, later: list[str]) -> None:
    ended = pod.run(f"state.done.clear()\nnews += {later}", JOB_COMPLETION_INDEX="1")
    assert (ended.status, ended.said) == (elastic_launch.EXIT_SCRIPT_FAILED, ["rendezvous", "finished", "closed"])
    assert "closed before all pods were done" in ended.last_words


@pytest.mark.parametrize(("succeeded", "status"), [(True, 0), (False, elastic_launch.EXIT_SCRIPT_FAILED)])
def test_one_that_comes_after_the_end_learns_how_it_was(pod: Pod, succeeded: bool, status: int) -> None:
    script = f"state.closed, state.succeeded = True, {succeeded}\nhandler.next_rendezvous()\n"
    ended = pod.run(script, JOB_COMPLETION_INDEX="1")
    assert (ended.status, ended.said[:2]) == (status, ["rendezvous", "closed"])


@pytest.mark.parametrize(("others", "status", "said"), [("", 0, "rendezvous"), ("state.done.clear()", 1, "rendezvous_lost")])
def test_the_last_work_of_others_may_outlast_join_timeout(pod: Pod, others: str, status: int, said: str) -> None:
    script = (
        "from torch.distributed.elastic.rendezvous.api import RendezvousTimeoutError as Timeout\n"
        f"handler.errors = [Timeout(), Timeout()]\n{others}\nhandler.next_rendezvous()\n"
    )
    ended = pod.run(script, JOB_COMPLETION_INDEX="1")
    assert (ended.status, ended.said[:2]) == (status, ["rendezvous", said])


def test_pod_0_serves_the_others_until_they_know_the_end(pod: Pod) -> None:
    # One is replaced by a pod that finds the rendezvous after the end; only where each pod has to succeed is it waited for.
    news = ["", "", LEAVES, "print('lost')", "print('there')", "state.informed = {'you'}"]
    script = f"news += {news}"
    own = pod.run(script, MUSTER_EXIT_AGAIN="175", PET_RDZV_CONF="join_timeout=20")
    assert (own.status, own.said[-1], "there" in own.lines) == (0, "done", True)
    other = pod.run(script, PET_RDZV_CONF="join_timeout=20")
    assert (other.status, other.said[-1], "there" in other.lines) == (0, "done", False)


def test_one_that_is_asked_to_end_after_the_end_has_succeeded(pod: Pod) -> None:
    asked = "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)"
    assert pod.run(f"news += ['', '', {asked!r}]").status == 0
    # Before torch's agent has noticed that all are done.
    assert pod.run(f"news += ['', {asked!r}, '', {LEAVES!r}]").status == 0


def test_pod_0_takes_its_store_with_it(pod: Pod) -> None:
    ended = pod.run(LOST, MUSTER_EXIT_AGAIN="175")
    assert ended.status == 175
    assert ended.last_words == "the rendezvous that this pod hosts was lost\n"


def test_another_pod_begins_again_in_place(pod: Pod) -> None:
    once = f"import os\nif not os.path.exists('{pod.here}/met'):\n    open('{pod.here}/met', 'w').close()\n    "
    ended = pod.run(once + LOST.replace("\nraise", "; raise"), JOB_COMPLETION_INDEX="1")
    assert ended.status == 0
    assert ended.said == ["rendezvous", "rendezvous_lost", "rendezvous", "finished", "done"]


def test_it_does_not_begin_again_for_ever(pod: Pod) -> None:
    ended = pod.run(LOST, JOB_COMPLETION_INDEX="1")
    assert (ended.status, ended.last_words) == (1, "the rendezvous was lost 20 times\n")
    assert "closes" not in ended.lines, "to close the rendezvous ends the job for everybody"


def test_one_that_is_asked_to_end_leaves_the_rendezvous(pod: Pod) -> None:
    ended = pod.run("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n")
    assert ended.status == elastic_launch.EXIT_STOPPED
    assert ended.event("left")["round"] == 4
    assert "closes" not in ended.lines, "to close the rendezvous ends the job for everybody"


def test_a_torch_without_libuv_does_without(pod: Pod) -> None:
    script = "import os\nprint('libuv', os.environ.get('USE_LIBUV'))\n"
    ended = pod.run(script, BUILT_WITHOUT_LIBUV="1", JOB_COMPLETION_INDEX="1")
    assert (ended.status, "libuv 0" in ended.lines) == (0, True)
    assert "libuv None" in pod.run(script, JOB_COMPLETION_INDEX="1").lines


def test_no_round_needs_the_store_of_an_earlier_one(pod: Pod) -> None:
    script = "import os\nprint('shared', os.environ['TORCH_DISABLE_SHARE_RDZV_TCP_STORE'])\n"
    assert "shared 1" in pod.run(script, JOB_COMPLETION_INDEX="1").lines


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("state.participants.pop('you')", 1),
        ("state.round += 1", 1),
        ("state.closed, state.complete = True, False", 0),
        ("state.wait_list.update('abc')", 3),
        ("pass", 0),
    ],
)
def test_a_round_that_shrank_is_a_change_of_membership(pod: Pod, change: str, told: int) -> None:
    script = f"state.done.clear()\n{change}\nprint('waiting', handler.num_nodes_waiting())\nraise SystemExit\n"
    ended = pod.run(script)
    assert f"waiting {told}" in ended.lines
    assert any(event["event"] == "membership" for event in ended.events) == (told == 1)


def test_the_first_rank_logs_the_round_again(pod: Pod) -> None:
    script = "state.done.clear()\nhandler.told -= 16\nhandler.num_nodes_waiting()\nhandler.num_nodes_waiting()\nraise SystemExit\n"
    met = [event["round"] for event in pod.run(script).events if event["event"] == "rendezvous"]
    assert met == [4, 4]


def test_an_etcd_that_is_away_stops_nobody_and_costs_nobody_the_place(pod: Pod) -> None:
    script = (
        "holder.sanitized = 0\nfor holder.reachable in (False, False, True):\n"
        "    print('waiting', handler.num_nodes_waiting())\nprint('sanitized', holder.sanitized)\n"
        "holder.patient_until = 0\nholder.sync()\nprint('sanitized', holder.sanitized)\n"
        "raise SystemExit\n"
    )
    with etcd(pod):
        ended = pod.run(script)
    assert [line for line in ended.lines if line.startswith(("wait", "sanit", "read"))] == [
        "read_timeout 5", "waiting 0", "waiting 0", "waiting 0", "sanitized 0", "sanitized 1",
    ]  # fmt: skip
    assert ended.said == ["rendezvous", "rendezvous_unreachable", "rendezvous_reachable"]


def test_a_store_in_a_pod_that_is_away_is_lost(pod: Pod) -> None:
    script = "holder.reachable = False\nhandler.num_nodes_waiting()\n"
    lost = [event for event in pod.run(script, JOB_COMPLETION_INDEX="1").events if event["event"] == "rendezvous_lost"]
    assert lost[0]["reason"] == "RendezvousConnectionError: no route"


def test_nobody_waits_for_ever_for_the_store(pod: Pod) -> None:
    with refused_port() as port:
        ended = pod.run("", JOB_COMPLETION_INDEX="1", PET_RDZV_ENDPOINT=f"127.0.0.1:{port}")
    assert ended.status == 1
    assert f"the rendezvous at 127.0.0.1:{port} did not answer for 0 s" in ended.last_words


def test_what_starting_again_cannot_cure(pod: Pod) -> None:
    ended = pod.execute("/nowhere/train.py")
    assert ended.status == elastic_launch.EXIT_MISCONFIGURED
    assert ended.last_words == "the script /nowhere/train.py cannot be read in this pod\n"
    (pod.here / "torch/distributed/launcher/api.py").write_text("raise ImportError('libcudart.so.11')\n")
    ended = pod.run("")
    assert ended.status == elastic_launch.EXIT_MISCONFIGURED
    assert "this image's torch cannot be used: ImportError: libcudart.so.11" in ended.last_words


def test_a_process_that_stands_by_becomes_the_script(pod: Pod) -> None:
    script = pod.here / "train.py"
    script.write_text("import os, sys\nif __name__ == '__main__':\n    print(sys.argv[1:], os.environ['RANK'])\n    sys.exit(3)\n")
    order = json.dumps({"argv": [str(script), "--epochs"], "env": {**pod.env, "RANK": "1"}})

    def ends(text: str) -> tuple[int, str]:
        command = pod.command(elastic_launch.STANDBY)
        done = subprocess.run(command, input=text, env=pod.env, capture_output=True, text=True, check=False, timeout=120)
        return done.returncode, done.stdout

    assert ends(order + "\n") == (3, "['--epochs'] 1\n")
    # Nobody needed it.
    assert ends("") == (0, "")


def test_the_agent_has_processes_ready_before_pods_meet(pod: Pod) -> None:
    other = pod.here / "other.py"
    other.write_text("import os\nprint('trains as', os.environ['RANK'], flush=True)\n")
    script = (
        "import sys\n"
        "from torch.distributed.elastic.multiprocessing.api import SubprocessHandler\n"
        "handler = SubprocessHandler()\nhandler._stdout = handler._stderr = None\n"
        f"process = handler._popen([sys.executable, '-u', '{other}'], {{'RANK': '7'}})\nprocess.wait()\n"
        f"print('then', handler._popen([sys.executable, '-u', '{other}'], {{}}))\n"
    )
    ended = pod.run(script, MUSTER_WARM_START="1", JOB_COMPLETION_INDEX="1")
    assert [line for line in ended.lines if line[0] in "pt"] == [
        "trains as 7",
        f"popen {Path(sys.executable).name} -u launch.py --script other.py",
        "then None",
    ]

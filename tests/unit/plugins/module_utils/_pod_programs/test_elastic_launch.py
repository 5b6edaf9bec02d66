# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""elastic_launch.py, run as pods run it, with as much of a torch as it touches. The scenario elastic runs it with the real one."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._manifests.programs import program
from ansible_collections.muster.ml.plugins.module_utils._pod_programs import elastic_launch
from ansible_collections.muster.ml.tests.unit.fakes.ports import refused_port

# The names that torch 1.10 to 2.9 have. Its agent runs the script itself, so that a test can see the rendezvous from it.
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
    "distributed/elastic/agent/server/local_elastic_agent.py": """
import types

class LocalElasticAgent:
    failed = False
    def __init__(self, handler, script):
        self.script = script
        self._worker_group = types.SimpleNamespace(spec=types.SimpleNamespace(rdzv_handler=handler, local_world_size=1))
    def _rendezvous(self, worker_group):
        return self.handler.next_rendezvous()
    def _invoke_run(self):
        with open(self.script) as file:
            exec(file.read(), {"agent": self, "handler": self.handler, "holder": self.handler._state_holder})
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
        return None

def _terminate_process_handler(number, frame):
    raise SignalException(number)
""",
    "distributed/elastic/multiprocessing/errors.py": """
import types

class ChildFailedError(Exception):
    def get_first_failure(self):
        return 3, types.SimpleNamespace(exitcode=9, message="out of memory")
""",
    "distributed/elastic/rendezvous/api.py": """
class RendezvousClosedError(Exception):
    pass

class RendezvousConnectionError(Exception):
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
import types
from torch.distributed.elastic.rendezvous.api import RendezvousConnectionError

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
        self.state = types.SimpleNamespace(
            round=4, complete=True, closed=False, participants={"me": 0, "you": 1}, wait_list=set(), last_heartbeats={})
    def sync(self):
        if not self.reachable:
            raise RendezvousConnectionError("no route")
        self._sanitize()
        return True
    def _sanitize(self):
        self.sanitized += 1
    def mark_dirty(self):
        pass

class DynamicRendezvousHandler:
    class _node_desc_generator:
        generate = staticmethod(lambda: "me")
    def __init__(self, node, settings, name, store, holder):
        self._this_node, self._settings, self._backend_name, self._state_holder = node, settings, name, holder
    def next_rendezvous(self):
        return None, 0, 2
    def num_nodes_waiting(self):
        self._state_holder.sync()
        return len(self._state_holder.state.wait_list)
    def shutdown(self):
        return True
    def _stop_heartbeats(self):
        pass
""",
}
RAISE = "from torch.distributed.elastic.{0} import {1}\nraise {1}('no route')\n"
CLOSED = RAISE.format("rendezvous.api", "RendezvousClosedError")
LOST = RAISE.format("rendezvous.api", "RendezvousConnectionError")


class Ended(t.NamedTuple):
    status: int
    events: list[dict[str, t.Any]]
    lines: list[str]
    last_words: str

    def event(self, name: str) -> dict[str, t.Any]:
        (found,) = [event for event in self.events if event["event"] == name]
        return found


class Pod:
    """A place that looks to the program like a pod."""

    def __init__(self, here: Path, port: int) -> None:
        self.here = here
        self.env = {
            "PYTHONPATH": str(here), "PET_RDZV_BACKEND": "c10d", "PET_RDZV_ENDPOINT": f"127.0.0.1:{port}",
            "PET_RDZV_CONF": "join_timeout=0",
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
        (self.here / "train.py").write_text(script)
        return self.execute(str(self.here / "train.py"), **env)

    def execute(self, *arguments: str, **env: str) -> Ended:
        done = subprocess.run(
            self.command(*arguments), env={**self.env, **env}, capture_output=True, text=True, check=False, timeout=30
        )
        lines, prefix = done.stdout.splitlines(), elastic_launch.LOG_PREFIX
        said = [json.loads(line[len(prefix) :]) for line in lines if line.startswith(prefix)]
        words = self.here / "termination-log"
        return Ended(done.returncode, said, lines, words.read_text() if words.exists() else "")


@pytest.fixture
def pod(tmp_path: Path) -> t.Iterator[Pod]:
    with socket.create_server(("127.0.0.1", 0)) as store:
        yield Pod(tmp_path, store.getsockname()[1])


def test_a_script_that_ends_well(pod: Pod) -> None:
    ended = pod.run("agent._rendezvous(agent._worker_group)", MUSTER_SERVICE="no.such.service.invalid")
    assert ended.status == 0
    assert [event["event"] for event in ended.events] == ["rendezvous", "done"]
    assert ended.event("rendezvous").items() >= {"round": 4, "group_rank": 0, "nodes": 2, "index": 0}.items()
    assert "conf --rdzv_conf=join_timeout=0,is_host=1" in ended.lines
    assert ended.last_words == ""


def test_a_script_that_failed_too_often(pod: Pod) -> None:
    ended = pod.run("agent.failed = True")
    assert ended.status == elastic_launch.EXIT_SCRIPT_FAILED
    assert "max_restarts allows: rank 3 ended with 9: out of memory" in ended.last_words
    assert "closes" in ended.lines


def test_a_rendezvous_that_the_others_have_closed_is_the_end(pod: Pod) -> None:
    ended = pod.run(CLOSED, JOB_COMPLETION_INDEX="1")
    assert ended.status == 0
    assert ended.event("closed")["index"] == 1


def test_pod_0_takes_its_store_with_it(pod: Pod) -> None:
    ended = pod.run(LOST, MUSTER_EXIT_AGAIN="175")
    assert ended.status == 175
    assert ended.last_words == "the rendezvous that this pod hosts was lost\n"


def test_another_pod_begins_again_in_place(pod: Pod) -> None:
    once = f"import os\nif not os.path.exists('{pod.here}/met'):\n    open('{pod.here}/met', 'w').close()\n    "
    ended = pod.run(once + LOST.replace("\nraise", "; raise"), JOB_COMPLETION_INDEX="1")
    assert ended.status == 0
    assert [event["event"] for event in ended.events] == ["rendezvous_lost", "done"]


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
    ended = pod.run(script, BUILT_WITHOUT_LIBUV="1")
    assert (ended.status, "libuv 0" in ended.lines) == (0, True)
    assert "libuv None" in pod.run(script).lines


def test_no_round_needs_the_store_of_an_earlier_one(pod: Pod) -> None:
    assert "shared 1" in pod.run("import os\nprint('shared', os.environ['TORCH_DISABLE_SHARE_RDZV_TCP_STORE'])\n").lines


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
    script = (
        f"handler.next_rendezvous()\nstate = holder.state\n{change}\nprint('waiting', handler.num_nodes_waiting())\n"
    )
    ended = pod.run(script)
    assert f"waiting {told}" in ended.lines
    assert any(event["event"] == "membership" for event in ended.events) == (told == 1)


def test_the_first_rank_logs_the_round_again(pod: Pod) -> None:
    script = "handler.next_rendezvous()\nhandler.told -= 16\nhandler.num_nodes_waiting()\nhandler.num_nodes_waiting()\n"
    met = [event["round"] for event in pod.run(script).events if event["event"] == "rendezvous"]
    assert met == [4, 4]


def test_an_etcd_that_is_away_stops_nobody_and_costs_nobody_the_place(pod: Pod) -> None:
    script = (
        "handler.next_rendezvous()\nfor holder.reachable in (False, False, True):\n"
        "    print('waiting', handler.num_nodes_waiting())\nprint('sanitized', holder.sanitized)\n"
        "holder.patient_until = 0\nholder.sync()\nprint('sanitized', holder.sanitized)\n"
    )
    ended = pod.run(script, PET_RDZV_BACKEND="etcd-v2")
    assert [line for line in ended.lines if line.startswith(("wait", "sanit", "read"))] == [
        "read_timeout 5", "waiting 0", "waiting 0", "waiting 0", "sanitized 0", "sanitized 1",
    ]  # fmt: skip
    told = [event["event"] for event in ended.events]
    assert told == ["rendezvous", "rendezvous_unreachable", "rendezvous_reachable", "done"]


def test_a_store_in_a_pod_that_is_away_is_lost(pod: Pod) -> None:
    script = "handler.next_rendezvous()\nholder.reachable = False\nhandler.num_nodes_waiting()\n"
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
    script.write_text(
        "import os, sys\nif __name__ == '__main__':\n    print(sys.argv[1:], os.environ['RANK'])\n    sys.exit(3)\n"
    )
    order = json.dumps({"argv": [str(script), "--epochs"], "env": {**pod.env, "RANK": "1"}})

    def ends(text: str) -> tuple[int, str]:
        command = pod.command(elastic_launch.STANDBY)
        done = subprocess.run(command, input=text, env=pod.env, capture_output=True, text=True, check=False, timeout=20)
        return done.returncode, done.stdout

    assert ends(order + "\n") == (3, "['--epochs'] 1\n")
    # Nobody needed it.
    assert ends("") == (0, "")


def test_the_agent_has_processes_ready_before_pods_meet(pod: Pod) -> None:
    other = pod.here / "other.py"
    other.write_text("import os\nprint('trains as', os.environ['RANK'], flush=True)\n")
    script = (
        "import sys\nagent._rendezvous(agent._worker_group)\n"
        "from torch.distributed.elastic.multiprocessing.api import SubprocessHandler\n"
        "handler = SubprocessHandler()\nhandler._stdout = handler._stderr = None\n"
        f"process = handler._popen([sys.executable, '-u', '{other}'], {{'RANK': '7'}})\nprocess.wait()\n"
        f"print('then', handler._popen([sys.executable, '-u', '{other}'], {{}}))\n"
    )
    ended = pod.run(script, MUSTER_WARM_START="1")
    assert [line for line in ended.lines if line.startswith("t")] == ["trains as 7", "then None"]

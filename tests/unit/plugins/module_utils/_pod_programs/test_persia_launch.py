# SPDX-License-Identifier: GPL-3.0-or-later
"""persia_launch.py, run as pods run it, with a persia-launcher and a name service of our own."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._manifests.programs import program
from ansible_collections.muster.ml.plugins.module_utils._pod_programs import persia_launch

# Says how it was called; what it does next stands in a file, one shell line per start.
LAUNCHER = """#!/bin/sh
echo "called: $*" >>"$HERE/calls"
n=$(grep -c . "$HERE/calls")
eval "$(sed -n "${n}p" "$HERE/plan")"
"""
# Addresses of a Service: a file of its name.
NAME_SERVICE = """
import os, pathlib, socket

def getaddrinfo(host, port):
    try:
        lines = pathlib.Path(os.environ["HERE"], "dns", host).read_text().split()
    except FileNotFoundError:
        raise socket.gaierror(host) from None
    return [(0, 0, 0, "", (line, 0)) for line in lines]

socket.getaddrinfo = getaddrinfo
"""
SLOW_START = """
import subprocess, time

class Popen(subprocess.Popen):
    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        time.sleep(0.5)

subprocess.Popen = Popen
"""
SLOW_END = """
import time

class Last:
    def __del__(self, sleep=time.sleep):
        sleep(1.2)

last = Last()
"""


class Pod:
    """A place that looks to the program like a pod."""

    def __init__(self, here: Path) -> None:
        self.here = here
        (here / "bin").mkdir()
        (here / "dns").mkdir()
        launcher = here / "bin" / "persia-launcher"
        launcher.write_text(LAUNCHER)
        launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
        (here / "sitecustomize.py").write_text(NAME_SERVICE)
        # The only changes: a pod's own place for its last words, and less time to end.
        text = program(persia_launch).replace(persia_launch.TERMINATION_LOG, str(here / "termination-log"))
        text = text.replace("END_SECONDS = 10", "END_SECONDS = 1")
        (here / "launch.py").write_text(text)
        for name in ("entry.py", "global.yml", "embedding.yml"):
            (here / name).write_text("")

    def dns(self, service: str, *addresses: str) -> None:
        temporary = self.here / "new"
        temporary.write_text("".join(f"{a}\n{a}\n" for a in addresses))
        temporary.rename(self.here / "dns" / service)

    def start(self, role: str, plan: str = "true", **env: str) -> subprocess.Popen[str]:
        (self.here / "plan").write_text(plan)
        (self.here / "calls").write_text("")
        full = {
            "PATH": f"{self.here / 'bin'}:{os.environ['PATH']}",
            "HERE": str(self.here),
            "PYTHONPATH": str(self.here),
            "HOSTNAME": "adult-trainer-1",
            "REPLICA_SIZE": "2",
            "PERSIA_NN_WORKER_ENTRY": str(self.here / "entry.py"),
            "PERSIA_DATALOADER_ENTRY": str(self.here / "entry.py"),
            "PERSIA_GLOBAL_CONFIG": str(self.here / "global.yml"),
            "PERSIA_EMBEDDING_CONFIG": str(self.here / "embedding.yml"),
            "MUSTER_SUCCESS_FILE": str(self.here / "success"),
            "MUSTER_WATCH_INTERVAL": "0.05",
            **env,
        }
        command = [sys.executable, "-u", str(self.here / "launch.py"), role]
        return subprocess.Popen(command, env=full, stderr=subprocess.PIPE, text=True)

    def run(self, role: str, plan: str = "true", **env: str) -> tuple[int, str]:
        process = self.start(role, plan, **env)
        _out, err = process.communicate(timeout=120)
        return process.returncode, err

    @property
    def calls(self) -> list[str]:
        return (self.here / "calls").read_text().splitlines()

    @property
    def last_words(self) -> str:
        path = self.here / "termination-log"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    return Pod(tmp_path)


def test_a_trainer_gets_its_rank_from_its_name(pod: Pod) -> None:
    assert pod.run("nn-worker", NPROC_PER_NODE="4")[0] == 0
    assert pod.calls == [f"called: nn-worker {pod.here}/program.py --nproc-per-node 4 --nnodes 2 --node-rank 1"]


@pytest.mark.parametrize("role", ["nn-worker", "data-loader"])
def test_the_program_gets_the_path_of_the_script(pod: Pod, role: str) -> None:
    """persia-launcher itself is told the program that ends with the script's status."""
    assert pod.run(role, 'test "$MUSTER_ENTRY" = "$HERE/entry.py"', MUSTER_LINGER_SECONDS="0")[0] == 0


# Shows rows 000.10 and 000.14.
@pytest.mark.parametrize(
    ("first", "called"),
    [
        ("#!/bin/bash\n[[ -n $1 ]]", "trainer: rank 1 of 2 pods, 8 processes"),
        ("#!/usr/bin/env -S bash -e\n[[ -n $1 ]]", "trainer: rank 1 of 2 pods, 8 processes"),
        ("# for sh", "trainer: rank 1 of 2 pods, 8 processes"),
    ],
)
def test_a_script_of_ones_own_gets_ranks_and_sizes(pod: Pod, first: str, called: str) -> None:
    """A file of a ConfigMap is not executable: the interpreter of its first line runs it, and /bin/sh without one."""
    script = pod.here / "own.sh"
    script.write_text(f'{first}\necho "$1: rank $NODE_RANK of $REPLICA_SIZE pods, $WORLD_SIZE processes" >>"$HERE/calls"\n')
    assert pod.run("nn-worker", MUSTER_LAUNCH_SCRIPT=f"{script} trainer", NPROC_PER_NODE="4", MUSTER_GPUS="8")[0] == 0
    assert pod.calls == [called]


def test_a_script_that_fails_is_a_failure(pod: Pod) -> None:
    (pod.here / "own.sh").write_text("exit 3\n")
    assert pod.run("nn-worker", MUSTER_LAUNCH_SCRIPT=f"{pod.here}/own.sh trainer")[0] == 3
    status, said = pod.run("nn-worker", MUSTER_LAUNCH_SCRIPT=f"{pod.here}/none.sh trainer")
    assert (status, "the launch script cannot be read in this pod" in said) == (persia_launch.EXIT_MISCONFIGURED, True)


def test_the_given_index_wins_over_the_name(pod: Pod) -> None:
    pod.run("data-loader", REPLICA_INDEX="0", MUSTER_LINGER_SECONDS="0")
    assert pod.calls == [f"called: data-loader {pod.here}/program.py --replica-index 0 --replica-size 2"]


def test_an_embedding_server_gets_both_files(pod: Pod) -> None:
    pod.run("embedding-parameter-server")
    assert pod.calls == [
        (
            "called: embedding-parameter-server "
            f"--global-config {pod.here}/global.yml --embedding-config {pod.here}/embedding.yml "
            "--replica-index 1 --replica-size 2"
        )
    ]


# Shows row 000.11.
@pytest.mark.parametrize("role", ["nn-worker", "data-loader", "embedding-worker"])
def test_a_failure_stays_a_failure(pod: Pod, role: str) -> None:
    assert pod.run(role, "exit 3")[0] == 3
    assert pod.last_words == ""


def test_an_abort_after_the_results_were_saved_is_success(pod: Pod) -> None:
    status, said = pod.run("nn-worker", 'echo "{\\"auc\\": 0.7}" >>"$MUSTER_SUCCESS_FILE"; exit 134')
    assert status == 0
    assert "status 134 after the training saved its results" in said
    assert pod.last_words == '{"auc": 0.7}\n'


# Shows row 000.21.
def test_one_process_of_two_is_not_success(pod: Pod) -> None:
    status, _said = pod.run("nn-worker", 'echo done >>"$MUSTER_SUCCESS_FILE"; exit 1', NPROC_PER_NODE="2")
    assert status == 1


def test_results_of_an_earlier_start_do_not_count(pod: Pod) -> None:
    (pod.here / "success").write_text("old\n")
    assert pod.run("nn-worker", "exit 1")[0] == 1


@pytest.mark.parametrize(
    ("role", "env", "said"),
    [
        ("nn-worker", {"PERSIA_NN_WORKER_ENTRY": "/nowhere/train.py"}, "PERSIA_NN_WORKER_ENTRY=/nowhere/train.py cannot"),
        ("embedding-worker", {"PERSIA_GLOBAL_CONFIG": ""}, "PERSIA_GLOBAL_CONFIG= cannot be read"),
        ("trainer", {}, "unknown role trainer"),
    ],
)
def test_what_starting_again_cannot_cure(pod: Pod, role: str, env: dict[str, str], said: str) -> None:
    status, _said = pod.run(role, **env)
    assert status == 78
    assert said in pod.last_words
    assert pod.calls == []


def test_it_waits_for_every_pod_it_will_meet(pod: Pod) -> None:
    pod.dns("ps", "10.0.0.1")
    status, _said = pod.run("nn-worker", MUSTER_PEERS="ps:2", MUSTER_PEER_TIMEOUT="0.2")
    assert status == 1
    assert "gave up after 0.2 s: not every pod of ps has an address" in pod.last_words
    assert pod.calls == []


def test_a_replaced_server_ends_the_trainer_so_that_it_begins_again(pod: Pod) -> None:
    pod.dns("ps", "10.0.0.1")
    plan = 'printf "10.0.0.9\\n" >"$HERE/dns/ps"; sleep 60'
    status, _said = pod.run("nn-worker", plan, MUSTER_PEERS="ps:1")
    assert status == 75
    assert "was replaced" in pod.last_words


def test_a_missing_server_alone_ends_nothing(pod: Pod) -> None:
    pod.dns("ps", "10.0.0.1", "10.0.0.2")
    plan = 'printf "10.0.0.1\\n" >"$HERE/dns/ps"; sleep 0.5; exit 0'
    assert pod.run("nn-worker", plan, MUSTER_PEERS="ps:2")[0] == 0


def test_a_worker_begins_again_in_place(pod: Pod) -> None:
    """And keeps its status, though Python still ends when the time of the first process is over."""
    (pod.here / "sitecustomize.py").write_text(NAME_SERVICE + SLOW_END)
    pod.dns("ps", "10.0.0.1")
    plan = 'printf "10.0.0.9\\n" >"$HERE/dns/ps"; sleep 60\nexit 5'
    assert pod.run("embedding-worker", plan, MUSTER_PEERS="ps:1")[0] == 5
    assert len(pod.calls) == 2


def test_a_loader_sends_again_when_the_trainers_begin_again(pod: Pod) -> None:
    pod.dns("trainer", "10.0.0.1")
    change = '(sleep 0.2; printf "10.0.0.2\\n" >"$HERE/dns/trainer") & true'
    gone = '(sleep 0.2; rm "$HERE/dns/trainer") & true'
    status, said = pod.run("data-loader", f"{change}\n{gone}", MUSTER_PEERS="trainer:1", MUSTER_LINGER_SECONDS="0.2")
    assert status == 0
    assert len(pod.calls) == 2
    assert "waiting for the trainers to end" in said


@pytest.mark.parametrize("role", ["nn-worker", "embedding-parameter-server"])
def test_a_stop_reaches_every_process(pod: Pod, role: str) -> None:
    started = pod.here / "started"
    process = pod.start(role, f'echo $$ >"{started}"; sleep 60')
    while not (started.exists() and started.read_text().strip()):
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode == 143
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


def test_an_image_without_the_launcher_is_a_wrong_configuration(pod: Pod) -> None:
    (pod.here / "bin" / "persia-launcher").unlink()
    assert pod.run("nn-worker")[0] == 78
    assert "persia-launcher cannot be started in this image" in pod.last_words


def until_it_says(process: subprocess.Popen[str], text: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return
    raise AssertionError(f"ended with {process.wait()} before it said {text}")


def test_a_process_that_does_not_end_is_killed(pod: Pod) -> None:
    process = pod.start("nn-worker", 'trap "" TERM; echo started >&2; while :; do sleep 60 || true; done')
    until_it_says(process, "started")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode == 143


@pytest.mark.parametrize(
    ("role", "peers", "words", "status"),
    [
        ("nn-worker", "ps:2", "waiting for every pod of ps", 143),
        pytest.param("data-loader", "trainer:1", "waiting for the trainers to end", 0, id="it has sent everything"),
    ],
)
def test_a_stop_while_it_waits_for_others(pod: Pod, role: str, peers: str, words: str, status: int) -> None:
    pod.dns(peers.partition(":")[0], "10.0.0.1")
    process = pod.start(role, MUSTER_PEERS=peers)
    until_it_says(process, words)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode == status


def test_a_stop_while_the_process_starts(pod: Pod) -> None:
    """Python learns the number of a new process a moment after that process runs."""
    (pod.here / "sitecustomize.py").write_text(NAME_SERVICE + SLOW_START)
    end = """trap 'touch "$HERE/ended"; exit' TERM"""
    process = pod.start("nn-worker", f"{end}; kill -s TERM $PPID; while :; do sleep 0.1; done")
    process.communicate(timeout=120)
    assert process.returncode == 143
    assert (pod.here / "ended").exists()


@pytest.mark.parametrize(
    ("plan", "index", "asked"),
    [
        ("echo '{}' >>$MUSTER_SUCCESS_FILE", "0", True),
        ("true", "0", True),
        ("echo '{}' >>$MUSTER_SUCCESS_FILE; exit 134", "0", True),
        ("exit 1", "0", False),
        ("true", "1", False),
        ("""echo '{"trained": false}' >>$MUSTER_SUCCESS_FILE""", "0", False),
    ],
)
def test_the_first_trainer_of_a_training_that_ended_well_asks_the_gateway(pod: Pod, plan: str, index: str, asked: bool) -> None:
    (pod.here / "metrics.py").write_text(f"import sys; open({str(pod.here / 'asked')!r}, 'w').write(sys.argv[1]); sys.exit(3)")
    code, _err = pod.run("nn-worker", plan, REPLICA_INDEX=index)
    assert (code == 0) == (plan != "exit 1")
    assert (pod.here / "asked").exists() == asked
    if asked:
        assert 0 <= float((pod.here / "asked").read_text()) < 60


def with_gpus(pod: Pod, *, cuda: str | None = "11.3", built: bool = True, seen: int = 2, fails: str = "") -> None:
    """Give the image a torch and a PERSIA of our own."""
    computing = f"raise RuntimeError({fails!r})" if fails else "return self"
    (pod.here / "torch.py").write_text(
        f"""
import types

class Tensor:
    def add(self, other):
        {computing}

    def item(self):
        return 1

def zeros(size, device):
    print("torch says hello")
    return Tensor()

__version__ = "1.8.0"
version = types.SimpleNamespace(cuda={cuda!r})
cuda = types.SimpleNamespace(device_count=lambda: {seen})
"""
    )
    (pod.here / "persia_core.py").write_text(f"def is_cuda_feature_available():\n    return {built}\n")


def test_a_trainer_starts_where_its_image_can_use_the_gpus(pod: Pod) -> None:
    with_gpus(pod)
    assert pod.run("nn-worker", MUSTER_GPUS="2")[0] == 0
    assert len(pod.calls) == 1


@pytest.mark.parametrize(
    ("image", "why"),
    [
        ({"cuda": None}, "torch 1.8.0 is built without CUDA"),
        ({"built": False}, "PERSIA is built without CUDA"),
        ({"seen": 1}, "torch sees 1 of them"),
        ({"fails": "no kernel image is available\nmore"}, "RuntimeError: no kernel image is available"),
    ],
)
def test_gpus_that_the_image_cannot_use_are_not_held(pod: Pod, image: dict[str, t.Any], why: str) -> None:
    with_gpus(pod, **image)
    assert pod.run("nn-worker", MUSTER_GPUS="2")[0] == 78
    assert f"this pod asks for 2 GPUs, and its image cannot use them: {why}" in pod.last_words
    assert "more" not in pod.last_words
    assert pod.calls == []


def test_gpus_without_torch_are_not_held(pod: Pod) -> None:
    (pod.here / "torch.py").write_text("raise ImportError('no torch here')")
    assert pod.run("nn-worker", MUSTER_GPUS="1", NVIDIA_VISIBLE_DEVICES="GPU-4f2a")[0] == 78
    why = "ImportError: no torch here"
    assert f"this pod asks for 1 GPUs and got GPU-4f2a, and its image cannot use them: {why}" in pod.last_words


def test_only_trainers_that_ask_for_gpus_look_for_them(pod: Pod) -> None:
    (pod.here / "torch.py").write_text("raise SystemExit('imported')")
    assert pod.run("nn-worker")[0] == 0
    assert pod.run("embedding-parameter-server", MUSTER_GPUS="1")[0] == 0

# SPDX-License-Identifier: GPL-3.0-or-later
"""persia_program.py beside Python itself: the same script, the same output and status, and none of what happens after its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._pod_programs import persia_program

# What is destroyed with the interpreter aborts the process, as threads of persia_core do.
ABORTS_AT_EXIT = """
import os

class Native:
    def __del__(self, abort=os.abort):
        abort()

native = Native()
"""
SCRIPTS = {
    "returns": "print('trained')",
    "no newline, no flush": "import sys; sys.stdout.write('trained'); sys.stderr.write('done')",
    "leaves with 0": "import sys; print('trained'); sys.exit(0)",
    "leaves with None": "import sys; sys.exit(None)",
    "leaves with 3": "import sys; sys.exit(3)",
    "leaves with a text": "import sys; sys.exit('no data')",
    "leaves with a bool": "import sys; sys.exit(True)",
    "leaves with 256": "import sys; sys.exit(256)",
    "leaves with -1": "import sys; sys.exit(-1)",
    "raises": "def train():\n    raise ValueError('no data')\n\ntrain()\n",
    "raises from": "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ValueError('no data') from error\n",
    "is no Python": "def train(:\n    pass\n",
    "cannot be decoded": "# \\xff",
    "asks where it is": "import sys; print(__name__, __file__, sys.argv, sys.path[0], __spec__)",
    "imports its neighbour": "import neighbour; print(neighbour.NAME)",
    "has a future": "from __future__ import annotations\ndef f(x: nothing) -> nothing: ...\nprint(f.__annotations__)",
    "ends after its threads": (
        "import threading, time\n"
        "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()\nprint('main')\n"
    ),
    "does something at its end": "import atexit; atexit.register(print, 'saved'); print('trained')",
    "fails at its end": "import atexit, sys; sys.stderr = None; atexit.register(lambda: 1 / 0); print('trained')",
    "fails, with something at its end": "import atexit; atexit.register(print, 'saved'); raise OSError(5, 'gone')",
    "closes its output": "import sys; print('trained', flush=True); sys.stdout.close()",
    "has a pool of threads": (
        "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(2)\n"
        "pool.submit(print, 'one')\n"
    ),
    "spawns what it defines": (
        "import multiprocessing\n\ndef work(n):\n    return n * n\n\n"
        "if __name__ == '__main__':\n    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(work, [3]))\n"
    ),
    "is asked for by its class": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)",
}  # fmt: skip


class Pod:
    """A folder with a script and its neighbour."""

    def __init__(self, here: Path) -> None:
        self.entry = here / "scripts" / "train.py"
        self.entry.parent.mkdir()
        (here / "scripts" / "neighbour.py").write_text("NAME = 'neighbour'")
        self.program = str(Path(persia_program.__file__))

    def run(self, script: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        self.entry.write_text(script)
        full = {"PATH": os.environ["PATH"], "MUSTER_ENTRY": str(self.entry), **env}
        return subprocess.run(
            [sys.executable, *words, "--local_rank=0"], env=full, capture_output=True, text=True, timeout=120, check=False
        )

    def ours(self, script: str, **env: str) -> subprocess.CompletedProcess[str]:
        return self.run(script, self.program, **env)

    def plain(self, script: str) -> subprocess.CompletedProcess[str]:
        return self.run(script, str(self.entry))


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    return Pod(tmp_path)


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_a_script_ends_as_it_does_in_python(pod: Pod, script: str) -> None:
    ours, plain = pod.ours(script), pod.plain(script)
    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout)
    assert ours.stderr == plain.stderr


# Shows row 001.13.
@pytest.mark.parametrize(("end", "status"), [("", 0), ("import sys; sys.exit(3)", 3), ("1 / 0", 1)])
def test_an_abort_after_the_end_changes_nothing(pod: Pod, end: str, status: int) -> None:
    script = f"{ABORTS_AT_EXIT}\nprint('trained')\n{end}\n"
    assert pod.plain(script).returncode == -signal.SIGABRT
    ours = pod.ours(script)
    assert (ours.returncode, ours.stdout) == (status, "trained\n")


def test_a_crash_while_it_works_stays_one(pod: Pod) -> None:
    assert pod.ours("import os; os.abort()").returncode == -signal.SIGABRT


def test_a_signal_ends_it(pod: Pod) -> None:
    assert pod.ours("import os; os.kill(os.getpid(), 15)").returncode == -signal.SIGTERM


def test_an_interrupted_script_has_failed(pod: Pod) -> None:
    ours = pod.ours("raise KeyboardInterrupt")
    assert ours.returncode == persia_program.INTERRUPTED
    assert "KeyboardInterrupt" in ours.stderr


def test_a_script_sees_its_own_path_in_the_launchers_variable(pod: Pod) -> None:
    """With the operator the variable names the program."""
    script = "import os; print(os.environ['PERSIA_NN_WORKER_ENTRY'] == __file__, os.environ['PERSIA_DATALOADER_ENTRY'])"
    ours = pod.ours(script, PERSIA_NN_WORKER_ENTRY=pod.program, PERSIA_DATALOADER_ENTRY="/other.py")
    assert ours.stdout == "True /other.py\n"


def test_a_script_that_went_away_is_a_failure(pod: Pod) -> None:
    ours = pod.ours("", MUSTER_ENTRY="/nowhere/train.py")
    assert ours.returncode == 1
    assert "No such file or directory: '/nowhere/train.py'" in ours.stderr

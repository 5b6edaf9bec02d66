# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs checks in lanes: side by side the lanes, in order the checks of a lane; a log each and one table at the end."""

import contextlib
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

TAIL_LINES = 60
# Of a line that says what is wrong: the task before it, the reason after it.
ERROR_LINES = (3, 12)
HEARTBEAT_S = 60
# How Ansible, pytest and the linters begin the line that says what is wrong.
ERROR = re.compile(r"\[ERROR\]: |fatal: \[|E   \w|left over: |unexpected write: |asked more than once: ")


class CheckFailed(Exception):
    """A check did not hold; the message says why."""


class Shell:
    """Runs programs for one check, their output in the check's log, and ends them when the run is interrupted."""

    _running: set[int] = set()  # noqa: RUF012  # one set for all shells on purpose: an interrupt ends them all
    _guard = threading.Lock()
    stopping = threading.Event()

    def __init__(self, log: Path, timeout_s: float, *, tidies: bool = False, nice: int = 0) -> None:
        self.log = log
        self._nice = nice
        self.cpu_s = 0.0
        self._tidies = tidies
        self._deadline = time.monotonic() + timeout_s

    def run(self, *command: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
        """Run one program to its end; a status other than 0 or a deadline that passes is a failed check."""
        words = [str(word) for word in command]
        with self.log.open("a", encoding="utf-8") as out:
            out.write(f"$ {' '.join(words)}\n")
            out.flush()
            process = subprocess.Popen(
                ["nice", "-n", str(self._nice), *words], cwd=cwd, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        # Where Linux groups processes by session, this is what counts beside other sessions (sched(7), autogroup).
        with contextlib.suppress(OSError):
            Path(f"/proc/{process.pid}/autogroup").write_text(str(self._nice), encoding="utf-8")
        if not self._tidies:  # what takes things away is not interrupted: it would leave them
            with self._guard:
                self._running.add(process.pid)
        try:
            status = self._wait(process)
        finally:
            with self._guard:
                self._running.discard(process.pid)
        if status is None:
            raise CheckFailed(f"{Path(words[0]).name} was still running at the check's time limit")
        if status != 0:
            raise CheckFailed(f"{Path(words[0]).name} ended with status {status}")

    def _wait(self, process: subprocess.Popen[bytes]) -> int | None:
        """The exit status, or None at the deadline. Adds the processor time of the program and of what it waited for."""
        late = threading.Event()

        def end() -> None:
            late.set()
            os.killpg(process.pid, signal.SIGTERM)

        timer = threading.Timer(max(1.0, self._deadline - time.monotonic()), end)
        timer.start()
        # Popen.wait does not tell the processor time.
        _pid, status, used = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_s += used.ru_utime + used.ru_stime
        return None if late.is_set() else process.returncode

    def say(self, text: str) -> None:
        """Add a line of our own to the log."""
        with self.log.open("a", encoding="utf-8") as out:
            out.write(f"{text}\n")

    @classmethod
    def interrupt_all(cls) -> None:
        """End every program that runs, as Ctrl-C in its own terminal would."""
        cls.stopping.set()
        with cls._guard:
            for pid in cls._running:
                os.killpg(pid, signal.SIGINT)


@dataclass(frozen=True)
class Check:
    """One line of the table: a name, what to do, and what must have passed before."""

    name: str
    body: Callable[[Shell], None]
    timeout_s: float = 1800
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()  # of other lanes: what must have ended before, whatever its result
    always: bool = False  # runs even after an interrupt: it tidies up
    nice: int = 0
    """The niceness of its processes: a check that only computes gives way to those that wait for pods with a time limit."""
    reads: tuple[str, ...] = ("*",)
    """Patterns of the source files that decide about the result; see inputs.py."""
    names: bool = False
    """Whether roles and playbooks count that these files name."""


@dataclass
class Result:
    name: str
    ok: bool
    seconds: float
    cpu_s: float = 0.0
    reason: str = ""
    unchanged: bool = False
    """It was not run: it passed with the same inputs before."""


@dataclass
class Board:
    """What the lanes share: the results so far and the right to print."""

    logs: Path
    results: list[Result] = field(default_factory=list)
    lock: threading.Condition = field(default_factory=threading.Condition)
    running: set[str] = field(default_factory=set)
    """Names of the checks of this run that have not ended."""

    def say(self, text: str) -> None:
        with self.lock:
            print(text, flush=True)

    def passed(self, name: str) -> bool:
        return any(r.ok for r in self.results if r.name == name)

    def known(self, name: str) -> bool:
        return any(r.name == name for r in self.results)

    def wait_for(self, names: Iterable[str]) -> None:
        """Wait until these have ended, as far as they are part of this run."""
        with self.lock:
            self.lock.wait_for(lambda: not self.running.intersection(names))

    def note(self, name: str, result: Result | None) -> None:
        """A check has ended, or will not run at all."""
        with self.lock:
            self.running.discard(name)
            if result:
                self.results.append(result)
            self.lock.notify_all()


def last_line(log: Path) -> str:
    """The newest line with something on it, short enough for a terminal."""
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:100] if lines else ""


def last_error(log: Path) -> str:
    """The newest line that says what is wrong: a log can end with pages about something else."""
    lines, found = _with_errors(log)
    return lines[found[-1]].strip()[:300] if found else ""


def _with_errors(log: Path) -> tuple[list[str], list[int]]:
    """The lines, and the numbers of those that say what is wrong."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return lines, [number for number, line in enumerate(lines) if ERROR.match(line)]


def errors(log: Path, at_most: int = 3) -> list[str]:
    """The newest lines that say what is wrong, with those around them: a molecule scenario ends with pages of its cleanup."""
    lines, found = _with_errors(log)
    before, after = ERROR_LINES
    shown = sorted({n for at in found[-at_most:] for n in range(max(0, at - before), min(len(lines), at + after))})
    return [lines[n][:2000] for n in shown]


def heartbeat(board: Board, check: Check, log: Path, over: threading.Event) -> None:
    """Say now and then what a long check is at."""
    began = time.monotonic()
    while not over.wait(HEARTBEAT_S):
        line = last_line(log) if log.exists() else ""
        board.say(f"  ...  {check.name} ({time.monotonic() - began:.0f} s): {line}")


def run_check(board: Board, check: Check) -> Result:
    """Run one check and report it."""
    log = board.logs / f"{check.name}.log"
    log.unlink(missing_ok=True)
    began = time.monotonic()
    over = threading.Event()
    threading.Thread(target=heartbeat, args=(board, check, log, over), daemon=True).start()
    reason = ""
    shell = Shell(log, check.timeout_s, tidies=check.always, nice=check.nice)
    try:
        missing = [name for name in check.needs if board.known(name) and not board.passed(name)]
        if missing:
            raise CheckFailed(f"not run: needs {', '.join(missing)}")
        check.body(shell)
    except CheckFailed as failure:
        reason = str(failure)
    except Exception as error:  # noqa: BLE001  # a broken check is a failed check; the others still run
        reason = f"{type(error).__name__}: {error}"
    finally:
        over.set()
    if reason and log.exists() and (said := last_error(log)):
        reason += f"; {said}"
    result = Result(check.name, not reason, time.monotonic() - began, shell.cpu_s, reason)
    board.say(f"  {'ok  ' if result.ok else 'FAIL'} {check.name} ({result.seconds:.0f} s){': ' + reason if reason else ''}")
    if reason and log.exists():
        tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:]
        board.say("\n".join([f"------ errors in {log}", *errors(log), "------ its end", *tail, "------"]))
    return result


def run_lane(board: Board, lane: Sequence[Check], shared: deque[Check]) -> None:
    """Run the checks of a lane in order, then those that no other lane has taken yet."""
    for check in itertools.chain(lane, _taken(shared)):
        board.wait_for((*check.needs, *check.after))
        skipped = Shell.stopping.is_set() and not check.always
        board.note(check.name, None if skipped else run_check(board, check))


def _taken(shared: deque[Check]) -> Iterator[Check]:
    while True:
        try:
            yield shared.popleft()
        except IndexError:
            return


def word(result: Result) -> str:
    return "same  " if result.unchanged else "passed" if result.ok else "FAILED"


def table(results: Sequence[Result]) -> str:
    """The results for people: one line a check, with its time and the processor time of its own processes.

    The rest of the time it waited: for pods, whose processes are not counted, or for a processor.
    """
    width = max((len(r.name) for r in results), default=0)
    lines = [f"          {'':<{width}}      wall      CPU"]
    lines += [f"  {word(r)}  {r.name:<{width}}  {r.seconds:6.1f} s {r.cpu_s:6.1f} s  {r.reason}".rstrip() for r in results]
    total = sum(r.cpu_s for r in results)
    return "\n".join([*lines, f"          {'all':<{width}}           {total:8.1f} s"])


def run_lanes(
    lanes: Sequence[Sequence[Check]],
    logs: Path,
    shared: Sequence[Check] = (),
    unchanged: Sequence[Result] = (),
    ended: Callable[[Sequence[Result]], None] = lambda _results: None,
) -> int:
    """Run all lanes; the exit status says whether every check passed.

    ``shared``: checks without a lane, which a lane of their own runs and every other one that has ended. ``unchanged``: results of those
    that need not run. ``ended`` gets all results.
    """
    logs.mkdir(parents=True, exist_ok=True)
    all_checks = [*itertools.chain(*lanes), *shared]
    board = Board(logs, list(unchanged), running={check.name for check in all_checks})
    began = time.monotonic()
    queue = deque(shared)
    threads = [threading.Thread(target=run_lane, args=(board, lane, queue)) for lane in ([], *lanes)]

    def stop(*_: object) -> None:
        print("\nInterrupted: ending what runs, then tidying up.", flush=True)
        Shell.interrupt_all()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(0.5)  # in short waits, so that a signal is seen to soon
    for number, handler in before.items():
        signal.signal(number, handler)
    ended(board.results)
    asked = len(all_checks) + len(unchanged)
    passed = sum(r.ok for r in board.results)
    print(f"\n{table(board.results)}\n  {time.monotonic() - began:.0f} s in all; logs in {logs}\n")
    print(f"{passed} passed, {asked - passed} failed")
    sys.stdout.flush()
    return 0 if passed == asked and asked else 1

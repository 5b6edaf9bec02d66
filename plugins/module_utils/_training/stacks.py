# SPDX-License-Identifier: GPL-3.0-or-later
"""The Python stacks of a training's processes, as py-spy reads them. Equal ones are folded, that of the fewest threads first.

Only names of functions and files and numbers of lines are read: values of variables may be secrets.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import typing as t
from collections.abc import Iterable, Sequence

from .._kube.objects import Manifest
from .._kube.pod_status import main_container

_PROCESS, _RECORDING, _MISSING = "muster.ml/process ", "muster.ml/recording ", "muster.ml/missing"
_NOT_PYTHON = "Failed to find python version"
"""The error of py-spy 0.4.3 for a process of another language (get_python_version in python_process_info.rs)."""
_NONBLOCKING = " --nonblocking"
# py-spy dump has one process a call: its option --subprocesses changes nothing in 0.4.3. The files are those of torch's flight recorder,
# where older and newer versions of torch write them by default (DebugInfoWriter::getWriter of c10d).
_SCRIPT = f"""command -v py-spy >/dev/null || {{ echo {_MISSING}; exit; }}
for dir in /proc/[0-9]*; do
  pid=${{dir#/proc/}}
  said=$(RUST_BACKTRACE=0 py-spy dump --json@ --pid "$pid" 2>&1)
  printf '%s\\n' "{_PROCESS}$pid $?" "$said"
  for file in "$dir"/root/tmp/nccl_trace_rank_* "$dir"/root/*/.cache/torch/comm_lib_trace_rank_* \\
    "$dir"/root/home/*/.cache/torch/comm_lib_trace_rank_*; do
    [ -f "$file" ] && printf '%s\\n' "{_RECORDING}${{file#"$dir"/root}}"
  done
done
true"""
_FRAMES, _RANKS = 12, 8
"""The most that the table shows of one stack, and of the ranks that have it."""


def command(*, nonblocking: bool) -> list[str]:
    """The command that prints the stacks of all processes which its container sees."""
    return ["sh", "-c", _SCRIPT.replace("@", _NONBLOCKING if nonblocking else "")]


def spy(pod: Manifest, image: str, command: Sequence[str], *, ptrace: bool) -> Manifest:
    """An ephemeral container that runs the command among the processes of a pod's main container.

    ``ptrace``: as root with SYS_PTRACE, which may read any process. Otherwise as the user of the container, and with its capabilities.
    """
    main, there = main_container(pod), pod["spec"].get("ephemeralContainers") or []
    security = dict(main.get("securityContext") or {})
    if ptrace:
        kept = {key: security[key] for key in ("appArmorProfile", "seLinuxOptions", "seccompProfile") if key in security}
        security = {**kept, "runAsUser": 0, "runAsNonRoot": False, "capabilities": {"add": ["SYS_PTRACE"]}}
    return {
        "name": f"stacks-{len(there) + 1}",
        "image": image,
        "command": list(command),
        "targetContainerName": main["name"],
        "securityContext": security,
    }


@dataclasses.dataclass(frozen=True)
class Thread:
    """A thread of a rank's process; the innermost frame is the first."""

    rank: str
    name: str
    main: bool
    idle: bool
    stack: tuple[str, ...]


@dataclasses.dataclass
class Seen:
    """The threads of one rank, or the reasons why they are not known."""

    threads: list[Thread] = dataclasses.field(default_factory=list)
    troubles: list[str] = dataclasses.field(default_factory=list)
    """The reasons why processes could not be read, in the words of the program."""
    recordings: list[str] = dataclasses.field(default_factory=list)
    next: str = ""
    """The step that may help with the troubles."""
    added: bool = False
    """Whether an ephemeral container was added."""


def seen_in(rank: str, text: str, why: str, advice: str) -> Seen:
    """Read the output of the command. WHY it is not whole (empty if it is), and the ADVICE where that, or a process, is a trouble."""
    seen = Seen()
    before, *parts = text.split(_PROCESS)
    for part in parts:
        head, _newline, said = part.partition("\n")
        recorded = [_readable(line.removeprefix(_RECORDING)) for line in said.splitlines() if line.startswith(_RECORDING)]
        seen.recordings += [path for path in recorded if path not in seen.recordings]
        try:
            if head.endswith(" 0"):
                seen.threads += _threads(rank, said)
            elif _NOT_PYTHON not in said:
                seen.troubles.append(_trouble(said))
        except (KeyError, TypeError, ValueError):
            seen.troubles.append("its py-spy has printed something else than stacks as JSON")
    told = "its image has no py-spy" if _MISSING in before else _trouble(before)
    seen.troubles = list(dict.fromkeys(filter(None, (*seen.troubles, told, why))))
    if seen.troubles:
        seen.next = advice
    elif not seen.threads:
        seen.troubles.append("it has no process of Python")
    return seen


def _trouble(said: str) -> str:
    lines = [_readable(line).strip().removeprefix("Error: ") for line in said.splitlines() if not line.startswith(_RECORDING)]
    return " ".join(dict.fromkeys(filter(None, lines)))


def _threads(rank: str, said: str) -> list[Thread]:
    begin = said.find("[\n")
    found, _end = json.JSONDecoder().raw_decode(said, max(begin, 0))
    return [
        Thread(
            rank=rank,
            name=_readable(one["thread_name"] or ""),
            main=one["os_thread_id"] == one["pid"] or one["thread_name"] == "MainThread",
            idle=not one["active"],
            stack=tuple(_readable(f"{at['short_filename'] or at['filename']}:{at['line']} {at['name']}") for at in one["frames"]),
        )
        for one in found
    ]


def _readable(text: str) -> str:
    """A name out of a process, which may be anything, as it can be shown on a terminal."""
    return "".join(char if char.isprintable() else "?" for char in text)


def folded(threads: Iterable[Thread]) -> list[dict[str, t.Any]]:
    """Each stack once, with the ranks that have it: those of main threads first, and of these the one with the fewest threads."""
    alike: dict[tuple[bool, tuple[str, ...]], list[Thread]] = collections.defaultdict(list)
    for thread in threads:
        alike[not thread.main, thread.stack].append(thread)
    ordered = sorted(alike.items(), key=lambda item: (item[0][0], len(item[1])))
    return [
        {
            "stack": list(stack),
            "ranks": list(dict.fromkeys(thread.rank for thread in those)),
            "threads": len(those),
            "thread": those[0].name or ("MainThread" if those[0].main else ""),
            "idle": all(thread.idle for thread in those),
        }
        for (_other, stack), those in ordered
    ]


def table(folds: Sequence[dict[str, t.Any]], unread: Sequence[dict[str, t.Any]], recordings: Sequence[dict[str, t.Any]]) -> list[str]:
    """The stacks as lines of text, and each reason for which ranks were not read once."""
    lines = list[str]()
    for fold in folds:
        deeper = len(fold["stack"]) - _FRAMES
        threads = f" ({fold['threads']} threads)" if fold["threads"] > len(fold["ranks"]) else ""
        lines.append(f"{_some(fold['ranks'])}: {fold['thread'] or 'a thread'} {'waits' if fold['idle'] else 'runs'} in{threads}")
        lines += [f"    {frame}" for frame in fold["stack"][:_FRAMES]] + ([f"    and {deeper} more"] if deeper > 0 else [])
    alike = collections.defaultdict[str, list[dict[str, t.Any]]](list)
    for one in unread:
        alike[one["reason"].replace(one["pod"], "")].append(one)
    for those in alike.values():
        lines.append(f"{_some([one['rank'] for one in those])}: not read: {those[0]['reason']}. {those[0]['next']}".strip())
    return lines + [f"{one['rank']}: flight recorder of torch: {one['path']}" for one in recordings]


def _some(ranks: Sequence[str]) -> str:
    return ", ".join(ranks[:_RANKS]) + (f" and {len(ranks) - _RANKS} more" if len(ranks) > _RANKS else "")

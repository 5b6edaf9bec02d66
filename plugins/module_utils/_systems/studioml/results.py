# SPDX-License-Identifier: GPL-3.0-or-later
"""The output of an experiment: its outcome, and the metrics in it. No I/O but on the given file.

Read in the code of leaf-ai/studio-go-runner (internal/runner/pythonenv.go, cmd/runner/processor.go):

- ``output.tar`` has the file ``output`` with everything that script and program wrote. It is stored also when the experiment failed, and,
  if the request says so, while it runs.
- After a program that ended well, the script writes ``{"studioml": {"stop_time": ...}}``. After one that did not, it writes that it was
  aborted, and the runner adds ``failed when downloading user data``, whatever the cause was (outputErr).
- Lines that are JSON are results: objects are merged in their order (copyToMetaData). Lists are patches there, and left out here.

The script lists its environment, so the output may have secrets.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import re
import tarfile
import typing as t
from collections.abc import Iterable, Mapping

from ..._core.errors import Failed
from ..._core.sensitive import Sensitive
from ..._training.progress import Progress
from ..._training.progress import read as read_progress

_FAILED = re.compile(r"failed when downloading user data$|^The execution was aborted because a command exited with an error")
_SHOWN = 8
"""Last lines of an output that an error shows."""
_TAIL = 1000
"""Last lines of an output in which progress is looked for."""
_LONGEST = 1 << 16
"""Bytes of a line that may be a result."""
_WIDE = 300


@dataclasses.dataclass(frozen=True)
class Result:
    """``ended``: None while it still writes, or was stopped with its runner."""

    ended: t.Literal["finished", "failed"] | None
    results: Mapping[str, t.Any]
    last: tuple[str, ...]
    progress: Progress


def read(archive: t.IO[bytes], secrets: Iterable[Sensitive]) -> Result:
    """The result in an ``output.tar``."""
    try:
        with tarfile.open(fileobj=archive) as tar:
            for member in tar:
                if member.isfile() and member.name.removeprefix("./") == "output":
                    content = tar.extractfile(member)
                    return judged(content or (), secrets)
    except (tarfile.TarError, EOFError) as exc:
        raise Failed("The output of the experiment is not a tar file.", "Did something else store it?") from exc
    return judged((), secrets)


def judged(lines: Iterable[bytes], secrets: Iterable[Sensitive]) -> Result:
    """Return the result that the lines of an output have."""
    ended: t.Literal["finished", "failed"] | None = None
    merged: dict[str, t.Any] = {}
    hidden, tail = list(secrets), collections.deque[str](maxlen=_TAIL)
    for raw in lines:
        line = raw[:_LONGEST].decode(errors="replace").strip()
        if line:
            tail.append(line)
        if _FAILED.search(line):
            ended = "failed"
        found = _document(line)
        if found is not None:
            merge(merged, found)
            ours = found.get("studioml")
            if ended is None and isinstance(ours, Mapping) and "stop_time" in ours:
                ended = "finished"
    last = tuple(without(line, hidden)[:_WIDE] for line in list(tail)[-_SHOWN:])
    return Result(ended, merged, last, read_progress("\n".join(tail)))


def metric(result: Result, path: str, experiment: str) -> t.Any:
    """Return the value at PATH (``experiment.loss``) in the results of the experiment."""
    found: t.Any = result.results
    for part in path.split("."):
        if not isinstance(found, Mapping) or part not in found:
            known = ", ".join(sorted(_paths({k: v for k, v in result.results.items() if k != "studioml"}))[:8])
            raise Failed(
                f"Experiment {experiment} has finished, but wrote no {path}.",
                f"It wrote {known}." if known else 'It has to print a line of JSON, such as {"experiment": {"loss": 0.5}}.',
            )
        found = found[part]
    return found


def without(text: str, secrets: Iterable[Sensitive]) -> str:
    for secret in secrets:
        if len(value := str(secret.reveal())) > 3:
            text = text.replace(value, "<redacted>")
    return text


def merge(target: dict[str, t.Any], found: Mapping[str, t.Any]) -> None:
    """Merge FOUND into TARGET by RFC 7386, as the runner does."""
    for name, value in found.items():
        if value is None:
            target.pop(name, None)
        elif isinstance(value, Mapping):
            inner = target.get(name)
            target[name] = dict(inner) if isinstance(inner, Mapping) else {}
            merge(target[name], value)
        else:
            target[name] = value


def _document(line: str) -> dict[str, t.Any] | None:
    if not (line.startswith("{") and line.endswith("}")):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _paths(found: Mapping[str, t.Any], above: str = "") -> list[str]:
    paths: list[str] = []
    for name, value in found.items():
        paths += _paths(value, f"{above}{name}.") if isinstance(value, Mapping) and value else [f"{above}{name}"]
    return paths

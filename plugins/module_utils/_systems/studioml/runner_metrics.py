# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of a StudioML runner, from its metrics and its log. No I/O.

Output of runners of 0.14 is recorded in roles/local_images/files/studioml_runner, a file for each version. Of the metrics these
matter:

- ``runner_project_running``: experiments that run now, a sample for each. It goes back to 0 when one ends;
- ``runner_project_completed``: counts experiments that have ended, whether well or not (scene "artifact_missing");
- ``runner_queue_checked``: counts polls for work, by broker. It exists once a queue was found;
- ``runner_queue_ignored`` with the queue name ``*``: counts polls that were skipped because of the state. It rises while it is drained.

The lines with an error quote the address of the management API with user and password. They are never shown, only their causes.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ..._core.errors import Causes, cause_of
from ..._core.metrics import Figures, Sample, named, samples
from ..._kube.objects import Manifest
from ..._kube.uses import ADDRESS, Name, named_by

_RUNNING, _CHECKED, _IGNORED = "runner_project_running", "runner_queue_checked", "runner_queue_ignored"
_ENDED = "runner_project_completed"


def told(text: str) -> t.Iterator[Sample]:
    """The samples of a runner. A metric without any has not been counted yet, because Go's client writes only what was."""
    yield from (Sample(name, {}, 0) for name in (_RUNNING, _ENDED))
    yield from samples(text)


FIGURES = Figures(prefix="runner_", paths={"/metrics": told}, counts={"running": named(_RUNNING), "ended": named(_ENDED)})

_IDLE, _UNREAD, _NO_KEYS = "no queues", "queues are not listed", "no keys"
_LINES: Causes = (
    # 0.14 writes ``no queues``, 0.12 ``no queues found`` (cmd/runner/rabbit.go). 0.14.3 has the same words for queues in a folder.
    (_IDLE, re.compile(r" no queues(?: found)? _: \[\[identity amqps?://")),
    (_UNREAD, re.compile("unable to refresh RMQ manifest")),
    (_NO_KEYS, re.compile("unable to load message encryption secrets")),
)
_CAUSES: Causes = (
    ("its connection is refused", re.compile("connection refused", re.IGNORECASE)),
    ("its name is unknown", re.compile("no such host", re.IGNORECASE)),
    ("it refuses user or password, or its user lacks the tag management or monitoring", re.compile("401 unauthorized", re.IGNORECASE)),
    ("its certificate is not trusted, which broker_ca changes", re.compile("x509", re.IGNORECASE)),
)
"""Causes of a recorded error. The rest of the line is not shown. RabbitMQ answers 401 to a user without a tag, too. A broker that accepts
a connection and does not respond stops the runner's polls without a log line."""


@dataclasses.dataclass(frozen=True)
class RunnerView:
    """One pod. ``trouble``: the reason why it does not work; empty if it does, or would if there were queues."""

    pod: str
    experiments: tuple[str, ...] = ()
    """The experiments that run now."""
    checked: float = 0.0
    """The number of polls for work since it first found a queue."""
    ignored: float = 0.0
    """The number of polls that were skipped because it is drained."""
    trouble: str = ""
    answered: bool = True
    """Whether its metrics could be read."""

    @property
    def state(self) -> str:
        """The state, in one word."""
        if self.trouble:
            return "failing"
        return "working" if self.checked else "idle"


def view(pod: str, metrics: str, log: str) -> RunnerView:
    """Read metrics, and the end of a log."""
    experiments: list[str] = []
    checked = ignored = 0.0
    for name, labels, value in samples(metrics):
        if name == _RUNNING and value > 0:
            experiments.append(labels.get("experiment", "?"))
        elif name == _CHECKED:
            checked += value
        elif name == _IGNORED and labels.get("queue_name") == "*":
            ignored += value
    return RunnerView(pod, tuple(sorted(experiments)), checked, ignored, _trouble(log, found=bool(checked)))


def _trouble(log: str, *, found: bool) -> str:
    """Return the problem by the newest relevant line. A later success is not logged: only the metrics have it."""
    told = [(cause, line) for line in log.splitlines() if (cause := cause_of(line, _LINES))]
    if any(cause == _NO_KEYS for cause, _line in told):
        return "it could not read its keys, and refuses every request"
    if told:
        cause, line = told[-1]
        return "" if cause == _IDLE else f"it cannot list the broker's queues ({cause_of(line, _CAUSES) or 'its log says why'})"
    # No relevant line: it has found queues since its start, is drained, or has not polled yet.
    return "" if found else "it has not listed the broker's queues yet"


def waiting(runner: Manifest, brokers: t.Iterable[t.Mapping[str, t.Any]]) -> dict[str, int]:
    """The messages that wait in the queues which a runner takes, by the rows of inference_info of BROKERS; nothing if none is its own.

    The exchange of experiments has no binding to a queue of answers, so it is none of them.
    """
    uses, env = named_by(runner), runner["spec"]["template"]["spec"]["containers"][0].get("env", ())
    take, leave = (next((one.get("value", "") for one in env if one["name"] == name), "") for name in ("QUEUE_MATCH", "QUEUE_MISMATCH"))
    queues = [
        queue
        for one in brokers
        if Name(ADDRESS, one["namespace"], one["name"]) in uses
        for queue in one.get("queues", ())
        if re.search(take, queue["name"]) and not (leave and re.search(leave, queue["name"])) and not queue["name"].endswith("_response")
    ]
    return {"waiting": sum(queue["messages_ready"] for queue in queues)} if queues else {}

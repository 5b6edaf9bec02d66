# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a StudioML runner says of itself, in its metrics and its log. No I/O.

What runners of 0.14 have written is recorded in roles/local_images/files/studioml_runner, a file for each version. Of the metrics these
matter:

- ``runner_project_running``: experiments that run now, a sample for each. It goes back to 0 when one ends;
- ``runner_queue_checked``: counts looks for work, by broker. It exists once a queue was found;
- ``runner_queue_ignored`` with the queue name ``*``: counts looks that were left out because of the state. It rises while it is drained.

The lines with an error quote the address of the management API with user and password. They are never shown, only what they mean.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import re

_SAMPLE = re.compile(r"^(runner_\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_RUNNING, _CHECKED, _IGNORED = "runner_project_running", "runner_queue_checked", "runner_queue_ignored"

_IDLE = re.compile(r" no queues(?: found)? _: \[\[identity amqps?://")
"""0.14 writes ``no queues``, 0.12 ``no queues found`` (cmd/runner/rabbit.go). 0.14.3 has the same words for queues in a folder."""
_UNREAD = "unable to refresh RMQ manifest"
_NO_KEYS = "unable to load message encryption secrets"
_CAUSES = {
    "connection refused": "its connection is refused",
    "no such host": "its name is unknown",
    "401 unauthorized": "it refuses user or password, or its user lacks the tag management or monitoring",
    "x509": "its certificate is not trusted, which broker_ca changes",
}
"""Words of a recorded error, and what they mean. Whatever else is in the line is not shown. RabbitMQ answers 401 to a user without a tag,
too. A broker that takes a connection and does not answer stops the runner's looks without a line."""


@dataclasses.dataclass(frozen=True)
class RunnerView:
    """One pod. ``trouble``: why it does not work; empty if it does, or could if there were queues."""

    pod: str
    experiments: tuple[str, ...] = ()
    """Those that run now."""
    checked: float = 0.0
    """How often it has looked for work since it first found a queue."""
    ignored: float = 0.0
    """How often it has not looked for work because it is drained."""
    trouble: str = ""
    answered: bool = True
    """Whether its metrics could be read."""

    @property
    def state(self) -> str:
        """In one word."""
        if self.trouble:
            return "failing"
        return "working" if self.checked else "idle"


def view(pod: str, metrics: str, log: str) -> RunnerView:
    """Read metrics, and the end of a log."""
    experiments: list[str] = []
    checked = ignored = 0.0
    for name, text, value in _SAMPLE.findall(metrics):
        labels = dict(_LABEL.findall(text))
        if name == _RUNNING and float(value) > 0:
            experiments.append(labels.get("experiment", "?"))
        elif name == _CHECKED:
            checked += float(value)
        elif name == _IGNORED and labels.get("queue_name") == "*":
            ignored += float(value)
    return RunnerView(pod, tuple(sorted(experiments)), checked, ignored, _trouble(log, found=bool(checked)))


def _trouble(log: str, *, found: bool) -> str:
    """What is wrong by the newest line that tells. A later success is in no line, only in the metrics."""
    if _NO_KEYS in log:
        return "it could not read its keys, and refuses every request"
    for line in reversed(log.splitlines()):
        if _IDLE.search(line):
            return ""
        if _UNREAD in line:
            lower = line.lower()
            cause = next((meaning for word, meaning in _CAUSES.items() if word in lower), "its log says why")
            return f"it cannot list the broker's queues ({cause})"
    # Neither: it has found queues ever since it began, or is drained, or has not looked yet.
    return "" if found else "it has not listed the broker's queues yet"

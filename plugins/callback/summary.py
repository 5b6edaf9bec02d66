# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the changes of a run, and the results of each system, to a JSON file."""

from __future__ import annotations

DOCUMENTATION = r"""
name: summary
type: aggregate
short_description: Write the results of a run to a JSON file
author: Muster contributors (!UNKNOWN)
description:
  - At the end of a run that installed systems, or of one of the O(playbooks), writes a JSON file with the results of each
    system, the number of changed and failed tasks, the write requests that reached the API server, the time the run took
    and the time each role took.
  - Where the inventory has a group C(muster_clusters), each of its hosts gets a file of its own, with the name of the host in its
    name, C(summary-HOST.json).
  - Lists the objects of a cluster that modules of this collection created, updated or deleted, or would in check mode; and the changes
    of an AWS account by their modules.
  - Systems report results through M(ansible.builtin.set_stats) with C(per_host), as C(muster_systems), a dictionary by name of the system.
    A run that installs systems reports it, be it empty.
  - Write requests of this run are counted in the audit log of the local cluster, by their user agent, which has a random identifier of
    the run (in the environment variable E(MUSTER_RUN)). Dry runs are counted separately. Both are V(null) if there is no readable audit
    log, or one without any request of this run because it is another cluster's. The line at the end says so, too.
  - In check mode the figures are printed, and a file is written only if O(path) is set.
  - In check mode with the variable C(muster_plan_file) the plan of the run is written into that file, with a page for readers beside it.
requirements:
  - enabled in C(ansible.cfg), with C(callbacks_enabled = muster.ml.summary)
options:
  path:
    description:
      - Path of the file to write, relative to the current directory.
      - Defaults to C(build/run/summary.json).
    type: str
    env:
      - name: MUSTER_SUMMARY_PATH
    ini:
      - section: callback_summary
        key: path
  playbooks:
    description: File names of further playbooks whose runs are summarised, even if they fail before the first system.
    type: list
    elements: str
    default: [site.yml]
    env:
      - name: MUSTER_SUMMARY_PLAYBOOKS
    ini:
      - section: callback_summary
        key: playbooks
  audit_log:
    description:
      - Path of the API server's audit log, in JSON lines.
      - Defaults to the path that the playbook reports through M(ansible.builtin.set_stats) as C(muster_audit_log), empty for a cluster
        that has none, else C(/var/log/muster/audit.log).
      - Of the hosts of C(muster_clusters) each has a log of its own, so only the reported path is read.
    type: str
    env:
      - name: MUSTER_AUDIT_LOG
    ini:
      - section: callback_summary
        key: audit_log
"""

import collections
import dataclasses
import datetime as dt
import json
import os
import pathlib
import secrets
import time
import typing as t

from ansible import context
from ansible.plugins.callback import CallbackBase

from ansible_collections.muster.ml.plugins.module_utils._core.files import replaced
from ansible_collections.muster.ml.plugins.plugin_utils import _review as review
from ansible_collections.muster.ml.plugins.plugin_utils._rows import parts, rows

_TOLD = ("kind", "namespace", "name", "action")
WRITE_VERBS = frozenset({"create", "update", "patch", "delete", "deletecollection"})
DEFAULT_PATH = "build/run/summary.json"
DEFAULT_AUDIT_LOG = "/var/log/muster/audit.log"
_COARSE = 1.0
"""Seconds by which the time that a file system notes may be behind the clock."""


class AuditLog:
    """An API server's audit log from now on, including files that are rotated meanwhile."""

    def __init__(self, path: pathlib.Path, *, started: float) -> None:
        self.path = path
        self._started = started
        self._offsets = {stat.st_ino: stat.st_size for _file, stat in self._files()}

    def whole(self) -> AuditLog:
        """The same log from its beginning: its size at the start of the run is unknown."""
        self._offsets = {}
        return self

    def _files(self) -> list[tuple[pathlib.Path, os.stat_result]]:
        # Rotated files stand beside the log: audit.log and audit-2026-11-21T09-00-00.000.log.
        pattern = f"{self.path.stem}*{self.path.suffix}"
        return [(file, file.stat()) for file in sorted(self.path.parent.glob(pattern))]

    def lines(self) -> t.Iterator[bytes]:
        """Return the complete lines written since the start. Raises OSError if a file cannot be read."""
        for file, stat in self._files():
            if stat.st_mtime < self._started - _COARSE:
                continue
            with file.open("rb") as lines:
                lines.seek(self._offsets.get(stat.st_ino, 0))
                yield from (line for line in lines if line.endswith(b"\n"))

    def writes(self, run: str) -> tuple[int, int] | None:
        """Count the write requests and dry runs of a run. None if the log cannot be read, or has no request of the run."""
        kinds: collections.Counter[str] = collections.Counter()
        try:
            # Nearly all lines are of other clients. Skip them before the costly parse.
            kinds.update(_kind_of(line) for line in self.lines() if b'"userAgent":"muster/%b"' % run.encode() in line)
        except OSError:
            return None
        return (kinds["write"], kinds["dry run"]) if kinds else None


def _kind_of(line: bytes) -> t.Literal["write", "dry run", "read"]:
    """Tell whether a line of the audit log is a write request, a dry run or neither."""
    try:
        event = json.loads(line)
    except ValueError:  # a killed API server leaves half a line, and the next one appends to it
        return "read"
    if event.get("verb") not in WRITE_VERBS or event.get("stage") != "ResponseComplete":
        return "read"
    return "dry run" if "dryRun=All" in event.get("requestURI", "") else "write"


@dataclasses.dataclass
class Cluster:
    """The record of a run on one cluster: a host of the group muster_clusters, or all hosts if there is no such group."""

    name: str = ""
    roles: dict[str, float] = dataclasses.field(default_factory=dict)
    objects: dict[tuple[str | None, ...], None] = dataclasses.field(default_factory=dict)  # ordered, and each one once
    cloud: list[dict[str, t.Any]] = dataclasses.field(default_factory=list)
    ended: float = 0.0
    _current: tuple[str, float] | None = None

    def start_task(self, role: str | None) -> None:
        self.end_task()
        if role is not None:
            self._current = (role, time.monotonic())

    def end_task(self) -> None:
        if self._current is not None:
            role, since = self._current
            self.roles[role] = self.roles.get(role, 0.0) + time.monotonic() - since
            self._current = None

    def note(self, module: str, result: t.Mapping[str, t.Any]) -> None:
        """Record the changes that a module of this collection, or one of AWS's, returned."""
        ours = module.startswith("muster.ml.")
        for part in parts(result):
            for entry in rows(part.get("objects")) if ours else []:
                if entry.get("action") != "unchanged":
                    self.objects[tuple(entry.get(key) for key in _TOLD)] = None
            if part.get("changed") and (module.startswith("amazon.aws.") or (ours and "actions" in part)):
                self.cloud.append({"module": module, "item": part.get("item"), "actions": part.get("actions", [])})

    def sum_of(self, *counts: dict[str, int]) -> int:
        return sum(n for count in counts for host, n in count.items() if self.name in ("", host))

    def told(self, stats: t.Any) -> dict[str, t.Any]:
        """Return what playbooks and roles reported through set_stats."""
        hosts = ["_run", self.name] if self.name else stats.custom
        return {key: value for host in hosts for key, value in stats.custom.get(host, {}).items()}

    def path(self, path: str) -> pathlib.Path:
        whole = pathlib.Path(path)
        return whole.with_name(f"{whole.stem}-{self.name}{whole.suffix}") if self.name else whole


class CallbackModule(CallbackBase):  # type: ignore[misc]
    """See DOCUMENTATION."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "muster.ml.summary"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, display: t.Any = None) -> None:
        super().__init__(display)
        self._started = time.time()
        self._clock = time.monotonic()
        self._group: frozenset[str] = frozenset()
        self._clusters: dict[str, Cluster] = {}
        self._playbook = ""
        self._audit: AuditLog | None = None
        # Of a plan: tasks of other modules that would change something, and what check mode could not look at.
        self._others: list[dict[str, str]] = []
        self._unknown: list[str] = []
        # Processes of tasks inherit it; see _kube/client.py.
        self._run = os.environ["MUSTER_RUN"] = secrets.token_hex(6)

    def v2_playbook_on_start(self, playbook: t.Any) -> None:
        self._playbook = pathlib.Path(playbook._file_name).name
        path = self.get_option("audit_log") or DEFAULT_AUDIT_LOG
        self._audit = AuditLog(pathlib.Path(path), started=self._started)

    def v2_playbook_on_play_start(self, play: t.Any) -> None:
        groups = play.get_variable_manager()._inventory.get_groups_dict()
        self._group = frozenset(groups.get("muster_clusters", ()))

    def v2_runner_on_start(self, host: t.Any, task: t.Any) -> None:
        self._cluster(host).start_task(task._role and task._role.get_name().rpartition(".")[2])

    def v2_runner_on_ok(self, result: t.Any) -> None:
        self._note(result)

    def v2_runner_on_skipped(self, result: t.Any) -> None:
        self._note(result)

    def v2_runner_on_failed(self, result: t.Any, ignore_errors: bool = False) -> None:
        self._note(result)
        if ignore_errors:
            self._unknown.append(f"{result._task.get_name()} ({result._host.get_name()}): the task failed, and its error is ignored")

    def v2_runner_on_unreachable(self, result: t.Any) -> None:
        self._note(result)

    def _cluster(self, host: t.Any) -> Cluster:
        name = host.get_name() if host.get_name() in self._group else ""
        return self._clusters.setdefault(name, Cluster(name))

    def _note(self, result: t.Any) -> None:
        cluster, task = self._cluster(result._host), result._task
        cluster.ended = time.monotonic()
        # A task with check_mode in a real run changes nothing.
        rehearsal = task.check_mode and not context.CLIARGS.get("check")
        if not rehearsal:
            cluster.note(str(task.action), result._result)
        if context.CLIARGS.get("check") and not str(task.action).startswith("muster.ml."):
            self._note_other(result)

    def _note_other(self, result: t.Any) -> None:
        """Note a task of another module that would change something, which neither a plan nor its limit knows."""
        said = any(part.get("changed") or (part.get("skipped") and "check mode" in str(part.get("msg"))) for part in parts(result._result))
        row = {"task": result._task.get_name(), "module": str(result._task.action), "host": result._host.get_name()}
        if said and row not in self._others:
            self._others.append(row)

    def v2_playbook_on_stats(self, stats: t.Any) -> None:
        named = [cluster for name, cluster in sorted(self._clusters.items()) if name]
        for cluster in named or [self._clusters.get("", Cluster())]:
            self._report(cluster, stats)
        if context.CLIARGS.get("check"):
            self._write_plans(stats)

    def _write_plans(self, stats: t.Any) -> None:
        unknown = [*self._unknown, *(text for told in stats.custom.values() for text in told.get("__plan_unknown", ()))]
        failed = any((*stats.failures.values(), *stats.dark.values()))
        started = dt.datetime.fromtimestamp(self._started, dt.UTC)
        for file in review.write(self._playbook, started, self._others, unknown, complete=not failed):
            self._display.display(f"muster: plan {file}, for readers {review.page_of(pathlib.Path(file))}")

    def _report(self, cluster: Cluster, stats: t.Any) -> None:
        cluster.end_task()
        told = cluster.told(stats)
        if "muster_systems" not in told and self._playbook not in self.get_option("playbooks"):
            return
        summary = self._summary(cluster, stats, told)
        writes = summary["write_requests"]
        counted = ", write requests not counted (no audit log of the cluster)" if writes is None else f", {writes} write requests"
        asked = self.get_option("path")
        path = cluster.path(asked or DEFAULT_PATH)
        where = f"; {self._write(summary, path)}" if asked or not summary["check"] else ""
        title = f"muster, {cluster.name}" if cluster.name else "muster"
        self._display.display(f"{title}: {summary['wall_s']} s, changed={summary['changed']}, failed={summary['failed']}{counted}{where}")

    def _writes(self, cluster: Cluster, told: str | None) -> tuple[int, int] | None:
        """Count the write requests and dry runs on a cluster; None without an audit log of it."""
        if cluster.name:
            return AuditLog(pathlib.Path(told), started=self._started).whole().writes(self._run) if told else None
        return self._audit_log(told).writes(self._run)

    def _audit_log(self, told: str | None) -> AuditLog:
        """Return the configured log, else the one that the playbook reported, else the default."""
        if self._audit and (self.get_option("audit_log") or not told or str(self._audit.path) == told):
            return self._audit
        return AuditLog(pathlib.Path(told or DEFAULT_AUDIT_LOG), started=self._started).whole()

    def _summary(self, cluster: Cluster, stats: t.Any, told: dict[str, t.Any]) -> dict[str, t.Any]:
        writes = self._writes(cluster, told.get("muster_audit_log"))
        ended = cluster.ended if cluster.name else time.monotonic()
        return {
            **({"cluster": cluster.name} if cluster.name else {}),
            "systems": told.get("muster_systems", {}),
            "changed": cluster.sum_of(stats.changed),
            "failed": cluster.sum_of(stats.failures, stats.dark),
            "write_requests": writes[0] if writes else None,
            "dry_run_requests": writes[1] if writes else None,
            "wall_s": round(ended - self._clock, 1),
            "roles": {role: round(seconds, 1) for role, seconds in cluster.roles.items()},
            "check": bool(context.CLIARGS.get("check")),
            "objects": [dict(zip(_TOLD, done, strict=True)) for done in cluster.objects],
            "cloud": cluster.cloud,
            "playbook": self._playbook,
            "started": dt.datetime.fromtimestamp(self._started, dt.UTC).isoformat(timespec="seconds"),
        }

    @staticmethod
    def _write(summary: dict[str, t.Any], path: pathlib.Path) -> str:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced(path, 0o644) as file:
            file.write((json.dumps(summary, indent=2, default=str) + "\n").encode())
        return str(path)

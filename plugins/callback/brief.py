# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Report the changes, messages and failures of a run; count the rest."""

from __future__ import annotations

DOCUMENTATION = r"""
name: brief
type: stdout
short_description: Report the changes, messages and failures of a run
author: Muster contributors (!UNKNOWN)
description:
  - Prints tasks that change something or fail, warnings, and the messages of M(ansible.builtin.debug) as plain lines.
  - A task with C(until) is reported every 30 seconds while it tries again, instead of each time.
  - Tasks with nothing to change are counted. Skipped tasks and includes are not printed, nor are plays that only check something, such
    as those for another platform.
  - In check mode it closes with a table of the objects that would be created, updated, recreated or deleted, those with data marked, and
    of the changes in a cloud. With C(--diff) the differences follow the table instead of their tasks.
  - A permission that AWS refuses is followed by the line of the published policies that gives it.
  - An error is printed once, with the file and line of its task.
  - A run of a playbook of this collection that is interrupted, by Ctrl-C for example, closes with what goes on in the cluster.
  - With C(-v) it prints what the callback plugin P(ansible.builtin.default#callback) prints.
requirements:
  - enabled in C(ansible.cfg), with C(stdout_callback = muster.ml.brief)
extends_documentation_fragment:
  - default_callback
  - result_format_callback
"""

import atexit
import os
import shlex
import sys
import time
import typing as t
from pathlib import Path

from ansible import constants, context
from ansible.playbook.task_include import TaskInclude
from ansible.plugins.callback.default import CallbackModule as Default

from ansible_collections.muster.ml.plugins.module_utils._aws.permissions import explained
from ansible_collections.muster.ml.plugins.plugin_utils._rows import parts, rows

_COLLECTION = Path(__file__).resolve().parents[2]
_POLICIES = _COLLECTION / "playbooks" / "files" / "eks-policies"
_PACE = 30.0  # seconds between two lines of a task that tries again
_NOT_PRINTED = ("display_ok_hosts", "display_skipped_hosts")
_MESSAGES = ("debug", "ansible.builtin.debug")
_DATA = frozenset({"PersistentVolumeClaim", "PersistentVolume"})
_ACTIONS = {"created": "create", "updated": "update", "recreated": "recreate", "deleted": "delete"}
_CLOUD = "in the cloud"
_HOST = "on the host"
_LINES = 50  # objects of one action in the table of a plan
# They look at variables only. A play of nothing else has not begun its work.
_CHECKS = {
    prefix + name
    for prefix in ("", "ansible.builtin.")
    for name in ("assert", "fail", "include_vars", "set_fact", "validate_argument_spec")
}


class CallbackModule(Default):  # type: ignore[misc]
    """See DOCUMENTATION."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "muster.ml.brief"

    def __init__(self) -> None:
        super().__init__()
        self._heading = ""  # of the play, until it is printed
        self._unchanged: set[str] = set()  # tasks since the last line
        self._works = False
        self._tried: dict[tuple[str, str], float] = {}  # task and host: when it was last reported
        self._process = 0  # of a run that has begun and not ended
        self._plan: dict[str, list[str]] = {}  # by action
        self._diffs: list[t.Any] = []  # results of check mode whose differences follow the table

    @property
    def _is_verbose(self) -> bool:
        return bool(self._display.verbosity)

    def get_option(self, k: str, hostvars: t.Any = None) -> t.Any:
        if k in _NOT_PRINTED and not self._is_verbose:
            return False
        if k == "show_task_path_on_failure" and not self._is_verbose:
            return True
        return super().get_option(k, hostvars)

    def v2_playbook_on_start(self, playbook: t.Any) -> None:
        super().v2_playbook_on_start(playbook)
        if Path(playbook._file_name).resolve().is_relative_to(_COLLECTION):
            self._process = os.getpid()
            atexit.register(self._print_interrupted)

    def _print_interrupted(self) -> None:
        """Print what goes on without this run, which ends without statistics. Processes of tasks inherit the call, and do not make it."""
        if self._process != os.getpid():
            return
        inventory = "".join(f" -i {shlex.quote(source)}" for source in context.CLIARGS.get("inventory") or ())
        command = f"{sys.argv[0]}{inventory} muster.ml"
        self._display.display(
            "Interrupted. What was created stays, and trainings go on in the cluster. The same command continues where this run ended.\n"
            f"    see what is there:         {command}.status\n    remove it, data excepted:  {command}.teardown"
        )

    # Plays

    def v2_playbook_on_play_start(self, play: t.Any) -> None:
        self._end_play()
        if self._is_verbose:
            super().v2_playbook_on_play_start(play)
            return
        self._play = play
        name = play.get_name().strip()
        checks = " [CHECK MODE]" if play.check_mode and self.get_option("check_mode_markers") else ""
        self._heading = f"PLAY [{name}]{checks}" if name else f"PLAY{checks}"

    def v2_playbook_on_no_hosts_matched(self) -> None:
        if self._is_verbose:
            super().v2_playbook_on_no_hosts_matched()

    def v2_playbook_on_stats(self, stats: t.Any) -> None:
        self._end_play()
        self._print_plan()
        self._process = 0
        super().v2_playbook_on_stats(stats)

    def _end_play(self) -> None:
        if self._works:
            self._print_pending()
        self._heading, self._unchanged, self._works = "", set(), False

    def _print_pending(self) -> None:
        """Print the heading of the play, and the number of tasks that were not printed."""
        if self._heading:
            self._display.banner(self._heading)
            self._heading = ""
        if count := len(self._unchanged):
            text = f"ok: {count} {'task' if count == 1 else 'tasks'} with nothing to change"
            self._display.display(text, color=constants.COLOR_OK)
        self._unchanged, self._works = set(), False

    # The plan of check mode

    def _is_planned(self, task: t.Any) -> bool:
        """Whether the result of a task belongs to a plan. A task with check_mode in a real run is a rehearsal."""
        return bool(task.check_mode and context.CLIARGS.get("check") and not self._is_verbose)

    def v2_on_file_diff(self, result: t.Any) -> None:
        if self._is_planned(result._task):
            self._diffs.append(result)
        else:
            super().v2_on_file_diff(result)

    def _note_plan(self, result: t.Any) -> None:
        host = result._host.get_name()
        before = "" if host == "localhost" else f"{host}: "
        for part in parts(result._result):
            for entry in rows(part.get("objects")):
                if action := _ACTIONS.get(entry.get("action", "")):
                    place = "/".join(filter(None, (entry.get("namespace"), str(entry.get("name")))))
                    at_risk = action in ("recreate", "delete") and entry.get("kind") in _DATA
                    self._plan.setdefault(action, []).append(f"{before}{entry.get('kind')} {place}{' (its data, too)' if at_risk else ''}")
            if actions := part.get("actions"):
                where = _HOST if "node" in part else _CLOUD  # that of kubeadm_node
                self._plan.setdefault(where, []).extend(f"{before}{action}" for action in actions)

    def _print_plan(self) -> None:
        if self._plan:
            counts = (f"{len(lines)} {action if action in (_CLOUD, _HOST) else f'to {action}'}" for action, lines in self._plan.items())
            self._display.banner(f"PLAN: {', '.join(counts)}")
            for action, lines in self._plan.items():
                for line in lines[:_LINES]:
                    self._display.display(f"    {action:<9} {line}", color=constants.COLOR_CHANGED)
                if len(lines) > _LINES:
                    self._display.display(f"    {action:<9} and {len(lines) - _LINES} more", color=constants.COLOR_CHANGED)
        for result in self._diffs:
            self._last_task_banner = result._task._uuid  # no heading: each difference names its object
            super().v2_on_file_diff(result)

    # Tasks

    def _print_task_banner(self, task: t.Any) -> None:
        self._unchanged.discard(task._uuid)
        self._print_pending()
        super()._print_task_banner(task)

    def v2_playbook_on_include(self, included_file: t.Any) -> None:
        if self._is_verbose:
            super().v2_playbook_on_include(included_file)

    def v2_runner_on_ok(self, result: t.Any) -> None:
        task, found = result._task, result._result
        if self._is_planned(task) and found.get("changed"):
            self._note_plan(result)
        if self._is_verbose or found.get("changed"):
            super().v2_runner_on_ok(result)
        elif not isinstance(task, TaskInclude):
            if task.action in _MESSAGES:
                if not task.loop:
                    self._print_message(result)
                return
            self._unchanged.add(task._uuid)
            self._works = self._works or task.action not in _CHECKS
            if found.get("warnings") or found.get("deprecations"):
                self._print_task_banner(task)
                self._handle_warnings_and_exception(result)

    def v2_runner_on_failed(self, result: t.Any, ignore_errors: bool = False) -> None:
        super().v2_runner_on_failed(result, ignore_errors)
        found = result._result
        said = [found.get("msg", ""), *(part.get("msg", "") for part in parts(found) if part.get("failed"))]
        for line in explained("\n".join(map(str, said)), _POLICIES):
            self._display.display(f"    {line}", color=constants.COLOR_ERROR)

    def _dump_results(self, result: t.Any, *args: t.Any, **options: t.Any) -> str:
        """The message of a failure, or of an item of a loop, comes first and is not folded, as YAML would fold it."""
        message = result.get("msg")
        if self._is_verbose or not isinstance(message, str) or self.get_option("result_format") != "yaml":
            return str(super()._dump_results(result, *args, **options))
        lines = message.strip().splitlines() or [""]
        rest = super()._dump_results({key: value for key, value in result.items() if key != "msg"}, *args, **options)
        return "\n    msg: " + "\n         ".join(lines) + str(rest).rstrip()

    def _handle_exception(self, result: t.Any, use_stderr: bool = False) -> None:
        """The message is in the result, which is printed, and where the task is beside it: ansible-core would print both twice."""
        if self._is_verbose:
            super()._handle_exception(result, use_stderr=use_stderr)
        else:
            result.pop("exception", None)

    def v2_runner_retry(self, result: t.Any) -> None:
        if self._is_verbose:
            super().v2_runner_retry(result)
            return
        host, found, now = result._host.get_name(), result._result, time.monotonic()
        last = self._tried.setdefault((result._task._uuid, host), now)
        if now - last >= _PACE:
            self._tried[result._task._uuid, host] = now
            self._print_pending()
            self._display.display(f"    {host}: {result._task.get_name()}: tried {found['attempts']} of {found['retries']} times")

    def v2_runner_item_on_ok(self, result: t.Any) -> None:
        if result._task.action in _MESSAGES and not self._is_verbose:
            self._print_message(result)
        else:
            super().v2_runner_item_on_ok(result)

    def _print_message(self, result: t.Any) -> None:
        """Print what a debug task says, with its host where there may be several."""
        self._print_pending()
        found = result._result
        if "msg" in found:
            said = found["msg"] if isinstance(found["msg"], list) else [found["msg"]]
            lines = [line for text in said for line in str(text).splitlines()]
        else:
            self._clean_results(found, result._task.action)
            lines = self._dump_results(found).strip("\n").splitlines()
        host = result._host.get_name()
        before = "" if host == "localhost" else f"{host}: "
        for line in lines:
            self._display.display(f"    {before}{line}")

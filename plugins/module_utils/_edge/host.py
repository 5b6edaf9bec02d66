# SPDX-License-Identifier: GPL-3.0-or-later
"""The edge of the modules that work on the host itself (local cluster, local images) instead of a Kubernetes API.

A module file has ARGUMENT_SPEC, ``execute(ctx) -> result``, a ``main`` that calls ``host_main`` and, if it has any, CONSTRAINTS. The action
plugin of the same name runs the same ``execute`` on the controller, where it can show progress.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._core.brief import as_diff
from .._core.clock import SYSTEM_CLOCK, Clock
from .failure import Result, finish, without_logins
from .options import Spec

__all__ = ["Execute", "HostContext", "Result", "Spec", "host_main"]


def _silent(_message: str) -> None:
    """A module has no way to print while it runs."""


@dataclasses.dataclass
class HostContext:
    """The argument of ``execute``: the parameters, and whether it may change anything."""

    params: dict[str, t.Any]
    check: bool
    warn: t.Callable[[str], None] = _silent
    progress: t.Callable[[str], None] = _silent
    diff: bool = dataclasses.field(default=False, kw_only=True)
    clock: Clock = dataclasses.field(default=SYSTEM_CLOCK, kw_only=True)
    requests: frozenset[str] | None = dataclasses.field(default=None, kw_only=True)
    """The requests to a cloud that a reviewed plan has; None: any."""

    def __post_init__(self) -> None:
        warn, progress = self.warn, self.progress
        self.warn = lambda message: warn(without_logins(message))
        self.progress = lambda message: progress(without_logins(message))

    def changes(self, rows: t.Iterable[object]) -> Result:
        """``changed`` and the diff of a result, both from the same rows: one for each thing that changes."""
        named = list(rows)
        return {"changed": bool(named), **({"diff": without_logins(as_diff(named))} if self.diff else {})}


Execute = t.Callable[[HostContext], Result]


def host_main(argument_spec: Spec, execute: Execute, **constraints: t.Any) -> None:
    """Parse, execute, report. ``constraints`` are those of AnsibleModule, such as required_if."""
    module = AnsibleModule(argument_spec, supports_check_mode=True, **constraints)
    given = {"check": module.check_mode, "diff": module._diff, "warn": module.warn}
    finish(module, argument_spec, constraints, lambda params: execute(HostContext(params, **given)))

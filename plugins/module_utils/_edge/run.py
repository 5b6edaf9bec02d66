# SPDX-License-Identifier: GPL-3.0-or-later
"""The edge: the only file that turns a module's ``execute`` into an Ansible module.

A module file has ARGUMENT_SPEC, ``execute(ctx) -> result``, a ``main`` that calls ``module_main`` and, if it has any, CONSTRAINTS. The
action plugin of the same name runs the same ``execute`` on the controller (plugins/action).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._core.clock import SYSTEM_CLOCK, Clock
from .._core.sensitive import printable
from .._kube.cluster import Cluster
from .._kube.report import Report
from .._kube.served import Promised
from . import promises
from .failure import Result, finish
from .host import HostContext
from .options import Spec, full_spec

__all__ = ["Context", "Execute", "Result", "Spec", "connector", "module_main"]


@dataclasses.dataclass
class Context(HostContext):
    """A HostContext with the cluster (connected on first use)."""

    connect: t.Callable[[], Cluster] = dataclasses.field(kw_only=True)
    promises: dict[str, Promised] = dataclasses.field(default_factory=dict, kw_only=True)
    """The promises of earlier tasks of this run in check mode, by API server. Tasks add their own."""

    @functools.cached_property
    def cluster(self) -> Cluster:
        return self.connect()

    @property
    def namespace(self) -> str:
        """The namespace in the options, else that of the kubeconfig's context."""
        return str(self.params["namespace"] or self.cluster.namespace)

    @property
    def promised(self) -> Promised:
        """The promises of earlier tasks of this run for this cluster."""
        return self.promises.setdefault(self.cluster.server, Promised())

    def close(self) -> None:
        """Close the connections, if there are any."""
        if "cluster" in self.__dict__:
            self.cluster.close()

    def result(self, report: Report, **more: t.Any) -> Result:
        """The result keys that every module returns, from the engine's report."""
        for warning in report.warnings:
            self.warn(warning)
        return t.cast(Result, printable({**report.result(diff=self.diff), **more}))


Execute = t.Callable[[Context], Result]


def connector(params: dict[str, t.Any], clock: Clock = SYSTEM_CLOCK) -> t.Callable[[], Cluster]:
    """Connect with the connection options among ``params``. The client is imported only when it is used."""

    def connect() -> Cluster:
        from .._kube.client import connect as connect_http

        return connect_http(params, clock)

    return connect


class _Module(AnsibleModule):
    """An AnsibleModule that does not log its options, because objects and environments may contain secrets."""

    def _log_invocation(self) -> None:
        """Write nothing to the system log."""

    def exit_json(self, **kwargs: t.Any) -> t.NoReturn:
        super().exit_json(**self._quiet(kwargs))
        raise SystemExit

    def fail_json(self, msg: str, **kwargs: t.Any) -> t.NoReturn:
        """Fail without the options. The base class calls this, too, when options are wrong."""
        super().fail_json(msg, **self._quiet(kwargs))
        raise SystemExit

    def _quiet(self, result: Result) -> Result:
        """A result without the options, which -vvv and callbacks would show."""
        return {**result, "invocation": {"module_args": {"check": self.check_mode}}}


def module_main(argument_spec: Spec, execute: Execute, **constraints: t.Any) -> None:
    """Parse, execute, report. ``constraints`` are those of AnsibleModule, such as required_if."""
    spec = full_spec(argument_spec)
    module = _Module(spec, supports_check_mode=True, **constraints)

    def run(params: dict[str, t.Any]) -> Result:
        context = Context(
            params=params,
            check=module.check_mode,
            connect=connector(params),
            diff=module._diff,
            warn=module.warn,
            promises=promises.read(os.environ.get(promises.VARIABLE, "").splitlines()),
        )
        with contextlib.closing(context):
            result = execute(context)
        if lines := promises.written(context.promises):
            result[promises.KEY] = lines
        return result

    finish(module, spec, constraints, run)

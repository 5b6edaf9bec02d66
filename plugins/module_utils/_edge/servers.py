# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of servers, the same for every kind: refuse bad options, check, generate, apply, delete what is unwanted, wait, remove."""

from __future__ import annotations

import abc
import dataclasses
import functools
import typing as t

from .._core.clock import Deadline
from .._kube.made_once import MadeOf, MadeOnce, apply_made_once
from .._kube.objects import Manifest, Ref
from .._kube.removal import delete_unwanted
from .._kube.report import Report
from .._kube.servers import claims_of, stateful_set_of
from .._manifests import monitoring, network_policy
from .._manifests.devices import TEMPLATE, templates_named_by
from .._manifests.meta import owner_of
from .._manifests.pods import PodSettings
from .._manifests.servers import Server
from . import groups
from .failure import Result
from .options import APPLY, REMOVAL, STATE, WAIT, Spec, fields_of, options_of
from .run import Context

S = t.TypeVar("S", bound=Server)

OPTIONS: Spec = {
    **options_of(Server, "namespace", "overrides", "network_policy", "network_policy_from"),
    **groups.POD,
    **groups.DEVICES,
    **groups.ALERTS,
    **REMOVAL,
    **STATE,
    **APPLY,
    **WAIT,
}
"""Options of all servers."""
CLAIMS: Spec = {"storage_class_name": {"type": "str"}, "delete_data": {"type": "bool", "default": False}}
"""Options of servers with claims."""


class Life(abc.ABC, t.Generic[S]):
    """The life of the servers of one kind in one run of their module. A subclass says what differs."""

    kind: type[S]
    alerts: type[monitoring.Alerts] = monitoring.Alerts
    build: t.Callable[[S], list[Manifest]]
    """The objects, without generated ones and alerts; InvalidInput for options that no server would take."""
    server: S
    """The servers that the options describe."""

    def __init__(self, ctx: Context) -> None:
        self.ctx, self.params = ctx, ctx.params
        self.live: Manifest | None = None
        """The StatefulSet with claims as it is in the cluster."""
        self._deadline = Deadline(ctx.params["wait_timeout"], ctx.clock)

    @functools.cached_property
    def owner(self) -> str:
        """The label of everything that belongs to the servers."""
        return owner_of(self.kind.module, self.ctx.namespace, self.params["name"])

    @property
    def waiting(self) -> dict[str, t.Any]:
        """The arguments of a wait: the seconds that are left, and where to report progress."""
        return {"timeout": self._deadline.answer_timeout, "progress": self.ctx.progress}

    def fields(self, namespace: str) -> dict[str, t.Any]:
        """The fields that are called like options, the namespace, the pod and the alerts."""
        alerts = {"alerts": self.alerts(**self.params["alerts"])} if self.params["alerts"] else {}
        named = fields_of(self.kind, self.params)
        return {**named, "namespace": namespace, "pod": PodSettings.from_params(self.params), **alerts}

    @abc.abstractmethod
    def desired(self, namespace: str) -> S:
        """The servers that the options describe; some options that were left out keep the value of the live StatefulSet."""

    def manifests(self) -> list[Manifest]:
        """The objects, without generated ones."""
        objects, server = self.build(self.server), self.server
        if not server.alerts or not server.monitor:
            return objects
        found = [*monitoring.servers_alerts(server.alerts, server.namespace, objects), *server.alerts_of_metrics]
        return [*objects, monitoring.rules(server.monitor, server.metadata(), found)]

    def check_options(self) -> None:
        """Raise InvalidInput for bad options, before any request to the cluster."""
        self.build(self.server)

    def check(self) -> None:
        """Raise if the cluster cannot have the servers."""

    def generated(self, once: MadeOnce) -> list[Manifest]:  # noqa: ARG002  # of subclasses
        """The Secrets with generated values, and what is made of them; see made_once.py."""
        return []

    def waits_for_objects(self) -> bool:
        """Whether to wait for the status of the objects, too."""
        return False

    def unwanted(self) -> list[Ref]:
        """The objects that other options would have created."""
        server = self.server
        policy = Ref(network_policy.API_VERSION, network_policy.KIND, server.name, server.namespace)
        return [*([] if server.network_policy else [policy]), *groups.unmonitored(self.manifests(), policy)]

    def wait(self) -> dict[str, t.Any]:
        """Wait until the servers serve. Returns what they report, as keys of the module."""
        return {}

    @abc.abstractmethod
    def result(self) -> dict[str, t.Any]:
        """The keys of the module beside the report."""

    def execute(self) -> Result:
        """Create, update or delete the servers."""
        if self.params["state"] == "absent":
            return self.absent()
        self.server = self.desired(self.params["namespace"] or "default")
        self.check_options()
        report = self.apply()
        # A template whose name has changed is another one: see devices.named.
        then = templates_named_by([change.before for change in report.changes if change.before])
        gone = sorted(then - templates_named_by(self.manifests()) if then else ())
        unwanted = [*self.unwanted(), *(Ref(*TEMPLATE, name, self.ctx.namespace) for name in gone)]
        report.merge(delete_unwanted(self.ctx.cluster, unwanted, self.owner, check=self.ctx.check))
        found = self.wait() if self.params["wait"] and not self.ctx.check else {}
        return self.ctx.result(report, **{**self.result(), **found})

    def apply(self) -> Report:
        """Check, generate and apply."""

        def make(once: MadeOnce) -> tuple[list[Manifest], None]:
            # Read before the Secrets, without which no run creates it.
            self.live = self.read()
            self.server = self.monitored(self.desired(self.ctx.namespace))
            self.check()
            return [*self.generated(once), *self.manifests()], None

        def apply(objects: t.Sequence[Manifest], made_of: MadeOf) -> Report:
            wait = self.params["wait"] and self.waits_for_objects()
            return groups.apply_group(self.ctx, objects, self.owner, wait=wait, made_of=made_of)

        return apply_made_once(self.ctx.cluster, make, apply)[0]

    def monitored(self, server: S) -> S:
        """The servers with the kind of object that has their metrics collected, if there is to be one."""
        return dataclasses.replace(server, monitor=groups.monitor_kind(self.ctx))

    def read(self) -> Manifest | None:
        """The StatefulSet with claims as it is in the cluster."""
        return None

    def absent(self) -> Result:
        """Delete everything of the servers."""
        return self.ctx.result(groups.delete_group(self.ctx, self.ctx.namespace, self.owner))


def executor(life: type[Life[t.Any]]) -> t.Callable[[Context], Result]:
    """The ``execute`` of a module of servers."""
    return lambda ctx: life(ctx).execute()


class LifeWithClaims(Life[S]):
    """The life of servers as a StatefulSet whose claims outlive it."""

    def fields(self, namespace: str) -> dict[str, t.Any]:
        return {**super().fields(namespace), "storage_class_name": self.params["storage_class_name"] or None}

    def read(self) -> Manifest | None:
        return self.ctx.cluster.get(stateful_set_of(self.desired(self.ctx.namespace)))

    def check(self) -> None:
        """Refuse what live servers cannot become."""
        if self.live:
            self.check_live(self.live)

    def check_live(self, live: Manifest) -> None:
        """Raise if live servers cannot become the desired ones."""

    def absent(self) -> Result:
        claims = claims_of(self.desired(self.ctx.namespace))
        return self.ctx.result(groups.delete_servers(self.ctx, claims, self.owner))

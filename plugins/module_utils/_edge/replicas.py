# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of replicas that serve models: as that of servers, and their number may be left to an autoscaler."""

from __future__ import annotations

import dataclasses
import typing as t

from .._core.errors import WaitTimeout
from .._kube import replicas
from .._kube.objects import Ref, group_of, ref_of
from .._kube.ready import exists
from .._kube.removal import delete_unwanted
from .._kube.report import Change, Report
from .._manifests.autoscaling import AUTOSCALER, Autoscaling
from .._manifests.monitoring import RequestAlerts
from .._manifests.pods import PodSettings
from .._manifests.replicas import Replicas
from . import groups, servers
from .options import Spec, options_of

R = t.TypeVar("R", bound=Replicas)


def options(kind: type[Replicas], scaling: type[Autoscaling]) -> Spec:
    """The options of replicas of a KIND, with those of an autoscaler by SCALING."""
    return {
        **options_of(kind, hidden=("storage_size", "storage_class_name", "monitor")),
        "autoscaling": {"type": "dict", "options": options_of(scaling, required=True)},
        "delete_data": {"type": "bool", "default": False},
        **groups.MONITORING,
        **groups.STORAGE,
        **servers.OPTIONS,
        "args": groups.WORDS,
        **groups.alerts(RequestAlerts),
    }


# A server without a model has no metric, and models may be uploaded only when the server runs.
_WITHOUT_MODELS = {(group_of(AUTOSCALER[0]), AUTOSCALER[1]): exists}


class Life(servers.Life[R]):
    """The life of the replicas of one kind."""

    alerts = RequestAlerts
    scaling: type[Autoscaling]

    def fields(self, namespace: str) -> dict[str, t.Any]:
        params, asked = self.params, self.params["autoscaling"]
        # The arguments are the server's own, beside those that the module gives it.
        of_pod = {key: value for key, value in params.items() if key not in ("args", "shm_size")}
        return {
            **super().fields(namespace),
            "pod": PodSettings.from_params(of_pod),
            "autoscaling": self.scaling(**asked) if asked else None,
            "replicas": None if asked else params["replicas"],
        }

    def waits_for_objects(self) -> bool:
        return True

    def explained(self) -> str:
        """Sentences to append to the error of a wait."""
        return ""

    def apply(self) -> Report:
        """Apply, and leave the number of replicas to the autoscaler, if there is one."""
        self.server = self.monitored(self.desired(self.ctx.namespace))
        self.server, gone, overwrite = self._scaled()
        wait = self.params["wait"]
        try:
            report = groups.apply_group(self.ctx, self.manifests(), self.owner, wait=wait, overwrite=overwrite, predicates=_WITHOUT_MODELS)
        except WaitTimeout as exc:
            exc.message += self.explained()
            raise
        if self.server.autoscaling and self.server.replicas is not None:
            report.changes = [_as_handed_over(change, self.server.workload) for change in report.changes]
        return report.merge(gone)

    def _scaled(self) -> tuple[R, Report, dict[Ref, t.Collection[str]] | None]:
        """Give the number of replicas to the autoscaler, or take it back.

        Returns the server to apply, what was done, and which fields may be overwritten.
        """
        cluster, server, check = self.ctx.cluster, self.server, self.ctx.check
        ref = Ref(*server.workload, server.name, server.namespace)
        if server.autoscaling:
            replicas.check_only_autoscaler(cluster, ref, self.owner)
            number = replicas.hand_over(cluster, ref, self.owner, server.autoscaling.bounds, check=check)
            # A dry run cannot transfer the field first, and would show the API server's default.
            return dataclasses.replace(server, replicas=number if check else None), Report(), None
        # Deleted before the number is changed, because the autoscaler would change it again.
        autoscaler = Ref(*AUTOSCALER, server.name, server.namespace)
        gone = delete_unwanted(cluster, [autoscaler], self.owner, check=check)
        left = replicas.is_left_over(cluster, ref, self.owner)
        return server, gone, {ref: [replicas.FIELD]} if left else None

    def unwanted(self) -> list[Ref]:
        """The objects of earlier options: pods of another kind, and the ServiceAccount.

        Those pods served until now, because the module has waited for the ones that replace them; pods with the account are gone then.
        """
        server, made = self.server, {ref_of(one) for one in self.manifests()}
        refs = [Ref(*kind, server.name, server.namespace) for kind in (*server.workloads, ("v1", "ServiceAccount"))]
        return [*super().unwanted(), *(ref for ref in refs if ref not in made)]


def _as_handed_over(change: Change, workload: tuple[str, str]) -> Change:
    """Report the WORKLOAD as updated if a dry run could not transfer its replicas to the autoscaler: only the field manager changes."""
    if (change.ref.api_version, change.ref.kind) != workload or change.action != "unchanged":
        return change
    return dataclasses.replace(change, action="updated", reason="its replicas are left to the autoscaler")

# SPDX-License-Identifier: GPL-3.0-or-later
"""Options and steps that modules share whose objects have pods."""

from __future__ import annotations

import typing as t

from .._core.clock import Deadline
from .._core.pool import Progress
from .._core.waiting import Observe, fixed_interval, wait_for
from .._kube import made_once
from .._kube.engine import apply_objects
from .._kube.objects import Manifest, Ref, ref_of
from .._kube.removal import delete_objects
from .._kube.report import Change, Report
from .._kube.servers import Claims
from .._kube.wait import Predicates
from .._manifests.meta import owners
from .._manifests.monitoring import MONITORS, RULES, Alerts, TrainingAlerts
from .._manifests.pods import PodSettings
from .._manifests.storage import Storage
from .options import APPLY, WAIT, Spec, options_of
from .run import Context

T = t.TypeVar("T")

ENV: Spec = {
    "name": {"type": "str", "required": True},
    "value": {"type": "raw"},  # so that Ansible does not make text of a number before it can be refused
    "value_from": {"type": "dict"},
}
PORT: Spec = {
    "name": {"type": "str", "required": True},
    "container_port": {"type": "int", "required": True},
    "protocol": {"type": "str", "choices": ["TCP", "UDP", "SCTP"], "default": "TCP"},
}
WORDS: dict[str, t.Any] = {"type": "list", "elements": "raw"}
"""Texts of a pod, of which the same holds."""
PROCESSES: dict[str, t.Any] = {"type": "str", "default": "1"}  # a text, because torchrun takes words, too
BUDGET: Spec = {"min_available": {"type": "str"}, "max_unavailable": {"type": "str"}}

_OF_PROGRAMS = ("resource_claims", "volumes", "volume_mounts", "shm_size", "init_containers")
_OF_BUILDERS = ("command", "args", "ports", "readiness_probe", "liveness_probe", "startup_probe")
DEVICES: Spec = {
    "resource_claims": {
        "type": "list",
        "elements": "dict",
        "options": {
            "name": {"type": "str", "required": True},
            "resource_claim_name": {"type": "str"},
            "resource_claim_template_name": {"type": "str"},
            "device_class_name": {"type": "str"},
            "count": {"type": "int"},
            "selectors": {"type": "list", "elements": "str"},
        },
    }
}
PROGRAM_POD: Spec = {
    **{
        name: {key: value for key, value in option.items() if key != "default"}
        for name, option in options_of(PodSettings, hidden=_OF_BUILDERS).items()
    },
    **DEVICES,
    "env": {"type": "list", "elements": "dict", "options": ENV},
}
"""The options of pods that run a program of the user's."""
POD: Spec = {name: option for name, option in PROGRAM_POD.items() if name not in _OF_PROGRAMS}
STORAGE: Spec = {"storage": {"type": "dict", "options": options_of(Storage, required=True)}}

MONITORING: Spec = {"monitoring": {"type": "str", "choices": ["auto", *MONITORS, "none"], "default": "auto"}}


def alerts(of: type[Alerts]) -> Spec:
    """The option alerts, with the thresholds OF a kind of systems."""
    return {"alerts": {"type": "dict", "options": options_of(of)}}


ALERTS: Spec = alerts(Alerts)
TRAINING_ALERTS: Spec = alerts(TrainingAlerts)


def monitor_kind(ctx: Context) -> str | None:
    """The kind of object that has the metrics collected, by the option monitoring and what the cluster serves.

    The cluster of servers without that option is asked only for their alerts.
    """
    asked = ctx.params.get("monitoring", "auto" if ctx.params["alerts"] else "none")
    if asked != "auto":
        return None if asked == "none" else str(asked)
    return next((kind for kind, version in MONITORS.items() if ctx.cluster.resource(version, kind)), None)


def unmonitored(objects: t.Sequence[Manifest], place: Ref) -> list[Ref]:
    """The objects for metrics and alerts that other options would have created beside PLACE, and these options do not."""
    made = {ref_of(one) for one in objects}
    kinds = [(version, name) for kind, version in MONITORS.items() for name in (kind, RULES[kind])]
    return [ref for kind in kinds if (ref := Ref(*kind, place.name, place.namespace)) not in made]


def waited(ctx: Context, observe: Observe[T], *, goal: str, every: float) -> T:
    """Observe each EVERY seconds until nothing is missing, and return the observation. Option wait_timeout limits it; see wait_for."""
    return wait_for(
        observe,
        goal=goal,
        deadline=Deadline(ctx.params["wait_timeout"], ctx.clock),
        pause=fixed_interval(every, ctx.clock),
        progress=Progress(ctx.progress, ctx.clock),
    )


def apply_group(
    ctx: Context,
    objects: t.Sequence[Manifest],
    owner: str,
    *,
    wait: bool,
    prune: bool = False,
    overwrite: t.Mapping[Ref, t.Collection[str]] | None = None,
    made_of: made_once.MadeOf | None = None,
    predicates: Predicates | None = None,
) -> Report:
    """Apply the objects of a group with the options of the module."""
    options = {key: ctx.params[key] for key in ("wait_timeout", *APPLY)}
    return apply_objects(
        ctx.cluster, objects, owner=owner, check=ctx.check, wait=wait, prune=prune, overwrite=overwrite,
        made_of=made_of, predicates=predicates, references=ctx.promised, on_progress=ctx.progress, **options,
    )  # fmt: skip


def delete_group(ctx: Context, namespace: str, owner: str) -> Report:
    """Delete everything of an owner, but data only with the option delete_data."""
    options = {key: ctx.params[key] for key in ("delete_data", *WAIT) if key in ctx.params}
    leaving = owners(ctx.params.get("ignore_users_of") or ())
    return delete_objects(
        ctx.cluster, None, owner, check=ctx.check, namespace=namespace, ignore_users_of=leaving, on_progress=ctx.progress,
        **options,
    )  # fmt: skip


def delete_servers(ctx: Context, claims: Claims, owner: str) -> Report:
    """Delete a StatefulSet of an owner with everything around it, and its claims only with the option delete_data.

    Where others use it, all of it is kept.
    """
    marked = claims.marked(ctx.cluster, owner, check=ctx.check)
    report = delete_group(ctx, str(claims.stateful_set.namespace), owner)
    kept = next((change for change in report.kept if change.ref == claims.stateful_set), None)
    if kept:  # its pods go on, with their data
        report.changes += [Change(ref, "kept", kept.reason) for ref in marked]
        return report
    report.merge(claims.delete(ctx.cluster, marked, owner, check=ctx.check, delete_data=ctx.params["delete_data"]))
    return report

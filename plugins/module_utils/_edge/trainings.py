# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules of trainings: the options that they share, and what they execute."""

from __future__ import annotations

import dataclasses
import typing as t

from .._core.errors import NotFound, Overtaken
from .._core.sensitive import fingerprint
from .._kube.made_once import with_earlier_tries
from .._kube.objects import Manifest, Ref, group_kind, ref_of
from .._manifests.meta import suggest
from .._manifests.monitoring import MONITORS, RULES, TrainingAlerts, rules, training_alerts
from .._training import history, lifecycle
from .._training.kind import Desired, Kind, Request
from .._training.logs import read_logs
from .._training.plots import plots
from .._training.progress import points_of
from .._training.results import results
from .._training.status import Rank
from . import groups
from .failure import Result
from .options import APPLY, STATE, Spec
from .run import Context

LIFE: Spec = {
    "restart": {"type": "bool", "default": False},
    "wait": {"type": "bool", "default": True},
    "wait_for": {"type": "str", "choices": ["completed", "running"], "default": "running"},
    "wait_timeout": {"type": "int", "default": 600},
    "image_timeout": {"type": "int", "default": 300},
    "preflight": {"type": "bool", "default": Request.preflight},
    "delete_data": {"type": "bool", "default": False},
    "planned": {"type": "dict"},
    **STATE,
    **APPLY,
}
OPTIONS: Spec = {
    "name": {"type": "str", "required": True},
    **groups.STORAGE,
    **groups.TRAINING_ALERTS,
    **LIFE,
}
"""The options of all trainings."""
_PLOTTED = 10_000
"""Lines of a log that plots are made of."""
_REQUEST = (*(name for name in LIFE if name != "state"), "world_timeout", "remove_finalizer")


def executor(kind: Kind, parse: t.Callable[[t.Mapping[str, t.Any]], Desired]) -> t.Callable[[Context], Result]:
    """The ``execute`` of a module of trainings. PARSE turns options into a desired training, or raises InvalidInput."""
    return lambda ctx: _execute(ctx, kind, parse)


def _execute(ctx: Context, kind: Kind, parse: t.Callable[[t.Mapping[str, t.Any]], Desired]) -> Result:
    """Train, scale, or remove."""
    params = {name: value for name, value in ctx.params.items() if name != "planned"}
    planned = {} if ctx.check else dict(ctx.params["planned"] or {})
    namespace = ctx.namespace
    # Bad options fail before the first request to the cluster.
    desired = parse({**params, "namespace": namespace}) if params["state"] == "present" else None
    given = {name: params[name] for name in _REQUEST if name in params}
    request = Request(cluster=ctx.cluster, check=ctx.check, warn=ctx.warn, progress=ctx.progress, promised=ctx.promised, **given)
    if desired is None:
        return ctx.result(lifecycle.absent(request, kind, namespace, params["name"]))
    plan = planned.pop("plan", None)
    if plan and plan == _plan(ctx, params, desired):
        return planned
    more, gone = alert_rules(ctx, desired.name, desired.objects)
    desired = dataclasses.replace(desired, objects=[*desired.objects, *more], unwanted=[*desired.unwanted, *gone])
    try:
        report, observed = lifecycle.present(request, desired)
    except Overtaken as exc:
        # It began a moment ago, so that it is not ended and begun once more.
        request = dataclasses.replace(request, restart=False, recreate=False)
        report, observed = lifecycle.present(request, desired)
        report = with_earlier_tries(report, [exc])
    reported = results(ctx.cluster, kind, observed, desired.results_pattern)
    result = ctx.result(report, **observed.status.result(), **reported)
    settled = ctx.check and observed.status.state == "Succeeded" and not report.changed
    return {**result, "plan": _plan(ctx, params, desired)} if settled else result


def alert_rules(ctx: Context, name: str, objects: t.Sequence[Manifest]) -> tuple[list[Manifest], list[Ref]]:
    """The alerts of a training with these objects, and those of other options, which are not wanted."""
    asked, metadata = ctx.params["alerts"], {"name": name, "namespace": ctx.namespace}
    found = training_alerts(TrainingAlerts(**asked), ctx.namespace, name, objects) if asked else []
    served = [kind for kind, version in MONITORS.items() if ctx.cluster.resource(version, RULES[kind])]
    made = [rules(kind, metadata, found) for kind in served[:1] if found]
    return made, [Ref(MONITORS[kind], RULES[kind], name, ctx.namespace) for kind in served[len(made) :]]


def _plan(ctx: Context, params: dict[str, t.Any], desired: Desired) -> str:
    """A fingerprint of the options and of the live workloads, because a workload that was deleted since then must be created again."""
    kinds = {workload.group_kind for workload in desired.backend.workloads}
    live = [ctx.cluster.get(ref_of(item)) for item in desired.objects if group_kind(item) in kinds]
    return fingerprint([params, [item and item["metadata"]["uid"] for item in live]])


def info(ctx: Context, kind: Kind) -> Result:
    """The state of a training."""
    observed = kind.observe(ctx.cluster, ctx.namespace, ctx.params["name"], progress=True)
    reported = results(ctx.cluster, kind, observed)
    state = {**observed.status.result(), "progress": observed.progress.result(), "record": {}, "plots": []}
    if observed.exists:
        state["record"] = history.entry_of(ctx.cluster, kind, observed, observed.workloads[0])
    if ctx.params["plots"]:
        ranks = kind.trainers(observed.status)
        texts = read_logs(ctx.cluster, ctx.namespace, [*ranks[:1], *ranks[1:][-1:]], required=False, tail_lines=_PLOTTED, timestamps=True)
        ended = [run for group in observed.status.groups for rank in group.ranks for run in rank.ended_runs if run.exit_code]
        state["plots"] = plots(max(map(points_of, texts), key=len, default=[]), ended)
    return {"changed": False, "exists": observed.exists, "world": {}, **state, **reported}


def chosen(ctx: Context, kind: Kind) -> list[tuple[str, Rank]]:
    """The ranks of a training that must exist, each with the name of its group: of the groups in option group_names, or of all."""
    namespace, name, names = ctx.namespace, ctx.params["name"], ctx.params["group_names"]
    found = kind.read(ctx.cluster, namespace, name).status
    if not found.groups:
        raise NotFound(f"There is no training {namespace}/{name}.", hint="Check name, namespace and kind.")
    known = [group.name for group in found.groups]
    for wrong in (one for one in names if one not in known):
        near = suggest(wrong, known)
        hint = f"Did you mean '{near}'?" if near else ""
        # It may not exist yet: a training's groups are not created in one request.
        raise NotFound(f"group_names: training {name} has no group '{wrong}', it has {', '.join(known)}.", hint=hint)
    return [(group.name, rank) for group in found.groups if not names or group.name in names for rank in group.ranks]

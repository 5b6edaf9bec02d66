# SPDX-License-Identifier: GPL-3.0-or-later
"""The preflight of a training, before any of its objects is created: all pods of a new one, the additional pods of a running one."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from .._core.brief import plural
from .._core.errors import InvalidInput, NoRoom
from .._gang.judge import Gang
from .._gang.preflight import gang, preflight
from .._kube.objects import Manifest, group_kind
from .._kube.queued import not_held
from .kind import Desired, Observed, Request

_HINT = "Make room, or ask for less. preflight: false creates its pods nevertheless, which then wait for room."
_OFF = "Add it to the integrations of Kueue's configuration (kueue_options.integrations of role muster.ml.kueue)."


def require(request: Request, desired: Desired, before: Observed, *, again: bool) -> None:
    """Raise if the pods that this run would create do not fit; AGAIN: those of the live training are deleted first.

    A run that creates no pods needs no preflight. Check mode and a run that does not wait only warn: capacity may be free by then.
    """
    size = sum(group.desired for group in before.status.groups)
    grows = before.exists and not again
    if grows and (desired.size is None or desired.size <= size):
        return
    makers = {workload.group_kind for workload in desired.backend.workloads if workload.size}
    if at_once := desired.queue and not_held(request.cluster, [item for item in desired.objects if group_kind(item) in makers]):
        said = f"{desired} would not wait in its queue: Kueue does not hold {', '.join(at_once)}."
        if not request.check:
            raise InvalidInput(said, _OFF)
        request.warn(f"{said} {_OFF}")
    verdict = preflight(request.cluster, _pods(desired, before, desired.objects, again=again))
    if verdict.fits is not False:
        return
    if not grows and _begins_with_less(request, desired, before, again=again):
        request.warn(f"{desired} begins with less than {desired.size} pods. {verdict.message}")
        return
    what = f"{desired} stays at {plural(size, 'pod')}" if grows else f"{desired} is not {'restarted' if again else 'created'}"
    if request.check or not request.wait:
        request.warn(f"{desired}: {verdict.message}")
        return
    found = {name: value for name, value in verdict.result().items() if name in ("reasons", "not_judged", "groups", "nearest")}
    raise NoRoom(f"{what}. {verdict.message}", hint=_HINT, details={"preflight": found})


def _begins_with_less(request: Request, desired: Desired, before: Observed, *, again: bool) -> bool:
    """Whether the training may begin with fewer pods, and the preflight does not exclude that these fit."""
    if desired.least is None or desired.size is None or desired.least >= desired.size:
        return False
    objects = desired.backend.sized(desired.objects, desired.least)
    return preflight(request.cluster, _pods(desired, before, objects, again=again)).fits is not False


def _pods(desired: Desired, before: Observed, objects: Sequence[Manifest], *, again: bool) -> Gang:
    """The pods of the training. Workloads that a restart does not stop keep their pods."""
    ask = functools.partial(gang, namespace=desired.namespace, kinds=desired.backend.pod_sets)
    if not before.exists:
        return ask(objects)
    selector = desired.kind.backend(before.status.backend).selector(desired.name)
    if not again:
        return ask(objects, staying=selector)
    kinds = {workload.group_kind for workload in desired.backend.workloads}
    return ask([item for item in objects if group_kind(item) in kinds], leaving=selector)

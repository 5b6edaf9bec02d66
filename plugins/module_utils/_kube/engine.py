# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The apply engine: one path for every write to Kubernetes.

Plan (reads only, everything that stands in the way is told at once), write in waves, prune, wait. See docs/architecture.md.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import functools
import typing as t

from . import reasons
from .cluster import Cluster
from .errors import MusterError
from .objects import LABEL_OWNER, Manifest, Ref, labels_of
from .order import wave_of, waves
from .owned import named, owned_objects
from .pace import SYSTEM_CLOCK, Clock
from .plan import Step, Wish, make_plan
from .pool import PARALLEL, OnProgress, Progress, do_all, raise_all, run_all
from .ready import gone
from .report import Change, Report
from .settled import LABEL_SETTLED, is_settled, settle, unsettle
from .wait import Predicates, wait_until
from .write import Writer, holds_data

_ESTABLISHED_TIMEOUT = 60.0
_DEFINITION = "CustomResourceDefinition"


def apply_objects(
    cluster: Cluster,
    objects: t.Iterable[t.Any],
    *,
    owner: str,
    check: bool,
    namespace: str | None = None,
    force_conflicts: bool = False,
    recreate: bool = False,
    prune: bool = False,
    prune_data: bool = False,
    wait: bool = False,
    wait_timeout: float = 120,
    predicates: Predicates | None = None,
    parallel: int = PARALLEL,
    on_progress: OnProgress | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Report:
    """Make the cluster have these objects, and (prune) no others of this owner. Safe to run again at any point.

    ``predicates`` overrides readiness by kind. The report has the objects as they are at the end.
    """
    wish = Wish(owner, namespace or cluster.namespace, check, force_conflicts, parallel)
    steps = make_plan(cluster, objects, wish)
    report = Report()
    writer = Writer(cluster, check, clock, force_conflicts, recreate)
    refs = [step.ref for step in steps]
    settled = prune and is_settled(cluster, owner, refs, wish.namespace)
    _rehearse(writer, steps, wish)
    if not (check or settled) and any(_joins(step, owner) for step in steps):
        unsettle(cluster, owner, refs, wish.namespace)
    _write(writer, steps, report, wish, on_progress, clock)
    if prune and not settled:
        _prune(cluster, refs, report, wish, prune_data)
    if wait and not check:
        waiting = functools.partial(
            wait_until, cluster, timeout=wait_timeout, predicates=predicates, label_selector=wish.selector,
            on_progress=on_progress, clock=clock,
        )  # fmt: skip
        _wait_ready(waiting, refs, report)
    report.warnings += cluster.warnings()
    return report


def _wait_ready(waiting: t.Callable[..., dict[Ref, Manifest | None]], refs: list[Ref], report: Report) -> None:
    """Wait; what was applied is in the error too, if it comes to that."""
    try:
        seen = waiting(refs, known={ref: found for ref in refs if (found := report.objects.get(ref))})
    except MusterError as exc:
        exc.details = {**report.result(diff=False), **exc.details}
        raise
    report.objects.update({ref: found for ref, found in seen.items() if found})


def _write(
    writer: Writer, steps: list[Step], report: Report, wish: Wish, on_progress: OnProgress | None, clock: Clock
) -> None:
    """Wave after wave; a wave that failed is the last one. In check mode all are asked, so that everything is told at once."""
    by_ref = {step.ref: step for step in steps}
    refused: list[MusterError] = []
    progress, total = Progress(on_progress, clock), len(steps)
    outcomes: dict[Ref, Change] = {}

    def carry_out(step: Step) -> tuple[Change, Manifest | None]:
        outcome = writer.carry_out(step)
        outcomes[step.ref] = outcome[0]
        progress.tell(f"{len(outcomes)} of {total} objects applied")
        return outcome

    for wave in waves(by_ref):
        # What needs no write needs no thread.
        todo = sorted((by_ref[ref] for ref in wave), key=lambda step: step.verdict == "unchanged")
        writes = [step for step in todo if step.verdict != "unchanged"]
        results, failures = run_all(carry_out, writes, parallel=wish.parallel)
        results += [carry_out(step) for step in todo[len(writes) :]]
        report.objects.update({change.ref: found for change, found in results if found is not None})
        report.changes = [outcomes[ref] for ref in by_ref if ref in outcomes]
        refused += reasons.explained(writer.cluster, failures)
        if not writer.check:
            raise_all(refused, report.result(diff=False))
            _establish(writer, results, clock)
    raise_all(refused)


def _rehearse(writer: Writer, steps: list[Step], wish: Wish) -> None:
    """Let the server say what it would refuse (invalid fields, conflicts, quotas) before the first write, so that nothing is changed.

    Not possible for what lies in a namespace or is of a kind that this very run will make; not needed for a single write.
    """
    writes = [step for step in steps if step.verdict != "unchanged"]
    if writer.check or len(writes) < 2:
        return
    first = min(wave_of(step.ref.api_version, step.ref.kind) for step in writes)

    def rehearse(step: Step) -> None:
        writer.rehearse(step, later=wave_of(step.ref.api_version, step.ref.kind) > first)

    raise_all(run_all(rehearse, [step for step in writes if not step.unborn], parallel=wish.parallel)[1])


def _establish(writer: Writer, results: t.Sequence[tuple[Change, Manifest | None]], clock: Clock) -> None:
    """Definitions take a moment to be served, and a later wave may have objects of their kinds."""
    known: dict[Ref, Manifest | None] = {
        change.ref: found for change, found in results if change.ref.kind == _DEFINITION and change.changed and found
    }
    if not known:
        return
    wait_until(writer.cluster, list(known), timeout=_ESTABLISHED_TIMEOUT, known=known, goal="established", clock=clock)
    for definition in known.values():
        spec = (definition or {}).get("spec") or {}
        for version in spec.get("versions") or []:
            writer.cluster.resource(f"{spec['group']}/{version['name']}", spec["names"]["kind"], refresh=True)


def _joins(step: Step, owner: str) -> bool:
    """Whether the owner gets an object that it does not have yet."""
    return step.verdict != "unchanged" and (step.live is None or labels_of(step.live).get(LABEL_OWNER) != owner)


def _prune(cluster: Cluster, refs: list[Ref], report: Report, wish: Wish, prune_data: bool) -> None:
    """Remove what carries our label and is no longer wanted, last wave first; remember when nothing is left over."""
    wanted = {ref.identity for ref in refs}
    namespaces = {ref.namespace for ref in refs if ref.namespace}
    found, warnings = owned_objects(cluster, wish.owner, namespaces=namespaces, parallel=wish.parallel)
    leftover = {
        ref: item
        for item in found
        if (ref := named([item])[0]).identity not in wanted and LABEL_SETTLED not in labels_of(item)
    }
    pruned = _delete(
        cluster, leftover, check=wish.check, delete_data=prune_data, option="prune_data", parallel=wish.parallel
    )
    report.merge(pruned)
    report.warnings += warnings
    # A run that has nothing to change writes nothing, not even this.
    if report.changed and not (wish.check or warnings or pruned.kept):
        settle(cluster, wish.owner, refs, wish.namespace)


def delete_objects(
    cluster: Cluster,
    what: t.Iterable[Manifest | Ref] | str,
    *,
    check: bool,
    namespace: str | None = None,
    wait: bool = False,
    wait_timeout: float = 120,
    delete_data: bool = False,
    parallel: int = PARALLEL,
    on_progress: OnProgress | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Report:
    """Remove objects, or everything of an owner (given as a string). What is not there is no error, and no request."""
    if isinstance(what, str):
        found, warnings = owned_objects(cluster, what, namespaces=[namespace or cluster.namespace], parallel=parallel)
        live: dict[Ref, Manifest | None] = {named([item])[0]: item for item in found}
    else:
        refs = [_placed(cluster, ref, namespace or cluster.namespace) for ref in named(what)]
        warnings = []
        live = dict(zip(refs, do_all(cluster.get, refs, parallel=parallel), strict=True))
    there = {ref: item for ref, item in live.items() if item is not None}
    deadline = clock.monotonic() + wait_timeout

    def wait_gone(going: dict[Ref, Manifest | None]) -> None:
        left = max(1.0, deadline - clock.monotonic())  # all waves together have the time of one wait
        wait_until(cluster, list(going), timeout=left, predicates={ref.kind: gone for ref in going}, known=going,
                   goal="gone", on_progress=on_progress, clock=clock)  # fmt: skip

    report = _delete(
        cluster,
        there,
        check=check,
        delete_data=delete_data,
        option="delete_data",
        parallel=parallel,
        wait_gone=wait_gone if wait and not check else None,
    )
    report.warnings += warnings
    report.changes += [Change(ref, "unchanged", "is not there") for ref, item in live.items() if item is None]
    return report


def _placed(cluster: Cluster, ref: Ref, namespace: str) -> Ref:
    resource = cluster.resource(ref.api_version, ref.kind)
    if resource is None:
        return ref
    if not resource.namespaced:
        return dataclasses.replace(ref, namespace=None)
    return ref if ref.namespace else dataclasses.replace(ref, namespace=namespace)


def _delete(
    cluster: Cluster, live: dict[Ref, Manifest], *, check: bool, delete_data: bool, option: str, parallel: int,
    wait_gone: t.Callable[[dict[Ref, Manifest | None]], None] | None = None,
) -> Report:  # fmt: skip
    report = Report()

    def remove(ref: Ref) -> Change:
        item = live[ref]
        data = "" if delete_data else _data_of(cluster, ref, item, live)
        if data:
            return Change(ref, "kept", f"{data}; {option} deletes it")
        if item["metadata"].get("deletionTimestamp"):
            return Change(ref, "unchanged", "is being deleted already")
        change = Change(ref, "deleted", before={"apiVersion": ref.api_version, "kind": ref.kind,
                                                "metadata": {"name": ref.name, "namespace": ref.namespace}})  # fmt: skip
        if not check:
            # Foreground where somebody waits: the object then stays until all that it made is gone.
            propagation = "Foreground" if wait_gone else "Background"
            cluster.delete(ref, dry_run=False, propagation=propagation, uid=item["metadata"].get("uid"))
        return change

    for wave in waves(live, reverse=True):
        changes, failures = run_all(remove, wave, parallel=parallel)
        report.changes += changes
        raise_all(reasons.explained(cluster, failures), report.result(diff=False))
        going: dict[Ref, Manifest | None] = {
            change.ref: live[change.ref] for change in changes if change.action != "kept"
        }
        if wait_gone and going:
            _wait_gone(wait_gone, going, report)
    if report.kept:
        told = ", ".join(f"{change.ref} ({change.reason.partition(';')[0]})" for change in report.kept)
        report.warnings.append(f"Kept: {told}. Set {option} to delete.")
    return report


def _data_of(cluster: Cluster, ref: Ref, item: Manifest, going: t.Collection[Ref]) -> str:
    """What would be lost with the object for good, empty where nothing is."""
    if holds_data(ref, item):
        return "holds data"
    if ref.kind != _DEFINITION:
        return ""
    group = ref.name.partition(".")[2]  # a definition is named <plural>.<group>, and all objects of its kind go with it
    gone_too = {other.identity for other in going}
    left = [
        other
        for api_version, kind, resource in cluster.kinds()
        if f"{resource.plural}.{api_version.rpartition('/')[0]}" == ref.name and group
        for other in named(cluster.list_metadata(api_version, kind))
        if other.identity not in gone_too
    ]
    return f"{left[0]} and {len(left) - 1} more objects of its kind exist" if left else ""


def _wait_gone(
    wait_gone: t.Callable[[dict[Ref, Manifest | None]], None], going: dict[Ref, Manifest | None], report: Report
) -> None:
    try:
        wait_gone(going)
    except MusterError as exc:
        exc.details = {**report.result(diff=False), **exc.details}
        raise

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The apply engine: one path for every write to Kubernetes.

Plan (only reads; all problems are reported together), write in waves, prune, wait. See docs/architecture.md.

Private to the collection.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

from .._core.clock import SYSTEM_CLOCK, Clock
from .._core.errors import Conflict, InvalidInput, MusterError
from .._core.pool import PARALLEL, OnProgress, Progress, raise_all, run_all
from . import reasons
from .cluster import Cluster
from .deletion import Ownership
from .lease import Lease, holder
from .objects import (
    ANNOTATION_FENCE,
    API_SERVICE,
    DEFINITION,
    NAMESPACE,
    Manifest,
    Ref,
    labels_of,
    name_and_home,
    owner_on,
    owner_text,
)
from .order import wave_of, waves
from .owned import owned_objects
from .plan import ApplyOptions, PlannedObject, make_plan, raise_overtaken
from .prepare import with_annotation
from .prune_record import LABEL_PRUNE_RECORD, delete_prune_record, has_prune_record, write_prune_record
from .references import require
from .removal import Deletion, by_ref, shared_namespaces
from .report import Change, Report
from .served import Promised
from .wait import Predicates, wait_until
from .write import Writer

_ESTABLISHED_TIMEOUT = 60.0
_PRUNE_TIMEOUT = 60.0


def apply_objects(
    cluster: Cluster,
    objects: t.Iterable[t.Any],
    *,
    owner: str,
    check: bool,
    namespace: str | None = None,
    adopt: bool = False,
    force_conflicts: bool = False,
    recreate: bool = False,
    prune: bool = False,
    delete_data: bool = False,
    namespaces: t.Collection[str] | None = None,
    overwrite: t.Mapping[Ref, t.Collection[str]] | None = None,
    promised: Promised | None = None,
    references: Promised | None = None,
    made_of: t.Mapping[Ref, str | None] | None = None,
    wait: bool = False,
    wait_timeout: float = 120,
    predicates: Predicates | None = None,
    parallel: int = PARALLEL,
    on_progress: OnProgress | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Report:
    """Apply these objects and, with prune, delete all others of this owner. It is safe to run again at any point.

    ``predicates`` overrides readiness by kind; ``wait_timeout`` is in seconds. ``overwrite``: fields, as conflicts name them, that are
    taken from their managers. ``namespaces``: where prune deletes, as in _Run. ``made_of``: of desired objects that were made of what was
    read, the version (None: there was none); where another run has written since, Overtaken with what was done before (see made_once.py).
    They are written one after the other, in the given order and before the rest of their wave. ``promised``: what check mode counts as
    there, to which it adds what the objects here bring; ``references``: the same for what pods name, which is checked then. The report has
    the objects as they are at the end.
    """
    options = ApplyOptions(owner, namespace or cluster.namespace, check, force_conflicts, parallel, adopt, overwrite, promised,
                           references, made_of or {})  # fmt: skip
    writer = Writer(cluster, owner, check, clock, force_conflicts, recreate, adopt)
    run = _Run(cluster, options, writer, prune, delete_data, on_progress, clock, namespaces)
    steps = make_plan(cluster, objects := list(objects), options)
    caveats = _unread_references(cluster, steps, references) if references is not None else []
    if prune and not steps:
        raise _no_objects(owner)
    if not check and (recreate or prune) and any(step.verdict != "unchanged" for step in steps):
        with run.alone([step.ref for step in steps], wait_timeout) as (alone, lease):
            # Another run may have written between our reads and the Lease.
            report = alone.carry_out(steps := _fenced(make_plan(cluster, objects, options), lease), lease)
    else:
        report = run.carry_out(steps, None)
    if wait and not check:
        _wait_ready(run, steps, report, wait_timeout, predicates)
    report.warnings += [*caveats, *cluster.warnings()]
    return report


def _unread_references(cluster: Cluster, steps: list[PlannedObject], promised: Promised) -> list[str]:
    """Raise if pods of what is to be written would not start; return what could not be checked. A rerun without changes asks nothing."""
    written = [step.desired for step in steps if step.verdict != "unchanged"]
    return require(cluster, written, [step.desired for step in steps], promised) if written else []


def _api_version(service: Manifest) -> str:
    """The API version that an APIService registers."""
    return f"{service['spec'].get('group', '')}/{service['spec'].get('version', '')}"


def _no_objects(owner: str) -> InvalidInput:
    return InvalidInput(
        f"prune with no objects at all would delete everything of {owner_text(owner)}.",
        hint="Is a condition of a template false, or a file empty? To remove everything, use state: absent with this owner.",
    )


@dataclasses.dataclass(frozen=True)
class _Run:
    """The state that all steps of one call share.

    ``namespaces``: where prune deletes, beside the namespaces of the objects and of the owner; None: everywhere.
    """

    cluster: Cluster
    options: ApplyOptions
    writer: Writer
    prune: bool
    delete_data: bool
    on_progress: OnProgress | None
    clock: Clock
    namespaces: t.Collection[str] | None

    def lease(self, timeout: float) -> Lease:
        """The Lease that lets one run of this owner at a time prune or recreate. TIMEOUT: seconds to wait for another run."""
        return Lease(
            self.cluster,
            self.options.owner,
            self.options.namespace,
            timeout=timeout,
            on_progress=self.on_progress,
            clock=self.clock,
        )

    @contextlib.contextmanager
    def alone(self, refs: list[Ref], timeout: float) -> t.Iterator[tuple[_Run, Lease]]:
        """This run with the Lease, without which nothing more is sent. Where it is lost, what this run sent last may have made the record
        false, so that is deleted. TIMEOUT: seconds to wait for another run.
        """
        with self.lease(timeout) as lease:
            writer = dataclasses.replace(self.writer, cluster=lease.cluster)
            try:
                yield dataclasses.replace(self, cluster=lease.cluster, writer=writer), lease
            except MusterError:
                if lease.lost:
                    with contextlib.suppress(MusterError):
                        list(self._delete_late_prune_record(refs))
                raise

    def carry_out(self, steps: list[PlannedObject], lease: Lease | None) -> Report:
        """Rehearse, write, prune. With a Lease no other run of the owner prunes meanwhile."""
        report, refs = Report(warnings=lease.warnings if lease else []), [step.ref for step in steps]
        recorded = self.prune and has_prune_record(self.cluster, self.options.owner, refs, self.options.namespace)
        _rehearse(self.writer, steps, self.options)
        joins = not self.options.check and any(map(self._is_new_for_owner, steps))
        if joins and not recorded:
            self._delete_prune_record(refs)
        _write(self.writer, steps, report, self.options, self.on_progress, self.clock)
        if self.prune and not recorded:
            self._prune(steps, report, lease)
        elif joins and not lease:
            report.warnings += self._delete_late_prune_record(refs)
        return report

    def _reached(self, refs: list[Ref]) -> frozenset[str] | None:
        """The namespaces in which prune deletes."""
        if self.namespaces is None:
            return None
        of_objects = [ref.name if ref.group_kind == NAMESPACE else ref.namespace for ref in refs]
        return frozenset(filter(None, [*self.namespaces, *of_objects, name_and_home(self.options.owner)[1]]))

    def _deletion(self, refs: list[Ref], *, check: bool) -> Deletion:
        ownership = Ownership(self.options.owner, namespaces=self._reached(refs))
        return Deletion(self.cluster, ownership, check, "delete_data", self.delete_data, self.options.parallel, clock=self.clock)

    def _delete_prune_record(self, refs: list[Ref]) -> None:
        delete_prune_record(self.cluster, self.options.owner, refs, self.options.namespace)

    def _delete_late_prune_record(self, refs: list[Ref]) -> t.Iterator[str]:
        """Delete the record of another run whose prune searched before our objects were created."""
        if holder(self.cluster, self.options.owner, self.options.namespace):
            try:
                with self.lease(_PRUNE_TIMEOUT):
                    self._delete_prune_record(refs)
            except Conflict as exc:
                yield f"{exc.message} It may overlook what this run made: run prune again when both are over."
        else:
            self._delete_prune_record(refs)

    def _is_new_for_owner(self, step: PlannedObject) -> bool:
        """Whether the owner gets an object that it does not have yet."""
        if step.verdict == "unchanged" or not step.ours:
            return False
        return step.live is None or owner_on(step.live) != self.options.owner

    def _leftovers(self, steps: list[PlannedObject]) -> tuple[dict[Ref, Manifest], list[str]]:
        """Objects that have our label and are not among the steps."""
        desired = {step.ref.identity for step in steps}
        namespaces = {step.ref.namespace for step in steps if step.ref.namespace} or {self.options.namespace}
        found, warnings, _others = owned_objects(
            self.cluster,
            self.options.owner,
            namespaces=namespaces,
            new={_api_version(step.desired) for step in steps if step.ref.group_kind == API_SERVICE and not step.live},
            parallel=self.options.parallel,
            clock=self.clock,
        )
        left = {
            ref: item for ref, item in by_ref(found).items() if ref.identity not in desired and LABEL_PRUNE_RECORD not in labels_of(item)
        }
        return left, warnings

    def _prune(self, steps: list[PlannedObject], report: Report, lease: Lease | None) -> None:
        """Delete objects that have our label and are no longer desired, last wave first; record it if nothing is left over."""
        refs, uids = [step.ref for step in steps], _uids(steps) | _uids_of(report.objects.values())
        found, warnings = self._leftovers(steps)
        shared = {ref: item for ref, item in shared_namespaces(self.cluster, self.options.owner).items() if ref not in refs}
        deletion = self._deletion(refs, check=self.options.check or lease is None)
        pruned = deletion.remove(found, uids).merge(deletion.release(shared))
        if lease is None and pruned.changed and not self.options.check:
            with self.alone(refs, _PRUNE_TIMEOUT) as (alone, taken):  # nothing had to be written so far
                report.warnings += taken.warnings
                _write(alone.writer, _fenced(steps, taken), report, self.options, self.on_progress, self.clock)
                return alone._prune(steps, report, taken)
        report.merge(pruned)
        report.warnings += warnings
        # A run without changes writes nothing, not even this. Nor does a run beside which another one may be active.
        if report.changed and lease and lease.guarded and not (warnings or pruned.kept):
            write_prune_record(self.cluster, self.options.owner, refs, self.options.namespace)
            lease.check()  # the record is false if another run was at work while it was written
        return None


def _fenced(steps: list[PlannedObject], lease: Lease) -> list[PlannedObject]:
    """The steps. Where the run before this one did not end, one that is unchanged is written, too, with the Lease's uid.

    That run may be about to delete the object, as it was when it looked: it then has another version, and the API server refuses.
    """
    if not lease.took_over:
        return steps
    why = "written once more, because the run that had the Lease before did not end, and might still delete it"
    return [
        dataclasses.replace(step, desired=with_annotation(step.desired, ANNOTATION_FENCE, lease.uid), verdict="update", reason=why)
        if step.verdict == "unchanged" and step.ours
        else step
        for step in steps
    ]  # fmt: skip


def _uids(steps: list[PlannedObject]) -> set[str]:
    return _uids_of(step.live for step in steps if step.live)


def _uids_of(objects: t.Iterable[Manifest]) -> set[str]:
    return {item["metadata"]["uid"] for item in objects if item["metadata"].get("uid")}


def _wait_ready(run: _Run, steps: list[PlannedObject], report: Report, timeout: float, predicates: Predicates | None) -> None:
    """Wait; an error also contains what was applied before."""
    refs = [step.ref for step in steps]
    # An object that is not ours lacks our label, so a list by that label would miss it.
    selector = run.options.selector if all(step.ours for step in steps) else None
    known = {ref: found for ref in refs if (found := report.objects.get(ref))}
    try:
        seen = wait_until(
            run.cluster, refs, timeout=timeout, predicates=predicates, known=known, label_selector=selector,
            on_progress=run.on_progress, clock=run.clock,
        )  # fmt: skip
    except MusterError as exc:
        exc.details = {**report.result(diff=False), **exc.details}
        raise
    report.objects.update({ref: found for ref, found in seen.items() if found})


def _write(
    writer: Writer,
    steps: list[PlannedObject],
    report: Report,
    options: ApplyOptions,
    on_progress: OnProgress | None,
    clock: Clock,
) -> None:
    """Write wave after wave, up to one that fails. In check mode no wave is left out, so that all problems are reported together."""
    by_ref = {step.ref: step for step in steps}
    refused: list[MusterError] = []
    progress, total = Progress(on_progress, clock), len(steps)
    outcomes: dict[Ref, Change] = {}

    def carry_out(step: PlannedObject) -> tuple[Change, Manifest | None]:
        outcome = writer.carry_out(step)
        outcomes[step.ref] = outcome[0]
        progress.report(f"{len(outcomes)} of {total} objects applied")
        return outcome

    for wave in waves(by_ref):
        # Unchanged objects need no request, and so no thread.
        todo = sorted((by_ref[ref] for ref in wave), key=lambda step: step.verdict == "unchanged")
        writes = [step for step in todo if step.verdict != "unchanged"]
        made, failures = _until_one_fails(carry_out, [step for step in writes if step.pinned])
        rest = [] if failures and not writer.check else [step for step in writes if not step.pinned]
        results, more = run_all(carry_out, rest, parallel=options.parallel)
        results, failures = [*made, *results], [*failures, *more]
        results += [carry_out(step) for step in todo[len(writes) :]]
        report.objects.update({change.ref: found for change, found in results if found is not None})
        report.changes = [outcomes[ref] for ref in by_ref if ref in outcomes]
        raise_overtaken(failures, report)
        refused += reasons.with_webhook_hints(writer.cluster, failures)
        if not writer.check:
            raise_all(refused, report.result(diff=False))
            _wait_for_definitions(writer, results, clock)
    raise_all(refused)


def _until_one_fails(
    carry_out: t.Callable[[PlannedObject], tuple[Change, Manifest | None]], steps: list[PlannedObject]
) -> tuple[list[tuple[Change, Manifest | None]], list[MusterError]]:
    """Carry out the steps one after the other: what belongs together is written in order, so that a later run can complete it."""
    done: list[tuple[Change, Manifest | None]] = []
    for step in steps:
        try:
            done.append(carry_out(step))
        except MusterError as exc:
            return done, [exc]
    return done, []


def _rehearse(writer: Writer, steps: list[PlannedObject], options: ApplyOptions) -> None:
    """Rehearse all writes as dry runs, so that invalid fields, conflicts and quotas are refused before anything is changed.

    Impossible for objects whose namespace or kind this run creates, and unnecessary for a single write.
    """
    writes = [step for step in steps if step.verdict != "unchanged"]
    if writer.check or len(writes) < 2:
        return
    first = min(wave_of(step.ref.group_kind) for step in writes)

    def rehearse(step: PlannedObject) -> None:
        writer.rehearse(step, later=wave_of(step.ref.group_kind) > first)

    failures = run_all(rehearse, [step for step in writes if not step.deferred], parallel=options.parallel)[1]
    raise_overtaken(failures)
    raise_all(failures)


def _wait_for_definitions(writer: Writer, results: t.Sequence[tuple[Change, Manifest | None]], clock: Clock) -> None:
    """Definitions take a moment to be served, and a later wave may have objects of their kinds."""
    known: dict[Ref, Manifest | None] = {
        change.ref: found for change, found in results if change.ref.group_kind == DEFINITION and change.changed and found
    }
    if not known:
        return
    wait_until(writer.cluster, list(known), timeout=_ESTABLISHED_TIMEOUT, known=known, goal="established", clock=clock)
    for definition in known.values():
        spec = (definition or {}).get("spec") or {}
        for version in spec.get("versions") or []:
            writer.cluster.resource(f"{spec['group']}/{version['name']}", spec["names"]["kind"], refresh=True)

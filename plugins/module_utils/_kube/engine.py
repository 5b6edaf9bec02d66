# SPDX-License-Identifier: GPL-3.0-or-later
"""The apply engine: one path for every write to Kubernetes.

Plan (only reads; all problems are reported together), write in waves, prune, wait. See docs/architecture.md. What few runs need is
imported where they do: Ansible compiles each file of a collection in each run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

from .._core.errors import Conflict, InvalidInput, MusterError
from .._core.pool import PARALLEL, OnProgress, Progress, raise_all, run_all
from .cluster import Cluster
from .lease import Lease, holder
from .objects import ANNOTATION_FENCE, API_SERVICE, DEFINITION, NAMESPACE, Manifest, Ref, labels_of, name_and_home, owner_on, owner_text
from .order import wave_of, waves
from .plan import ApplyOptions, PlannedObject, make_plan, raise_overtaken
from .prepare import with_annotation
from .prune_record import LABEL_PRUNE_RECORD, delete_prune_record, has_prune_record, write_prune_record
from .report import Change, Report
from .served import Promised
from .wait import Predicates, wait_until
from .write import Outcome, Writer

_ESTABLISHED_TIMEOUT = 60.0
_PRUNE_TIMEOUT = 60.0


def _nothing_to_keep(owner: str) -> InvalidInput:
    return InvalidInput(
        f"prune with no objects at all would delete everything of {owner_text(owner)}.",
        hint="Is a condition of a template false, or a file empty? To remove everything, use state: absent with this owner.",
    )


def _missing_references(cluster: Cluster, written: list[t.Any], steps: t.Sequence[t.Any], references: Promised) -> list[str]:
    from .references import require

    return require(cluster, written, [step.desired for step in steps], references)


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
) -> Report:
    """Apply these objects and, with prune, delete all others of this owner. It is safe to run again at any point.

    ``predicates`` overrides readiness by kind; ``wait_timeout`` is in seconds. ``overwrite``: fields, as conflicts name them, that are
    taken from their managers. ``namespaces``: where prune deletes, beside those of the objects and of the owner; None: everywhere.
    ``made_of``: of desired objects that were made of what was read, the version (None: there was none); where another run has written
    since, Overtaken with what was done before (see made_once.py). They are written one after the other, in the given order and before the
    rest of their wave. ``promised``: what check mode counts as there, to which it adds what the objects here bring; ``references``: the
    same for what pods name, which is checked then. The report has the objects as they are at the end.
    """
    options = ApplyOptions(
        owner, namespace or cluster.namespace, check, force_conflicts, parallel, adopt, overwrite,
        promised if check else Promised(), references, made_of or {},
        recreate=recreate, prune=prune, delete_data=delete_data, namespaces=namespaces, on_progress=on_progress,
    )  # fmt: skip
    run = _Run(cluster, options)
    steps = make_plan(cluster, objects := list(objects), options)
    if prune and not steps:
        raise _nothing_to_keep(owner)
    written = [step.desired for step in steps if step.verdict != "unchanged"]
    caveats = _missing_references(cluster, written, steps, references) if written and references is not None else []
    if not check and (recreate or prune) and written:
        with run.alone([step.ref for step in steps], wait_timeout) as (alone, lease):
            # Another run may have written between our reads and the Lease.
            report = alone.carry_out(steps := _fenced(make_plan(cluster, objects, options), lease), lease)
    else:
        report = run.carry_out(steps, None)
    if wait and not check:
        run.wait_ready(steps, report, wait_timeout, predicates)
    report.warnings += [*caveats, *cluster.warnings()]
    return report


@dataclasses.dataclass(frozen=True)
class _Run:
    """One call: the steps of its plan are rehearsed, written and pruned on this cluster with these options."""

    cluster: Cluster
    options: ApplyOptions

    def lease(self, timeout: float) -> Lease:
        """The Lease that lets one run of this owner at a time prune or recreate. TIMEOUT: seconds to wait for another run."""
        options = self.options
        return Lease(self.cluster, options.owner, options.namespace, timeout=timeout, on_progress=options.on_progress)

    @contextlib.contextmanager
    def alone(self, refs: list[Ref], timeout: float) -> t.Iterator[tuple[_Run, Lease]]:
        """This run with the Lease, without which nothing more is sent. Where it is lost, what this run sent last may have made the record
        false, so that is deleted. TIMEOUT: seconds to wait for another run.
        """
        with self.lease(timeout) as lease:
            try:
                yield dataclasses.replace(self, cluster=lease.cluster), lease
            except MusterError:
                if lease.lost:
                    with contextlib.suppress(MusterError):
                        list(self._delete_late_prune_record(refs))
                raise

    def carry_out(self, steps: list[PlannedObject], lease: Lease | None) -> Report:
        """Rehearse, write, prune. With a Lease no other run of the owner prunes meanwhile."""
        options = self.options
        report, refs = Report(warnings=lease.warnings if lease else []), [step.ref for step in steps]
        recorded = options.prune and has_prune_record(self.cluster, options.owner, refs, options.namespace)
        self._rehearse(steps)
        # Whether the owner gets an object that it does not have yet.
        joins = not options.check and any(
            step.ours and step.verdict != "unchanged" and (step.live is None or owner_on(step.live) != options.owner) for step in steps
        )
        if joins and not recorded:
            delete_prune_record(self.cluster, options.owner, refs, options.namespace)
        self._write(steps, report)
        if options.prune and not recorded:
            self._prune(steps, report, lease)
        elif joins and not lease:
            report.warnings += self._delete_late_prune_record(refs)
        return report

    def _rehearse(self, steps: list[PlannedObject]) -> None:
        """Rehearse all writes as dry runs, so that invalid fields, conflicts and quotas are refused before anything is changed.

        Impossible for objects whose namespace or kind this run creates, and unnecessary for a single write.
        """
        writes = [step for step in steps if step.verdict != "unchanged"]
        if self.options.check or len(writes) < 2:
            return
        first, writer = min(wave_of(step.ref.group_kind) for step in writes), Writer(self.cluster, self.options)
        failures = run_all(
            lambda step: writer.rehearse(step, later=wave_of(step.ref.group_kind) > first),
            [step for step in writes if not step.deferred],
            parallel=self.options.parallel,
        )[1]
        raise_overtaken(failures)
        raise_all(failures)

    def _write(self, steps: list[PlannedObject], report: Report) -> None:
        """Write wave after wave, up to one that fails. In check mode no wave is left out, so that all problems are reported together."""
        by_ref, writer, check = {step.ref: step for step in steps}, Writer(self.cluster, self.options), self.options.check
        refused: list[MusterError] = []
        progress = Progress(self.options.on_progress, self.cluster.clock)
        outcomes: dict[Ref, Change] = {}

        def carry_out(step: PlannedObject) -> Outcome:
            outcome = writer.carry_out(step)
            outcomes[step.ref] = outcome[0]
            progress.report(f"{len(outcomes)} of {len(steps)} objects applied")
            return outcome

        in_order = waves(by_ref)
        for wave in in_order:
            writes = [by_ref[ref] for ref in wave if by_ref[ref].verdict != "unchanged"]
            # What belongs together is written in order, up to one that fails, so that a later run can complete it.
            results: list[Outcome] = []
            failures: list[MusterError] = []
            for step in (step for step in writes if step.pinned):
                try:
                    results.append(carry_out(step))
                except MusterError as exc:
                    failures.append(exc)
                    break
            if check or not failures:
                done, failed = run_all(carry_out, [step for step in writes if not step.pinned], parallel=self.options.parallel)
                results, failures = [*results, *done], [*failures, *failed]
            # Unchanged objects need no request, and so no thread.
            results += [carry_out(by_ref[ref]) for ref in wave if by_ref[ref].verdict == "unchanged"]
            report.objects.update({change.ref: found for change, found in results if found is not None})
            if failures or wave is in_order[-1]:
                report.changes = [outcomes[ref] for ref in by_ref if ref in outcomes]
            if failures:
                from .reasons import with_webhook_hints

                raise_overtaken(failures, report)
                refused += with_webhook_hints(self.cluster, failures)
                if not check:
                    raise_all(refused, report.result(diff=False))
            if not check:
                self._wait_for_definitions(results)
        raise_all(refused)

    def _wait_for_definitions(self, results: t.Sequence[Outcome]) -> None:
        """Definitions take a moment to be served, and a later wave may have objects of their kinds."""
        known: dict[Ref, Manifest | None] = {
            change.ref: found for change, found in results if change.ref.group_kind == DEFINITION and change.changed and found
        }
        if not known:
            return
        wait_until(self.cluster, list(known), timeout=_ESTABLISHED_TIMEOUT, known=known, goal="established")
        for definition in known.values():
            spec = (definition or {}).get("spec") or {}
            for version in spec.get("versions") or []:
                self.cluster.resource(f"{spec['group']}/{version['name']}", spec["names"]["kind"], refresh=True)

    def _delete_late_prune_record(self, refs: list[Ref]) -> t.Iterator[str]:
        """Delete the record of another run whose prune searched before our objects were created."""
        owner, namespace = self.options.owner, self.options.namespace
        try:
            with self.lease(_PRUNE_TIMEOUT) if holder(self.cluster, owner, namespace) else contextlib.nullcontext():
                delete_prune_record(self.cluster, owner, refs, namespace)
        except Conflict as exc:
            yield f"{exc.message} It may overlook what this run made: run prune again when both are over."

    def _prune(self, steps: list[PlannedObject], report: Report, lease: Lease | None) -> None:
        """Delete objects that have our label and are no longer desired, last wave first; record that nothing is left."""
        from .deletion import Ownership
        from .removal import Deletion, shared_namespaces

        options, refs = self.options, [step.ref for step in steps]
        uids = {
            item["metadata"]["uid"]
            for item in (*(step.live for step in steps if step.live), *report.objects.values())
            if item["metadata"].get("uid")
        }
        found, warnings = self._leftovers(steps)
        shared = {ref: item for ref, item in shared_namespaces(self.cluster, options.owner).items() if ref not in refs}
        check = options.check or lease is None
        ownership = Ownership(options.owner, namespaces=self._reached(refs))
        deletion = Deletion(self.cluster, ownership, check, options.delete_data, options.parallel)
        pruned = deletion.remove(found, uids).merge(deletion.release(shared))
        if lease is None and pruned.changed and not options.check:
            with self.alone(refs, _PRUNE_TIMEOUT) as (alone, taken):  # nothing had to be written so far
                report.warnings += taken.warnings
                alone._write(_fenced(steps, taken), report)
                return alone._prune(steps, report, taken)
        report.merge(pruned)
        report.warnings += warnings
        # A run without changes writes nothing, not even this; neither does a run that may overlap another.
        if report.changed and lease and lease.guarded and not (warnings or pruned.kept):
            write_prune_record(self.cluster, options.owner, refs, options.namespace)
            lease.check()  # the record is false if another run was at work while it was written
        return None

    def _reached(self, refs: list[Ref]) -> frozenset[str] | None:
        """The namespaces in which prune deletes."""
        if self.options.namespaces is None:
            return None
        of_objects = [ref.name if ref.group_kind == NAMESPACE else ref.namespace for ref in refs]
        return frozenset(filter(None, [*self.options.namespaces, *of_objects, name_and_home(self.options.owner)[1]]))

    def _leftovers(self, steps: list[PlannedObject]) -> tuple[dict[Ref, Manifest], list[str]]:
        """Objects that have our label and are not among the steps."""
        from .owned import owned_objects
        from .removal import by_ref

        desired = {step.ref.identity for step in steps}
        namespaces = {step.ref.namespace for step in steps if step.ref.namespace} or {self.options.namespace}
        services = [step.desired["spec"] for step in steps if step.ref.group_kind == API_SERVICE and not step.live]
        found, warnings, _others = owned_objects(
            self.cluster,
            self.options.owner,
            namespaces=namespaces,
            new={f"{spec.get('group', '')}/{spec.get('version', '')}" for spec in services},
            parallel=self.options.parallel,
        )
        left = {
            ref: item for ref, item in by_ref(found).items() if ref.identity not in desired and LABEL_PRUNE_RECORD not in labels_of(item)
        }
        return left, warnings

    def wait_ready(self, steps: list[PlannedObject], report: Report, timeout: float, predicates: Predicates | None) -> None:
        """Wait; an error also contains what was applied before."""
        refs, options = [step.ref for step in steps], self.options
        # An object that is not ours lacks our label, so a list by that label would miss it.
        selector = options.selector if all(step.ours for step in steps) else None
        known = {ref: found for ref in refs if (found := report.objects.get(ref))}
        try:
            seen = wait_until(
                self.cluster, refs, timeout=timeout, predicates=predicates, known=known, label_selector=selector,
                on_progress=options.on_progress,
            )  # fmt: skip
        except MusterError as exc:
            exc.details = {**report.result(diff=False), **exc.details}
            raise
        report.objects.update({ref: found for ref, found in seen.items() if found})


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

# SPDX-License-Identifier: GPL-3.0-or-later
"""Delete objects: named ones, all of an owner, or those that an owner no longer desires. Every deletion goes through here."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import typing as t

from .._core.clock import Deadline
from .._core.deletion import why_kept
from .._core.errors import Forbidden, MusterError
from .._core.pool import PARALLEL, OnProgress, raise_all, run_all, run_all_or_raise
from . import reasons
from .cluster import Cluster
from .deletion import DeletionFacts, Ownership, not_named
from .fields import owned_fields
from .lease import Lease
from .objects import HISTORY, LABEL_OWNER, NAMESPACE, Manifest, Ref, former_owner, manager_of, owner_on, owner_text, ref_of
from .order import waves
from .owned import owned_objects
from .ready import deletion_state
from .report import Change, Report
from .users import Use, uses_of
from .wait import wait_until

_TRIES = 5
"""Number of attempts to delete an object that other clients change between read and delete."""


@dataclasses.dataclass(frozen=True)
class Deletion:
    """The options of deletion in this call. ``data``: whether data may be deleted, too."""

    cluster: Cluster
    ownership: Ownership
    check: bool
    data: bool
    parallel: int = PARALLEL
    wait_gone: t.Callable[[dict[Ref, Manifest | None]], None] | None = None
    ignore_users_of: t.Collection[str] = ()

    def remove(self, live: t.Mapping[Ref, Manifest], desired: t.Container[str] = frozenset()) -> Report:
        """Delete these, last wave first, except what must stay; ``desired`` are the uids of objects that stay in any case."""
        used, warnings = self._used(live)
        report, records = Report(warnings=warnings), self._with_records(live)
        facts = DeletionFacts(cluster=self.cluster, ownership=self.ownership, desired=desired, delete_data=self.data,
                              beyond=self.ownership.beyond(live), used=used, leaving=self.ignore_users_of)  # fmt: skip
        for wave in waves(live, reverse=True):
            changes, failures = run_all(lambda ref: self._one(facts, ref, live[ref]), wave, parallel=self.parallel)
            report.changes += changes
            raise_all(reasons.with_webhook_hints(self.cluster, failures), report.result(diff=False))
            going: dict[Ref, Manifest | None] = {change.ref: live[change.ref] for change in changes if change.action != "kept"}
            if self.wait_gone and going:
                try:
                    self.wait_gone(going)
                except MusterError as exc:
                    exc.details = {**report.result(diff=False), **exc.details}
                    raise
        gone = records & {change.ref for change in report.changes if change.changed}
        report.warnings += [f"{ref} goes with the records of its trainings (ConfigMap {HISTORY})." for ref in sorted(gone)]
        return _naming_kept(report)

    def _with_records(self, live: t.Iterable[Ref]) -> set[Ref]:
        """The namespaces that may be deleted and have records of trainings. Where they may not be read, the namespace stays."""
        found = set()
        for ref in live if self.data else ():
            with contextlib.suppress(Forbidden):
                if ref.group_kind == NAMESPACE and self.cluster.get(Ref("v1", "ConfigMap", HISTORY, ref.name)):
                    found.add(ref)
        return found

    def release(self, namespaces: t.Mapping[Ref, Manifest]) -> Report:
        """Take the owner's labels and annotations from namespaces of others, by applying nothing under its field manager."""
        owner, reached, report = self.ownership.value, self.ownership.namespaces, Report()
        for ref, live in namespaces.items():
            if reached is not None and ref.name not in reached:
                report.changes.append(Change(ref, "kept", f"has labels of {owner_text(owner)}, and {not_named(ref.name)}"))
                continue
            # One that is gone meanwhile must not be created again.
            metadata = {"name": ref.name, "uid": live["metadata"].get("uid")}
            nothing = {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": metadata}
            if not self.check:
                self.cluster.apply(nothing, dry_run=False, manager=manager_of(owner))
            report.changes.append(Change(ref, "updated", f"it stays, without the labels and annotations of {owner_text(owner)}"))
        return _naming_kept(report)

    def _used(self, live: t.Mapping[Ref, Manifest]) -> tuple[dict[Ref, Use], list[str]]:
        """Return the objects that may be deleted by their labels but are in use, and warnings."""
        ours = {
            ref: item
            for ref, item in live.items()
            if self.ownership.matches(item) and self.ownership.has_record(item) and not item["metadata"].get("deletionTimestamp")
        }
        owners = {self.ownership.value} if self.ownership.label == LABEL_OWNER else set()
        return uses_of(self.cluster, ours, leaving=owners | set(self.ignore_users_of))

    def _one(self, facts: DeletionFacts, ref: Ref, item: Manifest | None) -> Change:
        deleted = Change(ref, "deleted", before={"apiVersion": ref.api_version, "kind": ref.kind,
                                                 "metadata": {"name": ref.name, "namespace": ref.namespace}})  # fmt: skip
        uid = (item or {}).get("metadata", {}).get("uid")
        for _try in range(_TRIES):
            if item is None:
                return deleted  # deleted since it was read, or by our own request whose answer was lost
            if item["metadata"].get("uid") != uid:
                return Change(ref, "kept", "was created again by another client meanwhile")
            if item["metadata"].get("deletionTimestamp") and self.ownership.matches(item):
                facts.note_deleted(item)
                return Change(ref, "unchanged", "is being deleted already")
            why = why_kept(facts.candidate(ref, item), delete_data=self.data)
            if why:
                return Change(ref, "kept", why)
            if self.check or self._delete(ref, item):
                facts.note_deleted(item)
                return deleted
            item = self.cluster.get(ref)
        return Change(ref, "kept", "another client keeps changing it, so it is never as it was judged")

    def _delete(self, ref: Ref, item: Manifest) -> bool:
        """Delete the object if it is still as it was judged; False if it is not."""
        # Foreground deletion with a wait: the object then stays until all of its dependents are gone.
        propagation = "Foreground" if self.wait_gone else "Background"
        metadata = item["metadata"]
        return self.cluster.delete(ref, dry_run=False, propagation=propagation, uid=metadata.get("uid"),
                                   resource_version=metadata.get("resourceVersion"))  # fmt: skip


def _naming_kept(report: Report) -> Report:
    if report.kept:
        named = "; ".join(f"{change.ref} ({change.reason})" for change in report.kept)
        report.warnings.append(f"Kept: {named}.")
    return report


def delete_objects(
    cluster: Cluster,
    what: t.Iterable[Manifest | Ref] | None,
    ownership: Ownership | str,
    *,
    check: bool,
    namespace: str | None = None,
    wait: bool = False,
    wait_timeout: float = 120,
    delete_data: bool = False,
    ignore_users_of: t.Collection[str] = (),
    parallel: int = PARALLEL,
    on_progress: OnProgress | None = None,
) -> Report:
    """Delete the named objects that belong to the owner; if WHAT is None, everything that belongs to it. ``wait_timeout`` is in seconds.

    An object that does not exist is no error, and costs no request. What must stay is reported as kept, with the reason.
    ``ignore_users_of``: owners whose objects are no reason to keep anything, because they go as well.
    """
    ownership = Ownership(ownership) if isinstance(ownership, str) else ownership
    deadline = Deadline(wait_timeout, cluster.clock)

    def wait_gone(going: dict[Ref, Manifest | None]) -> None:
        left = deadline.answer_timeout  # all waves together have the time of one wait
        wait_until(cluster, list(going), timeout=left, predicates={ref.group_kind: deletion_state for ref in going}, known=going,
                   goal="gone", on_progress=on_progress)  # fmt: skip

    deletion = Deletion(cluster, ownership, check, delete_data, parallel, wait_gone if wait and not check else None, ignore_users_of)
    home = namespace or cluster.namespace
    if what is not None:
        return _delete_named(dataclasses.replace(deletion, ownership=dataclasses.replace(ownership, namespaces=None)), what, home)
    lease = Lease(cluster, ownership.value, home, timeout=wait_timeout, on_progress=on_progress)
    return _delete_owned(deletion, home, lease)


def delete_unwanted(cluster: Cluster, refs: t.Iterable[Ref], owner: str, *, check: bool) -> Report:
    """Delete objects of this owner that this run does not desire; those of other owners stay.

    So do those that the user may not read, who has not made them with these rights: apply reads what it writes.
    """
    ours = []
    for ref in refs:
        with contextlib.suppress(Forbidden):
            if (live := cluster.get(ref)) and owner_on(live) == owner:
                ours.append(ref)
    return delete_objects(cluster, ours, owner, check=check) if ours else Report()


def by_ref(items: t.Iterable[Manifest]) -> dict[Ref, Manifest]:
    """The objects by their references."""
    return {ref_of(item): item for item in items}


def shared_namespaces(cluster: Cluster, owner: str) -> dict[Ref, Manifest]:
    """Namespaces of others on which the owner has labels or annotations. None if listing is not allowed."""
    try:
        found = cluster.list_metadata("v1", "Namespace")
    except Forbidden:
        return {}
    others = [item for item in found if owner_on(item) not in (owner, former_owner(owner))]
    return by_ref(item for item in others if owned_fields(item, manager_of(owner)))


def _delete_owned(deletion: Deletion, namespace: str, lease: Lease) -> Report:
    cluster, owner, check = deletion.cluster, deletion.ownership.value, deletion.check
    observe = functools.partial(owned_objects, cluster, owner, namespaces=[namespace], parallel=deletion.parallel)
    found, warnings, others = observe()
    shared = shared_namespaces(cluster, owner)
    planned = dataclasses.replace(deletion, check=True, wait_gone=None)
    report = planned.remove(by_ref(found)).merge(planned.release(shared))
    if report.changed and not check:
        with lease:
            found, warnings, others = observe()
            alone = dataclasses.replace(deletion, cluster=lease.cluster)
            report = alone.remove(by_ref(found)).merge(alone.release(shared))
    elif not check:  # objects that are being deleted already may still be waited for
        report = deletion.remove(by_ref(found)).merge(planned.release(shared))
    report.warnings += warnings
    if others and not found:
        there = " and ".join(map(owner_text, others))
        report.warnings.append(f"Nothing belongs to {owner_text(owner)}. There is {there}: namespace tells which is meant.")
    return report


def _delete_named(deletion: Deletion, what: t.Iterable[Manifest | Ref], namespace: str) -> Report:
    cluster = deletion.cluster
    refs = [_in_its_namespace(cluster, item if isinstance(item, Ref) else ref_of(item), namespace) for item in what]
    live = dict(zip(refs, run_all_or_raise(cluster.get, refs, parallel=deletion.parallel), strict=True))
    report = deletion.remove({ref: item for ref, item in live.items() if item is not None})
    report.changes += [Change(ref, "unchanged", "is not there") for ref, item in live.items() if item is None]
    return report


def _in_its_namespace(cluster: Cluster, ref: Ref, namespace: str) -> Ref:
    resource = cluster.resource(ref.api_version, ref.kind)
    if resource is None:
        return ref
    if not resource.namespaced:
        return dataclasses.replace(ref, namespace=None)
    return ref if ref.namespace else dataclasses.replace(ref, namespace=namespace)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out one step of a plan: apply (or ask what an apply would do), recreate if allowed, and report what changed."""

from __future__ import annotations

import dataclasses
import re
import secrets
import typing as t

from .._core.errors import Conflict, Immutable, InvalidInput, MissingKind, MusterError, NotFound, Overtaken, Rejected
from .._core.pace import Backoff, with_retries
from .._core.sensitive import printable
from . import fields, redact, responses
from .cluster import Cluster
from .objects import (
    ANNOTATION_APPLIED,
    ANNOTATION_FENCE,
    ANNOTATION_NOT_KEPT,
    DAEMON_SET,
    DEFINITION,
    DEPLOYMENT,
    FIELD_MANAGER,
    STATEFUL_SET,
    Manifest,
    annotations_of,
    group_kind,
    ref_of,
)
from .plan import CHANGED, ApplyOptions, PlannedObject, overtaken, without_bookkeeping
from .ready import deletion_state
from .report import Change
from .wait import wait_until

_GONE_TIMEOUT = 120.0
_TRIES = 5
"""Tries to take over the fields of an object whose status a controller writes meanwhile."""
_PASSING = (responses.WEBHOOK_DOWN, responses.NO_REFERENCE, responses.UNCOUNTED_QUOTA)
_ROLLING = (DAEMON_SET, DEPLOYMENT, STATEFUL_SET)
_NAMED_FIELDS = 3
_WEBHOOK_PATIENCE = 30.0
"""Seconds for a webhook or a new kind to be served by what an earlier wave started."""


Outcome = tuple[Change, t.Union[Manifest, None]]  # noqa: UP007 -- Ansible's pylint refuses the other form in an alias
"""The change of an object, and the object as it is (or would be) stored."""


@dataclasses.dataclass(frozen=True)
class Writer:
    """The writer of planned steps in this run."""

    cluster: Cluster
    options: ApplyOptions

    def carry_out(self, step: PlannedObject) -> Outcome:
        """The change, and the object as it is (or would be) stored."""
        if step.verdict == "unchanged":
            return Change(step.ref, "unchanged", step.reason), step.live
        if step.deferred and self.options.check:
            return self._change(step, step.reason), None
        taken = step if self.options.check else self._transfer_fields(step)
        try:
            stored = self._dry_run(taken) if self.options.check else self._store(taken)
        except MusterError as exc:
            if self.options.check and _is_inconclusive(exc):
                return self._change(step, "could not be tried; this is the desired object"), None
            if not isinstance(exc, Rejected):
                raise
            if self.options.check and self._passes_without(taken, exc):
                return self._change(step, step.reason), None
            return self._recreate(taken, exc)
        if step.live is None and not (self.options.check or step.pinned):
            self._undo_adoption(step, stored)
        if step.live and stored["metadata"].get("resourceVersion") == step.live["metadata"].get("resourceVersion") and (
            not self.options.check or without_bookkeeping(stored) == without_bookkeeping(step.live)
        ):  # fmt: skip
            return Change(step.ref, "unchanged", step.reason), stored
        return self._change(step, step.reason, stored), self._record_not_kept(step, stored)

    def _undo_adoption(self, step: PlannedObject, stored: Manifest) -> None:
        """Undo and report the adoption of an object that another client created since the plan: an apply cannot demand that none exists."""
        ours = self.options.manager
        others = sorted(fields.managers(stored) - {ours})
        taken = self.options.adopt or (self.options.force_conflicts and all(name.startswith(f"{FIELD_MANAGER}:") for name in others))
        if not others or taken:
            return
        metadata = {key: stored["metadata"][key] for key in ("name", "namespace", "uid") if key in stored["metadata"]}
        nothing = {"apiVersion": step.ref.api_version, "kind": step.ref.kind, "metadata": metadata}
        self.cluster.apply(nothing, dry_run=False, manager=ours)
        raise Conflict(
            f"{step.ref} was made by another client ({', '.join(others)}) at the same moment, and is left as it was.",
            ref=step.ref, managers=others, hint="Run again to compare it with the desired object.",
        )  # fmt: skip

    def rehearse(self, step: PlannedObject, *, later: bool = False) -> None:
        """Rehearse a write, so that the server refuses (a conflict, an immutable field) before anything is written.

        A reference to an object that this run has yet to create is no refusal. For ``later`` waves neither is that of a webhook, which may
        have looked for such an object.
        """
        try:
            self._dry_run(step)
        except MusterError as exc:
            if _is_inconclusive(exc) or (later and exc.cause == responses.WEBHOOK_REFUSAL):
                return
            if not isinstance(exc, Rejected):
                raise
            if not self._passes_without(step, exc):
                self._check_recreate(step, exc)

    def _dry_run(self, step: PlannedObject) -> Manifest:
        """Return the object that an apply would store. A dry run cannot take over fields first, so a conflict about only those is none."""
        desired = _for_existing_only(step)
        try:
            return self._sent(desired, step, dry_run=True, force=self.options.force_conflicts)
        except Overtaken:
            raise
        except Conflict as exc:
            if not (set(exc.managers) <= {*step.takes, self.options.manager} or step.may_overwrite(exc.fields)):
                raise
        return self._sent(desired, step, dry_run=True, force=True)

    def _sent(self, desired: Manifest, step: PlannedObject | None, *, dry_run: bool, force: bool) -> Manifest:
        """The object as stored. One that is made of what was read is sent for that version only, or created where there was none."""
        manager = self.options.manager
        try:
            if step and step.pinned and step.live is None:
                return self._created(desired, dry_run=dry_run, manager=manager)
            return self.cluster.apply(desired, dry_run=dry_run, force_conflicts=force, manager=manager)
        except Conflict as exc:
            if not (step and step.pinned) or exc.managers:
                raise
            raise _overtaken(step) from exc

    def _created(self, desired: Manifest, *, dry_run: bool, manager: str) -> Manifest:
        try:
            return self.cluster.create(desired, dry_run=dry_run, manager=manager)
        except Conflict:
            found = None if dry_run else self.cluster.get(ref_of(desired))
            # Generated values are equal only where this very request was carried out and its answer got lost.
            if found and annotations_of(found) == annotations_of(desired) and redact.same_secrets(desired, found):
                return found
            raise

    def _store(self, step: PlannedObject) -> Manifest:
        """The object as an apply stores it. Defaults of the server that are in the way become ours first, and so go with the apply."""
        try:
            return self._apply(_for_existing_only(step), step)
        except Rejected as exc:
            defaults = self._defaults(step, exc)
            if not defaults:
                raise
        live = step.live if step.pinned else self.cluster.get(step.ref) or step.live
        freed = self._transfer_fields(dataclasses.replace(step, live=live), defaults)
        # A null would keep what it is to remove: to structured-merge-diff it is a value, too.
        freed = dataclasses.replace(freed, desired=_without_nulls(freed.desired))
        return self._apply(_for_existing_only(freed), freed)

    def _defaults(self, step: PlannedObject, refusal: Rejected) -> fields.Trie:
        """The defaults of the server that are the reason why it refuses a change; empty if it refuses the change without them, too."""
        refused = refusal.details.get("fields") or ()
        found = fields.defaults_in_the_way(step.desired, step.live, refused) if step.live else {}
        return found if found and self._accepted_without(step, found) else {}

    def _passes_without(self, step: PlannedObject, refusal: Rejected) -> bool:
        """Whether a change that a dry run refuses will pass, because what is in its way goes: defaults, or fields of former managers."""
        given = fields.owned_fields(step.live, *step.takes) if step.live else {}
        return bool(given and self._accepted_without(step, given)) or bool(self._defaults(step, refusal))

    def _accepted_without(self, step: PlannedObject, going: fields.Trie) -> bool:
        try:
            self.cluster.patch(step.ref, _patch_without(going, _for_existing_only(step)), dry_run=True)
        except Rejected as exc:
            return _is_inconclusive(exc)
        return True

    def _transfer_fields(self, step: PlannedObject, defaults: fields.Trie | None = None, tries: int = _TRIES) -> PlannedObject:
        """Transfer the fields of the former managers to the owner; the step is then about the resulting version."""
        if not (step.live and (step.takes or defaults or fields.is_created_by(step.live, self.options.manager))):
            return step
        taken = fields.transferred_fields(step.live, step.takes, self.options.manager, defaults)
        known = {key: step.live["metadata"][key] for key in ("uid", "resourceVersion")}
        try:
            patched = self.cluster.patch(step.ref, {"metadata": {**known, "managedFields": taken}}, dry_run=False)
        except Conflict as exc:
            if step.pinned:
                raise _overtaken(step) from exc
            seen = self.cluster.get(step.ref)
            if not (seen and tries and _same_as_judged(seen, step.live, step.desired)):
                raise
            return self._transfer_fields(dataclasses.replace(step, live=seen), defaults, tries - 1)
        now = {**step.live["metadata"], "resourceVersion": patched["metadata"]["resourceVersion"], "managedFields": taken}
        return dataclasses.replace(step, live={**step.live, "metadata": now})

    def _apply(self, desired: Manifest, step: PlannedObject | None = None) -> Manifest:
        backoff, force, check = Backoff(self.cluster.clock, first=0.5, factor=1), self.options.force_conflicts, self.options.check

        def send() -> Manifest:
            try:
                return self._sent(desired, step, dry_run=check, force=force)
            except Conflict as exc:
                # What was made since the plan is its maker's, bookkeeping included.
                if force or step is None or step.live is None or not step.may_overwrite(exc.fields):
                    raise
            return self._sent(desired, step, dry_run=check, force=True)

        return with_retries(send, lambda exc: _is_transient(exc) and backoff.wait_for_retry(limit=_WEBHOOK_PATIENCE))

    @staticmethod
    def _change(step: PlannedObject, reason: str, stored: Manifest | None = None) -> Change:
        """The change of one object. Where the server cannot predict what is STORED, the desired object stands for it."""
        if step.live is None:
            return Change(step.ref, "created", reason, after=displayed(step.desired))
        after = step.desired if stored is None else redact.seal_everything(stored)
        reason = "; ".join(filter(None, (reason, _replaced_pods(step.live, stored or {}))))
        return Change(step.ref, "updated", reason, before=displayed(step.live, step.desired), after=displayed(after))

    def _record_not_kept(self, step: PlannedObject, stored: Manifest) -> Manifest:
        """Record fields that this server did not keep, or every run would apply them again, and those that admission changed."""
        desired = step.desired
        if self.options.check or not step.ours or "managedFields" not in stored["metadata"]:
            return stored
        dropped = fields.unowned_paths(desired, stored, self.options.manager)
        changed = [path for path in fields.differing_paths(stored, desired) if path not in dropped]
        dropped += [f"{CHANGED}{path}" for path in changed]
        if not dropped:
            return stored
        noted = {**desired["metadata"], "annotations": {**annotations_of(desired), ANNOTATION_NOT_KEPT: "\n".join(dropped)}}
        made = dataclasses.replace(step, live=stored)
        return self._apply(_for_existing_only(dataclasses.replace(made, desired={**desired, "metadata": noted})), made)

    def _check_recreate(self, step: PlannedObject, refusal: Rejected) -> tuple[Manifest, Immutable]:
        """The object to replace, and why it has to be: the server would accept the new one, which it refuses as a change.

        What it would refuse of a new one as well is just wrong.
        """
        if step.live is None or refusal.cause == responses.ALLOCATED or _is_inconclusive(refusal):
            raise refusal
        self._dry_run_recreate(step, refusal)
        immutable = _naming_fields(refusal, step.desired, step.live)
        if not self.options.recreate:
            raise immutable from refusal
        from .._core.deletion import why_kept
        from .deletion import DeletionFacts, Ownership

        # ``recreate`` does not allow deleting data: it says nothing about what an object contains.
        facts = DeletionFacts(
            cluster=self.cluster,
            ownership=Ownership(self.options.owner, others=self.options.force_conflicts, unowned=True),
            desired=(),
            delete_data=False,
        )
        why = why_kept(facts.candidate(step.ref, step.live), delete_data=False).partition(";")[0]
        if why:
            raise InvalidInput(f"{step.ref} is never recreated ({why}): {immutable.message}", ref=step.ref) from refusal
        return step.live, immutable

    def _dry_run_recreate(self, step: PlannedObject, refusal: Rejected) -> None:
        """Ask, under a free name, whether the new object would be accepted: else the old one could be deleted and never replaced."""
        free = f"{step.ref.name[:40].rstrip('-.')}-{secrets.token_hex(4)}"
        tried = {**step.desired, "metadata": {**step.desired["metadata"], "name": free}}
        if step.ref.group_kind == DEFINITION:  # its name is made of two of its fields
            free, group = free.replace(".", "-"), step.ref.name.partition(".")[2]
            tried["metadata"]["name"] = f"{free}.{group}"
            tried["spec"] = {**step.desired["spec"], "names": {**step.desired["spec"]["names"], "plural": free}}
        try:
            self.cluster.apply(tried, dry_run=True, manager=self.options.manager)
        except MusterError as exc:
            if exc.cause == responses.ALLOCATED:  # address, port or place in a quota of the old object, free once it is deleted
                return
            wrong = exc.details.get("fields")
            if not self.options.recreate or not isinstance(exc, Rejected) or wrong == refusal.details.get("fields"):
                raise refusal from exc
            raise InvalidInput(
                f"{step.ref} cannot be changed in place, and is not deleted either, because the new one would be refused: {exc.message}",
                hint=exc.hint, ref=step.ref, details=exc.details,
            ) from refusal  # fmt: skip

    def _recreate(self, step: PlannedObject, refusal: Rejected) -> Outcome:
        live, immutable = self._check_recreate(step, refusal)
        change = Change(step.ref, "recreated", immutable.message, before=displayed(live, step.desired), after=displayed(step.desired))
        if self.options.check:
            return change, None
        # Orphaned pods and claims of a StatefulSet are adopted by the new one, so nothing that runs is lost.
        propagation = "Orphan" if step.ref.group_kind == STATEFUL_SET else "Foreground"
        tries = _TRIES
        while not self.cluster.delete(step.ref, dry_run=False, propagation=propagation, uid=live["metadata"].get("uid"),
                                      resource_version=live["metadata"].get("resourceVersion")):  # fmt: skip
            tries -= 1
            seen = self.cluster.get(step.ref)
            if seen is None:
                break
            if not (tries and _same_as_judged(seen, live, step.desired)):
                raise Conflict(f"{step.ref} was changed by another client before it could be recreated.", ref=step.ref,
                               hint="Nothing was deleted. Run again.")  # fmt: skip
            live, _reason = self._check_recreate(dataclasses.replace(step, live=seen), refusal)
        wait_until(
            self.cluster,
            [step.ref],
            timeout=_GONE_TIMEOUT,
            predicates={step.ref.group_kind: deletion_state},
            known={step.ref: live},
            goal="gone",
        )
        return change, self._record_not_kept(step, self._apply(step.desired))


def _replaced_pods(live: Manifest, stored: Manifest) -> str:
    """Return that a controller replaces the pods of a running workload, and the fields because of which; empty if it does not."""
    spec = stored.get("spec") or {}
    if group_kind(live) not in _ROLLING or "template" not in spec or (spec.get("updateStrategy") or {}).get("type") == "OnDelete":
        return ""
    before, after = live["spec"]["template"], spec["template"]
    paths = sorted({*fields.differing_paths(before, after), *fields.differing_paths(after, before)})
    more = f" and {len(paths) - _NAMED_FIELDS} more fields" if len(paths) > _NAMED_FIELDS else ""
    return f"its pods are replaced because of {', '.join(paths[:_NAMED_FIELDS])}{more}" if paths else ""


def _same_as_judged(seen: Manifest, live: Manifest, desired: Manifest) -> bool:
    """Whether only the status changed, or labels and annotations that are not desired: controllers write these at any time."""

    def judged(item: Manifest) -> Manifest:
        metadata = {**without_bookkeeping(item)["metadata"], "uid": item["metadata"].get("uid")}
        for part in ("labels", "annotations"):
            wanted = desired["metadata"].get(part) or {}
            metadata[part] = {key: value for key, value in (metadata.get(part) or {}).items() if key in wanted}
        return {**without_bookkeeping(item), "metadata": metadata}

    return judged(seen) == judged(live)


def _patch_without(node: fields.Trie, desired: t.Any) -> t.Any:
    """The JSON merge patch that makes DESIRED of an object and removes these fields; elements of lists are replaced with their list."""
    if not isinstance(desired, dict):
        return desired
    gone = {key[2:]: None for key in node if key.startswith("f:") and key[2:] not in desired}
    return {**gone, **{key: _patch_without(node.get(f"f:{key}") or {}, value) for key, value in desired.items()}}


def _without_nulls(value: t.Any) -> t.Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _for_existing_only(step: PlannedObject) -> Manifest:
    """The object as it is sent if it exists: the server refuses it if another one has taken its place meanwhile, or another version."""
    live = (step.live or {}).get("metadata", {})
    known = {key: live[key] for key in ("uid", *(["resourceVersion"] if step.pinned else [])) if key in live}
    return {**step.desired, "metadata": {**step.desired["metadata"], **known}} if known else step.desired


def _overtaken(step: PlannedObject) -> Overtaken:
    return overtaken(step.ref, step.live["metadata"]["resourceVersion"] if step.live else None)


def displayed(manifest: Manifest, like: Manifest | None = None) -> Manifest:
    """The object as people see it: without status, bookkeeping (the server's and ours) and secret values, also those that LIKE marks."""
    visible: Manifest = printable(without_bookkeeping(redact.seal_everything(manifest, like) if like else manifest))
    annotations = visible["metadata"].get("annotations")
    if annotations is not None:
        for key in (ANNOTATION_APPLIED, ANNOTATION_FENCE, ANNOTATION_NOT_KEPT):
            annotations.pop(key, None)
        if not annotations:
            del visible["metadata"]["annotations"]
    return visible


_MUTABLE = re.compile(r"'(\w+)'")


def _naming_fields(refusal: Rejected, desired: Manifest, live: Manifest) -> Immutable:
    """Return why the object cannot be changed in place. For some kinds the server only lists the fields that could be changed."""
    message = f"{refusal.said or refusal.message.rstrip('.')}."
    differ, named = fields.differing_paths(live, desired), refusal.details.get("fields") or []
    if refusal.cause == responses.IMMUTABLE:
        mutable = _MUTABLE.findall(refusal.named["mutable"])
        tops = dict.fromkeys(re.split(r"[.\[]", path)[1] for path in differ if path.startswith("spec."))
        if changed := [f"spec.{key}" for key in tops if key not in mutable]:
            named, message = changed, f"{', '.join(changed)} {'is' if len(changed) == 1 else 'are'} immutable."
    return Immutable(f"{refusal.ref} cannot be changed in place: {message}", hint="With recreate the object is deleted and created again.",
                     ref=refusal.ref, details={"fields": named})  # fmt: skip


def _is_inconclusive(exc: MusterError) -> bool:
    """Whether a refused dry run says nothing about the object: a webhook was not asked, or something is too new."""
    return isinstance(exc, NotFound) or exc.cause in (*_PASSING, responses.NO_DRY_RUN)


def _is_transient(exc: MusterError) -> bool:
    """Whether the cause passes soon: a new server of a webhook, definition or quota, or the service account of a new namespace."""
    return isinstance(exc, MissingKind) or exc.cause in _PASSING

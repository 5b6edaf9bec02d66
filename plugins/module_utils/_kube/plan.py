# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the desired objects with the live ones, and decide what to do about each. Only reads."""

from __future__ import annotations

import dataclasses
import functools
import typing as t

from .._core.errors import Conflict, Forbidden, MusterError, NotFound, Overtaken, Terminating
from .._core.pool import PARALLEL, OnProgress, raise_all, run_all, run_all_or_raise
from . import fields, redact, validate
from .cluster import Cluster
from .objects import (
    ANNOTATION_APPLIED,
    ANNOTATION_NOT_KEPT,
    BOOKKEEPING,
    FIELD_MANAGER,
    LABEL_MANAGED_BY,
    NAMESPACE,
    SECRET,
    SERVICE_ACCOUNT,
    Group,
    Manifest,
    Ref,
    annotations_of,
    former_owner,
    grouped,
    is_made_for,
    labels_of,
    manager_of,
    name_and_home,
    owner_on,
    owner_selector,
    owner_text,
    ref_of,
)
from .order import kinds_of_definitions
from .prepare import flatten, prepare, with_annotation
from .report import Report
from .served import Promised, namespaced_kinds, namespaces_among, objects_among

Verdict = t.Literal["create", "update", "unchanged"]

_WORTH_A_LIST = 5
"""The number of objects of a kind in a namespace from which on one list is cheaper than a request for each."""
_LONGEST_LIST = 2000

_SERVER_SIDE = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
_OF_ACCOUNT = "kubernetes.io/service-account-token"
_ACCOUNT = "kubernetes.io/service-account.name"
_OF_EVERY_NAMESPACE = "default"
"""Kubernetes creates this account with a namespace."""
_NAMED = 5
"""Number of differing fields that a message names."""
CHANGED = "changed: "
"""The prefix of a path whose value admission changed, in the record of fields that were not kept."""


@dataclasses.dataclass(frozen=True)
class PlannedObject:
    """The planned action for one object.

    ``deferred``: the server cannot be asked yet, because this run creates its namespace or kind. ``takes``: field managers whose fields
    become ours with the object. ``ours`` is False if an existing object is used as it is, or shared with its owner.
    ``overwrites``: fields, as conflicts name them, that are taken from their managers. ``pinned``: the desired object was made of LIVE,
    or because there is none, so that it must not be written where another run has written in the meantime.
    """

    ref: Ref
    desired: Manifest
    live: Manifest | None
    verdict: Verdict
    reason: str = ""
    deferred: bool = False
    takes: tuple[str, ...] = ()
    ours: bool = True
    overwrites: frozenset[str] = frozenset()
    pinned: bool = False

    def may_overwrite(self, fields: t.Iterable[str]) -> bool:
        """Whether a conflict is about nothing but fields that are to be taken, or that only Muster writes."""
        conflicting = set(fields)
        return bool(conflicting) and conflicting <= self.overwrites | BOOKKEEPING


@dataclasses.dataclass(frozen=True)
class ApplyOptions:
    """The options of one call of the engine, which describes them (``engine.apply_objects``)."""

    owner: str
    namespace: str
    check: bool
    force_conflicts: bool = False
    parallel: int = PARALLEL
    adopt: bool = False
    overwrite: t.Mapping[Ref, t.Collection[str]] | None = None
    promised: Promised | None = None
    """Objects that check mode counts as existing, of which there are none otherwise; None for our own objects in check mode, for which
    roles may create kinds, namespaces and accounts.
    """
    references: Promised | None = None
    """Objects that check mode counts as existing, of those that pods name (references.py); None where these are not checked."""
    made_of: t.Mapping[Ref, str | None] = dataclasses.field(default_factory=dict)
    recreate: bool = False
    prune: bool = False
    delete_data: bool = False
    namespaces: t.Collection[str] | None = None
    on_progress: OnProgress | None = None

    @functools.cached_property
    def manager(self) -> str:
        return manager_of(self.owner)

    @property
    def selector(self) -> str:
        return owner_selector(self.owner)


def make_plan(cluster: Cluster, objects: t.Iterable[t.Any], options: ApplyOptions) -> list[PlannedObject]:
    """A step for every object, or one error with all problems."""
    flat = flatten(objects)
    validate.check_objects(flat)
    scopes = namespaced_kinds(cluster, flat, options.promised, check=options.check, parallel=options.parallel)
    desired = [
        prepare(manifest, owner=options.owner, namespace=options.namespace,
                namespaced=scopes.get((manifest["apiVersion"], manifest["kind"]), "namespace" in manifest["metadata"]))
        for manifest in flat
    ]  # fmt: skip
    validate.refuse(validate.duplicates(desired), "apply")  # again: a default namespace can make two objects one
    known = {ref_of(manifest): None for manifest in desired}
    served = [ref for ref in known if cluster.resource(ref.api_version, ref.kind)]
    live = _read(cluster, served, options)
    namespaces = _Namespaces(cluster, desired, live, options)
    missing = [ref for ref in served if ref not in live and ref.namespace not in namespaces.missing]
    live.update(_read_of_others(cluster, missing, options))
    unserved = known.keys() - set(served)
    steps, failures = run_all(lambda manifest: _step(manifest, live, namespaces, unserved, options), desired, parallel=1)
    raise_overtaken(failures)
    raise_all([*failures, *_lost_tokens(cluster, steps, namespaces, options)])
    kept = [step for step in steps if step.verdict == "unchanged" and step.ours]
    changed = [step for step in kept if CHANGED in annotations_of(step.live or {}).get(ANNOTATION_NOT_KEPT, "")]
    again = {
        step.ref: step for step in run_all_or_raise(lambda step: _asked_again(cluster, step, options), changed, parallel=options.parallel)
    }
    steps = [again.get(step.ref, step) for step in steps]
    as_they_are = [step for step in steps if step.live and step.verdict == "unchanged" and not step.ours and not owner_on(step.live)]
    doubtful = [step for step in as_they_are if any(fields.differing_paths(step.live or {}, _asked_for(step.desired), empty=True))]
    run_all_or_raise(lambda step: _check_empty_values(cluster, step, options), doubtful, parallel=options.parallel)
    for promised in (options.promised, options.references):
        if options.check and promised is not None:
            promised.add(desired)
    # Only the new definition can judge an object whose definition this run changes.
    changing = kinds_of_definitions(step.desired for step in steps if step.verdict != "unchanged")
    return [dataclasses.replace(step, deferred=True) if (step.ref.api_version, step.ref.kind) in changing else step for step in steps]


def _lost_tokens(cluster: Cluster, steps: list[PlannedObject], namespaces: _Namespaces, options: ApplyOptions) -> list[NotFound]:
    """An error for each Secret to create that Kubernetes would delete at once, because the account whose token it is to hold is missing.

    The API server takes such a Secret without a word, also in a dry run: a controller deletes it
    (pkg/controller/serviceaccount/tokens_controller.go). A namespace that other tasks are yet to create may get more accounts with it.
    """
    if options.promised is None:
        return []
    coming = objects_among(step.desired for step in steps) | options.promised.objects
    asked: dict[Ref, Ref] = {}
    for step in steps:
        ref, name = step.ref, annotations_of(step.desired).get(_ACCOUNT)
        of_token = step.verdict == "create" and ref.group_kind == SECRET and step.desired.get("type") == _OF_ACCOUNT
        if (
            of_token
            and name
            and name != _OF_EVERY_NAMESPACE
            and ref.namespace not in namespaces.to_come
            and Ref("v1", SERVICE_ACCOUNT[1], name, ref.namespace).key not in coming
        ):
            asked[ref] = Ref("v1", SERVICE_ACCOUNT[1], name, ref.namespace)
    accounts = list(dict.fromkeys(asked.values()))
    found, failures = run_all(lambda account: (account, cluster.get(account)), accounts, parallel=options.parallel)
    # Users who may not read accounts may still create such a Secret.
    raise_all([exc for exc in failures if not isinstance(exc, Forbidden)])
    missing = {account for account, live in found if live is None}
    until = " In check mode, accounts that earlier tasks of muster.ml.apply would have created count." if options.check else ""
    return [
        NotFound(
            f"{secret} is to hold the token of {account}, which does not exist, so Kubernetes would delete it at once.", ref=secret,
            hint=f"Create the ServiceAccount first, or put it into the same list of objects.{until} Nothing was changed.",
        )
        for secret, account in asked.items()
        if account in missing
    ]  # fmt: skip


def _asked_again(cluster: Cluster, step: PlannedObject, options: ApplyOptions) -> PlannedObject:
    """The step of an object that admission changed when it was written, to be done if it would not any more: a dry run tells."""
    live: Manifest = step.live or {}
    record = annotations_of(live)[ANNOTATION_NOT_KEPT]
    try:
        stored = cluster.apply(with_annotation(step.desired, ANNOTATION_NOT_KEPT, record), dry_run=True, manager=options.manager)
    except MusterError:  # it is as it was left, and the next change will tell why
        return step
    if without_bookkeeping(stored) == without_bookkeeping(live):
        return step
    return dataclasses.replace(step, verdict="update", reason="admission does not change it any more as it did")


def _check_empty_values(cluster: Cluster, step: PlannedObject, options: ApplyOptions) -> None:
    """Raise if an object that is used as it is lacks an empty value that is one to the server, which a dry run tells."""
    live, asked = step.live or {}, _asked_for(step.desired)
    try:
        same = without_bookkeeping(cluster.apply(asked, dry_run=True, force_conflicts=True, manager=options.manager))
    except MusterError:  # what cannot be asked for is not known to be there
        same = {}
    if same != without_bookkeeping(live):
        raise _differs(step.ref, live, list(fields.differing_paths(live, asked, empty=True)))


def without_bookkeeping(manifest: Manifest) -> Manifest:
    """The object without its status and the server's own metadata."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in _SERVER_SIDE}
    return {**{key: value for key, value in manifest.items() if key != "status"}, "metadata": metadata}


def _read_of_others(cluster: Cluster, refs: list[Ref], options: ApplyOptions) -> dict[Ref, Manifest]:
    """Read the objects of these that exist without our label.

    Most do not exist, so their names are listed if that costs less than asking for each. The list is bounded: a namespace with
    thousands of other objects of the kind must not cost more than it saves.
    """
    groups = grouped(refs)
    many = [group for group, members in groups.items() if len(members) >= _WORTH_A_LIST]
    absent: set[Ref] = set()
    for group, there in zip(many, run_all_or_raise(lambda group: _names(cluster, group), many, parallel=options.parallel), strict=True):
        absent.update(ref for ref in groups[group] if there is not None and ref.name not in there)
    asked = [ref for ref in refs if ref not in absent]
    found = zip(asked, run_all_or_raise(cluster.get, asked, parallel=options.parallel), strict=True)
    return {ref: item for ref, item in found if item is not None}


def _names(cluster: Cluster, group: Group) -> set[str] | None:
    """The names of all objects of a kind in a namespace; None if there are too many, or they cannot be listed."""
    try:
        listing = cluster.list_metadata(*group, limit=_LONGEST_LIST)
    except (Forbidden, NotFound):
        return None
    return None if listing.partial else {item["metadata"]["name"] for item in listing}


def _read(cluster: Cluster, refs: list[Ref], options: ApplyOptions) -> dict[Ref, Manifest | None]:
    """Read the objects of these that are ours, from one list per kind and namespace. A few are read by name, None if missing."""
    groups = grouped(refs)
    many = [group for group, members in groups.items() if len(members) >= _WORTH_A_LIST]
    few = [ref for members in groups.values() if len(members) < _WORTH_A_LIST for ref in members]

    def ask(what: Group | Ref) -> dict[Ref, Manifest | None]:
        if isinstance(what, Ref):
            return {what: cluster.get(what)}
        try:
            return {ref_of(item): item for item in cluster.list(*what, options.selector)}
        except Forbidden:  # some may only read what they name
            return dict(zip(groups[what], run_all_or_raise(cluster.get, groups[what], parallel=options.parallel), strict=True))

    desired = set(refs)
    asked: list[Group | Ref] = [*many, *few]
    answers = run_all_or_raise(ask, asked, parallel=options.parallel)
    return {ref: item for answer in answers for ref, item in answer.items() if ref in desired}


class _Namespaces:
    """The namespaces that are missing, or on their way out. Only those in which an object was not found are read, so a rerun reads none.

    ``missing``: none of that name exists, and a user who may not read one counts it as there; ``to_come``: nor is it among the objects, so
    that others may put something into it first; ``unexpected``: nor will any other task have created it.
    """

    def __init__(self, cluster: Cluster, desired: list[Manifest], live: dict[Ref, Manifest | None], options: ApplyOptions) -> None:
        refs = [ref_of(manifest) for manifest in desired]
        names = sorted({ref.namespace for ref in refs if ref.namespace and live.get(ref) is None})
        asked = [Ref("v1", "Namespace", name) for name in names]
        found, forbidden = run_all(lambda ref: (ref.name, cluster.get(ref)), asked, parallel=options.parallel)
        # Users of a namespace may lack the right to read it; the server then reports if it is missing.
        raise_all([exc for exc in forbidden if not isinstance(exc, Forbidden)])
        self.missing = {name for name, item in found if item is None}
        self.terminating = {name for name, item in found if item and item["metadata"].get("deletionTimestamp")}
        self.to_come = self.missing - namespaces_among(desired)
        self.unexpected = set[str]() if options.promised is None else self.to_come - options.promised.namespaces


def _step(
    desired: Manifest, live: dict[Ref, Manifest | None], namespaces: _Namespaces, unserved: set[Ref], options: ApplyOptions
) -> PlannedObject:
    ref = ref_of(desired)
    found = live.get(ref)
    pinned, overwrites = ref in options.made_of, frozenset((options.overwrite or {}).get(ref, ()))
    if pinned and (found or {}).get("metadata", {}).get("resourceVersion") != options.made_of[ref]:
        raise overtaken(ref, options.made_of[ref])
    if ref.namespace in namespaces.terminating:
        raise Terminating(f"Namespace {ref.namespace} is being deleted, so nothing can be created in it.",
                          hint="Wait until it is gone, then run again. Nothing was changed.")  # fmt: skip
    if found is None:
        if ref.namespace in namespaces.unexpected:
            until = " In check mode, namespaces that earlier tasks would have applied count, and expected_namespaces."
            raise NotFound(
                f"Namespace {ref.namespace} does not exist.",
                hint=f"Create it first, or put it into the same list of objects.{until if options.check else ''} Nothing was changed.",
            )
        deferred = ref.namespace in namespaces.missing or ref in unserved
        return PlannedObject(ref, desired, None, "create", deferred=deferred, pinned=pinned, overwrites=overwrites)
    if found["metadata"].get("deletionTimestamp"):
        raise Terminating(f"{ref} is being deleted.", ref=ref,
                          hint=f"{_held_by(found)}Wait until it is gone, then run again. Nothing was changed.")  # fmt: skip
    step = plan_update(desired, found, options)
    return dataclasses.replace(step, pinned=pinned, overwrites=overwrites) if pinned or overwrites else step


def overtaken(ref: Ref, version: str | None) -> Overtaken:
    """The error where another run has written an object since it was read at VERSION (None: it was not there)."""
    return Overtaken(
        f"{ref} was {'made' if version is None else 'changed'} by another run at the same moment.", ref=ref,
        hint="Run again: what is there is used.",
    )  # fmt: skip


def raise_overtaken(failures: t.Iterable[MusterError], done: Report | None = None) -> None:
    """Raise the first failure that says that another run was faster: what else failed is tried again after the next reading."""
    for failure in failures:
        if isinstance(failure, Overtaken):
            failure.done = done
            raise failure


def _held_by(live: Manifest) -> str:
    finalizers = live["metadata"].get("finalizers") or (live.get("spec") or {}).get("finalizers")
    return f"It waits for its finalizers {', '.join(finalizers)}. " if finalizers else ""


def plan_update(desired: Manifest, live: Manifest, options: ApplyOptions) -> PlannedObject:
    """Compare a live object with the desired one. fields.py says why this need not compare values."""
    ref, desired = ref_of(desired), _with_label_of_maker(desired, live, options)
    owner, former = owner_on(live), former_owner(options.owner)
    if owner and owner != options.owner:
        if ref.group_kind == NAMESPACE and owner != former:
            return _plan_shared_namespace(desired, live, owner_text(owner), options)
        if not (options.force_conflicts or owner == former):
            raise Conflict(f"{ref} belongs to {owner_text(owner)}, not to {owner_text(options.owner)}.", ref=ref, managers=[owner],
                           hint=_ways_to_have(owner, options.owner))  # fmt: skip
        return PlannedObject(
            ref, desired, live, "update", f"taken over from {owner_text(owner)}", takes=_former_managers(live, options, manager_of(owner))
        )
    if not owner and not any(is_made_for(live, one) for one in (options.owner, former) if one):
        return _adopted(desired, live, options)
    # An object of ours that another client made again, such as a backup's, keeps what that client set otherwise.
    again = not fields.owned_fields(live, options.manager) and is_made_for(live, options.owner)
    takes = _former_managers(live, options, *(fields.makers(live) if again else ()))
    if takes or annotations_of(live).get(ANNOTATION_APPLIED) != annotations_of(desired)[ANNOTATION_APPLIED]:
        return PlannedObject(ref, desired, live, "update", "the definition changed", takes=takes)
    not_kept = annotations_of(live).get(ANNOTATION_NOT_KEPT)
    lost = [path for path in fields.unowned_paths(desired, live, options.manager) if path not in (not_kept or "").split("\n")]
    if lost:
        desired = with_annotation(desired, ANNOTATION_NOT_KEPT, not_kept) if not_kept else desired
        return PlannedObject(ref, desired, live, "update", _drift(live, lost, options))
    if not redact.same_secrets(desired, live):
        return PlannedObject(ref, desired, live, "update", "secret values changed")
    return PlannedObject(ref, desired, live, "unchanged")


def _with_label_of_maker(desired: Manifest, live: Manifest, options: ApplyOptions) -> Manifest:
    """The desired object without our default for ``app.kubernetes.io/managed-by`` if another manager has set that label."""
    labels = labels_of(desired)
    ours = labels.get(LABEL_MANAGED_BY) == FIELD_MANAGER
    if not ours or labels_of(live).get(LABEL_MANAGED_BY, FIELD_MANAGER) == FIELD_MANAGER:
        return desired
    if LABEL_MANAGED_BY in fields.owned_keys(live, options.manager, "metadata", "labels"):  # it was said in our manifest
        return desired
    rest = {key: value for key, value in labels.items() if key != LABEL_MANAGED_BY}
    return {**desired, "metadata": {**desired["metadata"], "labels": rest}}


def _ways_to_have(theirs: str, ours: str) -> str:
    """Decide what to do about an object of another owner."""
    (name, home), (our_name, our_home) = name_and_home(theirs), name_and_home(ours)
    same = f"If these are the same objects as before, set namespace: {home}. " if (name, bool(home)) == (our_name, bool(our_home)) else ""
    return f"{same}Give the object another name, or take it over with force_conflicts."


def _former_managers(live: Manifest, options: ApplyOptions, *more: str) -> tuple[str, ...]:
    """Managers under which this owner's fields, or those that it takes over, were applied before."""
    there, former = fields.managers(live), former_owner(options.owner)
    names = dict.fromkeys((FIELD_MANAGER, *([manager_of(former)] if former else []), *more))
    return tuple(manager for manager in names if manager in there and manager != options.manager)


def _adopted(desired: Manifest, live: Manifest, options: ApplyOptions) -> PlannedObject:
    """Use an object without our label as it is if it has all desired fields; take it over only with ``adopt``."""
    ref = ref_of(desired)
    if options.adopt:
        takes = _former_managers(live, options, *fields.makers(live))
        kept = fields.kept_by_others(live, {*takes, options.manager})
        more = f" and {len(kept) - _NAMED} more" if len(kept) > _NAMED else ""
        return PlannedObject(ref, desired, live, "update", "; ".join(["existed already", "adopted", *kept[:_NAMED]]) + more, takes=takes)
    differ = list(fields.differing_paths(live, _asked_for(desired)))
    if not differ:
        return PlannedObject(ref, desired, live, "unchanged", "existed already with all desired fields; it keeps its owner", ours=False)
    raise _differs(ref, live, differ)


def _differs(ref: Ref, live: Manifest, differ: list[str]) -> Conflict:
    more = f" and {len(differ) - _NAMED} more fields" if len(differ) > _NAMED else ""
    return Conflict(
        f"{ref} exists already, was not made by Muster, and differs in {', '.join(differ[:_NAMED])}{more}.",
        ref=ref, fields=differ, managers=sorted(fields.managers(live)),
        hint="Give the object another name, or set adopt: true (in playbooks muster_adopt): "
        "it is then changed, and deleted with its owner.",
    )  # fmt: skip


def _asked_for(desired: Manifest) -> Manifest:
    """The desired fields without our own labels and annotations, which an object without our label cannot have."""
    metadata = {key: value for key, value in desired["metadata"].items() if key not in ("labels", "annotations")}
    for part in ("labels", "annotations"):
        given = (desired["metadata"].get(part) or {}).items()
        asked = {key: value for key, value in given if f"metadata.{part}.{key}" not in BOOKKEEPING
                 and (key, value) != (LABEL_MANAGED_BY, FIELD_MANAGER)}  # fmt: skip
        if asked:
            metadata[part] = asked
    return {**desired, "metadata": metadata}


def _plan_shared_namespace(desired: Manifest, live: Manifest, owner: str, options: ApplyOptions) -> PlannedObject:
    """A namespace has one owner; another owner has labels and annotations on it under its own field manager."""
    ref, asked = ref_of(desired), _asked_for(desired)
    lost = fields.unowned_paths(asked, live, options.manager)
    surplus = [
        f"metadata.{part}.{key}"
        for part in ("labels", "annotations")
        for key in fields.owned_keys(live, options.manager, "metadata", part) - set(asked["metadata"].get(part) or {})
    ]
    # On another owner's namespace we have no record of former values to compare with.
    changed = [path for path in fields.differing_paths(live, asked) if not path.startswith(tuple(lost))]
    if not lost and not surplus and not changed:
        return PlannedObject(ref, asked, live, "unchanged", f"belongs to {owner}", ours=False)
    changes = [*(f"{path} added" for path in lost), *(f"{path} changed" for path in changed)]
    changes += [f"{path} removed" for path in surplus]
    return PlannedObject(ref, asked, live, "update", f"{', '.join(changes)}; belongs to {owner}", ours=False)


def _drift(live: Manifest, lost: list[str], options: ApplyOptions) -> str:
    changes = []
    for path in lost[:3]:
        manager = fields.other_manager(live, path.removeprefix(fields.ORDER), options.manager)
        what = "changed" if manager or path.startswith(fields.ORDER) else "removed"
        changes.append(f"{path} was {what}" + (f" by {manager}" if manager else ""))
    more = f" and {len(lost) - 3} more fields" if len(lost) > 3 else ""
    return ", ".join(changes) + more

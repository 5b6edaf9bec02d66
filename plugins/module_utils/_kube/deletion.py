# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts about objects that are to be deleted. ``_core.deletion`` decides whether they may be."""

from __future__ import annotations

import dataclasses
import functools
import typing as t

from .._core.deletion import Candidate
from .._core.errors import MusterError
from .cluster import Cluster
from .fields import owned_fields
from .kinds import Kinds
from .managed import namespace_contents
from .objects import (
    ANNOTATION_GENERATED,
    DEFINITION,
    FIELD_MANAGER,
    LABEL_OWNER,
    NAMESPACE,
    SECRET,
    Manifest,
    Ref,
    annotations_of,
    former_owner,
    is_made_for,
    is_of,
    labels_of,
    manager_of,
    owner_on,
    owner_text,
    ref_of,
)
from .order import DATA_KINDS
from .users import Use

_NAMED = 3
"""Number of objects in a namespace that a message names."""


@dataclasses.dataclass(frozen=True)
class Ownership:
    """The rule by which objects belong to an owner: those with LABEL and this value.

    ``applied``: we applied it ourselves, so the object's own record must say so. Otherwise a controller made it for an object of ours and
    copied the label (pods, claims of a StatefulSet). ``others`` and ``unowned`` include objects of other owners, or of none, that are named
    one by one. ``namespaces``: where objects may be deleted that are found by their label alone; None: everywhere.
    """

    value: str
    label: str = LABEL_OWNER
    applied: bool = True
    others: bool = False
    unowned: bool = False
    namespaces: frozenset[str] | None = None

    def _on(self, item: Manifest) -> str:
        return owner_on(item) if self.label == LABEL_OWNER else labels_of(item).get(self.label, "")

    @property
    def _former(self) -> str:
        return former_owner(self.value) if self.label == LABEL_OWNER else ""

    def _has(self, value: str) -> bool:
        return bool(value) and value in (self.value, self._former)

    def matches(self, item: Manifest) -> bool:
        value = self._on(item)
        return self._has(value) or (self.others if value else self.unowned)

    def has_record(self, item: Manifest) -> bool:
        value = self._on(item)
        if not self.applied or not self._has(value):
            return True  # made by a controller, or named one by one
        return is_made_for(item, value) and was_applied(item, value)

    def beyond(self, found: t.Mapping[Ref, Manifest]) -> dict[Ref, str]:
        """Return the objects found by their label alone that this run must not delete, each with the reason.

        Another run may use the same owner for other namespaces. Cluster-wide objects may then be that run's.
        """
        if self.namespaces is None:
            return {}
        why = {
            ref: f"is in namespace {space}, and {not_named(space)}"
            for ref in found
            if (space := _namespace(ref)) and space not in self.namespaces
        }
        elsewhere = ", ".join(sorted({str(_namespace(ref)) for ref in why}))
        for ref in found:
            if not _namespace(ref) and self._former and self._on(found[ref]) == self._former:
                why[ref] = f"was made when owners had no namespace, so it may be of another {self._former}"
            elif not _namespace(ref) and elsewhere:
                why[ref] = f"may belong to what {owner_text(self.value)} has in namespace {elsewhere}"
        return why


def not_named(namespace: str) -> str:
    """A clause about what is in a namespace that the task does not name."""
    return f"this task does not name {namespace}; namespaces: [{namespace}] includes it"


def _namespace(ref: Ref) -> str | None:
    """The namespace that an object is in, or is."""
    return ref.name if (ref.group, ref.kind) == ("", "Namespace") else ref.namespace


def was_applied(item: Manifest, owner: str) -> bool:
    """Whether the owner applied the object. Controllers copy labels and annotations, but not who applied them."""
    return bool(owned_fields(item, manager_of(owner)) or owned_fields(item, FIELD_MANAGER))


def holds_data(ref: Ref, live: Manifest) -> bool:
    """Whether deleting the object loses something that cannot be created again."""
    generated = ref.group_kind == SECRET and ANNOTATION_GENERATED in annotations_of(live)
    return generated or ref.group_kind in DATA_KINDS


@dataclasses.dataclass(kw_only=True)
class DeletionFacts:
    """Reads the facts about each object before it is deleted.

    ``desired``: uids of objects that stay in any case. ``beyond``: objects that this run does not reach, each with the reason why.
    ``used``: objects that others use. ``leaving``: owners whose objects go as well.
    """

    cluster: Cluster
    ownership: Ownership
    desired: t.Container[str]
    delete_data: bool
    beyond: t.Mapping[Ref, str] = dataclasses.field(default_factory=dict)
    used: t.Mapping[Ref, Use] = dataclasses.field(default_factory=dict)
    leaving: t.Collection[str] = ()
    _going: set[str | None] = dataclasses.field(default_factory=set)

    def note_deleted(self, item: Manifest) -> None:
        """Note that an object is deleted, so that it does not keep its namespace or definition from deletion."""
        self._going.add(item["metadata"].get("uid"))

    @functools.cached_property
    def _kinds(self) -> Kinds:
        return self.cluster.kinds()

    def candidate(self, ref: Ref, item: Manifest) -> Candidate:
        """The facts about an object as it is now, for the rules of deletion."""
        use = self.used.get(ref, Use())
        known = Candidate(
            str(ref),
            marked=self.ownership.matches(item),
            other=owner_text(owner_on(item)),
            recorded=self.ownership.has_record(item),
            needed="is desired under another name" if item["metadata"].get("uid") in self.desired else use.needed,
            unknown=use.unknown,
            beyond=self.beyond.get(ref, ""),
            data="holds data" if holds_data(ref, item) else "",
        )
        stays_anyway = known.beyond or (known.data and not self.delete_data)
        if stays_anyway or not known.marked or not known.recorded or known.needed or known.unknown:
            return known
        if ref.group_kind == NAMESPACE:
            return self._with_contents(known, ref)
        return self._with_instances(known, ref) if ref.group_kind == DEFINITION else known

    def _with_contents(self, known: Candidate, ref: Ref) -> Candidate:
        """Add the objects in the namespace that forbid its deletion."""
        found, unseen = namespace_contents(self.cluster, ref.name)
        others = [item for item in found if not self._goes(item)]
        named = ", ".join(f"{item['kind']} {item['metadata']['name']}" for item in others[:_NAMED])
        more = f" and {len(others) - _NAMED} more objects" if len(others) > _NAMED else ""
        return dataclasses.replace(
            known,
            needed=f"{named}{more} in it would be deleted with it" if others else "",
            unknown=f"in it may be {'; '.join(unseen)}" if unseen else "",
        )

    def _goes(self, item: Manifest) -> bool:
        return item["metadata"].get("uid") in self._going or is_of(item, self.leaving)

    def _with_instances(self, known: Candidate, ref: Ref) -> Candidate:
        """Deleting a definition deletes all objects of its kind."""
        kinds = self._kinds.of_definition(ref.name)
        if not kinds:
            return dataclasses.replace(known, unknown="its kind is not served now, so it is unknown whether objects of it exist")
        found: dict[str, Manifest] = {}
        for api_version, kind in kinds:
            try:
                items = self.cluster.list_metadata(api_version, kind)
            except MusterError as exc:
                return dataclasses.replace(known, unknown=f"whether objects of its kind exist: {exc.message.rstrip('.')}")
            found.update({str(ref_of(item)): item for item in items if not self._goes(item)})
        if not found:
            return known
        first, more = next(iter(found)), f" and {len(found) - 1} more objects" if len(found) > 1 else ""
        return dataclasses.replace(known, needed=f"{first}{more} of its kind would be deleted with it")

# SPDX-License-Identifier: GPL-3.0-or-later
"""Find everything that belongs to an owner, whatever its kind."""

from __future__ import annotations

import functools
import typing as t

from .._core.errors import Forbidden, NotFound, ServerError, Unreachable
from .._core.pool import run_all_or_raise
from .cluster import Cluster
from .deletion import was_applied
from .kinds import NEVER_OURS, REPORTS
from .managed import served_kinds
from .objects import NAMESPACE, Manifest, ServedKind, former_owner, group_kind, group_of, is_made_for, owner_on, owner_selector, ref_of
from .order import BUILT_IN_GROUPS

_UNLISTED = 10.0
"""Seconds to list the kinds of an aggregated API: its server may be down for long, and the rest must not wait for it."""


def owned_objects(
    cluster: Cluster,
    owner: str,
    *,
    namespaces: t.Collection[str] = (),
    new: t.Container[str] = (),
    parallel: int,
) -> tuple[list[Manifest], list[str], list[str]]:
    """Metadata of the objects with the owner's labels, each once; warnings about what could not be listed; other owners of that name.

    ``new``: API versions whose APIService the caller has just created; their server may not answer yet, and they are left out in silence.
    Controllers copy labels (those of a Service to its EndpointSlices): what has an owner reference and was not applied is left out.
    """
    kinds, missing = served_kinds(cluster, new=new)
    many = [found for found in kinds if (group_of(found[0]), found[1]) in NEVER_OURS - REPORTS and found[2].namespaced]
    look = functools.partial(_listed, cluster, owner=owner, namespaces=namespaces)
    few = [found for found in kinds if (group_of(found[0]), found[1]) not in NEVER_OURS]
    listings = run_all_or_raise(look, few, parallel=parallel)
    unseen = [f"Objects of {name} are left out: {why}." for name, why in missing]
    warnings = [*unseen, *dict.fromkeys(text for _items, texts in listings for text in texts)]
    objects: dict[str, Manifest] = {}
    others: set[str] = set()
    for items, _texts in listings:
        for item in items:
            labelled = owner_on(item)
            if labelled not in (owner, former_owner(owner)):
                others.add(labelled)
                continue
            if was_applied(item, labelled) or not item["metadata"].get("ownerReferences"):
                # An API may show the same object as another kind (OpenShift's Project is a Namespace): the uid is the same.
                key = item["metadata"].get("uid") or str(ref_of(item).identity)
                if key not in objects or is_made_for(item, labelled):
                    objects[key] = item
    found = list(objects.values())
    spaces = [item["metadata"]["name"] for item in found if group_kind(item) == NAMESPACE]
    return [*found, *_beside_controllers(cluster, many, spaces, owner, parallel)], warnings, sorted(others)


def _beside_controllers(
    cluster: Cluster, kinds: t.Sequence[tuple[str, str, ServedKind]], namespaces: t.Sequence[str], owner: str, parallel: int
) -> list[Manifest]:
    """The owner's objects of kinds that are searched only in its own namespaces, whose deletion such an object would block."""

    def look(where: tuple[tuple[str, str, ServedKind], str]) -> list[Manifest]:
        (api_version, kind, _resource), namespace = where
        try:
            found = cluster.list_metadata(api_version, kind, namespace, owner_selector(owner))
        except (Forbidden, NotFound):  # it keeps the namespace, which names it
            return []
        ours = (owner, former_owner(owner))
        return [item for item in found if owner_on(item) in ours and was_applied(item, owner_on(item))]

    places = [(kind, namespace) for kind in kinds for namespace in namespaces]
    return [item for items in run_all_or_raise(look, places, parallel=parallel) for item in items]


def _listed(
    cluster: Cluster, found: tuple[str, str, ServedKind], *, owner: str, namespaces: t.Collection[str]
) -> tuple[list[Manifest], list[str]]:
    api_version, kind, resource = found
    selector = owner_selector(owner)
    built_in = group_of(api_version) in BUILT_IN_GROUPS
    try:
        asked = cluster if built_in else cluster.within(_UNLISTED)
        return asked.list_metadata(api_version, kind, None, selector), []
    except Forbidden as exc:
        if not resource.namespaced:
            return [], [f"Objects of kind {kind} are left out: {exc.message}"]
    except (NotFound, ServerError, Unreachable) as exc:
        if built_in:
            raise
        return [], [f"Objects of kind {kind} are left out: {exc.message}"]
    items: list[Manifest] = []
    warnings = [f"Only namespaces {', '.join(sorted(namespaces))} were searched: the user may not list objects of all namespaces."]
    for namespace in namespaces:
        try:
            items += cluster.list_metadata(api_version, kind, namespace, selector)
        except Forbidden as exc:
            warnings.append(f"Objects of kind {kind} in namespace {namespace} are left out: {exc.message}")
    return items, warnings

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find everything that belongs to an owner, whatever its kind.

Private to the collection.
"""

from __future__ import annotations

import typing as t

from .cluster import Cluster
from .errors import Forbidden
from .fields import owned_fields
from .kinds import NEVER_OURS
from .objects import LABEL_OWNER, Manifest, Ref, Resource, ref_of
from .pool import do_all


def owned_objects(
    cluster: Cluster, owner: str, *, namespaces: t.Collection[str] = (), parallel: int
) -> tuple[list[Manifest], list[str]]:
    """Metadata of the owner's objects, and warnings about what could not be listed.

    Controllers copy labels (a Service's go to its EndpointSlices), so only what we applied ourselves counts.
    """
    served = [found for found in cluster.kinds() if found[1] not in NEVER_OURS]
    listings = do_all(lambda found: _listed(cluster, found, owner, namespaces), served, parallel=parallel)
    objects: dict[tuple[str, str, str, str], Manifest] = {}
    warnings: list[str] = []
    for items, warning in listings:
        objects.update({ref_of(item).identity: item for item in items if owned_fields(item)})
        warnings += warning
    return list(objects.values()), warnings


def _listed(
    cluster: Cluster, found: tuple[str, str, Resource], owner: str, namespaces: t.Collection[str]
) -> tuple[list[Manifest], list[str]]:
    api_version, kind, resource = found
    selector = f"{LABEL_OWNER}={owner}"
    try:
        return cluster.list_metadata(api_version, kind, None, selector), []
    except Forbidden as exc:
        if not resource.namespaced:
            return [], [f"Objects of kind {kind} are left out: {exc.message}"]
    items: list[Manifest] = []
    warnings = []
    for namespace in namespaces:  # a user with rights in some namespaces only
        try:
            items += cluster.list_metadata(api_version, kind, namespace, selector)
        except Forbidden as exc:
            warnings.append(f"Objects of kind {kind} in namespace {namespace} are left out: {exc.message}")
    return items, warnings


def named(what: t.Iterable[Manifest | Ref]) -> list[Ref]:
    """References of objects that are given as manifests or as references."""
    return [item if isinstance(item, Ref) else ref_of(item) for item in what]

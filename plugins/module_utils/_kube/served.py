# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the cluster serves the kinds of given objects, and the error where it does not."""

from __future__ import annotations

import dataclasses
import typing as t

from .._core.errors import InvalidInput, MissingKind, MusterError
from .._core.pool import PARALLEL, run_all_or_raise
from .cluster import Cluster
from .kinds import Kinds, misspelt, nearest
from .objects import CLAIM, CONFIG_MAP, NAMESPACE, SECRET, SERVICE_ACCOUNT, Manifest, ServedKind, group_kind
from .order import kinds_of_definitions

_Pair = tuple[str, str]
_NAMED_BY_PODS = {
    CLAIM, CONFIG_MAP, SECRET, SERVICE_ACCOUNT,
    ("storage.k8s.io", "StorageClass"), ("scheduling.k8s.io", "PriorityClass"), ("node.k8s.io", "RuntimeClass"),
}  # fmt: skip


@dataclasses.dataclass
class Promised:
    """Objects that a run in check mode would have created, on which later objects depend.

    ``kinds``: (apiVersion, kind), and whether it is namespaced (None: unknown). ``namespaces``: their names. ``objects``: those that pods
    name, by kind, namespace (empty if it has none) and name.
    """

    kinds: dict[_Pair, bool | None] = dataclasses.field(default_factory=dict)
    namespaces: set[str] = dataclasses.field(default_factory=set)
    objects: set[tuple[str, str, str]] = dataclasses.field(default_factory=set)

    def add(self, objects: t.Sequence[Manifest]) -> None:
        """Add what these objects bring."""
        self.kinds.update(kinds_of_definitions(objects))
        self.namespaces.update(namespaces_among(objects))
        self.objects.update(objects_among(objects))


def namespaces_among(objects: t.Iterable[Manifest]) -> set[str]:
    """The names of the namespaces among these objects."""
    return {item["metadata"]["name"] for item in objects if group_kind(item) == NAMESPACE}


def objects_among(objects: t.Iterable[Manifest]) -> set[tuple[str, str, str]]:
    """The objects among these that pods name, as Promised has them."""
    metadata = ((item["kind"], item["metadata"]) for item in objects if group_kind(item) in _NAMED_BY_PODS)
    return {(kind, one.get("namespace") or "", one["name"]) for kind, one in metadata}


def namespaced_kinds(
    cluster: Cluster, objects: t.Sequence[Manifest], promised: Promised | None, *, check: bool, parallel: int
) -> dict[_Pair, bool]:
    """Whether each kind is namespaced; an error if the cluster will not know a kind even after this run.

    ``promised``: None for objects of our own, whose kinds an operator's role may be about to bring where CHECK.
    """
    resources = _resources(cluster, objects, parallel)
    found = {pair: resource.namespaced for pair, resource in resources.items() if resource}
    if fixed := [f"{kind} ({api_version})" for (api_version, kind), one in resources.items() if one and not one.applied]:
        raise InvalidInput(f"{', '.join(fixed)} cannot be applied: the API server has no patch for it.",
                           hint="Such a kind is a question or a command, which stores no object. Nothing was changed.")  # fmt: skip
    known = {**(promised.kinds if promised else {}), **kinds_of_definitions(objects)}
    unknown = [pair for pair in resources if pair not in found and pair not in known]
    if unknown and not (check and promised is None):
        until = " In check mode, definitions that earlier tasks would have applied count, and expected_kinds."
        raise _missing(
            _listed(cluster), unknown,
            "Check apiVersion and kind, or install the operator or CustomResourceDefinition that defines it first."
            f"{until if check else ''} Nothing was changed.",
        )  # fmt: skip
    return {**{pair: scope for pair, scope in known.items() if scope is not None}, **found}


def refuse_misspelt_kinds(cluster: Cluster, objects: t.Sequence[Manifest], promised: Promised) -> None:
    """Refuse objects to delete that seem not to be there because their kind is misspelt.

    Where the definition of a kind is gone, with it went all objects, and there is nothing to delete.
    """
    known = {**promised.kinds, **kinds_of_definitions(objects)}
    unserved = [pair for pair, resource in _resources(cluster, objects).items() if not resource and pair not in known]
    if unserved:
        listed = _listed(cluster)
        if wrong := [pair for pair in unserved if misspelt(listed, *pair)]:
            raise _missing(listed, wrong, "Check apiVersion and kind. Nothing was changed.")


def _resources(cluster: Cluster, objects: t.Iterable[Manifest], parallel: int = PARALLEL) -> dict[_Pair, ServedKind | None]:
    pairs = list(dict.fromkeys((manifest["apiVersion"], manifest["kind"]) for manifest in objects))
    return dict(zip(pairs, run_all_or_raise(lambda pair: cluster.resource(*pair), pairs, parallel=parallel), strict=True))


def _listed(cluster: Cluster) -> Kinds:
    try:
        return cluster.kinds()
    except MusterError:  # it only helps to say more
        return Kinds()


def _missing(listed: Kinds, unknown: t.Sequence[_Pair], hint: str) -> MissingKind:
    near = {pair: nearest(listed, *pair) for pair in unknown}
    unserved = [
        f"{kind} ({api_version})" + (f", did you mean {meant}" if (meant := near[api_version, kind]) else "")
        for api_version, kind in unknown
    ]
    return MissingKind(
        f"The cluster does not serve {'; '.join(unserved)}{'?' if near[unknown[-1]] else '.'}",
        hint=hint,
        details={"missing_kinds": [{"api_version": api_version, "kind": kind} for api_version, kind in unknown]},
    )

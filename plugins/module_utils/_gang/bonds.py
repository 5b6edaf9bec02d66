# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What ties pods to other pods: affinity, anti-affinity and topology spread, as far as they are required. No I/O.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .._kube.objects import Manifest, labels_of
from .fit import Spread
from .groups import Group
from .matching import HOSTNAME, ZONE, keeping_out, may_be_on, selects
from .places import Place, is_running, node_of, tolerations

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_KNOWN_TERM = {"labelSelector", "namespaces", "namespaceSelector", "topologyKey"}
Term = Mapping[str, t.Any]


@dataclasses.dataclass
class Bonds:
    """What follows for the groups, by their position."""

    refused: dict[tuple[int, str], str] = dataclasses.field(default_factory=dict)
    """Of group and node: why the group cannot be there."""
    apart: set[tuple[int, int]] = dataclasses.field(default_factory=set)
    together: dict[int, str] = dataclasses.field(default_factory=dict)
    spreads: dict[int, Spread] = dataclasses.field(default_factory=dict)
    notes: list[str] = dataclasses.field(default_factory=list)
    """What is not judged."""

    def only(self, index: int, allowed: Iterable[str], places: Iterable[Place], why: str) -> None:
        """Refuse a group everywhere else."""
        names = set(allowed)
        for place in places:
            if place.name not in names:
                self.refused.setdefault((index, place.name), why)


def between(groups: Sequence[Group], places: Sequence[Place], pods: Sequence[Manifest]) -> Bonds:
    """What ties the groups to each other and to the pods that are there."""
    bonds = Bonds()
    there = [pod for pod in pods if is_running(pod)]
    by_name = {place.name: place for place in places}
    for index, group in enumerate(groups):
        for pod, term in _anti_terms(there):
            if matches(term, pod["metadata"].get("namespace", ""), group.namespace, group.labels):
                text = f"where pod {pod['metadata']['name']} wants no such pod beside it"
                _refuse(bonds, index, _like(by_name.get(node_of(pod)), term, places), text)
        _own_apart(bonds, index, groups, places, there)
        _own_together(bonds, index, groups, places, there)
        _own_spread(bonds, index, groups, places, there)
    hostnames = [place.labels.get(HOSTNAME) for place in places]
    if (bonds.apart or bonds.together) and (None in hostnames or len(set(hostnames)) < len(hostnames)):
        bonds.notes.append(f"nodes share the label {HOSTNAME}, or have none")
    return bonds


def matches(term: Term, namespace: str, of_pod: str, labels: Mapping[str, str]) -> bool:
    """Whether a term of a pod in NAMESPACE means a pod with LABELS in namespace OF_POD."""
    names = list(term.get("namespaces") or ())
    if term.get("namespaceSelector") is None and not names:
        names = [namespace]
    everywhere = term.get("namespaceSelector") == {}
    return (everywhere or of_pod in names) and selects(term.get("labelSelector"), labels)


def _terms(spec: Mapping[str, t.Any], kind: str) -> Sequence[Term]:
    return ((spec.get("affinity") or {}).get(kind) or {}).get(_REQUIRED) or ()


def _anti_terms(pods: Iterable[Manifest]) -> Iterator[tuple[Manifest, Term]]:
    for pod in pods:
        for term in _terms(pod["spec"], "podAntiAffinity"):
            yield pod, term


def _unknown(term: Term) -> bool:
    """Whether a term has fields whose meaning is not judged here."""
    return bool({key for key, value in term.items() if value} - _KNOWN_TERM or term.get("namespaceSelector"))


def _like(place: Place | None, term: Term, places: Iterable[Place]) -> list[str]:
    """The nodes in one domain with a node."""
    value = place.labels.get(term["topologyKey"]) if place else None
    return [one.name for one in places if value is not None and one.labels.get(term["topologyKey"]) == value]


def _refuse(bonds: Bonds, index: int, names: Iterable[str], why: str) -> None:
    for name in names:
        bonds.refused.setdefault((index, name), why)


def _existing(term: Term, group: Group, places: Sequence[Place], pods: Sequence[Manifest]) -> set[str]:
    """The nodes in one domain with a pod that a group's term means."""
    by_name = {place.name: place for place in places}
    found: set[str] = set()
    for pod in pods:
        if matches(term, group.namespace, pod["metadata"].get("namespace", ""), labels_of(pod)):
            found.update(_like(by_name.get(node_of(pod)), term, places))
    return found


def _meant(term: Term, index: int, groups: Sequence[Group]) -> list[int]:
    """The groups that a group's term means."""
    own = groups[index].namespace
    return [number for number, other in enumerate(groups) if matches(term, own, other.namespace, other.labels)]


def _own_apart(
    bonds: Bonds, index: int, groups: Sequence[Group], places: Sequence[Place], pods: Sequence[Manifest]
) -> None:
    group = groups[index]
    for term in _terms(group.spec, "podAntiAffinity"):
        if _unknown(term):
            bonds.notes.append(f"anti-affinity of group {group.name}: a selector of namespaces, or label keys")
            continue
        text = "where a pod is that they do not want beside them"
        _refuse(bonds, index, _existing(term, group, places, pods), text)
        meant = _meant(term, index, groups)
        if meant and term["topologyKey"] != HOSTNAME:
            bonds.notes.append(f"anti-affinity of group {group.name} by {term['topologyKey']}")
        else:
            bonds.apart.update((index, other) for other in meant)


def _own_together(
    bonds: Bonds, index: int, groups: Sequence[Group], places: Sequence[Place], pods: Sequence[Manifest]
) -> None:
    group, terms = groups[index], _terms(groups[index].spec, "podAffinity")
    if len(terms) > 1 or any(_unknown(term) for term in terms):
        bonds.notes.append(f"affinity of group {group.name}: several terms, a selector of namespaces, or label keys")
        return
    for term in terms:
        meant, existing = _meant(term, index, groups), _existing(term, group, places, pods)
        if set(meant) - {index}:
            bonds.notes.append(f"affinity of group {group.name} to another group")
        elif existing or not meant:
            bonds.only(index, existing, places, "without a pod that they must be beside")
        elif term["topologyKey"] == HOSTNAME:
            bonds.together[index] = "scheduler"
        else:
            bonds.notes.append(f"affinity of group {group.name} by {term['topologyKey']}")


def _own_spread(
    bonds: Bonds, index: int, groups: Sequence[Group], places: Sequence[Place], pods: Sequence[Manifest]
) -> None:
    group = groups[index]
    rows = [
        row
        for row in group.spec.get("topologySpreadConstraints") or ()
        if row.get("whenUnsatisfiable") == "DoNotSchedule"
    ]
    for row in rows:
        key = row["topologyKey"]
        bonds.only(index, [one.name for one in places if key in one.labels], places, f"without the label {key}")
    if not rows:
        return
    row, selector = rows[0], _selector(rows[0], group)
    others = [
        one.name
        for one in groups
        if one is not group and one.namespace == group.namespace and selects(selector, one.labels)
    ]
    if len(rows) > 1 or row["topologyKey"] not in (HOSTNAME, ZONE) or others or any(one.is_new for one in places):
        bonds.notes.append(
            f"topology spread of group {group.name}: several constraints, a label other than host name and zone, another group that it "
            "counts, or nodes that do not exist yet"
        )
        return
    spread = _spread(row, selector, group, places, pods)
    if selects(selector, group.labels):
        bonds.spreads[index] = spread
    else:
        least = 0 if len(spread.domains) < spread.fewest else min(spread.domains.values(), default=0)
        full = {domain for domain, number in spread.domains.items() if number - least > spread.skew}
        names = [one.name for one in places if one.labels.get(row["topologyKey"]) in full]
        _refuse(bonds, index, names, "in a domain that has too many pods for the topology spread")


def _selector(row: Mapping[str, t.Any], group: Group) -> Mapping[str, t.Any]:
    """What a constraint counts. Label keys that the template does not have, such as those of a Deployment, count no pod that is there."""
    selector = row.get("labelSelector") or {"matchExpressions": [{"key": "", "operator": "Exists"}]}
    keys = {key: group.labels[key] for key in row.get("matchLabelKeys") or () if key in group.labels}
    return {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **keys}} if keys else selector


def _spread(
    row: Mapping[str, t.Any],
    selector: Mapping[str, t.Any],
    group: Group,
    places: Sequence[Place],
    pods: Sequence[Manifest],
) -> Spread:
    key = row["topologyKey"]
    counted = [place for place in places if key in place.labels and _counts(row, group, place)]
    domain = {place.name: place.labels[key] for place in counted}
    there = dict.fromkeys(domain.values(), 0)
    for pod in pods:
        in_it = pod["metadata"].get("namespace", "") == group.namespace and not pod["metadata"].get("deletionTimestamp")
        if in_it and node_of(pod) in domain and selects(selector, labels_of(pod)):
            there[domain[node_of(pod)]] += 1
    return Spread(
        skew=int(row["maxSkew"]),
        domains=there,
        of=[place.labels.get(key) for place in places],
        fewest=int(row.get("minDomains") or 1),
    )


def _counts(row: Mapping[str, t.Any], group: Group, place: Place) -> bool:
    """Whether a node's domain is one that the scheduler compares. Nodes that are cordoned or not ready are, too."""
    if (row.get("nodeAffinityPolicy") or "Honor") == "Honor" and not may_be_on(group.spec, place.labels, place.name):
        return False
    honours = (row.get("nodeTaintsPolicy") or "Ignore") == "Honor"
    return not honours or keeping_out(tolerations(place, group), place.taints) is None

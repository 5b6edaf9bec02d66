# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Do all pods of a gang fit at once? From what was read of the cluster, as values. No I/O.

A gang that is said to fit does, whatever the scheduler prefers; what would need luck, or is not understood here, is not judged.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Iterable, Mapping, Sequence

from .._core.errors import InvalidInput
from .._kube.nodes import matches as selected
from .._kube.objects import Manifest, labels_of
from . import bonds, fit, volumes, words
from .admission import Quota, quotas, refusals, with_defaults
from .groups import Group, of_pod
from .kueue import QueueQuota, Queues, queue_quotas
from .places import Place, Template, free_for, has_ended, is_running, live, node_of, possible, refusal

OPERATORS = (None, "", "Equal", "Exists")
_FEW_STEPS = 2_000
"""Of one of the many searches for the nearest size."""
_NEW_CLAIMS = ("persistentvolumeclaims", "count/persistentvolumeclaims", "requests.storage")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seen:
    """What was read of the cluster; None where there was no right to it."""

    nodes: Sequence[Manifest] | None = ()
    pods: Sequence[Manifest] | None = ()
    ranges: Sequence[Manifest] | None = ()
    quotas: Sequence[Manifest] | None = ()
    claims: Mapping[str, Manifest] | None = dataclasses.field(default_factory=dict)
    volumes: Mapping[str, Manifest] = dataclasses.field(default_factory=dict)
    classes: Mapping[str, Manifest] | None = dataclasses.field(default_factory=dict)
    runtimes: Mapping[str, Manifest] = dataclasses.field(default_factory=dict)
    daemon_sets: Sequence[Manifest] | None = ()
    queues: Queues = dataclasses.field(default_factory=Queues)
    unread: Sequence[str] = ()
    """What could not be read, and why."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gang:
    """Groups that must run at once, with what the same run makes for them and what it removes."""

    groups: Sequence[Group]
    claims: Mapping[str, Manifest] = dataclasses.field(default_factory=dict)
    unknown: Sequence[str] = ()
    """Objects of which nobody here knows what pods they make."""
    leaving: str = ""
    """Selector of the pods in the namespace that will have gone before."""
    staying: str = ""
    """Selector of the pods in the namespace that are of the gang's one group already. Those that have a node keep it."""
    templates: Sequence[Template] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verdict:
    """The answer. ``fits`` is None where it is not judged."""

    fits: bool | None
    reasons: Sequence[str] = ()
    not_judged: Sequence[str] = ()
    groups: Sequence[Mapping[str, t.Any]] = ()
    nearest: Sequence[Mapping[str, t.Any]] = ()

    @property
    def message(self) -> str:
        """The answer in a few sentences."""
        return words.message(self.fits, self.reasons, self.not_judged, self.nearest)

    def result(self) -> dict[str, t.Any]:
        """As the module returns it."""
        return {**dataclasses.asdict(self), "message": self.message}


Counts = tuple[int, ...]
Budget = Sequence[Quota | QueueQuota]


def judge(gang: Gang, seen: Seen, *, refusing: bool = False) -> Verdict:
    """Whether the gang fits, why not, and the nearest size that does. REFUSING: only whether it does not, which takes less time."""
    if len({group.namespace for group in gang.groups}) > 1:
        raise InvalidInput(
            "The groups of a gang are in one namespace", hint="Ask for those of each namespace by themselves."
        )
    pods = [pod for pod in seen.pods or () if not leaves(pod, gang) and not _asked_anew(pod, gang)]
    groups = [_as_kept(_with_those_there(group, pods, gang), seen) for group in gang.groups]
    notes = [*seen.unread, *(f"the pods of {name}" for name in gang.unknown)]
    for group in groups:
        notes += _features(group, seen)
    reasons = [text for group in groups if group.replicas for text in refusals(group, seen.ranges or ())]
    of_namespace = quotas(seen.quotas or (), _leaving(gang, seen))
    notes += _quota_notes(of_namespace, groups, seen)
    budget: Budget = [*of_namespace, *queue_quotas(groups, seen.queues)]
    asked = tuple(group.replicas for group in groups)
    room = None
    if seen.nodes is not None:
        room = _Room(groups, gang, seen, pods)
        notes += room.bonds.notes
    billed = [group if _all_new(group, seen) else dataclasses.replace(group, claims=()) for group in groups]
    fits, found, more = _answer(billed, budget, room, asked, refusing=refusing)
    if fits and room and (rival := room.rival(pods)):
        more.append(rival)
    notes, reasons = list(dict.fromkeys([*notes, *more])), [*reasons, *found]
    shrinks = len(reasons) == len(found) and (fits is False if refusing else not fits or bool(notes))
    verdict: bool | None = False if reasons or fits is False else None if notes or fits is None else True
    return Verdict(
        fits=verdict,
        reasons=reasons,
        not_judged=notes,
        groups=[
            {"name": group.name, "replicas": group.replicas, "fitting": room.alone(index) if room else None}
            for index, group in enumerate(groups)
        ],
        nearest=_nearest(billed, budget, room, asked) if room and shrinks else [],
    )


def _answer(
    groups: Sequence[Group], budget: Budget, room: _Room | None, asked: Counts, *, refusing: bool
) -> tuple[bool | None, list[str], list[str]]:
    """Whether quotas and nodes hold so many, why not, and what is not judged of it."""
    reasons = [text for quota in budget for text in quota.problems(groups, asked)]
    if room is None:
        return (False if reasons else None), reasons, []
    reasons += [text for index in range(len(groups)) if (text := room.too_small(index))]
    if reasons:
        return False, reasons, []
    sure = None if refusing else room.certain(asked)
    if sure:
        return True, [], []
    packs = room.packs(asked)
    if packs is False:
        return False, [words.not_together(groups, room.problem)], []
    if refusing:
        return None, [], []
    return None, [], [words.undecided(groups, room.problem, order=bool(packs) and sure is False)]


def _nearest(groups: Sequence[Group], budget: Budget, room: _Room, asked: Counts) -> list[Mapping[str, t.Any]]:
    """For each group the largest number that fits for sure with the others as they are, where one does."""

    def fits(counts: Counts) -> bool:
        return not any(list(quota.problems(groups, counts)) for quota in budget) and bool(
            room.certain(counts, _FEW_STEPS)
        )

    found: list[Mapping[str, t.Any]] = []
    for index, group in enumerate(groups):
        low, high = 0, group.replicas
        while low < high:  # what is smaller than a size that fits does, too
            middle = (low + high + 1) // 2
            low, high = (middle, high) if fits((*asked[:index], middle, *asked[index + 1 :])) else (low, middle - 1)
        if low + group.there > 0 and low < group.replicas:
            found.append({"name": group.name, "replicas": low + group.there})
    return found


class _Room:
    """The nodes as rooms of a problem, and the groups as its shapes."""

    def __init__(self, groups: Sequence[Group], gang: Gang, seen: Seen, pods: Sequence[Manifest]) -> None:
        self.groups = groups
        self.places: list[Place] = [
            *live(seen.nodes or (), pods),
            *possible(gang.templates, seen.daemon_sets or ()),
        ]
        self.bonds = bonds.between(groups, self.places, pods)
        volumes.bind(self.bonds, groups, self.places, seen, gang.claims, pods)
        self.refused = [[self._refused(index, place) for place in self.places] for index in range(len(groups))]
        self.problem = fit.Problem(
            [self._shape(index, group) for index, group in enumerate(groups)],
            [self._free(place) for place in self.places],
            frozenset(self.bonds.apart),
        )

    def _refused(self, index: int, place: Place) -> str:
        return refusal(place, self.groups[index]) or self.bonds.refused.get((index, place.name), "")

    def _free(self, place: Place) -> dict[str, int]:
        free: dict[str, int] = {}
        for group in self.groups:
            free |= free_for(place, group)
        return free

    def _shape(self, index: int, group: Group) -> fit.Shape:
        return fit.Shape(
            takes={name: value for name, value in group.takes.items() if value > 0},
            count=group.replicas,
            rooms=frozenset(number for number, why in enumerate(self.refused[index]) if not why),
            spread=self.bonds.spreads.get(index),
            together=self.bonds.together.get(index, ""),
        )

    def alone(self, index: int) -> int:
        """How many pods of a group fit if no other group were there, as many as it has at most."""
        return min(fit.most(self.problem, index), self.groups[index].replicas)

    def certain(self, counts: Counts, steps: int = fit.STEPS) -> bool | None:
        return fit.certain(self.problem.with_counts(counts), steps)

    def packs(self, counts: Counts) -> bool | None:
        return fit.packs(self.problem.with_counts(counts))

    def too_small(self, index: int) -> str:
        """Why a group does not fit even alone, empty if it does."""
        if self.alone(index) == self.groups[index].replicas:
            return ""
        return words.too_small(self.groups[index], index, self.problem, self.refused[index], self.alone(index))

    def rival(self, pods: Iterable[Manifest]) -> str:
        """A pod of somebody else that waits, too, and could take the room first."""
        found = next((pod for pod in pods if _waits(pod) and self._could_be_placed(pod)), None)
        name = found and "{namespace}/{name}".format(**found["metadata"])
        return f"pod {name} waits for the scheduler, too, and may take the room" if name else ""

    def _could_be_placed(self, pod: Manifest) -> bool:
        name, namespace = pod["metadata"]["name"], pod["metadata"].get("namespace", "")
        group = Group(name=name, replicas=1, namespace=namespace, spec=pod["spec"], labels=labels_of(pod))
        return any(
            not refusal(place, group) and fit.holds(free_for(place, group), group.takes) for place in self.places
        )


def _waits(pod: Manifest) -> bool:
    gated = pod["spec"].get("schedulingGates") or pod["metadata"].get("deletionTimestamp")
    phase = (pod.get("status") or {}).get("phase", "Pending")
    return not gated and phase == "Pending" and not is_running(pod)


def leaves(pod: Manifest, gang: Gang) -> bool:
    """Whether a pod will have gone before."""
    return _is_meant(pod, gang, gang.leaving)


def _is_meant(pod: Manifest, gang: Gang, selector: str) -> bool:
    namespaces = {group.namespace for group in gang.groups}
    return bool(selector) and (pod["metadata"].get("namespace") in namespaces and selected(labels_of(pod), selector))


def _asked_anew(pod: Manifest, gang: Gang) -> bool:
    """Whether a pod of the gang is there and has no node yet, so that it is one of those that are asked for."""
    return _is_meant(pod, gang, gang.staying) and not node_of(pod)


def _with_those_there(group: Group, pods: Iterable[Manifest], gang: Gang) -> Group:
    """The group with only as many pods as are missing."""
    there = sum(
        _is_meant(pod, gang, gang.staying)
        and not pod["metadata"].get("deletionTimestamp")
        and (pod.get("status") or {}).get("phase") != "Failed"
        for pod in pods
    )
    there = min(there, group.replicas)
    return dataclasses.replace(group, replicas=group.replicas - there, there=there) if there else group


def _leaving(gang: Gang, seen: Seen) -> list[Group]:
    return [
        of_pod(pod) for pod in seen.pods or () if (leaves(pod, gang) or _asked_anew(pod, gang)) and not has_ended(pod)
    ]


def _as_kept(group: Group, seen: Seen) -> Group:
    """The group as the API server keeps its pods: with the defaults of the namespace and of the runtime class."""
    spec = dict(with_defaults(group.spec, seen.ranges or ()))
    runtime = seen.runtimes.get(spec.get("runtimeClassName") or "")
    if runtime:
        scheduling = runtime.get("scheduling") or {}
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **(scheduling.get("nodeSelector") or {})}
        spec["tolerations"] = [*(spec.get("tolerations") or ()), *(scheduling.get("tolerations") or ())]
        spec["overhead"] = (runtime.get("overhead") or {}).get("podFixed") or spec.get("overhead") or {}
    return dataclasses.replace(group, spec=spec)


def _features(group: Group, seen: Seen) -> list[str]:
    """What of a group's pods is not judged here."""
    spec, found = group.spec, []
    if spec.get("schedulerName", "default-scheduler") != "default-scheduler":
        found.append(f"scheduler {spec['schedulerName']}")
    if spec.get("nodeName"):
        found.append("nodeName, which passes by the scheduler")
    if spec.get("schedulingGates"):
        found.append("scheduling gates")
    if spec.get("resourceClaims"):
        found.append("resource claims (dynamic resource allocation)")
    if any(row.get("operator") not in OPERATORS for row in spec.get("tolerations") or ()):
        found.append("an operator of a toleration")
    if spec.get("runtimeClassName") and spec["runtimeClassName"] not in seen.runtimes:
        found.append(f"RuntimeClass {spec['runtimeClassName']}, which was not found")
    if group.queue:
        found.append(f"when Kueue's queue {group.queue} admits the pods")
    return [f"{what} of group {group.name}" for what in found]


def _old_claims(group: Group, seen: Seen) -> list[str]:
    """Claims of the group's pods that are there."""
    names = (name for template in group.claims for name in group.claims_of(template))
    return [name for name in names if name in (seen.claims or {})]


def _all_new(group: Group, seen: Seen) -> bool:
    return seen.claims is not None and not _old_claims(group, seen)


def _quota_notes(budget: Sequence[Quota], groups: Sequence[Group], seen: Seen) -> list[str]:
    """What of quotas is not judged."""
    notes = [f"scope {scope} of ResourceQuota {quota.name}" for quota in budget for scope in quota.unknown]
    for quota in budget:
        classes = [name for name in quota.hard if ".storageclass.storage.k8s.io/" in name]
        counted = [name for name in (*_NEW_CLAIMS, *classes) if name in quota.hard]
        for group in groups:
            if group.claims and counted and (classes or not _all_new(group, seen)):
                notes.append(f"{', '.join(counted)} of ResourceQuota {quota.name} for the claims of group {group.name}")
    return notes

# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the users of objects that are to be deleted: workloads that run, wait or are suspended and name one of them.

``uses`` finds the names in an object. This module decides which objects count: not those that are deleted as well, nor a training that has
ended, nor objects that are being deleted already.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import typing as t

from .._core.errors import Forbidden, MusterError, NotFound
from .._core.pool import PARALLEL, run_all_or_raise
from .._manifests.meta import LABEL_JOB, LABEL_ROLE, ROLE_TRAINER
from .cluster import Cluster
from .kinds import NEVER_OURS
from .managed import served_kinds
from .objects import (
    CLAIM,
    DEFINITION,
    DEPLOYMENT,
    JOB,
    NAMESPACE,
    POD,
    GroupKind,
    Manifest,
    Ref,
    group_kind,
    group_of,
    is_of,
    labels_of,
    owner_on,
    owner_text,
    ref_of,
)
from .order import BUILT_IN_GROUPS
from .uses import ADDRESS, INSTANCES, METRICS, TRAININGS, Name, is_nameable, named_by, names_of

_POD_MAKERS = (
    ("v1", "Pod"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
)
_MAKERS = frozenset((group_of(api_version), kind) for api_version, kind in _POD_MAKERS)
_PERSIA_JOB: GroupKind = ("persia.com", "PersiaJob")
_MORE: dict[str, tuple[str, str]] = {
    ADDRESS: ("networking.k8s.io/v1", "Ingress"),
    "DeviceClass": ("resource.k8s.io/v1", "ResourceClaim"),
    "IngressClass": ("networking.k8s.io/v1", "Ingress"),
    METRICS: ("autoscaling/v2", "HorizontalPodAutoscaler"),
    "StorageClass": ("v1", "PersistentVolumeClaim"),
}
"""Built-in kinds without pods that name such things."""
_ENDED: dict[GroupKind, set[str]] = {JOB: {"Complete", "Failed"}, ("kueue.x-k8s.io", "Workload"): {"Finished"}, **TRAININGS}
"""Types of the conditions that say that an object has ended."""
# PERSIA's operator (persia-k8s-utils 0.1.dev251) writes no status, and no owner references to the pods that it makes.
_PERSIA_LABEL = "persia_job"
_PERSIA_TRAINER = re.compile(r"-nn-worker-\d+")
_ALONE: frozenset[GroupKind] = frozenset({
    DEFINITION, NAMESPACE, ("", "PersistentVolume"), CLAIM, ("scheduling.k8s.io", "PriorityClass"), ("storage.k8s.io", "StorageClass"),
})  # fmt: skip
"""Kinds that are used without what was made beside them. Anything else is part of what serves its users, and stays with all of it."""
_NAMED = 3
"""Number of users that a message names."""


@dataclasses.dataclass(frozen=True)
class Use:
    """The reason why an object must stay: what needs it, or why that cannot be judged."""

    needed: str = ""
    unknown: str = ""


def uses_of(cluster: Cluster, live: t.Mapping[Ref, Manifest], *, leaving: t.Collection[str] = ()) -> tuple[dict[Ref, Use], list[str]]:
    """Return the live objects that must stay because others use them, and warnings about what was not searched.

    ``leaving``: owners whose objects are no users, because they are deleted as well.
    """
    names = {ref: names_of(ref, item) for ref, item in live.items() if is_nameable(ref, item)}
    if not names:
        return {}, []
    search = _Search(cluster, live)
    search.read({name for some in names.values() for name in some})
    users = _Users(search.found, live, frozenset(leaving))
    kept: dict[Ref, Use] = {}
    for ref, some in names.items():
        found = users.of(some | search.claims_of_driver(ref)) + search.instances(users, some)
        if found:
            more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            kept[ref] = Use(needed=f"used by {', '.join(found[:_NAMED])}{more}: end or remove what uses it, then remove this again")
        elif search.unknown:
            kept[ref] = Use(unknown=f"whether it is used, because {'; '.join(sorted(set(search.unknown)))}")
    # What serves others stays as a whole: a Service without its servers is of no use.
    whole = next((use for ref, use in kept.items() if use.needed and ref.group_kind not in _ALONE), None)
    whole = whole or next((use for ref, use in kept.items() if ref.group_kind not in _ALONE), None)
    return ({ref: kept.get(ref, whole) for ref in live} if whole else kept), search.warnings


class _Search:
    """Reads everything in the cluster that may be a user."""

    def __init__(self, cluster: Cluster, live: t.Mapping[Ref, Manifest]) -> None:
        self._cluster = cluster
        self._homes = sorted({ref.namespace for ref in live if ref.namespace})
        self.kinds, self._missing = served_kinds(cluster)
        self.found: list[Manifest] = []
        self.unknown: list[str] = []
        self._only_here: list[str] = []

    def read(self, names: set[Name]) -> None:
        """Read what may name one of these."""
        wanted = {name.word for name in names}
        custom = [
            (api, kind)
            for api, kind, _resource in self.kinds
            if group_of(api) not in BUILT_IN_GROUPS and (group_of(api), kind) not in NEVER_OURS
        ]
        trainings = [one for one in custom if (group_of(one[0]), one[1]) in TRAININGS]
        strict = dict.fromkeys([*_POD_MAKERS, *trainings, *(_MORE[word] for word in sorted(wanted & _MORE.keys()))])
        # What has a namespace is named in it, unless it is an address.
        everywhere = ADDRESS in wanted or any(not name.namespace for name in names)
        look = functools.partial(self._listed, strict=strict, everywhere=everywhere)
        found = run_all_or_raise(look, list(dict.fromkeys([*strict, *custom])), parallel=PARALLEL)
        self.found = [item for items in found for item in items]
        plurals = {f"{kind.lower()}s.{group}" for group, kind in TRAININGS}
        self.unknown += [f"{name}: {why}" for name, why in self._missing if name in plurals]

    @property
    def warnings(self) -> list[str]:
        """The warnings that other namespaces were not searched for users, for lack of rights."""
        if not self._only_here:
            return []
        spaces, kinds = ", ".join(self._homes), ", ".join(sorted(self._only_here))
        return [f"Users were searched in namespace {spaces} only: the user may not list {kinds} of all namespaces."]

    def _listed(self, pair: tuple[str, str], *, strict: t.Container[tuple[str, str]], everywhere: bool) -> list[Manifest]:
        api_version, name = pair
        try:
            if everywhere:
                try:
                    return list(self._cluster.list(api_version, name))
                except Forbidden:
                    if not self._homes:
                        raise
            found = [item for space in self._homes for item in self._cluster.list(api_version, name, space)]
        except NotFound:
            return []
        except MusterError as exc:
            if pair in strict:
                self.unknown.append(f"objects of kind {name} cannot be listed ({exc.message.rstrip('.')})")
            return []
        if everywhere and pair in strict:
            self._only_here.append(name)
        return found

    def claims_of_driver(self, ref: Ref) -> set[Name]:
        """The claims on volumes of a CSI driver: who mounts them uses the driver."""
        if ref.group_kind != ("storage.k8s.io", "CSIDriver"):
            return set()
        claims = [
            volume["spec"]["claimRef"]
            for volume in self._cluster.list("v1", "PersistentVolume")
            if (volume["spec"].get("csi") or {}).get("driver") == ref.name and volume["spec"].get("claimRef")
        ]
        return {Name("PersistentVolumeClaim", claim["namespace"], claim["name"]) for claim in claims}

    def instances(self, users: _Users, names: t.Iterable[Name]) -> list[str]:
        """The objects of the definitions that an operator serves. They need it until they are gone, also when they have ended."""
        found = []
        for one in sorted(name for name in names if name.word == INSTANCES):
            for api_version, kind in self.kinds.of_definition(one.name):
                try:
                    items = self._cluster.list_metadata(api_version, kind, one.namespace or None)
                except NotFound:
                    continue
                except MusterError as exc:
                    self.unknown.append(f"objects of kind {kind} cannot be listed ({exc.message.rstrip('.')})")
                    continue
                found += [_user(item, "") for item in items if not users.leaves(item)]
            self.unknown += [f"{name}: {why}" for name, why in self._missing if name == one.name]
        return found


def _user(item: Manifest, how: str) -> str:
    owner = owner_on(item)
    said = "; ".join(filter(None, [f"owner {owner_text(owner)}" if owner else "", how]))
    return f"{ref_of(item)} ({said})" if said else str(ref_of(item))


class _Users:
    """Decides which of the objects found are users."""

    def __init__(self, found: t.Sequence[Manifest], live: t.Mapping[Ref, Manifest], leaving: frozenset[str]) -> None:
        self._leaving = leaving
        self._live = {item["metadata"].get("uid") for item in live.values()}
        self._by_uid = {str(item["metadata"].get("uid")): item for item in found}
        self._by_place = {(group_kind(item), item["metadata"].get("namespace"), item["metadata"]["name"]): item for item in found}
        self._trainers: dict[tuple[str | None, str], list[Manifest]] = {}
        self._persia_pods: dict[tuple[str | None, str], list[Manifest]] = {}
        for item in found:
            labels, space = labels_of(item), item["metadata"].get("namespace")
            if group_kind(item) == JOB and LABEL_JOB in labels and labels.get(LABEL_ROLE) == ROLE_TRAINER:
                self._trainers.setdefault((space, labels[LABEL_JOB]), []).append(item)
            if group_kind(item) == POD and _PERSIA_LABEL in labels:
                self._persia_pods.setdefault((space, labels[_PERSIA_LABEL]), []).append(item)
        self._named: dict[Name, list[tuple[Manifest, str]]] = {}
        for item in filter(self._counts, found):
            for name, how in named_by(item).items():
                self._named.setdefault(name, []).append((item, how))

    def of(self, names: t.Collection[Name]) -> list[str]:
        """The users of any of these names, each with where it names it."""
        found: dict[t.Any, str] = {}
        for item, how in (pair for name in names for pair in self._named.get(name, ())):
            maker = self._maker(item) or item
            found.setdefault(ref_of(maker).identity, _user(maker, how))
        return [found[key] for key in sorted(found)]

    def leaves(self, item: Manifest) -> bool:
        """Whether the object goes as well: with the deletion, or before it."""
        metadata = item["metadata"]
        if metadata.get("uid") in self._live or is_of(item, self._leaving):
            return True
        makers = [owner.get("uid") for owner in metadata.get("ownerReferences") or [] if owner.get("controller")]
        return any(uid in self._live for uid in makers)

    def _counts(self, item: Manifest) -> bool:
        if item["metadata"].get("deletionTimestamp") or self.leaves(item) or self._has_ended(item):
            return False
        if maker := self._maker(item):
            return self._counts(maker)
        # Kueue's Workload for a group of pods has all of them as owners, and goes with the last one.
        owners = item["metadata"].get("ownerReferences") or []
        known = [self._by_uid[owner["uid"]] for owner in owners if owner.get("uid") in self._by_uid]
        return any(map(self._counts, known)) if owners and len(known) == len(owners) else not self._is_orphan(item)

    def _is_orphan(self, item: Manifest) -> bool:
        """Whether the object that made it is gone, so that Kubernetes is about to delete it."""
        owners = item["metadata"].get("ownerReferences") or []
        return any(owner.get("controller") and group_kind(owner) in _MAKERS for owner in owners)

    def _maker(self, item: Manifest) -> Manifest | None:
        """The object that made this one, if it is known."""
        metadata = item["metadata"]
        labels, space = labels_of(item), metadata.get("namespace")
        for owner in metadata.get("ownerReferences") or []:
            if not owner.get("controller"):
                continue
            if owner.get("uid") in self._by_uid:
                return self._by_uid[owner["uid"]]
            if group_kind(owner) == ("apps", "ReplicaSet"):
                name = str(owner.get("name")).removesuffix(f"-{labels.get('pod-template-hash', '')}")
                return self._by_place.get((DEPLOYMENT, space, name))
        if group_kind(item) == POD and _PERSIA_LABEL in labels:
            return self._by_place.get((_PERSIA_JOB, space, labels[_PERSIA_LABEL]))
        return None

    def _has_ended(self, item: Manifest) -> bool:
        what, space = group_kind(item), item["metadata"].get("namespace")
        if what == POD:
            return (item.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if what == _PERSIA_JOB:
            return self._persia_job_has_ended(item)
        if _is_finished(item):
            return True
        trainers = self._trainers.get((space, labels_of(item).get(LABEL_JOB, "")), [])
        return bool(trainers) and all(map(_is_finished, trainers))

    def _persia_job_has_ended(self, item: Manifest) -> bool:
        name, spec = item["metadata"]["name"], item.get("spec") or {}
        pods = self._persia_pods.get((item["metadata"].get("namespace"), name), [])
        trainers = [pod for pod in pods if _PERSIA_TRAINER.fullmatch(pod["metadata"]["name"].removeprefix(name))]
        phases = [(pod.get("status") or {}).get("phase") for pod in trainers]
        wanted = int((spec.get("nnWorker") or {}).get("replicas") or 0)
        return "Failed" in phases or (len(phases) >= wanted > 0 and set(phases) == {"Succeeded"})


def _is_finished(item: Manifest) -> bool:
    types = _ENDED.get(group_kind(item), set())
    conditions = (item.get("status") or {}).get("conditions") or []
    return any(one.get("type") in types and one.get("status") == "True" for one in conditions)

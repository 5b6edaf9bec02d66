# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What claims mean for where pods can be. No I/O.

The scheduler knows where a volume can be reached, and that a claim of mode ReadWriteOncePod has one pod. It does not know that a claim of
mode ReadWriteOnce is attached to one node: pods elsewhere would wait for ever.

Private to the collection.
"""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping, Sequence

from .._kube.objects import Manifest
from .._kube.storage import class_of
from .bonds import Bonds
from .groups import Group
from .matching import ZONE, any_term
from .places import Place, is_running, node_of

_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_ONE_NODE = {"ReadWriteOnce", "ReadWriteOncePod"}
_DISKS = ("awsElasticBlockStore", "azureDisk", "gcePersistentDisk", "iscsi", "rbd")
"""Volumes without a claim that may be on one node only."""


class Storage(t.Protocol):
    """What was read of claims and volumes; None where it could not be."""

    @property
    def claims(self) -> Mapping[str, Manifest] | None: ...

    @property
    def volumes(self) -> Mapping[str, Manifest]: ...

    @property
    def classes(self) -> Mapping[str, Manifest] | None: ...


def bind(
    bonds: Bonds,
    groups: Sequence[Group],
    places: Sequence[Place],
    storage: Storage,
    made: Mapping[str, Manifest],
    pods: Sequence[Manifest],
) -> None:
    """Add to the bonds what follows from the claims of the groups. MADE are claims that the same run makes."""
    for index, group in enumerate(groups):
        for volume in group.spec.get("volumes") or ():
            if disk := next((kind for kind in _DISKS if volume.get(kind)), ""):
                bonds.notes.append(f"volume {volume['name']} of group {group.name}: {disk}")
            if volume.get("ephemeral"):
                _unborn(bonds, group, volume["ephemeral"]["volumeClaimTemplate"], places, storage)
        for template in group.claims:
            _template(bonds, group, template, places, storage)
        for name in claim_names(group.spec):
            _claim(bonds, index, groups, places, storage, made, pods, name)


def claim_names(spec: Mapping[str, t.Any]) -> list[str]:
    """The claims that a pod mounts by name, each once."""
    rows = ((volume.get("persistentVolumeClaim") or {}).get("claimName") for volume in spec.get("volumes") or ())
    return list(dict.fromkeys(name for name in rows if name))


def _claim(
    bonds: Bonds,
    index: int,
    groups: Sequence[Group],
    places: Sequence[Place],
    storage: Storage,
    made: Mapping[str, Manifest],
    pods: Sequence[Manifest],
    name: str,
) -> None:
    group = groups[index]
    if storage.claims is None:
        return
    live = storage.claims.get(name)
    claim = live or made.get(name)
    if claim is None:
        bonds.only(index, (), places, f"whatever they are: claim {name} does not exist")
        return
    if live and (live["spec"].get("volumeName")):
        _where(bonds, index, group, places, storage, live)
    elif live and (live.get("status") or {}).get("phase") == "Lost":
        bonds.notes.append(f"claim {name} of group {group.name} has lost its volume")
    else:
        _unborn(bonds, group, claim, places, storage)
    if set(claim["spec"].get("accessModes") or ()) <= _ONE_NODE:
        users = [
            pod
            for pod in pods
            if is_running(pod)
            and pod["metadata"].get("namespace") == group.namespace
            and name in claim_names(pod["spec"])
        ]
        _one_node(bonds, index, groups, places, users, claim)


def _where(bonds: Bonds, index: int, group: Group, places: Sequence[Place], storage: Storage, claim: Manifest) -> None:
    """The nodes from which the volume of a claim can be reached."""
    volume = storage.volumes.get(claim["spec"]["volumeName"])
    name = claim["metadata"]["name"]
    if volume is None:
        bonds.notes.append(f"volume of claim {name} of group {group.name} cannot be read")
        return
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    allowed = [place.name for place in places if any_term(required, place.labels, place.name)]
    bonds.only(index, allowed, places, f"from where the volume of claim {name} cannot be reached")


def _one_node(
    bonds: Bonds,
    index: int,
    groups: Sequence[Group],
    places: Sequence[Place],
    users: Sequence[Manifest],
    claim: Manifest,
) -> None:
    group, name = groups[index], claim["metadata"]["name"]
    sharing = [other for other in groups if name in claim_names(other.spec)]
    if "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ()):
        if users or len(sharing) > 1 or group.replicas > 1:
            bonds.only(index, (), places, f"whatever they are: claim {name} is for one pod (ReadWriteOncePod)")
        return
    if len(sharing) > 1:
        if group is sharing[0]:
            *others, last = [other.name for other in sharing]
            bonds.notes.append(
                f"claim {name} is for one node (ReadWriteOnce), and groups {', '.join(others)} and {last} use it"
            )
    elif users:
        there = {node_of(pod) for pod in users}
        free = [place.name for place in places if (index, place.name) not in bonds.refused]
        bonds.only(index, there, places, f"while claim {name} (ReadWriteOnce) is attached elsewhere")
        if set(free) - there:
            bonds.notes.append(
                f"claim {name} (ReadWriteOnce) is attached to {', '.join(sorted(there))}, which the scheduler does not know"
            )
    elif group.replicas > 1:
        bonds.together.setdefault(index, "luck")


def _template(bonds: Bonds, group: Group, template: Manifest, places: Sequence[Place], storage: Storage) -> None:
    """A claim for each pod: those of an earlier run, which may bind each pod to another place, or new ones."""
    if storage.claims is None:
        return
    name = template["metadata"]["name"]
    old = [storage.claims[one] for one in group.claims_of(template) if one in storage.claims]
    for claim in old:
        volume = storage.volumes.get(claim["spec"].get("volumeName") or "")
        if volume is None or (volume["spec"].get("nodeAffinity") or {}).get("required"):
            bonds.notes.append(
                f"claims {name} of group {group.name} are there, and bind each pod to a place of its own"
            )
            return
    if len(old) < group.replicas:
        _unborn(bonds, group, template, places, storage)


def _unborn(bonds: Bonds, group: Group, claim: Manifest, places: Sequence[Place], storage: Storage) -> None:
    """A claim without a volume. One is made where the pod goes, if its StorageClass can do that."""
    if storage.classes is None:
        return
    what = f"claim {(claim.get('metadata') or {}).get('name', '')} of group {group.name} has no volume yet"
    found = class_of(storage.classes.values(), (claim.get("spec") or {}).get("storageClassName"))
    for problem in _problems(found, places):
        bonds.notes.append(f"{what}: {problem}")


def _problems(found: Manifest | None, places: Sequence[Place]) -> Iterator[str]:
    if found is None:
        yield "there is no StorageClass that makes one"
        return
    name = f"StorageClass {found['metadata']['name']}"
    if found.get("provisioner") == _NO_PROVISIONER:
        yield f"{name} makes none"
    if found.get("allowedTopologies"):
        yield f"{name} has allowedTopologies"
    zones = {place.labels.get(ZONE) for place in places}
    if found.get("volumeBindingMode") != "WaitForFirstConsumer" and len(zones) > 1:
        yield f"{name} chooses a zone before the scheduler does (volumeBindingMode Immediate)"

# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests, references to objects, labels and kinds: the values that all parts of the engine share."""

from __future__ import annotations

import dataclasses
import datetime as dt
import fnmatch
import hashlib
import typing as t

from .yaml_scalars import key_text

Manifest = dict[str, t.Any]


class FromFile(dict[str, t.Any]):
    """An object that was read from a file, which errors about the object name."""

    file = ""


COLLECTIONS = (dict, list)
"""The types of JSON that contain values."""
GroupKind = tuple[str, str]
"""The API group and the kind of an object. Its version says nothing about which kind it is, and the kind alone nothing at all: any
definition may bring another Event, Secret or Job."""

CLAIM: GroupKind = ("", "PersistentVolumeClaim")
API_SERVICE: GroupKind = ("apiregistration.k8s.io", "APIService")
CONFIG_MAP: GroupKind = ("", "ConfigMap")
DAEMON_SET: GroupKind = ("apps", "DaemonSet")
DEFINITION: GroupKind = ("apiextensions.k8s.io", "CustomResourceDefinition")
DEPLOYMENT: GroupKind = ("apps", "Deployment")
JOB: GroupKind = ("batch", "Job")
LEADER_WORKER_SET: GroupKind = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
NAMESPACE: GroupKind = ("", "Namespace")
POD: GroupKind = ("", "Pod")
SECRET: GroupKind = ("", "Secret")
SERVICE: GroupKind = ("", "Service")
SERVICE_ACCOUNT: GroupKind = ("", "ServiceAccount")
STATEFUL_SET: GroupKind = ("apps", "StatefulSet")

FIELD_MANAGER = "muster"
"""Field manager of patches of single fields, and of objects from the time before each owner had its own."""

PRUNE_RECORD = "muster-settled"
"""The beginning of the names of prune's records (prune_record.py)."""
HISTORY = "muster-history"
"""Name and field manager of the ConfigMap with the records of a namespace's trainings (_training/history.py). It has no owner."""
LABEL_HISTORY = "muster.ml/history"

LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
LABEL_OWNER = "muster.ml/owner"
LABEL_HOME = "muster.ml/home"
"""The second part of an owner: the namespace that tells apart two owners with the same name, as it does releases of Helm."""
_LONGEST_MANAGER = 128
"""The longest field manager that the API server accepts (metav1.FieldManagerMaxLength)."""
ANNOTATION_APPLIED = "muster.ml/applied"
"""VERSION:DIGEST:PLACE of the last desired object: its digest (without secret values), and that of its owner and place."""
ANNOTATION_NOT_KEPT = "muster.ml/not-kept"
"""Desired fields that this API server did not keep."""
ANNOTATION_FENCE = "muster.ml/lease"
"""The uid of the Lease under which an object was written only so that an earlier run cannot delete it any more (lease.py)."""
ANNOTATION_GENERATED = "muster.ml/generated"
"""On a Secret whose keys we generated: it cannot be rebuilt, so it is treated as data."""

BOOKKEEPING = frozenset({
    f"metadata.{part}.{key}"
    for part, keys in (("labels", (LABEL_OWNER, LABEL_HOME)),
                       ("annotations", (ANNOTATION_APPLIED, ANNOTATION_FENCE, ANNOTATION_NOT_KEPT)))
    for key in keys
})  # fmt: skip
"""Fields that only Muster writes, so that a conflict about them is none."""


@dataclasses.dataclass(frozen=True, order=True)
class Ref:
    """Names one object of a cluster."""

    api_version: str
    kind: str
    name: str
    namespace: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return group_of(self.api_version)

    @property
    def group_kind(self) -> GroupKind:
        """The API group and kind of the object, without the version."""
        return (group_of(self.api_version), self.kind)

    @property
    def key(self) -> tuple[str, str, str]:
        """Kind, namespace and name, for the few kinds that pods name."""
        return (self.kind, self.namespace or "", self.name)

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """Equal for the same object in two versions of its API."""
        return (group_of(self.api_version), self.kind, self.namespace or "", self.name)


@dataclasses.dataclass(frozen=True)
class ServedKind:
    """The resource that serves a kind. ``applied``: whether it can be patched, and so applied; reviews can only be created."""

    plural: str
    namespaced: bool
    applied: bool = True


@dataclasses.dataclass(frozen=True)
class Event:
    """One event of a watch. ``type`` is ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    object: Manifest


class Listing(list[Manifest]):
    """The items of a list call, and the version of the cluster at which they were read (start of a watch).

    ``partial``: there are more items than were asked for.
    """

    def __init__(self, items: t.Iterable[Manifest] = (), resource_version: str = "", *, partial: bool = False) -> None:
        super().__init__(items)
        self.resource_version = resource_version
        self.partial = partial


def group_of(api_version: str) -> str:
    """``apps`` for ``apps/v1``, empty for ``v1``."""
    return api_version.rpartition("/")[0]


def ref_of(manifest: Manifest) -> Ref:
    """The reference of an object that has at least apiVersion, kind and metadata.name."""
    metadata = manifest["metadata"]
    return Ref(manifest["apiVersion"], manifest["kind"], metadata["name"], metadata.get("namespace") or None)


Group = tuple[str, str, t.Optional[str]]  # noqa: UP045 -- Ansible's pylint refuses the other form in an alias
"""API version, kind and namespace of objects that one list, and one watch, covers."""


def grouped(refs: t.Iterable[Ref]) -> dict[Group, list[Ref]]:
    """The references by group."""
    found: dict[Group, list[Ref]] = {}
    for ref in refs:
        found.setdefault((ref.api_version, ref.kind, ref.namespace), []).append(ref)
    return found


def group_kind(manifest: t.Mapping[str, t.Any]) -> GroupKind:
    """The API group and the kind of an object, also of one that nothing has checked yet."""
    return (group_of(str(manifest.get("apiVersion", ""))), str(manifest.get("kind", "")))


def owner_at(name: str, home: str) -> str:
    """An owner of two parts as one text, which is never a label value. An owner whose name has its namespace in it is the name alone."""
    return f"{name}@{home}"


def name_and_home(owner: str) -> tuple[str, str]:
    """The parts of an owner; the second one is empty where the name is all."""
    name, _at, home = owner.partition("@")
    return name, home


def former_owner(owner: str) -> str:
    """The owner as it was while owners had no home, empty where it has none: its objects are this owner's to take over."""
    name, home = name_and_home(owner)
    return name if home else ""


def owner_text(owner: str) -> str:
    """The owner for people."""
    name, home = name_and_home(owner)
    return f"{name} of namespace {home}" if home else name


def owner_labels(owner: str) -> dict[str, str]:
    """The labels of the owner's objects."""
    name, home = name_and_home(owner)
    return {LABEL_OWNER: name, **({LABEL_HOME: home} if home else {})}


def owner_selector(owner: str) -> str:
    """The label selector of the owner's objects, and of others with the same name: see owner_on."""
    return f"{LABEL_OWNER}={name_and_home(owner)[0]}"


def owner_on(manifest: Manifest) -> str:
    """The owner that an object's labels name, empty where they name none."""
    labels = labels_of(manifest)
    name, home = labels.get(LABEL_OWNER, ""), labels.get(LABEL_HOME, "")
    return owner_at(name, home) if name and home else name


def is_of(manifest: Manifest, owners: t.Collection[str]) -> bool:
    """Whether the owner that an object's labels name is one of OWNERS, or the object is one that they name as KIND/NAME.

    A name without a home is that of the owners in all homes.
    """
    owner, named = owner_on(manifest), f"{manifest['kind']}/{manifest['metadata']['name']}"
    itself = any(fnmatch.fnmatchcase(named, one) for one in owners if "/" in one)
    return itself or owner in owners or name_and_home(owner)[0] in owners


def manager_of(owner: str) -> str:
    """The field manager of an owner. Each has its own, so that the API server reports two owners that set the same field.

    Stable, because ownership is how we see drift, and because the server caps the number of managers per object. At most 128 characters.
    """
    manager = f"{FIELD_MANAGER}:{owner}"
    if len(manager) <= _LONGEST_MANAGER:
        return manager
    return f"{manager[: _LONGEST_MANAGER - 17]}-{hashlib.sha256(owner.encode()).hexdigest()[:16]}"


def location_digest(owner: str, ref: Ref) -> str:
    """Short digest of an owner and a place. An object with it at another place is a copy, or the same one under another name."""
    return hashlib.sha256("\n".join((owner, *ref.identity)).encode()).hexdigest()[:12]


def is_made_for(manifest: Manifest, owner: str) -> bool:
    """Whether the object's own record says that it was made for this owner at this very place."""
    return annotations_of(manifest).get(ANNOTATION_APPLIED, "").rpartition(":")[2] == location_digest(owner, ref_of(manifest))


def labels_of(manifest: Manifest) -> dict[str, str]:
    """The labels, empty where there are none."""
    return manifest.get("metadata", {}).get("labels") or {}


def annotations_of(manifest: Manifest) -> dict[str, str]:
    """The annotations, empty where there are none."""
    return manifest.get("metadata", {}).get("annotations") or {}


def selector_of(labels: t.Mapping[str, str]) -> str:
    """The label selector of what has all of these labels."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def deep_copy(value: t.Any) -> t.Any:
    """A copy that shares no map or list. A manifest is a tree of plain values, for which copy.deepcopy is five times slower."""
    if isinstance(value, dict):
        return {key: deep_copy(item) if isinstance(item, COLLECTIONS) else item for key, item in value.items()}
    return [deep_copy(item) for item in value] if isinstance(value, list) else value


def to_plain_values(value: t.Any) -> t.Any:
    """The value in JSON's own types: Ansible tags its strings and maps, and YAML makes dates of what looks like one."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        # str's own methods, because those of a subclass may return the subclass again, which PyYAML cannot read.
        return str.encode(value, "utf-8", "surrogatepass").decode("utf-8", "surrogatepass")
    if isinstance(value, t.Mapping):
        return {to_plain_values(key) if isinstance(key, str) else _key(key, value): to_plain_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain_values(item) for item in value]
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, float) else value


def _key(key: t.Any, siblings: t.Mapping[t.Any, t.Any]) -> t.Any:
    """The text that kubectl makes of a key. A key without one, or with that of another key, is left for validate to report."""
    key = to_plain_values(key)
    if key is None or isinstance(key, tuple) or key_text(key) in siblings:
        return key
    return key_text(key)

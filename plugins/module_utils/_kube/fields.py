# SPDX-License-Identifier: GPL-3.0-or-later
"""Ownership of an object's fields, according to ``metadata.managedFields``.

The API server keeps the set of fields that each manager applied, and takes a field out of ours as soon as another manager changes its
value. So "we still own everything we asked for" means "nothing of it was changed", without knowing defaults, quantities or webhooks.
(https://kubernetes.io/docs/reference/using-api/server-side-apply/ and structured-merge-diff's fieldpath.) Ownership does not see the
order of a list whose elements have keys, which is compared, nor what admission made of our own write, which write.py records.
"""

from __future__ import annotations

import functools
import json
import re
import types
import typing as t

from .._core.sensitive import Sensitive
from .objects import COLLECTIONS, FIELD_MANAGER, LABEL_MANAGED_BY, Manifest
from .quantities import with_canonical_quantities

Trie = dict[str, t.Any]

ORDER = "the order of "
"""The prefix of the path of a list whose elements are all ours, but in another order."""
# Managers that are programs by which people and pipelines send manifests: Flux takes over those of kubectl, too.
_TOOLS = ("kubectl", "helm", "Helm", "OpenAPI-Generator", "ansible", "argocd", "kustomize-controller", "kapp", "pulumi",
          "terraform", "Terraform", "HashiCorp", "before-first-apply")  # fmt: skip
_OF_KUBERNETES = ("kube-", "kubelet", "cloud-controller-manager", "clusterrole-aggregation-controller")

_NEVER_OWNED = ("apiVersion", "kind")
_METADATA_OWNED = ("labels", "annotations", "finalizers", "ownerReferences")


def owned_fields(live: Manifest, *managers: str) -> Trie:
    """The fieldsV1 that these managers applied, or created the object with; empty where they have none."""
    return _union(entry for entry in _entries(live) if entry.get("manager") in managers)


def is_created_by(live: Manifest, manager: str) -> bool:
    """Whether a manager has fields because it created the object (by POST). To the server they are not those that it applies."""
    return any((entry.get("manager"), entry.get("operation")) == (manager, "Update") for entry in _entries(live))


def managers(live: Manifest) -> set[str]:
    """The managers of fields of the object itself (not of its status)."""
    return {str(entry.get("manager")) for entry in _entries(live)}


def _entries(live: Manifest) -> list[Manifest]:
    """The managed fields, except those of the status and single ones that we patched (to suspend a Job)."""
    found = live.get("metadata", {}).get("managedFields") or []
    patched = (FIELD_MANAGER, "Update")
    return [e for e in found if not e.get("subresource") and (e.get("manager"), e.get("operation")) != patched]


def makers(live: Manifest) -> set[str]:
    """The manager that made the object, and tools that applied it; controllers of Kubernetes are none.

    Times are in seconds, and other controllers answer sooner: of several that wrote in the first one, a tool, or who has the most fields.
    """
    entries = [entry for entry in _entries(live) if not str(entry.get("manager")).startswith(_OF_KUBERNETES)]
    since = {str(entry.get("manager")): str(entry.get("time", "")) for entry in entries}
    made = live["metadata"].get("creationTimestamp", "")
    found = {name for name in since if name.startswith(_TOOLS)}
    first = [name for name, time in since.items() if time <= made] or ([] if found else sorted(since, key=lambda name: since[name])[:1])
    if first and found.isdisjoint(first):
        found.add(max(first, key=lambda name: len(_paths(owned_fields(live, name), ""))))
    return found


def kept_by_others(live: Manifest, takers: t.Container[str]) -> list[str]:
    """Fields that stay when the takers have the object, each with the manager that has it."""
    kept = []
    for entry in _entries(live):
        manager = str(entry.get("manager"))
        if manager not in takers and not manager.startswith(_OF_KUBERNETES):
            paths = sorted(_paths(entry.get("fieldsV1") or {}, ""))
            leaves = [path for path, after in zip(paths, [*paths[1:], ""], strict=True) if not after.startswith((f"{path}.", f"{path}["))]
            kept += [f"{path} stays with {manager}" for path in leaves]
    return kept


def transferred_fields(live: Manifest, givers: t.Collection[str], taker: str, defaults: Trie | None = None) -> list[Manifest]:
    """``managedFields`` with the givers' fields, those that the taker created, and DEFAULTS of the server, as applied by the taker.

    The taker's next apply then drops those that are not desired.

    What ``kubectl apply --server-side`` does with the fields of an earlier client-side apply, which would stay for ever otherwise.
    """
    own = [entry for entry in _entries(live) if (entry.get("manager"), entry.get("operation")) == (taker, "Apply")]
    givers = {*givers, taker}
    given = [entry for entry in _entries(live) if entry.get("manager") in givers and entry not in own]
    rest = [entry for entry in live["metadata"].get("managedFields") or [] if entry not in given and entry not in own]
    union = _united({}, _union(given))  # a copy
    # Whose tool manages the object is for its maker to say (plan.py), and what a finalizer waits for, its controller knows.
    union.get("f:metadata", {}).pop("f:finalizers", None)
    union.get("f:metadata", {}).get("f:labels", {}).pop(f"f:{LABEL_MANAGED_BY}", None)
    union = _united(_united(union, _union(own)), defaults or {})
    if not union:
        return rest
    known = (own or given or [{"apiVersion": live["apiVersion"], "fieldsType": "FieldsV1"}])[0]
    return [*rest, {**known, "manager": taker, "operation": "Apply", "fieldsV1": union}]


def _union(entries: t.Iterable[Manifest]) -> Trie:
    found = [entry.get("fieldsV1") or {} for entry in entries]
    return functools.reduce(_united, found) if found else {}


def _united(one: Trie, other: Trie) -> Trie:
    return {key: _united(one.get(key) or {}, other.get(key) or {}) for key in {**one, **other}}


def unowned_paths(desired: Manifest, live: Manifest, manager: str) -> list[str]:
    """Desired paths that the manager does not own (any more), and ``the order of PATH`` where only that differs."""
    owned = owned_fields(live, manager)
    spec = {key: value for key, value in desired.items() if key not in (*_NEVER_OWNED, "metadata")}
    metadata = {key: value for key, value in desired["metadata"].items() if key in _METADATA_OWNED}
    return [*_missing(metadata, owned.get("f:metadata") or {}, "metadata", live["metadata"]), *_missing(spec, owned, "", live)]


def other_manager(live: Manifest, path: str, manager: str) -> str | None:
    """The other manager that set the field at a path from ``unowned_paths``; None if none did."""
    for entry in live.get("metadata", {}).get("managedFields") or []:
        if entry.get("manager") != manager and path in _paths(entry.get("fieldsV1") or {}, ""):
            return str(entry.get("manager"))
    return None


def last_write(live: Manifest) -> str:
    """The time at which one of our field managers wrote the object last; empty if none did."""
    entries = live.get("metadata", {}).get("managedFields") or []
    return max((entry.get("time", "") for entry in entries if entry["manager"].startswith(FIELD_MANAGER)), default="")


def owned_keys(live: Manifest, manager: str, *path: str) -> set[str]:
    """The keys that a manager owns below a path of maps, such as ``metadata`` and ``labels``."""
    node = owned_fields(live, manager)
    for key in path:
        node = node.get(f"f:{key}") or {}
    return {key[2:] for key in node if key.startswith("f:")}


def differing_paths(live: Manifest, desired: Manifest, *, empty: bool = False) -> t.Iterator[str]:
    """The paths at which an object that the server completed differs from the desired one. Quantities are compared by what they mean.

    ``empty``: also those at which an empty text, map or list, 0 or false is desired and nothing is there. Of some fields the server stores
    none of these, because they say the same; of others they are values: ``automountServiceAccountToken``, ``ttlSecondsAfterFinished``.
    """
    if any(True for _path in _differing(live, desired, "", empty)):  # otherwise no quantity needs to be read
        yield from _differing(with_canonical_quantities(live), with_canonical_quantities(desired), "", empty)


def _differing(live: t.Any, desired: t.Any, path: str, empty: bool) -> t.Iterator[str]:
    if isinstance(desired, dict) and isinstance(live, dict):
        for key, value in desired.items():
            have = live.get(key)
            if not (isinstance(value, str) and value == have):  # as most are
                yield from _differing(have, value, f"{path}.{key}" if path else key, empty)
    elif isinstance(desired, list) and isinstance(live, list) and len(live) == len(desired):
        for index, value in enumerate(desired):
            yield from _differing(live[index], value, f"{path}[{index}]", empty)
    elif live is None and not desired:
        yield from [path] if empty and desired is not None else []
    elif isinstance(desired, Sensitive) and not isinstance(live, Sensitive):
        yield from _differing(Sensitive(live), desired, path, empty)
    elif live != desired or isinstance(live, bool) != isinstance(desired, bool):
        yield path


def _missing(desired: dict[str, t.Any], node: Trie, path: str, live: t.Any) -> t.Iterator[str]:
    for key, value in desired.items():
        child = node.get(f"f:{key}")
        if child is None:
            yield f"{path}.{key}" if path else key
        elif isinstance(value, COLLECTIONS) and len(child) > ("." in child):
            below: t.Any = _missing if isinstance(value, dict) else _below
            yield from below(value, child, f"{path}.{key}" if path else key, live.get(key) if isinstance(live, dict) else None)


def _below(value: t.Any, node: Trie, path: str, live: t.Any) -> t.Iterator[str]:
    """A node without children is a list or map that is owned as a whole."""
    if len(node) <= ("." in node):
        return
    if isinstance(value, dict):
        yield from _missing(value, node, path, live)
    elif isinstance(value, list):
        entries = _entries_of(value, node)
        places = _places(live, entries)
        for index, key in enumerate(entries):
            if key is None:
                yield f"{path}[{index}]"
            else:
                there = live[places[key]] if key in places else None
                yield from _below(value[index], node[key], _element_path(path, key), there)
        if list(places.values()) != sorted(places.values()):
            yield f"{ORDER}{path}"


def _entries_of(value: list[t.Any], node: Trie) -> list[str | None]:
    """The entry of each list element: ``k:{its keys}``, ``v:value`` or ``i:index``; None where it has none. No two have the same one.

    A key that an element leaves out was filled with its default (``protocol`` of a port), which is the same one in all elements. So what
    fits only one entry has that, and of the others each takes what is left.
    """
    keyed = {frozenset(_keys(key).items()): key for key in node if key.startswith("k:")}
    values = {json.loads(key[2:]): key for key in node if key.startswith("v:")}
    names = {name for keys in keyed for name, _value in keys}
    found: list[str | None] = [None] * len(value)
    several: dict[int, set[tuple[str, t.Any]]] = {}
    for index, item in enumerate(value):
        if isinstance(item, dict) and names:
            keys = {(name, item[name]) for name in names if isinstance(item.get(name), str | int | float)}
            found[index] = keyed.pop(frozenset(keys), None)
            if found[index] is None:
                several[index] = keys
        elif isinstance(item, COLLECTIONS) or item not in values:
            found[index] = f"i:{index}" if f"i:{index}" in node else None
        else:
            found[index] = values[item]
    while several:
        fitting = {index: [others for others in keyed if keys <= others] for index, keys in several.items()}
        index = min(fitting, key=lambda index: (len(fitting[index]), -len(several[index])))
        found[index] = keyed.pop(fitting[index][0]) if fitting[index] else None
        del several[index]
    return found


@functools.lru_cache(maxsize=1024)
def _keys(entry: str) -> t.Mapping[str, t.Any]:
    """The keys of an entry ``k:{...}``, with their values."""
    return types.MappingProxyType(json.loads(entry[2:]))


def _places(live: t.Any, entries: t.Iterable[str | None]) -> dict[str, int]:
    """The positions in the live list of the elements of these entries with keys, in the order of the entries."""
    keys = {entry: _keys(entry) for entry in entries if entry and entry.startswith("k:")}
    if not keys or not isinstance(live, list):
        return {}
    names = next(iter(keys.values()))
    there = {tuple(item.get(name) for name in names): index for index, item in enumerate(live) if isinstance(item, dict)}
    found = {entry: there.get(tuple(wanted.get(name) for name in names)) for entry, wanted in keys.items()}
    return {entry: index for entry, index in found.items() if index is not None}


def defaults_in_the_way(desired: Manifest, live: Manifest, refused: t.Iterable[str]) -> Trie:
    """The fieldsV1 of those of the server's own defaults that may be why it refuses these fields; empty where none is.

    Another member of a union may have a default that no manager applied or owns, such as ``strategy.rollingUpdate`` of a Deployment.
    """
    owned, found = _union(live["metadata"].get("managedFields") or []), Trie()
    for path in refused:
        here: _Place = (desired, live, owned, ())
        *above, last = re.findall(r"[^.\[\]]+", path) or [""]
        for key in above:
            here = _inside(key, *here)
        for want, have, node, trail in (here, _inside(last, *here)):
            if isinstance(want, dict) and isinstance(have, dict):
                free = [key for key in have if want.get(key) is None and f"f:{key}" not in node]
                # Beside the fields of ``spec`` itself lie those that the server allocates.
                beside = free if len(trail) > 1 or not above else []
                for key in [last] if last in free else beside if trail else []:
                    found = _united(found, functools.reduce(lambda below, part: {part: below}, reversed((*trail, f"f:{key}")), {}))
    return found


_Place = tuple[t.Any, t.Any, Trie, tuple[str, ...]]


def _inside(key: str, want: t.Any, have: t.Any, node: Trie, trail: tuple[str, ...]) -> _Place:
    """The desired value, the live value and the ownership one step below all three, and the entries on the path."""
    if isinstance(want, dict) and isinstance(have, dict):
        return want.get(key), have.get(key), node.get(f"f:{key}") or {}, (*trail, f"f:{key}")
    if isinstance(want, list) and isinstance(have, list) and key.isdecimal() and int(key) < len(have):
        for index, entry in enumerate(_entries_of(want, node)):
            if entry and int(key) in _places(have, [entry]).values():
                return want[index], have[int(key)], node[entry], (*trail, entry)
    return None, None, {}, trail


def _element_path(path: str, key: str) -> str:
    mark, _colon, rest = key.partition(":")
    if mark != "k":
        return f"{path}[{rest}]"
    return f"{path}[{','.join(f'{name}={value}' for name, value in _keys(key).items())}]"


def _paths(node: Trie, path: str) -> set[str]:
    found = set()
    for key, child in node.items():
        if key == ".":
            continue
        name = key.partition(":")[2]
        below = (f"{path}.{name}" if path else name) if key.startswith("f:") else _element_path(path, key)
        found |= {below} | _paths(child, below)
    return found

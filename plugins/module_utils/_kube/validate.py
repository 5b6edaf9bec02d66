# SPDX-License-Identifier: GPL-3.0-or-later
"""Validate a list of objects before anything is sent, and report all problems at once."""

from __future__ import annotations

import math
import re
import typing as t

from .._core import labels, quantity, shapes
from .._core.errors import InvalidInput
from .._core.sensitive import revealed
from . import redact
from .objects import COLLECTIONS, CONFIG_MAP, NAMESPACE, SECRET, SERVICE, FromFile, GroupKind, Manifest, Ref, group_kind, ref_of
from .order import BUILT_IN_GROUPS
from .quantities import quantities

# https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_API_VERSION = re.compile(r"v[0-9]+((alpha|beta)[0-9]+)?|[a-z0-9][-a-z0-9.]*/[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL_NAMED = (NAMESPACE, SERVICE)
# system:node:a is a role, example.com:signer:a a trust bundle, 2001:db8::1 an IPAddress; an aggregated API has its own rules.
_FREELY_NAMED = ("rbac.authorization.k8s.io", "certificates.k8s.io")
_IP_ADDRESS: GroupKind = ("networking.k8s.io", "IPAddress")
_JUDGED = (*COLLECTIONS, float)
_NUMBER_FIRST = re.compile(r"\s*[+-]?[0-9.]")


def check_objects(objects: t.Sequence[t.Any]) -> None:
    """Raise one InvalidInput that lists every problem of every object."""
    problems = []
    for index, manifest in enumerate(objects, 1):
        if not isinstance(manifest, dict):
            found = [f"is not a mapping but {type(manifest).__name__}"]
        else:
            found = [*_identity(manifest), *(misshapen := shapes.of_manifest(manifest))]
            found += [] if misshapen else [*_maps(manifest), *_quantities(manifest), *_values(manifest, "")]
            found = found or list(redact.annotation_problems(manifest))
        problems += [f"{_title(manifest, index)}: {problem}" for problem in found]
    refuse([*problems, *duplicates(objects)], "apply")


def refuse(problems: list[str], verb: str) -> None:
    """Raise one InvalidInput that lists the problems, if there are any. VERB: what was to be done with the objects."""
    if problems:
        raise InvalidInput(
            f"{len(problems)} problem{'s' if len(problems) > 1 else ''} in the objects to {verb}: " + "; ".join(problems) + ".",
            hint="Nothing was changed.",
            details={"problems": problems},
        )


def check_owner(owner: str) -> None:
    """Check an owner, which is stored as a label value."""
    if not owner or not labels.VALUE.fullmatch(owner):
        raise InvalidInput(f"owner {owner!r} is not a label value (letters, digits, '-', '_' and '.', at most 63).")


def check_deletion(objects: t.Sequence[t.Any]) -> None:
    """Check objects to delete, of which only the names matter."""
    refuse([
        f"{_title(manifest, index)}: {problem}"
        for index, manifest in enumerate(objects, 1)
        for problem in (_identity(manifest) if isinstance(manifest, dict) else ["is not a mapping"])
    ], "delete")  # fmt: skip


def _title(manifest: t.Any, index: int) -> str:
    if isinstance(manifest, FromFile):
        return f"{manifest.file}: {_title(dict(manifest), index)}"
    if isinstance(manifest, dict) and isinstance(manifest.get("metadata"), dict):
        namespace, name = manifest["metadata"].get("namespace"), manifest["metadata"].get("name")
        if name:
            return f"{manifest.get('kind') or 'object'} {f'{namespace}/' if namespace else ''}{name}"
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    return f"{kind} (object {index})" if kind else f"object {index}"


def _identity(manifest: Manifest) -> t.Iterator[str]:
    api_version, kind, metadata = manifest.get("apiVersion"), manifest.get("kind"), manifest.get("metadata")
    if not isinstance(api_version, str) or not _API_VERSION.fullmatch(api_version):
        yield (f"apiVersion is {api_version!r}, not something like v1 or apps/v1" if api_version else "apiVersion is missing")
    if not isinstance(kind, str) or not kind:
        yield "kind is missing"
    if not isinstance(metadata, dict):
        yield "metadata is missing"
        return
    if metadata.get("generateName") and not metadata.get("name"):
        yield "metadata.generateName creates a new object in every run; give metadata.name"
    elif metadata.get("name") in (None, ""):
        yield "metadata.name is missing"
    elif not isinstance(metadata["name"], str):
        yield f"metadata.name is not a string but {type(metadata['name']).__name__}; put it in quotes"
    else:
        yield from _name(metadata["name"], group_kind(manifest))
    namespace = metadata.get("namespace")
    if namespace not in (None, "") and (not isinstance(namespace, str) or not _LABEL.fullmatch(namespace)):
        yield f"metadata.namespace {namespace!r} is not a DNS label (lower case letters, digits and '-', at most 63)"


def _name(name: str, what: GroupKind) -> t.Iterator[str]:
    if what[0] not in BUILT_IN_GROUPS or what[0] in _FREELY_NAMED or what == _IP_ADDRESS:
        if "/" in name or "%" in name or name in (".", ".."):
            yield f"metadata.name {name!r} must not contain '/' or '%'"
    elif what in _LABEL_NAMED:
        if not _LABEL.fullmatch(name):
            yield f"metadata.name {name!r} is not a DNS label (lower case letters, digits and '-', at most 63)"
    elif not _SUBDOMAIN.fullmatch(name) or len(name) > 253:
        yield f"metadata.name {name!r} is not a DNS name (lower case letters, digits, '-' and '.', at most 253)"


def _maps(manifest: Manifest) -> t.Iterator[str]:
    """Maps of the API whose values must be strings; YAML reads unquoted ones as numbers and booleans."""
    metadata = manifest["metadata"] if isinstance(manifest.get("metadata"), dict) else {}
    for path, value in (
        ("metadata.labels", metadata.get("labels")),
        ("metadata.annotations", metadata.get("annotations")),
        *(
            ((key, manifest.get(key)) for key in ("data", "stringData", "binaryData"))
            if group_kind(manifest) in (CONFIG_MAP, SECRET)
            else ()
        ),
    ):
        if value is None:
            continue
        if not isinstance(value, dict):
            yield f"{path} is not a mapping"
            continue
        for key, item in value.items():
            # The server would store an empty value, and an empty password admits any client.
            if item is None and (path == "stringData" or (path == "data" and group_kind(manifest) == SECRET)):
                yield f"{path}.{key} is null; give it a value, '' for an empty one"
            elif not isinstance(revealed(item), str) and not (item is None and path != "metadata.labels"):
                yield f"{path}.{key} is not a string but {type(item).__name__}; put it in quotes"
            elif path == "metadata.labels" and not labels.VALUE.fullmatch(str(item)):
                yield f"{path}.{key}: {item!r} is not a label value (letters, digits, '-', '_' and '.', at most 63)"


def _quantities(manifest: Manifest) -> t.Iterator[str]:
    for path, value in quantities(manifest):
        # emptyDir has other fields, too.
        if isinstance(value, str) and _NUMBER_FIRST.match(value):
            try:
                quantity.parse(value)
            except ValueError as exc:
                yield f"{path}: {exc}"


def _values(value: t.Any, path: str) -> t.Iterator[str]:
    """Values that JSON cannot express, and environment values, wherever a pod is described."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                problem = "null" if key is None else f"{key!r} beside the same as text"
                yield f"{path or 'the object'} has the key {problem}; give it a name in quotes"
            if isinstance(item, _JUDGED):
                below = f"{path}.{key}" if path else str(key)
                if key in ("containers", "initContainers") and isinstance(item, list):
                    yield from _environment(item, below)
                yield from _values(item, below)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _values(item, f"{path}[{index}]")
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{path} is {value}, which JSON has no number for; put it in quotes"


def _environment(containers: list[t.Any], path: str) -> t.Iterator[str]:
    for container in containers:
        variables = container.get("env") if isinstance(container, dict) else None
        for variable in variables if isinstance(variables, list) else ():
            value = variable.get("value") if isinstance(variable, dict) else None
            if value is not None and not isinstance(value, str):
                yield (
                    f"{path}[{container.get('name')}].env[{variable.get('name')}].value is not a string but "
                    f"{type(value).__name__}; put it in quotes"
                )


def duplicates(objects: t.Sequence[t.Any]) -> list[str]:
    """The objects that occur more than once."""
    found: dict[t.Any, list[Ref]] = {}
    for manifest in objects:
        try:
            ref = ref_of(manifest)
            found.setdefault(ref.identity, []).append(ref)
        except (KeyError, TypeError, AttributeError):
            continue  # named above
    return [f"{refs[-1]}: occurs {len(refs)} times" for refs in found.values() if len(refs) > 1]

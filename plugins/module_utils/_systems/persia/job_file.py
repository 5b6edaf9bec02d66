# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A job file of PERSIA's documentation, a PersiaJob and perhaps a NatsCluster, as options of this collection.

No field of the file is dropped silently: each is taken over under its own name, or it is among the differences with the reason,
or the file is refused. The names of 2021 (globalConfigPath) and today's (persiaEnv) are both read.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t
from collections.abc import Mapping

from ..._core.errors import InvalidInput
from ..._manifests.meta import suggest
from .job_fields import JOB, MOUNT, NATS, VARIABLE, Field, section_fields
from .operator import SECTIONS
from .spec import NATS_ADDRESS, Role

_NATS_VARIABLES = ("PERSIA_NATS_URL", "PERSIA_NATS_IP")
_NATS_URL = re.compile(r"nats://([a-z0-9]([a-z0-9-]*[a-z0-9])?):4222/?")
# Tags that name another image tomorrow.
_MOVING = re.compile(r"(^|/)[^:@/]+(:(latest|dev))?$")


@dataclasses.dataclass
class Translation:
    """The options that a file requests. OPTIONS are those of persia_job, NATS those of nats_cluster."""

    options: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    nats: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    differences: list[str] = dataclasses.field(default_factory=list)
    refused: list[str] = dataclasses.field(default_factory=list)

    def take(self, value: t.Any, fields: Mapping[str, Field], where: str) -> dict[str, t.Any]:
        """Return the given fields under the names of our options; record unknown fields as refused."""
        if not isinstance(value, Mapping):
            self.refused.append(f"{where}: {value!r} is not a mapping.")
            return {}
        taken: dict[str, t.Any] = {}
        for key, item in value.items():
            field, place = fields.get(key), f"{where}.{key}"
            if field is None:
                near = suggest(str(key), fields)
                self.refused.append(f"{place}: unknown" + (f"; did you mean {near}?" if near else "."))
            elif isinstance(field.inside, Mapping):
                self._merge(taken, self.take(item, field.inside, place), place)
            else:
                if field.why:
                    self.differences.append(f"{place}: {field.why}")
                if field.name:
                    self._merge(taken, {field.name: item}, place)
        return taken

    def _merge(self, taken: dict[str, t.Any], more: Mapping[str, t.Any], where: str) -> None:
        twice = sorted(taken.keys() & more.keys())
        self.refused += [f"{where}: {name} is given a second time; keep one of both." for name in twice]
        taken |= more

    def missing(self, where: str, instead: str) -> None:
        """Note what the file leaves to the variables of role persia."""
        self.differences.append(f"{where}: not in the file, so {instead}")


def translate(documents: t.Sequence[t.Any], source: str) -> Translation:
    """Return the options for a job file, or raise InvalidInput with all fields that cannot be taken over."""
    found, known = Translation(), {"PersiaJob": _job, "NatsCluster": _nats_cluster}
    kinds: list[str] = []
    for document in documents:
        kind = document.get("kind") if isinstance(document, Mapping) else None
        if kind in known and kind not in kinds:
            known[str(kind)](found, document)
        else:
            why = "there is one already" if kind in kinds else "a job file has a PersiaJob and, if at all, a NatsCluster"
            found.refused.append(f"kind {kind}: {why}. Apply other objects with muster.ml.apply.")
        kinds.append(str(kind))
    if "PersiaJob" not in kinds:
        found.refused.append("kind PersiaJob: missing.")
    if found.refused:
        raise InvalidInput(f"{source} cannot be run as it is: {' '.join(found.refused)}", "Nothing was changed.")
    return found


def _head(found: Translation, document: Mapping[str, t.Any], api_version: str) -> tuple[t.Any, t.Any]:
    """Return name and spec of an object; its other fields are set by the cluster."""
    kind, metadata = document["kind"], document.get("metadata") or {}
    if document.get("apiVersion") != api_version:
        found.refused.append(f"{kind}: apiVersion {document.get('apiVersion')} is not {api_version}.")
    if not metadata.get("name"):
        found.refused.append(f"{kind}: metadata.name is missing.")
    for name in sorted(metadata.keys() - {"name", "namespace"}):
        found.differences.append(f"{kind} metadata.{name}: ignored; the objects have labels and annotations of this collection")
    if "namespace" in metadata:
        found.differences.append(f"{kind} metadata.namespace: ignored; everything is in persia_namespace")
    for name in sorted(document.keys() - {"apiVersion", "kind", "metadata", "spec"}):
        found.differences.append(f"{kind} {name}: ignored; the cluster writes it")
    return metadata.get("name"), document.get("spec") or {}


def _job(found: Translation, document: Mapping[str, t.Any]) -> None:
    name, spec = _head(found, document, "persia.com/v1")
    sections = {role: spec[section] for role, section in SECTIONS.items() if spec.get(section) is not None}
    rest = {key: item for key, item in spec.items() if key not in SECTIONS.values()}
    found.options = found.take(rest, JOB, "spec")
    found.options["env"] = _env(found, found.options.get("env") or [], "spec.env")
    found.options["name"] = name
    for option in ("global_config_path", "embedding_config_path"):
        if option not in found.options:
            found.missing(f"spec.persiaEnv ({option})", f"persia_{option.removesuffix('_path')} is used")
    if "image_pull_policy" not in found.options:
        found.missing("spec.imagePullPolicy", "persia_image_pull_policy is used; PERSIA's operator takes Always")
    for role, section in SECTIONS.items():
        entry = found.options.pop(f"{role}.entry", None)
        group = _group(found, role, section, sections.get(role))
        found.options[role] = group | ({"entry": entry} if entry else {})
        if role in ("nn_worker", "dataloader") and not entry:
            found.missing(f"spec.persiaEnv (entry of {section})", f"persia_{role}_entry is used")


def _group(found: Translation, role: Role, section: str, given: t.Any) -> dict[str, t.Any]:
    where = f"spec.{section}"
    if given is None:
        found.missing(where, f"it is made as persia_{role}_replicas and the like say")
        return {}
    group = found.take(given, section_fields(role), where)
    if "env" in group:
        group["env"] = _env(found, group["env"], f"{where}.env")
    mounts = enumerate(group.get("volume_mounts") or [])
    if "volume_mounts" in group:
        group["volume_mounts"] = [found.take(mount, MOUNT, f"{where}.volumeMounts[{index}]") for index, mount in mounts]
    if "replicas" not in group:
        found.refused.append(f"{where}.replicas: missing.")
    if "image" not in group:
        found.missing(f"{where}.image", "persia_image is used; PERSIA's operator takes persiaml/...-runtime:latest")
    elif _MOVING.search(group["image"]):
        found.differences.append(f"{where}.image: {group['image']} may be another image tomorrow; a digest would not")
    return group


def _env(found: Translation, variables: t.Any, where: str) -> list[dict[str, t.Any]]:
    """Variables as options have them, without that of NATS, which is ours to set."""
    kept = []
    for index, variable in enumerate(variables):
        taken = found.take(variable, VARIABLE, f"{where}[{index}]")
        if taken.get("name") in _NATS_VARIABLES:
            _nats_url(found, taken, where)
        else:
            kept.append(taken)
    return kept


def _nats_url(found: Translation, variable: Mapping[str, t.Any], where: str) -> None:
    name, url = variable["name"], str(variable.get("value") or "")
    matched = _NATS_URL.fullmatch(url)
    if name == "PERSIA_NATS_IP":
        found.differences.append(f"{where} {name}: renamed to PERSIA_NATS_URL, as PERSIA calls it since December 2021")
    if matched:
        _nats_name(found, matched[1], f"{where} {name}")
    elif NATS_ADDRESS.fullmatch(url):
        found.options["nats_url"] = url
        found.differences.append(f"{where} {name}: the servers at {url} are used, and none are made (persia_nats_url)")
    else:
        found.refused.append(f"{where} {name}: {url or 'no value'}; give nats://HOST:PORT, or nats://NAME:4222, whose servers are made.")


def _nats_cluster(found: Translation, document: Mapping[str, t.Any]) -> None:
    name, spec = _head(found, document, "nats.io/v1alpha2")
    found.nats |= found.take(spec, NATS, "NatsCluster spec")
    _nats_name(found, name, "NatsCluster metadata.name")


def _nats_name(found: Translation, name: t.Any, where: str) -> None:
    before = found.nats.setdefault("name", name)
    if before != name:
        found.refused.append(f"{where}: {name}, but NATS is called {before} elsewhere in the file.")

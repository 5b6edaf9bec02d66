# SPDX-License-Identifier: GPL-3.0-or-later
"""A job file of another program, such as a PersiaJob, as options of this collection.

No field of the file is dropped silently: each is taken over under its own name, or it is among the differences with the reason,
or the file is refused. What the fields of a kind are called is a table of the system that reads it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import typing as t
from collections.abc import Callable, Iterator, Mapping, Sequence

from .._core.errors import InvalidInput
from .meta import suggest


class Field(t.NamedTuple):
    """NAME is our option, none where the field is ignored. WHY explains the difference. INSIDE are the fields of a mapping."""

    name: str = ""
    why: str = ""
    inside: Mapping[str, Field] | None = None


VARIABLE: Mapping[str, Field] = {"name": Field("name"), "value": Field("value"), "valueFrom": Field("value_from")}

_MOUNT: Mapping[str, Field] = {
    **{key: Field(key) for key in ("name", "mountPath", "mountPropagation", "readOnly", "recursiveReadOnly", "subPath", "subPathExpr")},
    "read_only": Field("readOnly", "renamed to readOnly; Kubernetes knows no read_only, and mounts to write"),
}

_CONTAINER: Mapping[str, Field] = {
    "name": Field(why="ignored; the container is named by this collection"),
    "image": Field("image"),
    "imagePullPolicy": Field("image_pull_policy"),
    "command": Field("command"),
    "args": Field("args"),
    "env": Field("env"),
    "resources": Field("resources"),
    "volumeMounts": Field("volume_mounts"),
    "securityContext": Field("security_context"),
    "ports": Field(why="ignored; pods reach each other on all ports"),
}

_POD: Mapping[str, Field] = {
    "containers": Field("containers"),
    "initContainers": Field("init_containers"),
    "volumes": Field("volumes"),
    "nodeSelector": Field("node_selector"),
    "tolerations": Field("tolerations"),
    "affinity": Field("affinity"),
    "topologySpreadConstraints": Field("topology_spread_constraints"),
    "priorityClassName": Field("priority_class_name"),
    "serviceAccountName": Field("service_account_name"),
    "terminationGracePeriodSeconds": Field("termination_grace_period_seconds"),
    "imagePullSecrets": Field("image_pull_secrets"),
    "securityContext": Field("pod_security_context"),
    "restartPolicy": Field(why="ignored; failed pods start again within the job's backoff_limit, and never those that are done"),
}

_TEMPLATE: Mapping[str, Field] = {
    "apiVersion": Field(),
    "kind": Field(),
    "metadata": Field(inside={"labels": Field("labels"), "annotations": Field(why="ignored"), "creationTimestamp": Field()}),
    "spec": Field("spec"),
}


UNFILLED = re.compile(r"<[^<>]+>|\u2039[^\u2039\u203a]+\u203a")
_LATEST = re.compile(r"(^|/)[^:@/]+(:latest)?$")


@dataclasses.dataclass
class Translation:
    """The options that a file requests, and what is different from it."""

    options: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    differences: list[str] = dataclasses.field(default_factory=list)
    refused: list[str] = dataclasses.field(default_factory=list)

    def take(self, value: t.Any, fields: Mapping[str, Field], where: str) -> dict[str, t.Any]:
        """Return the given fields that are not null under the names of our options; record unknown fields as refused."""
        if not isinstance(value, Mapping):
            self.refused.append(f"{where}: {value!r} is not a mapping.")
            return {}
        taken: dict[str, t.Any] = {}
        for key, item in value.items():
            field, place = fields.get(key), f"{where}.{key}"
            if field is None:
                near = suggest(str(key), fields)
                self.refused.append(
                    f"{place}: unknown"
                    + (f"; did you mean {near}?" if near and not str(key).startswith(near) else "; no option has it, but overrides may.")
                )
            elif item is None:
                continue  # For Kubernetes a field that is null is not there.
            elif isinstance(field.inside, Mapping):
                for name, inner in self.take(item, field.inside, place).items():
                    self.put(taken, Field(name), inner, place)
            else:
                self.put(taken, field, item, place)
        return taken

    def put(self, taken: dict[str, t.Any], field: Field, value: t.Any, where: str) -> None:
        """Add the value of a field to TAKEN, or refuse another one for the same option."""
        if field.why:
            self.differences.append(f"{where}: {field.why}")
        if field.name and taken.setdefault(field.name, value) != value and str(taken[field.name]) != str(value):
            self.refused.append(f"{where}: {field.name} is given a second time; keep one of both.")

    def unfilled(self, value: t.Any, where: str) -> None:
        """Refuse a name that the reader of the file is to write, such as <your_image>."""
        if blank := UNFILLED.search(str(value or "")):
            self.refused.append(f"{where} {value}: {blank[0]} stands for a name of yours; write it.")

    def missing(self, where: str, instead: str) -> None:
        """Note what the file leaves to the variables of a role."""
        self.differences.append(f"{where}: not in the file, so {instead}")

    def sequence(self, value: t.Any, where: str) -> list[t.Any]:
        """Return a list of the file; anything else is refused."""
        if value is not None and not isinstance(value, list):
            self.refused.append(f"{where}: {value!r} is not a list.")
        return value if isinstance(value, list) else []

    def words(self, value: t.Any, where: str) -> list[str]:
        """Return the words of a command; YAML makes others of plain words, such as 007, 1e3 and yes, and those are refused."""
        words = self.sequence(value, where)
        for index, word in enumerate(words):
            if not isinstance(word, str):
                self.refused.append(f"{where}[{index}]: {word!r} is not text but {type(word).__name__}; put it in quotes.")
        return [str(word) for word in words]

    def variables(self, env: t.Any, known: Mapping[str, Field], where: str) -> tuple[dict[str, t.Any], list[dict[str, t.Any]]]:
        """Return the options that KNOWN variables are, and the other variables as options have them."""
        options: dict[str, t.Any] = {}
        kept = []
        for index, variable in enumerate(self.sequence(env, where)):
            taken = self.take(variable, VARIABLE, f"{where}[{index}]")
            field = known.get(str(taken.get("name")))
            if field is None:
                kept.append(taken if "value_from" in taken or not taken else {"value": "", **taken})
            elif field.name and "value" not in taken:
                self.refused.append(f"{where} {taken['name']}: no value, and {field.name} needs one that can be read.")
            else:
                self.put(options, field, taken.get("value"), f"{where} {taken['name']}")
        return options, kept

    def mounts(self, group: dict[str, t.Any], where: str) -> None:
        """Read the mounts of a group in place."""
        if "volume_mounts" in group:
            found = enumerate(self.sequence(group["volume_mounts"], f"{where}.volumeMounts"))
            group["volume_mounts"] = [self.take(mount, _MOUNT, f"{where}.volumeMounts[{index}]") for index, mount in found]

    def pod(self, template: t.Any, where: str) -> dict[str, t.Any]:
        """Return the options of a pod template with one container, and ``labels``, ``command`` and ``args`` as they are."""
        taken = self.take(template, _TEMPLATE, where)
        place = f"{where}.spec"
        options = self.take(taken.pop("spec", {}), _POD, place)
        containers = self.sequence(options.pop("containers", []), f"{place}.containers")
        if len(containers) != 1:
            self.refused.append(f"{place}.containers: {len(containers)}, and a group has one container.")
            return options
        container = self.take(containers[0], _CONTAINER, f"{place}.containers[0]")
        self.mounts(container, f"{place}.containers[0]")
        secrets = self.sequence(options.pop("image_pull_secrets", None), f"{place}.imagePullSecrets")
        named = {"image_pull_secrets": [str(secret.get("name")) for secret in secrets]} if secrets else {}
        for label in taken.get("labels") or {}:
            if str(label).startswith("muster.ml/"):
                self.refused.append(f"{where}.metadata.labels.{label}: this collection selects pods by it; take it out.")
        if "image_pull_policy" not in container and _LATEST.search(str(container.get("image") or "")):
            self.missing(f"{place}.containers[0].imagePullPolicy", "IfNotPresent is used; Kubernetes takes Always for tag latest or none")
        if "security_context" not in container or "pod_security_context" not in options:
            self.missing(f"{place} securityContext", "that of Pod Security level restricted is used, with user 1000")
        return {**taken, **options, **container, **named}


class Kind(t.NamedTuple):
    """A kind of a job file: the API version that is read, the reader of name and spec, and whether a file may have several."""

    api_version: str
    read: Callable[[Translation, str, Mapping[str, t.Any]], None]
    many: bool = False


def translate(
    documents: Sequence[t.Any], source: str, kinds: Mapping[str, Kind], jobs: Sequence[str], end: Callable[[Translation], None]
) -> Translation:
    """Return the options for a job file with one of the kinds JOBS, or raise InvalidInput with all fields that cannot be taken over.

    END completes the options when all documents are read.
    """
    found, others = Translation(), " or ".join(sorted(kinds.keys() - set(jobs))) or "none"
    seen: list[str] = []
    for document in documents:
        if document is None:  # of comments only, or what follows a last ---
            continue
        word = document.get("kind") if isinstance(document, Mapping) else None
        known = kinds.get(str(word))
        if known is None or (word in seen and not known.many):
            why = "there is one already" if known else f"a job file has {' or '.join(jobs)}, and of others {others}"
            found.refused.append(f"kind {word}: {why}. Apply other objects with muster.ml.apply.")
        else:
            with _of_its_kinds(found, f"kind {word}"):
                known.read(found, *_head(found, document, known.api_version))
        seen.append(str(word))
    if sum(job in seen for job in jobs) != 1:
        there = "only one of them" if set(jobs) & set(seen) else "missing"
        found.refused.append(f"kind {' or '.join(jobs)}: {there}.")
    with _of_its_kinds(found, "the file as a whole"):
        end(found)
    if found.refused:
        raise InvalidInput(f"{source} cannot be run as it is: {' '.join(found.refused)}", "Nothing was changed.")
    return found


@contextlib.contextmanager
def _of_its_kinds(found: Translation, where: str) -> Iterator[None]:
    """Refuse a file in which a field has a value of another kind than Kubernetes gives it, such as a text in place of a mapping."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        step = "`kubectl apply --dry-run=client --validate=strict -f FILE` names the field."
        found.refused.append(f"{where}: a field has a value of another kind than Kubernetes gives it ({error}). {step}")


def _head(found: Translation, document: Mapping[str, t.Any], api_version: str) -> tuple[str, Mapping[str, t.Any]]:
    """Return name and spec of an object; its other fields are set by the cluster."""
    kind, metadata = document["kind"], document.get("metadata") or {}
    name = metadata.get("name")
    if document.get("apiVersion") != api_version:
        found.refused.append(f"{kind}: apiVersion {document.get('apiVersion')} is not {api_version}.")
    if not name:
        found.refused.append(f"{kind}: metadata.name is missing.")
    for key in sorted(metadata.keys() - {"name", "namespace"}):
        found.differences.append(f"{kind} {name} metadata.{key}: ignored; the objects have labels and annotations of this collection")
    if "namespace" in metadata:
        found.differences.append(f"{kind} {name} metadata.namespace: ignored; everything is in the namespace of the role")
    for key in sorted(document.keys() - {"apiVersion", "kind", "metadata", "spec"}):
        found.differences.append(f"{kind} {name} {key}: ignored; the cluster writes it")
    return str(name or ""), document.get("spec") or {}

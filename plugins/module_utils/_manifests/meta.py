# SPDX-License-Identifier: GPL-3.0-or-later
"""Helpers for all builders: names, labels, quantities and hashes.

Pure: only the standard library, no Ansible, no Kubernetes client.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import re
import typing as t
from collections.abc import Iterable, Mapping
from decimal import Decimal

from .._core.errors import InvalidInput
from .._core.quantity import parse, suggestion

Manifest = dict[str, t.Any]

DEPLOYMENT = ("apps/v1", "Deployment")
STATEFUL_SET = ("apps/v1", "StatefulSet")
LEADER_WORKER_SET = ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
LABEL_JOB = "muster.ml/job"
LABEL_GROUP = "muster.ml/group"
LABEL_ROLE = "muster.ml/role"
# Those of Kueue, on what is to be queued.
LABEL_QUEUE = "kueue.x-k8s.io/queue-name"
LABEL_QUEUE_PRIORITY = "kueue.x-k8s.io/priority-class"
LABEL_POD_GROUP = "kueue.x-k8s.io/pod-group-name"
"""A label of Kueue on pods of several owners that are admitted together; the value is the name of their Workload."""
ANNOTATION_SPEC_PARTS = "muster.ml/spec-parts"
ANNOTATION_CONFIG_HASH = "muster.ml/config-hash"
ANNOTATION_RENDERED = "muster.ml/rendered"
ANNOTATION_SERVES = "muster.ml/serves"
"""Services of an object that are not found by its name, as words: ``instances:persiajobs.persia.com`` (with the namespace before it,
``ml/...``, if only there), ``resource:nvidia.com/gpu``, ``metrics:Pods``. It is not deleted while others use that (_kube/uses.py)."""
ANNOTATION_USES = "muster.ml/uses"
"""Uses of an object that its spec does not show, as words: host names, or KIND:NAME of an object in its own namespace or in none."""
ROLE_TRAINER = "nn-worker"
"""Value of LABEL_ROLE on the Job that decides whether a PERSIA training has ended. It is PERSIA's own word for its trainers."""

# A StatefulSet puts "<name>-<10 character revision>" into a pod label, and a label ends at 63 characters.
STATEFULSET_NAME_MAX = 52
DNS_LABEL_MAX = 63
# The API server refuses larger objects; etcd's own limit is 1.5 MiB for the whole request.

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_ENV_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


def suggest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, if one is near enough."""
    candidates = sorted(known)
    matches = difflib.get_close_matches(word, candidates, n=1, cutoff=0.6)
    if matches:
        return matches[0]
    folded = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name in candidates}
    return folded.get(re.sub(r"[^a-z0-9]", "", word.lower()))


def refuse_unknown_keys(value: Mapping[str, t.Any], known: Iterable[str], where: str) -> None:
    """Raise for the first key of VALUE that is not KNOWN, with the one that was probably meant."""
    names = list(known)
    for key in value:
        if key not in names:
            near = suggest(str(key), names)
            hint = f"Did you mean '{near}'?" if near else f"Known keys: {', '.join(sorted(names))}."
            raise InvalidInput(f"{where}: unknown key '{key}'.", hint)


def check_name(name: str, what: str, *, limit: int = DNS_LABEL_MAX, service: bool = False) -> str:
    """Return NAME if Kubernetes accepts it as the name of WHAT (and of its pods and DNS records)."""
    pattern, rule = (_DNS_1035, "start with a letter and ") if service else (_DNS_LABEL, "")
    if not pattern.fullmatch(name):
        raise InvalidInput(
            f"{what}: '{name}' is not a valid name.",
            f"It must {rule}hold only lower-case letters, digits and '-', and end with a letter or digit.",
        )
    if len(name) > limit:
        raise InvalidInput(f"{what}: '{name}' has {len(name)} characters, {limit} fit.", "Choose a shorter name.")
    return name


def number(text: str) -> t.Any:
    """Return the number that TEXT is, or else the text, which check_count refuses."""
    return int(text) if text.isdecimal() else text


def check_count(value: int, what: str, *, minimum: int = 0) -> int:
    """Return VALUE if it is a whole number of at least MINIMUM."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(f"{what}: {value!r} is not a whole number.")
    if value < minimum:
        raise InvalidInput(f"{what}: {value} is too small.", f"It must be {minimum} or more.")
    return value


def check_port(value: int, what: str) -> int:
    """Return VALUE if it is a TCP or UDP port."""
    check_count(value, what, minimum=1)
    if value > 65535:
        raise InvalidInput(f"{what}: {value} is not a port.", "Ports end at 65535.")
    return value


def check_sha256(value: str, what: str) -> str:
    """Return VALUE if it is a SHA-256 as sha256sum prints it."""
    if not re.fullmatch(r"[0-9a-f]{64}", value):
        raise InvalidInput(f"{what}: not 64 hexadecimal digits in lower case.", "sha256sum FILE prints them.")
    return value


def check_pattern(text: str, what: str, flags: int = 0) -> re.Pattern[str]:
    """Return TEXT as a regular expression."""
    try:
        return re.compile(text, flags)
    except re.error as error:
        raise InvalidInput(f"{what}: '{text}' is not a regular expression: {error}.") from error


def check_env_name(name: str) -> str:
    """Return NAME if it can name an environment variable in a pod."""
    if not _ENV_NAME.fullmatch(name):
        raise InvalidInput(f"env: '{name}' cannot name an environment variable.")
    return name


def quantity(value: t.Any, what: str) -> str:
    """Return VALUE as Kubernetes writes quantities; 12 GB and other human forms are refused with the right spelling."""
    text = str(value)
    try:
        number = parse(value)
    except ValueError:
        number = Decimal(-1)
    if number < 0:
        raise InvalidInput(f"{what}: '{text}' is not a quantity.", suggestion(text))
    return text


def pinned_tag(image: str, hint: str) -> str:
    """The tag of IMAGE, which is empty where a digest pins it. Refused is an image that the next pull may change."""
    named, _at, digest = image.partition("@")
    tag = named.rpartition(":")[2] if ":" in named.rpartition("/")[2] else ""
    if not digest and tag in ("", "latest"):
        raise InvalidInput(f"image: '{image}' is not pinned.", hint)
    return tag


def owner(kind: str, name: str) -> str:
    """The label value that ties objects to the task that created them: a valid label value of at most 63 characters."""
    return _label_value(f"{kind}.{name}")


def _label_value(text: str) -> str:
    if len(text) <= DNS_LABEL_MAX:
        return text
    return f"{text[:52]}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def owners(texts: Iterable[str]) -> set[str]:
    """The label values of owners that are written out as ``KIND.NAMESPACE.NAME``, however long; objects as KIND/NAME stay as they are."""
    return {text if "/" in text else _label_value(text) for text in texts}


def owner_of(kind: str, namespace: str, name: str) -> str:
    """Owners are looked up in all namespaces, so the namespace is part of them."""
    return owner(kind, f"{namespace}.{name}")


def metadata(name: str, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> Manifest:
    """The metadata of an object; the labels are a copy, because other objects share them."""
    return compact({"name": name, "namespace": namespace, "labels": dict(labels or {})})


def queued(described: Manifest, queue: str | None, priority_class: str | None) -> Manifest:
    """The metadata DESCRIBED of an object, with the labels of the queue of Kueue that is to admit it, if there is one."""
    if priority_class and not queue:
        raise InvalidInput("queue_priority_class: there is no queue without queue_name.")
    labels = {LABEL_QUEUE: queue, **({LABEL_QUEUE_PRIORITY: priority_class} if priority_class else {})} if queue else {}
    return {**described, "labels": {**described["labels"], **labels}}


def spec_hash(value: t.Any) -> str:
    """A short hash of a plain value, the same on every machine and run."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def changed_keys(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The keys that differ. An option that changed alike in all groups (``group.option``) is listed once."""
    changed = {key for key in {*then, *now} if then.get(key) != now.get(key)}
    groups = {key.partition(".")[0] for key in now if "." in key}
    for option in {key.partition(".")[2] for key in changed} - {""}:
        everywhere = {f"{group}.{option}" for group in groups}
        if everywhere <= changed:
            changed = {*changed - everywhere, option}
    return sorted(changed)


def chosen(value: t.Any) -> t.Any:
    """VALUE, each dataclass in it as a mapping of the fields that are set and differ from their defaults.

    So an option that a new version of Muster has, with a default, changes no training that was made before.
    """
    if isinstance(value, Mapping):
        return {key: chosen(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [chosen(one) for one in value]
    if not dataclasses.is_dataclass(value):
        return value
    given = {one.name: getattr(value, one.name) for one in dataclasses.fields(value) if getattr(value, one.name) != one.default}
    return {name: chosen(found) for name, found in given.items() if found not in (None, (), [], {}, "")}


def compact(mapping: Mapping[str, t.Any]) -> Manifest:
    """MAPPING without the keys whose value is None, an empty list or an empty dict."""
    return {key: value for key, value in mapping.items() if value is not None and value != [] and value != {}}

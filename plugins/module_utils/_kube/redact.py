# SPDX-License-Identifier: GPL-3.0-or-later
"""Seal the secret values of objects: the ``data`` of a Secret, and the values that the annotation ``muster.ml/sensitive`` names.

``seal_secrets`` puts each of them into a Sensitive, which nothing can print. It is called where objects come in: from the user
(prepare.py) and from the API server (client.py). ``seal_everything`` also looks for Secrets inside of an object, which takes longer: it is
called for objects that may be shown (prepare.py, write.py).

Objects that only look like a Secret are sealed as well: a misspelt kind is refused, but must not be shown before.
"""

from __future__ import annotations

import base64
import difflib
import functools
import json
import re
import typing as t

from .._core.sensitive import Sensitive, revealed
from .objects import COLLECTIONS, DEFINITION, Manifest, annotations_of, group_kind

ANNOTATION_SENSITIVE = "muster.ml/sensitive"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

Path = tuple[str, ...]
EVERY = "*"

# One step of a path as kubectl's JSONPath writes it: .key, .key\\.with\\.dots, ['any key'], [0], [*]; or the comma between two paths.
_STEP = re.compile(r"\s*(?P<comma>,)\s*|\.?(?P<key>(?:\\.|[^\s.,\[\]\\])+)|\[(?P<index>\d+|\*)\]|\['(?P<quoted>[^']*)'\]")
# https://kubernetes.io/docs/concepts/configuration/secret/#secret-types, and that of Helm.
_TYPE = re.compile(r"\s*(opaque|([a-z0-9.-]+\.)?(kubernetes\.io|helm\.sh)/[a-z0-9.-]+)\s*", re.IGNORECASE)
_WORD = re.compile(r"[a-z]+")
_KIND = re.compile(r"ind\W+(\w+)")  # without its first letter, which may be a capital: this finds ten times as quickly
_TELLING = frozenset(("kind", "data", "stringData"))
"""A map without any of these keys is no Secret and does not look like one."""
_DATA = ("data", "stringdata", "binarydata")
_ALIKE = 0.75
"""Least likeness, as difflib counts it, of a word to "secret": Sercet and secrets have more, SealedSecret and SecretStore less."""
_SHORTEST = 3
"""Least length of a secret value that is searched for in a server's messages; shorter ones occur in many words."""
_SHORTEST_LINE = 8
"""The same for a line of a secret text, which a webhook may quote alone."""


def marked_paths(manifest: Manifest) -> list[Path]:
    """The paths that the annotation names; ValueError where one cannot be read."""
    text = (annotations_of(manifest).get(ANNOTATION_SENSITIVE) or "").strip()
    paths: list[Path] = [()]
    position = 0
    while position < len(text):
        step = _STEP.match(text, position)
        if not step:
            raise ValueError(f"{text[position:]!r} is not a path such as spec.password, data['nats.conf'] or spec.users[*].token")
        if step["comma"]:
            paths.append(())
        else:
            key = step["index"] or step["quoted"] or re.sub(r"\\(.)", r"\1", step["key"] or "")
            paths[-1] = (*paths[-1], key)
        position = step.end()
    return [path for path in paths if path]


def annotation_problems(manifest: Manifest) -> t.Iterator[str]:
    """Return the problems of the annotation. A path that matches nothing is an error, because a mistyped one would show the secret."""
    try:
        paths = marked_paths(manifest)
    except ValueError as exc:
        yield f"annotation {ANNOTATION_SENSITIVE}: {exc}"
        return
    for path in paths:
        if not list(_places(manifest, path)):
            yield (
                f"annotation {ANNOTATION_SENSITIVE}: there is no {' > '.join(path)} in the object (a key with dots is written "
                "['like.this'], every item of a list [*])"
            )


@functools.lru_cache(maxsize=1024)
def is_like_secret(kind: str, meant: tuple[str, ...] = ("secret",)) -> bool:
    """Whether a kind is Secret, in any API group, or is meant to be: in other letters, with blanks, in the plural, or misspelt.

    Or a key is one of the words that are MEANT.
    """
    words = _WORD.findall(kind.casefold())
    pairs = ((word, one) for word in (*words, "".join(words)) for one in meant)
    return any(difflib.SequenceMatcher(None, *pair).ratio() >= _ALIKE for pair in pairs)


def may_tell(text: str) -> bool:
    """Whether objects, as YAML, JSON or Python write them, may have secret values."""
    return "stringData" in text or ANNOTATION_SENSITIVE in text or any(map(is_like_secret, {*_KIND.findall(text)}))


def seal_secrets(manifest: Manifest) -> Manifest:
    """Put the secret values into Sensitive, in place. The keys stay readable."""
    return _sealed_at(manifest, None, ((manifest, key) for key in _secret_keys(manifest)))


def seal_everything(manifest: Manifest, like: Manifest | None = None) -> Manifest:
    """Seal the secrets of an object, those that an object LIKE this one marks, and the values of every Secret below it."""
    return _sealed_at(manifest, like, () if group_kind(manifest) == DEFINITION else _secrets_below(manifest))


def _sealed_at(manifest: Manifest, like: Manifest | None, found: t.Iterable[tuple[t.Any, t.Any]]) -> Manifest:
    paths: list[Path] = []
    for marking in (manifest, like or {}):
        if ANNOTATION_SENSITIVE in annotations_of(marking):
            try:
                paths += marked_paths(marking)
            except ValueError:  # the annotation of another tool: its meaning is unknown, so nothing is shown
                paths += [(key,) for key in manifest if key not in ("apiVersion", "kind", "metadata", "status")]
    places = [*found, *(place for path in paths for place in _places(manifest, path))]
    for container, key in places:
        container[key] = _sealed(container[key])
    if (places or paths) and _LAST_APPLIED in annotations_of(manifest):
        manifest["metadata"]["annotations"][_LAST_APPLIED] = Sensitive(annotations_of(manifest)[_LAST_APPLIED])
    return manifest


def _secret_keys(value: dict[str, t.Any]) -> list[str]:
    """The keys of a map whose values are secret because it is a Secret, or looks like one."""
    kind = value.get("kind")
    if isinstance(kind, str) and is_like_secret(kind):
        return [key for key in value if isinstance(key, str) and (key in ("data", "stringData") or is_like_secret(key, _DATA))]
    # Whether each is a map whose values are all scalars, as in a Secret.
    plain, flat = (
        isinstance(part, dict) and bool(part) and not any(isinstance(item, COLLECTIONS) for item in part.values())
        for part in (value.get("stringData"), value.get("data"))
    )
    typed = isinstance(value.get("type"), str) and bool(_TYPE.fullmatch(value["type"]))
    data = ["data"] if (plain or typed) and flat else []
    return [*data, "stringData"] if plain else data


def _secrets_below(manifest: Manifest) -> list[tuple[t.Any, t.Any]]:
    """(container, key) of what is secret in an object, at any depth but in the names of its managed fields."""
    found: list[tuple[t.Any, t.Any]] = []
    metadata = manifest.get("metadata")
    fields = metadata.get("managedFields") if isinstance(metadata, dict) else None
    rest: list[t.Any] = [manifest]
    while rest:
        one = rest.pop()
        items: t.Iterable[t.Any] = one.values() if isinstance(one, dict) else one
        if isinstance(one, dict) and not _TELLING.isdisjoint(one) and (keys := _secret_keys(one)):
            found += [(one, key) for key in keys]
            items = [item for key, item in one.items() if key not in keys]
        for item in items:
            if isinstance(item, COLLECTIONS) and item is not fields:
                rest.append(item)
    return found


def same_secrets(desired: t.Any, live: t.Any) -> bool:
    """Whether every desired secret value is live. No digest contains them, so the values are compared."""
    if isinstance(desired, Sensitive):
        return bool(desired == (live if isinstance(live, Sensitive) else Sensitive(live)))
    if isinstance(desired, dict):
        have = live if isinstance(live, dict) else {}
        return all(same_secrets(item, have.get(key)) for key, item in desired.items() if has_secret(item))
    if isinstance(desired, list):
        return all(same_secrets(item, _counterpart(item, index, live)) for index, item in enumerate(desired) if has_secret(item))
    return True


def without_secrets(text: str, manifest: Manifest) -> str:
    """A server's message about an object, without the object's secret values."""
    for value in sorted(_spellings(manifest), key=len, reverse=True):
        text = text.replace(value, "<redacted>")
    return text


def has_secret(value: t.Any) -> bool:
    """Whether a value, or anything in it, is sensitive."""
    rest = [value]
    while rest:
        one = rest.pop()
        if isinstance(one, COLLECTIONS):
            rest.extend(one.values() if isinstance(one, dict) else one)
        elif isinstance(one, Sensitive):
            return True
    return False


def _sealed(value: t.Any) -> t.Any:
    if isinstance(value, dict):
        return {key: item if item is None else Sensitive(item) for key, item in value.items()}
    return value if value is None else Sensitive(value)


def _places(value: t.Any, path: Path) -> t.Iterator[tuple[t.Any, t.Any]]:
    """(container, key) of everything that the path matches."""
    for key in _keys(value, path[0]):
        if len(path) == 1:
            yield value, key
        else:
            yield from _places(value[key], path[1:])


def _keys(value: t.Any, step: str) -> list[t.Any]:
    if isinstance(value, dict):
        return list(value) if step == EVERY and EVERY not in value else [step] if step in value else []
    if isinstance(value, list):
        return [index for index in range(len(value)) if step in (EVERY, str(index))]
    return []


def _counterpart(item: t.Any, index: int, live: t.Any) -> t.Any:
    """The element of a live list that corresponds to a desired one; others may have inserted theirs."""
    if not isinstance(live, list):
        return None
    if isinstance(item, dict) and isinstance(item.get("name"), str):
        return next((one for one in live if isinstance(one, dict) and one.get("name") == item["name"]), None)
    return live[index] if index < len(live) else None


def _spellings(value: t.Any) -> set[str]:
    """The forms in which sensitive values may appear in a text: as they are, escaped as Go and JSON do, and decoded from base64."""
    if isinstance(value, Sensitive):
        return {form for leaf in _leaves(revealed(value)) for form in _forms(leaf) if len(form) >= _SHORTEST}
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {form for item in items for form in _spellings(item)}


def _leaves(value: t.Any) -> list[str]:
    if isinstance(value, dict | list):
        return [leaf for item in (value.values() if isinstance(value, dict) else value) for leaf in _leaves(item)]
    return [] if value is None or isinstance(value, bool) else [str(value)]


def _forms(leaf: str) -> t.Iterator[str]:
    texts = [leaf]
    try:
        texts.append(base64.b64decode(leaf, validate=True).decode())
    except ValueError:  # not the base64 of a text
        texts.append(base64.b64encode(leaf.encode()).decode())
    for text in texts:
        quoted = json.dumps(text, ensure_ascii=False)[1:-1]
        # encoding/json of Go escapes these three as well.
        by_go = quoted.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
        yield from (text, text.strip(), json.dumps(text)[1:-1], quoted, by_go)
        yield from (line for line in map(str.strip, text.splitlines()) if len(line) >= _SHORTEST_LINE)

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Text to values, as kubectl reads it: JSON if it begins with a brace, else YAML by the rules of go.yaml.in/yaml/v2 (its decode.go).

Stricter where kubectl silently drops something: a duplicate key, text after a document's end, an unknown tag, half a surrogate pair.
And nothing is read without bounds.

Private to the collection.
"""

from __future__ import annotations

import json
import re
import typing as t

from .yaml_scalars import TAG, Scalar, json_number, key_text, plain_value, tagged_value

MAX_DEPTH = 200
"""Nesting of maps and lists. No object of Kubernetes comes near it, and Python's own recursion ends soon after."""
MAX_ALIASED = 8_000_000
"""Most characters that aliases may add to a text, 16 for a value and those of its text. The API server accepts no object of 3 MiB."""

_TAGS = {"!", f"{TAG}map", f"{TAG}seq"}
_JSON_SPACE = re.compile(r"[ \t\r\n]*")
_ESCAPED_SURROGATE, _SURROGATE = re.compile(r"\\u[dD][89a-fA-F]"), re.compile("[\ud800-\udfff]")
# Lines that separate documents for kubectl, which refuses anything but a comment in the rest of such a line.
_BAD_SEPARATOR = re.compile(r"^---(?![ \t\r]*$|[ \t]+#)", re.MULTILINE)
_OPEN = object()


class Unreadable(ValueError):
    """The text is not what kubectl would read; ``line`` counts from 1, and is 0 where it is not known."""

    def __init__(self, problem: object, line: int = 0) -> None:
        super().__init__(str(problem))
        self.line = line


def read(text: str) -> list[t.Any]:
    """The values of all documents in JSON's own types, None for an empty document."""
    text = text.removeprefix("\ufeff")
    found, rest = _read_json(text) if text.lstrip().startswith("{") else ([], 0)
    if rest < len(text):
        found += _read_yaml(text[rest:], text.count("\n", 0, rest))
    return found


def _read_json(text: str) -> tuple[list[t.Any], int]:
    """The JSON values one after the other, and where something begins that is not JSON: the rest is YAML, which looks much alike."""
    decoder = json.JSONDecoder(
        object_pairs_hook=_json_object, parse_int=_json_number, parse_float=_json_number, parse_constant=_no_json
    )
    found: list[t.Any] = []
    position = _JSON_SPACE.match(text).end()  # type: ignore[union-attr]
    while position < len(text):
        line = text.count("\n", 0, position) + 1
        try:
            value, end = decoder.raw_decode(text, position)
        except json.JSONDecodeError as exc:
            if len(found) > 1:
                raise Unreadable(f"not JSON ({exc.msg})", line) from exc
            break
        except RecursionError as exc:
            raise _too_deep(line) from exc
        except ValueError as exc:
            raise Unreadable(exc, line) from exc
        if _ESCAPED_SURROGATE.search(text, position, end) and _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
            raise Unreadable("half a surrogate pair is no character", line)
        found.append(value)
        position = _JSON_SPACE.match(text, end).end()  # type: ignore[union-attr]
    return found, position


def _json_object(pairs: list[tuple[str, t.Any]]) -> dict[str, t.Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _value in pairs]
        raise ValueError(_twice(next(key for key in keys if keys.count(key) > 1)))
    return found


def _json_number(text: str) -> int | float:
    return json_number(float(text) if "." in text or "e" in text.lower() or len(text) > 20 else int(text))


def _no_json(word: str) -> t.NoReturn:
    raise json.JSONDecodeError(word, "", 0)


def _read_yaml(text: str, lines_before: int) -> list[t.Any]:
    import yaml

    bad = _BAD_SEPARATOR.search(text)
    try:
        if bad:
            raise Unreadable("only a comment may stand beside ---", text.count("\n", 0, bad.start()) + 1)
        return _Reader(text).documents()
    except Unreadable as exc:
        raise Unreadable(exc, exc.line + lines_before) from exc
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        problem = getattr(exc, "problem", None) or str(exc).replace("\n", " ")
        raise Unreadable(f"not YAML ({problem})", mark.line + 1 + lines_before if mark else 0) from exc
    except UnicodeEncodeError as exc:
        raise Unreadable("half a surrogate pair is no character") from exc


class _Reader:
    """Builds values directly from libyaml's events (without libyaml from Python's own, ten times slower)."""

    def __init__(self, text: str) -> None:
        import yaml

        self._next: t.Callable[[], t.Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text).get_event
        self._scalar, self._alias, self._map = yaml.ScalarEvent, yaml.AliasEvent, yaml.MappingStartEvent
        self._list, self._map_end, self._list_end = yaml.SequenceStartEvent, yaml.MappingEndEvent, yaml.SequenceEndEvent
        self._stream_end = yaml.StreamEndEvent
        self._anchors: dict[str, t.Any] = {}
        self._aliased = 0

    def documents(self) -> list[t.Any]:
        found: list[t.Any] = []
        self._next()  # the stream begins
        while self._next().__class__ is not self._stream_end:  # a document begins
            self._anchors = {}
            found.append(self._value(self._next(), 0))
            self._next()  # the document ends
        return found

    def _value(self, event: t.Any, depth: int) -> t.Any:
        kind, anchor = event.__class__, event.anchor
        if kind is self._scalar:
            value = self._of_scalar(event)
        elif kind is self._alias:
            return self._of_alias(event, depth)
        else:
            return self._of_collection(event, depth + 1)
        if anchor:
            self._anchors[anchor] = value
        return value

    def _of_scalar(self, event: t.Any) -> Scalar:
        value = self._resolved(event)
        if isinstance(value, str) or value is None or isinstance(value, bool):
            return value
        try:
            return json_number(value)
        except ValueError as exc:
            raise _refused(event, exc) from exc

    def _resolved(self, event: t.Any) -> Scalar:
        try:
            if event.tag is None:
                return plain_value(event.value) if event.implicit[0] else event.value
            return event.value if event.tag == "!" else tagged_value(event.tag, event.value)
        except ValueError as exc:
            raise _refused(event, exc) from exc

    def _of_alias(self, event: t.Any, depth: int) -> t.Any:
        value = self._anchors.get(event.anchor, event)
        if value is event:
            raise _refused(event, f"there is no anchor {event.anchor} before this alias")
        if value is _OPEN:
            raise _refused(event, f"what the anchor {event.anchor} names would contain itself")
        return self._copied(value, depth, event)

    def _copied(self, value: t.Any, depth: int, event: t.Any) -> t.Any:
        """An independent copy. A few lines of aliases to aliases can expand to more than any memory holds, so what they add is counted."""
        self._aliased += 16 + (len(value) if isinstance(value, str) else 0)
        if self._aliased > MAX_ALIASED:
            raise _refused(event, "its aliases expand to too much")
        if depth > MAX_DEPTH:
            raise _too_deep(event.start_mark.line + 1)
        if isinstance(value, dict):
            self._aliased += sum(map(len, value))
            return {key: self._copied(item, depth + 1, event) for key, item in value.items()}
        return [self._copied(item, depth + 1, event) for item in value] if isinstance(value, list) else value

    def _of_collection(self, event: t.Any, depth: int) -> t.Any:
        if depth > MAX_DEPTH:
            raise _too_deep(event.start_mark.line + 1)
        if event.tag is not None and event.tag not in _TAGS:
            raise _refused(event, f"the tag {event.tag!r} is not known")
        if event.anchor:
            self._anchors[event.anchor] = _OPEN
        value = self._mapping(depth) if event.__class__ is self._map else self._sequence(depth)
        if event.anchor and self._anchors[event.anchor] is _OPEN:
            self._anchors[event.anchor] = value
        return value

    def _sequence(self, depth: int) -> list[t.Any]:
        found: list[t.Any] = []
        while (event := self._next()).__class__ is not self._list_end:
            found.append(self._value(event, depth))
        return found

    def _mapping(self, depth: int) -> dict[str, t.Any]:
        found: dict[str, t.Any] = {}
        inherited: set[str] = set()
        while (event := self._next()).__class__ is not self._map_end:
            if (
                event.__class__ is self._scalar
                and event.value == "<<"
                and (event.implicit[0] or event.tag == f"{TAG}merge")
            ):
                merged = self._merged(depth)
                inherited |= merged.keys() - found.keys()
                found.update(merged)
                continue
            key = self._key(event)
            if key in found and key not in inherited:
                raise _refused(event, _twice(key))
            inherited.discard(key)
            found[key] = self._value(self._next(), depth)
        return found

    def _key(self, event: t.Any) -> str:
        value: t.Any = event
        if event.__class__ is self._scalar:
            value = self._resolved(event)
            if event.anchor:
                self._anchors[event.anchor] = value
        elif event.__class__ is self._alias:
            value = self._of_alias(event, 0)
        if value is event or isinstance(value, list | dict):
            raise _refused(event, "a list or a map cannot be a key")
        try:
            return key_text(value)
        except ValueError as exc:
            raise _refused(event, exc) from exc

    def _merged(self, depth: int) -> dict[str, t.Any]:
        """The keys that a merge key adds; of several maps the first one wins."""
        event = self._next()
        value = self._value(event, depth)
        merged: dict[str, t.Any] = {}
        for part in reversed(value) if event.__class__ is self._list else (value,):
            if not isinstance(part, dict):
                raise _refused(event, "only maps can be merged")
            merged.update(part)
        return merged


def _refused(event: t.Any, problem: object) -> Unreadable:
    return Unreadable(problem, event.start_mark.line + 1)


def _too_deep(line: int) -> Unreadable:
    return Unreadable(f"more than {MAX_DEPTH} maps and lists are nested", line)


def _twice(key: str) -> str:
    return f"the key {key!r} occurs twice"

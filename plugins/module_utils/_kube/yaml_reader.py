# SPDX-License-Identifier: GPL-3.0-or-later
"""Text to values, as kubectl reads it: JSON if it begins with a brace, else YAML by the rules of go.yaml.in/yaml/v2 (its decode.go).

PyYAML makes nodes of the text; the values of plain words, keys, merge keys and aliases are kubectl's.

Stricter where kubectl silently drops something: a duplicate key, text after a document's end, an unknown tag, half a surrogate pair.
And nothing is read without bounds.
"""

from __future__ import annotations

import json
import re
import typing as t

from .yaml_scalars import TAG, UNKNOWN_TAG, json_number, key_text, scalar_value

MAX_DEPTH = 200
"""Nesting of maps and lists. No object of Kubernetes comes near it, and Python's own recursion ends soon after."""
MAX_ALIASED = 8_000_000
"""Most characters that aliases may add to a text, 16 for a value and those of its text. The API server accepts no object of 3 MiB."""

_TOO_DEEP = f"more than {MAX_DEPTH} maps and lists are nested"
_MEANINGS = {RecursionError: _TOO_DEEP, UnicodeEncodeError: "half a surrogate pair is no character"}
_COLLECTIONS = {"!", f"{TAG}map", f"{TAG}seq"}
_SPACE = re.compile(r"[ \t\r\n]*")
# Lines that separate documents for kubectl, which refuses anything but a comment in the rest of such a line.
_BAD_SEPARATOR = re.compile(r"^---(?![ \t\r]*$|[ \t]+#)", re.MULTILINE)


class Unreadable(ValueError):
    """The text is not what kubectl would read; ``line`` counts from 1, and is 0 where it is not known."""

    def __init__(self, problem: object, line: int = 0) -> None:
        super().__init__(str(_MEANINGS.get(type(problem), problem)))
        self.line = line


def read(text: str) -> list[t.Any]:
    """The values of all documents in JSON's own types, None for an empty document."""
    text = text.removeprefix("\ufeff")
    found, rest = _read_json(text) if text.lstrip().startswith("{") else ([], 0)
    # Empty lines stand for what was read, so that the other lines keep their numbers.
    return found + _read_yaml("\n" * text.count("\n", 0, rest) + text[rest:])


def _read_json(text: str) -> tuple[list[t.Any], int]:
    """The JSON values one after the other, and where something begins that is not JSON: the rest is YAML, which looks much alike."""
    decoder = json.JSONDecoder(
        object_pairs_hook=_json_object,
        parse_int=lambda digits: json_number(int(digits) if len(digits) <= 20 else float(digits)),
        parse_float=lambda digits: json_number(float(digits)),
        parse_constant=_no_json,
    )
    found: list[t.Any] = []
    end = 0
    while (rest := _SPACE.match(text, end).end()) < len(text):  # type: ignore[union-attr]
        line = text.count("\n", 0, rest) + 1
        try:
            value, end = decoder.raw_decode(text, rest)
            json.dumps(value, ensure_ascii=False).encode()  # refuses half a surrogate pair
        except json.JSONDecodeError as exc:
            if len(found) > 1:
                raise Unreadable(f"not JSON ({exc.msg})", line) from exc
            break
        except (RecursionError, ValueError) as exc:
            raise Unreadable(exc, line) from exc
        found.append(value)
    return found, rest


def _no_json(word: str) -> t.NoReturn:
    raise json.JSONDecodeError(word, "", 0)


def _json_object(pairs: list[tuple[str, t.Any]]) -> dict[str, t.Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _value in pairs]
        raise ValueError(_twice(next(key for key in keys if keys.count(key) > 1)))
    return found


def _read_yaml(text: str) -> list[t.Any]:
    import yaml

    if bad := _BAD_SEPARATOR.search(text):
        raise Unreadable("only a comment may stand beside ---", text.count("\n", 0, bad.start()) + 1)
    values = _Values()
    try:
        return [values.of(node) for node in _nodes(text)]
    except (RecursionError, UnicodeEncodeError) as exc:
        raise Unreadable(exc) from exc
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        problem = getattr(exc, "problem", None) or str(exc).replace("\n", " ")
        raise Unreadable(f"not YAML ({problem})", mark.line + 1 if mark else 0) from exc


def _nodes(text: str) -> t.Iterator[t.Any]:
    """PyYAML's nodes, one for each document. The tag is empty for a plain word, ``!`` for a collection without one; an alias is a node.

    They are made of the events of libyaml, from which kubectl's parser was made, or of PyYAML's own parser. PyYAML's composer in C ends the
    process where collections lie very deep, and refuses two anchors of one name; its composer in Python takes twice as long.
    """
    import yaml

    class Alias(yaml.ScalarNode):
        id = "alias"

    take = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text).get_event
    scalar, alias, sequence, sequence_end, mapping_end = (
        yaml.ScalarEvent, yaml.AliasEvent, yaml.SequenceStartEvent, yaml.SequenceEndEvent, yaml.MappingEndEvent
    )  # fmt: skip
    anchors: dict[str, t.Any] = {}

    def node(event: t.Any) -> t.Any:
        what = event.__class__
        if what is scalar:  # its event has what its node would have
            event.id, event.tag = "scalar", event.tag or ("" if event.implicit[0] else f"{TAG}str")
            if event.anchor is not None:
                anchors[event.anchor] = event
            return event
        if what is alias:
            named = anchors.get(event.anchor)
            if named is None:
                raise _refused(event, "there is no such anchor before this alias; text that begins with * needs quotes")
            if named.end_mark is None:
                raise _refused(event, f"what the anchor {event.anchor} names would contain itself")
            return Alias("", named, event.start_mark)
        made = (yaml.SequenceNode if what is sequence else yaml.MappingNode)(event.tag or "!", [], event.start_mark)
        if event.anchor is not None:
            anchors[event.anchor] = made  # the last one of a name counts
        if what is sequence:
            while (one := take()).__class__ is not sequence_end:
                made.value.append(node(one))
        else:
            while (one := take()).__class__ is not mapping_end:
                made.value.append((node(one), node(take())))
        made.end_mark = one.end_mark
        return made

    take()  # the stream begins
    while take().__class__ is not yaml.StreamEndEvent:  # a document begins
        anchors.clear()
        yield node(take())
        take()  # the document ends


class _Values:
    """Makes values of nodes, a copy for each alias. A few lines of aliases to aliases can expand to more than any memory holds."""

    def __init__(self) -> None:
        self._aliased = 0
        self._known: dict[tuple[t.Any, str, str], t.Any] = {}

    def of(self, node: t.Any, depth: int = 0, alias: t.Any = None, finish: t.Any = json_number) -> t.Any:
        """The value of a node that lies in ``depth`` collections and, where there is one, below an alias."""
        if node.id == "alias":
            node, alias = node.value, alias or node
        if alias:
            self._aliased += 16 + len(node.value)
            if self._aliased > MAX_ALIASED:
                raise _refused(alias, "its aliases expand to too much")
        if node.id == "scalar":
            what = (finish, node.tag, node.value)
            if what not in self._known:
                try:
                    node.value.encode()  # refuses half a surrogate pair, which Python's own parser makes of an escape
                    self._known[what] = finish(scalar_value(node.tag, node.value))
                except ValueError as exc:
                    raise _refused(node, exc) from exc
            return self._known[what]
        if finish is key_text:
            raise _refused(node, "a list or a map cannot be a key")
        if depth == MAX_DEPTH:
            raise _refused(alias or node, _TOO_DEEP)
        if node.tag not in _COLLECTIONS:
            raise _refused(node, UNKNOWN_TAG)
        if node.id == "sequence":
            return [self.of(item, depth + 1, alias) for item in node.value]
        return self._mapping(node, depth + 1, alias)

    def _mapping(self, node: t.Any, depth: int, alias: t.Any) -> dict[str, t.Any]:
        """The keys and values: what stands last wins, and of the maps of one merge key the first."""
        found: dict[str, t.Any] = {}
        own = set()
        for key_node, value_node in node.value:
            if key_node.value == "<<" and key_node.tag in ("", "!", f"{TAG}merge"):
                for part in reversed(value_node.value if value_node.id == "sequence" else [value_node]):
                    merged = self.of(part, depth, alias)
                    if not isinstance(merged, dict):
                        raise _refused(part, "only maps can be merged")
                    found |= merged
                continue
            if (key := None if alias or key_node.id != "scalar" else self._known.get((key_text, key_node.tag, key_node.value))) is None:
                key = self.of(key_node, depth, alias, key_text)
            if key in own:
                raise _refused(key_node, _twice(key))
            own.add(key)
            found[key] = self.of(value_node, depth, alias)
        return found


def _refused(place: t.Any, problem: object) -> Unreadable:
    """The error at an event or a node."""
    return Unreadable(problem, place.start_mark.line + 1)


def _twice(key: str) -> str:
    return f"the key {key!r} occurs twice"

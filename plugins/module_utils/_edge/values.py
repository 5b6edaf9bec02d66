# SPDX-License-Identifier: GPL-3.0-or-later
"""The values of options, checked for all modules at once, after Ansible's own validation and before anything else reads them."""

from __future__ import annotations

import math
import typing as t
import urllib.parse

from ansible.module_utils.common.validation import check_required_if, check_required_one_of, check_required_together

from .._core import shapes
from .._core.errors import InvalidInput
from .._kube.objects import to_plain_values
from .options import Spec

_DEEPEST = 100
_LARGEST = 2**63 - 1
"""The largest int64, the type of JSON numbers of Kubernetes and of the clouds."""
_LARGEST_OPTION = 2**31 - 1
"""The largest int32, the type of counts, ports and seconds of Kubernetes. Python's sockets refuse timeouts beyond some 2**33 seconds."""


def checked(spec: Spec, params: t.Mapping[str, t.Any], constraints: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The options in JSON's own types. Null is an option that is not given, so that its default applies.

    Raises InvalidInput, which names all options with values that no file, request or manifest can hold, or of another type than the field
    of Kubernetes that they become.
    """
    own = {name: value for name, value in params.items() if name in spec}
    found = [problem for name, value in own.items() for problem in _problems(value, spec[name], name)]
    if not found:
        params = t.cast("dict[str, t.Any]", to_plain_values({**params, **_with_defaults(spec, own)}))
        found = [problem for name, option in spec.items() for problem in _misshapen(params.get(name), option, name, name)]
    # Ansible counts an option that is null as given.
    given = {name: value for name, value in params.items() if value is not None}
    try:
        check_required_together(constraints.get("required_together"), given)
        check_required_one_of(constraints.get("required_one_of"), given)
        check_required_if(constraints.get("required_if"), given)
    except TypeError as exc:
        found.append(str(exc))
    if found:
        raise InvalidInput(f"{'; '.join(found)}.", hint="Nothing was changed.")
    return dict(params)


def _problems(value: t.Any, option: t.Mapping[str, t.Any], path: str) -> t.Iterator[str]:
    if option.get("type") == "int" and isinstance(value, int) and abs(value) > _LARGEST_OPTION:
        yield f"{path} is a number beyond 32 bits"
    if option.get("type") == "int" and path.endswith("timeout") and isinstance(value, int) and value < 0:
        yield f"{path} is {value}, less than 0"
    # A manifest may have a NUL in a text, as any JSON.
    nul = option.get("type") == "raw"
    yield from _unusable(value, path, nul=nul)


def _unusable(value: t.Any, path: str, *, nul: bool, depth: int = 0) -> t.Iterator[str]:
    """Values that cannot be written as JSON in UTF-8, and NUL, with which no path and no argument of a program is possible."""
    if depth > _DEEPEST:
        yield f"{path.partition('.')[0]} has more than {_DEEPEST} levels"
    elif isinstance(value, str):
        if not nul and "\x00" in value:
            yield f"{path} has a NUL character"
        if any("\ud800" <= character <= "\udfff" for character in value):
            yield f"{path} has half of a surrogate pair, which is no Unicode text"
    elif isinstance(value, t.Mapping):
        for key, item in value.items():
            if key is None:
                yield f"{path} has a null key"
            elif isinstance(key, str):
                yield from _unusable(key, f"a key of {path}", nul=nul)
            yield from _unusable(item, f"{path}.{key!s:.60}", nul=nul, depth=depth + 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _unusable(item, f"{path}[{index}]", nul=nul, depth=depth + 1)
    elif isinstance(value, int):
        if abs(value) > _LARGEST:
            yield f"{path} is a number beyond 64 bits"
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield f"{path} is {value}, which JSON has no number for"
    elif value is not None and not hasattr(value, "isoformat"):
        yield f"{path} is {type(value).__name__}, which is no type of JSON"


def _with_defaults(spec: Spec, params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The options with the default of each that is null, at any depth of suboptions."""
    found: dict[str, t.Any] = {}
    for name, value in params.items():
        option = spec.get(name, {})
        below = option.get("options")
        if value is None:
            found[name] = option.get("default")
        elif below and isinstance(value, list):
            found[name] = [_with_defaults(below, row) if isinstance(row, dict) else row for row in value]
        else:
            found[name] = _with_defaults(below, value) if below and isinstance(value, dict) else value
    return found


def _misshapen(value: t.Any, option: t.Mapping[str, t.Any], name: str, path: str) -> t.Iterator[str]:
    below = option.get("options")
    if isinstance(value, str) and "://" in value and not _is_address(value):
        yield f"{path} is no URL: its host or port is wrong"
    if not below:
        # Ansible has seen to lists of texts. The shapes are those of Kubernetes' fields, and `resources` of a rule is none.
        if option.get("type") in ("dict", "list", "raw") and option.get("elements") != "str":
            yield from shapes.problems(value, shapes.OPTIONS.get(name, object), path)
        return
    for row in value if isinstance(value, list) else [value]:
        if isinstance(row, dict):
            for inner, suboption in below.items():
                yield from _misshapen(row.get(inner), suboption, inner, f"{path}.{inner}")


def _is_address(text: str) -> bool:
    """Whether the host and the port of a URL can be read. The text is not shown, because it may have a password."""
    try:
        parts = urllib.parse.urlsplit(text)
        return parts.port is None or bool(parts.hostname)
    except ValueError:
        return False

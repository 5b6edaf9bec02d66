# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of both clouds: mappings with keys of the user's own (tags, labels, metadata), versions and address ranges. Pure."""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
import typing as t

from .._core import labels
from .._core.errors import InvalidInput


def texts(option: str, given: t.Mapping[t.Any, t.Any], of_bool: t.Callable[[bool], str] = str) -> dict[str, str]:
    """Tags, labels or metadata with keys and values as text, which clouds require. YAML makes numbers and booleans of some.

    OF_BOOL: how the cloud's own collection writes true and false. A value that is no scalar is refused.
    """
    for key, value in given.items():
        if not isinstance(value, (str, int, float, dt.date)):
            found = "no value" if value is None else f"a {'mapping' if isinstance(value, dict) else 'list'} as its value"
            raise InvalidInput(f"{option}: {key} has {found}", hint='Give it a text, a number, true or false; "" for an empty text')
    return {str(key): of_bool(value) if isinstance(value, bool) else str(value) for key, value in given.items()}


def refuse_node_label(label: str, key: str, value: str) -> None:
    """Refuse a label or taint that Kubernetes refuses for nodes. LABEL: the resource, for messages."""
    if not (labels.KEY.fullmatch(key) and labels.VALUE.fullmatch(value)):
        raise InvalidInput(
            f"{label}: nodes cannot have the label or taint {key}={value}",
            hint="Kubernetes takes letters, digits, '-', '_' and '.', at most 63, that begin and end with a letter or digit; before the key"
            " may stand a domain with a slash",
        )


def refuse_twice(label: str, taints: t.Iterable[t.Mapping[str, t.Any]]) -> None:
    """Refuse two taints of one key and effect."""
    keys = [f"{taint['key']}:{taint['effect']}" for taint in taints]
    if twice := sorted({key for key in keys if keys.count(key) > 1}):
        raise InvalidInput(f"{label}: taints has {', '.join(twice)} more than once", hint="A key has one value per effect")


def version_numbers(version: str, form: re.Pattern[str], of: str, hint: str) -> tuple[int, ...]:
    """The numbers of a version of Kubernetes after its 1, such as its minor version; another form is refused."""
    match = form.fullmatch(version)
    if not match:
        raise InvalidInput(f"version {version!r} is no version of {of}", hint=f"Write it as {hint}, in quotes")
    return tuple(int(one) for one in match.groups() if one is not None)


def network_of(option: str, text: str) -> str:
    """An address range as clouds keep it: 203.0.113.7/24 is 203.0.113.0/24, an address alone is its /32."""
    try:
        return str(ipaddress.ip_network(text.strip(), strict=False))
    except ValueError as error:
        raise InvalidInput(f"{option}: {error}", hint="Write a range as 203.0.113.0/24, one address as 203.0.113.7/32") from error


def is_within(text: str, others: t.Iterable[str]) -> bool:
    """Whether a range is of IPv4, and in one of the others. Clouds may show ranges with host bits."""
    one, *rest = (ipaddress.ip_network(range_, strict=False) for range_ in (text, *others))
    v4 = ipaddress.IPv4Network
    return any(isinstance(one, v4) and isinstance(other, v4) and one.subnet_of(other) for other in rest)

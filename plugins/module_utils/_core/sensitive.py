# SPDX-License-Identifier: GPL-3.0-or-later
"""The type of values that must not be printed. They are wrapped where they come in, and unwrapped when a request is sent.

Nothing else can print one: ``str``, ``repr``, ``format`` and ``%`` give a fingerprint, ``json`` and ``pickle`` refuse it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import typing as t

# The key is known only to this process and those that Ansible forks from it for each task: equal values look equal within one run, but a
# stored log does not help to guess them.
_KEY = secrets.token_bytes(32)


class Sensitive:
    """A value that only ``reveal`` gives out. Equal to another one with an equal value, and to nothing else."""

    __slots__ = ("_value",)

    def __init__(self, value: t.Any) -> None:
        self._value = value.reveal() if isinstance(value, Sensitive) else value

    def reveal(self) -> t.Any:
        """The value, for requests and comparisons; never for a message."""
        return self._value

    def __repr__(self) -> str:
        """A fingerprint, which is the same for equal values in this run."""
        return f"<redacted {fingerprint(self._value)}>"

    __str__ = __repr__

    def __format__(self, _spec: str) -> str:
        return repr(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sensitive) and bool(self._value == other._value)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __copy__(self) -> Sensitive:
        return self

    def __deepcopy__(self, _memo: dict[int, t.Any]) -> Sensitive:
        return self

    def __reduce__(self) -> t.NoReturn:
        raise TypeError("a sensitive value is not written anywhere")


def fingerprint(value: t.Any) -> str:
    """The same text for equal values, in one run."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hmac.new(_KEY, text.encode(), hashlib.sha256).hexdigest()[:12]


def revealed(value: t.Any) -> t.Any:
    """The value as a request contains it."""
    if isinstance(value, Sensitive):
        return value.reveal()
    if isinstance(value, dict):
        return {key: revealed(item) for key, item in value.items()}
    return [revealed(item) for item in value] if isinstance(value, list) else value


def printable(value: t.Any) -> t.Any:
    """The value as it may be shown: fingerprints instead of sensitive values, at any depth."""
    if isinstance(value, Sensitive):
        return str(value)
    if isinstance(value, dict):
        return {key: item if isinstance(item, str) else printable(item) for key, item in value.items()}
    return [printable(item) for item in value] if isinstance(value, list | tuple) else value

# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies of what a server answers. copy.deepcopy, made for any object, took a seventh of the time of all unit tests."""

import typing as t

Value = t.TypeVar("Value")


def copied(value: Value) -> Value:
    """A copy down to the values that are neither dict nor list; nobody changes those."""
    if isinstance(value, dict):
        return t.cast(Value, {key: copied(item) for key, item in value.items()})
    if isinstance(value, list):
        return t.cast(Value, [copied(item) for item in value])
    return value

# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables with the places where they were set."""

from __future__ import annotations

import os
import typing as t
from collections.abc import Mapping

from ansible_collections.muster.ml.plugins.plugin_utils._variables import Given

try:
    from ansible._internal._datatag._tags import Origin
except ImportError:  # an internal class: places are not named without it
    Origin = None


def given(name: str, value: object, templar: t.Any, default: str = "set by -e") -> Given:
    """The variable as it was set, before templates are replaced. Its entries are judged one by one if it is a mapping."""
    place = shown(origin(value) or origin(name)) or default
    if isinstance(value, Mapping):
        return Given(name, dict(value), place, keys=[given(str(k), v, templar, shown(origin(k)) or place) for k, v in value.items()])
    return Given(name, value, place, not templar.is_template(value) and type(value).__name__ != "EncryptedString")


def origin(value: object) -> t.Any:
    """The place where a value was set, if that is known."""
    return Origin.get_tag(value) if Origin else None


def shown(place: t.Any) -> str:
    """The file, relative to the working directory if it is below it, and the line; empty if there is no file."""
    if place is None or not place.path:
        return ""
    path = os.path.relpath(place.path)
    file = place.path if path.startswith("..") else path
    return f"{file}:{place.line_num}" if place.line_num else file

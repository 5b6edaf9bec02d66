# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mappings whose keys are the user's own: tags, labels, metadata. Pure."""

from __future__ import annotations

import datetime as dt
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

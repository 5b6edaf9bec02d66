# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Labels, metadata and network tags: their values as text, and what Google accepts of them, so that a plan refuses the rest.

Private to the collection.
"""

from __future__ import annotations

import re
import typing as t
import unicodedata

from .._core.errors import InvalidInput

MOST = 64
"""Labels of a resource, or network tags of a machine."""
# "Requirements for labels" (Resource Manager): [\p{Ll}\p{Lo}\p{N}_-], 63 characters and 128 bytes at most.
_LETTERS, _LENGTH, _BYTES = ("Ll", "Lo"), 63, 128
# Kubernetes, "Labels and Selectors": a name, before which may stand the name of a domain.
_NODE_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_NODE_KEY = re.compile(rf"(?:(?=.{{1,253}}/)[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?(?!$){_NODE_VALUE.pattern}")
# Discovery document of compute v1, Metadata.items.
_METADATA_KEY, _METADATA_BYTES = re.compile(r"[a-zA-Z0-9_-]{1,127}"), 262144
# The same, Tags.items: RFC 1035.
_TAG = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")


def texts(given: t.Mapping[t.Any, t.Any]) -> dict[str, str]:
    """Keys and values as text: numbers in digits, ``true`` and ``false`` in lower case, as labels have no capitals."""
    return {str(key): _text(str(key), value) for key, value in given.items()}


def _text(key: str, value: t.Any) -> str:
    if not isinstance(value, (str, int, float)):
        found = "no value" if value is None else f"a {type(value).__name__} as its value"
        raise InvalidInput(
            f"{key} has {found}", hint='Google takes text, numbers, true and false; write "" for an empty one'
        )
    return str(value).lower() if isinstance(value, bool) else str(value)


def refuse_labels(owner: str, labels: t.Mapping[str, str]) -> None:
    """Refuse labels that Google refuses. ``owner`` is the resource, for messages."""
    hint = "Use lowercase letters, digits, hyphens and underscores, at most 63; a key begins with a letter"
    for key, value in labels.items():
        if not (_is_label(key) and unicodedata.category(key[0]) in _LETTERS):
            raise InvalidInput(f"{owner}: {key!r} cannot be the key of a label", hint=hint)
        if value and not _is_label(value):
            raise InvalidInput(f"{owner}: label {key} cannot be {value!r}", hint=hint)
    _refuse_too_many(owner, "labels", len(labels))


def _is_label(text: str) -> bool:
    allowed = all(one in "-_" or unicodedata.category(one) in (*_LETTERS, "Nd", "Nl", "No") for one in text)
    return allowed and 0 < len(text) <= _LENGTH and len(text.encode()) <= _BYTES


def refuse_node_labels(owner: str, labels: t.Mapping[str, str]) -> None:
    """Refuse labels that Kubernetes refuses, of nodes."""
    hint = (
        "Kubernetes takes letters, digits, '-', '_' and '.', at most 63, that begin and end with a letter or digit; a domain and a slash "
        "may stand before a key"
    )
    for key, value in labels.items():
        if not (_NODE_KEY.fullmatch(key) and _NODE_VALUE.fullmatch(value)):
            raise InvalidInput(f"{owner}: nodes cannot have the label {key}={value}", hint=hint)


def refuse_metadata(owner: str, metadata: t.Mapping[str, str]) -> None:
    """Refuse metadata of machines that Google refuses."""
    hint = "Use letters, digits, '-' and '_' in a key, at most 127, and 256 KiB at most in a value"
    for key, value in metadata.items():
        if not _METADATA_KEY.fullmatch(key) or len(value.encode()) > _METADATA_BYTES:
            raise InvalidInput(f"{owner}: metadata cannot have the key {key!r} with {len(value)} characters", hint=hint)


def refuse_tags(owner: str, tags: t.Sequence[str]) -> None:
    """Refuse network tags that Google refuses."""
    hint = "Begin with a lowercase letter, and use lowercase letters, digits and inner hyphens, at most 63"
    for tag in tags:
        if not _TAG.fullmatch(tag):
            raise InvalidInput(f"{owner}: {tag!r} cannot be a network tag", hint=hint)
    _refuse_too_many(owner, "network tags", len(set(tags)))


def _refuse_too_many(owner: str, what: str, number: int) -> None:
    if number > MOST:
        raise InvalidInput(
            f"{owner} would have {number} {what}", hint=f"Google takes {MOST}, the owner's mark among them"
        )

# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels, metadata and network tags: their values as text, and what Google accepts of them, so that a plan refuses the rest."""

from __future__ import annotations

import re
import typing as t
import unicodedata

from .._cloud.texts import refuse_node_label
from .._cloud.texts import texts as as_texts
from .._core.errors import InvalidInput

MOST = 64
"""Labels of a resource, or network tags of a machine."""
# "Requirements for labels" (Resource Manager): [\p{Ll}\p{Lo}\p{N}_-], 63 characters and 128 bytes at most.
_LETTERS, _LENGTH, _BYTES = ("Ll", "Lo"), 63, 128
# Discovery document of compute v1, Metadata.items.
_METADATA_KEY, _METADATA_BYTES = re.compile(r"[a-zA-Z0-9_-]{1,127}"), 262144
# The same, Tags.items: RFC 1035.
_TAG = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")


def texts(given: t.Mapping[t.Any, t.Any], option: str = "labels") -> dict[str, str]:
    """Keys and values as text: ``true`` and ``false`` in lower case, as labels have no capitals."""
    return as_texts(option, given, lambda value: str(value).lower())


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
    for key, value in labels.items():
        refuse_node_label(owner, key, value)


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
        raise InvalidInput(f"{owner} would have {number} {what}", hint=f"Google takes {MOST}, the owner's mark among them")

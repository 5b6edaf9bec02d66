# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of Secrets, as text."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from .._core.errors import InvalidInput
from .._core.sensitive import Sensitive
from .objects import Manifest, Ref


def text_of(secret: Manifest, key: str) -> Sensitive | None:
    """One value of a Secret; None if it has no such key."""
    value = (secret.get("data") or {}).get(key)
    if value is None:
        return None
    try:
        return Sensitive(base64.b64decode(Sensitive(value).reveal(), validate=True).decode())
    except ValueError:
        raise InvalidInput(f"{_named(secret)}: {key} is not text.") from None


def needed_text(secret: Manifest, key: str, needed: str) -> Sensitive:
    """The same of a key that must be there, with a value. NEEDED: what the Secret has to have, for the message."""
    found = text_of(secret, key)
    if found is None or not found.reveal():
        raise InvalidInput(f"{_named(secret)} has no key {key}, or an empty one.", f"It needs {needed}.")
    return found


def encoded(values: Mapping[str, str | Sensitive]) -> dict[str, str]:
    """The field ``data`` of a Secret with these values."""
    return {key: base64.b64encode(Sensitive(value).reveal().encode()).decode() for key, value in values.items()}


def _named(secret: Manifest) -> Ref:
    return Ref("v1", "Secret", secret["metadata"]["name"], secret["metadata"]["namespace"])

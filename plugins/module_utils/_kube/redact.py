# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep secret values out of everything that is shown or stored beside them.

Secret values are the ``data`` of a Secret and whatever the annotation ``muster.ml/sensitive`` names (dotted paths, comma separated).

Private to the collection.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import typing as t

from .objects import Manifest, annotations_of, copied

ANNOTATION_SENSITIVE = "muster.ml/sensitive"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

# Of this process alone: equal values look equal within one run, and a stored log is of no use for guessing.
_KEY = secrets.token_bytes(32)


def sensitive_paths(manifest: Manifest) -> list[tuple[str, ...]]:
    """Where secret values are in this object."""
    marked = annotations_of(manifest).get(ANNOTATION_SENSITIVE, "")
    paths = [tuple(part.strip().split(".")) for part in marked.split(",") if part.strip()]
    return [("data",), ("stringData",), *paths] if manifest.get("kind") == "Secret" else paths


def at(value: t.Any, path: tuple[str, ...]) -> t.Any:
    """The value at a path, None where there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def without(manifest: Manifest, paths: list[tuple[str, ...]]) -> Manifest:
    """A copy in which each secret value is replaced by nothing; the names of its keys stay."""
    return _replaced(manifest, paths, lambda _value: None)


def redacted(manifest: Manifest) -> Manifest:
    """A copy that may be shown: secret values as fingerprints."""
    shown = _replaced(manifest, sensitive_paths(manifest), fingerprint)
    if _LAST_APPLIED in annotations_of(shown) and sensitive_paths(manifest):
        shown["metadata"]["annotations"][_LAST_APPLIED] = fingerprint(annotations_of(shown)[_LAST_APPLIED])
    return shown


def fingerprint(value: t.Any) -> str:
    """The same for equal values of this run, and nothing more."""
    text = json.dumps(value, sort_keys=True)
    return f"<redacted {hmac.new(_KEY, text.encode(), hashlib.sha256).hexdigest()[:12]}>"


def _replaced(manifest: Manifest, paths: list[tuple[str, ...]], how: t.Callable[[t.Any], t.Any]) -> Manifest:
    if not paths:
        return t.cast(Manifest, copied(manifest))
    shown = t.cast(Manifest, copied(manifest))
    for path in paths:
        parent = at(shown, path[:-1])
        if isinstance(parent, dict) and path[-1] in parent:
            value = parent[path[-1]]
            parent[path[-1]] = (
                {key: how(item) for key, item in value.items()} if isinstance(value, dict) else how(value)
            )
    return shown

# SPDX-License-Identifier: GPL-3.0-or-later
"""What labels may be, the same in all services; each service says it in its own words.

Rules: cloud.google.com/resource-manager/docs/labels-overview#requirements. Words: of Compute Engine those of
cloudfoundry-incubator/kubo-deployment issue 159 (key) and GoogleCloudPlatform/k8s-config-connector issue 363 (value), of GKE those of
kyma-project/kyma issue 4307 (value; assumed: key); of a node's labels assumed.
"""

import re
from typing import Any

from .api import Refused

_KEY, _VALUE = re.compile(r"[^\W\d_A-Z][\w-]{0,62}"), re.compile(r"[\w-]{0,63}")
_NODE_VALUE = re.compile(r"([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
MOST = 64


def broken(labels: dict[str, Any] | None) -> tuple[str, str] | None:
    """The first key or value that is not as it has to be: (key or value, what it is)."""
    for key, value in (labels or {}).items():
        if not _KEY.fullmatch(key) or key != key.lower():
            return "key", key
        if not isinstance(value, str) or not _VALUE.fullmatch(value) or value != value.lower():
            return "value", str(value)
    return ("number", str(len(labels or {}))) if len(labels or {}) > MOST else None


def refuse_of_compute(labels: dict[str, Any] | None) -> None:
    if found := broken(labels):
        kind, text = found
        begin = "must start with a lowercase character, can" if kind == "key" else "can"
        raise Refused(
            400,
            f"Invalid value for field 'resource.labels': ''. Label {kind} '{text}' violates format constraints. The {kind} {begin} only "
            f"contain lowercase letters, numeric characters, underscores and dashes. The {kind} can be at most 63 characters long. "
            "International characters are allowed.",
            reason="invalid",
        )


def refuse_of_gke(labels: dict[str, Any] | None, field: str) -> None:
    if found := broken(labels):
        kind, text = found
        rule = "lowercase letters ([a-z]), numeric characters ([0-9]), underscores (_) and dashes (-). International characters are allowed"
        raise Refused(400, f"Invalid field '{field}.{kind}': \"{text}\". It must only contain {rule}.")


def refuse_of_nodes(labels: dict[str, Any] | None) -> None:
    for key, value in (labels or {}).items():
        name = key.rpartition("/")[2]
        if not name or not _NODE_VALUE.fullmatch(name) or not _NODE_VALUE.fullmatch(str(value)):
            raise Refused(400, f'Invalid node label "{key}={value}".')

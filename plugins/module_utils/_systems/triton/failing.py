# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why a Triton server does not start, in its own words: the pod's state only has that it ended.

Private to the collection.
"""

from __future__ import annotations

import contextlib
import re
import typing as t

from ..._core.conditions import is_true
from ..._core.errors import MusterError
from ..._kube.objects import selector_of
from .server import labels_of

if t.TYPE_CHECKING:
    from ..._kube.cluster import Cluster

_TAIL = 200
_ENDS_WITH = re.compile(r"^error: (?:creating server: )?(.+)$", re.MULTILINE)
"""What tritonserver writes before it ends, as its last line but for the trace of a model's exception."""


def said_by_server(log: str) -> str | None:
    """The reason for which the server of this log ended."""
    found = _ENDS_WITH.findall(log)
    return str(found[-1]).strip() if found else None


def why_not_started(cluster: Cluster, name: str, namespace: str) -> str | None:
    """The reason that a replica which is not ready gave when it ended last; None if none has given one, or its log cannot be read."""
    for pod in cluster.list("v1", "Pod", namespace, selector_of(labels_of(name))):
        if is_true(pod, "Ready") or pod["metadata"].get("deletionTimestamp"):
            continue
        for previous in (False, True):
            with contextlib.suppress(MusterError):
                log = cluster.logs(namespace, pod["metadata"]["name"], tail_lines=_TAIL, previous=previous)
                if said := said_by_server(log):
                    return said
    return None

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run in check mode remembers from one task to the next: kinds that a definition which it would apply makes a cluster serve.

Each task has a process of its own. The action plugin keeps the promises of a run in a file, which goes with the run; a module that runs
elsewhere gets them by an environment variable, and returns its own in its result, from which the action plugin takes them.

Private to the collection.
"""

from __future__ import annotations

import json
import re
import typing as t

if t.TYPE_CHECKING:
    from .._kube.served import Promised

VARIABLE = "MUSTER_PROMISED_KINDS"
"""Environment variable of a module that runs elsewhere."""
KEY = "promised_kinds"
"""Key of its result, which no user sees."""
_PLAIN = re.compile(r"[A-Za-z0-9./-]+")


def read(lines: t.Iterable[str]) -> dict[str, Promised]:
    """By API server, the kinds of lines that ``written`` made."""
    found: dict[str, Promised] = {}
    for line in lines:
        server, api_version, kind, namespaced = json.loads(line)
        found.setdefault(server, {})[api_version, kind] = namespaced
    return found


def written(promises: t.Mapping[str, Promised]) -> list[str]:
    """A line for each kind. One whose name could mean something to a shell or a template has none."""
    return [
        json.dumps([server, api_version, kind, namespaced])
        for server, kinds in promises.items()
        for (api_version, kind), namespaced in kinds.items()
        if _PLAIN.fullmatch(api_version) and _PLAIN.fullmatch(kind)
    ]

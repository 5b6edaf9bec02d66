# SPDX-License-Identifier: GPL-3.0-or-later
"""Promises that a run in check mode keeps from one task to the next: kinds that a cluster would serve because of CRDs that would be
applied, namespaces that would be created, and objects that pods name.

Each task has a process of its own. The action plugin keeps the promises of a run in a file, which is deleted after the run; a module that
runs elsewhere gets them by an environment variable, and returns its own in its result, from which the action plugin takes them.
"""

from __future__ import annotations

import json
import re
import typing as t

from .._kube.served import Promised

VARIABLE = "MUSTER_PROMISED"
"""Environment variable of a module that runs elsewhere."""
KEY = "promised"
"""Key of its result, which no user sees."""
_PLAIN = re.compile(r"[A-Za-z0-9./-]*")


def read(lines: t.Iterable[str]) -> dict[str, Promised]:
    """Read the promises by API server from the lines of ``written``."""
    found: dict[str, Promised] = {}
    for line in lines:
        server, what, *values = json.loads(line)
        promised = found.setdefault(server, Promised())
        if what == "kind":
            api_version, kind, namespaced = values
            promised.kinds[api_version, kind] = namespaced
        elif what == "namespace":
            promised.namespaces.update(values)
        else:
            kind, namespace, name = values
            promised.objects.add((kind, namespace, name))
    return found


def written(promises: t.Mapping[str, Promised]) -> list[str]:
    """A line for each promise. One with a name that could mean something to a shell or a template has none."""
    rows: list[tuple[t.Any, ...]] = []
    for server, promised in promises.items():
        rows += [(server, "kind", *pair, namespaced) for pair, namespaced in promised.kinds.items()]
        rows += [(server, "namespace", name) for name in sorted(promised.namespaces)]
        rows += [(server, "object", *key) for key in sorted(promised.objects)]
    return [json.dumps(row) for row in rows if all(_PLAIN.fullmatch(text) for text in row[2:] if isinstance(text, str))]

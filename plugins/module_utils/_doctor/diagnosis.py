# SPDX-License-Identifier: GPL-3.0-or-later
"""Diagnose one namespace and the cluster around it. Nothing is written and nothing is repaired."""

from __future__ import annotations

import typing as t
from collections.abc import Callable, Iterator, Mapping, Sequence

from .._core.errors import MusterError
from .._core.pool import PARALLEL, run_all_or_raise
from .._kube.cluster import Cluster
from .._kube.survey import lacking_rights
from .certificates import certificates
from .findings import Finding, folded
from .pods import pods
from .reading import Snapshot, read
from .surroundings import surroundings
from .workloads import workloads

_QUOTED = 50
"""The number of logs that are read and quoted."""
Rule: t.TypeAlias = Callable[[Snapshot], Iterator[Finding]]
"""Something that is judged, such as the servers of one system."""


def diagnose(
    cluster: Cluster, namespace: str, rules: Sequence[Mapping[str, t.Any]], systems: Sequence[Rule] = ()
) -> tuple[list[Finding], list[str]]:
    """The findings, errors first, and why something could not be judged. RULES: those of a Role that the user should have."""
    seen = read(cluster, namespace)

    def judged(rule: Rule) -> list[Finding]:
        try:
            return list(rule(seen))
        except MusterError as error:
            seen.unread.append(error.message)
            return []

    parts = run_all_or_raise(judged, [pods, workloads, surroundings, certificates, *systems], parallel=PARALLEL)
    found = folded([*_rights(cluster, namespace, rules), *(one for part in parts for one in part)])
    quoting = [one for one in found if one.log][:_QUOTED]
    quoted = dict(zip(map(id, quoting), run_all_or_raise(Finding.with_log, quoting, parallel=PARALLEL), strict=True))
    return [quoted.get(id(one), one) for one in found], list(dict.fromkeys(seen.unread))


def _rights(cluster: Cluster, namespace: str, rules: Sequence[Mapping[str, t.Any]]) -> Iterator[Finding]:
    lacking = lacking_rights(cluster, namespace, rules)
    if lacking:
        advice = "Let an administrator apply the Role that playbooks/init.yml writes (rights.yml)."
        yield Finding("error", f"Namespace {namespace}", "rights are missing", ", ".join(lacking), advice)

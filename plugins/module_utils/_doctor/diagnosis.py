# Copyright: (c) 2026, Muster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection.

"""Diagnose one namespace and the cluster around it. Nothing is written and nothing is repaired."""

from __future__ import annotations

import typing as t
from collections.abc import Iterator, Mapping, Sequence

from .._kube.survey import lacking_rights
from .findings import Finding, folded
from .pods import pods
from .reading import read
from .surroundings import surroundings
from .workloads import workloads

if t.TYPE_CHECKING:
    from .._kube.cluster import Cluster


def diagnose(cluster: Cluster, namespace: str, rules: Sequence[Mapping[str, t.Any]]) -> tuple[list[Finding], list[str]]:
    """The findings, errors first, and why something could not be judged. RULES: those of a Role that the user should have."""
    seen = read(cluster, namespace)
    found = [*_rights(cluster, namespace, rules), *pods(seen), *workloads(seen), *surroundings(seen)]
    return folded(found), seen.unread


def _rights(cluster: Cluster, namespace: str, rules: Sequence[Mapping[str, t.Any]]) -> Iterator[Finding]:
    lacking = lacking_rights(cluster, namespace, rules)
    if lacking:
        advice = "Let an administrator apply the Role that playbooks/init.yml writes (rights.yml)."
        yield Finding("error", f"Namespace {namespace}", "rights are missing", ", ".join(lacking), advice)

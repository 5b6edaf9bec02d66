# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes: which ones a query selects, and whether they offer the resource.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Callable, Mapping, Sequence

from .._core.clock import SYSTEM_CLOCK, Clock
from .._core.conditions import condition, is_true
from .._core.errors import InvalidInput
from .objects import Manifest, labels_of
from .watching import Changes, watch_until

if t.TYPE_CHECKING:
    from .cluster import Cluster

_LOOK_AGAIN = 10.0
"""Seconds between two reads while no node changes."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class NodeQuery:
    """The nodes that match any of SELECTORS (all nodes if there are none), and the RESOURCE they must offer."""

    selectors: Sequence[str] = ()
    resource: str | None = None
    minimum_nodes: int = 0


@dataclasses.dataclass(frozen=True)
class Nodes:
    """The nodes that a query selects."""

    query: NodeQuery
    found: Sequence[Manifest]

    @property
    def lacking(self) -> list[str]:
        """Names of the nodes that do not offer the resource."""
        resource = self.query.resource
        if resource is None:
            return []
        return sorted(node["metadata"]["name"] for node in self.found if not _amount(node, resource))

    @property
    def pending_reason(self) -> str | None:
        """Why the query is not satisfied, None where it is satisfied."""
        desired, lacking = self.query, self.lacking
        if lacking:
            return f"{len(lacking)} of {len(self.found)} nodes report no allocatable {desired.resource}: {', '.join(lacking)}."
        if len(self.found) < desired.minimum_nodes:
            fits = " or ".join(desired.selectors) or "any"
            return f"{len(self.found)} nodes fit ({fits}), {desired.minimum_nodes} are needed."
        return None


def matches(labels: Mapping[str, str], selector: str) -> bool:
    """Whether LABELS match an equality-based selector: key, !key, key=value, key!=value, joined by commas."""
    return all(_fits(labels, term.strip()) for term in selector.split(",") if term.strip())


def _fits(labels: Mapping[str, str], term: str) -> bool:
    if any(character in term for character in "()<> "):
        raise InvalidInput(
            f"label selector '{term}' is not understood.",
            hint="Use key, !key, key=value or key!=value, joined by commas; several selectors in place of 'in (...)'.",
        )
    if "!=" in term:
        key, value = term.split("!=", 1)
        return labels.get(key) != value
    if "=" in term:
        key, value = term.replace("==", "=", 1).split("=", 1)
        return labels.get(key) == value
    return term[1:] not in labels if term.startswith("!") else term in labels


def _amount(node: Manifest, resource: str) -> str | None:
    amount = (node.get("status", {}).get("allocatable") or {}).get(resource)
    return None if amount in (None, "0") else str(amount)


def describe(node: Manifest) -> dict[str, t.Any]:
    """A node as the module returns it."""
    status = node.get("status", {})
    ready = condition(node, "Ready")
    return {
        "name": node["metadata"]["name"],
        "ready": is_true(node, "Ready"),
        "reason": "" if is_true(node, "Ready") else ready.get("message") or ready.get("reason") or "no report",
        "schedulable": not node.get("spec", {}).get("unschedulable", False),
        "simulated": labels_of(node).get("type") == "kwok",
        "version": status.get("nodeInfo", {}).get("kubeletVersion", ""),
        "labels": labels_of(node),
        "allocatable": status.get("allocatable") or {},
    }


def read(cluster: Cluster, query: NodeQuery) -> tuple[Nodes, str]:
    """The nodes that QUERY selects, and the resource version at which they were read."""
    listing = cluster.list("v1", "Node")
    fitting = [
        node
        for node in listing
        if not query.selectors or any(matches(labels_of(node), selector) for selector in query.selectors)
    ]
    return Nodes(query, fitting), listing.resource_version


def wait(
    cluster: Cluster,
    query: NodeQuery,
    *,
    timeout: float,
    progress: Callable[[str], None],
    clock: Clock = SYSTEM_CLOCK,
) -> Nodes:
    """Watch the nodes until QUERY is satisfied; WaitTimeout names what was still missing."""
    changes = Changes("v1", "Node", longest=_LOOK_AGAIN)

    def observe(asked: Cluster) -> tuple[Nodes, str | None]:
        nodes, changes.version = read(asked, query)
        return nodes, nodes.pending_reason

    return watch_until(
        cluster, changes, observe, goal="The nodes are not as required", timeout=timeout, progress=progress, clock=clock,
        hint="Look at the pods of the driver installer or device plugin on these nodes, and at `kubectl describe node`.",
    )  # fmt: skip

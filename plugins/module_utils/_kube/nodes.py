# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes: which ones a query selects, and whether they offer the resource."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import typing as t
from collections.abc import Callable, Mapping, Sequence

from .._core.conditions import condition, is_true
from .._core.errors import Causes, InvalidInput, MusterError, WaitTimeout, cause_of
from .cluster import Cluster
from .objects import Manifest, labels_of
from .pod_status import container_statuses, ended_runs, why_not_running
from .watching import Changes, watch_until

_LOOK_AGAIN = 10.0
"""Seconds between two reads while no node changes."""

_SHOWN = 3
"""Nodes of which a message tells what their plugin says."""
_TAIL, _LONGEST = 20, 300
"""Lines of a log that are read, and letters of one that are shown."""
_PREFIX = re.compile(r"^[IWEF]\d{4} \S+\s+\d+ \S+\] ")
"""The prefix of a message of Kubernetes' logger (klog)."""
_NO_DRIVER: Causes = (("no driver", re.compile(r"Incompatible (strategy|platform) detected")),)
"""NVIDIA's device plugin where it finds no driver (internal/rm/factory.go in 0.18, whose older versions say platform)."""

_LOOK = "Look at the pods of the driver installer or device plugin on these nodes, and at `kubectl describe node`."
_INSTALL = (
    "The device plugin finds no NVIDIA driver on these nodes. Install the driver and the NVIDIA Container Toolkit, make `nvidia` the "
    "default runtime of containerd, and then delete the pods of the plugin there: one that waits does not look again. "
    "If they have no GPU, select other nodes."
)
_LABEL = "Label the nodes that must have the resource, or select them by other labels."


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plugin:
    """The pods that make nodes offer a resource."""

    namespace: str
    label_selector: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class NodeQuery:
    """The nodes that match any of SELECTORS (all nodes if there are none), and the RESOURCE they must offer.

    PLUGIN is asked why a node does not offer it.
    """

    selectors: Sequence[str] = ()
    resource: str | None = None
    min_nodes: int = 0
    plugin: Plugin | None = None


@dataclasses.dataclass(frozen=True)
class Nodes:
    """The nodes that a query selects."""

    query: NodeQuery
    found: Sequence[Manifest]
    said: Sequence[str] = ()
    """The state of the device plugin on nodes that lack the resource."""
    without_driver: bool = False
    """Whether the plugin found no driver on one of them."""

    @property
    def lacking(self) -> list[str]:
        """Names of the nodes that do not offer the resource."""
        resource = self.query.resource
        if resource is None:
            return []
        offered = {node["metadata"]["name"]: (node.get("status", {}).get("allocatable") or {}).get(resource) for node in self.found}
        return sorted(name for name, amount in offered.items() if amount in (None, "0"))

    @property
    def pending_reason(self) -> str | None:
        """The reason why the query is not satisfied; None if it is satisfied."""
        desired, lacking = self.query, self.lacking
        if lacking:
            named = f"{len(lacking)} of {len(self.found)} nodes report no allocatable {desired.resource}: {', '.join(lacking)}."
            return " ".join([named, *self.said])
        if len(self.found) < desired.min_nodes:
            fits = " or ".join(desired.selectors) or "any"
            return f"{len(self.found)} nodes fit ({fits}), {desired.min_nodes} are needed."
        return None

    @property
    def hint(self) -> str:
        """The next step where the query is not satisfied."""
        if not self.lacking:
            return _LABEL
        return _INSTALL if self.without_driver else _LOOK


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
    fitting = [node for node in listing if not query.selectors or any(matches(labels_of(node), selector) for selector in query.selectors)]
    nodes = Nodes(query, fitting)
    if query.plugin and nodes.lacking:
        nodes = _with_words(cluster, nodes, query.plugin)
    return nodes, listing.resource_version


def _with_words(cluster: Cluster, nodes: Nodes, plugin: Plugin) -> Nodes:
    """The nodes with what the plugin's pods on the lacking ones say; they only add a reason, so none is needed."""
    try:
        pods = cluster.list("v1", "Pod", plugin.namespace, plugin.label_selector)
    except MusterError:
        return nodes
    by_node = {(pod.get("spec") or {}).get("nodeName"): pod for pod in pods}
    said, without_driver = list[str](), False
    for name in nodes.lacking[:_SHOWN]:
        if name not in by_node:
            said.append(f"On {name} there is no pod with {plugin.label_selector}.")
            continue
        log = _log(cluster, by_node[name])
        said.append(f"On {name} {_words(by_node[name], log)}.")
        without_driver = without_driver or bool(cause_of(log, _NO_DRIVER))
    return dataclasses.replace(nodes, said=said, without_driver=without_driver)


def _words(pod: Manifest, log: str) -> str:
    # Between two crashes it runs, as if nothing was.
    reason = why_not_running(pod)[0] or next((str(run) for run in ended_runs(pod) if run.exit_code), "")
    lines = [_PREFIX.sub("", line).strip().rstrip(".") for line in log.splitlines() if line.strip()]
    parts = [reason.rstrip(".")] if reason else []
    parts += [f"its log ends with: {lines[-1][:_LONGEST]}"] if lines else []
    return f"pod {pod['metadata']['name']} is {(pod.get('status') or {}).get('phase')}: {'; '.join(parts) or 'it says nothing'}"


def _log(cluster: Cluster, pod: Manifest) -> str:
    """The end of the log of its first container that has not succeeded: of an installer, the init container."""
    for container in container_statuses(pod):
        if ((container.get("state") or {}).get("terminated") or {}).get("exitCode") != 0:
            with contextlib.suppress(MusterError):
                where = pod["metadata"]["namespace"], pod["metadata"]["name"]
                return cluster.logs(*where, container=container.get("name"), tail_lines=_TAIL)
            break
    return ""


def wait(cluster: Cluster, query: NodeQuery, *, timeout: float, progress: Callable[[str], None]) -> Nodes:
    """Watch the nodes until QUERY is satisfied; WaitTimeout names what was still missing."""
    changes = Changes("v1", "Node", longest=_LOOK_AGAIN)
    latest: Nodes | None = None

    def observe(asked: Cluster) -> tuple[Nodes, str | None]:
        nonlocal latest
        latest, changes.version = read(asked, query)
        return latest, latest.pending_reason

    try:
        return watch_until(cluster, changes, observe, goal="The nodes are not as required", timeout=timeout, progress=progress, hint=_LOOK)
    except WaitTimeout as failure:
        if latest:
            failure.hint = latest.hint
        raise

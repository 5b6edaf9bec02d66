# SPDX-License-Identifier: GPL-3.0-or-later
"""Find faults of storage, quotas, nodes, webhooks, APIs, DNS and clocks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .._core.conditions import condition, is_true, reason_of
from .._core.quantity import parse
from .._kube.objects import Manifest, ref_of
from .._kube.ready import deletion_state
from .._kube.storage import MANY, class_of, is_shared
from .findings import Finding
from .reading import DNS, WEBHOOKS, Snapshot, skew

_SETTLED = 20.0
"""Seconds in which a claim, a node or a namespace may change without a finding."""
_SKEW = 5.0
"""Seconds by which clocks may differ without a finding."""
_PRESSURES = {
    "MemoryPressure": "Set memory requests and limits, or move pods away: the node evicts them.",
    "DiskPressure": "Free the node's disk, such as of unused images and logs: the node evicts pods and takes no new ones.",
    "PIDPressure": "Set a limit of processes (podPidsLimit), or end what starts so many.",
    "NetworkUnavailable": "See the pods of the network plugin on this node.",
}
_MINORS = 3
"""Minor versions by which a kubelet may be older than the API server (version skew policy of Kubernetes)."""


def surroundings(seen: Snapshot) -> Iterator[Finding]:
    """The findings about everything that pods depend on."""
    for rule in (_namespace, _claims, _quotas, _nodes, _webhooks, _api_services, _dns, _clocks):
        yield from rule(seen)


def _namespace(seen: Snapshot) -> Iterator[Finding]:
    place = seen.place
    if place is None or not place["metadata"].get("deletionTimestamp"):
        return
    if seen.age(place["metadata"]["deletionTimestamp"]) > _SETTLED:
        yield Finding(
            "error", f"Namespace {seen.namespace}", "stays in deletion", deletion_state(place).reason, "See to what the evidence names."
        )


def _claims(seen: Snapshot) -> Iterator[Finding]:
    for item in seen.of("PersistentVolumeClaim"):
        name, phase = str(ref_of(item)), (item.get("status") or {}).get("phase")
        if item["metadata"].get("deletionTimestamp"):
            if seen.age(item["metadata"]["deletionTimestamp"]) > _SETTLED:
                users = _users(seen, item["metadata"]["name"])
                evidence = f"{deletion_state(item).reason}{f'; used by {users}' if users else ''}"
                yield Finding("warning", name, "stays in deletion", evidence, "It goes when no pod uses it any more.")
        elif phase == "Lost":
            yield Finding(
                "error",
                name,
                "volume is lost",
                f"volume {item['spec'].get('volumeName')} is gone",
                "Restore the volume, or recreate the claim.",
            )
        elif phase == "Pending":
            yield from _unbound(seen, item)


def _users(seen: Snapshot, claim: str) -> str:
    names = [
        pod["metadata"]["name"]
        for pod in seen.of("Pod")
        if any((row.get("persistentVolumeClaim") or {}).get("claimName") == claim for row in pod["spec"].get("volumes") or [])
    ]
    return ", ".join(names)


def _unbound(seen: Snapshot, item: Manifest) -> Iterator[Finding]:
    """Claims that stay unbound. One that waits for its first pod is in order."""
    name, spec = str(ref_of(item)), item["spec"]
    found = class_of(seen.of("StorageClass"), spec.get("storageClassName"))
    reason, message = seen.warning(item)
    there = ", ".join(sorted(row["metadata"]["name"] for row in seen.of("StorageClass"))) or "none"
    if found is None and "StorageClass" in seen.kinds and spec.get("storageClassName") != "":
        wanted = spec.get("storageClassName")
        cause = "storage class does not exist" if wanted else "there is no default storage class"
        yield Finding(
            "error", name, cause, f"{wanted or 'none is named'}; there are: {there}", "Name one that exists in storage_class_name."
        )
    elif found and is_shared(found["provisioner"]) is False and MANY & set(spec.get("accessModes") or ()):
        evidence = f"{found['provisioner']} makes volumes for one node, {', '.join(spec['accessModes'])} is asked for"
        yield Finding("error", name, "storage class cannot be shared by nodes", evidence, "Name a class for files (EFS, Filestore, NFS).")
    elif reason:
        yield Finding("error", name, "volume cannot be made", f"{reason}: {message}", "See the log of the storage driver, and its quota.")


def _quotas(seen: Snapshot) -> Iterator[Finding]:
    """Quotas of which something is used up: the next pod is refused."""
    for item in seen.of("ResourceQuota"):
        status = item.get("status") or {}
        hard, used = status.get("hard") or {}, status.get("used") or {}
        full = [name for name in sorted(hard) if parse(str(hard[name])) and parse(str(used.get(name, "0"))) >= parse(str(hard[name]))]
        if full:
            evidence = ", ".join(f"{name} {used[name]} of {hard[name]}" for name in full)
            yield Finding(
                "warning", str(ref_of(item)), "quota is used up", evidence, "Raise it, or end what uses it, before more is started."
            )


def _nodes(seen: Snapshot) -> Iterator[Finding]:
    if "Node" in seen.kinds and not seen.of("Node"):
        yield Finding("error", "Node", "cluster has no nodes", "the list of nodes is empty", "Add a node, or a node pool.")
    for item in seen.of("Node"):
        name, ready = str(ref_of(item)), condition(item, "Ready")
        if ready.get("status") != "True" and seen.age_of(item) > _SETTLED:
            advice = "See whether the machine runs, and the log of its kubelet and container runtime."
            yield Finding("error", name, "node is not ready", reason_of(ready) or "it has never reported", advice, "nodes")
        for kind, advice in _PRESSURES.items():
            if is_true(item, kind):
                yield Finding("error", name, f"node has {kind}", reason_of(condition(item, kind)), advice, "nodes")
        if item["spec"].get("unschedulable"):
            yield Finding(
                "warning", name, "node takes no new pods", "it is cordoned", f"kubectl uncordon {item['metadata']['name']}", "nodes"
            )
        yield from _old(seen, item)


def _old(seen: Snapshot, node: Manifest) -> Iterator[Finding]:
    info = (node.get("status") or {}).get("nodeInfo") or {}
    server, kubelet = _minor(seen.server_version), _minor(info.get("kubeletVersion", ""))
    if server and kubelet and not 0 <= server - kubelet <= _MINORS:
        evidence = f"kubelet 1.{kubelet}, API server 1.{server}"
        yield Finding("warning", str(ref_of(node)), "version of the kubelet is not supported", evidence, "Upgrade the node.", "nodes")


def _minor(version: str) -> int:
    match = re.match(r"v?1\.(\d+)", version)
    return int(match[1]) if match else 0


def _webhooks(seen: Snapshot) -> Iterator[Finding]:
    """Webhooks without which nothing is admitted, and whose Service is gone or has no ready endpoint."""
    for item in (row for kind in WEBHOOKS for row in seen.of(kind)):
        for hook in item.get("webhooks") or []:
            service = (hook.get("clientConfig") or {}).get("service")
            if service and hook.get("failurePolicy") == "Fail" and seen.endpoints(service["namespace"], service["name"]) == 0:
                evidence = f"webhook {hook['name']}: Service {service['namespace']}/{service['name']} has no ready endpoint"
                advice = "Get its pods ready; or delete the configuration, if its operator was removed."
                yield Finding("error", str(ref_of(item)), "webhook does not answer", evidence, advice)
                break


def _api_services(seen: Snapshot) -> Iterator[Finding]:
    for item in seen.of("APIService"):
        found = condition(item, "Available")
        if found.get("status") == "False":
            advice = "Repair what serves it, or delete the APIService if that was removed: no namespace can be deleted meanwhile."
            yield Finding("error", str(ref_of(item)), "API does not answer", reason_of(found), advice)


def _dns(seen: Snapshot) -> Iterator[Finding]:
    if seen.endpoints(DNS.namespace or "", DNS.name) == 0:
        evidence = f"{DNS} has no ready endpoint"
        yield Finding("error", str(DNS), "DNS of the cluster does not answer", evidence, "See its pods: kubectl -n kube-system get pods.")


def _clocks(seen: Snapshot) -> Iterator[Finding]:
    ahead = {f"Node {lease['metadata']['name']}": skew(lease) for lease in seen.of("Lease of kube-node-lease")}
    for name, seconds in {**ahead, "this machine": (seen.local - seen.now).total_seconds()}.items():
        if abs(seconds) > _SKEW:
            evidence = f"{abs(seconds):.0f} s {'ahead of' if seconds > 0 else 'behind'} the API server"
            yield Finding("warning", name, "clock is wrong", evidence, "Set the clock, and keep it set (chrony, systemd-timesyncd).")

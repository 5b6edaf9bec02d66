#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kubeadm_node
short_description: Join a node to a local cluster with kubeadm, upgrade or remove it
description:
  - Runs C(kubeadm init) in the first node, and C(kubeadm join) with a token of a few minutes in every other one, unless that was done.
  - Upgrades a node with older versions in place, by C(kubeadm upgrade apply) in the first one and C(kubeadm upgrade node) in the others.
    The programs on the nodes change after that (M(muster.ml.local_node)).
  - Runs kubeadm again if it was interrupted. Files that it has already created are kept.
  - Writes the kubeconfig of administrators with a certificate of one year, and again from 90 days before the certificate ends.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.local_cluster
  - muster.ml.attributes.host
  - muster.ml.requires.yaml
  - muster.ml.local_cluster.node
options:
  state:
    description: State of the membership. V(absent) only deletes the Node object.
    type: str
    choices: [present, absent]
    default: present
  wait_timeout:
    description: Seconds after which kubeadm is stopped and the task fails.
    type: int
    default: 600
"""

EXAMPLES = r"""
- name: Create the control plane
  muster.ml.kubeadm_node:
    cluster: "{{ my_cluster }}"
    index: 1
"""

RETURN = r"""
node:
  description: Name of the node.
  returned: success
  type: str
  sample: muster-1
actions:
  description: Changes that were made, or would be in check mode, with what they interrupt.
  returned: success
  type: list
  elements: str
  sample: [Node muster-1 becomes one of the cluster]
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._core.clock import utc
from ansible_collections.muster.ml.plugins.module_utils._core.errors import MusterError
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, Result, Spec, host_main
from ansible_collections.muster.ml.plugins.module_utils._kube import ready
from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster, connect
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.module_utils._local import membership, upgrade
from ansible_collections.muster.ml.plugins.module_utils._local.cluster import CLUSTER_OPTION, LocalCluster, is_initialised
from ansible_collections.muster.ml.plugins.module_utils._local.host import wait_until
from ansible_collections.muster.ml.plugins.module_utils._local.kubeconfigs import ends_soon
from ansible_collections.muster.ml.plugins.module_utils._local.spec import NodeSpec

ARGUMENT_SPEC: Spec = {
    "cluster": CLUSTER_OPTION,
    "index": {"type": "int", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "wait_timeout": {"type": "int", "default": 600},
}


def leave(cluster: LocalCluster, node: NodeSpec, ctx: HostContext) -> bool:
    """Delete the Node object. Controllers recreate its pods on other nodes."""
    api, ref = connect({"kubeconfig": str(cluster.admin_kubeconfig)}, ctx.clock), Ref("v1", "Node", node.name)
    return api.get(ref) is not None and bool(ctx.check or api.delete(ref, dry_run=False))


def gap(cluster: LocalCluster, ctx: HostContext, judge: t.Callable[[HttpCluster, LocalCluster], str | None]) -> str | None:
    """Return what JUDGE says, or why the API server does not answer."""
    try:
        return judge(connect({"kubeconfig": str(cluster.admin_kubeconfig)}, ctx.clock), cluster)
    except MusterError as exc:
        return str(exc)


def etcd_gap(api: HttpCluster, cluster: LocalCluster) -> str | None:
    """Return why the API server does not answer for long: the etcd of a killed upgrade is still on its way."""
    pod = api.get(Ref("v1", "Pod", f"etcd-{cluster.spec.control_plane.name}", "kube-system")) or {}
    image = upgrade.new_etcd(cluster)
    state = ready.pod(pod) if image in str(pod.get("spec")) else ready.State(False, "its pod is of the old version")
    return None if not image or state.ready else f"etcd: {state.reason}"


def addons_gap(api: HttpCluster, _cluster: LocalCluster) -> str | None:
    """Return which of kubeadm's addons still has old pods. The proxy learns from the API server which pods of DNS have ended."""
    for kind, name, judge in (("Deployment", "coredns", ready.deployment), ("DaemonSet", "kube-proxy", ready.daemon_set)):
        found = api.get(Ref("apps/v1", kind, name, "kube-system"))
        if found and not (state := judge(found)).ready:
            return f"{kind} {name}: {state.reason}"
    return None


def execute(ctx: HostContext) -> Result:
    cluster = LocalCluster.of(ctx.params["cluster"])
    node = cluster.spec.node(ctx.params["index"])
    if ctx.params["state"] == "absent":
        return {**ctx.changes([f"Node {node.name} is deleted"] if leave(cluster, node, ctx) else []), "node": node.name, "actions": []}
    missing, to_upgrade = not is_initialised(node), upgrade.pending(cluster, node)
    renewed = node.index == 1 and ends_soon(cluster.admin_kubeconfig, utc(ctx.clock))
    if missing and not ctx.check:
        ctx.progress(f"kubeadm {'init' if node.index == 1 else 'join'} in {node.name}")
        enter = membership.initialise if node.index == 1 else membership.join
        enter(cluster, node, timeout=ctx.params["wait_timeout"])
    if to_upgrade and not ctx.check:
        ctx.progress(f"kubeadm upgrade in {node.name}")
        membership.upgrade(cluster, node, lambda: gap(cluster, ctx, etcd_gap), timeout=ctx.params["wait_timeout"], clock=ctx.clock)
        if node.index == 1:
            what = f"DNS and proxy of {cluster.spec.name}"
            wait_until(lambda: gap(cluster, ctx, addons_gap), timeout=ctx.params["wait_timeout"], what=what, clock=ctx.clock)
    if renewed and not ctx.check:
        membership.write_admin_kubeconfig(cluster, timeout=ctx.params["wait_timeout"])
    rows = {
        f"Node {node.name} becomes one of the cluster": missing,
        f"{cluster.admin_kubeconfig} is renewed": renewed,
        to_upgrade: to_upgrade,
    }
    actions = [row for row, so in rows.items() if so]
    return {**ctx.changes(actions), "node": node.name, "actions": actions}


def main() -> None:
    host_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

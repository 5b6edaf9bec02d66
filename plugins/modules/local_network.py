#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: local_network
short_description: Manage the network of a local cluster on its host
description:
  - Creates and removes a bridge, and for every node a network namespace that is connected to it by a veth pair, with routes between the
    pods of different nodes.
  - Writes the record of the cluster first, which its removal follows.
  - With O(cluster.egress), adds one nftables table and enables forwarding. Other rules of the host are not changed. A host whose
    firewall drops forwarded packets needs a rule for the bridge.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.local_cluster
  - muster.ml.attributes.host
options:
  state:
    description: State of the network. Stop the nodes before you remove it, because the removal does not wait for them.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Create the network of a local cluster
  muster.ml.local_network:
    cluster: "{{ my_cluster }}"
"""

RETURN = r"""
steps:
  description: Steps that were taken, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [bridge mu-muster]
"""

from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, Result, Spec, host_main
from ansible_collections.muster.ml.plugins.module_utils._local import network, record, removal
from ansible_collections.muster.ml.plugins.module_utils._local.cluster import CLUSTER_OPTION, LocalCluster
from ansible_collections.muster.ml.plugins.module_utils._local.host import run
from ansible_collections.muster.ml.plugins.module_utils._local.once import machine

ARGUMENT_SPEC: Spec = {
    "cluster": CLUSTER_OPTION,
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


def steps(cluster: LocalCluster, desired: bool) -> list[network.Command]:
    if desired:
        return network.missing_steps(cluster.spec, egress=cluster.options["egress"])
    return network.removal_steps(cluster.spec)


def execute(ctx: HostContext) -> Result:
    cluster = LocalCluster.of(ctx.params["cluster"])
    desired = ctx.params["state"] == "present"
    reasons = [step.why for step in steps(cluster, desired)]
    if desired and record.is_stale(cluster):
        reasons.insert(0, "record of the cluster's options")
    if not desired:
        removal.refuse_unrecorded(cluster.spec, reasons)
    if not ctx.check:
        if desired:
            record.write(cluster)
        with machine():
            for step in steps(cluster, desired):
                run(step.argv)
    return {**ctx.changes(reasons), "steps": reasons}


def main() -> None:
    host_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

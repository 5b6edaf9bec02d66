#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: local_node
short_description: Manage a node of a local cluster
description:
  - Creates, starts and removes a node, with its folders, configuration and cgroups. Its process 1 is supervisord in its own network,
    mount, process, host name and IPC namespaces, and runs containerd and the kubelet. Killing that process ends the node and its pods.
  - A node that is down is started again, with its images, volumes and, on the first node, the data of etcd.
  - A changed configuration is reloaded, and a service whose program changed is restarted; containers run on meanwhile. Where that is not
    enough, the node is restarted, and its pods with it.
  - A kubelet of a newer version waits until the control plane has that version (M(muster.ml.kubeadm_node)).
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.local_cluster
  - muster.ml.attributes.host
  - muster.ml.local_cluster.node
options:
  program_paths:
    description: Paths of the programs that run in the node outside of containers, such as containerd and kubelet, by name.
    type: dict
    default: {}
  state:
    description: State of the node. V(absent) also removes its data, such as those of etcd.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Start the second node
  muster.ml.local_node:
    cluster: "{{ my_cluster }}"
    index: 2
    program_paths: "{{ my_programs }}"
"""

RETURN = r"""
action:
  description: Change of the node that was made, or would be in check mode.
  returned: success
  type: str
  sample: started
pid:
  description: Process id of the node's process 1 on the host. 0 if the node does not run.
  returned: success
  type: int
  sample: 4711
"""

from pathlib import Path

from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, Result, Spec, host_main
from ansible_collections.muster.ml.plugins.module_utils._local import host, node, record, removal, upgrade
from ansible_collections.muster.ml.plugins.module_utils._local.cluster import CLUSTER_OPTION, LocalCluster, namespace_command
from ansible_collections.muster.ml.plugins.module_utils._local.kubeadm import AUDIT_POLICY
from ansible_collections.muster.ml.plugins.module_utils._local.node_files import RESOLVER
from ansible_collections.muster.ml.plugins.module_utils._local.spec import VOLUMES, NodeSpec
from ansible_collections.muster.ml.plugins.module_utils._local.system_images import stored_images

ARGUMENT_SPEC: Spec = {
    "cluster": CLUSTER_OPTION,
    "index": {"type": "int", "required": True},
    "program_paths": {"type": "dict", "default": {}},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}
# supervisord reads these while it runs, and others when their program starts. Services that read the next ones are restarted, without
# their containers. Any other change needs a restart of the node.
RELOADABLE = {"supervisord.conf", "kubeadm-init.yaml", "kwok.yaml", f"own{AUDIT_POLICY}", VOLUMES}
RESTARTED = {"containerd.toml": "containerd", "kubelet.sh": "kubelet"}


def present(cluster: LocalCluster, one: NodeSpec, programs: dict[str, str], ctx: HostContext) -> str:
    traits = host.traits()
    files = cluster.files(one, traits)
    stale = set(node.stale_files(one, files))
    replaced = node.link_programs(cluster.bin_dir, upgrade.for_node(cluster, programs), check=ctx.check)
    running = node.init_process(one)
    outdated = {*node.outdated_services(one, cluster.bin_dir), *(RESTARTED[name] for name in stale & RESTARTED.keys())}
    # Another network of the host may have other name servers; CoreDNS reads those of the option when it starts.
    reloadable = RELOADABLE | RESTARTED.keys() | (set() if cluster.options["dns_upstream"] else {RESOLVER})
    restart = bool(running and stale - reloadable)
    action = _action(running=running is not None, restart=restart, reload=bool(stale or replaced or outdated))
    if ctx.check or action == "unchanged":
        return action
    record.write(cluster)
    node.write_files(one, files)
    if action == "reloaded":
        if running and RESOLVER in stale:
            namespace_command(one, running.pid, [f"{one.state_dir}/resolver.sh"])
        node.reload_services(one, traits.python, cluster.supervisor_dir)
        if outdated:
            ended = upgrade.api_server_to_end(one, cluster.bin_dir / "kubelet") if "kubelet" in outdated else None
            node.restart_services(one, sorted(outdated), traits.python, cluster.supervisor_dir)
            host.wait_until(lambda: containerd_gap(cluster, one), timeout=60, what=f"containerd of {one.name}", clock=ctx.clock)
            if ended is not None:
                ctx.progress(f"the kubelet of {one.name} replaces the API server")
                host.wait_until(
                    lambda: upgrade.without_api_server(one, ended), timeout=300, what=f"API server of {one.name}", clock=ctx.clock
                )
        return action
    if restart:
        node.stop(one, ctx.clock)
    node.make_mount_points()
    node.make_cgroups(one, traits)
    ctx.progress(f"starting node {one.name}")
    node.start(one, ctx.clock)
    return action


def containerd_gap(cluster: LocalCluster, one: NodeSpec) -> str | None:
    return "it does not answer" if stored_images(cluster, one) is None else None


def _action(*, running: bool, restart: bool, reload: bool) -> str:
    if not running:
        return "started"
    if restart:
        return "restarted"
    return "reloaded" if reload else "unchanged"


def absent(cluster: LocalCluster, one: NodeSpec, ctx: HostContext) -> str:
    folders = [Path(one.state_dir), Path(one.run_dir)]
    there = node.init_process(one) or host.cgroup_folders(one.cgroup) or any(path.exists() for path in folders)
    if not there:
        return "unchanged"
    removal.refuse_unrecorded(cluster.spec, [f"node {one.name}"])
    removal.refuse_foreign_mounts(f"The node {one.name}", one.state_dir, one.run_dir)
    if not ctx.check:
        removal.remove_node(one, ctx.clock)
    return "removed"


def execute(ctx: HostContext) -> Result:
    cluster = LocalCluster.of(ctx.params["cluster"])
    one = cluster.spec.node(ctx.params["index"])
    desired = ctx.params["state"] == "present"
    action = present(cluster, one, ctx.params["program_paths"], ctx) if desired else absent(cluster, one, ctx)
    running = node.init_process(one)
    changes = ctx.changes([] if action == "unchanged" else [f"{one.name} {action}"])
    return {**changes, "action": action, "pid": running.pid if running else 0}


def main() -> None:
    host_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: local_cluster_info
short_description: What a local cluster is, and what it still lacks
version_added: 0.1.0
description:
  - Judges a local cluster and its host in one go, without changing anything - programs, network, nodes, images, membership, API and
    kubeconfig.
  - Role P(muster.ml.local_cluster#role) does only what this says is missing, so a second run is one call of this module.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.local_cluster
  - muster.ml.attributes.host
options:
  programs:
    description: Table of the programs that the cluster needs; see the role's C(vars/main.yml).
    type: list
    elements: dict
    default: []
  module_root:
    description: Folder with a folder for every Go module that a row of O(programs) names as C(module).
    type: path
    required: true
  release:
    description: Released files with C(url), C(checksum) and C(member), by program.
    type: dict
    default: {}
  source:
    description:
      - Where programs come from. V(auto) takes released files where they are all pinned and can be reached, else Go modules.
    type: str
    choices: [auto, release, go]
    default: auto
  cache_dir:
    description: Where programs are kept.
    type: path
    default: ~/.cache/muster
  kubeconfig:
    description: The user's kubeconfig, to compare with the cluster's own.
    type: path
  wait:
    description: Wait until all nodes are Ready and cluster DNS answers.
    type: bool
    default: false
  wait_timeout:
    description: Seconds to wait.
    type: int
    default: 180
"""

EXAMPLES = r"""
- name: See how the local cluster is
  muster.ml.local_cluster_info:
    cluster: "{{ my_cluster }}"
    module_root: /srv/build
  register: my_state

- name: Show the processes of the first node
  ansible.builtin.debug:
    var: my_state.nodes[0].processes
"""

RETURN = r"""
ready:
  description: Whether everything is as asked for. Nothing needs to be done then.
  returned: success
  type: bool
problems:
  description: What is in the way, each with the next step.
  returned: success
  type: list
  elements: str
packages_missing:
  description: Packages of Debian or Ubuntu to install first.
  returned: success
  type: list
  elements: str
programs:
  description: The table of programs with C(path), C(way) and C(missing) of each.
  returned: success
  type: list
  elements: dict
paths:
  description: Path of every program, by name.
  returned: success
  type: dict
node_programs:
  description: Path of every program that nodes run themselves, by name.
  returned: success
  type: dict
supervisor_missing:
  description: Whether the cluster has no supervisord of its own yet.
  returned: success
  type: bool
network_missing:
  description: What the network lacks.
  returned: success
  type: list
  elements: str
nodes:
  description:
    - Every node with C(name), C(index), C(address), C(pid) of its process 1 (0 where it does not run), C(processes) (name to process id
      on the host), C(current) (configuration), C(initialised), C(images_missing) and C(not_ready), the reason of the API server.
  returned: success
  type: list
  elements: dict
surplus:
  description: Numbers of nodes that exist but are no longer wanted.
  returned: success
  type: list
  elements: int
endpoint:
  description: Where the API is served.
  returned: success
  type: str
  sample: https://10.176.0.2:6443
admin_kubeconfig:
  description: The cluster's own kubeconfig, readable by root; empty as long as there is none.
  returned: success
  type: str
kubeconfig_current:
  description: Whether the user's kubeconfig is the same.
  returned: success
  type: bool
not_ready:
  description: Why the cluster is not ready, as the API server sees it; empty where it is.
  returned: success
  type: str
leftovers:
  description: Everything of this cluster that is on the host - processes, interfaces, namespaces, tables, cgroups, mounts, folders.
  returned: success
  type: list
  elements: str
"""

import typing as t
from pathlib import Path

from ansible_collections.muster.ml.plugins.module_utils._core.errors import MusterError
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main
from ansible_collections.muster.ml.plugins.module_utils._kube.client import connect
from ansible_collections.muster.ml.plugins.module_utils._local import host, preflight
from ansible_collections.muster.ml.plugins.module_utils._local.cluster import CLUSTER_OPTION, LocalCluster
from ansible_collections.muster.ml.plugins.module_utils._local.health import cluster_gap
from ansible_collections.muster.ml.plugins.module_utils._local.survey import Survey

ARGUMENT_SPEC: dict[str, t.Any] = {
    "cluster": CLUSTER_OPTION,
    "programs": {"type": "list", "elements": "dict", "default": []},
    "module_root": {"type": "path", "required": True},
    "release": {"type": "dict", "default": {}},
    "source": {"type": "str", "choices": ["auto", "release", "go"], "default": "auto"},
    "cache_dir": {"type": "path", "default": "~/.cache/muster"},
    "kubeconfig": {"type": "path"},
    "wait": {"type": "bool", "default": False},
    "wait_timeout": {"type": "int", "default": 180},
}
CONSTRAINTS: dict[str, t.Any] = {}


def api_gap(cluster: LocalCluster, kubeconfig: Path) -> str | None:
    """What the API server says is missing: Ready nodes, cluster DNS."""
    if not kubeconfig.exists():
        return "the control plane was not made yet"
    try:
        api = connect({"kubeconfig": str(kubeconfig)})
        nodes = api.list("v1", "Node")
        pods = api.list("v1", "Pod", "kube-system", label_selector="k8s-app=kube-dns")
    except MusterError as exc:
        return str(exc)
    return cluster_gap([node.name for node in cluster.spec.all_nodes], nodes, pods)


def wait_for_api(cluster: LocalCluster, admin: Path, params: dict[str, t.Any]) -> str | None:
    """What is missing, after waiting for it where that was asked for."""
    if params["wait"]:
        host.wait_until(
            lambda: api_gap(cluster, admin),
            timeout=params["wait_timeout"],
            what=f"local cluster {cluster.spec.name}",
            interval=0.5,
        )
        return None
    return api_gap(cluster, admin)


def execute(ctx: HostContext) -> dict[str, t.Any]:
    cluster, params = LocalCluster.of(ctx.params["cluster"]), ctx.params
    preflight.refuse_strangers(cluster)
    # The wait comes first: what is told of nodes and processes is how they are after it.
    gap = wait_for_api(cluster, cluster.admin_kubeconfig, params)
    table = [
        {**row, "module_dir": f"{params['module_root']}/{row['module']}", "release": params["release"].get(row["name"])}
        for row in params["programs"]
    ]
    survey = Survey.make(cluster, table, Path(params["cache_dir"]), params["source"])
    current = survey.kubeconfig_current(params["kubeconfig"])
    return {"changed": False, **survey.result(gap or "", kubeconfig_current=current)}


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

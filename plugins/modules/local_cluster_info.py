#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: local_cluster_info
short_description: Report the state of a local cluster and its host
description:
  - Checks the programs, network, nodes, images, membership, API and kubeconfig of a local cluster and its host, without changing
    anything.
  - Role P(muster.ml.local_cluster#role) does only what this module reports as missing, so a second run is one call of this module.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.local_cluster
  - muster.ml.attributes.host
  - muster.ml.requires.yaml
attributes:
  diff_mode:
    support: N/A
    description: Will return details on what has changed (or possibly needs changing in C(check_mode)), when in diff mode.
    details:
      - This module only reads.
options:
  programs:
    description:
      - Programs that the cluster needs, as in the role's C(vars/main.yml). A row with C(needed_for) counts only where that is on,
        C(storage), C(simulated_nodes) or C(kubectl).
    type: list
    elements: dict
    default: []
  default_storage_class:
    description: Require the programs for C(storage), which a cluster with a default StorageClass needs.
    type: bool
    default: true
  kubectl:
    description: Require the programs for C(kubectl), which people use.
    type: bool
    default: true
  install_packages:
    description: Expect that RV(packages_missing) are installed afterwards. If V(false), they are reported in RV(problems).
    type: bool
    default: true
  module_root:
    description: Folder with a folder for every Go module that a row of O(programs) names as C(module).
    type: path
    required: true
  released:
    description: Released files, as in the role's C(vars/main.yml).
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the file in messages.
        type: str
        required: true
      base:
        description: Suboption of O(release_urls) that has the base URL.
        type: str
        choices: [kubernetes, github]
        required: true
      path:
        description: Path of the file below the base URL. C({arch}) in it stands for V(amd64) or V(arm64).
        type: str
        required: true
      sha256_by_arch:
        description: SHA-256 of the file, by processor.
        type: dict
        required: true
      program_paths:
        description: Path in the archive of each program, by name. Empty if the file is the program itself.
        type: dict
        required: true
  release_urls:
    description: Base URLs of released files and images, those of mirrors in place of the originals.
    type: dict
    default: {}
    suboptions:
      kubernetes:
        description: Base URL of kubeadm, kubelet and kubectl.
        type: str
        default: https://dl.k8s.io
      github:
        description: Base URL of containerd, runc and the CNI plugins.
        type: str
        default: https://github.com
      registry:
        description: Base URL of the registry with the images that kubeadm lists.
        type: str
        default: https://registry.k8s.io
  source:
    description:
      - Source of the programs. V(released) takes released files and images, V(build) builds Go modules. V(auto) asks for the released ones
        for three seconds, and builds unless all can be had. A cluster keeps the source that it was made from.
    type: str
    choices: [auto, released, build]
    default: auto
  cache_dir:
    description: Folder of the cache for programs.
    type: path
    default: ~/.cache/muster
  user_kubeconfig:
    description: Path of the user's kubeconfig, to compare with the cluster's own.
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
- name: Read the state of the local cluster
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
  description: True if nothing needs to be done.
  returned: success
  type: bool
  sample: false
problems:
  description: Problems, each with the next step.
  returned: success
  type: list
  elements: str
  sample: ["Packages are missing. Install them (apt-get install iptables) or set local_cluster_install_packages: true."]
packages_missing:
  description: Packages of Debian or Ubuntu to install first.
  returned: success
  type: list
  elements: str
  sample: [iptables]
to_fetch:
  description: Released files that are missing, as option O(muster.ml.local_fetch#module:released).
  returned: success
  type: list
  elements: dict
  sample: []
to_pull:
  description: Images that are missing, as option O(muster.ml.local_fetch#module:images).
  returned: success
  type: list
  elements: str
  sample: []
to_build:
  description: Programs that are missing and come from Go modules, as option O(muster.ml.local_build#module:programs).
  returned: success
  type: list
  elements: dict
  sample: []
programs_ahead:
  description: Numbers of files, images and programs to fetch or build, and why nothing released is used. Empty if nothing is missing.
  returned: success
  type: str
  sample: ""
paths:
  description: Paths of all programs, and of the archives of images, by name.
  returned: success
  type: dict
  sample: {etcd: /root/.cache/muster/bin/0f3a5a6b7c8d9e0f/etcd}
node_programs:
  description: Paths of the programs that run in nodes outside of containers, by name.
  returned: success
  type: dict
  sample: {kubelet: /root/.cache/muster/bin/ffe840ff9295808e/kubelet}
supervisor_missing:
  description: True if the cluster has no supervisord of its own yet.
  returned: success
  type: bool
  sample: true
network_missing:
  description: Missing parts of the network.
  returned: success
  type: list
  elements: str
  sample: [bridge mu-muster]
nodes:
  description:
    - Nodes, each with C(name), C(index), C(address), C(pid) of its process 1 (0 where it does not run), C(processes) (name to process id
      on the host), C(current) (configuration), C(initialised), C(upgrade) (what an upgrade changes and interrupts) and C(images_missing).
  returned: success
  type: list
  elements: dict
  sample: [{name: muster-1, index: 1, address: 10.176.0.2, pid: 0, processes: {}, current: false, initialised: false}]
upgrades:
  description: Changes that an upgrade would make, node by node, with what they interrupt.
  returned: success
  type: list
  elements: str
  sample: []
surplus:
  description: Numbers of nodes that exist but are no longer desired.
  returned: success
  type: list
  elements: int
  sample: [3]
endpoint:
  description: URL of the API server.
  returned: success
  type: str
  sample: https://10.176.0.2:6443
kubectl:
  description: Path of kubectl. Empty until it is installed.
  returned: success
  type: str
  sample: /var/lib/muster/muster/bin/kubectl
admin_kubeconfig:
  description: Path of the cluster's own kubeconfig, readable by root. Empty until it exists.
  returned: success
  type: str
  sample: /var/lib/muster/muster/nodes/muster-1/admin.kubeconfig
kubeconfig_current:
  description: True if the user's kubeconfig is the same, and its certificate need not be renewed.
  returned: success
  type: bool
  sample: false
not_ready:
  description: Reason why the cluster is not ready, as the API server reports it. Empty if it is ready.
  returned: success
  type: str
  sample: ""
leftovers:
  description: Resources of this cluster on the host - processes, interfaces, namespaces, tables, cgroups, mounts, folders.
  returned: success
  type: list
  elements: str
  sample: [interface mu-muster]
"""

import typing as t
from pathlib import Path

from ansible_collections.muster.ml.plugins.module_utils._core.clock import utc
from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, MusterError
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main
from ansible_collections.muster.ml.plugins.module_utils._edge.recipe import NEEDED, rows
from ansible_collections.muster.ml.plugins.module_utils._kube.client import connect
from ansible_collections.muster.ml.plugins.module_utils._local import host, preflight
from ansible_collections.muster.ml.plugins.module_utils._local.cluster import CLUSTER_OPTION, LocalCluster
from ansible_collections.muster.ml.plugins.module_utils._local.download import base_url
from ansible_collections.muster.ml.plugins.module_utils._local.health import why_not_ready
from ansible_collections.muster.ml.plugins.module_utils._local.sources import URLS, Sources
from ansible_collections.muster.ml.plugins.module_utils._local.survey import Survey

RELEASED: dict[str, t.Any] = {
    "name": NEEDED,
    "base": {"type": "str", "choices": ["kubernetes", "github"], "required": True},
    "path": NEEDED,
    "sha256_by_arch": {"type": "dict", "required": True},
    "program_paths": {"type": "dict", "required": True},
}
ARGUMENT_SPEC: dict[str, t.Any] = {
    "cluster": CLUSTER_OPTION,
    "programs": {"type": "list", "elements": "dict", "default": []},
    "default_storage_class": {"type": "bool", "default": True},
    "kubectl": {"type": "bool", "default": True},
    "install_packages": {"type": "bool", "default": True},
    "module_root": {"type": "path", "required": True},
    "released": rows(**RELEASED),
    "release_urls": {"type": "dict", "default": {}, "options": {name: {"type": "str", "default": url} for name, url in URLS.items()}},
    "source": {"type": "str", "choices": ["auto", "released", "build"], "default": "auto"},
    "cache_dir": {"type": "path", "default": "~/.cache/muster"},
    "user_kubeconfig": {"type": "path"},
    "wait": {"type": "bool", "default": False},
    "wait_timeout": {"type": "int", "default": 180},
}


def api_gap(cluster: LocalCluster, ctx: HostContext) -> str | None:
    """Report what the API server still lacks: Ready nodes, cluster DNS."""
    if not cluster.admin_kubeconfig.exists():
        return "the control plane was not created yet"
    try:
        api = connect({"kubeconfig": str(cluster.admin_kubeconfig)}, ctx.clock)
        nodes = api.list("v1", "Node")
        pods = api.list("v1", "Pod", "kube-system", label_selector="k8s-app=kube-dns")
    except MusterError as exc:
        return str(exc)
    return why_not_ready([node.name for node in cluster.spec.all_nodes], cluster.options["kubernetes_version"], nodes, pods)


def wait_for_api(cluster: LocalCluster, ctx: HostContext) -> str | None:
    """Report what is missing, after waiting for it if requested."""
    if not ctx.params["wait"]:
        return api_gap(cluster, ctx)
    timeout, what = ctx.params["wait_timeout"], f"local cluster {cluster.spec.name}"
    host.wait_until(lambda: api_gap(cluster, ctx), timeout=timeout, what=what, clock=ctx.clock, interval=0.5)
    return None


def execute(ctx: HostContext) -> dict[str, t.Any]:
    cluster, params = LocalCluster.of(ctx.params["cluster"]), ctx.params
    preflight.require_root(cluster)
    # Wait first, so that the state of nodes and processes is the one after the wait.
    gap = wait_for_api(cluster, ctx)
    purposes = {"storage": params["default_storage_class"], "kubectl": params["kubectl"]}
    purposes["simulated_nodes"] = cluster.options["simulated_nodes"]
    if any(not isinstance(row.get(key), str) for row in params["programs"] for key in ("name", "module", "package")):
        raise InvalidInput("programs: each needs name, module and package.")
    table = [
        {**row, "module_dir": f"{params['module_root']}/{row['module']}"}
        for row in params["programs"]
        if purposes.get(row.get("needed_for"), True)
    ]
    sources = Sources(
        table=table, files=params["released"], source=params["source"], cache_dir=Path(params["cache_dir"]),
        urls={name: base_url(name, url) for name, url in {**URLS, **params["release_urls"]}.items()},
        version=cluster.options["kubernetes_version"], clock=ctx.clock,
    )  # fmt: skip
    survey = Survey.make(cluster, sources, install_packages=params["install_packages"])
    current = survey.kubeconfig_current(params["user_kubeconfig"], utc(ctx.clock))
    return {"changed": False, **survey.result(gap or "", kubeconfig_current=current)}


def main() -> None:
    host_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

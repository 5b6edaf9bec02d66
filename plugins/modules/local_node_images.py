#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: local_node_images
short_description: Import the images of Kubernetes into a node of a local cluster
description:
  - Imports the images of the control plane, kube-proxy, CoreDNS and the volume provisioner into the containerd of one node, from archives
    that M(muster.ml.local_fetch) pulled, or built from programs. A node itself pulls none of them.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.local_cluster
  - muster.ml.attributes.host
  - muster.ml.local_cluster.node
options:
  program_paths:
    description: Paths of the programs for the images, or of the archives of images (C(.tar)), by name.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Import the images of Kubernetes
  muster.ml.local_node_images:
    cluster: "{{ my_cluster }}"
    index: 1
    program_paths: "{{ my_programs }}"
"""

RETURN = r"""
images:
  description: Images that were imported, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: ["muster.local/kubernetes/etcd:3.6.8"]
"""

from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, Result, Spec, host_main
from ansible_collections.muster.ml.plugins.module_utils._local import system_images
from ansible_collections.muster.ml.plugins.module_utils._local.cluster import CLUSTER_OPTION, LocalCluster

ARGUMENT_SPEC: Spec = {
    "cluster": CLUSTER_OPTION,
    "index": {"type": "int", "required": True},
    "program_paths": {"type": "dict", "required": True},
}


def execute(ctx: HostContext) -> Result:
    cluster = LocalCluster.of(ctx.params["cluster"])
    node, programs = cluster.spec.node(ctx.params["index"]), ctx.params["program_paths"]
    missing = system_images.missing_images(cluster, node, programs)
    content = system_images.content_ids(cluster, node, programs)
    if not ctx.check:
        for number, name in enumerate(missing, start=1):
            ctx.progress(f"importing {name} into {node.name} ({number} of {len(missing)})")
            system_images.import_image(cluster, node, name, programs)
            # Record each image after its import, so that images imported before a failure are not imported again.
            system_images.record(node, name, content[name])
    return {**ctx.changes(missing), "images": missing}


def main() -> None:
    host_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

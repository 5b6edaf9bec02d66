#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: local_cluster_removal
short_description: Take a local cluster away without a trace
version_added: 0.1.0
description:
  - Ends every process of the cluster, and removes its mounts, cgroups, interfaces, network namespaces, nftables table, folders and audit
    log. With the last cluster of a host, the empty folders go that had to be made as mount points.
  - Looks afterwards whether anything is left, and fails naming it if so.
  - Packages and caches stay.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.local_cluster
  - muster.ml.attributes.host
options:
  delete_data:
    description: Delete volumes that have data in them. Without this such a cluster is left as it is.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Remove a local cluster
  muster.ml.local_cluster_removal:
    cluster: "{{ my_cluster }}"
"""

RETURN = r"""
found:
  description: Everything of the cluster that was on the host before.
  returned: success
  type: list
  elements: str
  sample: [interface mu-muster]
left:
  description: What is there afterwards. Empty, or the module fails.
  returned: success
  type: list
  elements: str
checked:
  description: Kinds of things that were looked for.
  returned: success
  type: list
  elements: str
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._local import removal
from ansible_collections.muster.ml.plugins.module_utils._local.cluster import CLUSTER_OPTION, LocalCluster
from ansible_collections.muster.ml.plugins.module_utils._local.errors import HostError, InvalidOption
from ansible_collections.muster.ml.plugins.module_utils._local.leftovers import KINDS, leftovers
from ansible_collections.muster.ml.plugins.module_utils._module.host import HostContext, host_main

ARGUMENT_SPEC: dict[str, t.Any] = {
    "cluster": CLUSTER_OPTION,
    "delete_data": {"type": "bool", "default": False},
}
CONSTRAINTS: dict[str, t.Any] = {}


def execute(ctx: HostContext) -> dict[str, t.Any]:
    cluster = LocalCluster.of(ctx.params["cluster"])
    found = leftovers(cluster.spec)
    volumes = removal.data_in(cluster)
    if volumes and not ctx.params["delete_data"]:
        raise InvalidOption(
            f"The cluster {cluster.spec.name} has volumes with data: {', '.join(volumes)} (in {cluster.volumes_dir}).",
            hint="Save what is needed, then set local_cluster_remove_data: true (delete_data) to remove it too.",
        )
    left: list[str] = found
    if found and not ctx.check:
        left = removal.remove(cluster, ctx.progress)
        if left:
            raise HostError(
                f"Of the cluster {cluster.spec.name} this is left: {', '.join(left)}.",
                hint="Run the removal again; if it stays, something outside of the cluster holds it.",
                details={"left": left},
            )
    return {"changed": bool(found), "found": found, "left": left, "checked": list(KINDS)}


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

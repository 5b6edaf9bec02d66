#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: local_cluster_removal
short_description: Remove a local cluster from its host
description:
  - Ends every process of the cluster, and removes its mounts, cgroups, interfaces, network namespaces, nftables table, folders and audit
    log. With the last cluster of a host it also removes the empty folders that were created as mount points.
  - Follows the record that was written when the cluster was created, even if O(cluster) differs from it. RV(differs) lists the
    differences.
  - Keeps and reports everything that does not belong to this cluster for certain, and every cluster without a record.
  - Checks afterwards that nothing is left, and fails with a list otherwise.
  - Packages and caches stay.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.local_cluster
  - muster.ml.attributes.host
options:
  delete_data:
    description: Delete volumes that hold data, too. Otherwise a cluster with such volumes is not removed.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Remove a local cluster
  muster.ml.local_cluster_removal:
    cluster: "{{ my_cluster }}"
"""

RETURN = r"""
summary:
  description: Number of removed resources, or to remove in check mode, and the kinds that were looked for.
  returned: success
  type: str
  sample: "Removed 12 things of cluster muster; looked for network namespaces, interfaces, nftables tables, processes."
found:
  description: Resources of the cluster on the host before the removal.
  returned: success
  type: list
  elements: str
  sample: [interface mu-muster]
left:
  description: Resources of the cluster on the host after the removal. If there are any, the module fails.
  returned: success
  type: list
  elements: str
  sample: []
kept:
  description: Resources that were kept because they do not belong to this cluster for certain, each with the reason.
  returned: success
  type: list
  elements: str
  sample: ["audit log /var/log/api/audit.log: it existed before the cluster"]
differs:
  description: Options that differ from the record of the cluster. The removal followed the record.
  returned: success
  type: list
  elements: str
  sample: []
checked:
  description: Kinds of resources that were looked for.
  returned: success
  type: list
  elements: str
  sample: [network namespaces, interfaces, nftables tables, processes, cgroups, mounts, folders]
"""

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, Result, Spec, host_main
from ansible_collections.muster.ml.plugins.module_utils._local import removal
from ansible_collections.muster.ml.plugins.module_utils._local.cluster import CLUSTER_OPTION, LocalCluster
from ansible_collections.muster.ml.plugins.module_utils._local.leftovers import KINDS

ARGUMENT_SPEC: Spec = {"cluster": CLUSTER_OPTION, "delete_data": {"type": "bool", "default": False}}


def execute(ctx: HostContext) -> Result:
    asked = LocalCluster.of(ctx.params["cluster"])
    planned = removal.plan(asked, delete_data=ctx.params["delete_data"])
    found, left, kept = planned.found, planned.found, planned.kept
    if not ctx.check:
        left, more = removal.remove(planned, ctx.progress, ctx.clock)
        kept = [*kept, *more]
        if left:
            raise Failed(
                f"Of the cluster {asked.spec.name} this is left: {', '.join(left)}.",
                hint="Run the removal again; if it stays, something outside of the cluster holds it.",
                details={"left": left, "kept": kept},
            )
    removed = f"{'Would remove' if ctx.check else 'Removed'} {len(found)} things of cluster {asked.spec.name}"
    return {
        **ctx.changes(planned.removable), "summary": f"{removed}; looked for {', '.join(KINDS)}.",
        "found": found, "left": left, "kept": kept, "differs": planned.differs, "checked": list(KINDS),
    }  # fmt: skip


def main() -> None:
    host_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

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
  - Goes by what was written down when the cluster was made, also where O(cluster) says something else, which is told.
  - What cannot be told to be of this cluster stays and is named, and so does a cluster of which nothing says that Muster made it.
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
kept:
  description: What was near and is not of this cluster, or cannot be told to be, each with the reason. It stays.
  returned: success
  type: list
  elements: str
  sample: ["audit log /var/log/api/audit.log: it was there before the cluster was made"]
differs:
  description: Options that say something else than what the cluster was made with, by which the removal went.
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

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main
from ansible_collections.muster.ml.plugins.module_utils._local import removal
from ansible_collections.muster.ml.plugins.module_utils._local.cluster import CLUSTER_OPTION, LocalCluster
from ansible_collections.muster.ml.plugins.module_utils._local.leftovers import KINDS

ARGUMENT_SPEC: dict[str, t.Any] = {
    "cluster": CLUSTER_OPTION,
    "delete_data": {"type": "bool", "default": False},
}
CONSTRAINTS: dict[str, t.Any] = {}


def execute(ctx: HostContext) -> dict[str, t.Any]:
    asked = LocalCluster.of(ctx.params["cluster"])
    planned = removal.plan(asked, delete_data=ctx.params["delete_data"])
    found, left, kept = planned.found, planned.found, planned.kept
    if not ctx.check:
        left, more = removal.remove(planned, ctx.progress)
        kept = [*kept, *more]
        if left:
            raise Failed(
                f"Of the cluster {asked.spec.name} this is left: {', '.join(left)}.",
                hint="Run the removal again; if it stays, something outside of the cluster holds it.",
                details={"left": left, "kept": kept},
            )
    return {
        "changed": planned.changes, "found": found, "left": left, "kept": kept, "differs": planned.differs,
        "checked": list(KINDS),
    }  # fmt: skip


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

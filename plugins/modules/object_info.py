# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: object_info
short_description: Read objects of one kind
description: Reads an object, or all of a kind. It asks only for the API group of the kind, and not for all that the cluster serves.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.attributes
  - muster.ml.attributes.kube_info
options:
  api_version: {description: API group and version of the kind., type: str, default: v1}
  kind: {description: Kind of the objects., type: str, required: true}
  name: {description: Name of the object. Without it all objects of the kind are read., type: str}
  namespace: {description: "Namespace of the object. Defaults to that of the kubeconfig's context; without O(name), to all.", type: str}
"""

EXAMPLES = r"""
- name: Read who installed JobSet
  muster.ml.object_info: {api_version: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: jobsets.jobset.x-k8s.io}
"""

RETURN = r"""
resources:
  description: Objects as the API server returns them, but with fingerprints of secret values. Empty if there is none, or no such kind.
  returned: success
  type: list
  elements: dict
  sample: [{kind: Namespace, metadata: {name: ml}}]
"""

from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import printable
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, Result, Spec, module_main
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref

TEXT: Spec = {name: {"type": "str"} for name in ("name", "namespace")}
ARGUMENT_SPEC: Spec = {"api_version": {"type": "str", "default": "v1"}, "kind": {"type": "str", "required": True}, **TEXT}


def execute(ctx: Context) -> Result:
    """Read the object that is named, or all of the kind."""
    version, kind, name, namespace = (ctx.params[key] for key in ARGUMENT_SPEC)
    if name is None:
        return {"changed": False, "resources": printable(ctx.cluster.list(version, kind, namespace))}
    served = ctx.cluster.resource(version, kind)
    found = ctx.cluster.get(Ref(version, kind, name, ctx.namespace if served and served.namespaced else None))
    return {"changed": False, "resources": [printable(found)] if found else []}


def main() -> None:
    module_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: managed_info
short_description: What of a cluster is Muster's
version_added: 0.1.0
description:
  - Lists every object that Muster made, by the label it puts on them, with its owner and whether it is ready.
  - For one namespace, also lists what others have put there.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.attributes
  - muster.ml.attributes.kube_info
options:
  namespace:
    description: Only objects in this namespace. Without it, those of the whole cluster.
    type: str
  others:
    description: Also list what is in O(namespace) and was not made by Muster, a controller or Kubernetes itself.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Everything that Muster made
  muster.ml.managed_info:
  register: managed

- name: Who else lives in a namespace
  muster.ml.managed_info:
    namespace: ml
    others: true
  register: inhabitants
"""

RETURN = r"""
managed:
  description: Objects that Muster made.
  returned: always
  type: list
  elements: dict
  contains:
    owner:
      description: What they belong to.
      type: str
      returned: always
      sample: persia_job.fair
    kind:
      description: Kind of the object.
      type: str
      returned: always
    name:
      description: Name of the object.
      type: str
      returned: always
    namespace:
      description: Namespace of the object.
      type: str
      returned: always
    ready:
      description: Whether it is ready; always V(true) for kinds without a state.
      type: bool
      returned: always
    reason:
      description: Why it is not.
      type: str
      returned: always
names:
  description: The same objects, as C(Kind namespace/name).
  returned: always
  type: list
  elements: str
owners:
  description: The owners of these objects, each with what of it is not ready.
  returned: always
  type: list
  elements: dict
  contains:
    owner:
      description: Name of the owner.
      type: str
      returned: always
    objects:
      description: Number of its objects.
      type: int
      returned: always
    ready:
      description: Whether all of them are.
      type: bool
      returned: always
    reasons:
      description: What is not ready, and why.
      type: list
      elements: str
      returned: always
trainings:
  description: The trainings that M(muster.ml.persia_job) and M(muster.ml.elastic_job) made, for M(muster.ml.job_info).
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description: Name of the training.
      type: str
      returned: always
    namespace:
      description: Its namespace.
      type: str
      returned: always
    kind:
      description: The module that made it.
      type: str
      returned: always
others:
  description:
    - What others have put into O(namespace), as C(Kind namespace/name). A ReplicaSet or a Lease that nobody owns counts as well.
    - What could not be looked at is named too, since something of somebody may be among it.
  returned: when O(others) is V(true)
  type: list
  elements: str
"""

import itertools
import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, module_main
from ansible_collections.muster.ml.plugins.module_utils._edge.systems import KINDS
from ansible_collections.muster.ml.plugins.module_utils._kube import managed

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "namespace": {"type": "str"},
    "others": {"type": "bool", "default": False},
}

CONSTRAINTS: dict[str, t.Any] = {"required_if": [("others", True, ["namespace"])]}


def _owners(found: list[managed.Managed]) -> t.Iterator[dict[str, t.Any]]:
    for owner, group in itertools.groupby(found, key=lambda item: item.owner):
        objects = [(item.ref, item.result()) for item in group]
        reasons = [f"{ref}: {result['reason']}" for ref, result in objects if not result["ready"]]
        yield {"owner": owner, "objects": len(objects), "ready": not reasons, "reasons": reasons}


def execute(ctx: Context) -> dict[str, t.Any]:
    """Read everything with our label, and what lives beside it where that is wanted."""
    namespace = ctx.params["namespace"]
    labels = {kind.label: name for name, kind in KINDS.items() if kind.label}
    found = managed.managed(ctx.cluster, namespace=namespace, trainings=labels)
    result: dict[str, t.Any] = {
        "changed": False,
        "managed": [item.result() for item in found],
        "names": [str(item.ref) for item in found],
        "owners": list(_owners(found)),
        "trainings": [
            {"name": name, "namespace": space, "kind": kind} for space, name, kind in managed.trainings(found)
        ],
    }
    if ctx.params["others"]:
        result["others"] = managed.others(ctx.cluster, namespace)
    return result


def main() -> None:
    """Run as a module."""
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

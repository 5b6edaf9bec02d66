# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: managed_info
short_description: List the objects that Muster manages
description:
  - Lists every object with Muster's label, with its owner and whether it is ready.
  - It can also list the objects in namespaces that Muster does not manage.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.attributes
  - muster.ml.attributes.kube_info
options:
  namespace:
    description: Namespace of the objects. Defaults to the whole cluster.
    type: str
  others:
    description:
      - List the objects in O(namespace), or in all namespaces, too, that neither Muster nor a controller manages. In all namespaces,
        those of Kubernetes itself and of clouds are left out.
    type: bool
    default: false
  on_nodes:
    description:
      - Selectors of nodes by their labels. O(others) then lists the pods on nodes that fit one of them, whoever manages these pods, instead
        of those objects; without pods of Kubernetes, of clouds and of DaemonSets, and without those that have ended.
    type: list
    elements: str
"""

EXAMPLES = r"""
- name: List all objects that Muster manages
  muster.ml.managed_info:
  register: managed

- name: List the objects that others created in a namespace
  muster.ml.managed_info:
    namespace: ml
    others: true
  register: inhabitants
"""

RETURN = r"""
managed:
  description: Objects that Muster manages.
  returned: always
  type: list
  elements: dict
  sample: [{owner: persia_job.ml.fair, home: '', kind: StatefulSet, name: fair-trainer, namespace: ml, ready: true, reason: ''}]
  contains:
    owner:
      description: Owner of the object.
      type: str
    home:
      description: Namespace of the owner, where M(muster.ml.apply) made the object; otherwise empty, because the name of the owner has it.
      type: str
    kind:
      description: Kind of the object.
      type: str
    name:
      description: Name of the object.
      type: str
    namespace:
      description: Namespace of the object.
      type: str
    ready:
      description: True if the object is ready, or of a kind without a state.
      type: bool
    reason:
      description: Reason why the object is not ready.
      type: str
names:
  description: Objects that Muster manages, as C(Kind namespace/name).
  returned: always
  type: list
  elements: str
  sample: ["ConfigMap ml/fair", "StatefulSet ml/fair-trainer"]
owners:
  description: Owners of these objects, each with the objects that are not ready.
  returned: always
  type: list
  elements: dict
  sample: [{owner: persia_job.ml.fair, home: '', objects: 7, ready: true, reasons: []}]
  contains:
    owner:
      description: Name of the owner.
      type: str
    home:
      description: Namespace of the owner, as above.
      type: str
    objects:
      description: Number of the owner's objects.
      type: int
    ready:
      description: True if all objects of the owner are ready.
      type: bool
    reasons:
      description: Objects that are not ready, each with the reason.
      type: list
      elements: str
trainings:
  description: Trainings, whichever module created them, for M(muster.ml.job_info).
  returned: always
  type: list
  elements: dict
  sample: [{name: fair, namespace: ml, kind: persia_job}]
  contains:
    name:
      description: Name of the training.
      type: str
    namespace:
      description: Namespace of the training.
      type: str
    kind:
      description: Module that manages the training.
      type: str
written:
  description: Time at which Muster last wrote each object, by C(Kind namespace/name), from the field managers of the object.
  returned: always
  type: dict
  sample: {"ConfigMap ml/fair": "2026-11-23T03:00:00Z"}
others:
  description:
    - Objects in namespaces that Muster does not manage, as C(Kind namespace/name), including ReplicaSets and Leases without an owner.
    - Kinds that could not be listed are named, too, because such objects may be among them.
  returned: when O(others) is V(true)
  type: list
  elements: str
  sample: ["Pod ml/debug"]
"""

import itertools
import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, module_main
from ansible_collections.muster.ml.plugins.module_utils._edge.systems import KINDS
from ansible_collections.muster.ml.plugins.module_utils._kube import managed

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "namespace": {"type": "str"},
    "others": {"type": "bool", "default": False},
    "on_nodes": {"type": "list", "elements": "str"},
}


def _owners(found: list[managed.Managed]) -> t.Iterator[dict[str, t.Any]]:
    for (owner, home), group in itertools.groupby(found, key=lambda item: (item.owner, item.home)):
        objects = [(item.ref, item.result()) for item in group]
        reasons = [f"{ref}: {result['reason']}" for ref, result in objects if not result["ready"]]
        yield {"owner": owner, "home": home, "objects": len(objects), "ready": not reasons, "reasons": reasons}


def _trainings(found: list[managed.Managed]) -> list[dict[str, str]]:
    """Trainings by their label; those of a kind without one by their owner, which has their name."""
    rows = managed.trainings_of(found)
    for item in found:
        name, namespace = item.ref.name, item.ref.namespace or ""
        rows |= {(namespace, name, kind.name) for kind in KINDS.values() if not kind.label and kind.owner(namespace, name) == item.owner}
    return [{"name": name, "namespace": namespace, "kind": kind} for namespace, name, kind in sorted(rows)]


def execute(ctx: Context) -> dict[str, t.Any]:
    """List the objects with Muster's label, and the others in the namespace if requested."""
    namespace = ctx.params["namespace"]
    labels = {kind.label: name for name, kind in KINDS.items() if kind.label}
    found = managed.managed_objects(ctx.cluster, namespace=namespace, trainings=labels)
    result: dict[str, t.Any] = {
        "changed": False,
        "managed": [item.result() for item in found],
        "names": [str(item.ref) for item in found],
        "owners": list(_owners(found)),
        "written": {str(item.ref): item.written for item in found},
        "trainings": _trainings(found),
    }
    if ctx.params["others"]:
        nodes = ctx.params["on_nodes"]
        result["others"] = managed.pods_on(ctx.cluster, nodes) if nodes else managed.unmanaged_objects(ctx.cluster, namespace)
    return result


def main() -> None:
    module_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

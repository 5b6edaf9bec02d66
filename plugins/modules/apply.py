# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: apply
short_description: Apply, prune or delete Kubernetes objects
description:
  - Creates, updates, prunes and deletes Kubernetes objects of any kind, many at a time, by server-side apply.
  - All errors in the objects, and everything in the cluster that would refuse them, are reported together and before anything is
    changed.
  - Objects are sent in waves (namespaces and definitions; accounts, roles, quotas, classes and volumes; configuration, claims and
    Services; workloads; webhooks and autoscalers; custom resources). The objects of a wave are sent concurrently.
  - A run with nothing to change sends no write request. A field that another client changed is detected and set again.
author:
  - Muster contributors (@muster-ml)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.wait
  - muster.ml.removal
  - muster.ml.apply
  - muster.ml.attributes
  - muster.ml.attributes.kube
options:
  definition:
    description:
      - Objects as a mapping, a list of mappings, or YAML text with any number of documents. An object of kind C(List) stands for its items.
      - Text is read as kubectl reads it, here and in O(src) and O(url). A duplicate key is an error. A mapping is read by
        Ansible, for which C(0o17), C(1e3) and C(y) are text, and C(12:30:45) is a number. Put such values in quotes.
      - With secret values it is hidden from callbacks. Ansible itself, with C(display_args_to_stdout), shows what the playbook has
        before the task begins. Take such values from variables.
    type: raw
  src:
    description:
      - Path of a file with objects, a folder (its C(.yaml), C(.yml) and C(.json) files are read), or a glob pattern.
      - The path is one of the host that runs the task. On the controller a relative path may also be in the role's or playbook's
        C(files) folder.
    type: str
  url:
    description:
      - URL of a file with objects. Its content must have the digest O(sha256).
    type: str
  sha256:
    description:
      - SHA-256 of what O(url) must return, so that a release cannot change without notice.
    type: str
  namespace:
    description:
      - Namespace of namespaced objects that name none. Defaults to the namespace of the kubeconfig's context.
      - It is also the second part of O(owner), as the namespace of a release of Helm. Without this option that is the namespace
        that the objects name or are, if it is the same one in all of them, and otherwise that of the context.
    type: str
  namespaces:
    description:
      - More namespaces from which O(prune), or O(state=absent) without objects, deletes objects of O(owner). V(*) means all of them.
      - Otherwise only objects in O(namespace) and in the namespaces that the objects of this task name are deleted. Others are kept and
        named in a warning, and with them the cluster-wide objects of O(owner), which may belong together.
    type: list
    elements: str
    default: []
  owner:
    description:
      - Name of this set of objects in the namespace that O(namespace) describes, stored in their labels C(muster.ml/owner) and
        C(muster.ml/home). An object has one owner. Two owners with the same name in two namespaces have nothing to do with each other.
      - With O(state=absent), only objects of this owner are deleted, also if they are given one by one. Others are kept and named in a
        warning. O(force_conflicts) also deletes those of another owner, O(adopt) those without an owner.
      - Required for O(prune), and for O(state=absent) without any objects, which removes everything of the owner (O(namespaces)). Neither
        searches kinds of which controllers create large numbers, such as Endpoints, EndpointSlice, Event, Lease and ReplicaSet, outside of
        namespaces of the owner. To delete such an object, give it with O(state=absent).
    type: str
    default: apply.default
  expected_kinds:
    description:
      - Kinds that check mode counts as served, as C(gateway.networking.k8s.io/v1/Gateway), because something else than this module would
        have installed them by then, such as a Helm chart earlier in the same playbook.
      - Check mode refuses objects of other kinds that the cluster does not serve, as the run would, unless an earlier task of this module
        in the same run of C(ansible-playbook) would apply their CustomResourceDefinition.
      - With O(state=absent), an object of a kind that the cluster does not serve is one that is not there. Where the kind seems to be
        misspelt, because the cluster serves one of almost the same name in that API group, it is refused.
    type: list
    elements: str
    default: []
  expected_namespaces:
    description:
      - Namespaces that check mode counts as there, because something else than this module would have created them by then.
      - Check mode refuses objects in other namespaces that do not exist, as the run would, unless the objects of this task, or of an
        earlier task of this module in the same run of C(ansible-playbook), contain the namespace.
    type: list
    elements: str
    default: []
  prune:
    description:
      - Remove objects of O(owner) that are no longer among those given, of any kind, in the namespaces that this task names
        (O(namespaces)).
      - Searches all kinds that the cluster serves. If nothing is left over, a ConfigMap C(muster-settled-...) beside the objects records
        that O(owner) has no others, and the next run reads only these. It is deleted as soon as O(owner) gets another object, and with
        the objects. Without it, or without permission to read it, prune searches everywhere again.
      - Refused with no objects at all, which would delete everything of O(owner).
      - Two runs of one owner do not prune at the same time. A Lease (C(coordination.k8s.io/v1)) keeps the second one waiting, for
        O(wait_timeout) seconds at most.
    type: bool
    default: false
  delete_data:
    description:
      - Delete objects that hold data, too, with O(prune) and with O(state=absent). Otherwise they are kept, and a warning names them.
      - These are PersistentVolumeClaim, PersistentVolume, Namespace, and Secrets with generated keys.
    type: bool
    default: false
seealso:
  - name: Server-side apply
    description: How the API server tracks the fields of several writers.
    link: https://kubernetes.io/docs/reference/using-api/server-side-apply/
"""

EXAMPLES = r"""
- name: Apply a namespace and a deployment, and wait until its pods are available
  muster.ml.apply:
    owner: apply.web
    wait: true
    definition:
      - apiVersion: v1
        kind: Namespace
        metadata:
          name: web
      - apiVersion: apps/v1
        kind: Deployment
        metadata:
          name: web
          namespace: web
        spec:
          replicas: 2
          selector:
            matchLabels: {app: web}
          template:
            metadata:
              labels: {app: web}
            spec:
              containers:
                - name: web
                  image: docker.io/library/nginx:1.29

- name: Apply all manifests of a folder, and remove what is no longer in it
  muster.ml.apply:
    owner: apply.monitoring
    src: monitoring/
    namespace: monitoring
    prune: true

- name: Install a pinned release
  muster.ml.apply:
    owner: apply.jobset
    url: https://example.com/jobset/v0.10.1/manifests.yaml
    sha256: 0f343b0931126a20f133d67c2b018a3b11a0cc4c2c7b1f1b7a6e0f2f4d0f3c11
    wait: true

- name: Remove everything of an owner, claims included
  muster.ml.apply:
    owner: apply.monitoring
    namespace: monitoring
    state: absent
    delete_data: true
    wait: true
"""

RETURN = r"""
objects:
  description: Objects, each with what was done to it, or would be done in check mode.
  returned: always
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of the object.
      type: str
      sample: Deployment
    name:
      description: Name of the object.
      type: str
      sample: web
    namespace:
      description: Namespace of the object, null for objects that have none.
      type: str
      sample: web
    action:
      description: Change of the object, one of created, updated, recreated, deleted, unchanged, kept.
      type: str
      sample: updated
    reason:
      description: Reason for the change, where it does not follow from the options.
      type: str
      sample: spec.replicas was changed by kubectl-edit
  sample:
    - {kind: Deployment, name: web, namespace: web, action: created}
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._edge.failure import Result
from ansible_collections.muster.ml.plugins.module_utils._edge.options import APPLY, REMOVAL, STATE, WAIT
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, module_main
from ansible_collections.muster.ml.plugins.module_utils._kube import source
from ansible_collections.muster.ml.plugins.module_utils._kube.engine import apply_objects
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import owner_at, ref_of
from ansible_collections.muster.ml.plugins.module_utils._kube.prepare import flatten
from ansible_collections.muster.ml.plugins.module_utils._kube.served import Promised, refuse_misspelt_kinds
from ansible_collections.muster.ml.plugins.module_utils._kube.validate import check_deletion, check_owner

DEFAULT_OWNER = "apply.default"
_EVERYWHERE = "*"
_APPLY_OPTIONS = ("namespace", "adopt", "force_conflicts", "recreate", "prune", "delete_data", "wait", "wait_timeout")

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "definition": {"type": "raw"},
    "src": {"type": "str"},
    "url": {"type": "str"},
    "sha256": {"type": "str"},
    "namespace": {"type": "str"},
    "namespaces": {"type": "list", "elements": "str", "default": []},
    "owner": {"type": "str", "default": DEFAULT_OWNER},
    "expected_kinds": {"type": "list", "elements": "str", "default": []},
    "expected_namespaces": {"type": "list", "elements": "str", "default": []},
    "prune": {"type": "bool", "default": False},
    "delete_data": {"type": "bool", "default": False},
    **REMOVAL,
    **STATE,
    **WAIT,
    **APPLY,
}
CONSTRAINTS: dict[str, t.Any] = {
    "mutually_exclusive": [("definition", "src", "url")],
    "required_together": [("url", "sha256")],
    "required_if": [("state", "present", ("definition", "src", "url"), True)],
}


def execute(ctx: Context) -> Result:
    params = ctx.params
    check_owner(params["owner"])
    if params["prune"] and params["owner"] == DEFAULT_OWNER:
        raise InvalidInput("prune needs an owner of its own, because it would delete what other tasks applied.", hint="Set owner.")
    objects = read_objects(params)
    if params["state"] == "absent":
        return _absent(ctx, objects)
    report = apply_objects(
        ctx.cluster,
        objects or [],
        owner=owner_of_task(ctx, objects or []),
        namespaces=None if _EVERYWHERE in params["namespaces"] else params["namespaces"],
        check=ctx.check,
        promised=_promised(ctx) if ctx.check else None,
        on_progress=ctx.progress,
        **{key: params[key] for key in _APPLY_OPTIONS},
    )
    return ctx.result(report)


def _promised(ctx: Context) -> Promised:
    """The kinds and namespaces that check mode counts as existing, beside those of the cluster."""
    for text in ctx.params["expected_kinds"]:
        api_version, _slash, kind = text.rpartition("/")
        if not (api_version and kind):
            raise InvalidInput(f"expected_kinds: {text!r} is not something like v1/Secret or apps/v1/Deployment.")
        ctx.promised.kinds.setdefault((api_version, kind), None)
    ctx.promised.namespaces.update(ctx.params["expected_namespaces"])
    return ctx.promised


def owner_of_task(ctx: Context, objects: list[t.Any]) -> str:
    """The owner with its namespace. The default owner has none: unrelated tasks share it, so no objects are searched by it."""
    name = ctx.params["owner"]
    return name if name == DEFAULT_OWNER else owner_at(name, _home(ctx, objects))


def _home(ctx: Context, objects: list[t.Any]) -> str:
    """The second part of the owner, as option namespace describes it."""
    if given := ctx.params["namespace"]:
        return str(given)
    named = {space for item in flatten(objects) if (space := _namespace_named(item))}
    return named.pop() if len(named) == 1 else str(ctx.cluster.namespace)


def _namespace_named(item: t.Any) -> str:
    """The namespace that an object names, or is; the object may have any mistake."""
    metadata = item.get("metadata") if isinstance(item, dict) else None
    if not isinstance(metadata, dict):
        return ""
    is_one = (item.get("apiVersion"), item.get("kind")) == ("v1", "Namespace")
    return str(metadata.get("name" if is_one else "namespace") or "")


def read_objects(params: dict[str, t.Any]) -> list[t.Any] | None:
    """Read the objects of the task. None if it names none."""
    if params.get("definition") is not None:
        return source.from_definition(params["definition"])
    if params.get("src"):
        return source.from_path(params["src"])
    if params.get("url"):
        return source.from_url(params["url"], params["sha256"])
    return None


def _absent(ctx: Context, objects: list[t.Any] | None) -> Result:
    from ansible_collections.muster.ml.plugins.module_utils._kube.deletion import Ownership
    from ansible_collections.muster.ml.plugins.module_utils._kube.prune_record import delete_prune_record
    from ansible_collections.muster.ml.plugins.module_utils._kube.removal import delete_objects
    from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import owners

    params = ctx.params
    if objects is None and params["owner"] == DEFAULT_OWNER:
        raise InvalidInput("state=absent needs objects to delete, or an owner whose objects are all deleted.", hint="Set owner.")
    named = None if objects is None else flatten(objects)
    if named is not None:
        check_deletion(named)
        refuse_misspelt_kinds(ctx.cluster, named, _promised(ctx) if ctx.check else Promised())
    owner = owner_of_task(ctx, named or [])
    reached = None if _EVERYWHERE in params["namespaces"] else frozenset([*params["namespaces"], _home(ctx, named or [])])
    report = delete_objects(
        ctx.cluster,
        named,
        Ownership(owner, others=params["force_conflicts"], unowned=params["adopt"], namespaces=reached),
        check=ctx.check,
        ignore_users_of=owners(params["ignore_users_of"]),
        on_progress=ctx.progress,
        **{key: params[key] for key in ("namespace", "wait", "wait_timeout", "delete_data")},
    )
    if named and not ctx.check:
        delete_prune_record(ctx.cluster, owner, map(ref_of, named), params["namespace"] or ctx.cluster.namespace)
    return ctx.result(report)


def main() -> None:
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

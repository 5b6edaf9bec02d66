#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_cluster
short_description: A cluster of etcd members
version_added: 0.2.0
description:
  - Makes one, three or five etcd members that clients reach at C(<name>:2379), as a StatefulSet with its own storage.
  - With O(wait=true) the members themselves are asked, through the API server's pod proxy, until each is healthy, connected to every other
    one, and one of them leads.
  - Certificates are made once and live in Secrets only. They are renewed when fewer than 60 of their 397 days are left.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.apply
  - muster.ml.wait
  - muster.ml.attributes
  - muster.ml.attributes.kube
  - muster.ml.pod
  - muster.ml.network_policy
options:
  name:
    description: Name of the cluster and of its client Service.
    type: str
    default: etcd
  namespace:
    description: Namespace, which must exist. Without it that of the kubeconfig's context.
    type: str
  size:
    description:
      - Number of members. One, three or five.
      - It cannot be changed later, because etcd takes its members once.
    type: int
    default: 1
  enable_v2:
    description:
      - Serve the v2 API too, which the rendezvous backends C(etcd) and C(etcd-v2) of torchrun speak. The last version that has it is 3.5.
    type: bool
    default: false
  peer_tls:
    description:
      - Members talk to each other encrypted, each with a certificate. Without it V(true) for a new cluster, and for one that is there
        what it was made with.
      - It cannot be changed later.
    type: bool
  client_tls:
    description:
      - Clients need TLS and a certificate, which is in the Secret C(<name>-client-tls).
      - Without it V(true) for a new cluster, and for one that is there what it was made with, because its clients would be locked out.
      - When it is changed, the members are started again one by one and keep their data; clients have to change with them.
    type: bool
  storage_size:
    description: Size of each member's claim. Empty keeps the data in the pod, which is possible for one member only.
    type: str
    default: 1Gi
  storage_class_name:
    description: StorageClass of the claims. Without it the default one.
    type: str
  image:
    description: Image of the members, with a version or digest.
    type: str
    default: quay.io/coreos/etcd:v3.5.35
  env:
    description: Environment variables of the members.
  resources:
    description: C(requests) and C(limits) of a member, as in the Kubernetes API.
  tolerations:
    description: Taints that the members tolerate, as in the Kubernetes API.
  affinity:
    description: As in the Kubernetes API, instead of the default, which prefers a node of its own for each member.
  topology_spread_constraints:
    description: As in the Kubernetes API.
  priority_class_name:
    description: PriorityClass of the members.
  service_account_name:
    description: ServiceAccount of the members.
  termination_grace_period_seconds:
    description: Seconds that a member has to end.
  pod_security_context:
    description: Security context of the pods, instead of the restricted default.
  security_context:
    description: Security context of the container, instead of the restricted default.
  overrides:
    description: Merged into the StatefulSet last, by the strategic merge rules of Kubernetes.
    type: dict
  delete_data:
    description: With O(state=absent), also delete the members' claims and the Secrets with their certificates.
    type: bool
    default: false
requirements:
  - cryptography, for certificates (ansible-core brings it)
"""

EXAMPLES = r"""
- name: Where workers of torchrun meet, three members that talk encrypted
  muster.ml.etcd_cluster:
    namespace: ml
    size: 3
    enable_v2: true
    wait: true
    wait_timeout: 300

- name: Remove it with its data
  muster.ml.etcd_cluster:
    namespace: ml
    state: absent
    delete_data: true
    wait: true
"""

RETURN = r"""
objects:
  description: What was done to each object.
  returned: success
  type: list
  elements: dict
  sample:
    - kind: StatefulSet
      name: etcd
      namespace: ml
      action: created
url:
  description: Where clients connect.
  returned: when O(state=present)
  type: str
  sample: https://etcd:2379
members:
  description: What each member says about itself.
  returned: when O(state=present) and O(wait=true), outside check mode
  type: list
  elements: dict
  contains:
    pod:
      description: Name of its pod.
      type: str
      returned: always
    version:
      description: Its version.
      type: str
      returned: always
    leads:
      description: Whether it is the leader.
      type: bool
      returned: always
    peers:
      description: Number of other members that it is connected to.
      type: int
      returned: always
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge import groups
from ansible_collections.muster.ml.plugins.module_utils._edge.options import APPLY, STATE, WAIT, with_defaults
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, module_main
from ansible_collections.muster.ml.plugins.module_utils._kube.engine import apply_objects
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref
from ansible_collections.muster.ml.plugins.module_utils._kube.removal import delete_objects
from ansible_collections.muster.ml.plugins.module_utils._manifests.pods import PodSettings
from ansible_collections.muster.ml.plugins.module_utils._systems.etcd import members
from ansible_collections.muster.ml.plugins.module_utils._systems.etcd.manifests import (
    EtcdCluster,
    check_live,
    manifests,
    tls_of,
)

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "name": {"type": "str", "default": "etcd"},
    "namespace": {"type": "str"},
    **with_defaults(EtcdCluster, size="int", enable_v2="bool", storage_size="str"),
    **groups.POD,
    "image": {"type": "str", "default": "quay.io/coreos/etcd:v3.5.35"},
    "peer_tls": {"type": "bool"},
    "client_tls": {"type": "bool"},
    "storage_class_name": {"type": "str"},
    "overrides": {"type": "dict"},
    **groups.NETWORK,
    "delete_data": {"type": "bool", "default": False},
    **STATE,
    **APPLY,
    **WAIT,
}

CONSTRAINTS: dict[str, t.Any] = {}

_PLAIN = ("name", "size", "enable_v2", "overrides", *groups.NETWORK)


def wanted(params: dict[str, t.Any], namespace: str, live: Manifest | None = None) -> EtcdCluster:
    """The cluster that the options describe; what they leave open is as LIVE has it."""
    tls = tls_of(live) if live else {}
    tls |= {key: params[key] for key in ("peer_tls", "client_tls") if params[key] is not None}
    return EtcdCluster(
        **tls,
        namespace=namespace,
        pod=PodSettings.from_params(params),
        storage_size=params["storage_size"] or None,
        storage_class_name=params["storage_class_name"] or None,
        **{key: params[key] for key in _PLAIN},
    )


def execute(ctx: Context) -> dict[str, t.Any]:
    """Make the members, or remove them."""
    params = ctx.params
    if params["state"] == "present":
        # Bad input is told before anybody asks the cluster.
        manifests(wanted(params, params["namespace"] or "default"))
    namespace = groups.namespace_of(ctx)
    owner = groups.owner_of("etcd_cluster", namespace, params["name"])
    if params["state"] == "absent":
        return _absent(ctx, wanted(params, namespace), owner)
    live = ctx.cluster.get(Ref("apps/v1", "StatefulSet", params["name"], namespace))
    return _present(ctx, wanted(params, namespace, live), live, owner)


def _absent(ctx: Context, cluster: EtcdCluster, owner: str) -> dict[str, t.Any]:
    params = ctx.params
    options = {key: params[key] for key in ("wait", "wait_timeout", "delete_data")}
    claims = members.mark_claims(ctx, cluster, owner)
    report = delete_objects(
        ctx.cluster, None, owner, check=ctx.check, namespace=cluster.namespace, on_progress=ctx.progress, **options
    )
    report.merge(members.drop_claims(ctx, cluster, claims, delete_data=params["delete_data"]))
    return ctx.result(report)


def _present(ctx: Context, cluster: EtcdCluster, live: Manifest | None, owner: str) -> dict[str, t.Any]:
    params = ctx.params
    if live:
        if not cluster.client_tls and params["client_tls"] is None:
            ctx.warn(
                f"etcd {cluster.namespace}/{cluster.name} was made without TLS for its clients and stays so. client_tls: true "
                "encrypts what they say, and they then need the certificate; client_tls: false leaves it without this warning."
            )
        check_live(cluster, live)
    elif not ctx.check:
        members.check_storage(ctx.cluster, cluster)
    report = apply_objects(
        ctx.cluster,
        [*members.certificates(ctx.cluster, cluster, in_use=live is not None), *manifests(cluster)],
        owner=owner,
        check=ctx.check,
        on_progress=ctx.progress,
        **{key: params[key] for key in ("adopt", "force_conflicts", "recreate")},
    )
    report.merge(groups.drop_policy(ctx, cluster.name, cluster.namespace, owner))
    result = {"url": cluster.url}
    if params["wait"] and not ctx.check:
        views = members.wait(ctx, cluster, timeout=params["wait_timeout"])
        rows = [{"pod": v.pod, "version": v.version, "leads": v.leads, "peers": v.peers} for v in views]
        return ctx.result(report, members=rows, **result)
    return ctx.result(report, **result)


def main() -> None:
    """Run as a module."""
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

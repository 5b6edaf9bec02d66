#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: etcd_cluster
short_description: Run an etcd cluster on Kubernetes
description:
  - Creates, updates and deletes a cluster of one, three or five etcd members with their own storage, as a StatefulSet. Clients reach it
    at C(<name>:2379).
  - With O(wait=true) the members are queried through the API server's pod proxy until each is healthy and connected to every other one,
    and one of them is the leader.
  - Certificates are created once and stored only in Secrets. They are renewed when fewer than 60 of their 397 days are left.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.alerts
  - muster.ml.auth
  - muster.ml.apply
  - muster.ml.wait
  - muster.ml.removal
  - muster.ml.attributes
  - muster.ml.attributes.kube
  - muster.ml.pod.server
  - muster.ml.pod.devices
  - muster.ml.pod
  - muster.ml.network_policy
  - muster.ml.requires.cryptography
options:
  name:
    description: Name of the cluster and of its client Service.
    type: str
    default: etcd
  replicas:
    description:
      - Number of members, one, three or five.
      - Cannot be changed later, because etcd reads its initial members only once.
    type: int
    default: 1
  enable_v2:
    description:
      - Serve the v2 API, too, which the rendezvous backends C(etcd) and C(etcd-v2) of torchrun need. The last version that has it is 3.5.
    type: bool
    default: false
  client_tls:
    description:
      - Require TLS and a client certificate, which is in the Secret C(<name>-client-tls). Members use TLS among each other in any case.
      - A change restarts the members one by one. They keep their data. Clients must be changed at the same time.
    type: bool
    default: true
  storage_size:
    description: Size of each member's claim. If empty, the data are kept in the pod, which is possible for one member only.
    type: str
    default: 1Gi
  image:
    description: Image of the members, with a version or digest.
    type: str
    default: quay.io/coreos/etcd:v3.5.35
  affinity:
    description: Affinity of the members, as in the Kubernetes API. By default each member prefers a node of its own.
  delete_data:
    description: Delete the members' claims and the Secrets with their certificates, too, with O(state=absent).
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Run three members with TLS for the rendezvous of torchrun
  muster.ml.etcd_cluster:
    namespace: ml
    replicas: 3
    enable_v2: true
    wait: true
    wait_timeout: 300

- name: Remove the cluster and its data
  muster.ml.etcd_cluster:
    namespace: ml
    state: absent
    delete_data: true
    wait: true
"""

RETURN = r"""
objects:
  description: Objects, each with what was done to it.
  returned: success
  type: list
  elements: dict
  sample: [{kind: StatefulSet, name: etcd, namespace: ml, action: created}]
url:
  description: URL for clients.
  returned: when O(state=present)
  type: str
  sample: https://etcd:2379
members:
  description: State of each member, as the member reports it.
  returned: when O(state=present) and O(wait=true), outside check mode
  type: list
  elements: dict
  sample: [{pod: etcd-0, version: 3.6.8, leads: true, peers: 2}]
  contains:
    pod:
      description: Name of the member's pod.
      type: str
    version:
      description: Version of etcd.
      type: str
    leads:
      description: True if the member is the leader.
      type: bool
    peers:
      description: Number of other members that the member is connected to.
      type: int
"""

from ansible_collections.muster.ml.plugins.module_utils._edge import servers
from ansible_collections.muster.ml.plugins.module_utils._edge.options import options_of
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Result, Spec, module_main
from ansible_collections.muster.ml.plugins.module_utils._kube.made_once import MadeOnce
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest
from ansible_collections.muster.ml.plugins.module_utils._systems.etcd import members
from ansible_collections.muster.ml.plugins.module_utils._systems.etcd.manifests import EtcdCluster, check_live, manifests

ARGUMENT_SPEC: Spec = {
    "name": {"type": "str", "default": "etcd"},
    **options_of(EtcdCluster, "replicas", "enable_v2", "client_tls", "storage_size"),
    **servers.OPTIONS,
    **servers.CLAIMS,
    "image": {"type": "str", "default": "quay.io/coreos/etcd:v3.5.35"},
}


class Life(servers.LifeWithClaims[EtcdCluster]):
    """The life of etcd members."""

    kind, build = EtcdCluster, staticmethod(manifests)

    def desired(self, namespace: str) -> EtcdCluster:
        return EtcdCluster(**{**self.fields(namespace), "storage_size": self.params["storage_size"] or None})

    def check_live(self, live: Manifest) -> None:
        check_live(self.server, live)

    def generated(self, once: MadeOnce) -> list[Manifest]:
        return members.certificates(once, self.server, in_use=self.live is not None)

    def wait(self) -> Result:
        views = members.wait(self.ctx.cluster, self.server, **self.waiting)
        return {"members": [{"pod": v.pod, "version": v.version, "leads": v.leads, "peers": v.peers} for v in views]}

    def result(self) -> Result:
        return {"url": self.server.url}


execute = servers.executor(Life)


def main() -> None:
    module_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rabbitmq_cluster
short_description: Run RabbitMQ on Kubernetes
description:
  - Creates, updates and deletes a broker of one node, or of three that form a cluster, with their own storage, as a StatefulSet. Clients
    reach it at C(<name>.<namespace>.svc), by AMQP and by the management API.
  - With O(wait=true) the broker is asked by its management API, through a forwarded port, until every node runs, knows the others and has
    no alarm.
  - The first administrator, the Erlang cookie and the certificates are created once and stored only in Secrets. The user C(guest) does not
    exist. Certificates are renewed when fewer than 60 of their 397 days are left; the broker reads them without a restart.
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
    description: Name of the broker and of its Service for clients.
    type: str
    default: rabbitmq
  replicas:
    description:
      - Number of nodes, one or three. Three need RabbitMQ 4.1 or later.
      - Only quorum queues and streams have copies on other nodes. A classic queue, such as StudioML's, is on one node also with V(3).
      - Cannot be changed later.
    type: int
    default: 1
  tls:
    description:
      - Encrypt AMQP and the management API, at ports 5671 and 15671 instead of 5672 and 15672. The certificate of the authority is
        C(ca.crt) in the ConfigMap C(<name>-ca).
      - Defaults to V(true) for a new broker, and to its current value for an existing one, because its clients would be locked out.
      - A change restarts the nodes, which keep their data. Clients must be changed at the same time. Connections between nodes are not
        encrypted.
    type: bool
  admin_user:
    description: Name of the first administrator, in the Secret C(<name>-admin). Cannot be changed later.
    type: str
    default: admin
  admin_password:
    description:
      - Password of O(admin_user). Without it, one is made for a new broker, and that of an existing one is kept.
      - Another one is first set in the running broker, then stored in the Secret.
    type: str
  admin_secret:
    description:
      - Name of a Secret of yours with C(username) and C(password) of the first administrator, instead of O(admin_user) and
        O(admin_password). It is read and never changed.
      - The broker reads it at its first start only. To change the password later, change it with M(muster.ml.rabbitmq_definitions), and
        then in the Secret.
    type: str
  memory_watermark:
    description:
      - Share of the memory above which the broker stops publishers. The memory is the limit in O(resources), or that of the node if there
        is none.
    type: float
    default: 0.4
  disk_free_limit:
    description: Free disk below which the broker stops publishers, with its unit, less than O(storage_size).
    type: str
    default: 2GB
  storage_size:
    description: Size of each node's claim.
    type: str
    default: 10Gi
  image:
    description:
      - Image of the nodes, with a version or digest. It is that of Docker Hub, or one with C(rabbitmq-server) on the path and the plugins
        for management and Prometheus.
      - Before a change the running broker is asked for its release. One that RabbitMQ does not support after that, such as a downgrade, is
        refused. Before a release of another series all stable feature flags are enabled, which cannot be undone.
    type: str
    default: docker.io/library/rabbitmq:4.2.9
  affinity:
    description: Affinity of the nodes' pods, as in the Kubernetes API. By default each prefers a node of its own.
  termination_grace_period_seconds:
    description: Seconds for a node to shut down, V(300) by default.
  delete_data:
    description: Delete the nodes' claims and the Secrets that the module made, too, with O(state=absent).
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Run a broker for StudioML
  muster.ml.rabbitmq_cluster:
    namespace: ml
    resources:
      limits: {memory: 2Gi}
    wait: true
    wait_timeout: 300

- name: Create the user of the runners, with the administrator's login from the cluster
  muster.ml.rabbitmq_definitions:
    login_kubernetes: {namespace: ml, name: rabbitmq}
    users:
      - {name: runner, password: "{{ vault_rabbitmq_runner_password }}", tags: [management]}
    permissions:
      - {user: runner, configure: ".*", write: ".*", read: ".*"}

- name: Remove the broker with its queues
  muster.ml.rabbitmq_cluster:
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
  sample: [{kind: StatefulSet, name: rabbitmq, namespace: ml, action: created}]
amqp_url:
  description: Address for clients in the cluster, without a login.
  returned: when O(state=present)
  type: str
  sample: amqps://rabbitmq.ml.svc:5671
management_url:
  description: Address of the management API for clients in the cluster.
  returned: when O(state=present)
  type: str
  sample: https://rabbitmq.ml.svc:15671
ca_cert:
  description:
    - Certificate of the authority that signed those of the nodes, in PEM. Null without O(tls).
    - Null in check mode for a new broker, because the run would make it.
  returned: when O(state=present)
  type: str
  sample: "-----BEGIN CERTIFICATE-----\n..."
admin_secret:
  description: Name of the Secret with the login of the administrator.
  returned: when O(state=present)
  type: str
  sample: rabbitmq-admin
version:
  description: Version of RabbitMQ.
  returned: when O(state=present) and O(wait=true), outside check mode
  type: str
  sample: 4.2.9
nodes:
  description: Nodes, as the broker reports them.
  returned: when O(state=present) and O(wait=true), outside check mode
  type: list
  elements: dict
  sample: [{name: rabbit@rabbitmq-0.rabbitmq-nodes.ml.svc, running: true}]
"""

from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._edge import servers
from ansible_collections.muster.ml.plugins.module_utils._edge.options import options_of
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Result, Spec, module_main
from ansible_collections.muster.ml.plugins.module_utils._kube.made_once import MadeOnce
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq import nodes
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq.api import Login
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq.manifests import RabbitmqCluster, check_live, manifests, tls_of

ARGUMENT_SPEC: Spec = {
    "name": {"type": "str", "default": "rabbitmq"},
    **options_of(RabbitmqCluster, "replicas", "memory_watermark", "disk_free_limit", "storage_size", "admin_secret"),
    **servers.OPTIONS,
    **servers.CLAIMS,
    "image": {"type": "str", "default": "docker.io/library/rabbitmq:4.2.9"},
    "tls": {"type": "bool"},
    "admin_user": {"type": "str", "default": "admin"},
    "admin_password": {"type": "str", "no_log": True},
}

CONSTRAINTS = {"mutually_exclusive": [("admin_password", "admin_secret")]}


class Life(servers.LifeWithClaims[RabbitmqCluster]):
    """The life of RabbitMQ's nodes."""

    kind, build = RabbitmqCluster, staticmethod(manifests)
    authority: str | None = None
    """The CA certificate, if it is known."""

    @property
    def password(self) -> Sensitive | None:
        """The password in the options."""
        given = self.params["admin_password"]
        return None if given is None else Sensitive(given)

    def desired(self, namespace: str) -> RabbitmqCluster:
        kept = self.live is None or tls_of(self.live)
        tls = kept if self.params["tls"] is None else self.params["tls"]
        return RabbitmqCluster(**{**self.fields(namespace), "tls": tls, "admin_secret": self.params["admin_secret"] or None})

    def check_options(self) -> None:
        super().check_options()
        login = Login(self.params["admin_user"], self.password or Sensitive("x" * 8))
        nodes.check_login(login, "admin_user and admin_password")

    def check_live(self, live: Manifest) -> None:
        check_live(self.server, live)
        nodes.prepare_upgrade(self.ctx.cluster, self.server, live, check=self.ctx.check, warn=self.ctx.warn)

    def generated(self, once: MadeOnce) -> list[Manifest]:
        """The Secrets; a running broker gets another password before its Secret does."""
        in_use = self.live is not None
        have, login = nodes.login_of(once, self.server, self.params["admin_user"], self.password, in_use=in_use)
        secrets = nodes.secret_manifests(once, self.server, login, in_use=in_use)
        if in_use and not self.ctx.check:
            nodes.change_password(self.ctx.cluster, self.server, have, login, warn=self.ctx.warn)
        if in_use or not self.ctx.check:
            self.authority = nodes.authority_of(secrets)
        return secrets

    def wait(self) -> Result:
        found = nodes.wait(self.ctx.cluster, self.server, **self.waiting)
        return {"version": found["version"], "nodes": found["nodes"]}

    def result(self) -> Result:
        return {
            "amqp_url": self.server.amqp_url,
            "management_url": self.server.management_url,
            "admin_secret": self.server.admin,
            "ca_cert": self.authority,
        }


execute = servers.executor(Life)


def main() -> None:
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

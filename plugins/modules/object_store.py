#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: object_store
short_description: Run an S3-compatible store on Kubernetes
description:
  - Creates, updates and deletes a store of one pod, versitygw, which keeps objects as files of its own claim. Clients reach it at
    C(http://<name>.<namespace>.svc:7070), with addresses of the form C(ENDPOINT/BUCKET/KEY) and the region C(us-east-1).
  - There is no TLS, because StudioML's runner speaks plain HTTP to stores that are not those of AWS. Keys are never sent, only signatures
    made with them, but objects can be read on the network. The NetworkPolicy admits pods of the namespace only.
  - There is one login, which may do everything. It is made once, and stored only in the Secret C(<name>-login), with the keys
    C(AWS_ACCESS_KEY_ID) and C(AWS_SECRET_ACCESS_KEY).
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
options:
  name:
    description: Name of the store and of its Service.
    type: str
    default: store
  buckets:
    description:
      - Names of buckets to create if they are missing. None is ever deleted, whether it is listed or not.
      - Needs O(wait=true), because they are created when the store answers, through a forwarded port.
    type: list
    elements: str
    default: []
  storage_size:
    description: Size of the claim.
    type: str
    default: 20Gi
  image:
    description: Image of the pod, with a version or digest. It needs C(/usr/local/bin/versitygw) and C(/bin/sh).
    type: str
    default: ghcr.io/versity/versitygw:v1.8.0
  delete_data:
    description: Delete the claim with all objects, and the Secret that the module made, too, with O(state=absent).
    type: bool
    default: false
requirements:
  - boto3 >= 1.41.0, with O(wait=true)
  - botocore >= 1.41.0, with O(wait=true)
"""

EXAMPLES = r"""
- name: Run a store with a bucket for experiments
  muster.ml.object_store:
    namespace: ml
    buckets: [experiments]
    wait: true
    wait_timeout: 300

- name: Remove the store with its objects
  muster.ml.object_store:
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
  sample: [{kind: StatefulSet, name: store, namespace: ml, action: created}]
endpoint:
  description: Address for clients in the cluster.
  returned: when O(state=present)
  type: str
  sample: http://store.ml.svc:7070
login_secret:
  description: Name of the Secret with the login.
  returned: when O(state=present)
  type: str
  sample: store-login
buckets:
  description: Names of all buckets of the store. In check mode also those that would be created.
  returned: when O(state=present) and O(wait=true). In check mode only if the store answers or does not exist yet
  type: list
  elements: str
  sample: [experiments]
created_buckets:
  description: Names of the buckets that were created, or would be in check mode.
  returned: as RV(buckets)
  type: list
  elements: str
  sample: [experiments]
"""

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, Unreachable
from ansible_collections.muster.ml.plugins.module_utils._edge import servers
from ansible_collections.muster.ml.plugins.module_utils._edge.options import options_of
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Result, Spec, module_main
from ansible_collections.muster.ml.plugins.module_utils._kube.made_once import MadeOnce
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest
from ansible_collections.muster.ml.plugins.module_utils._systems.object_store import store
from ansible_collections.muster.ml.plugins.module_utils._systems.object_store.manifests import ObjectStore, check_buckets, manifests

ARGUMENT_SPEC: Spec = {
    "name": {"type": "str", "default": "store"},
    "buckets": {"type": "list", "elements": "str", "default": []},
    **options_of(ObjectStore, "storage_size"),
    **servers.OPTIONS,
    **servers.CLAIMS,
    "image": {"type": "str", "default": "ghcr.io/versity/versitygw:v1.8.0"},
}


class Life(servers.LifeWithClaims[ObjectStore]):
    """The life of a store."""

    kind, build = ObjectStore, staticmethod(manifests)
    login: store.Login

    @property
    def buckets(self) -> list[str]:
        """The names of the desired buckets."""
        return check_buckets(self.params["buckets"])

    def desired(self, namespace: str) -> ObjectStore:
        return ObjectStore(**self.fields(namespace))

    def check_options(self) -> None:
        super().check_options()
        if self.buckets and not self.params["wait"]:
            raise InvalidInput("buckets: they are created when the store answers.", "Set wait to true.")

    def generated(self, once: MadeOnce) -> list[Manifest]:
        self.login = store.login_of(once, self.server, runs=self.live is not None)
        return [store.secret_of(self.server, self.login)]

    def waits_for_objects(self) -> bool:
        return True

    def wait(self) -> Result:
        """Wait until the store answers, and create the missing buckets."""
        return _row(store.wait(self.ctx.cluster, self.server, self.login, self.buckets, **self.waiting))

    def execute(self) -> Result:
        """Create, update or delete the store. Buckets that it gets are a change, as its objects are."""
        result = super().execute()
        names = result.get("buckets", [])
        before = [name for name in names if name not in result["created_buckets"]]
        if before != names:
            result["changed"] = True
            if self.ctx.diff:
                result["diff"].append({"before": {"buckets": before}, "after": {"buckets": names}})
        return result

    def result(self) -> Result:
        planned = self._planned() if self.ctx.check and self.params["wait"] else {}
        return {"endpoint": self.server.endpoint, "login_secret": self.server.login, **planned}

    def _planned(self) -> Result:
        """The buckets that a run would create."""
        if not self.live:
            return _row(store.Buckets(sorted(self.buckets), self.buckets))
        try:
            return _row(store.sync(self.ctx.cluster, self.server, self.login, self.buckets, check=True))
        except Unreachable as exc:
            # The store may not respond until the change that check mode plans is made.
            self.ctx.warn(f"Which buckets are missing is not known: {exc.message}")
            return {}


def _row(found: store.Buckets) -> Result:
    return {"buckets": found.names, "created_buckets": found.missing}


execute = servers.executor(Life)


def main() -> None:
    module_main(ARGUMENT_SPEC, execute)


if __name__ == "__main__":
    main()

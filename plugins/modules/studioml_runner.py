#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: studioml_runner
short_description: Run StudioML's runner on Kubernetes
description:
  - Creates, updates and deletes a runner of StudioML as a Deployment, with its permissions, its broker's address in a Secret, and its
    metrics. It takes experiments from the queues of a RabbitMQ broker.
  - The keys are in Secrets that module M(muster.ml.training_secret) makes. They are checked before anything is changed.
  - Before pods are replaced, removed or become fewer, the runners are drained. They finish their experiments and take no new ones.
  - With O(wait=true) the task waits until each runner has listed the broker's queues. One that finds no queue is healthy.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.alerts
  - muster.ml.auth
  - muster.ml.auth.namespace
  - muster.ml.apply
  - muster.ml.wait
  - muster.ml.attributes
  - muster.ml.attributes.kube
  - muster.ml.requires.cryptography
  - muster.ml.pod.pull
  - muster.ml.queue.servers
options:
  name:
    description: Name of the Deployment, of its ServiceAccount and Service, and of the ConfigMap with which it is drained.
    type: str
    default: studioml-go-runner
  replicas:
    description: Number of runners.
    type: int
    default: 1
  amqp_url:
    description:
      - Address of the broker with user and password, C(amqp://USER:PASSWORD@HOST:5672/%2f), or C(amqps://). Required with
        O(state=present).
      - User and password may have letters, digits and the characters C(- _ . ~ & + , ; =). The runner would not send others as they are.
      - The user needs a tag with which it may list bindings, C(management) or C(monitoring).
    type: str
  amqp_mgt_url:
    description:
      - Address of the broker's management API, without user and password. Defaults to the host of O(amqp_url) and its port plus 10000.
    type: str
  broker_ca:
    description: Certificate authority of the broker in PEM, which is trusted besides those of the image.
    type: str
  store_ca:
    description:
      - Certificate authorities of the S3-compatible store in PEM, 128 KiB at most. The runner talks to a store other than that of AWS with
        TLS only if it is given them, and then trusts no other store.
    type: str
  store_endpoint_url:
    description:
      - Address of the store that the experiments use, such as C(http://store.ml.svc:7070). The runner gets it from their requests.
      - Broker and store, where Muster runs them in the cluster, are not removed while the runner uses them.
    type: str
  used_secrets:
    description:
      - Names of Secrets of the namespace whose values the runner has in other objects, such as its login at the broker. Muster does not
        remove them while the runner is there.
    type: list
    elements: str
    default: []
  queue_match:
    description: Regular expression of the queues to take experiments from.
    type: str
    default: ^rmq_.*$
  queue_mismatch:
    description: Regular expression of the queues to leave out.
    type: str
  gpus:
    description: Number of GPUs of a runner, for which it tolerates the taint C(nvidia.com/gpu=present). V(0) runs experiments on the CPU.
    type: int
    default: 1
  cache_size:
    description: Size of the cache of downloaded artifacts, at least C(1Gib).
    type: str
    default: 10Gib
  tmp_size:
    description: Size of the volume with the cache and the folders of experiments.
    type: str
    default: 200Gi
  max_cores:
    description: Number of cores for experiments. V(0) means all.
    type: int
    default: 0
  max_mem:
    description: Memory for experiments, such as C(16gib). Defaults to all.
    type: str
  max_disk:
    description: Disk space to leave free, such as C(100gib). Defaults to a tenth of the disk, which is also the least.
    type: str
  allow_env_secrets:
    description:
      - Take the credentials of the storage from C(AWS_ACCESS_KEY_ID) and C(AWS_SECRET_ACCESS_KEY) of a request's environment, where its
        artifacts have none. The client sends them there.
    type: bool
    default: true
  key_secret:
    description: Name of the Secret with the key that opens requests.
    type: str
    default: studioml-runner-key-secret
  passphrase_secret:
    description: Name of the Secret with its passphrase.
    type: str
    default: studioml-runner-passphrase-secret
  signing_secret:
    description: Name of the Secret with the public keys that check signatures, by prefix of queue names.
    type: str
    default: studioml-signing
  response_secret:
    description: Name of the Secret with the public keys that encrypt reports, by prefix of queue names.
    type: str
    default: studioml-report-keys
  monitoring:
    description: Kind of object that has the metrics collected. V(auto) creates the one that the cluster serves, if any.
    type: str
    choices: [auto, PodMonitoring, ServiceMonitor, none]
    default: auto
  network_policy:
    description: Create a NetworkPolicy that admits connections to the metrics only.
    type: bool
    default: true
  image:
    description: Image of the runner, with a version or digest. 0.14 is the last series that has RabbitMQ.
    type: str
    default: quay.io/leafai/studio-go-runner:0.14.2
  env:
    description: Environment variables of the runner and of its experiments. Those that an option sets are refused.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the variable.
        type: str
        required: true
      value:
        description: Value of the variable.
        type: raw
      value_from:
        description: Source of the value, as in the Kubernetes API, such as C(secretKeyRef).
        type: dict
  resources:
    description: C(requests) and C(limits) of a runner and its experiments together, as in the Kubernetes API, without GPUs.
    type: dict
  node_selector:
    description: Labels that a node must have.
    type: dict
  tolerations:
    description: Taints that the pods tolerate besides, as in the Kubernetes API.
    type: list
    elements: dict
  affinity:
    description: Affinity of the pods, as in the Kubernetes API.
    type: dict
  priority_class_name:
    description: PriorityClass of the pods.
    type: str
  termination_grace_period_seconds:
    description: Seconds between SIGTERM and SIGKILL. The runner ignores SIGTERM, and is drained before.
    type: int
    default: 10
  pod_security_context:
    description: Security context of the pods. By default they run as the image's user, with the default seccomp profile.
    type: dict
  security_context:
    description: Security context of the container. By default it cannot gain privileges or make raw packets.
    type: dict
  overrides:
    description: Fields to merge into the Deployment last, by the strategic merge rules of Kubernetes.
    type: dict
  drain:
    description: Wait for running experiments before pods are replaced, removed or become fewer. V(false) stops them; they are run again.
    type: bool
    default: true
  drain_timeout:
    description: Seconds to wait for running experiments. The task then fails, and its next run goes on waiting.
    type: int
    default: 3600
"""

EXAMPLES = r"""
- name: Run two runners with a GPU each
  muster.ml.studioml_runner:
    namespace: studioml
    replicas: 2
    amqp_url: amqps://runner:{{ broker_password }}@broker.example.com:5671/%2f
    broker_ca: "{{ lookup('ansible.builtin.file', 'broker-ca.crt') }}"
    wait: true

- name: Run experiments on the CPU
  muster.ml.studioml_runner:
    namespace: studioml
    amqp_url: amqp://runner:{{ broker_password }}@rabbitmq:5672/%2f
    queue_match: ^rmq_cpu_.*$
    gpus: 0

- name: Remove the runners when their experiments have ended
  muster.ml.studioml_runner:
    namespace: studioml
    state: absent
    wait: true
"""

RETURN = r"""
objects:
  description: Objects, each with what was done to it.
  returned: success
  type: list
  elements: dict
  sample: [{kind: Deployment, name: studioml-go-runner, namespace: studioml, action: created}]
broker:
  description: Address of the broker without user and password.
  returned: when O(state=present)
  type: str
  sample: rabbitmq:5672/
drained:
  description: True if runners were drained.
  returned: success
  type: bool
  sample: false
runners:
  description: Pods, as they describe themselves.
  returned: when O(state=present) and O(wait=true), outside check mode
  type: list
  elements: dict
  sample: [{pod: studioml-runner-0, state: working, experiments: [digits]}]
  contains:
    pod:
      description: Name of the pod.
      type: str
    state:
      description: V(working) if the runner has found queues, V(idle) if there are none for it.
      type: str
    experiments:
      description: Keys of the experiments that run.
      type: list
      elements: str
"""

import dataclasses

from ansible_collections.muster.ml.plugins.module_utils._core.errors import NotFound
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._edge import groups, servers
from ansible_collections.muster.ml.plugins.module_utils._edge.options import APPLY, STATE, WAIT, options_of
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Result, Spec, module_main
from ansible_collections.muster.ml.plugins.module_utils._kube.engine import apply_objects
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.module_utils._kube.report import Report
from ansible_collections.muster.ml.plugins.module_utils._manifests.merge import apply_overrides
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import Manifest
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import key_secrets, runners
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml.runner import (
    DRAINED,
    Runner,
    check,
    deployment,
    manifests,
    state_config_map,
)

_PLACEMENT = ("node_selector", "tolerations", "affinity", "priority_class_name", "pod_security_context", "security_context")

ARGUMENT_SPEC: Spec = {
    **options_of(Runner, hidden=("storage_size", "storage_class_name", "network_policy_from", "monitor")),
    "amqp_url": {"type": "str", "no_log": True},
    **groups.MONITORING,
    **groups.ALERTS,
    **{name: groups.POD[name] for name in ("image_pull_policy", "image_pull_secrets", "env", "resources", *_PLACEMENT)},
    "image": {"type": "str", "default": "quay.io/leafai/studio-go-runner:0.14.2"},
    "termination_grace_period_seconds": {"type": "int", "default": 10},
    "drain": {"type": "bool", "default": True},
    "drain_timeout": {"type": "int", "default": 3600},
    **STATE,
    **APPLY,
    **WAIT,
}

CONSTRAINTS = {"required_if": [("state", "present", ["amqp_url"])]}


class Life(servers.Life[Runner]):
    """The life of runners, which are drained before their pods are stopped."""

    kind, build = Runner, staticmethod(manifests)
    drained = False

    def desired(self, namespace: str) -> Runner:
        return Runner(**{**self.fields(namespace), "amqp_url": Sensitive(self.params["amqp_url"] or "")})

    def apply(self) -> Report:
        """Apply the differences. The report is that of the plan, because draining writes one object twice."""
        cluster, runner = self.ctx.cluster, self.desired(self.ctx.namespace)
        warnings = [] if self.ctx.check else runners.check_secrets(cluster, runner)
        keys = key_secrets.runner_keys(cluster, runner.namespace, runner.key_secret, runner.passphrase_secret)
        if keys is None and not self.ctx.check:
            raise NotFound(
                f"Secret {runner.namespace}/{runner.key_secret} or {runner.passphrase_secret} does not exist, and the runner mounts both.",
                "Module training_secret makes them with content: decryption_key.",
            )
        self.server = dataclasses.replace(self.monitored(runner), keys=keys)
        plan = self._plan(self.manifests(), prune=True)
        if plan.changed and not self.ctx.check:
            done = self._carry_out()
            plan.objects, plan.warnings = done.objects, done.warnings
        plan.warnings += warnings
        return plan

    def _carry_out(self) -> Report:
        """Drain the pods that would be stopped, and apply."""
        cluster, runner = self.ctx.cluster, self.server
        stops = runners.is_disruptive(cluster, runner, self._is_changed)
        if stops:
            self._drain(runner)
            groups.apply_group(self.ctx, manifests(runner, DRAINED), self.owner, wait=False)
        if stops or runners.is_drained(cluster, runner):
            # Done after an interrupted run, too: from now on, experiments must not start in a pod that is being stopped.
            runners.wait_replaced(cluster, runner, timeout=self.params["wait_timeout"], on_progress=self.ctx.progress)
        return groups.apply_group(self.ctx, self.manifests(), self.owner, wait=self.params["wait"], prune=True)

    def _plan(self, objects: list[Manifest], *, prune: bool = False) -> Report:
        options = {key: self.params[key] for key in APPLY}
        return apply_objects(
            self.ctx.cluster,
            objects,
            owner=self.owner,
            check=True,
            prune=prune,
            references=self.ctx.promised,
            on_progress=self.ctx.progress,
            **options,
        )

    def _is_changed(self, replicas: int) -> bool:
        """Whether the Deployment would be changed with so many replicas."""
        runner = dataclasses.replace(self.server, replicas=replicas)
        return self._plan([apply_overrides(deployment(runner), runner.overrides)]).changed

    def _drain(self, runner: Runner) -> None:
        if self.params["drain"]:
            before = runners.ignored(self.ctx.cluster, runner)
            groups.apply_group(self.ctx, [state_config_map(runner, DRAINED)], self.owner, wait=False)
            timeout = self.params["drain_timeout"]
            runners.wait_drained(self.ctx.cluster, runner, before, timeout=timeout, on_progress=self.ctx.progress)
            self.drained = True

    def unwanted(self) -> list[Ref]:
        """Return no objects: prune deletes them."""
        return []

    def wait(self) -> Result:
        timeout = self.params["wait_timeout"]
        views = runners.wait_healthy(self.ctx.cluster, self.server, timeout=timeout, on_progress=self.ctx.progress)
        return {"runners": [{"pod": v.pod, "state": v.state, "experiments": list(v.experiments)} for v in views]}

    def result(self) -> Result:
        broker = check(self.server)
        return {"broker": f"{broker.host}:{broker.port}{broker.vhost}", "drained": self.drained}

    def absent(self) -> Result:
        runner = self.desired(self.ctx.namespace)
        if not self.ctx.check and runners.is_ours(self.ctx.cluster, runner, self.owner):
            self._drain(runner)
        report = groups.delete_group(self.ctx, self.ctx.namespace, self.owner)
        return self.ctx.result(report, drained=self.drained)


execute = servers.executor(Life)


def main() -> None:
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

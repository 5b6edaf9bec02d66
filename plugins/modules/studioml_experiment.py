#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: studioml_experiment
short_description: Run an experiment of StudioML
description:
  - Packs a workspace into a bucket, publishes a request that only the runner can read, waits until a runner has stored the output, and
    returns the metric in it.
  - An experiment is known by its O(name). One that has an output, or that the broker has confirmed, is not submitted again. Submitting it
    with other options fails, and names them.
  - It writes a note, C(experiments/NAME/muster.json), into the bucket before it publishes, and again when the broker has confirmed. If it
    was stopped in between, it is not known whether the broker has the message. The next run then submits it again, and a warning says that
    it may run twice. Two controllers that submit the same experiment within a second may both do so.
  - Whether an experiment runs at this moment cannot be known. Runners tell it only to their metrics.
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.attributes
  - muster.ml.rabbitmq
  - muster.ml.rabbitmq.support
  - muster.ml.requires.cryptography
options:
  login_user:
    description:
      - User that the task logs in as. It needs the tag C(management), the permissions to read its O(queue) and to write to the exchange
        C(StudioML.topic), and with O(bind=true) to configure that exchange and to write to the queue.
  name:
    description:
      - Name of the experiment, which StudioML calls its key. Letters, digits, C(-), C(_) and C(.) can be used.
    type: str
    required: true
  state:
    description:
      - V(absent) takes the message of the experiment out of its O(queue), and forgets that it was submitted. Its output stays. One that has
        finished, or that was not submitted by this module, is left as it is.
      - A runner of 0.14 never acknowledges an experiment that has failed, but gives it back and begins it again, for 96 hours or its
        O(lifetime). The task waits until the runner has given it back, and until no other message waits before it.
    type: str
    choices: [present, absent]
    default: present
  queue:
    description: Name of the queue, which must exist. It begins with C(rmq_).
    type: str
    required: true
  vhost:
    description: Name of the vhost.
    type: str
    default: /
  bind:
    description: Create the exchange C(StudioML.topic) and the queue's binding to it where they are missing, as StudioML's client does.
    type: bool
    default: true
  bucket:
    description: Name of the bucket, which must exist, or C(gs://NAME).
    type: str
    required: true
  endpoint_url:
    description: Address of the S3-compatible store. Not used with O(store_kubernetes).
    type: str
    default: https://storage.googleapis.com
  store_kubernetes:
    description:
      - Store of M(muster.ml.object_store) to reach through the Kubernetes API, by a forwarded port, instead of O(endpoint_url),
        O(access_key), O(secret_key) and O(store_ca_cert). Runners reach it at its address in the cluster,
        C(http://NAME.NAMESPACE.svc:7070), unless O(runner_endpoint_url) is given.
      - The kubeconfig's user needs the verbs C(get) and C(create) for C(pods/portforward), and C(get) for Pods, StatefulSets and
        the Secret.
    type: dict
    suboptions:
      name:
        description: Name of the store.
        type: str
        default: store
      namespace:
        description: Namespace of the store. Defaults to the namespace of the kubeconfig's context.
        type: str
      kubeconfig:
        description: Path of a kubeconfig file, or its content as a dictionary. Found as by kubectl if it is omitted.
        type: raw
      context:
        description: Context of the kubeconfig, instead of its current one.
        type: str
  runner_endpoint_url:
    description:
      - Address of the store as runners reach it. Defaults to O(endpoint_url), or to the address in the cluster of O(store_kubernetes).
      - Upstream's runner takes only its host and port. It uses TLS for hosts of AWS, and for others if it runs with C(S3_CA).
    type: str
  region:
    description: Region of the bucket.
    type: str
    default: us-east-1
  access_key:
    description:
      - Access key of the store, for Google Cloud Storage that of an HMAC key. Runners get it, encrypted, with the request.
      - Required without O(store_kubernetes).
    type: str
  secret_key:
    description: Secret of O(access_key).
    type: str
  store_ca_cert:
    description: Path of the certificate authority of the store, in PEM. Defaults to the authorities that botocore comes with.
    type: path
  public_key:
    description:
      - Public key of the runner in PEM, C(ssh-publickey) of the Secret C(studioml-runner-key-secret). Required with O(state=present).
    type: str
  signing_key:
    description: Private Ed25519 key that signs the request, in OpenSSH's format without a passphrase. Required with O(state=present).
    type: str
  signing_public_keys:
    description:
      - Public keys with which the runner checks signatures, by prefix of queue names, as O(muster.ml.training_secret#module:public_keys)
        has them. A O(signing_key) that does not fit O(queue) is then refused before anything is changed. Otherwise only the runner's log
        shows it.
    type: dict
  workspace:
    description: Paths of folders, whose content is packed, and of files. Required with O(state=present).
    type: list
    elements: path
  exclude:
    description: Names and patterns of files and folders that are left out of the O(workspace).
    type: list
    elements: str
    default: [.git, __pycache__, "*.pyc"]
  filename:
    description: Path of the program in the workspace. Required with O(state=present).
    type: str
  args:
    description: Arguments of the program.
    type: list
    elements: raw
    default: []
  pythonver:
    description: Version of Python, or its beginning.
    type: str
    default: "3"
  pythonenv:
    description: Packages that the runner installs with pip, such as C(numpy==1.19.5).
    type: list
    elements: str
    default: []
  project:
    description: Name of the project, which the runner has in its metrics and logs.
    type: str
  env:
    description: Environment variables of the program. The runner replaces C(%NAME%) in a value by its own variable of that name.
    type: dict
    default: {}
  secret_env:
    description: Environment variables whose values must not be shown. The runner lists all variables in the output of the experiment.
    type: dict
    default: {}
  resources_needed:
    description: Resources that a runner must have free.
    type: dict
    suboptions:
      cpus:
        description: Number of cores.
        type: int
        default: 1
      gpus:
        description: Number of GPUs.
        type: int
        default: 0
      ram:
        description: Memory.
        type: str
        default: 2gb
      hdd:
        description: Disk space, with all artifacts.
        type: str
        default: 3gb
      gpu_mem:
        description: Memory of the GPUs.
        type: str
  lifetime:
    description: Time from submission after which the experiment is not begun any more, and is ended, such as C(30m) or C(2h).
    type: str
  max_duration:
    description: Time that it may run. Defaults to 96 hours.
    type: str
  metric:
    description:
      - Path of the metric in the results, such as V(experiment.loss). An experiment that ends without it fails the task.
      - Results are the lines of the output that are objects in JSON, merged in their order.
    type: str
  resubmit:
    description:
      - Submit the experiment again if it has failed or has no output yet. It may run twice.
      - One that has finished is not submitted again.
    type: bool
    default: false
  dest:
    description: Path that C(output.tar) is written to, readable for its owner only. Its folder must exist.
    type: path
  wait:
    description: Wait until the experiment has ended. One that has failed fails the task.
    type: bool
    default: true
  wait_timeout:
    description: Seconds to wait.
    type: int
    default: 1800
requirements:
  - boto3 >= 1.41.0
  - botocore >= 1.41.0
  - PyNaCl >= 1.5.0
"""

EXAMPLES = r"""
- name: Take a failed experiment out of its queue
  muster.ml.studioml_experiment:
    login_kubernetes: {namespace: ml}
    store_kubernetes: {namespace: ml}
    name: mnist-1
    queue: rmq_cpu
    bucket: experiments
    state: absent

- name: Train in an experiment, and return its loss
  muster.ml.studioml_experiment:
    login_host: broker.example
    login_user: experimenter
    login_password: "{{ broker_password }}"
    ca_cert: /etc/studioml/broker-ca.crt
    name: mnist-1
    queue: rmq_gpu
    bucket: gs://example-store
    access_key: "{{ hmac_access_key }}"
    secret_key: "{{ hmac_secret }}"
    public_key: "{{ lookup('ansible.builtin.file', 'runner.pub.pem') }}"
    signing_key: "{{ signing_key }}"
    workspace: [experiments]
    filename: train.py
    args: [--epochs, "10"]
    pythonenv: [tensorflow==2.4.1]
    resources_needed: {gpus: 1, gpu_mem: 8gb}
    metric: experiment.loss
    wait_timeout: 7200

- name: Train with the broker and the store of a cluster
  muster.ml.studioml_experiment:
    login_kubernetes: {namespace: ml}
    store_kubernetes: {namespace: ml}
    name: mnist-2
    queue: rmq_cpu
    bucket: experiments
    public_key: "{{ lookup('ansible.builtin.file', 'runner.pub.pem') }}"
    signing_key: "{{ signing_key }}"
    workspace: [experiments]
    filename: train.py
"""

RETURN = r"""
actions:
  description: Requests that were sent, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [store blobstore/9f86d081.tar with 3 files, publish mnist-1 to queue rmq_gpu]
experiment:
  description: Experiment with its queue, bucket, the key of its output, the time of its submission and how often it was submitted.
  returned: when O(state=present)
  type: dict
  sample: {name: digits, queue: rmq_gpu, bucket: studioml}
state:
  description: V(finished), V(failed), V(submitted), or V(absent) for one that was taken out, or that check mode would submit.
  returned: success
  type: str
  sample: finished
metric:
  description: Value at O(metric). Null without that option.
  returned: when the experiment has finished
  type: raw
  sample: 0.25
metrics:
  description: Everything that the experiment has written as JSON, merged.
  returned: when the experiment has ended, even if it has failed
  type: dict
  sample: {accuracy: 0.95}
signing_fingerprint:
  description: Fingerprint of O(signing_key), as C(ssh-keygen -l) shows it.
  returned: when O(state=present)
  type: str
  sample: SHA256:mVPwvezndPv/ARoIadVY98vAC0g+P/5633yTC4d/wXE
may_be_published:
  description: True if the broker may have the message although the task failed.
  returned: when publishing failed without an answer
  type: bool
  sample: true
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._edge.experiments import run
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main
from ansible_collections.muster.ml.plugins.module_utils._edge.options import STATE, options_of
from ansible_collections.muster.ml.plugins.module_utils._systems.object_store.store import STORE_KUBERNETES
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq import api
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml.experiment import GOOGLE, Experiment

RESOURCES: dict[str, t.Any] = {
    "cpus": {"type": "int", "default": 1},
    "gpus": {"type": "int", "default": 0},
    "ram": {"type": "str", "default": "2gb"},
    "hdd": {"type": "str", "default": "3gb"},
    "gpu_mem": {"type": "str"},
}
ARGUMENT_SPEC: dict[str, t.Any] = {
    **api.CONNECTION,
    **STATE,
    "name": {"type": "str", "required": True},
    "queue": {"type": "str", "required": True},
    "vhost": {"type": "str", "default": "/"},
    "bind": {"type": "bool", "default": True},
    "bucket": {"type": "str", "required": True},
    "endpoint_url": {"type": "str", "default": GOOGLE},
    "store_kubernetes": {"type": "dict", "options": STORE_KUBERNETES},
    "runner_endpoint_url": {"type": "str"},
    "region": {"type": "str", "default": "us-east-1"},
    "access_key": {"type": "str", "no_log": True},
    "secret_key": {"type": "str", "no_log": True},
    "store_ca_cert": {"type": "path"},
    "public_key": {"type": "str", "no_log": False},
    "signing_key": {"type": "str", "no_log": True},
    "signing_public_keys": {"type": "dict", "no_log": False},
    "workspace": {"type": "list", "elements": "path"},
    "exclude": {"type": "list", "elements": "str", "default": [".git", "__pycache__", "*.pyc"]},
    "args": {"type": "list", "elements": "raw", "default": []},
    "pythonenv": {"type": "list", "elements": "str", "default": []},
    **options_of(Experiment, "filename", "pythonver", "project", "env", "lifetime", "max_duration"),
    "secret_env": {"type": "dict", "default": {}, "no_log": True},
    "resources_needed": {"type": "dict", "apply_defaults": True, "options": RESOURCES},
    "metric": {"type": "str"},
    "resubmit": {"type": "bool", "default": False},
    "dest": {"type": "path"},
    "wait": {"type": "bool", "default": True},
    "wait_timeout": {"type": "int", "default": 1800},
}
CONSTRAINTS: dict[str, t.Any] = {
    "required_together": [*api.CONSTRAINTS["required_together"], ("access_key", "secret_key")],
    "required_one_of": [*api.CONSTRAINTS["required_one_of"], ("access_key", "store_kubernetes")],
    "required_if": [("state", "present", ("public_key", "signing_key", "workspace", "filename"))],
    "mutually_exclusive": [("store_kubernetes", "access_key"), ("store_kubernetes", "store_ca_cert")],
}


def execute(ctx: HostContext) -> dict[str, t.Any]:
    """Submit, wait, read the output."""
    with api.connect(ctx.params, ctx.clock) as broker:
        return run(ctx, broker)


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

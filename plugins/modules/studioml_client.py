#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: studioml_client
short_description: Manage the configuration of StudioML's client
description:
  - Writes the configuration of StudioML's client (C(studio run)), and the two keys that it needs, into the folder of the user that the task
    runs as.
  - Settings that are there and are not written by this module stay. If one differs from what is requested, the task fails with its name.
    A record in the folder, C(.muster.json), has digests of what this module wrote.
  - Comments in the configuration are lost when it is written. A backup is kept beside it then, C(config.yaml.TIME~).
author:
  - Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.attributes.host
  - muster.ml.requires.cryptography
  - muster.ml.requires.yaml
attributes:
  diff_mode:
    details:
      - Shows the settings that change. Secret ones appear only as keyed fingerprints, which differ from run to run.
  action:
    support: none
options:
  path:
    description: Path of the client's folder.
    type: path
    default: ~/.studioml
  amqp_url:
    description:
      - Address of the broker with user and password, C(amqp://USER:PASSWORD@HOST:5672/%2f). Required with O(state=present).
      - Without parameters of its own it gets C(connection_attempts=30), C(retry_delay=.5) and C(socket_timeout=5).
    type: str
  endpoint_url:
    description: Address of the S3-compatible store.
    type: str
    default: https://storage.googleapis.com
  bucket:
    description: Name of the bucket for artifacts and results. Required with O(state=present).
    type: str
  database_bucket:
    description: Name of the bucket for descriptions of experiments. Defaults to O(bucket).
    type: str
  region:
    description: Region of the buckets.
    type: str
    default: us-east-1
  access_key:
    description:
      - Access key of the store, for Google Cloud Storage that of an HMAC key. Required with O(state=present). The client needs to list all
        buckets with it.
    type: str
  secret_key:
    description: Secret of O(access_key). Required with O(state=present).
    type: str
  public_key:
    description: Public key of the runner in PEM, with which requests are encrypted. Required with O(state=present).
    type: str
  signing_key:
    description: Private Ed25519 key that signs requests, in OpenSSH's format without a passphrase. Required with O(state=present).
    type: str
  verbose:
    description: Level of the client's messages. It gets V(info) where it has none.
    type: str
    choices: [debug, info, warn, error, crit]
  lifetime:
    description: Time from submission after which an experiment is not begun any more, such as C(30m).
    type: str
  resources_needed:
    description:
      - Resources of an experiment that does not name them, with the names C(cpus), C(gpus), C(ram), C(hdd) and C(gpuMem). Where there are
        none, it gets one core, 2 GB of memory and 3 GB of disk space.
    type: dict
  overwrite:
    description: Replace settings and keys of another owner.
    type: bool
    default: false
  state:
    description: State of the configuration. With V(absent) only what this module wrote, and is unchanged since, is removed.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Configure StudioML's client
  muster.ml.studioml_client:
    amqp_url: amqp://experimenter:{{ broker_password }}@broker.example:5672/%2f
    bucket: example-store
    database_bucket: example-metadata
    region: us-west1
    access_key: "{{ hmac_access_key }}"
    secret_key: "{{ hmac_secret }}"
    public_key: "{{ lookup('ansible.builtin.file', 'runner.pub.pem') }}"
    signing_key: "{{ signing_key }}"
"""

RETURN = r"""
actions:
  description: Changes that were made, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [write /home/user/.studioml/config.yaml]
kept:
  description: Settings and files that were kept with O(state=absent), because they were changed since. A warning says the same.
  returned: success
  type: list
  elements: str
  sample: ["/home/user/.studioml/config.yaml: queue"]
path:
  description: Path of the configuration.
  returned: success
  type: str
  sample: /home/user/.studioml/config.yaml
"""

import pathlib
import typing as t

from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext, host_main
from ansible_collections.muster.ml.plugins.module_utils._edge.options import options_of
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import client_files, keys
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml.client import Client
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml.experiment import GOOGLE

NEEDED = ["amqp_url", "bucket", "access_key", "secret_key", "public_key", "signing_key"]
ARGUMENT_SPEC: dict[str, t.Any] = {
    "path": {"type": "path", "default": "~/.studioml"},
    "amqp_url": {"type": "str", "no_log": True},
    "endpoint_url": {"type": "str", "default": GOOGLE},
    "bucket": {"type": "str"},
    "database_bucket": {"type": "str"},
    "region": {"type": "str", "default": "us-east-1"},
    "access_key": {"type": "str", "no_log": True},
    "secret_key": {"type": "str", "no_log": True},
    "public_key": {"type": "str", "no_log": False},
    "signing_key": {"type": "str", "no_log": True},
    **options_of(Client, "verbose", "lifetime", "resources_needed"),
    "overwrite": {"type": "bool", "default": False},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}
CONSTRAINTS: dict[str, t.Any] = {"required_if": [("state", "present", NEEDED)]}


def client_of(params: dict[str, t.Any], folder: pathlib.Path) -> Client:
    """The client that the options describe."""
    same = ("endpoint_url", "bucket", "region", "verbose", "lifetime", "resources_needed")
    return Client(
        **{name: params[name] for name in same},
        database_bucket=params["database_bucket"] or params["bucket"],
        amqp_url=Sensitive(params["amqp_url"]),
        access_key=Sensitive(params["access_key"]),
        secret_key=Sensitive(params["secret_key"]),
        public_key_path=str(folder / client_files.PUBLIC_KEY),
        signing_key_path=str(folder / client_files.SIGNING_KEY),
    )


def key_files(params: dict[str, t.Any]) -> dict[str, Sensitive]:
    """The texts of the keys, if the client can read them."""
    keys.read_rsa_public(params["public_key"], "public_key", bits=keys.BITS)
    keys.read_signing_key(Sensitive(params["signing_key"]), "signing_key")
    texts = {client_files.PUBLIC_KEY: params["public_key"], client_files.SIGNING_KEY: params["signing_key"]}
    return {name: Sensitive(f"{text.strip()}\n") for name, text in texts.items()}


def execute(ctx: HostContext) -> dict[str, t.Any]:
    """Write our settings and keys, or remove them."""
    params = ctx.params
    path = pathlib.Path(params["path"]).absolute()
    folder = client_files.Folder(path, ctx.check, ctx.clock)
    if params["state"] == "present":
        folder.configure(client_of(params, path).settings(), key_files(params), overwrite=params["overwrite"])
    else:
        folder.remove()
    for name in folder.change.kept:
        ctx.warn(f"{name} was changed since it was written, and is kept.")
    return {**folder.change.result(diff=ctx.diff), "path": str(folder.config)}


def main() -> None:
    host_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

#!/usr/bin/python
# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: training_secret
short_description: Create and replace keys and logins of StudioML in Secrets
description:
  - Manages the Secrets from which a StudioML runner opens requests, checks their signatures and encrypts its reports, and the one with
    which a client signs, and the one with the login of both at the broker.
  - Missing private keys are made in memory and stored only in their Secret. Results, diffs and messages contain fingerprints, as
    C(ssh-keygen -l) shows them.
  - A key or password that can be used is never made again. It is replaced only when O(generation) is raised.
  - Own keys are given as options, for example from a vault, or in a Secret that exists already. Such a Secret is used as it is, and
    changed only with O(adopt=true).
  - Formats that the runner or the client cannot read are refused before anything is changed.
author: Muster contributors (!UNKNOWN)
extends_documentation_fragment:
  - muster.ml.auth
  - muster.ml.auth.namespace
  - muster.ml.wait
  - muster.ml.removal
  - muster.ml.attributes
  - muster.ml.attributes.kube
  - muster.ml.requires.cryptography
options:
  content:
    description:
      - Keys that the Secret has.
      - V(decryption_key) is an RSA key of 4096 bits that opens requests, encrypted with a passphrase that is in a Secret of its own.
      - V(signing_key) is an Ed25519 key with which a client signs requests, in OpenSSH's format without a passphrase, because the client
        cannot ask for one.
      - V(signing_public_keys) are Ed25519 public keys of clients, by prefix of queue names. The longest prefix of a queue's name counts.
      - V(response_public_keys) are RSA public keys with which the runner encrypts its reports, by prefix of queue names.
      - V(broker_login) is the name and the password of a user of the broker, with the keys C(username) and C(password).
    type: str
    required: true
    choices: [decryption_key, signing_key, signing_public_keys, response_public_keys, broker_login]
  name:
    description:
      - Name of the Secret. Defaults to the one that the runner mounts, C(studioml-runner-key-secret) for V(decryption_key),
        C(studioml-signing) for V(signing_public_keys) and C(studioml-report-keys) for V(response_public_keys), to
        C(studioml-client-signing-key) for V(signing_key) and to C(studioml-broker-login) for V(broker_login).
    type: str
  passphrase_secret:
    description: Name of the Secret with the passphrase of a V(decryption_key).
    type: str
    default: studioml-runner-passphrase-secret
  generation:
    description:
      - Number of the key, counted from 1 and recorded at the Secret. A key with a lower number is replaced, once. A key with a higher
        number stays.
      - The new key has the passphrase of the old one, so that there is no moment at which the two do not fit.
      - A runner has one key, and reads it when it starts. Requests that still wait for the old key are then not run, so let the queues
        run empty first. Signatures are checked with one key for each prefix, likewise.
      - A V(broker_login) gets another password. Set it in the broker with M(muster.ml.rabbitmq_definitions), and for runners with
        M(muster.ml.studioml_runner).
    type: int
    default: 1
  private_key:
    description:
      - Own private key, of which O(public_key) is derived.
      - For V(decryption_key) as C(ssh-keygen -t rsa -b 4096 -m PEM) writes it with a passphrase (C(RSA PRIVATE KEY), encrypted), for
        V(signing_key) as C(ssh-keygen -t ed25519) writes it without.
      - Must be the key that is stored already, unless O(generation) is raised.
    type: str
  passphrase:
    description:
      - Passphrase of the V(decryption_key), without a line break. Made if it is not given. Required with O(private_key).
      - If it differs from the stored one, the same key is stored encrypted with it.
    type: str
  broker_user:
    description: Name of the user of a V(broker_login). Another one than the stored is refused unless O(generation) is raised.
    type: str
    default: studioml
  broker_password:
    description: Password of a V(broker_login), of characters that StudioML's runner can use. Made if it is not given.
    type: str
  public_key:
    description: Public key of O(private_key). The task fails if the two do not belong together.
    type: str
  public_keys:
    description:
      - Public keys by prefix of queue names of at least four characters, for V(signing_public_keys) lines that begin with C(ssh-ed25519),
        for V(response_public_keys) PEM that begins with C(-----BEGIN RSA PUBLIC KEY-----).
      - Keys that are left out are removed, except those that others added to the Secret.
    type: dict
    default: {}
  public_key_secrets:
    description: Names of Secrets in the same namespace whose C(ssh-publickey) is used, by prefix of queue names.
    type: dict
    default: {}
  state:
    description: State of the Secrets. V(present) creates and updates them, V(absent) deletes them.
    type: str
    choices: [present, absent]
    default: present
  adopt:
    description: Take over Secrets that Muster did not create. They are then changed, and deleted with O(state=absent).
    type: bool
    default: false
  force_conflicts:
    description: Take over fields of another field manager, and Secrets of another owner, instead of failing.
    type: bool
    default: false
  delete_data:
    description: Delete private keys and passphrases, too, with O(state=absent).
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Create the key that opens requests, and its passphrase
  muster.ml.training_secret:
    content: decryption_key
    namespace: studioml

- name: Create the signing key of the test client
  muster.ml.training_secret:
    content: signing_key
    namespace: studioml

- name: Write which key signs requests of which queues
  muster.ml.training_secret:
    content: signing_public_keys
    namespace: studioml
    public_key_secrets:
      rmq_test: studioml-client-signing-key
    public_keys:
      rmq_cpu_: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFITo06Pk8sqCMoMHPaQiQ7BY3pjf7OE8BDcsnYozmIG experimenter

- name: Create the login of runners and clients at the broker
  muster.ml.training_secret:
    content: broker_login
    namespace: studioml

- name: Replace the key after its queues ran empty
  muster.ml.training_secret:
    content: decryption_key
    namespace: studioml
    generation: 2

- name: Remove the key for good
  muster.ml.training_secret:
    content: decryption_key
    namespace: studioml
    state: absent
    delete_data: true
"""

RETURN = r"""
objects:
  description: Secrets, each with what was done to it.
  returned: success
  type: list
  elements: dict
  sample: [{kind: Secret, name: studioml-runner-key-secret, namespace: studioml, action: created}]
fingerprints:
  description:
    - Fingerprints of the public keys, by key of the Secret, V(ssh-publickey) or a prefix of queue names.
    - Null in check mode for a key that the run would make.
  returned: when O(state=present)
  type: dict
  sample:
    ssh-publickey: SHA256:BB+StMfwvv/8Dutb0i1QpdBL171Fg/Fd3ODebi+NX74
"""

import typing as t

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._edge import groups
from ansible_collections.muster.ml.plugins.module_utils._edge.options import APPLY, REMOVAL, STATE, WAIT
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context, module_main
from ansible_collections.muster.ml.plugins.module_utils._kube.made_once import MadeOnce
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import check_count, check_name, owner_of
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import key_secrets
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml.key_secrets import Desired, Material

NAMES = {
    "decryption_key": "studioml-runner-key-secret",
    "signing_key": "studioml-client-signing-key",
    "signing_public_keys": "studioml-signing",
    "response_public_keys": "studioml-report-keys",
    "broker_login": "studioml-broker-login",
}

ARGUMENT_SPEC: dict[str, dict[str, t.Any]] = {
    "content": {"type": "str", "required": True, "choices": list(NAMES)},
    "name": {"type": "str"},
    "namespace": {"type": "str"},
    "passphrase_secret": {"type": "str", "default": "studioml-runner-passphrase-secret", "no_log": False},
    "generation": {"type": "int", "default": 1},
    "private_key": {"type": "str", "no_log": True},
    "passphrase": {"type": "str", "no_log": True},
    "broker_user": {"type": "str", "default": "studioml"},
    "broker_password": {"type": "str", "no_log": True},
    "public_key": {"type": "str", "no_log": False},
    "public_keys": {"type": "dict", "default": {}, "no_log": False},
    "public_key_secrets": {"type": "dict", "default": {}, "no_log": False},
    "delete_data": {"type": "bool", "default": False},
    **REMOVAL,
    **STATE,
    **{option: APPLY[option] for option in ("adopt", "force_conflicts")},
    **WAIT,
}

CONSTRAINTS: dict[str, t.Any] = {"required_by": {"public_key": ["private_key"]}}

Plan = t.Callable[[MadeOnce, Desired], Material]
NAME_MAX = 253
"""Characters of the name of a Secret."""


def execute(ctx: Context) -> dict[str, t.Any]:
    """Create, replace or delete the keys."""
    params = ctx.params
    name = params["name"] or NAMES[params["content"]]
    if params["state"] == "absent":
        namespace = ctx.namespace
        return ctx.result(groups.delete_group(ctx, namespace, owner_of("training_secret", namespace, name)))
    read = READERS.get(params["content"], _private)(ctx, name)
    namespace = ctx.namespace
    wanted = desired(ctx, namespace, name)
    report, material = key_secrets.store(
        ctx.cluster,
        lambda once: read(once, wanted),
        wanted,
        force_conflicts=params["force_conflicts"],
        promised=ctx.promised,
        on_progress=ctx.progress,
    )
    return ctx.result(report, fingerprints=dict(material.fingerprints))


def desired(ctx: Context, namespace: str, name: str) -> Desired:
    """The key that the options describe."""
    params = ctx.params
    return Desired(
        namespace,
        check_name(name, "name", limit=NAME_MAX),
        owner_of("training_secret", namespace, name),
        generation=check_count(params["generation"], "generation", minimum=1),
        # An empty text is an error of a template, not a request for a new key.
        private_key=None if params["private_key"] is None else Sensitive(params["private_key"]),
        passphrase=None if params["passphrase"] is None else Sensitive(params["passphrase"]),
        username=params["broker_user"],
        password=None if params["broker_password"] is None else Sensitive(params["broker_password"]),
        public_key=params["public_key"],
        passphrase_secret=check_name(params["passphrase_secret"], "passphrase_secret", limit=NAME_MAX),
        adopt=params["adopt"],
        check=ctx.check,
    )


def _private(ctx: Context, name: str) -> Plan:
    """Check the options before any request; the returned function reads from the cluster."""
    decrypts = ctx.params["content"] == "decryption_key"
    _refuse_others(ctx.params, "private_key", "public_key", *(["passphrase"] if decrypts else []))
    asked = desired(ctx, ctx.params["namespace"] or "", name)
    given = asked.given_decryption_key() if decrypts else asked.given_signing_key()
    read = key_secrets.decryption_key if decrypts else key_secrets.signing_key
    return lambda once, wanted: read(once, wanted, given)


def _public(ctx: Context, name: str) -> Plan:
    """The same for public keys."""
    params = ctx.params
    _refuse_others(params, "public_keys", "public_key_secrets")
    texts = {str(prefix): str(text) for prefix, text in params["public_keys"].items()}
    others = {str(prefix): str(secret) for prefix, secret in params["public_key_secrets"].items()}
    signing = params["content"] == "signing_public_keys"
    read = key_secrets.ed25519_of_queue if signing else key_secrets.rsa_of_queue
    desired(ctx, params["namespace"] or "", name)
    key_secrets.check_public_keys(texts, others, read)
    return lambda once, wanted: key_secrets.public_keys(once, wanted, texts, others, read)


def _login(ctx: Context, name: str) -> Plan:
    """The same for the login at the broker."""
    _refuse_others(ctx.params, "broker_password")
    desired(ctx, ctx.params["namespace"] or "", name).check_login()
    return key_secrets.broker_login


READERS = {"signing_public_keys": _public, "response_public_keys": _public, "broker_login": _login}


def _refuse_others(params: dict[str, t.Any], *known: str) -> None:
    for option in ("private_key", "public_key", "passphrase", "broker_password", "public_keys", "public_key_secrets"):
        if params[option] and option not in known:
            raise InvalidInput(f"{option} does not belong to content {params['content']}.", f"It has {', '.join(known)}.")


def main() -> None:
    module_main(ARGUMENT_SPEC, execute, **CONSTRAINTS)


if __name__ == "__main__":
    main()

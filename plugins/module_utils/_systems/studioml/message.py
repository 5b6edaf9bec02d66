# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests of StudioML as they lie in a queue, built as the client builds them. No I/O.

Read in the code of leaf-ai/studio-go-runner and studioml/studio (a file named here is of the first, if nothing else is said):

- The body is JSON with the one key ``message`` (internal/defense/envelope.go). In it are, in clear, ``experiment.status``,
  ``experiment.pthonver`` (the runner's spelling; the client writes ``pythonver``, which the runner does not read), ``time_added`` (seconds
  since 1970), ``experiment_lifetime`` (a duration such as ``30m``) and ``resources_needed``; then ``payload``, ``fingerprint``,
  ``signature``. A message without ``message.payload`` counts as one in clear text.
- ``payload`` is base64 of the sealed key, a comma, base64 of nonce and box (internal/runner/secret_store.go, HybridSeal). The key is 32
  random bytes, sealed by RSA-OAEP with SHA-256 and no label. The box is NaCl's secretbox (XSalsa20-Poly1305) under a random nonce of 24
  bytes (block_crypto.go). In it is the request as JSON, with the keys ``config`` and ``experiment``.
- ``signature`` is base64 of an Ed25519 signature over the bytes of the text ``payload``, and over nothing else (cmd/runner/processor.go,
  unpackMsg): the clear fields are not protected. The runner first reads it in SSH's form, the texts ``ssh-ed25519`` and signature each
  with four bytes of length, and takes 64 bytes as they are otherwise. Older runners know the first form only (signature_test.go), older
  clients write it and newer ones the second (encrypted_payload_builder.py of the client). Built is the first.
- ``fingerprint`` is that of the signer's public key as ``ssh-keygen -l`` shows it. It must not be empty; one that differs from the key
  of the queue is only written to the runner's log, and the signature decides.
- The key that checks is that of the longest prefix of the queue's name (dynamic_store.go, selection).

It is not established whether a runner limits the size of a message.
"""

from __future__ import annotations

import base64
import json
import secrets
import typing as t
from collections.abc import Iterable, Mapping

from ..._core.sensitive import Sensitive
from . import keys

_ALGORITHM = b"ssh-ed25519"


def build(request: Mapping[str, t.Any], public_key: str, signing_key: Sensitive) -> bytes:
    """The body of a message with this request.

    ``public_key``: PEM of the runner's public key (Secret studioml-runner-key-secret, ssh-publickey). ``signing_key``: text of the client's
    OpenSSH private key.
    """
    experiment, config = request["experiment"], request["config"]
    payload = seal(json.dumps(request).encode(), public_key)
    signature, fingerprint = sign(payload, signing_key)
    message = {
        "experiment": {"status": str(experiment.get("status", "")), "pthonver": str(experiment.get("pythonver", ""))},
        "time_added": float(experiment["time_added"]),
        "experiment_lifetime": str(config.get("experimentLifetime", "")),
        "resources_needed": experiment["resources_needed"],
        "payload": payload,
        "fingerprint": fingerprint,
        "signature": signature,
    }
    return json.dumps({"message": message}).encode()


def seal(plain: bytes, public_key: str) -> str:
    """The payload with PLAIN, which only the owner of the private key can read."""
    import nacl.secret

    public = keys.read_rsa_public(public_key, "the runner's public key", bits=keys.BITS)
    key = secrets.token_bytes(nacl.secret.SecretBox.KEY_SIZE)
    box = bytes(nacl.secret.SecretBox(key).encrypt(plain))
    return f"{_text(public.encrypt(key, _oaep()))},{_text(box)}"


def sign(payload: str, signing_key: Sensitive) -> tuple[str, str]:
    """Signature and fingerprint for a payload."""
    key = keys.read_signing_key(signing_key, "the signing key")
    parts = (_ALGORITHM, key.sign(payload.encode()))
    signature = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return _text(signature), keys.fingerprint(key.public_key())


def longest_prefix(queue: str, prefixes: Iterable[str]) -> str | None:
    """The longest matching prefix; its key verifies the requests of the queue."""
    return max((prefix for prefix in prefixes if prefix and queue.startswith(prefix)), key=len, default=None)


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _oaep() -> t.Any:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    return padding.OAEP(mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=None)

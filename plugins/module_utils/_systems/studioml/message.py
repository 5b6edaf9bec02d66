# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requests of StudioML as they lie in a queue: built as the client builds them, opened as the runner opens them. No I/O.

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
  clients write it and newer ones the second (encrypted_payload_builder.py of the client). Built is the first, opened are both.
- ``fingerprint`` is that of the signer's public key as ``ssh-keygen -l`` shows it. It must not be empty; one that differs from the key
  of the queue is only written to the runner's log, and the signature decides.
- The key that checks is that of the longest prefix of the queue's name (dynamic_store.go, selection).

In the same file the runner sets for each refusal whether a retry may help; the result key ``hard`` has that value. Not established are
which of its versions then drop a message, and which requeue it in any case; and whether a runner limits the size of a message.

Private to the collection.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import secrets
import typing as t
from collections.abc import Iterable, Mapping

from ..._core.errors import Failed, InvalidInput
from ..._core.sensitive import Sensitive
from . import keys

if t.TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import rsa

_ALGORITHM = b"ssh-ed25519"
_NONCE = 24
_TAG = 16
_SIGNATURE = 64
_SHOWN = 60
"""Characters of a fingerprint that a message shows: it comes from a queue and may be anything."""
_COUNTS, _SIZES = ("cpus", "gpus"), ("hdd", "ram", "gpuMem")
"""Keys of ``resources_needed``: whole numbers, and sizes as text (``6gb``). Another type would make the whole message unreadable."""


@dataclasses.dataclass(frozen=True)
class Opened:
    """A request as the runner sees it; ``fingerprint_fits`` is False where the named key is not the one that checked the signature."""

    request: Mapping[str, t.Any]
    signed_by: str
    fingerprint_fits: bool


# Building


def build(request: Mapping[str, t.Any], public_key: str, signing_key: Sensitive) -> bytes:
    """The body of a message with this request.

    ``public_key``: PEM of the runner's public key (Secret studioml-runner-key-secret, ssh-publickey). ``signing_key``: text of the client's
    OpenSSH private key.
    """
    experiment, config = _part(request, "experiment"), _part(request, "config")
    payload = seal(json.dumps(request).encode(), public_key)
    signature, fingerprint = sign(payload, signing_key)
    message = {
        "experiment": {"status": str(experiment.get("status", "")), "pthonver": str(experiment.get("pythonver", ""))},
        "time_added": _seconds(experiment.get("time_added")),
        "experiment_lifetime": str(config.get("experimentLifetime", "")),
        "resources_needed": _resources(experiment.get("resources_needed")),
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


def _part(request: Mapping[str, t.Any], name: str) -> Mapping[str, t.Any]:
    found = request.get(name)
    if not isinstance(found, Mapping):
        raise InvalidInput(f"The request has no {name}.", "It has the keys config and experiment.")
    return found


def _seconds(value: t.Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput("experiment.time_added is not a number.", "It is the time of submission in seconds since 1970.")
    return float(value)


def _resources(value: t.Any) -> Mapping[str, t.Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput("experiment.resources_needed is missing.", f"It has {', '.join((*_COUNTS, *_SIZES))}.")
    for name in _COUNTS:
        count = value.get(name, 0)
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise InvalidInput(f"experiment.resources_needed.{name} is not a whole number.", "Write it without quotes.")
    for name in _SIZES:
        if not isinstance(value.get(name, ""), str):
            raise InvalidInput(f"experiment.resources_needed.{name} is not text.", "Write a unit, as in 6gb.")
    return {name: value[name] for name in (*_COUNTS, *_SIZES) if name in value}


# Opening


def opened(body: bytes, *, queue: str, private_key: Sensitive, passphrase: Sensitive, public_keys: Mapping[str, str]) -> Opened:
    """The request in BODY, checked in the runner's order. ``public_keys``: texts of the signers' public keys, by prefix of queue names."""
    message = envelope(body)
    signed_by, fits = check_signature(message, queue, public_keys)
    key = keys.read_rsa_key(private_key, passphrase, "the runner's private key")
    plain = unseal(message["payload"], key)
    request = _json(plain)
    if not isinstance(request, dict):
        raise _refused("The decrypted payload is not a request in JSON.", hard=True)
    return Opened(request, signed_by, fits)


def envelope(body: bytes) -> dict[str, t.Any]:
    """Return the value of ``message``; raise if the message is not encrypted, or no message of StudioML."""
    found = _json(body)
    if found is None:
        raise _refused("The message is not JSON.", hard=True)
    message = found.get("message") if isinstance(found, dict) else None
    if not isinstance(message, dict) or "payload" not in message:
        raise _refused("The message is not encrypted: it has no message.payload.", hard=True)
    wrong = [name for name in ("payload", "fingerprint", "signature") if not isinstance(message.get(name, ""), str)]
    if wrong:
        raise _refused(f"message.{wrong[0]} is not text.", hard=True)
    return message


def check_signature(message: Mapping[str, t.Any], queue: str, public_keys: Mapping[str, str]) -> tuple[str, bool]:
    """The fingerprint of the key that signed, and whether it is the one that the message names."""
    from cryptography.exceptions import InvalidSignature

    for name in ("signature", "fingerprint"):
        if not message.get(name):
            raise _refused(f"The message is not signed: message.{name} is missing.")
    prefix = longest_prefix(queue, public_keys)
    if prefix is None:
        raise _refused(f"No public key is known for queue {queue}.", f"Known prefixes: {', '.join(sorted(public_keys))}.")
    public = keys.read_ssh_public(public_keys[prefix], f"public key of {prefix}")
    fingerprint = keys.fingerprint(public)
    try:
        public.verify(_signature(message["signature"]), message["payload"].encode("utf-8", "surrogatepass"))
    except InvalidSignature:
        said = str(message["fingerprint"])[:_SHOWN]
        why = (
            "the payload is not what was signed"
            if said == fingerprint
            else f"it names {said!r}, and queue {queue} is checked with {fingerprint}, the key of {prefix}"
        )
        raise _refused(f"The signature does not fit: {why}.") from None
    return fingerprint, message["fingerprint"] == fingerprint


def longest_prefix(queue: str, prefixes: Iterable[str]) -> str | None:
    """The longest matching prefix; its key verifies the requests of the queue."""
    return max((prefix for prefix in prefixes if prefix and queue.startswith(prefix)), key=len, default=None)


def unseal(payload: str, key: rsa.RSAPrivateKey) -> bytes:
    """Decrypt a payload."""
    import nacl.exceptions
    import nacl.secret

    parts = payload.split(",")
    if len(parts) != 2:
        raise _refused(f"message.payload has {len(parts)} parts, key and box are two.", hard=True)
    sealed, box = (_bytes(part, f"message.payload, {name}", hard=True) for part, name in zip(parts, ("key", "box"), strict=True))
    try:
        secret = key.decrypt(sealed, _oaep())
    except ValueError:
        fingerprint = keys.fingerprint(key.public_key())
        raise _refused(
            f"message.payload was encrypted for another key than {fingerprint}.",
            "Does the client have the public key of this runner, and was the key replaced while the message waited?",
            hard=True,
        ) from None
    if len(secret) != nacl.secret.SecretBox.KEY_SIZE or len(box) < _NONCE + _TAG:
        raise _refused("message.payload is too short.", hard=True)
    try:
        return bytes(nacl.secret.SecretBox(secret).decrypt(box))
    except nacl.exceptions.CryptoError:
        raise _refused("message.payload was changed after it was encrypted.", hard=True) from None


def _signature(text: str) -> bytes:
    """Return the bytes of a signature in either form; other values match no key."""
    raw = _bytes(text, "message.signature")
    head = len(_ALGORITHM).to_bytes(4, "big") + _ALGORITHM + _SIGNATURE.to_bytes(4, "big")
    return raw.removeprefix(head)


def _json(body: bytes) -> t.Any:
    """Parse BODY; None if it is no JSON, or nested too deeply for Python's parser."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _bytes(text: str, what: str, *, hard: bool = False) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise _refused(f"{what} is not base64.", hard=hard) from None


def _refused(message: str, hint: str = "", *, hard: bool = False) -> Failed:
    """Return the error for a refused message. ``hard``: the runner regards a retry as useless."""
    return Failed(message, hint, details={"hard": hard})


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _oaep() -> t.Any:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    return padding.OAEP(mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=None)

# SPDX-License-Identifier: GPL-3.0-or-later
"""StudioML's messages as the runner reads them: HybridSeal, DecryptBlock and unpackMsg with the functions of RSA, NaCl and Ed25519."""

import base64
import json
import typing as t

import nacl.bindings
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding


def unsealed(payload: str, key: t.Any) -> tuple[bytes, bytes]:
    """The secret and the box, by RSA-OAEP as Go's crypto/rsa has it."""
    sealed, boxed = (base64.b64decode(part) for part in payload.split(","))
    oaep = padding.OAEP(mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=None)
    return key.decrypt(sealed, oaep), boxed


def opened(payload: str, key: t.Any) -> bytes:
    """The text of a payload."""
    secret, boxed = unsealed(payload, key)
    return bytes(nacl.bindings.crypto_secretbox_open(boxed[24:], boxed[:24], secret))


def request_of(body: bytes, key: t.Any, signer: str) -> dict[str, t.Any]:
    """The request in a message, whose signature, in SSH's form, is by the public key SIGNER."""
    message = json.loads(body)["message"]
    raw = base64.b64decode(message["signature"])
    assert raw[:19] == b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x40"
    public: t.Any = serialization.load_ssh_public_key(signer.encode())
    public.verify(raw[19:], message["payload"].encode())
    return dict(json.loads(opened(message["payload"], key)))

# SPDX-License-Identifier: GPL-3.0-or-later
"""New keys, beside made_once.py because they need the library cryptography. Each takes what only that file gives out."""

from __future__ import annotations

import typing as t

from .made_once import Fresh

if t.TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa


def ec_key(_fresh: Fresh) -> ec.EllipticCurvePrivateKey:
    """A key for a certificate."""
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def rsa_key(_fresh: Fresh, bits: int) -> rsa.RSAPrivateKey:
    """A key of BITS bits; one of 4096 takes a second or more of processor time."""
    from cryptography.hazmat.primitives.asymmetric import rsa

    return rsa.generate_private_key(65537, bits)


def ed25519_key(_fresh: Fresh) -> ed25519.Ed25519PrivateKey:
    """A key for signatures."""
    from cryptography.hazmat.primitives.asymmetric import ed25519

    return ed25519.Ed25519PrivateKey.generate()

# SPDX-License-Identifier: GPL-3.0-or-later
"""The trust in certificates of servers, and the cause of a refusal. The same for Kubernetes and RabbitMQ."""

from __future__ import annotations

import ssl
import typing as t
from pathlib import Path

from .errors import InvalidInput

Refusal = t.Literal["time", "name", "authority", "other"]

# From OpenSSL's x509_vfy.h; the module ssl has no names for them.
_CODES: dict[int, Refusal] = {
    **dict.fromkeys((9, 10), "time"),
    **dict.fromkeys((62, 64), "name"),
    **dict.fromkeys((2, 7, 18, 19, 20, 21), "authority"),
}


def trusting(cadata: str | None = None) -> ssl.SSLContext:
    """A context that checks signature, name and time; without CADATA (PEM) it trusts the authorities of the system."""
    context = ssl.create_default_context(cadata=cadata)
    # Python 3.13 refuses certificates without the extensions that RFC 5280 demands. Many servers have such certificates (EKS, and what
    # openssl creates by default). Go, and so kubectl, accepts them: signature, name and time are still checked.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    # Go trusts everything that it is given as an authority, even if it is not a root. Python 3.13 does so by default.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def authorities(text: str, what: str) -> str:
    """Return TEXT if it has certificates in PEM; else raise InvalidInput, naming WHAT."""
    try:
        if not text.strip():
            raise ValueError("empty")  # for the module ssl the same as none, which trusts the whole system
        trusting(text)
    except (ssl.SSLError, ValueError) as exc:
        raise InvalidInput(f"{what} is not a PEM certificate.") from exc
    return text


def authorities_in(file: str, option: str) -> str:
    """The certificates in the file of an option."""
    try:
        text = Path(file).read_text(encoding="ascii", errors="ignore")
    except OSError as exc:
        raise InvalidInput(f"{option}: {file} cannot be read: {exc.strerror or exc}.") from exc
    return authorities(text, f"{option}: {file}")


def refusal(exc: ssl.SSLCertVerificationError) -> Refusal:
    """Return the cause: the time, the name of the server, the authority that signed, or another one."""
    return _CODES.get(exc.verify_code, "other")

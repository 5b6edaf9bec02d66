# SPDX-License-Identifier: GPL-3.0-or-later
"""TLS contexts: trusted authorities and client certificates; and what it means when a certificate is refused."""

from __future__ import annotations

import os
import pathlib
import re
import ssl
import tempfile
import typing as t

from .._core.errors import Failed, InvalidInput
from .._core.sensitive import Sensitive
from .._core.trust import refusal, trusting
from .kubeconfig import Connection

if t.TYPE_CHECKING:
    from .credentials import RequestAuth

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def context_for(connection: Connection, auth: RequestAuth) -> ssl.SSLContext:
    """The TLS context for an API server, with the client certificate of the request or of the kubeconfig."""
    context = _trusting(connection)
    if not connection.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    cert, key = auth.client_cert or connection.client_cert, auth.client_key or connection.client_key
    if cert:
        _load_pair(context, cert, key, connection.source)
    return context


def _trusting(connection: Connection) -> ssl.SSLContext:
    if connection.ca is None:
        return trusting()
    # Only the certificates: bundles have comments in many languages, which Python refuses.
    found = "\n".join(_CERTIFICATE.findall(connection.ca))
    try:
        if found:
            return trusting(found)
    except (ssl.SSLError, ValueError):
        pass  # reported below, like a text without any
    raise InvalidInput(f"The certificate authority in {connection.source} is not a PEM certificate.")


def _load_pair(context: ssl.SSLContext, cert: str, key: Sensitive | None, source: str) -> None:
    """Load a key from a file that only we can read and that is deleted at once, because the ssl module reads keys only from files."""
    text = f"{cert}\n{key.reveal() if key else ''}"
    if "PRIVATE KEY-----" not in text:
        raise InvalidInput(f"The client certificate in {source} has no key.", hint="Set client-key or client_key.")
    try:
        handle, name = tempfile.mkstemp(prefix="muster-")
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
            # Without this callback OpenSSL would ask for the key's pass phrase at the terminal.
            context.load_cert_chain(name, password=_no_password)
        finally:
            pathlib.Path(name).unlink()
    except _Encrypted:
        problem = "is encrypted with a pass phrase, which a kubeconfig has no place for"
    except (ssl.SSLError, ValueError) as exc:
        problem = f"and its certificate do not match: {getattr(exc, 'reason', None) or 'not PEM'}"
    except OSError as exc:  # of this machine; the caller takes other errors of the system for those of the connection
        raise Failed(
            f"The client key in {source} cannot be read by OpenSSL without a temporary file: {exc.strerror or exc}.",
            hint="Free space there, or set the environment variable TMPDIR to a folder of a disk with room.",
        ) from exc
    else:
        return
    raise InvalidInput(f"The client key in {source} {problem}.")


class _Encrypted(Exception):
    """The key needs a pass phrase."""


def _no_password() -> t.NoReturn:
    raise _Encrypted


def reason_and_hint(exc: ssl.SSLCertVerificationError, connection: Connection) -> tuple[str, str]:
    """Return the problem of a certificate, and the next step."""
    reason, kind = exc.verify_message.rstrip("."), refusal(exc)
    if kind == "time":
        hint = "Renew the certificate (kubeadm: kubeadm certs renew), or set the clock of this machine."
    elif kind == "name":
        hint = "The certificate is for other names: use one of them as the server's, or set tls-server-name in the kubeconfig."
    elif kind == "other":
        hint = "The certificate itself, or that of its authority, is not in order."
    elif connection.ca is None:
        hint = f"{connection.source} names no certificate authority, and those of this system did not sign it: set ca_cert."
    else:
        hint = f"The certificate authority in {connection.source} belongs to another cluster, or set ca_cert."
    if connection.proxy:
        hint += f" Or the proxy {connection.proxy} opens the connection."
    return reason, hint

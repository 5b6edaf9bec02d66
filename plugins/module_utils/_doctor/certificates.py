# SPDX-License-Identifier: GPL-3.0-or-later
"""Find certificates that have expired or will soon: of Secrets, of webhooks and APIs, and of the connection itself. No key is decoded."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import typing as t
from collections.abc import Iterator

from .._core.sensitive import Sensitive
from .._kube.objects import ANNOTATION_GENERATED, annotations_of, ref_of
from .findings import Finding
from .reading import WEBHOOKS, Snapshot

_SOON, _SHARE = dt.timedelta(days=30), 5
"""A certificate should be renewed by then: when 30 days are left, or a fifth of its life where that is less."""
_ENDS = (".crt", ".pem", ".cert")
"""Ends of the keys of Secrets that hold certificates; those of private keys are not read."""
_LIBRARY = "Certificates are not judged: the Python library cryptography is not installed."
_ADVICE = "Renew it, and restart what has read the old one only when it started."
_OURS = "Run the role again that made it, which renews it; then restart what has read the old one only when it started."


class _Place(t.NamedTuple):
    """Certificates in PEM, and what holds them."""

    object: str
    part: str
    pem: bytes
    advice: str = _ADVICE


def certificates(seen: Snapshot) -> Iterator[Finding]:
    """The findings about certificates. The same certificate in several objects is one finding."""
    try:
        import cryptography.x509  # noqa: F401
    except ImportError:
        seen.unread.append(_LIBRARY)
        return
    for place in (*_of_secrets(seen), *_of_apis(seen), *_of_the_connection(seen)):
        yield from _judged(seen, place)


def _of_secrets(seen: Snapshot) -> Iterator[_Place]:
    for item in seen.of("Secret"):
        advice = _OURS if annotations_of(item).get(ANNOTATION_GENERATED) == "tls" else _ADVICE
        for key, value in (item.get("data") or {}).items():
            if key.endswith(_ENDS):
                yield _Place(str(ref_of(item)), key, _decoded(Sensitive(value).reveal()), advice)


def _of_apis(seen: Snapshot) -> Iterator[_Place]:
    """The authorities that the API server trusts when it calls webhooks and aggregated APIs."""
    for item in (row for kind in WEBHOOKS for row in seen.of(kind)):
        for hook in item.get("webhooks") or []:
            yield _Place(str(ref_of(item)), f"caBundle of {hook['name']}", _decoded((hook.get("clientConfig") or {}).get("caBundle")))
    for item in seen.of("APIService"):
        yield _Place(str(ref_of(item)), "caBundle", _decoded((item.get("spec") or {}).get("caBundle")))


def _of_the_connection(seen: Snapshot) -> Iterator[_Place]:
    """The certificates of a kubeconfig, or of the options that replace them."""
    for part, text in seen.cluster.certificates.items():
        advice = "Write the kubeconfig again, as its cluster does it; kubeadm certs renew renews those of kubeadm."
        yield _Place(f"kubeconfig of {seen.cluster.server}", part, (text or "").encode(), advice)


def _decoded(text: str | None) -> bytes:
    try:
        return base64.b64decode(text or "", validate=True)
    except binascii.Error:
        return b""


def _judged(seen: Snapshot, place: _Place) -> Iterator[Finding]:
    from cryptography import x509

    try:
        found = x509.load_pem_x509_certificates(place.pem)
    except ValueError:  # it holds no certificate, or one that only its program understands
        return
    # Of several authorities one has to be valid; of a chain the first, whose authorities follow.
    is_chain = found[0].issuer != found[0].subject and not place.part.startswith("ca")
    one = found[0] if is_chain else max(found, key=lambda one: one.not_valid_after_utc)
    ends = one.not_valid_after_utc
    left, life = ends - seen.now, ends - one.not_valid_before_utc
    if left > min(_SOON, life / _SHARE):
        return
    over = left <= dt.timedelta()
    evidence = f"{place.part}: {one.subject.rfc4514_string()[:100]} {'was' if over else 'is'} valid until {ends:%Y-%m-%d %H:%M} UTC"
    cause, group = "certificate has expired" if over else "certificate expires soon", f"certificate {one.serial_number}"
    yield Finding("error" if over else "warning", place.object, cause, evidence, place.advice, group)

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Certificates that live in Secrets, or in files for members outside of Kubernetes, and nowhere else: made once, kept on every
later run, renewed before they end.

Private to the collection.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import functools
import ipaddress
import os
import typing as t
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .._core.sensitive import revealed
from .._kube.errors import Failed
from .._kube.objects import ANNOTATION_GENERATED, Manifest, Ref

if t.TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

    from .._kube.cluster import Cluster

_AUTHORITY_DAYS = 3650
_LEAF_DAYS = 397
_RENEW_DAYS = 60


@dataclasses.dataclass(frozen=True)
class Leaf:
    """A certificate that is wanted: its Secret or file, its name, and the hosts it is good for (none: a client's)."""

    secret: str
    common_name: str
    hosts: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class _Pair:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def data(self, authority: x509.Certificate | None = None) -> dict[str, str]:
        """As a Secret of type kubernetes.io/tls holds it."""
        from cryptography.hazmat.primitives import serialization as s

        certificate, key = self.pem()
        parts = {"tls.crt": certificate, "tls.key": key}
        if authority is not None:
            parts["ca.crt"] = authority.public_bytes(s.Encoding.PEM)
        return {name: base64.b64encode(value).decode() for name, value in parts.items()}

    def pem(self) -> tuple[bytes, bytes]:
        """Certificate and key as files hold them."""
        from cryptography.hazmat.primitives import serialization as s

        key = self.key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
        return self.certificate.public_bytes(s.Encoding.PEM), key


def secrets(
    cluster: Cluster, namespace: str, authority: str, leaves: Sequence[Leaf], labels: Mapping[str, str]
) -> list[Manifest]:
    """Secrets with an authority of its own and the certificates it signed; those that are there and good stay."""

    def there(name: str) -> _Pair | None:
        data = (cluster.get(Ref("v1", "Secret", name, namespace)) or {}).get("data") or {}
        return _pair(*(base64.b64decode(revealed(data.get(part, ""))) for part in ("tls.crt", "tls.key")))

    own, pairs = _pairs(there, authority, f"{authority} of {namespace}", leaves)
    made = [_secret(namespace, name, pair.data(own.certificate), labels) for name, pair in pairs.items()]
    return [_secret(namespace, authority, own.data(), labels), *made]


def files(folder: Path, authority: str, subject: str, leaves: Sequence[Leaf], *, check: bool) -> list[str]:
    """The same as <name>.crt and <name>.key below FOLDER; the names of those that were made or renewed."""

    @functools.cache
    def there(name: str) -> _Pair | None:
        try:
            pair = _pair((folder / f"{name}.crt").read_bytes(), (folder / f"{name}.key").read_bytes())
        except FileNotFoundError:
            return None
        if pair is None and name == authority:
            # A new one would lock out everybody who trusts this one.
            raise Failed(f"{folder}: {name}.crt and {name}.key are damaged.", hint="Put back a copy of them.")
        return pair

    own, pairs = _pairs(there, authority, subject, leaves)
    wanted = {authority: own, **pairs}
    fresh = [name for name, pair in wanted.items() if pair is not there(name)]
    for name in [] if check else fresh:
        certificate, key = wanted[name].pem()
        _write(folder / f"{name}.key", key, 0o600)
        _write(folder / f"{name}.crt", certificate, 0o644)
    return fresh


def _write(path: Path, content: bytes, mode: int) -> None:
    """Whole or not at all, and for nobody else to read from the first moment on."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    fresh.replace(path)


def _pairs(
    there: Callable[[str], _Pair | None], authority: str, subject: str, leaves: Sequence[Leaf]
) -> tuple[_Pair, dict[str, _Pair]]:
    """The authority and what it signed: what is there and good, the rest new."""
    root = there(authority)
    own = root or _issue(subject, (), None, _AUTHORITY_DAYS)
    pairs = {}
    for leaf in leaves:
        pair = there(leaf.secret) if root else None
        if pair is None or not _good(pair.certificate, leaf, own.certificate):
            pair = _issue(leaf.common_name, leaf.hosts, own, _LEAF_DAYS)
        pairs[leaf.secret] = pair
    return own, pairs


def _secret(namespace: str, name: str, data: dict[str, str], labels: Mapping[str, str]) -> Manifest:
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": dict(labels),
        "annotations": {ANNOTATION_GENERATED: "tls"},
    }
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls", "data": data}


def _pair(crt: bytes, pem: bytes) -> _Pair | None:
    """A certificate and its key, None where they are missing or of no use."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization as s

    try:
        key = s.load_pem_private_key(pem, None)
        certificate = x509.load_pem_x509_certificate(crt)
    except ValueError:
        return None
    return _Pair(certificate, t.cast("ec.EllipticCurvePrivateKey", key))


def _good(certificate: x509.Certificate, leaf: Leaf, authority: x509.Certificate) -> bool:
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    left = certificate.not_valid_after_utc - dt.datetime.now(dt.UTC)
    names = {str(a.value) for a in certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)}
    try:
        said = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        hosts = {str(entry.value) for entry in said}
    except x509.ExtensionNotFound:
        hosts = set()
    return left > dt.timedelta(days=_RENEW_DAYS) and names == {leaf.common_name} and hosts == set(leaf.hosts)


def _issue(common_name: str, hosts: Sequence[str], issuer: _Pair | None, days: int) -> _Pair:
    """A new pair, signed by ISSUER or, without one, by itself: an authority."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID as Usage

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name[:64])])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # Clocks of nodes may be behind.
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(
            x509.BasicConstraints(ca=issuer is None, path_length=0 if issuer is None else None), critical=True
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if issuer:
        # A member is a client of the other ones, and of itself.
        usages = [Usage.CLIENT_AUTH, *([Usage.SERVER_AUTH] if hosts else [])]
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_name(host) for host in hosts]), critical=False)
    return _Pair(builder.sign(issuer.key if issuer else key, hashes.SHA256()), key)


def _name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)

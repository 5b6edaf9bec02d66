# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates in Secrets or, for servers outside of Kubernetes, in files: created once, kept by later runs, renewed before they expire.

An authority keeps its key for ever. Its certificate is renewed with the same key and name, so that who trusts the old certificate
trusts what the new one signs, and vice versa. An authority is never replaced by another one: one that cannot be read is an error.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import ipaddress
import typing as t
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .._core.clock import Clock, utc
from .._core.errors import Failed, InvalidInput
from .._core.files import replaced
from .._core.sensitive import Sensitive, revealed
from .made_once import Fresh, MadeOnce, beside_an_opened_record, to_be_dropped
from .new_keys import ec_key
from .objects import ANNOTATION_GENERATED, Manifest, Ref

if t.TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

    T = t.TypeVar("T", bound=x509.ExtensionType)

_AUTHORITY_DAYS = 3650
_LEAF_DAYS = 397
_RENEW_DAYS = 60


@dataclasses.dataclass(frozen=True)
class Leaf:
    """A desired certificate: its Secret or file, its name, and the hosts it is valid for (none: a client's)."""

    secret: str
    common_name: str
    hosts: Sequence[str] = ()


class _Unusable(Exception):
    """The reason why a certificate or its key cannot be used. It does not quote them."""


@dataclasses.dataclass(frozen=True)
class _Pair:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def pem(self) -> tuple[bytes, Sensitive]:
        """Certificate and key as files hold them."""
        from cryptography.hazmat.primitives import serialization as s

        key = self.key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
        return self.certificate.public_bytes(s.Encoding.PEM), Sensitive(key)


class _Place(t.Protocol):
    """Storage for pairs of certificate and key, by name; and new keys for it."""

    @property
    def fresh(self) -> Fresh:
        """New keys."""

    @property
    def now(self) -> dt.datetime:
        """The date by which what ends soon is judged."""

    def read(self, name: str) -> _Pair | None:
        """The stored pair, or None."""

    def describe(self, *names: str) -> str:
        """The place of these pairs, for messages."""


@dataclasses.dataclass(frozen=True)
class _Secrets:
    fresh: MadeOnce
    namespace: str

    @property
    def now(self) -> dt.datetime:
        return utc(self.fresh.clock)

    def read(self, name: str) -> _Pair | None:
        live = self.fresh.get(Ref("v1", "Secret", name, self.namespace))
        if live is None:
            return None
        data = revealed(live.get("data") or {})
        try:
            parts = [base64.b64decode(data.get(part) or "", validate=True) for part in ("tls.crt", "tls.key")]
        except ValueError:
            raise _Unusable("its data are not base64") from None
        return _pair(parts[0], Sensitive(parts[1]))

    def describe(self, *names: str) -> str:
        return f"Secret {', '.join(f'{self.namespace}/{name}' for name in names)}"


@dataclasses.dataclass(frozen=True)
class _Files:
    folder: Path
    fresh: Fresh
    now: dt.datetime

    def read(self, name: str) -> _Pair | None:
        certificate, key = (self.folder / f"{name}.{end}" for end in ("crt", "key"))
        if not (certificate.exists() and key.exists()):
            # If only one of the two files exists, a run was interrupted after it wrote the first.
            return None
        return _pair(certificate.read_bytes(), Sensitive(key.read_bytes()))

    def describe(self, *names: str) -> str:
        return f"{self.folder}/{', '.join(names)} (.crt and .key)"


def secrets(
    once: MadeOnce, namespace: str, authority: str, leaves: Sequence[Leaf], labels: Mapping[str, str], *, in_use: bool
) -> list[Manifest]:
    """Secrets with an authority and, after it, the certificates it signed; valid existing ones are kept.

    ``in_use``: members run with them, so a lost authority must not be replaced by another one.
    """
    place = _Secrets(once, namespace)
    own, pairs = _pairs(place, authority, f"{authority} of {namespace}", leaves, in_use=in_use)
    trusted, _key = own.pem()
    made = [_secret(namespace, name, pair, labels, {"ca.crt": trusted}) for name, pair in pairs.items()]
    return [_secret(namespace, authority, own, labels, {}), *made]


def files(
    folder: Path,
    authority: str,
    subject: str,
    leaves: Sequence[Leaf],
    *,
    trusted: Mapping[str, str] | None = None,
    note: Callable[[Path, bytes], None] = lambda _path, _content: None,
    check: bool,
    clock: Clock,
) -> list[str]:
    """The same as files <name>.crt and <name>.key below FOLDER; returns the names of those that were created or renewed.

    The caller has the record of FOLDER open (``created.opened``), so that two runs at once make one set.
    ``trusted``: by host, the authority's certificate (PEM) that it already trusts and that must have the same key.
    ``note`` is called with path and content of each file before it is written.
    """

    place = _Files(folder, to_be_dropped() if check else beside_an_opened_record(), utc(clock))
    own, pairs = _pairs(place, authority, subject, leaves, in_use=True)
    for host, theirs in (trusted or {}).items():
        _refuse_another(own, theirs, f"{host} trusts another certificate authority than {place.describe(authority)}.")
    # The authority first.
    missing = {name: pair for name, pair in {authority: own, **pairs}.items() if _read(place, name) != pair.pem()}
    for name, pair in missing.items() if not check else ():
        public, key = pair.pem()
        for path, content, mode in ((folder / f"{name}.key", key.reveal(), 0o600), (folder / f"{name}.crt", public, 0o644)):
            note(path, content)
            _write(path, content, mode)
    return list(missing)


def read_from_hosts(found: Mapping[str, Mapping[str, t.Any]]) -> dict[str, str]:
    """The files that ansible.builtin.slurp read, by host. Where there was none to read, the task was skipped."""
    read = {host: result["content"] for host, result in found.items() if "content" in result}
    return {host: base64.b64decode(content).decode() for host, content in read.items()}


def _read(place: _Place, name: str) -> tuple[bytes, Sensitive] | None:
    try:
        pair = place.read(name)
    except _Unusable:
        return None
    return pair.pem() if pair else None


def _refuse_another(own: _Pair, certificate: str, message: str) -> None:
    """Refuse an authority with another key than hosts trust; certificates with the same key may differ."""
    from cryptography import x509

    try:
        theirs = x509.load_pem_x509_certificate(certificate.encode())
    except ValueError:
        raise Failed(f"{message} What it trusts is no certificate.", hint="Look at that host's file.") from None
    if theirs.public_key() != own.certificate.public_key() or theirs.subject != own.certificate.subject:
        raise Failed(message, hint="Restore the folder that its certificates were created with, or name that folder.")


def _write(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replaced(path, mode) as file:
        file.write(content)


def _pairs(place: _Place, authority: str, subject: str, leaves: Sequence[Leaf], *, in_use: bool) -> tuple[_Pair, dict[str, _Pair]]:
    """The authority and the certificates it signed: valid existing ones, and new ones for the rest."""
    own = _authority(place, authority, subject, [leaf.secret for leaf in leaves], in_use=in_use)
    pairs = {}
    for leaf in leaves:
        try:
            pair = place.read(leaf.secret)
        except _Unusable:
            # Clients that trust the authority also trust its new certificate.
            pair = None
        if pair is None or not _good(pair.certificate, leaf, own.certificate, place.now):
            pair = _issue(leaf, own, ec_key(place.fresh), place.now)
        pairs[leaf.secret] = pair
    return own, pairs


def _authority(place: _Place, name: str, subject: str, leaves: Sequence[str], *, in_use: bool) -> _Pair:
    signed: list[str] = []
    try:
        found = place.read(name)
        if found is None and in_use:
            signed = [leaf for leaf in leaves if _is_there(place, leaf)]
            # Another run may have made both between the two readings.
            found = place.read(name) if signed else None
        if found is not None:
            return _kept(found, place.now)
    except _Unusable as exc:
        raise Failed(
            f"{place.describe(name)} holds no authority that can be used: {exc}. Another one would lock out clients that trust this one.",
            hint=_restore_hint(place, [name, *leaves]),
        ) from None
    if signed:
        raise Failed(
            f"{place.describe(name)} does not exist, but certificates that it signed do: {place.describe(*signed)}. "
            "Another authority would lock out all clients that trust the lost one.",
            hint=_restore_hint(place, signed),
        )
    return _self_signed(ec_key(place.fresh), _named(subject), place.now)


def _restore_hint(place: _Place, names: Sequence[str]) -> str:
    return (
        f"Put back a copy of it. If there is none, delete {place.describe(*names)} and run again: all certificates are created "
        "again, and members and clients have to be restarted with them."
    )


def _is_there(place: _Place, name: str) -> bool:
    try:
        return place.read(name) is not None
    except _Unusable:
        return True


def _secret(namespace: str, name: str, pair: _Pair, labels: Mapping[str, str], more: Mapping[str, bytes]) -> Manifest:
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels), "annotations": {ANNOTATION_GENERATED: "tls"}}
    certificate, key = pair.pem()
    parts = {"tls.crt": certificate, "tls.key": key.reveal(), **more}
    data = {part: base64.b64encode(value).decode() for part, value in parts.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/tls", "data": data}


def _pair(crt: bytes, pem: Sensitive) -> _Pair:
    """A certificate and its key."""
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization as s

    # Not chained to the original error, which may quote what it could not read.
    try:
        certificate = x509.load_pem_x509_certificate(crt)
    except ValueError:
        raise _Unusable("its certificate is missing or is not PEM") from None
    try:
        key = s.load_pem_private_key(pem.reveal(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise _Unusable("its key is missing, has a password, or is not PEM") from None
    if key.public_key() != certificate.public_key():
        raise _Unusable("its key does not belong to its certificate")
    return _Pair(certificate, t.cast("ec.EllipticCurvePrivateKey", key))


def _extension(certificate: x509.Certificate, kind: type[T]) -> T | None:
    from cryptography import x509

    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _ends_soon(certificate: x509.Certificate, now: dt.datetime) -> bool:
    return certificate.not_valid_after_utc - now <= dt.timedelta(days=_RENEW_DAYS)


def _kept(pair: _Pair, now: dt.datetime) -> _Pair:
    """An existing authority, with a new certificate for its key if the old one expires soon or strict clients refuse it."""
    from cryptography import x509

    certificate = pair.certificate
    basic = _extension(certificate, x509.BasicConstraints)
    if basic is None or not basic.ca:
        raise _Unusable("its certificate is not that of an authority")
    if _extension(certificate, x509.KeyUsage) and not _ends_soon(certificate, now):
        return pair
    if certificate.issuer != certificate.subject:
        raise _Unusable("its certificate expires soon or lacks keyUsage, and only its owner can renew it")
    return _self_signed(pair.key, certificate.subject, now)


def _good(certificate: x509.Certificate, leaf: Leaf, authority: x509.Certificate, now: dt.datetime) -> bool:
    """Whether AUTHORITY signed it for what LEAF says, for long enough, and in the form that strict clients require."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    names = {str(a.value) for a in certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)}
    said = _extension(certificate, x509.SubjectAlternativeName)
    hosts = {str(entry.value) for entry in said or ()}
    strict = _extension(certificate, x509.AuthorityKeyIdentifier) and _extension(certificate, x509.KeyUsage)
    return bool(strict) and not _ends_soon(certificate, now) and names == {leaf.common_name} and hosts == set(leaf.hosts)


def _named(common_name: str) -> x509.Name:
    from cryptography import x509

    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name[:64])])


def _self_signed(key: ec.EllipticCurvePrivateKey, subject: x509.Name, now: dt.datetime) -> _Pair:
    """An authority that may only sign end certificates."""
    from cryptography import x509

    extensions = [x509.BasicConstraints(ca=True, path_length=0), _key_usage("key_cert_sign", "crl_sign")]
    return _Pair(_signed(key, subject, key, subject, _AUTHORITY_DAYS, extensions, now), key)


def _issue(leaf: Leaf, issuer: _Pair, key: ec.EllipticCurvePrivateKey, now: dt.datetime) -> _Pair:
    """A new pair for LEAF, with KEY. It is for clients, too, because members connect to each other and to themselves."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID as Usage

    usages = [Usage.CLIENT_AUTH, *([Usage.SERVER_AUTH] if leaf.hosts else [])]
    extensions: list[x509.ExtensionType] = [
        x509.BasicConstraints(ca=False, path_length=None),
        _key_usage("digital_signature"),
        x509.ExtendedKeyUsage(usages),
    ]
    if leaf.hosts:
        extensions.append(x509.SubjectAlternativeName([_name(host) for host in leaf.hosts]))
    subject = _named(leaf.common_name)
    return _Pair(_signed(key, subject, issuer.key, issuer.certificate.subject, _LEAF_DAYS, extensions, now), key)


def _signed(
    key: ec.EllipticCurvePrivateKey,
    subject: x509.Name,
    issuer_key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    days: int,
    extensions: Sequence[x509.ExtensionType],
    now: dt.datetime,
) -> x509.Certificate:
    """A certificate with the identifiers of both keys, which strict clients require (RFC 5280, 4.2.1.1 and 4.2.1.2)."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # Not valid from now, because clocks of nodes may be behind: a day, as a time zone that was taken for UTC.
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        # Identified by the key alone, because the serial number changes when the authority's certificate is renewed.
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    for extension in extensions:
        critical = isinstance(extension, x509.BasicConstraints | x509.KeyUsage)
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(issuer_key, hashes.SHA256())


def _key_usage(*desired: str) -> x509.KeyUsage:
    from cryptography import x509

    every = (
        "digital_signature",
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "key_cert_sign",
        "crl_sign",
        "encipher_only",
        "decipher_only",
    )
    return x509.KeyUsage(**{usage: usage in desired for usage in every})


def _name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        if not host.isascii():
            raise InvalidInput(f"'{host}' cannot be in a certificate: a DNS name has ASCII characters only.") from None
        return x509.DNSName(host)

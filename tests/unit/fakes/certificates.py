# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of tests, with their keys."""

import dataclasses
import datetime as dt
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclasses.dataclass
class Signed:
    """A certificate and its key."""

    cert: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        return self.cert.public_bytes(serialization.Encoding.PEM).decode()

    def key_pem(self, password: bytes | None = None) -> str:
        how = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        return self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how).decode()


def signed(name: str, by: Signed | None = None, *, ca: bool = False, host: str = "", days: float = 1, life: float = 10) -> Signed:
    """A certificate for DAYS from now, of LIFE days in all, signed BY an authority or by its own key.

    As ``openssl`` makes them without a configuration: no AuthorityKeyIdentifier, no keyUsage.
    """
    key, ends = ec.generate_private_key(ec.SECP256R1()), dt.datetime.now(dt.UTC) + dt.timedelta(days=days)
    subject, begins = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]), ends - dt.timedelta(days=life)
    issuer = by.cert.subject if by else subject
    built = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number(), begins, ends)
    if ca:
        built = built.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    if host:
        is_name = host.strip(".0123456789") != ""
        entry = x509.DNSName(host) if is_name else x509.IPAddress(ipaddress.ip_address(host))
        built = built.add_extension(x509.SubjectAlternativeName([entry]), critical=False)
    return Signed(built.sign(by.key if by else key, hashes.SHA256()), key)

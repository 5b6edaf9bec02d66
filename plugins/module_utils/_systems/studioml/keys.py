# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys of StudioML: made, read, checked, and written in the formats that runner and client accept. No I/O.

What the runner (leaf-ai/studio-go-runner, 0.14) accepts, read in its code:

- the private key that opens requests: one PEM block ``RSA PRIVATE KEY`` (PKCS#1), encrypted as ``x509.DecryptPEMBlock`` reads it, and the
  bytes of the passphrase file as they are (secret_store.go). With a passphrase that does not fit, it writes that passphrase to its log;
- public keys of requests: text that begins with ``ssh-ed25519``, in a file named after the prefix of the queues (signing_store.go);
- public keys for reports: text that begins with ``-----BEGIN RSA PUBLIC KEY-----`` (PKCS#1), in files named likewise.

The client reads its signing key from an OpenSSH private key without passphrase (studioml, ed25519_key_util.py).

An error names what is wrong, never a part of a key. Errors of ``cryptography`` are not chained, because they may quote what they read.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import re
import typing as t

from ..._core.errors import InvalidInput
from ..._core.sensitive import Sensitive
from ..._kube.made_once import Fresh
from ..._kube.new_keys import ed25519_key, rsa_key

if t.TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

    PublicKey = rsa.RSAPublicKey | ed25519.Ed25519PublicKey

BITS = 4096
"""The bits of the key that decrypts requests; the runner's documents name no other size."""
REPORT_BITS = 2048
"""Least bits of an experimenter's key for reports, for which the documents name no size."""
PREFIX_LENGTH = 4
"""Least characters of a prefix of queue names: the broker's kind with its underscore, as in ``rmq_``."""
PLACEHOLDER = "info"
"""Key of a Secret of public keys that has none yet: its mount is not optional, and an empty Secret could be pruned. The runner skips it."""

_CIPHERS = ("AES-128-CBC", "AES-256-CBC", "DES-EDE3-CBC")
"""Encryptions of PEM that both ``x509.DecryptPEMBlock`` and ``cryptography`` know."""
_BEGIN = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----")
_DEK = re.compile(r"^DEK-Info: *([A-Z0-9-]+),[0-9A-Fa-f]+ *\r?$", re.MULTILINE)
_PREFIX = re.compile(r"[-._a-zA-Z0-9]+")
_TO_LEGACY = "ssh-keygen -p -m PEM -f FILE rewrites FILE in the format that the runner reads; give it a passphrase."
_TO_PKCS1 = "openssl rsa -pubin -in FILE -RSAPublicKey_out writes it."


@dataclasses.dataclass(frozen=True)
class Pair:
    """A private key as a file holds it, with what may be shown of it."""

    private: Sensitive
    """Text of the private key."""
    public: str
    """Text of the public key."""
    fingerprint: str


def fingerprint(key: PublicKey) -> str:
    """Return the fingerprint as ``ssh-keygen -l`` and the runner's logs show it: SHA256 of the SSH form, in base64 without padding."""
    from cryptography.hazmat.primitives import serialization as s

    blob = base64.b64decode(key.public_bytes(s.Encoding.OpenSSH, s.PublicFormat.OpenSSH).split()[1])
    return f"SHA256:{base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip('=')}"


# The key that opens requests


def check_passphrase(passphrase: Sensitive, what: str) -> Sensitive:
    """Return PASSPHRASE if the runner can use it: it takes the file as it is, a line break at its end included."""
    text = passphrase.reveal()
    if not text:
        raise InvalidInput(f"{what} is empty.", "The runner refuses a key without passphrase.")
    if "\n" in text or "\r" in text:
        raise InvalidInput(
            f"{what} has a line break, which the runner would take for a part of the passphrase.",
            "printf writes a file without one, echo does not; the filter trim takes it away.",
        )
    if not text.isprintable():
        raise InvalidInput(f"{what} has a character that cannot be printed.", "Is it a file that is not text?")
    if len(text.encode()) > 1023:
        raise InvalidInput(f"{what} is longer than 1023 bytes.", "The library cryptography encrypts no key with a longer one.")
    return passphrase


def new_rsa_key(fresh: Fresh) -> rsa.RSAPrivateKey:
    """A new key; takes a second or more of processor time."""
    return rsa_key(fresh, BITS)


def rsa_pair(key: rsa.RSAPrivateKey, passphrase: Sensitive, text: Sensitive | None = None) -> Pair:
    """The pair as the runner reads it. ``text``: the private key where it is written already; each encryption gives another text."""
    from cryptography.hazmat.primitives import serialization as s

    if text is None:
        lock = s.BestAvailableEncryption(passphrase.reveal().encode())
        pem = key.private_bytes(s.Encoding.PEM, s.PrivateFormat.TraditionalOpenSSL, lock)
        text = Sensitive(pem.decode())
    public = key.public_key().public_bytes(s.Encoding.PEM, s.PublicFormat.PKCS1).decode()
    return Pair(text, public, fingerprint(key.public_key()))


def read_rsa_key(text: Sensitive, passphrase: Sensitive, what: str) -> rsa.RSAPrivateKey:
    """The private key in TEXT, if the runner could read it, too."""
    check_rsa_text(text, what)
    key = opened_rsa_key(text, passphrase, what)
    if key is None:
        raise InvalidInput(
            f"{what} cannot be decrypted with its passphrase.", "Is it the passphrase of another key, or has the key been damaged?"
        )
    return key


def opened_rsa_key(text: Sensitive, passphrase: Sensitive, what: str) -> rsa.RSAPrivateKey | None:
    """The private key in a TEXT of the right format; None if the passphrase does not open it."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization as s
    from cryptography.hazmat.primitives.asymmetric import rsa

    try:
        # The search for primes would take a quarter of a second each time. The numbers of a damaged key do not fit together.
        key = s.load_pem_private_key(text.reveal().encode(), passphrase.reveal().encode(), unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise InvalidInput(f"{what} is not an RSA key.")
    if not _fits_together(key.private_numbers()):
        raise InvalidInput(f"{what} is damaged: its numbers do not fit together.")
    _check_bits(key.key_size, BITS, what)
    return key


def _fits_together(numbers: rsa.RSAPrivateNumbers) -> bool:
    """Whether what was encrypted with the public numbers can be decrypted with the private ones."""
    public = numbers.public_numbers
    exponents = [(numbers.p, numbers.dmp1), (numbers.q, numbers.dmq1)]
    halves = all((public.e * numbers.d) % (prime - 1) == 1 and numbers.d % (prime - 1) == half for prime, half in exponents)
    return halves and numbers.p * numbers.q == public.n and (numbers.q * numbers.iqmp) % numbers.p == 1


def check_rsa_text(text: Sensitive, what: str) -> None:
    """Raise with the reason, if TEXT is not a private key in the format that the runner reads."""
    pem = text.reveal()
    found = _BEGIN.search(pem)
    label = found[1] if found else ""
    if label == "RSA PRIVATE KEY":
        if "Proc-Type: 4,ENCRYPTED" not in pem:
            raise InvalidInput(f"{what} is not encrypted, and the runner refuses it so.", _TO_LEGACY)
        cipher = _DEK.search(pem)
        if not cipher or cipher[1] not in _CIPHERS:
            kind = cipher[1] if cipher else "an unknown cipher"
            raise InvalidInput(f"{what} is encrypted with {kind}.", f"{', '.join(_CIPHERS)} can be used. {_TO_LEGACY}")
        return
    reasons = {
        "": "is not PEM",
        "OPENSSH PRIVATE KEY": "is an OpenSSH private key, which the runner cannot read",
        "ENCRYPTED PRIVATE KEY": "is encrypted as PKCS#8, which the runner cannot read",
        "PRIVATE KEY": "is PKCS#8 and not encrypted, and the runner reads neither",
    }
    reason = reasons.get(label, f"is a {label}, not an RSA PRIVATE KEY")
    raise InvalidInput(f"{what} {reason}.", _TO_LEGACY if "PRIVATE" in label else "")


def check_rsa_public(text: str, key: rsa.RSAPrivateKey, what: str) -> None:
    """Raise if TEXT is not the public key of KEY, in the format that clients get."""
    if read_rsa_public(text, what, bits=BITS).public_numbers() != key.public_key().public_numbers():
        raise InvalidInput(f"{what} does not belong to the private key.", "Leave it out: it is derived.")


def read_rsa_public(text: str, what: str, *, bits: int = REPORT_BITS) -> rsa.RSAPublicKey:
    """The RSA public key in TEXT, if runner and client could read it, too."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization as s
    from cryptography.hazmat.primitives.asymmetric import rsa

    refuse_private(text, what)
    if not text.startswith("-----BEGIN RSA PUBLIC KEY-----"):
        raise InvalidInput(f"{what} does not begin with -----BEGIN RSA PUBLIC KEY-----, as it must.", _TO_PKCS1)
    try:
        key = s.load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, rsa.RSAPublicKey):
        raise InvalidInput(f"{what} cannot be read as an RSA public key.", _TO_PKCS1)
    _check_bits(key.key_size, bits, what)
    return key


def _check_bits(bits: int, least: int, what: str) -> None:
    if bits < least:
        raise InvalidInput(f"{what} has {bits} bits, {least} are needed.", "ssh-keygen -t rsa -b 4096 makes such a key.")


# Keys that sign requests


def new_signing_pair(fresh: Fresh) -> Pair:
    """A new Ed25519 key as the client reads it: OpenSSH's format, without passphrase."""
    return _signing_pair(ed25519_key(fresh), None)


def read_signing_pair(text: Sensitive, what: str) -> Pair:
    """The pair of the Ed25519 key in TEXT."""
    return _signing_pair(read_signing_key(text, what), text)


def read_signing_key(text: Sensitive, what: str) -> ed25519.Ed25519PrivateKey:
    """The Ed25519 key in TEXT, if the client could read it, too."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization as s
    from cryptography.hazmat.primitives.asymmetric import ed25519

    found = _BEGIN.search(text.reveal())
    if not found or found[1] != "OPENSSH PRIVATE KEY":
        kind = f"is a {found[1]}" if found else "is not PEM"
        raise InvalidInput(f"{what} {kind}, not an OPENSSH PRIVATE KEY.", "ssh-keygen -t ed25519 -N '' makes one.")
    try:
        key = s.load_ssh_private_key(text.reveal().encode(), None)
    except TypeError:
        raise InvalidInput(
            f"{what} has a passphrase, and the client cannot ask for one.", "ssh-keygen -p -N '' -f FILE takes it away."
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidInput(f"{what} cannot be read as an OpenSSH private key.") from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise InvalidInput(f"{what} is not an Ed25519 key.", "ssh-keygen -t ed25519 -N '' makes one.")
    return key


def _signing_pair(key: ed25519.Ed25519PrivateKey, text: Sensitive | None) -> Pair:
    from cryptography.hazmat.primitives import serialization as s

    if text is None:
        pem = key.private_bytes(s.Encoding.PEM, s.PrivateFormat.OpenSSH, s.NoEncryption())
        text = Sensitive(pem.decode())
    public = key.public_key().public_bytes(s.Encoding.OpenSSH, s.PublicFormat.OpenSSH).decode()
    return Pair(text, f"{public}\n", fingerprint(key.public_key()))


def read_ssh_public(text: str, what: str) -> ed25519.Ed25519PublicKey:
    """The Ed25519 public key in TEXT, if the runner could read it, too: it takes the first line of the file."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization as s
    from cryptography.hazmat.primitives.asymmetric import ed25519

    refuse_private(text, what)
    if not text.startswith("ssh-ed25519 "):
        raise InvalidInput(f"{what} does not begin with ssh-ed25519, as it must.", "It is the file FILE.pub of ssh-keygen.")
    if "\n" in text.strip():
        raise InvalidInput(f"{what} has several lines.", "A prefix has one key. Give another key a longer prefix.")
    try:
        key = s.load_ssh_public_key(text.strip().encode())
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise InvalidInput(f"{what} cannot be read as an Ed25519 public key.")
    return key


def refuse_private(text: str, what: str) -> None:
    """Raise if a private key was given instead of a public one: all users who may read the Secret could read it."""
    if "PRIVATE KEY" in text:
        raise InvalidInput(f"{what} is a private key, a public one belongs here.", "Private keys stay with their owner.")


def check_prefix(prefix: str, what: str) -> None:
    """Raise if PREFIX cannot be a prefix of queue names: the runner reads each from a file of that name."""
    if len(prefix) < PREFIX_LENGTH:
        raise InvalidInput(
            f"{what}: the prefix '{prefix}' has {len(prefix)} characters, {PREFIX_LENGTH} are needed.",
            "The kind of the broker with its underscore, such as rmq_, holds for all of its queues.",
        )
    if prefix == PLACEHOLDER:
        raise InvalidInput(f"{what}: the prefix '{PLACEHOLDER}' is reserved.", "The runner ignores errors of that file.")
    if not _PREFIX.fullmatch(prefix) or prefix.startswith("."):
        raise InvalidInput(
            f"{what}: the prefix '{prefix}' cannot be the name of a file in a Secret that the runner reads.",
            "Letters, digits, '-', '_' and '.' can, but not a '.' at the beginning.",
        )

# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys of StudioML: the formats that runner and client read, judged by others than the library that wrote them."""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import typing as t
from itertools import count
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization as s
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._kube.made_once import to_be_dropped
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import keys

pytestmark = pytest.mark.usefixtures("small_keys")
PHRASE = Sensitive("correct horse")
SMALL = rsa.generate_private_key(65537, 2048)
"""Quick to make; tests of formats lower the bits that are needed."""
ED25519 = ed25519.Ed25519PrivateKey.generate()


def private(form: s.PrivateFormat, phrase: str = "", key: t.Any = SMALL) -> Sensitive:
    lock = s.BestAvailableEncryption(phrase.encode()) if phrase else s.NoEncryption()
    return Sensitive(key.private_bytes(s.Encoding.PEM, form, lock).decode())


def public(form: s.PublicFormat, key: t.Any = SMALL) -> str:
    encoding = s.Encoding.OpenSSH if form is s.PublicFormat.OpenSSH else s.Encoding.PEM
    return t.cast("str", key.public_key().public_bytes(encoding, form).decode())


def opened_as_go_does(pem: str, phrase: str) -> list[int]:
    """The numbers of the key, read as RFC 1421 and x509.DecryptPEMBlock say: the key is MD5 of passphrase and first half of the IV."""
    head, body = re.fullmatch(
        r"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: (\S+)\n\n(.*)\n-----END RSA PRIVATE KEY-----\n", pem, re.DOTALL
    ).groups()  # type: ignore[union-attr]
    cipher, iv = head.split(",")
    assert cipher == "AES-256-CBC"
    start, derived = bytes.fromhex(iv), b""
    while len(derived) < 32:
        derived += hashlib.md5(derived[-16:] + phrase.encode() + start[:8]).digest()  # noqa: S324 -- the format has it
    decryptor = Cipher(algorithms.AES(derived[:32]), modes.CBC(start)).decryptor()
    padded = decryptor.update(base64.b64decode(body)) + decryptor.finalize()
    assert set(padded[-padded[-1] :]) == {padded[-1]}
    return integers(padded[: -padded[-1]])


def integers(der: bytes) -> list[int]:
    """The numbers of a DER sequence of integers."""

    def value(at: int) -> tuple[int, int]:
        length, at = der[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            length, at = int.from_bytes(der[at : at + size], "big"), at + size
        return at, at + length

    assert der[0] == 0x30
    position, end = value(0)
    found = []
    while position < end:
        assert der[position] == 0x02
        begin, position = value(position)
        found.append(int.from_bytes(der[begin:position], "big"))
    return found


def test_the_private_key_is_what_go_decrypts() -> None:
    pair = keys.rsa_pair(SMALL, PHRASE)
    version, modulus, exponent, secret, *_rest = opened_as_go_does(pair.private.reveal(), "correct horse")
    numbers = SMALL.private_numbers()
    assert (version, modulus, exponent, secret) == (0, numbers.public_numbers.n, 65537, numbers.d)
    body = "".join(pair.public.splitlines()[1:-1])
    assert pair.public.startswith("-----BEGIN RSA PUBLIC KEY-----\n")
    assert integers(base64.b64decode(body)) == [numbers.public_numbers.n, 65537]


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
def test_openssl_opens_a_new_key_of_4096_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    pair = keys.rsa_pair(keys.new_rsa_key(to_be_dropped()), PHRASE)
    shown = subprocess.run(
        ["openssl", "rsa", "-passin", "env:PHRASE", "-RSAPublicKey_out"],
        input=pair.private.reveal(), env={**os.environ, "PHRASE": "correct horse"}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert shown.stdout == pair.public
    assert keys.read_rsa_key(pair.private, PHRASE, "it").key_size == 4096


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="ssh-keygen is not installed")
def test_fingerprints_are_those_of_ssh_keygen() -> None:
    for key in (SMALL, ED25519):
        text = public(s.PublicFormat.OpenSSH, key)
        shown = subprocess.run(["ssh-keygen", "-l", "-f", "/dev/stdin"], input=text, check=True, capture_output=True, text=True)
        assert keys.fingerprint(key.public_key()) == shown.stdout.split()[1]


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
@pytest.mark.parametrize("cipher", ["aes128", "des3"])  # aes128: the steps of the runner's document
def test_other_ciphers_that_go_knows_are_read_too(cipher: str) -> None:
    plain = private(s.PrivateFormat.TraditionalOpenSSL).reveal()
    written = subprocess.run(
        ["openssl", "rsa", "-traditional", f"-{cipher}", "-passout", "env:PHRASE"],
        input=plain, env={**os.environ, "PHRASE": "correct horse"}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert "DEK-Info" in written.stdout
    assert keys.read_rsa_key(Sensitive(written.stdout), PHRASE, "it").private_numbers() == SMALL.private_numbers()


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="ssh-keygen is not installed")
def test_keys_that_the_steps_of_the_runners_document_make_are_read(tmp_path: Path) -> None:
    """With fewer bits, to be quick. In between it is an OpenSSH private key, which the document's last step rewrites."""
    file = tmp_path / "studioml_request"
    phrase = ["-N", "correct horse"]
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-f", str(file), *phrase], check=True)
    with pytest.raises(InvalidInput, match="is an OpenSSH private key"):
        keys.read_rsa_key(Sensitive(file.read_text()), PHRASE, "it")
    exported = ["ssh-keygen", "-f", f"{file}.pub", "-e", "-m", "PEM"]
    public_pem = subprocess.run(exported, check=True, capture_output=True, text=True).stdout
    subprocess.run(["ssh-keygen", "-q", "-f", str(file), "-m", "PEM", "-p", "-P", "correct horse", *phrase], check=True,
                   capture_output=True)  # fmt: skip
    key = keys.read_rsa_key(Sensitive(file.read_text()), PHRASE, "it")
    keys.check_rsa_public(public_pem, key, "public_key")


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="ssh-keygen is not installed")
def test_ssh_keygen_reads_a_new_signing_key(tmp_path: Path) -> None:
    pair, file = keys.new_signing_pair(to_be_dropped()), tmp_path / "key"
    file.touch(mode=0o600)
    file.write_text(pair.private.reveal())
    shown = subprocess.run(["ssh-keygen", "-y", "-f", str(file)], check=True, capture_output=True, text=True)
    assert shown.stdout == pair.public


LEGACY = private(s.PrivateFormat.TraditionalOpenSSL, "correct horse").reveal()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is not PEM"),
        ("ssh-rsa AAAA", "is not PEM"),
        (private(s.PrivateFormat.OpenSSH).reveal(), "is an OpenSSH private key.*ssh-keygen -p -m PEM"),
        (private(s.PrivateFormat.TraditionalOpenSSL).reveal(), "is not encrypted"),
        (private(s.PrivateFormat.PKCS8).reveal(), "is PKCS#8 and not encrypted"),
        (private(s.PrivateFormat.PKCS8, "correct horse").reveal(), "is encrypted as PKCS#8"),
        (public(s.PublicFormat.PKCS1), "is a RSA PUBLIC KEY, not an RSA PRIVATE KEY"),
        (LEGACY.replace("AES-256-CBC", "CAMELLIA-256-CBC"), "is encrypted with CAMELLIA-256-CBC"),
        (LEGACY.replace("Proc-Type: 4,ENCRYPTED\n", ""), "is not encrypted"),
        (LEGACY[:400] + LEGACY[440:], "cannot be decrypted"),
    ],
    ids=count(),
)
def test_a_private_key_that_the_runner_cannot_read_is_refused_with_the_reason(text: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=f"(?s)^key {told}") as refused:
        keys.read_rsa_key(Sensitive(text), PHRASE, "key")
    assert "correct horse" not in str(refused.value)
    assert not set(text.splitlines()[4:-1]) & set(str(refused.value).split())


@pytest.mark.parametrize("number", ["d", "dmp1", "dmq1", "iqmp"])
def test_a_private_key_with_a_changed_number_is_damaged(number: str) -> None:
    numbers = SMALL.private_numbers()
    changed = {**{name: getattr(numbers, name) for name in ("p", "q", "d", "dmp1", "dmq1", "iqmp")}, number: getattr(numbers, number) + 2}
    key = rsa.RSAPrivateNumbers(**changed, public_numbers=numbers.public_numbers).private_key(unsafe_skip_rsa_key_validation=True)
    with pytest.raises(InvalidInput, match=r"^key is damaged: its numbers do not fit together"):
        keys.read_rsa_key(private(s.PrivateFormat.TraditionalOpenSSL, "correct horse", key), PHRASE, "key")


def test_a_wrong_passphrase_and_too_few_bits_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="cannot be decrypted with its passphrase"):
        keys.read_rsa_key(Sensitive(LEGACY), Sensitive("correct horse\n"), "key")
    monkeypatch.setattr(keys, "BITS", 4096)
    with pytest.raises(InvalidInput, match="has 2048 bits, 4096 are needed"):
        keys.read_rsa_key(Sensitive(LEGACY), PHRASE, "key")


@pytest.mark.parametrize(
    ("phrase", "told"),
    [
        ("", "is empty"),
        ("a\n", "line break"),
        ("a\r", "line break"),
        ("a\0b", "be printed"),
        ("\udc80", "be printed"),
        ("a" * 1024, "1023 bytes"),
    ],
)
def test_a_passphrase_that_the_runner_would_read_otherwise_is_refused(phrase: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        keys.check_passphrase(Sensitive(phrase), "passphrase")


def test_a_new_passphrase_is_long_and_plain() -> None:
    made = [to_be_dropped().text(32).reveal() for _try in range(3)]
    assert len(set(made)) == 3
    assert all(re.fullmatch(r"[-_A-Za-z0-9]{43}", phrase) for phrase in made)


OTHER = rsa.generate_private_key(65537, 2048)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (public(s.PublicFormat.PKCS1, OTHER), "does not belong to the private key"),
        (public(s.PublicFormat.SubjectPublicKeyInfo), "does not begin with -----BEGIN RSA PUBLIC KEY-----"),
        (public(s.PublicFormat.OpenSSH), "does not begin with"),
        (LEGACY, "is a private key, a public one belongs here"),
        ("-----BEGIN RSA PUBLIC KEY-----\nAAAA\n-----END RSA PUBLIC KEY-----\n", "cannot be read as an RSA public key"),
        ("", "does not begin with"),
    ],
    ids=count(),
)
def test_a_public_key_that_nobody_can_use_is_refused(text: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        keys.check_rsa_public(text, SMALL, "public_key")


def test_a_signing_key_is_openssh_without_a_passphrase() -> None:
    pair = keys.new_signing_pair(to_be_dropped())
    assert pair.private.reveal().startswith("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    assert re.fullmatch(r"ssh-ed25519 [A-Za-z0-9+/]{68}\n", pair.public)
    assert keys.read_signing_pair(pair.private, "it") == pair
    assert keys.fingerprint(keys.read_ssh_public(f"{pair.public.strip()} me@here", "it")) == pair.fingerprint


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (private(s.PrivateFormat.PKCS8, key=ED25519), "is a PRIVATE KEY, not an OPENSSH PRIVATE KEY"),
        (private(s.PrivateFormat.OpenSSH), "is not an Ed25519 key"),
        (private(s.PrivateFormat.OpenSSH, key=ec.generate_private_key(ec.SECP256R1())), "is not an Ed25519 key"),
        (Sensitive("ssh-ed25519 AAAA"), "is not PEM"),
        (Sensitive("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n"), "cannot be read"),
    ],
    ids=count(),
)
def test_a_signing_key_that_the_client_cannot_read_is_refused(text: Sensitive, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        keys.read_signing_pair(text, "private_key")


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="ssh-keygen is not installed")
def test_a_signing_key_with_a_passphrase_is_refused(tmp_path: Path) -> None:
    made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "correct horse", "-f", str(tmp_path / "key")]
    subprocess.run(made, check=True)
    with pytest.raises(InvalidInput, match="has a passphrase, and the client cannot ask for one"):
        keys.read_signing_pair(Sensitive((tmp_path / "key").read_text()), "private_key")


LINE = public(s.PublicFormat.OpenSSH, ED25519)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (public(s.PublicFormat.OpenSSH), "does not begin with ssh-ed25519"),
        (f" {LINE}", "does not begin with ssh-ed25519"),
        (f"{LINE}\n{LINE}", "has several lines"),
        ("ssh-ed25519 AAAA me@here", "cannot be read"),
        (private(s.PrivateFormat.OpenSSH, key=ED25519).reveal(), "is a private key"),
    ],
    ids=count(),
)
def test_a_signature_key_that_the_runner_cannot_read_is_refused(text: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        keys.read_ssh_public(text, "public_keys.rmq_")


@pytest.mark.parametrize(
    ("prefix", "told"),
    [
        ("rmq", "has 3 characters, 4 are needed"),
        ("", "has 0 characters"),
        ("info", "is reserved"),
        (".rmq_", "cannot be the name of a file"),
        ("rmq/cpu", "cannot be the name of a file"),
        ("rmq cpu", "cannot be the name of a file"),
    ],
)
def test_a_prefix_that_the_runner_would_not_find_is_refused(prefix: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        keys.check_prefix(prefix, "public_keys")


def test_a_prefix_of_four_characters_is_enough() -> None:
    keys.check_prefix("rmq_", "public_keys")

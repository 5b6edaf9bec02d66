# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates: strict clients take them, an authority is renewed and never replaced, and what is damaged is told."""

import base64
import datetime as dt
import ssl
import typing as t
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._kube import certificates
from ansible_collections.muster.ml.plugins.module_utils._kube.certificates import Leaf, files, secrets
from ansible_collections.muster.ml.plugins.module_utils._kube.made_once import MadeOnce
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock, FakeCluster

SERVER = Leaf("server", "etcd", ("127.0.0.1", "localhost", "*.etcd-peers"))
CLIENT = Leaf("client", "etcd-client")
LEAVES = [SERVER, CLIENT]


def old_authority(folder: Path) -> None:
    """As Muster 0.2.0 made it: no keyUsage, and nothing in what it signed that names its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "etcd-ca")])
    certificate = signed_as_before(name, key, name, key, 3650, x509.BasicConstraints(ca=True, path_length=0))
    put(folder, "ca", certificate, key)


def old_leaf(folder: Path, leaf: Leaf) -> None:
    authority = x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes())
    signer = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, leaf.common_name)])
    constraint = x509.BasicConstraints(ca=False, path_length=None)
    more = [x509.SubjectAlternativeName([certificates._name(host) for host in leaf.hosts])] if leaf.hosts else []
    put(folder, leaf.secret, signed_as_before(name, key, authority.subject, signer, 397, constraint, *more), key)


def signed_as_before(
    name: x509.Name, key: t.Any, issuer: x509.Name, signer: t.Any, days: int, *extensions: x509.ExtensionType
) -> x509.Certificate:
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder(
        issuer, name, key.public_key(), x509.random_serial_number(), now - dt.timedelta(days=1), now + dt.timedelta(days)
    ).add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
    return builder.sign(signer, hashes.SHA256())


def put(folder: Path, name: str, certificate: x509.Certificate, key: t.Any) -> None:
    kinds = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(key.private_bytes(*kinds))


def make(folder: Path, **options: t.Any) -> list[str]:
    return files(folder, "ca", "etcd-ca", LEAVES, **{"check": False, "clock": FakeClock(), **options})


def read(folder: Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes())


def extension(certificate: x509.Certificate, kind: type[t.Any]) -> t.Any:
    return certificate.extensions.get_extension_for_class(kind)


def meet(trusted: Path, server: Path, client: Path) -> str:
    """A handshake of both sides as Python 3.13 has it, both with a certificate; "ok" or why not."""
    sides = []
    for purpose, own, name in ((ssl.Purpose.SERVER_AUTH, client, "client"), (ssl.Purpose.CLIENT_AUTH, server, "server")):
        context = ssl.create_default_context(purpose, cafile=str(trusted))
        context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(own / f"{name}.crt", own / f"{name}.key")
        sides.append(context)
    bios = [ssl.MemoryBIO() for _number in range(4)]
    ends = [sides[0].wrap_bio(bios[0], bios[1], server_hostname="127.0.0.1"), sides[1].wrap_bio(bios[1], bios[0], server_side=True)]
    try:
        for _round in range(5):
            for end in ends:
                try:
                    end.do_handshake()
                except ssl.SSLWantReadError:
                    continue
    except ssl.SSLError as exc:
        return str(exc)
    return "ok"


def test_strict_clients_and_servers_take_them(tmp_path: Path) -> None:
    make(tmp_path)
    assert meet(tmp_path / "ca.crt", tmp_path, tmp_path) == "ok"


def test_they_say_what_they_are_for(tmp_path: Path) -> None:
    make(tmp_path)
    authority, server, client = (read(tmp_path, name) for name in ("ca", "server", "client"))
    usage = extension(authority, x509.KeyUsage)
    assert (usage.critical, usage.value.key_cert_sign, usage.value.digital_signature) == (True, True, False)
    key = extension(authority, x509.SubjectKeyIdentifier).value.digest
    for leaf in (server, client):
        usage = extension(leaf, x509.KeyUsage)
        assert (usage.critical, usage.value.key_cert_sign, usage.value.digital_signature) == (True, False, True)
        assert extension(leaf, x509.AuthorityKeyIdentifier).value.key_identifier == key
        assert not extension(leaf, x509.BasicConstraints).value.ca
    assert list(extension(server, x509.ExtendedKeyUsage).value) == [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
    assert list(extension(client, x509.ExtendedKeyUsage).value) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_those_of_an_older_muster_are_renewed_with_the_authoritys_key(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old, new):
        folder.mkdir()
    old_authority(old)
    for leaf in LEAVES:
        old_leaf(old, leaf)
    for path in old.iterdir():
        (new / path.name).write_bytes(path.read_bytes())
    assert meet(old / "ca.crt", old, old) != "ok"
    assert make(new) == ["ca", "server", "client"]
    assert meet(new / "ca.crt", new, new) == "ok"
    assert make(new) == []
    assert (new / "ca.key").read_bytes() == (old / "ca.key").read_bytes()
    # Members and clients do not change at one moment: whoever has the old ones goes on with whoever has the new ones.
    for trusted, leaf in ((old, new), (new, old)):
        authority = read(trusted, "ca")
        for name in ("server", "client"):
            read(leaf, name).verify_directly_issued_by(authority)


@pytest.mark.parametrize("days", [59, 0])
def test_an_authority_that_ends_soon_or_has_ended_is_renewed_and_stays_the_same(
    days: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "_AUTHORITY_DAYS", days)
    make(tmp_path)
    key = read(tmp_path, "ca").public_key()
    monkeypatch.undo()
    assert make(tmp_path) == ["ca"]
    assert read(tmp_path, "ca").public_key() == key
    assert read(tmp_path, "ca").not_valid_after_utc > dt.datetime.now(dt.UTC) + dt.timedelta(days=3600)
    assert meet(tmp_path / "ca.crt", tmp_path, tmp_path) == "ok"


def foreign(folder: Path) -> None:
    """The key of another authority."""
    other = folder / "other"
    other.mkdir()
    old_authority(other)
    (folder / "ca.key").write_bytes((other / "ca.key").read_bytes())


DAMAGED: dict[str, tuple[t.Callable[[Path], t.Any], str]] = {
    "no certificate in it": (lambda folder: (folder / "ca.crt").write_text("hello"), "its certificate is missing or is not"),
    "an empty key": (lambda folder: (folder / "ca.key").write_text(""), "its key is missing"),
    "half a key": (lambda folder: (folder / "ca.key").write_bytes((folder / "ca.key").read_bytes()[:90]), "its key is missing"),
    "the key of another": (foreign, "its key does not belong to its certificate"),
    "a leaf's certificate": (
        lambda folder: [(folder / f"ca.{e}").write_bytes((folder / f"client.{e}").read_bytes()) for e in ("crt", "key")],
        "its certificate is not that of an authority",
    ),
}


@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_authority_is_told_and_not_replaced(how: str, tmp_path: Path) -> None:
    make(tmp_path)
    key = (tmp_path / "ca.key").read_text().splitlines()[1]
    damage, told = DAMAGED[how]
    damage(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    with pytest.raises(Failed, match=f"{tmp_path}/ca .*{told}.*Put back a copy of it") as caught:
        make(tmp_path)
    assert key not in str(caught.value)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


@pytest.mark.parametrize("lost", [("ca.crt",), ("ca.key",), ("ca.crt", "ca.key")])
def test_a_lost_authority_is_told_while_something_is_there_that_it_signed(lost: tuple[str, ...], tmp_path: Path) -> None:
    make(tmp_path)
    for name in lost:
        (tmp_path / name).unlink()
    with pytest.raises(Failed, match=r"does not exist, but certificates that it signed do: .*server, client \(.crt and .key\)"):
        make(tmp_path)
    assert sorted(path.name for path in tmp_path.glob("ca.*")) == sorted({"ca.crt", "ca.key"} - set(lost))


@pytest.mark.parametrize("written", range(6))
def test_a_run_that_is_cut_off_between_two_files_is_finished_by_the_next(written: int, tmp_path: Path) -> None:
    make(tmp_path / "whole")
    order = [f"{name}.{end}" for name in ("ca", "server", "client") for end in ("key", "crt")]
    (tmp_path / "cut").mkdir()
    for name in order[:written]:
        (tmp_path / "cut" / name).write_bytes((tmp_path / "whole" / name).read_bytes())
    make(tmp_path / "cut")
    assert meet(tmp_path / "cut" / "ca.crt", tmp_path / "cut", tmp_path / "cut") == "ok"
    if written >= 2:
        assert (tmp_path / "cut" / "ca.key").read_bytes() == (tmp_path / "whole" / "ca.key").read_bytes()


def test_a_certificate_whose_key_is_another_ones_is_made_anew(tmp_path: Path) -> None:
    make(tmp_path)
    make(tmp_path / "other")
    (tmp_path / "server.key").write_bytes((tmp_path / "other" / "server.key").read_bytes())
    assert make(tmp_path) == ["server"]
    assert meet(tmp_path / "ca.crt", tmp_path, tmp_path) == "ok"


def test_hosts_that_trust_another_authority_are_told_before_anything_is_made(tmp_path: Path) -> None:
    make(tmp_path / "lost")
    trusted = {"etcd-a": (tmp_path / "lost" / "ca.crt").read_text()}
    with pytest.raises(Failed, match=r"etcd-a trusts another certificate authority than .*/here/ca"):
        make(tmp_path / "here", trusted=trusted)
    assert not (tmp_path / "here").exists()
    assert make(tmp_path / "lost", trusted=trusted) == []


def test_hosts_with_the_old_certificate_of_the_same_authority_trust_the_renewed_one(tmp_path: Path) -> None:
    old_authority(tmp_path)
    trusted = {"etcd-a": (tmp_path / "ca.crt").read_text()}
    assert "ca" in make(tmp_path, trusted=trusted)
    assert make(tmp_path, trusted=trusted) == []


# The same in Secrets.


def made(cluster: FakeCluster, *, in_use: bool = True) -> dict[str, Manifest]:
    desired = secrets(MadeOnce(cluster), "ml", "ca", LEAVES, {"a": "b"}, in_use=in_use)
    for secret in desired:
        cluster.add(secret)
    return {secret["metadata"]["name"]: secret for secret in desired}


def keep(cluster: FakeCluster, secret: Manifest, **data: t.Any) -> None:
    kept = {key: value for key, value in {**secret["data"], **data}.items() if value is not None}
    cluster.add({**secret, "data": kept})


def text(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"tls.key": None}, "its key is missing"),
        ({"tls.crt": None}, "its certificate is missing"),
        ({"tls.key": "!"}, "its data are not base64"),
        ({"tls.key": text("no key")}, "its key is missing, has a password, or is not PEM"),
        ({"tls.crt": text("no certificate")}, "its certificate is missing or is not PEM"),
    ],
)
@pytest.mark.parametrize("in_use", [True, False])
def test_a_damaged_secret_of_the_authority_is_named(in_use: bool, data: dict[str, t.Any], told: str) -> None:
    cluster = FakeCluster()
    keep(cluster, made(cluster)["ca"], **data)
    with pytest.raises(Failed, match=f"Secret ml/ca holds no authority that can be used: {told}.*delete Secret ml/ca, ml/server"):
        made(cluster, in_use=in_use)


def test_a_lost_secret_of_the_authority_is_named_while_members_use_what_it_signed() -> None:
    cluster = FakeCluster()
    first = made(cluster)
    cluster.remove(Ref("v1", "Secret", "ca", "ml"))
    with pytest.raises(Failed, match="Secret ml/ca does not exist, but certificates that it signed do: Secret ml/server, ml/client"):
        made(cluster)
    # Of a run that was cut off, or of members that are gone, nobody needs it.
    second = made(cluster, in_use=False)
    assert all(second[name]["data"] != first[name]["data"] for name in first)


def test_values_that_must_not_be_printed_are_read() -> None:
    cluster = FakeCluster()
    first = made(cluster)
    for secret in first.values():
        cluster.add({**secret, "data": {key: Sensitive(value) for key, value in secret["data"].items()}})
    assert {name: secret["data"] for name, secret in made(cluster).items()} == {name: secret["data"] for name, secret in first.items()}

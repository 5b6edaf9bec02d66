# SPDX-License-Identifier: GPL-3.0-or-later
"""Which certificates are trusted, and what is told of those that are not. The chains are made by hand."""

from __future__ import annotations

import pathlib
import ssl
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._kube import proxy, tls
from ansible_collections.muster.ml.plugins.module_utils._kube.credentials import RequestAuth
from ansible_collections.muster.ml.plugins.module_utils._kube.kubeconfig import Connection
from ansible_collections.muster.ml.tests.unit.fakes import certificates
from ansible_collections.muster.ml.tests.unit.fakes.certificates import Signed

HOST = "10.0.0.1"


def signed(name: str, by: Signed | None = None, *, ca: bool = False, host: str = HOST, days: int = 1) -> Signed:
    return certificates.signed(name, by, ca=ca, host="" if ca else host, days=days)


ROOT = signed("root", ca=True)
MIDDLE = signed("middle", ROOT, ca=True)
SERVER = signed("server", ROOT)


def handshake(connection: Connection, server: Signed, folder: pathlib.Path, *, more: str = "") -> None:
    """Client and server in one thread, without a network."""
    path = folder / "server.pem"
    path.write_text(server.pem + more + server.key_pem())
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(path)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    name = connection.tls_server_name or HOST
    client = tls.context_for(connection, RequestAuth()).wrap_bio(to_client, to_server, server_hostname=name)
    other = theirs.wrap_bio(to_server, to_client, server_side=True)
    for end in (client, other, client, other):
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue


def connection(ca: str | None = ROOT.pem, **more: t.Any) -> Connection:
    return Connection(server=f"https://{HOST}", source="/x/kubeconfig", ca=ca, **more)


@pytest.fixture
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default of Python 3.13, on every Python."""
    original = ssl.create_default_context

    def strict(**options: t.Any) -> ssl.SSLContext:
        context = original(**options)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)


@pytest.mark.usefixtures("_strict")
def test_a_certificate_without_key_identifier_is_trusted_as_kubectl_trusts_it(tmp_path: pathlib.Path) -> None:
    handshake(connection(), SERVER, tmp_path)


def test_an_authority_that_is_not_the_root_is_trusted_as_kubectl_trusts_it(tmp_path: pathlib.Path) -> None:
    handshake(connection(MIDDLE.pem), signed("server", MIDDLE), tmp_path)


def test_a_bundle_with_remarks_in_other_languages(tmp_path: pathlib.Path) -> None:
    handshake(connection(f"# Autorité générale\n{MIDDLE.pem}\n# 根\n{ROOT.pem}"), SERVER, tmp_path)


@pytest.mark.parametrize(
    ("server", "given", "told"),
    [
        (signed("server", ROOT, days=-1), connection(), "Renew the certificate"),
        (signed("server", ROOT, host="10.9.9.9"), connection(), "is for other names"),
        (SERVER, connection(tls_server_name="kubernetes"), "is for other names"),
        (signed("server", signed("other", ca=True)), connection(), "in /x/kubeconfig belongs to another cluster"),
        (signed("server"), connection(), "in /x/kubeconfig belongs to another cluster"),
        (SERVER, connection(None), "/x/kubeconfig names no certificate authority"),
        (signed("server", signed("leaf", ROOT)), connection(), "belongs to another cluster"),
    ],
    ids=["expired", "other address", "other server name", "other authority", "self-signed", "no authority", "no issuer"],
)
def test_a_certificate_that_is_refused_is_blamed_for_the_right_reason(
    server: Signed, given: Connection, told: str, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(ssl.SSLCertVerificationError) as caught:
        handshake(given, server, tmp_path)
    assert told in tls.reason_and_hint(caught.value, given)[1]


def test_a_chain_that_is_not_in_order_is_no_other_cluster(tmp_path: pathlib.Path) -> None:
    leaf = signed("leaf", ROOT)
    with pytest.raises(ssl.SSLCertVerificationError) as caught:
        handshake(connection(), signed("server", leaf), tmp_path, more=leaf.pem)
    _reason, hint = tls.reason_and_hint(caught.value, connection())
    assert hint == "The certificate itself, or that of its authority, is not in order."


def test_a_proxy_may_be_what_opens_the_connection(tmp_path: pathlib.Path) -> None:
    given = connection(proxy=proxy.parse("http://u:s3cr3t@p:1", "option proxy"))
    with pytest.raises(ssl.SSLCertVerificationError) as caught:
        handshake(given, signed("server"), tmp_path)
    _reason, hint = tls.reason_and_hint(caught.value, given)
    assert "Or the proxy http://p:1 (option proxy) opens the connection." in hint


def test_where_nothing_is_verified_nothing_is_refused(tmp_path: pathlib.Path) -> None:
    handshake(connection(None, verify=False), signed("server", host="10.9.9.9", days=-1), tmp_path)


@pytest.mark.parametrize("ca", ["", "nonsense", "-----BEGIN CERTIFICATE-----\nxyz\n-----END CERTIFICATE-----\n"])
def test_an_authority_that_is_none_is_not_the_system_s(ca: str) -> None:
    with pytest.raises(InvalidInput, match=r"in /x/kubeconfig is not a PEM certificate"):
        tls.context_for(connection(ca), RequestAuth())


@pytest.mark.parametrize(
    ("cert", "key", "told"),
    [
        (SERVER.pem, None, "has no key"),
        (SERVER.pem, ROOT.key_pem(), "do not match"),
        ("nonsense", SERVER.key_pem(), "do not match"),
        (SERVER.pem, SERVER.key_pem(b"s3cr3t"), "is encrypted with a pass phrase"),
    ],
    ids=["no key", "another key", "no certificate", "encrypted"],
)
def test_a_client_certificate_that_cannot_be_used(cert: str, key: str | None, told: str) -> None:
    given = connection(client_cert=cert, client_key=Sensitive(key) if key else None)
    with pytest.raises(InvalidInput, match=told) as caught:
        tls.context_for(given, RequestAuth())
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_a_client_certificate_and_its_key_leave_no_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    tls.context_for(connection(), RequestAuth(None, SERVER.pem, Sensitive(SERVER.key_pem())))
    assert list(tmp_path.iterdir()) == []

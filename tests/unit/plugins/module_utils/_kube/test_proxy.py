# SPDX-License-Identifier: GPL-3.0-or-later
"""Which proxy leads to an API server, and the way through it. The cases are those that the real kubectl was held to."""

import base64
import contextlib
import socket
import socketserver
import threading
import typing as t

import pytest
from differential.proxies import CASES, Case

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, Unreachable
from ansible_collections.muster.ml.plugins.module_utils._core.pace import Limits
from ansible_collections.muster.ml.plugins.module_utils._kube import kubeconfig, proxy
from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster, Transport
from ansible_collections.muster.ml.plugins.module_utils._kube.kubeconfig import Connection
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock

POD = Ref("v1", "Pod", "p", "ml")
SHORT = Limits(connect=5, answer=5, first_contact=0.1, outage=0.1)
FOUND = b'{"metadata": {"name": "p"}}'


def loaded(server: str, env: dict[str, str], proxy_url: str = "") -> Connection:
    config = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": server, "proxy-url": proxy_url}}],
    }
    return kubeconfig.load({"kubeconfig": config}, env)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_proxy_is_the_one_that_kubectl_takes(case: Case) -> None:
    found = loaded(case.server, case.env, case.proxy_url).proxy
    assert (found.scheme if found else "") == case.through


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("proxy:8080", "http://proxy:8080 (a test)"),
        ("proxy", "http://proxy:80 (a test)"),
        ("http://user:pass@proxy", "http://proxy:80 (a test)"),
        ("socks5://proxy", "socks5://proxy:1080 (a test)"),
        ("SOCKS5H://proxy:1", "socks5h://proxy:1 (a test)"),
        ("http://[fd00::1]:3128/", "http://[fd00::1]:3128 (a test)"),
    ],
)
def test_where_a_proxy_is(text: str, shown: str) -> None:
    assert str(proxy.parse(text, "a test")) == shown


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("https://u:s3cr3t@proxy", "needs TLS"),
        ("foo://u:s3cr3t@proxy", "unknown scheme"),
        ("http://u:s3cr3t/x@proxy:1", "not a URL like"),
        ("http://u:s3cr3t@proxy:99999", "not a URL like"),
        ("http://u:s3cr3t@[proxy", "not a URL like"),
        ("u:s3cr3t@", "not a URL like"),
        ("http://u:s3cr3t @proxy", "not a URL like"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_refused_without_its_password(text: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=f"variable HTTPS_PROXY.*{told}") as caught:
        loaded("https://k8s.corp", {"HTTPS_PROXY": text})
    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


Talk = t.Callable[[t.BinaryIO, t.BinaryIO], None]


@contextlib.contextmanager
def listening(talk: Talk) -> t.Iterator[int]:
    """A proxy (and in one the server behind it) that talks as the test says."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                talk(t.cast(t.BinaryIO, self.rfile), self.wfile)
                self.connection.shutdown(socket.SHUT_WR)
                self.rfile.read()  # what is closed with something unread is reset

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def lines_of(reader: t.BinaryIO) -> list[str]:
    """The lines of one head."""
    found = []
    while line := reader.readline().decode().rstrip("\r\n"):
        found.append(line)
    return found


def answered(writer: t.BinaryIO) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(FOUND), FOUND))


def through(text: str, host: str = "k8s.corp", port: int = 6443) -> socket.socket:
    return proxy.parse(text, "a test").connect(host, port, 5)


@pytest.mark.parametrize(
    ("host", "line"),
    [
        ("k8s.corp", "CONNECT k8s.corp:6443 HTTP/1.1"),
        ("fd00::1", "CONNECT [fd00::1]:6443 HTTP/1.1"),
        ("köln.example", "CONNECT xn--kln-sna.example:6443 HTTP/1.1"),
    ],
)
def test_a_tunnel_through_an_http_proxy(host: str, line: str) -> None:
    seen: list[str] = []

    def talk(reader: t.BinaryIO, writer: t.BinaryIO) -> None:
        seen.extend(lines_of(reader))
        writer.write(b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\nhello")

    with listening(talk) as port, through(f"http://user%40x:p%3Aw@127.0.0.1:{port}", host) as sock:
        assert sock.makefile("rb").read(5) == b"hello"
    assert seen[0] == line
    assert "Proxy-Authorization: Basic " + base64.b64encode(b"user@x:p:w").decode() in seen


def socks(answer: bytes, seen: list[bytes]) -> Talk:
    """A SOCKS5 proxy that wants a password where it is offered, then says the answer."""

    def talk(reader: t.BinaryIO, writer: t.BinaryIO) -> None:
        _version, count = reader.read(2)
        method = 2 if 2 in reader.read(count) else 0
        writer.write(bytes([5, method]))
        if method:
            reader.read(1)
            seen.extend(reader.read(reader.read(1)[0]) for _part in range(2))
            writer.write(b"\x01\x00")
        reader.read(3)
        kind = reader.read(1)[0]
        length = {1: 4, 4: 16}.get(kind) or reader.read(1)[0]
        seen.append(reader.read(length) + reader.read(2))
        writer.write(answer + b"hello")

    return talk


@pytest.mark.parametrize(
    ("host", "sent"), [("k8s.corp", b"k8s.corp"), ("192.0.2.1", b"\xc0\x00\x02\x01"), ("fd00::1", b"\xfd" + b"\x00" * 14 + b"\x01")]
)
@pytest.mark.parametrize("bound", [b"\x01\x00\x00\x00\x00\x00\x50", b"\x03\x02ab\x00\x50"], ids=["address", "name"])
def test_a_way_through_a_socks_proxy(host: str, sent: bytes, bound: bytes) -> None:
    seen: list[bytes] = []
    talk = socks(b"\x05\x00\x00" + bound, seen)
    with listening(talk) as port, through(f"socks5://user:p%3Aw@127.0.0.1:{port}", host) as sock:
        assert sock.makefile("rb").read(5) == b"hello"
    assert seen == [b"user", b"p:w", sent + (6443).to_bytes(2)]


def says(answer: bytes) -> Talk:
    return lambda _reader, writer: writer.write(answer) and None


@pytest.mark.parametrize(
    ("scheme", "answer", "told"),
    [
        ("http", b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "says 'HTTP/1.1 407 Proxy Auth"),
        ("http", b"", "ended the connection"),
        ("http", b"\x05\x00", "ended the connection"),
        ("socks5", b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak SOCKS5"),
        ("socks5", b"\x05\xff", "requires another way to log in"),
        ("socks5", b"\x05\x02\x01\x01", "does not accept user and password"),
        ("socks5", b"\x05\x02\x01\x00\x05\x02\x00\x01", "says that its rules do not allow it"),
        ("socks5", b"\x05", "ended the connection"),
    ],
)
def test_a_proxy_that_lets_nobody_through_is_named(scheme: str, answer: bytes, told: str) -> None:
    with listening(says(answer)) as port:
        given = proxy.parse(f"{scheme}://user:s3cr3t@127.0.0.1:{port}", "option proxy")
        connection = Connection(server="https://k8s.corp:6443", source="a test", proxy=given)
        with pytest.raises(Unreachable) as caught:
            HttpCluster(Transport(connection, FakeClock(), SHORT)).get(POD)
    message = str(caught.value)
    assert told in message
    assert f"Check the address, and the proxy {scheme}://127.0.0.1:{port} (option proxy)" in message
    assert "s3cr3t" not in message


def test_a_server_without_tls_is_asked_for_by_its_whole_address() -> None:
    seen: list[str] = []

    def talk(reader: t.BinaryIO, writer: t.BinaryIO) -> None:
        seen.extend(lines_of(reader))
        answered(writer)

    with listening(talk) as port:
        given = proxy.parse(f"http://u:p@127.0.0.1:{port}", "a test")
        kube = HttpCluster(Transport(Connection(server="http://k8s.corp:8080/x", source="a test", proxy=given), FakeClock()))
        assert kube.get(POD) == {"metadata": {"name": "p"}}
    assert seen[0] == "GET http://k8s.corp:8080/x/api/v1/namespaces/ml/pods/p HTTP/1.1"
    assert "Host: k8s.corp:8080" in seen
    assert "Proxy-Authorization: Basic " + base64.b64encode(b"u:p").decode() in seen


def test_a_server_without_tls_behind_a_socks_proxy() -> None:
    seen: list[bytes] = []
    heads: list[str] = []
    begin = socks(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x50", seen)

    class Silent:
        """Leaves out the greeting that ``socks`` adds."""

        def __init__(self, writer: t.BinaryIO) -> None:
            self.writer = writer

        def write(self, data: bytes) -> int:
            return self.writer.write(data.removesuffix(b"hello"))

    def talk(reader: t.BinaryIO, writer: t.BinaryIO) -> None:
        begin(reader, t.cast(t.BinaryIO, Silent(writer)))
        heads.extend(lines_of(reader))
        answered(writer)

    with listening(talk) as port:
        given = proxy.parse(f"socks5://u:p@127.0.0.1:{port}", "a test")
        kube = HttpCluster(Transport(Connection(server="http://k8s.corp:8080", source="a test", proxy=given), FakeClock()))
        assert kube.get(POD) == {"metadata": {"name": "p"}}
    assert heads[0] == "GET /api/v1/namespaces/ml/pods/p HTTP/1.1"
    assert not [line for line in heads if line.startswith("Proxy-")]

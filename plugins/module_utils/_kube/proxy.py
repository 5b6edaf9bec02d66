# SPDX-License-Identifier: GPL-3.0-or-later
"""The choice of a proxy to an API server, and the connection through it.

The rules are those of kubectl, which are Go's (https://pkg.go.dev/golang.org/x/net/http/httpproxy). Python's own differ: it sends
loopback addresses through a proxy, and knows no networks in NO_PROXY.
"""

from __future__ import annotations

import base64
import dataclasses
import ipaddress
import re
import socket
import typing as t
import urllib.parse

from .._core.errors import InvalidInput
from .._core.sensitive import Sensitive

Address: t.TypeAlias = "ipaddress.IPv4Address | ipaddress.IPv6Address"

_PORTS = {"http": 80, "socks5": 1080, "socks5h": 1080}
_SERVER_PORTS = {"http": 80, "https": 443}
_LONGEST_ANSWER = 65536


@dataclasses.dataclass(frozen=True)
class Proxy:
    """The address of a proxy. ``source`` is for messages: the option, file or variable that names it."""

    scheme: str
    """http, socks5 or socks5h; the last two are the same here, as in Go: the proxy looks up names."""
    host: str
    port: int
    source: str
    login: Sensitive | None = None
    """User and password, each percent-decoded, with a colon between."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port} ({self.source})"

    @property
    def speaks_http(self) -> bool:
        return self.scheme == "http"

    @property
    def authorization(self) -> Sensitive | None:
        """The value of the header Proxy-Authorization."""
        if self.login is None:
            return None
        return Sensitive("Basic " + base64.b64encode(self.login.reveal().encode()).decode())

    def connect(self, host: str, port: int, timeout: float | None) -> socket.socket:
        """A connection to host and port that leads through this proxy."""
        sock = socket.create_connection((self.host, self.port), timeout)
        try:
            if self.speaks_http:
                _tunnel(sock, self, host, port)
            else:
                _socks(sock, self, host, port)
        except BaseException:
            sock.close()
            raise
        return sock


class ProxyError(OSError):
    """The proxy refused the connection."""


def parse(text: str, source: str) -> Proxy:
    """A proxy from its URL; without a scheme it is an HTTP proxy. The text is not shown, because it may hold a password."""
    whole = text if "://" in text else f"http://{text}"
    scheme = whole.partition("://")[0].lower()
    if scheme == "https":
        raise InvalidInput(f"The proxy of {source} needs TLS (https://), which Muster does not support.",
                           hint="Use its http:// port; the connection to the API server is encrypted all the same.")  # fmt: skip
    if scheme not in _PORTS:
        raise InvalidInput(f"The proxy of {source} has an unknown scheme.", hint="Known are http:// and socks5://.")
    try:
        url = urllib.parse.urlsplit(whole)
        host, port = url.hostname, url.port
    except ValueError:
        host = port = None  # raised below, not chained to one that may hold part of a password
    if not host or re.search(r"[\x00-\x20\x7f]", text):
        raise InvalidInput(
            f"The proxy of {source} is not a URL like http://name:3128. It is not shown here.",
            hint="Special characters in a password are percent-encoded.",
        )
    login = None
    if url.username is not None:
        pair = (urllib.parse.unquote(part or "") for part in (url.username, url.password))
        login = Sensitive(":".join(pair))
    return Proxy(scheme, host, port or _PORTS[scheme], source, login)


def from_environment(server: urllib.parse.SplitResult, env: t.Mapping[str, str]) -> Proxy | None:
    """The proxy for that server, or None if it is reached without one."""
    name, value = _first(env, f"{server.scheme.upper()}_PROXY")
    _name, exceptions = _first(env, "NO_PROXY")
    host, port = server.hostname or "", server.port or _SERVER_PORTS[server.scheme]
    if not value or not _proxied(host, str(port), exceptions):
        return None
    return parse(value, f"environment variable {name}")


def _first(env: t.Mapping[str, str], name: str) -> tuple[str, str]:
    """The variable in capitals, then in small letters, that is not empty."""
    for spelt in (name, name.lower()):
        if env.get(spelt):
            return spelt, env[spelt]
    return name, ""


def is_loopback(host: str) -> bool:
    """Whether the host is this machine."""
    address = _address(host)
    return host == "localhost" or bool(address and address.is_loopback)


def _proxied(host: str, port: str, exceptions: str) -> bool:
    address = _address(host)
    if is_loopback(host):
        return False
    return not any(_matches(entry.strip().lower(), host, port, address) for entry in exceptions.split(",") if entry.strip())


def _matches(entry: str, host: str, port: str, address: Address | None) -> bool:
    """Whether an entry of NO_PROXY matches the host."""
    if entry == "*":
        return True
    network = _network(entry)
    if network:
        return address in network if address else False
    name, its_port = _split(entry)
    if its_port and its_port != port:
        return False
    if found := _address(name):
        return found == address
    name = _ascii(name[1:] if name.startswith("*.") else name)
    return bool(name) and (host.endswith(name) if name.startswith(".") else f".{host}".endswith(f".{name}"))


def _split(entry: str) -> tuple[str, str]:
    """Host and port; the port may be empty. An IPv6 address has a port only after brackets."""
    found = re.fullmatch(r"\[(?P<six>[^\]]*)\]:(?P<sixport>[^:]*)|(?P<host>[^:\[\]]*):(?P<port>[^:]*)", entry)
    if not found:
        return entry, ""
    return found["six"] or found["host"] or "", found["sixport"] or found["port"] or ""


def _ascii(name: str) -> str:
    """The name as it is sent: other scripts in their ASCII form."""
    try:
        return name if name.isascii() else name.encode("idna").decode()
    except UnicodeError:
        return name


def _address(text: str) -> Address | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    if not re.search(r"/\d+$", text):
        return None
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _tunnel(sock: socket.socket, proxy: Proxy, host: str, port: int) -> None:
    """Ask an HTTP proxy for a connection (RFC 9110, section 9.3.6)."""
    name = _ascii(host)
    target = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}", "User-Agent: muster"]
    if proxy.authorization:
        lines.append(f"Proxy-Authorization: {proxy.authorization.reveal()}")
    sock.sendall("".join(f"{line}\r\n" for line in [*lines, ""]).encode())
    answer = b""
    # One byte at a time: after the empty line follow bytes of the server behind the proxy.
    while not answer.endswith(b"\r\n\r\n"):
        byte = sock.recv(1)
        if not byte or len(answer) > _LONGEST_ANSWER:
            raise ProxyError(f"the proxy {proxy} ended the connection")
        answer += byte
    status = answer.split(b"\r\n", 1)[0].decode("latin-1")
    if not re.fullmatch(r"HTTP/1\.\d 2\d\d\b.*", status):
        raise ProxyError(f"the proxy {proxy} says {status[:100]!r}")


_SOCKS_PROBLEMS = {
    1: "that it failed", 2: "that its rules do not allow it", 3: "that the network is unreachable",
    4: "that the host is unreachable", 5: "that the connection was refused", 6: "that the time ran out",
}  # fmt: skip


def _socks(sock: socket.socket, proxy: Proxy, host: str, port: int) -> None:
    """Ask a SOCKS proxy of version 5 for a connection (RFC 1928, with user and password by RFC 1929)."""
    methods = b"\x00\x02" if proxy.login else b"\x00"
    sock.sendall(bytes([5, len(methods)]) + methods)
    version, method = _exactly(sock, 2, proxy)
    if version != 5:
        raise ProxyError(f"the proxy {proxy} does not speak SOCKS5")
    if method == 2 and proxy.login:
        user, _colon, password = proxy.login.reveal().partition(":")
        sock.sendall(b"\x01" + _counted(user, proxy) + _counted(password, proxy))
        if _exactly(sock, 2, proxy)[1] != 0:
            raise ProxyError(f"the proxy {proxy} does not accept user and password")
    elif method != 0:
        raise ProxyError(f"the proxy {proxy} requires another way to log in")
    address = _address(host)
    kind = b"\x03" + _counted(_ascii(host), proxy) if address is None else bytes([1 if address.version == 4 else 4])
    sock.sendall(b"\x05\x01\x00" + kind + (address.packed if address else b"") + port.to_bytes(2))
    _version, problem, _reserved, bound = _exactly(sock, 4, proxy)
    if problem:
        raise ProxyError(f"the proxy {proxy} says {_SOCKS_PROBLEMS.get(problem, f'error {problem}')}")
    length = {1: 4, 4: 16}.get(bound) or _exactly(sock, 1, proxy)[0]
    _exactly(sock, length + 2, proxy)


def _counted(text: str, proxy: Proxy) -> bytes:
    data = text.encode()
    if len(data) > 255:
        raise ProxyError(f"name, user or password is too long for the proxy {proxy}")
    return bytes([len(data)]) + data


def _exactly(sock: socket.socket, length: int, proxy: Proxy) -> bytes:
    data = b""
    while len(data) < length:
        piece = sock.recv(length - len(data))
        if not piece:
            raise ProxyError(f"the proxy {proxy} ended the connection")
        data += piece
    return data

# SPDX-License-Identifier: GPL-3.0-or-later
"""Which proxy leads to which server: the cases, and a program that asks a real kubectl.

    python tests/differential/proxies.py PATH_OF_KUBECTL

runs it as root in a network namespace of its own, where all addresses of the cases are those of one machine: nothing leaves it.
"""

import json
import os
import socket
import subprocess
import sys
import threading
import typing as t
from pathlib import Path
from tempfile import TemporaryDirectory

ALL_OF_GO = (
    "foobar.com, .barbaz.net, *.wildcard.io, 192.0.2.1, 192.0.2.2:81, 192.0.2.3:6443, 10.0.0.0/30, fd00::52:0:1, "
    "[fd00::52:0:2]:443, [fd00::52:0:3]:6443, fd01:db8:a::45/64"
)
PROXY = "127.9.9.9:3128"
SOCKS = "127.9.9.9:1080"
AT = f"http://{PROXY}"


class Case(t.NamedTuple):
    """``through`` is http, socks5 or nothing."""

    server: str
    env: dict[str, str]
    through: str
    proxy_url: str = ""


def _exceptions() -> list[Case]:
    """The hosts of one long NO_PROXY, and whether it means them."""
    told = {
        "192.0.2.1": True, "192.0.2.2": False, "192.0.2.3": True, "192.0.2.4": False, "10.0.0.2": True, "10.0.0.5": False,
        "[fd00::52:0:1]": True, "[fd00::52:0:2]": False, "[fd00::52:0:3]": True, "[fd01:db8:a::123]": True,
        "[fd02::1]": False, "barbaz.net": False, "www.barbaz.net": True, "foobar.com": True, "www.foobar.com": True,
        "foofoobar.com": False, "localhost.net": False, "local.localhost": False, "barbarbaz.net": False,
        "wildcard.io": False, "nested.wildcard.io": True, "awildcard.io": False, "localhost": True,
        "127.0.0.1": True, "127.8.7.6": True, "[::1]": True,
    }  # fmt: skip
    env = {"HTTPS_PROXY": AT, "NO_PROXY": ALL_OF_GO}
    return [Case(f"https://{host}:6443", env, "" if direct else "http") for host, direct in told.items()]


FAR = "https://192.0.2.4:6443"
CASES = [
    *_exceptions(),
    Case(FAR, {}, ""),
    Case(FAR, {"HTTPS_PROXY": PROXY}, "http"),
    Case(FAR, {"https_proxy": AT}, "http"),
    Case(FAR, {"HTTPS_PROXY": AT, "https_proxy": "http://127.0.0.1:1"}, "http"),
    Case(FAR, {"HTTPS_PROXY": "", "https_proxy": AT}, "http"),
    Case(FAR, {"HTTP_PROXY": AT, "ALL_PROXY": AT}, ""),
    Case("http://192.0.2.4:6443", {"HTTP_PROXY": AT}, "http"),
    Case("http://192.0.2.4:6443", {"HTTPS_PROXY": AT}, ""),
    Case(FAR, {"HTTPS_PROXY": AT, "NO_PROXY": "*"}, ""),
    Case(FAR, {"HTTPS_PROXY": AT, "NO_PROXY": "a.b,*"}, ""),
    Case(FAR, {"HTTPS_PROXY": AT, "NO_PROXY": "192.0.2.4"}, ""),
    Case(FAR, {"HTTPS_PROXY": AT, "no_proxy": "192.0.0.0/16"}, ""),
    Case(FAR, {"HTTPS_PROXY": AT, "NO_PROXY": "10.0.0.1", "no_proxy": "*"}, "http"),
    Case(FAR, {"HTTPS_PROXY": AT, "NO_PROXY": "192.0.2.4:443"}, "http"),
    Case(FAR, {"HTTPS_PROXY": AT, "NO_PROXY": "192.0.2.0/255.255.255.0"}, "http"),
    Case(FAR, {"HTTPS_PROXY": AT, "NO_PROXY": ":6443,,  "}, "http"),
    Case("https://www.foobar.com:6443", {"HTTPS_PROXY": AT, "NO_PROXY": "*.com"}, ""),
    Case("https://www.foobar.com:6443", {"HTTPS_PROXY": AT, "NO_PROXY": "FOOBAR.com:6443"}, ""),
    Case("https://www.foobar.com:6443", {"HTTPS_PROXY": AT, "NO_PROXY": "w.foobar.com"}, "http"),
    Case(FAR, {"HTTPS_PROXY": f"socks5://{SOCKS}"}, "socks5"),
    Case("https://[fd02::1]:6443", {"HTTPS_PROXY": f"socks5://{SOCKS}"}, "socks5"),
    Case("https://www.foobar.com:6443", {"HTTPS_PROXY": f"socks5://user:word@{SOCKS}"}, "socks5"),
    Case(FAR, {"HTTPS_PROXY": f"http://user:word@{PROXY}"}, "http"),
    Case("https://127.0.0.1:6443", {}, "http", AT),
    Case(FAR, {"HTTPS_PROXY": "http://127.0.0.1:1", "NO_PROXY": "*"}, "http", AT),
    Case(FAR, {}, "socks5", f"socks5://{SOCKS}"),
]


def _prepared(folder: Path) -> None:
    """The addresses and names of the cases, all on the loopback interface of this namespace."""
    hosts = {case.server.split("//")[1].rsplit(":", 1)[0].strip("[]") for case in CASES}
    names = {host for host in hosts if host.rsplit(".", 1)[-1].isalpha()}
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in [*sorted(hosts - names), "192.0.2.5"]:
        if not address.startswith("127.") and address != "::1":
            mask, flags = ("128", ["nodad"]) if ":" in address else ("32", [])
            subprocess.run(["ip", "address", "add", f"{address}/{mask}", "dev", "lo", *flags], check=True)
    lines = ["127.0.0.1 localhost", "::1 localhost", *(f"192.0.2.5 {name}" for name in sorted(names - {"localhost"}))]
    (folder / "hosts").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    subprocess.run(["mount", "--bind", str(folder / "hosts"), "/etc/hosts"], check=True)


def _listen(seen: list[str], what: str, family: socket.AddressFamily, address: tuple[str, int]) -> None:
    server = socket.create_server(address, family=family)

    def serve() -> None:
        while True:
            connection, _peer = server.accept()
            seen.append(what)
            connection.close()

    threading.Thread(target=serve, daemon=True).start()


def _asked(kubectl: str, case: Case, folder: Path, seen: list[str]) -> str:
    cluster = {"server": case.server} | ({"proxy-url": case.proxy_url} if case.proxy_url else {})
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": cluster}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "users": [{"name": "a", "user": {"token": "t"}}],
    }  # fmt: skip
    path = folder / "config"
    path.write_text(json.dumps(config), encoding="utf-8")
    seen.clear()
    words = [kubectl, "--kubeconfig", str(path), "--request-timeout=2", "get", "--raw", "/version"]
    env = {"HOME": str(folder), "PATH": os.environ["PATH"], **case.env}
    subprocess.run(words, check=False, env=env, capture_output=True, timeout=60)
    return seen[0] if seen else "nothing"


def main() -> int:
    if len(sys.argv) == 2:
        words = ["unshare", "--net", "--mount", sys.executable, __file__, "inside", sys.argv[1]]
        return subprocess.run(words, check=False).returncode
    seen: list[str] = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        _prepared(folder)
        for port, what in ((3128, "http"), (1080, "socks5")):
            _listen(seen, what, socket.AF_INET, ("127.9.9.9", port))
        _listen(seen, "", socket.AF_INET, ("0.0.0.0", 6443))  # noqa: S104  (of this namespace)
        _listen(seen, "", socket.AF_INET6, ("::", 6443))
        wrong = [(case, found) for case in CASES if (found := _asked(sys.argv[2], case, folder, seen)) != case.through]
    for case, found in wrong:
        sys.stdout.write(f"{case}: kubectl went through {found or 'no proxy'}\n")
    sys.stdout.write(f"{len(CASES) - len(wrong)} of {len(CASES)} as expected\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

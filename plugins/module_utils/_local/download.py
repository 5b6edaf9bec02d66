# SPDX-License-Identifier: GPL-3.0-or-later
"""Download files over HTTP: verified by their digest, and with errors that name the URL, the cause and the next step."""

from __future__ import annotations

import hashlib
import http.client
import queue
import threading
import typing as t
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from .._core.clock import Clock, Deadline
from .._core.errors import InvalidInput, MusterError, NotFound, Rejected, Unauthorized, Unreachable
from .._core.files import NO_ROOM

CHUNK = 1 << 16
PROBE_SECONDS = 3.0
# A server that sends nothing for so long, or less than this rate in such a period, counts as unreachable.
STALL_SECONDS = 30.0
SLOWEST = 16 << 10
OTHERWISE = "or set local_cluster_source to build, which compiles the programs on this machine"
Headers = t.Mapping[str, str]
FAILURES = (OSError, ValueError, http.client.HTTPException)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follow redirects, but none from HTTPS to HTTP: what comes without TLS can be replaced on the way."""

    def redirect_request(self, req: t.Any, fp: t.Any, code: int, msg: str, headers: t.Any, newurl: str) -> t.Any:
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            raise urllib.error.URLError(f"it redirects to {newurl}, which has no TLS")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    """Opens URLs through the proxies of the environment; never files of this host."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        _Redirects(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


def base_url(name: str, url: str) -> str:
    """A base URL as users give it, without the last slash. Raises InvalidInput for all but http://HOST/PATH and https://HOST/PATH."""
    try:
        parts = urllib.parse.urlsplit(url)
        plain = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        plain = False
    if not plain or "@" in parts.netloc or parts.query or parts.fragment or any(letter.isspace() for letter in url):
        shown = url.rpartition("@")[2]
        raise InvalidInput(
            f"local_cluster_release_urls: {name} '{shown}' is not the URL of a mirror.",
            hint="Write it as https://HOST or https://HOST/FOLDER, without a login, a query and a fragment.",
        )
    return url.rstrip("/")


def request(url: str, headers: Headers | None = None, method: str = "GET", timeout: float = STALL_SECONDS) -> http.client.HTTPResponse:
    """Send a request, and return the response with its body unread. Raises a MusterError unless the server has what was asked for."""
    try:
        if "@" in urllib.parse.urlsplit(url).netloc:
            raise InvalidInput(f"{url} has a login, which is not used.", hint="Give the URL of a mirror that asks for none.")
        asked = urllib.request.Request(url, method=method)  # noqa: S310 - the opener has no handler for files
        for name, value in (headers or {}).items():
            # A token is for this server only, not for the one it redirects to.
            (asked.add_unredirected_header if name == "Authorization" else asked.add_header)(name, value)
        return t.cast("http.client.HTTPResponse", _opener().open(asked, timeout=timeout))
    except urllib.error.HTTPError as exc:
        exc.close()
        raise _refusal(url, exc) from exc
    except FAILURES as exc:
        raise _unreachable(url, exc, timeout) from exc


def _refusal(url: str, exc: urllib.error.HTTPError) -> MusterError:
    what = f"{url}: {_via(url)} answers HTTP {exc.code} {exc.reason}."
    if exc.code in {404, 410}:
        return NotFound(what, hint=f"Give a mirror that has this file in local_cluster_release_urls, {OTHERWISE}.")
    if exc.code in {401, 403, 407}:
        return Unauthorized(what, hint=f"Give a mirror that asks for no login in local_cluster_release_urls, {OTHERWISE}.")
    return Unreachable(what, hint=f"Run again later, give another mirror in local_cluster_release_urls, {OTHERWISE}.")


def _via(url: str) -> str:
    """The server as an error names it, with the proxy if there is one."""
    parts = urllib.parse.urlsplit(url)
    proxy = urllib.request.getproxies().get(parts.scheme, "")
    if not proxy or urllib.request.proxy_bypass(parts.hostname or ""):
        return "the server"
    return f"the server, or the proxy {proxy.rpartition('@')[2].removeprefix('http://')},"


def _unreachable(url: str, exc: BaseException, timeout: float) -> Unreachable:
    reason = exc.reason if isinstance(exc, urllib.error.URLError) else exc
    why = f"no answer for {timeout:.0f} s" if isinstance(reason, TimeoutError) else str(reason) or type(reason).__name__
    through = "" if _via(url) == "the server" else f" (asked: {_via(url).rstrip(',')})"
    return Unreachable(
        f"{url} could not be fetched: {why}{through}.",
        hint=f"Check the network, https_proxy and no_proxy of root, or local_cluster_release_urls, {OTHERWISE}. What was fetched is kept.",
    )


def save(url: str, target: Path, checksum: str, clock: Clock, headers: Headers | None = None) -> None:
    """Download a file and verify its CHECKSUM (``sha256:...``). TARGET is a draft: after an error it is not what was asked for."""
    algorithm, _colon, expected = checksum.partition(":")
    digest = hashlib.new(algorithm)
    with request(url, headers) as answer, target.open("wb") as out:
        for chunk in _body(url, answer, clock):
            digest.update(chunk)
            out.write(chunk)
    if digest.hexdigest() != expected:
        raise Rejected(
            f"{url} has {algorithm} {digest.hexdigest()}, expected {expected}.",
            hint=f"The file is not the one that was pinned, so it was deleted. Do not use it: ask who runs this server, {OTHERWISE}.",
        )


def read(url: str, answer: http.client.HTTPResponse, clock: Clock, most: int = 4 << 20) -> bytes:
    """The body of a response that is short, such as a manifest."""
    body = b""
    for chunk in _body(url, answer, clock):
        body += chunk
        if len(body) > most:
            raise Rejected(f"{url} is longer than {most} bytes.", hint="Check local_cluster_release_urls.")
    return body


def _body(url: str, answer: http.client.HTTPResponse, clock: Clock) -> t.Iterator[bytes]:
    """The body in pieces. Raises Unreachable if it ends too early, or comes too slowly."""
    length, received = int(answer.headers.get("Content-Length") or -1), 0
    since, counted = clock.monotonic(), 0
    while True:
        try:
            chunk = answer.read1(CHUNK)
        except FAILURES as exc:
            if isinstance(exc, OSError) and exc.errno in NO_ROOM:
                raise
            raise _unreachable(url, exc, STALL_SECONDS) from exc
        if not chunk:
            break
        received, counted = received + len(chunk), counted + len(chunk)
        yield chunk
        passed = clock.monotonic() - since
        if passed >= STALL_SECONDS:
            if counted < SLOWEST * passed:
                raise _unreachable(url, OSError(f"only {counted / passed / 1024:.1f} KiB a second arrived"), STALL_SECONDS)
            since, counted = clock.monotonic(), 0
    if received < length:
        raise _unreachable(url, OSError(f"the connection ended after {received} of {length} bytes"), STALL_SECONDS)


def why_unreachable(urls: t.Sequence[str], clock: Clock, seconds: float = PROBE_SECONDS) -> str:
    """Ask for the headers of all URLs at once, and return why one of them cannot be had; empty if all can, within so many seconds."""
    found: queue.Queue[str] = queue.Queue()

    def ask(url: str) -> None:
        try:
            request(url, method="HEAD", timeout=seconds).close()
        except Unauthorized as exc:
            # A registry asks for a token, which anonymous clients get.
            found.put("" if "/v2/" in url else exc.message)
        except MusterError as exc:
            found.put(exc.message)
        else:
            found.put("")

    deadline = Deadline(seconds, clock)
    for url in urls:
        # Daemons, because the name service of the C library knows no timeout.
        threading.Thread(target=ask, args=(url,), daemon=True).start()
    for _url in urls:
        try:
            if why := found.get(timeout=deadline.left):
                return why
        except queue.Empty:
            return f"{', '.join(sorted({'/'.join(url.split('/')[:3]) for url in urls}))}: no answer within {seconds:.0f} s."
    return ""

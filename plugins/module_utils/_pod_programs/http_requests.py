# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Send the same HTTP requests to several places, and print what came of them: http_requests.py TASK

TASK is a file of JSON: ``urls``; ``hostname`` and ``authorities`` (PEM), or null; ``timeout`` of an answer; ``ready``, a path that answers
200 when a place is ready, and ``wait``, the seconds to wait until all are; ``requests``, each [method, path, body or null, times].

The last line that is printed is JSON, too: ``places``, each with ``answers`` [path, status, number of its text, seconds] and the ``error``
after which it was asked no more, or null; and the ``texts``, each once, because a model mostly says the same.

Python 3.9 and its standard library are enough.
"""

from __future__ import annotations

import http.client
import json
import ssl
import sys
import time
import typing as t
from pathlib import Path
from urllib.parse import urlsplit

OK = 200
# X509_V_FLAG_PARTIAL_CHAIN of OpenSSL. ssl has a name for it since Python 3.10 only.
PARTIAL_CHAIN = 0x80000
PAUSE_S = 1.0


class Https(http.client.HTTPSConnection):
    """A connection to a server that has to prove that it is NAME, wherever it is reached."""

    def __init__(self, host: str, port: int | None, name: str, context: ssl.SSLContext, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout, context=context)
        self._name, self._trusted = name, context

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        self.sock = self._trusted.wrap_socket(self.sock, server_hostname=self._name)


class HttpServer:
    """A server, asked over one connection."""

    def __init__(self, url: str, hostname: str | None, timeout: float, trusted: t.Callable[[], ssl.SSLContext]) -> None:
        parts = urlsplit(url)
        host = str(parts.hostname)
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Host": hostname} if hostname else {}
        self._connection = (
            Https(host, parts.port, hostname or host, trusted(), timeout)
            if parts.scheme == "https"
            else http.client.HTTPConnection(host, parts.port, timeout=timeout)
        )

    def ask(self, method: str, path: str, body: str | None = None) -> tuple[int, str]:
        """The status and the text; OSError or HTTPException if there is no answer."""
        headers = {**self._headers, **({"Content-Type": "application/json"} if body else {})}
        try:
            self._connection.request(method, f"{self._prefix}{path}", body, headers)
            answer = self._connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def close(self) -> None:
        """Close the connection. The next request opens another one."""
        self._connection.close()


def trusted(authorities: str | None) -> ssl.SSLContext:
    """As a controller trusts: signature, name and time are checked, and not the extensions that many certificates lack."""
    context = ssl.create_default_context(cadata=authorities)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= PARTIAL_CHAIN
    return context


def is_ready(place: HttpServer, path: str) -> bool:
    """Whether PATH answers 200."""
    try:
        return place.ask("GET", path)[0] == OK
    except (OSError, http.client.HTTPException):
        return False


def wait_until_ready(places: list[HttpServer], path: str, seconds: float) -> None:
    """Return when every place is ready, or after SECONDS."""
    end = time.monotonic() + seconds
    while not all(is_ready(place, path) for place in places) and time.monotonic() < end:
        time.sleep(PAUSE_S)


class Record:
    """What is printed."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}
        self.places: list[dict[str, t.Any]] = []

    def ask(self, place: HttpServer, ready: str, requests: list[tuple[str, str, str | None, int]]) -> None:
        """Note what a place says; one that is not ready, or does not answer, is asked no more."""
        answers: list[tuple[str, int, int, float]] = []
        noted: dict[str, t.Any] = {"answers": answers, "error": None}
        self.places.append(noted)
        try:
            for method, path, body, times in [("GET", ready, None, 1), *requests]:
                for _time in range(times):
                    began = time.monotonic()
                    status, text = place.ask(method, path, body)
                    took = time.monotonic() - began
                    answers.append((path, status, self.texts.setdefault(text, len(self.texts)), took))
                    if path == ready and status != OK:
                        return
        except (OSError, http.client.HTTPException) as error:
            noted["error"] = str(error) or type(error).__name__
        finally:
            place.close()


def main() -> None:
    """Wait, ask, print."""
    task = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    places = [HttpServer(url, task["hostname"], task["timeout"], lambda: trusted(task["authorities"])) for url in task["urls"]]
    wait_until_ready(places, task["ready"], task["wait"])
    record = Record()
    for place in places:
        record.ask(place, task["ready"], task["requests"])
    sys.stdout.write(json.dumps({"texts": list(record.texts), "places": record.places}) + "\n")


if __name__ == "__main__":
    main()

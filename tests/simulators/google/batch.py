# SPDX-License-Identifier: GPL-3.0-or-later
"""Batches: several requests in one of multipart/mixed (cloud.google.com/compute/docs/api/how-tos/batch). gcloud sends some that way."""

from __future__ import annotations

from collections.abc import Callable
from email.parser import BytesParser

from .api import Raw

Serve = Callable[[str, str, str, dict[str, str], bytes], Raw]


def is_batch(path: str) -> bool:
    return path.startswith("/batch")


def split(headers: dict[str, str], raw: bytes) -> list[tuple[str, bytes]]:
    """(content id, the inner request) of each part."""
    message = BytesParser().parsebytes(f"Content-Type: {headers['content-type']}\r\n\r\n".encode() + raw)
    return [(str(part["Content-ID"] or ""), part.get_payload(decode=True) or b"") for part in message.get_payload()]  # type: ignore[union-attr,misc]


def answer(host: str, headers: dict[str, str], raw: bytes, serve: Serve) -> Raw:
    """Every part is a request of its own, with the outer one's credentials where it has none."""
    parts = []
    for name, inner in split(headers, raw):
        head, _blank, body = inner.replace(b"\r\n", b"\n").partition(b"\n\n")
        first, *lines = head.decode().splitlines()
        verb, target = first.split()[:2]
        own = {key.lower(): value.strip() for key, _colon, value in (line.partition(":") for line in lines)}
        if target.startswith("https://"):
            target = "/" + target.split("/", 3)[3]
        done = serve(host, verb, target, {"authorization": headers.get("authorization", ""), **own}, body)
        parts.append(
            f"--batch_muster\r\nContent-Type: application/http\r\nContent-ID: <response-{name.strip('<>')}>\r\n\r\n"
            f"HTTP/1.1 {done.status} {'OK' if done.status < 400 else 'Error'}\r\nContent-Type: application/json; charset=UTF-8\r\n"
            f"Content-Length: {len(done.content)}\r\n\r\n".encode() + done.content + b"\r\n"
        )  # fmt: skip
    return Raw(b"".join(parts) + b"--batch_muster--\r\n", 200, {"Content-Type": "multipart/mixed; boundary=batch_muster"})

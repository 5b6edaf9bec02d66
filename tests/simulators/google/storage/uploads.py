# SPDX-License-Identifier: GPL-3.0-or-later
"""Uploads: in one request (media), with a description beside the content (multipart), and resumable, in pieces of 256 KiB.

cloud.google.com/storage/docs/uploads-downloads; a session's pieces are answered 308 with the Range that has arrived, the last one with the
object.
"""

import json
import re
from email.parser import BytesParser
from typing import Any

from ..api import Answer, Asked, Raw, Refused, handles
from ..discovery import Body
from ..state import digest, number
from .buckets import find
from .objects import put

PIECE = 256 * 1024
# Upload id: what was said when it began, and what has arrived.
SESSIONS: dict[str, dict[str, Any]] = {}


@handles("storage.objects.insert")
def _insert(asked: Asked) -> Answer:
    find(asked)
    kind, bucket = str(asked.params.get("uploadType", "media")), str(asked.params["bucket"])
    if kind == "multipart":
        meta, content = _multipart(asked)
        return put(asked, bucket, str(asked.params.get("name") or meta.get("name") or ""), meta, content)
    if kind == "resumable":
        return _begin(asked, bucket)
    meta = {"contentType": asked.headers.get("content-type", "application/octet-stream")}
    return put(asked, bucket, str(asked.params.get("name") or ""), meta, asked.raw)


def _multipart(asked: Asked) -> tuple[Body, bytes]:
    """The parts are cut by hand: the content is bytes, and no mail's."""
    (boundary,) = re.findall(r'boundary="?([^";]+)"?', asked.headers["content-type"])
    bodies = []
    for part in asked.raw.split(b"--" + boundary.strip("'").encode())[1:-1]:
        head, _blank, content = (
            part.lstrip(b"\r\n").partition(b"\r\n\r\n") if b"\r\n\r\n" in part else part.lstrip(b"\n").partition(b"\n\n")
        )
        content = content[:-2] if content.endswith(b"\r\n") else content[:-1] if content.endswith(b"\n") else content
        bodies.append((BytesParser().parsebytes(head + b"\n\n"), content))
    meta = json.loads(bodies[0][1] or b"{}")
    meta.setdefault("contentType", bodies[1][0].get("Content-Type"))
    return meta, bodies[1][1]


def _begin(asked: Asked, bucket: str) -> Answer:
    if session := str(asked.params.get("upload_id") or ""):
        return piece(session, asked.headers, asked.raw)
    meta = json.loads(asked.raw) if asked.raw else {}
    name = str(asked.params.get("name") or meta.get("name") or "")
    if asked.headers.get("x-upload-content-type"):
        meta.setdefault("contentType", asked.headers["x-upload-content-type"])
    session = digest("upload", number(), length=40)
    SESSIONS[session] = {"asked": asked, "bucket": bucket, "name": name, "meta": meta, "content": b"", "done": None}
    where = f"https://{asked.host}/upload/storage/v1/b/{bucket}/o?uploadType=resumable&upload_id={session}"
    return Raw(b"", 200, {"Location": where, "X-GUploader-UploadID": session})


def piece(session: str, headers: dict[str, str], raw: bytes) -> Answer:
    """The next bytes of an upload, or the question how many have arrived."""
    upload = SESSIONS[session]
    if upload["done"] is not None:
        return dict(upload["done"])
    match = re.fullmatch(
        r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)", headers.get("content-range", f"bytes 0-{len(raw) - 1}/{len(raw)}" if raw else "bytes */0")
    )
    if not match:
        raise Refused(400, f"Invalid Content-Range: {headers.get('content-range')}", reason="badRequest")  # assumed: the wording
    if match[1] is not None:
        if int(match[1]) != len(upload["content"]):
            raise Refused(503, "The bytes do not follow those that have arrived.")
        if match[3] == "*" and len(raw) % PIECE:
            raise Refused(400, f"Pieces but the last must be multiples of {PIECE} bytes.", reason="badRequest")  # assumed: the wording
        upload["content"] += raw
    if match[3] != "*" and len(upload["content"]) == int(match[3]):
        upload["done"] = put(upload["asked"], upload["bucket"], upload["name"], upload["meta"], upload["content"])
        return dict(upload["done"])
    arrived = {"Range": f"bytes=0-{len(upload['content']) - 1}"} if upload["content"] else {}
    return Raw(b"", 308, {**arrived, "X-Goog-Stored-Content-Length": str(len(upload["content"]))})

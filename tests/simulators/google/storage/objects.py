# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects: read, listed, deleted; generations, where the bucket keeps older versions.

Rules: preconditions on generation and metageneration fail with 412, and 304 where they are of the "not" kind
(cloud.google.com/storage/docs/request-preconditions); deleting a live object of a bucket with versioning makes it an older one; a
soft-deleted one is listed only when asked for.
"""

import base64
import hashlib
from typing import Any
from urllib.parse import quote

import google_crc32c

from ..api import Answer, Asked, Raw, Refused, handles
from ..discovery import Body
from ..state import BUCKETS, Thing, now, number
from .buckets import find

OUTPUT = (
    "kind", "id", "selfLink", "mediaLink", "generation", "metageneration", "size", "md5Hash", "crc32c", "timeCreated", "updated", "etag",
    "bucket", "name",
)  # fmt: skip
Row = dict[str, Any]  # {"body": description, "content": bytes}


def _rows(thing: Thing, name: str) -> list[Row]:
    """Versions of an object, the live one last, if there is one."""
    rows: list[Row] = thing.extra["objects"].setdefault(name, [])
    return rows


def live(thing: Thing, name: str) -> Row | None:
    rows = _rows(thing, name)
    return rows[-1] if rows and "timeDeleted" not in rows[-1]["body"] else None


def wanted(asked: Asked) -> Row:
    thing, key, version = find(asked), str(asked.params["object"]), asked.params.get("generation")
    row = live(thing, key) if version is None else next((r for r in _rows(thing, key) if r["body"]["generation"] == version), None)
    if row is None:
        raise Refused(404, f"No such object: {asked.params['bucket']}/{key}")
    return row


def preconditions(asked: Asked, row: Row | None) -> None:
    body = row["body"] if row else {"generation": "0", "metageneration": "0"}
    for field, word in (("generation", "Generation"), ("metageneration", "Metageneration")):
        if asked.params.get(f"if{word}Match") not in (None, body[field]):
            raise Refused(412, "At least one of the pre-conditions you specified did not hold.", reason="conditionNotMet")
        if asked.params.get(f"if{word}NotMatch") == body[field]:
            raise Refused(
                304 if asked.method.verb == "GET" else 412,
                "At least one of the pre-conditions you specified did not hold.",
                reason="conditionNotMet",
            )


def hashes(content: bytes) -> tuple[str, str]:
    crc = base64.b64encode(google_crc32c.Checksum(content).digest()).decode()
    return base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode(), crc


def put(asked: Asked, bucket: str, name: str, meta: Body, content: bytes) -> Body:
    """A new live version; what was live becomes an older one, or goes."""
    thing = BUCKETS[bucket]
    preconditions(asked, live(thing, name))
    md5, crc = hashes(content)
    for field, value in (("md5Hash", md5), ("crc32c", crc)):
        if meta.get(field) not in (None, value):
            raise Refused(400, f'Provided {field} "{meta[field]}" doesn\'t match calculated {field} "{value}".', reason="invalid")
    generation, escaped = str(1790000000000000 + number()), quote(name, safe="")
    root = f"https://www.googleapis.com/storage/v1/b/{bucket}/o/{escaped}"
    body: Body = {
        "kind": "storage#object", "id": f"{bucket}/{name}/{generation}", "selfLink": root, "name": name, "bucket": bucket,
        "generation": generation,
        "mediaLink": f"https://storage.googleapis.com/download/storage/v1/b/{bucket}/o/{escaped}?generation={generation}&alt=media",
        "metageneration": "1",
        "contentType": meta.get("contentType") or asked.headers.get("x-upload-content-type") or "application/octet-stream",
        "storageClass": meta.get("storageClass") or thing.body["storageClass"], "size": str(len(content)), "md5Hash": md5,
        "crc32c": crc, "timeCreated": now(),
        "updated": now(), "etag": base64.b64encode(generation.encode()).decode(), "timeStorageClassUpdated": now(), "timeFinalized": now(),
        **{key: value for key, value in meta.items() if key not in OUTPUT and value is not None},
    }  # fmt: skip
    retire(thing, name)
    _rows(thing, name).append({"body": body, "content": content})
    return body


def retire(thing: Thing, name: str) -> None:
    """What was live is kept where the bucket has versions, and soft-deleted where it does not."""
    row = live(thing, name)
    if row is None:
        return
    row["body"]["timeDeleted"] = now()
    if not (thing.body.get("versioning") or {}).get("enabled"):
        _rows(thing, name).remove(row)
        _soft(thing, name, row)


def _soft(thing: Thing, name: str, row: Row) -> None:
    if int(thing.body["softDeletePolicy"]["retentionDurationSeconds"]):
        row["body"]["softDeleteTime"] = now()
        thing.extra.setdefault("soft", {}).setdefault(name, []).append(row)


def media(asked: Asked, row: Row) -> Raw:
    """The content, or the part of it that was asked for."""
    content, first = row["content"], 0
    headers = {
        "Content-Type": row["body"]["contentType"], "X-Goog-Generation": row["body"]["generation"], "ETag": row["body"]["etag"],
        "X-Goog-Hash": f"crc32c={row['body']['crc32c']},md5={row['body']['md5Hash']}",
        "X-Goog-Metageneration": row["body"]["metageneration"],
        "X-Goog-Stored-Content-Length": row["body"]["size"], "X-Goog-Stored-Content-Encoding": "identity", "Accept-Ranges": "bytes",
    }  # fmt: skip
    spec = asked.headers.get("range", "")
    if not spec.startswith("bytes="):
        return Raw(content, 200, headers)
    start, _dash, end = spec.removeprefix("bytes=").partition("-")
    first = int(start) if start else max(len(content) - int(end), 0)
    last = min(int(end), len(content) - 1) if end and start else len(content) - 1
    if first >= len(content):
        raise Refused(416, "The requested range cannot be satisfied.")
    return Raw(content[first : last + 1], 206, {**headers, "Content-Range": f"bytes {first}-{last}/{len(content)}"})


@handles("storage.objects.get")
def _get(asked: Asked) -> Answer:
    row = wanted(asked)
    preconditions(asked, row)
    return media(asked, row) if asked.params.get("alt") == "media" else row["body"]


@handles("storage.objects.list")
def _list(asked: Asked) -> Body:
    """By name; with a delimiter, what is below is one prefix."""
    thing = find(asked)
    prefix, delimiter = str(asked.params.get("prefix", "")), str(asked.params.get("delimiter", ""))
    source = thing.extra.get("soft", {}) if asked.params.get("softDeleted") else thing.extra["objects"]
    found, prefixes = [], []
    for name in sorted(name for name, rows in source.items() if rows and name.startswith(prefix)):
        rest = name[len(prefix) :]
        rows = source[name] if asked.params.get("versions") or asked.params.get("softDeleted") else [r for r in [live(thing, name)] if r]
        if rows and delimiter and delimiter in rest:
            one = prefix + rest.split(delimiter)[0] + delimiter
            prefixes += [one] if one not in prefixes else []
        else:
            found += [row["body"] for row in rows]
    size = min(int(asked.params.get("maxResults") or 1000), 1000)
    first = int(asked.params.get("pageToken") or 0)
    answer: Body = {"kind": "storage#objects"}
    if found:
        answer["items"] = found[first : first + size]
    if prefixes:
        answer["prefixes"] = prefixes
    if first + size < len(found):
        answer["nextPageToken"] = str(first + size)
    return answer


@handles("storage.objects.delete")
def _delete(asked: Asked) -> Answer:
    row, thing = wanted(asked), find(asked)
    preconditions(asked, row)
    name = str(asked.params["object"])
    if asked.params.get("generation") is not None and row is not live(thing, name):
        _rows(thing, name).remove(row)
        _soft(thing, name, row)
    elif asked.params.get("generation") is not None:
        _rows(thing, name).remove(row)
        row["body"]["timeDeleted"] = now()
        _soft(thing, name, row)
    else:
        retire(thing, name)
    return Raw(b"", 204)

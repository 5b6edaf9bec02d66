# SPDX-License-Identifier: GPL-3.0-or-later
"""A request as it comes from the wire, and an error as it goes there."""

import io
import json
from typing import Any
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from .api import SIGNED_AS, Asked, Refused, description, protocol, understand
from .wire import from_form

Environ = dict[str, Any]


def scope(environ: Environ) -> tuple[str, str]:
    """(service, region) that a request was signed for."""
    signature = environ.get("HTTP_AUTHORIZATION", "")
    parts = signature.split(",")[0].split()[-1].split("/") if "Credential=" in signature else []
    return (SIGNED_AS.get(parts[3], parts[3]), parts[2]) if len(parts) == 5 else ("", "")


def read_body(environ: Environ) -> bytes:
    """The body, put back for whoever reads it next."""
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body = environ["wsgi.input"].read(length) if length else b""
    environ["wsgi.input"] = io.BytesIO(body)
    return body


def headers_of(environ: Environ) -> dict[str, str]:
    """Names of headers in small letters."""
    return {name[5:].replace("_", "-").lower(): value for name, value in environ.items() if name.startswith("HTTP_")}


def address(environ: Environ) -> str:
    """The address that a request was signed for."""
    query = environ["QUERY_STRING"]
    path = environ.get("RAW_URI", environ["PATH_INFO"]).split("?", 1)[0]
    return f"http://{environ.get('HTTP_HOST', '')}{path}" + (f"?{query}" if query else "")


def recognise(environ: Environ) -> Asked | None:
    service, region = scope(environ)
    if not service:
        return None
    query, body = environ["QUERY_STRING"], read_body(environ)
    path = environ.get("RAW_URI", environ["PATH_INFO"]).split("?", 1)[0]
    if target := environ.get("HTTP_X_AMZ_TARGET"):
        return Asked(service, target.rsplit(".", 1)[-1], region, json.loads(body or b"{}"))
    text = body.decode(errors="replace")
    if "x-www-form-urlencoded" in environ.get("CONTENT_TYPE", "") and (action := parse_qs(text).get("Action")):
        return Asked(service, action[0], region, from_form(description(service).operation_model(action[0]), text))
    return understand(service, region, environ["REQUEST_METHOD"], path, query, headers_of(environ), body)


def error_body(asked: Asked, refused: Refused) -> tuple[str, bytes]:
    """(content type, body) of an error in the protocol of its service."""
    spoken = protocol(asked.service)
    if "json" in spoken:
        text = json.dumps({"__type": refused.code, "message": refused.message})
        return "application/json", text.encode()
    inner = f"<Error><Code>{refused.code}</Code><Message>{escape(refused.message)}</Message></Error>"
    wrapped = {
        "ec2": f"<Response><Errors>{inner}</Errors><RequestID>0</RequestID></Response>",
        "query": f"<ErrorResponse>{inner}<RequestId>0</RequestId></ErrorResponse>",
    }.get(spoken, inner)
    return "text/xml", wrapped.encode()

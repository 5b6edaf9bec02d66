# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a request fits the schema of its method: what does not is refused as Google's front end does.

Texts: "Invalid JSON payload received. Unknown name ..." and "Invalid value at ..." are the ones of the transcoder in front of Google's
APIs (github.com/grpc-ecosystem/grpc-httpjson-transcoding; googleapis/google-cloud-ruby issue 26951, mnfst/llm-gateway issue 1858). Compute
words the values itself: "Invalid value for field 'resource.name': ..." (redkubes/quickstart PR 9).
Cloud Storage ignores names that it does not know (google.cloud's own modules send `project` on DELETE and live).
"""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

from .api import Refused
from .discovery import Body, Method, load

IGNORES_UNKNOWN = ("storage.v1",)
INTEGER = re.compile(r"^-?\d+$")
TYPES = {"int32": "TYPE_INT32", "uint32": "TYPE_UINT32", "int64": "TYPE_INT64", "uint64": "TYPE_UINT64"}


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def check(method: Method, query: dict[str, list[str]], body: Any, sent: bool) -> tuple[dict[str, Any], Body]:
    """(parameters of the query, body), or a refusal."""
    params = _query(method, query)
    if not method.request:
        return params, body if isinstance(body, dict) else {}
    if sent and not isinstance(body, dict):
        raise _bad("", "Invalid JSON payload received. Unexpected token. Root element must be a message.")  # assumed: the wording
    problems = list(_struct(method, method.request, body or {}, _root(method)))
    if problems:
        raise _bad(*problems[0], *problems[1:])
    missing = list(_required(method, body or {}))
    if missing:
        raise Refused(400, f"Required field 'resource.{missing[0]}' not specified", reason="required")
    if method.document in IGNORES_UNKNOWN:
        return params, _known(method, method.schemas[method.request], body or {})
    return params, body or {}


def _known(method: Method, schema: Body, value: Any) -> Any:
    """A value without the names that its schema does not have; what is null stays."""
    schema = method.schemas[schema["$ref"]] if "$ref" in schema else schema
    if isinstance(value, list):
        return [_known(method, schema["items"], item) for item in value]
    if not isinstance(value, dict):
        return value
    properties, extra = schema.get("properties", {}), schema.get("additionalProperties")
    names = {name: properties.get(name, extra) for name in value}
    return {name: _known(method, names[name], item) for name, item in value.items() if names[name] is not None}


def _bad(path: str, message: str, *more: tuple[str, str]) -> Refused:
    rows = [(path, message), *more]
    violations = [{"field": where, "description": text} if where else {"description": text} for where, text in rows]
    details = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations}]
    return Refused(400, "\n".join(text for _where, text in rows), details=details)


def _root(method: Method) -> str:
    """What the transcoder calls the body: nothing where it is the whole request message, else the field that it is of it."""
    if method.document == "compute.v1":
        return "resource"
    return "" if method.request.endswith("Request") else snake(method.request)


def _query(method: Method, query: dict[str, list[str]]) -> dict[str, Any]:
    known = {**load(method.document).get("parameters", {}), **method.parameters}
    if "uploadType" in known:
        known["upload_id"] = {"type": "string"}  # the session of a resumable upload; no discovery document has it
    params: dict[str, Any] = {}
    for name, values in query.items():
        if name not in known:
            if method.document in IGNORES_UNKNOWN or name.startswith("$"):
                continue
            text = f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter.'
            raise _bad("", f"{text} Field '{name}' could not be found in request message.")
        schema = known[name]
        typed = [_typed(name, schema, value) for value in values]
        params[name] = typed if schema.get("repeated") else typed[-1]
    for name, schema in method.parameters.items():
        if schema.get("required") and schema.get("location") == "query" and name not in params:
            raise Refused(400, f"Required parameter: {name}", reason="required")
    return params


def _typed(name: str, schema: Body, value: str) -> Any:
    if schema["type"] == "boolean":
        if value.lower() not in ("true", "false"):
            raise _bad(snake(name), f"Invalid value at '{snake(name)}' (TYPE_BOOL), \"{value}\"")
        return value.lower() == "true"
    if schema["type"] == "integer":
        if not INTEGER.match(value):
            raise _bad(snake(name), f"Invalid value at '{snake(name)}' (TYPE_INT32), \"{value}\"")
        return int(value)
    if value not in schema.get("enum", [value]):
        raise _bad(snake(name), f"Invalid value at '{snake(name)}' (enum), \"{value}\"")
    return value


def _required(method: Method, body: Body) -> Iterator[str]:
    """Fields that the document marks as required by this method (compute's; Cloud Storage's handlers say it in their own words)."""
    for name, schema in method.schemas[method.request].get("properties", {}).items():
        required = method.id in schema.get("annotations", {}).get("required", []) and method.document == "compute.v1"
        if required and body.get(name) in (None, ""):
            yield name


def _struct(method: Method, ref: str, value: Any, path: str) -> Iterator[tuple[str, str]]:
    schema = method.schemas[ref]
    if not isinstance(value, dict):
        yield path, f"Invalid value at '{path}' (type.googleapis.com/{ref}), {_shown(value)}"
        return
    yield from _members(method, schema, value, path)


def _members(method: Method, schema: Body, value: Body, path: str) -> Iterator[tuple[str, str]]:
    properties, extra = schema.get("properties", {}), schema.get("additionalProperties")
    for name, item in value.items():
        inner = f"{path}.{snake(name)}" if path else snake(name)
        if item is None:
            continue  # JSON's null is "not there" in proto3
        if name in properties:
            yield from _value(method, properties[name], item, inner)
        elif extra is not None:
            yield from _value(method, extra, item, f"{path}[{name}]")
        elif method.document not in IGNORES_UNKNOWN:
            where = f" at '{path}'" if path else ""
            yield path, f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.'


def _value(method: Method, schema: Body, value: Any, path: str) -> Iterator[tuple[str, str]]:
    if "$ref" in schema:
        yield from _struct(method, schema["$ref"], value, path)
        return
    kind = schema.get("type")
    if kind == "array":
        if not isinstance(value, list):
            yield path, f"Invalid value at '{path}' (repeated), {_shown(value)}"
            return
        for index, item in enumerate(value):
            yield from _value(method, schema["items"], item, f"{path}[{index}]")
    elif kind == "object":
        if not isinstance(value, dict):
            yield path, f"Invalid value at '{path}' (map), {_shown(value)}"
            return
        yield from _members(method, schema, value, path)
    elif kind != "any":
        yield from _plain(method, schema, value, path)


def _plain(method: Method, schema: Body, value: Any, path: str) -> Iterator[tuple[str, str]]:
    form, kind = schema.get("format", ""), schema["type"]
    wrong = ""
    if kind == "boolean":
        wrong = "" if isinstance(value, bool) else "TYPE_BOOL"
    elif kind == "integer" or form in ("int64", "uint64"):
        # proto3's JSON takes both forms for numbers.
        number = isinstance(value, int) and not isinstance(value, bool)
        wrong = "" if number or (isinstance(value, str) and INTEGER.match(value)) else TYPES.get(form, "TYPE_INT32")
    elif kind == "number":
        wrong = "" if isinstance(value, int | float) and not isinstance(value, bool) else "TYPE_DOUBLE"
    elif not isinstance(value, str):
        wrong = "TYPE_STRING"
    elif form == "byte":
        wrong = "" if _is_base64(value) else "TYPE_BYTES"
    if wrong:
        yield path, f"Invalid value at '{path}' ({wrong}), {_shown(value)}"
    elif "enum" in schema and value not in schema["enum"]:
        yield path, _choice(method, schema, value, path)
    elif method.document == "compute.v1" and "pattern" in schema and not re.fullmatch(schema["pattern"], str(value)):
        pattern = schema["pattern"]
        raise Refused(400, f"Invalid value for field '{path}': '{value}'. Must be a match of regex '{pattern}'", reason="invalid")


def _choice(method: Method, schema: Body, value: str, path: str) -> str:
    if method.document == "compute.v1":
        raise Refused(400, f"Invalid value for field '{path}': '{value}'. ", reason="invalid")
    return f"Invalid value at '{path}' (type.googleapis.com/google.{method.document}.{path.rsplit('.', 1)[-1]}), \"{value}\""


def _is_base64(value: str) -> bool:
    try:
        base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
    except (ValueError, binascii.Error):
        return False
    return True


def _shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)

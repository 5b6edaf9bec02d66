# SPDX-License-Identifier: GPL-3.0-or-later
"""The parameters of a request, read back from the wire by AWS's own description of its operation, in each of AWS's protocols.

The rules are those by which botocore writes requests (botocore/serialize.py). What the description does not know stays in the parameters
under the name that it had on the wire, so that a check finds it.
"""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs
from xml.etree import ElementTree as ET

from botocore.model import ListShape, OperationModel, Shape, StructureShape

Body = dict[str, Any]
Form = dict[str, str]
ENVELOPE = ("Action", "Version")


def from_form(operation: OperationModel, text: str) -> Body:
    """A request of the protocols query and ec2: Filter.1.Name=x. What is asked by them has no maps."""
    form = {name: values[0] for name, values in parse_qs(text, keep_blank_values=True).items()}
    form = {name: value for name, value in form.items() if name not in ENVELOPE}
    if not isinstance(operation.input_shape, StructureShape):
        return dict(form)
    flat = operation.service_model.protocol == "ec2"
    read: set[str] = set()
    params = _structure(operation.input_shape, form, "", flat, read)
    return params | {name: value for name, value in form.items() if name not in read}


def _value(shape: Shape, form: Form, prefix: str, flat: bool, read: set[str]) -> Any:
    if isinstance(shape, StructureShape):
        return _structure(shape, form, f"{prefix}.", flat, read)
    if isinstance(shape, ListShape):
        return _list(shape, form, prefix, flat, read)
    read.add(prefix)
    return scalar(shape, form.get(prefix, ""))


def _structure(shape: StructureShape, form: Form, prefix: str, flat: bool, read: set[str]) -> Body:
    found = {}
    for name, member in shape.members.items():
        place = prefix + _name_of(name, member, flat)
        if place in form or any(key.startswith(f"{place}.") for key in form):
            found[name] = _value(member, form, place, flat, read)
    return found


def _name_of(name: str, member: Shape, flat: bool) -> str:
    given = member.serialization
    if flat:
        ec2_name = given.get("queryName") or given.get("name", name)
        return str(ec2_name[:1].upper() + ec2_name[1:])
    if isinstance(member, ListShape) and given.get("flattened") and member.member.serialization.get("name"):
        return str(member.member.serialization["name"])
    return str(given.get("name", name))


def _list(shape: ListShape, form: Form, prefix: str, flat: bool, read: set[str]) -> list[Any]:
    if not (flat or shape.serialization.get("flattened")):
        prefix = f"{prefix}.{shape.member.serialization.get('name', 'member')}"
    if form.get(prefix) == "":  # an empty list
        read.add(prefix)
        return []
    return [_value(shape.member, form, f"{prefix}.{number}", flat, read) for number in _numbers(form, prefix)]


def _numbers(form: Form, prefix: str) -> list[int]:
    rest = (key[len(prefix) + 1 :].split(".")[0] for key in form if key.startswith(f"{prefix}."))
    return sorted({int(part) for part in rest if part.isdigit()})


def scalar(shape: Shape, text: str) -> Any:
    """A text of the wire as the type that the description gives it; as it is where it is none."""
    try:
        if shape.type_name in ("integer", "long"):
            return int(text)
        if shape.type_name in ("float", "double"):
            return float(text)
    except ValueError:
        return text
    if shape.type_name == "boolean":
        return {"true": True, "false": False}.get(text, text)
    return text


def from_rest(operation: OperationModel, labels: Form, query: str, headers: Form, body: bytes) -> Body:
    """A request of the protocols rest-json and rest-xml: parts of it in the path, the query, headers and the body."""
    shape = operation.input_shape
    if not isinstance(shape, StructureShape):
        return {}
    params = dict(_from_body(operation, shape, body))
    given = parse_qs(query, keep_blank_values=True)
    for name, member in shape.members.items():
        where, key = member.serialization.get("location"), member.serialization.get("name", name)
        if where == "uri" and key in labels:
            params[name] = scalar(member, labels[key])
        elif where == "querystring" and key in given:
            many = isinstance(member, ListShape)
            params[name] = given[key] if many else scalar(member, given[key][0])
        elif where == "header" and key.lower() in headers:
            params[name] = scalar(member, headers[key.lower()])
        elif where == "headers":
            before = key.lower()
            found = {one[len(before) :]: value for one, value in headers.items() if one.startswith(before)}
            params |= {name: found} if found else {}
    return params


def _from_body(operation: OperationModel, shape: StructureShape, body: bytes) -> Iterator[tuple[str, Any]]:
    payload = shape.serialization.get("payload")
    whole = shape.members[payload] if payload else shape
    if payload and not isinstance(whole, StructureShape):
        # The content of an object, or a document.
        yield payload, body.decode() if whole.type_name == "string" else body
    elif body and operation.service_model.protocol == "rest-json":
        found = json.loads(body)
        yield from [(payload, found)] if payload else found.items()
    elif body and isinstance(whole, StructureShape):
        found = _from_xml(whole, ET.fromstring(body))  # noqa: S314  # what our own client sent
        yield from [(payload, found)] if payload else found.items()


def _from_xml(shape: Shape, element: ET.Element) -> Any:
    if isinstance(shape, StructureShape):
        return dict(_members(shape, element))
    if isinstance(shape, ListShape):
        return [_from_xml(shape.member, child) for child in element]
    return scalar(shape, element.text or "")


def _members(shape: StructureShape, element: ET.Element) -> Iterator[tuple[str, Any]]:
    known = set()
    for name, member in shape.members.items():
        many = isinstance(member, ListShape) and member.serialization.get("flattened")
        tag = (many and member.member.serialization.get("name")) or member.serialization.get("name", name)
        known.add(tag)
        children = [child for child in element if _bare(child) == tag]
        if children:
            yield name, [_from_xml(member.member, one) for one in children] if many else _from_xml(member, children[0])
    for child in element:
        if _bare(child) not in known:
            yield _bare(child), child.text


def _bare(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]

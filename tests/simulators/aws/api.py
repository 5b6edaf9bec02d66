# SPDX-License-Identifier: GPL-3.0-or-later
"""What AWS's own service descriptions say of a request: which operation it is, what its parameters are, whether they fit.

botocore carries these descriptions (the same that every AWS client is made from), so a request that a real service would
refuse for its form is refused here as well, and no operation's address is written down twice.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import parse_qs, unquote

import botocore.session
from botocore.model import ListShape, MapShape, OperationModel, ServiceModel, Shape, StructureShape
from botocore.validate import ParamValidator

from . import wire

# The name in a request's signature, where it is not the name of the description.
SIGNED_AS = {"elasticfilesystem": "efs", "tagging": "resourcegroupstaggingapi"}
SEPARATORS = " \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
READING = re.compile(r"^(Describe|Get|Head|List|Lookup|Simulate|Assume|BatchGet|Decode)")


class Refused(Exception):
    """An error of the service, as its clients know it."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code, self.message, self.status = code, message, status


@dataclass(frozen=True)
class Asked:
    """One request, understood."""

    service: str
    operation: str
    region: str
    params: dict[str, Any]
    role: str = ""
    """ARN of the role with which a pod asks."""

    @property
    def writes(self) -> bool:
        return not READING.match(self.operation)


@cache
def description(service: str) -> ServiceModel:
    loader = botocore.session.get_session().get_component("data_loader")
    return ServiceModel(loader.load_service_model(service, "service-2"), service)


def protocol(service: str) -> str:
    """The protocol of requests that name their operation in X-Amz-Target is JSON, also where the service has another one besides."""
    found = str(description(service).protocol)
    return "json" if found == "smithy-rpc-v2-cbor" else found


@cache
def routes(service: str) -> list[tuple[str, re.Pattern[str], OperationModel]]:
    """(method, path pattern, operation), the most literal paths first: /file-systems/policy before /file-systems/{id}."""
    found = []
    for name in description(service).operation_names:
        operation = description(service).operation_model(name)
        path = operation.http["requestUri"].split("?", 1)[0]
        escaped = re.sub(r"\\\{(\w+)\\?(\\\+)?\\\}", lambda m: f"(?P<{m[1]}>{'.+' if m[2] else '[^/]+'})", re.escape(path))
        found.append((operation.http["method"], re.compile(f"^{escaped}/?$"), operation))
    return sorted(found, key=lambda row: row[1].pattern.count("(?P<"))


def understand(service: str, region: str, method: str, path: str, query: str, headers: dict[str, str], body: bytes) -> Asked | None:
    """A request of a REST service; nothing where its description knows no such address.

    S3 tells operations at one address apart by words of the query, /{Bucket}?tagging, and by headers: a copy has x-amz-copy-source.
    """
    asked = {name.lower() for name in parse_qs(query, keep_blank_values=True)} | headers.keys()
    found = [
        (words(operation), pattern.match(path), operation)
        for desired, pattern, operation in routes(service)
        if desired == method and pattern.match(path) and words(operation) <= asked
    ]
    if not found:
        return None
    _words, match, operation = max(found, key=lambda row: len(row[0]))
    labels = {name: unquote(value) for name, value in match.groupdict().items()} if match else {}
    return Asked(service, operation.name, region, wire.from_rest(operation, labels, query, headers, body))


def words(operation: OperationModel) -> set[str]:
    """What has to be in the query or the headers of a request for this operation."""
    _path, _mark, query = operation.http["requestUri"].partition("?")
    shape = operation.input_shape
    required = [shape.members[name].serialization for name in shape.required_members] if shape else []
    named = {one["name"].lower() for one in required if one.get("location") in ("querystring", "header")}
    return {name.lower() for name in parse_qs(query, keep_blank_values=True)} | named


# How each service says that a request does not fit its description.
UNFIT = {
    "ec2": "InvalidParameterValue",
    "efs": "BadRequest",
    "eks": "InvalidParameterException",
    "iam": "ValidationError",
    "s3": "MalformedXML",
}


def check(asked: Asked) -> None:
    """Refuse what the description does not allow: missing and unknown members, wrong types, values, lengths and patterns."""
    if problems := unfit(asked.service, asked.operation, asked.params):
        raise Refused(UNFIT.get(asked.service, "ValidationException"), f"{asked.operation}: {'; '.join(problems)}")
    refuse_reserved_tags(asked)


def tag_keys(params: Any) -> Iterator[str]:
    """The keys of all tags of a request: EKS has a map, the others lists of pairs, EC2 and S3 below other members."""
    for name, value in params.items() if isinstance(params, dict) else ():
        if name == "tags" and isinstance(value, dict):
            yield from value
        elif name in ("Tags", "TagSet") and isinstance(value, list):
            yield from (str(row["Key"]) for row in value if isinstance(row, dict) and "Key" in row)
        else:
            for one in value if isinstance(value, list) else [value]:
                yield from tag_keys(one)


def refuse_reserved_tags(asked: Asked) -> None:
    """Keys that begin with aws: are AWS's own (buildkite/elastic-ci-stack-for-aws#856 with EC2's code and message; the other message:
    aws-cloudformation/aws-cloudformation-resource-providers-rolesanywhere, TagUtils). S3 gets those back that it has given itself."""
    if asked.service == "s3" or not asked.writes or asked.operation.startswith(("Untag", "Delete")):
        return
    for key in tag_keys(asked.params):
        if key.lower().startswith("aws:") and asked.service == "ec2":
            raise Refused(
                "InvalidTagKey.Malformed", f"The tag key '{key}' is not valid. Tag keys starting with 'aws:' are reserved for internal use."
            )
        if key.lower().startswith("aws:"):
            raise Refused(UNFIT.get(asked.service, "ValidationException"), "aws: prefixed tag key names are not allowed for external use.")


def unfit(service: str, operation: str, params: dict[str, Any]) -> list[str]:
    """What does not fit the description of an operation."""
    shape = description(service).operation_model(operation).input_shape
    if shape is None:
        return []
    report = ParamValidator().validate(params, shape)
    return [*([report.generate_report()] if report.has_errors() else []), *_beyond(shape, params, "input")]


def _beyond(shape: Shape, value: Any, path: str) -> Iterator[str]:
    """What botocore's own check lets pass: unknown members, values outside an enumeration, and what is too long or too large."""
    if isinstance(shape, StructureShape) and isinstance(value, dict):
        for name, item in value.items():
            if name in shape.members:
                yield from _beyond(shape.members[name], item, f"{path}.{name}")
            else:
                yield f"{path}.{name} is not known; there are {', '.join(shape.members)}"
    elif isinstance(shape, ListShape) and isinstance(value, list):
        yield from _too_much(shape, len(value), path)
        for index, item in enumerate(value):
            yield from _beyond(shape.member, item, f"{path}[{index}]")
    elif isinstance(shape, MapShape) and isinstance(value, dict):
        for key, item in value.items():
            yield from _beyond(shape.key, key, f"{path} (key)")
            yield from _beyond(shape.value, item, f"{path}.{key}")
    elif getattr(shape, "enum", None) and value not in shape.enum:
        yield f"{path} is {value!r}; it is one of {', '.join(shape.enum)}"
    elif shape.type_name == "string" and isinstance(value, str):
        yield from _unfit_text(shape, value, path)
    elif isinstance(value, int | float):
        yield from _too_much(shape, value, path)


def _too_much(shape: Shape, value: float, path: str) -> Iterator[str]:
    most = shape.metadata.get("max")
    if most is not None and value > most:
        yield f"{path} has {value}; it must be less than or equal to {most}"


def _unfit_text(shape: Shape, value: str, path: str) -> Iterator[str]:
    """Length and pattern, which botocore leaves to the service."""
    longest, pattern = shape.metadata.get("max"), shape.metadata.get("pattern")
    if longest is not None and len(value) > longest:
        yield f"{path} is '{value}'; it must have length less than or equal to {longest}"
    # Python knows no classes of Unicode: letters and numbers are \\w, separators are written out.
    known = (pattern or "").replace("\\p{L}\\p{Z}\\p{N}", SEPARATORS + "\\w")
    if known and "\\p{" not in known and not re.search(f"^(?:{known})$", value):
        yield f"{path} is '{value}'; it must satisfy regular expression pattern: {pattern}"

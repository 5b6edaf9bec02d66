# SPDX-License-Identifier: GPL-3.0-or-later
"""RabbitMQ's format of definitions: the kinds of objects, their fields, and rows as the broker exports them.

Seen in the answers of ``GET /api/definitions`` of 3.10.8 and 4.0.5. Everything here is pure.
"""

from __future__ import annotations

import dataclasses
import json
import re
import typing as t
from collections.abc import Iterable, Iterator, Mapping

from ..._core.errors import InvalidInput
from ..._core.sensitive import Sensitive
from .publish import EXCHANGE_OF_STUDIOML, STUDIOML

Row = dict[str, t.Any]
Key = tuple[str, ...]
Document = dict[str, dict[Key, Row]]
"""Objects by kind and key. A field that a row does not have accepts any live value."""

QUEUE_TYPE = "x-queue-type"
VHOST_LIMITS = "vhost-limits"
_IDENTITY = "internal_cluster_id"
"""The global parameter by which a cluster knows its own members (rabbit_nodes.erl): another cluster's is not taken over."""
_OPERATOR_POLICY = "operator_policy"
"""The component of parameters under which an export lists operator policies (3.10.8)."""
_RESERVED = {
    ("exchanges", "name"): re.compile(r"|amq\..*"),
    ("queues", "name"): re.compile(r"amq\..*"),
    ("bindings", "source"): re.compile(""),
    ("bindings", "destination"): re.compile(r"|amq\.gen-.*"),
}
"""Names of what the broker makes itself. It skips them in a file (rabbit_definitions.erl, 4.2), and refuses requests for them."""
_HASHED_BY_MD5 = re.compile(r"3\.[0-5]\.")
_MD5 = "rabbit_password_hashing_md5"
SECRETS = ("password", "password_hash")
MANAGEMENT_TAGS = ("administrator", "management", "monitoring", "policymaker")
"""Each of them lets a user log in to the management API."""
# What Go's net/url leaves unescaped in the user part of a URL, without the dollar sign, which the runner expands as a variable.
_RUNNER_WORD = re.compile(r"[A-Za-z0-9._~&+,;=-]+")


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of object. ``new`` has its fields, with the values that a new object gets; a field with None may have any JSON."""

    label: str
    path: str
    key: Key
    new: Mapping[str, t.Any]
    required: Key = ()
    kept: Key = ()
    """Fields that an existing object keeps where the row does not have them. Others get the value of ``new``."""
    fixed: bool = False
    """The broker never changes the fields of an existing object."""
    by_vhost: bool = False
    """The management API lists the objects of one vhost; otherwise those of all vhosts at once."""
    optional: Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    """Parts of the key that a row may leave out."""

    def key_of(self, row: Row) -> Key:
        """Return the key of a row; arguments are part of the key of a binding."""
        return tuple(json.dumps(row[f], sort_keys=True) if isinstance(row[f], dict) else row[f] for f in self.key)

    def label_of(self, row: Row) -> str:
        """Return the name of an object in messages: ``queue x in vhost /``."""
        return self.label.format_map(row)

    def path_of(self, row: Row) -> Key:
        """Return the path of an object in the management API."""
        return (self.path, *self.key_of(row))


_RIGHTS = {"configure": "^$", "write": "^$", "read": "^$"}
# In the order in which the broker can create them.
KINDS: t.Final[dict[str, Kind]] = {
    "vhosts": Kind(
        "vhost {name}", "vhosts", ("name",),
        {"description": "", "tags": [], "tracing": False, "default_queue_type": ""},
        kept=("description", "tags", "tracing", "default_queue_type"),
    ),
    "users": Kind("user {name}", "users", ("name",), {"tags": [], "limits": {}}, kept=("tags", "limits")),
    "permissions": Kind("permissions of user {user} in vhost {vhost}", "permissions", ("vhost", "user"), _RIGHTS),
    "topic_permissions": Kind(
        "topic permissions of user {user} at exchange {exchange} in vhost {vhost}", "topic-permissions",
        ("vhost", "user", "exchange"), {"write": "^$", "read": "^$"},
    ),
    "parameters": Kind(
        "limits of vhost {vhost}", "parameters", ("component", "vhost", "name"), {"value": {}}, required=("value",),
        optional={"component": VHOST_LIMITS, "name": "limits"},
    ),
    "global_parameters": Kind("global parameter {name}", "global-parameters", ("name",), {"value": None}, required=("value",)),
    "policies": Kind(
        "policy {name} in vhost {vhost}", "policies", ("vhost", "name"),
        {"pattern": "", "definition": {}, "priority": 0, "apply-to": "all"}, required=("pattern", "definition"),
        by_vhost=True,
    ),
    "operator_policies": Kind(
        "operator policy {name} in vhost {vhost}", "operator-policies", ("vhost", "name"),
        {"pattern": "", "definition": {}, "priority": 0, "apply-to": "queues"}, required=("pattern", "definition"),
        by_vhost=True,
    ),
    "exchanges": Kind(
        "exchange {name} in vhost {vhost}", "exchanges", ("vhost", "name"),
        {"type": "direct", "durable": True, "auto_delete": False, "internal": False, "arguments": {}},
        kept=("arguments",), fixed=True, by_vhost=True,
    ),
    "queues": Kind(
        "queue {name} in vhost {vhost}", "queues", ("vhost", "name"),
        {"type": "classic", "durable": True, "auto_delete": False, "arguments": {}},
        kept=("arguments",), fixed=True, by_vhost=True,
    ),
    "bindings": Kind(
        "binding of {destination_type} {destination} to exchange {source} in vhost {vhost} by key '{routing_key}'",
        "bindings", ("vhost", "source", "destination_type", "destination", "routing_key", "arguments"), {},
        by_vhost=True, optional={"destination_type": "queue", "routing_key": "", "arguments": {}},
    ),
}  # fmt: skip


def parse(given: Mapping[str, Iterable[Row] | None], vhost: str = "/", *, keys_only: bool = False) -> Document:
    """Return the objects of a document; InvalidInput names a row that no broker would take. Keys that are no kind are ignored.

    ``vhost``: that of rows without one, such as those of an export of one vhost. ``keys_only``: the rows name objects to delete.
    """
    found: Document = {name: {} for name in KINDS}
    for name, kind in KINDS.items():
        for row in given.get(name) or ():
            if not isinstance(row, dict):
                raise InvalidInput(f"{name}: a row is not a mapping of fields.")
            clean = _row(name, kind, row, vhost, keys_only=keys_only)
            if found[name].get(kind.key_of(clean), clean) != clean:
                raise InvalidInput(f"{name}: there are several rows for {kind.label_of(clean)}, and only one can be.")
            found[name][kind.key_of(clean)] = clean
    return found


def exported(text: str, where: str) -> tuple[dict[str, list[Row]], list[str]]:
    """Return the rows of a file of definitions, and what in it is skipped. WHERE names the file in messages.

    Exports of 3.0 to 3.5 have hashes by MD5 and name no algorithm (rabbit_auth_backend_internal.erl, 4.2).
    """
    why = "A field has a value of another kind than RabbitMQ gives it."
    try:
        found = json.loads(text)
        rows = {name: list(found.get(name) or []) for name in KINDS}
        limits, operator = ([row for row in rows["parameters"] if row["component"] == one] for one in (VHOST_LIMITS, _OPERATOR_POLICY))
        rows["operator_policies"] += [{"vhost": row["vhost"], "name": row["name"], **row["value"]} for row in operator]
        others = [row for row in rows["parameters"] if row not in (*limits, *operator)]
        ignored = [f"{row['component']} {row['name']}" for row in others]
        rows["global_parameters"] = [row for row in rows["global_parameters"] if row["name"] != _IDENTITY]
        for (name, field), word in _RESERVED.items():
            reserved = [row for row in rows[name] if isinstance(row, dict) and word.fullmatch(str(row.get(field)))]
            rows[name] = [row for row in rows[name] if row not in reserved]
            ignored += [f"{name[:-1]} with {field} '{row[field]}'" for row in reserved]
        if _HASHED_BY_MD5.match(str(found.get("rabbit_version"))):
            rows["users"] = [{"hashing_algorithm": _MD5, **row} if "password_hash" in row else row for row in rows["users"]]
    except json.JSONDecodeError as error:
        why = f"Line {error.lineno}, column {error.colno}: {error.msg}."
    except KeyError as error:
        why = f"A row has no {error}."
    except (ValueError, AttributeError, TypeError):
        pass
    else:
        return {**rows, "parameters": limits}, ignored
    raise InvalidInput(f"{where} is not a file of definitions. {why}", "RabbitMQ exports one as JSON: rabbitmqctl export_definitions.")


def references(name: str, row: Row) -> Iterator[tuple[str, Row]]:
    """Yield the kinds and keys of the objects that must exist before the row can be written."""
    if "vhost" in KINDS[name].key:
        yield "vhosts", {"name": row["vhost"]}
    if "user" in row:
        yield "users", {"name": row["user"]}
    if name == "bindings":
        yield "exchanges", {"vhost": row["vhost"], "name": row["source"]}
        yield f"{row['destination_type']}s", {"vhost": row["vhost"], "name": row["destination"]}


def studioml(queues: Iterable[str]) -> dict[str, list[Row]]:
    """Return the rows of queues that StudioML's runners find: a runner lists the bindings of the exchange."""
    names = list(queues)
    bindings = [{"source": STUDIOML, "destination": name, "routing_key": f"StudioML.{name}"} for name in names]
    exchanges = [{"name": STUDIOML, **EXCHANGE_OF_STUDIOML}] if names else []
    return {"queues": [{"name": name} for name in names], "exchanges": exchanges, "bindings": bindings}


def live_row(name: str, found: Row) -> Row:
    """Return the key and the fields of an object as the management API lists it, with values that only deletions need."""
    kind = KINDS[name]
    row: Row = {field: found[field] for field in kind.key}
    row |= {field: found.get(field, value) for field, value in kind.new.items()}
    if name in ("vhosts", "users"):
        row["tags"] = _tags(row["tags"])
    if name == "vhosts":
        # 3.10 reports "undefined": it has no default type.
        row["default_queue_type"] = "" if row["default_queue_type"] == "undefined" else row["default_queue_type"] or ""
        # 4.0.5 reports a list without anything while the vhost of a broker that starts has no state yet.
        row["state"] = sorted(set((found.get("cluster_state") or {}).values()))
    if name == "queues":
        row["arguments"] = {key: value for key, value in found["arguments"].items() if key != QUEUE_TYPE}
        row["messages"] = found.get("messages")
    if name == "bindings":
        row["properties_key"] = found["properties_key"]
    if name == "users":
        row["password_hash"] = Sensitive(found["password_hash"])
        row["hashing_algorithm"] = found.get("hashing_algorithm") or _MD5
    return row


def body_of(name: str, row: Row) -> Row:
    """Return the body of the request that writes a whole object."""
    kind = KINDS[name]
    if name == "bindings":
        return {"routing_key": row["routing_key"], "arguments": row["arguments"]}
    body = {field: row.get(field, value) for field, value in kind.new.items()}
    if name in ("vhosts", "users"):
        body["tags"] = ",".join(body["tags"])
    if name == "vhosts" and not body["default_queue_type"]:
        del body["default_queue_type"]
    if name == "topic_permissions":
        body["exchange"] = row["exchange"]
    if name == "queues":
        # With the type, or the vhost's default type would decide.
        body["arguments"] = {**body["arguments"], QUEUE_TYPE: body.pop("type")}
    return body


def check_runners(document: Document, names: Iterable[str]) -> None:
    """Refuse users that a StudioML runner cannot log in with.

    The runner takes the escaped user part of AMQP_URL apart at every colon and escapes it again (internal/runner/rmq.go of
    studio-go-runner 0.14), after it has replaced variables: only what needs no escape arrives as it was.
    """
    for name in names:
        user = document["users"].get((name,))
        if user is None:
            raise InvalidInput(f"studioml_runners: {name} is none of the users of the task.")
        password = user["password"].reveal() if "password" in user else None
        if password and ":" in password:
            raise InvalidInput(
                f"users: the password of {name} has a colon. The StudioML runner takes user:password of its URL apart at every colon, "
                "and would not start.",
                "Choose a password of letters, digits and any of - . _ ~ & + , ; =",
            )
        for what, value in (("name", name), ("password", password)):
            if value is not None and not _RUNNER_WORD.fullmatch(value):
                raise InvalidInput(
                    f"users: the {what} of {name} has characters that the StudioML runner escapes twice in its URL, or replaces as a "
                    "variable.",
                    "Use letters, digits and any of - . _ ~ & + , ; =",
                )
        if not set(user.get("tags", ())) & set(MANAGEMENT_TAGS):
            raise InvalidInput(
                f"users: the StudioML runner lists bindings by the management API, and {name} could not log in there.",
                f"Give it one of the tags {', '.join(MANAGEMENT_TAGS)}; management is enough.",
            )


def _row(name: str, kind: Kind, given: Row, vhost: str, *, keys_only: bool) -> Row:
    row = {field: value for field, value in {**(given.get("metadata") or {}), **given}.items() if value is not None}
    if row.get("default_queue_type") == "undefined":
        del row["default_queue_type"]  # as 3.11 to 3.13 export none, with which a broker does not start (rabbitmq-server#10468, #10891)
    if name == "queues":
        _take_type(row)
    if not keys_only:
        row = {**{field: value for field, value in kind.new.items() if field not in kind.kept + kind.required}, **row}
    row = {**({"vhost": vhost} if "vhost" in kind.key else {}), **kind.optional, **row}
    known = {**dict.fromkeys(kind.key, ""), **kind.optional, **({} if keys_only else kind.new)}
    if name == "users" and not keys_only:
        known |= dict.fromkeys((*SECRETS, "hashing_algorithm"), "")
    label = next((f" {given[field]}" for field in ("name", "user", "source") if given.get(field)), "")
    missing = [field for field in (*kind.key, *(() if keys_only else kind.required)) if field not in row]
    if missing:
        raise InvalidInput(f"{name}: a row{label} has no {', '.join(missing)}.")
    # An export of vhosts also has their metadata, and limits that are empty: those in effect are parameters.
    unknown = row.keys() - known.keys() - ({"metadata", "limits", *(given.get("metadata") or ())} if name == "vhosts" else set())
    if unknown:
        raise InvalidInput(f"{name}: the row{label} has {', '.join(sorted(unknown))}, which is no field of its kind.",
                           f"Its fields are {', '.join(known)}.")  # fmt: skip
    if name == "bindings" and row["destination_type"] not in ("queue", "exchange"):
        raise InvalidInput(f"bindings: destination_type '{row['destination_type']}' is neither queue nor exchange.")
    if name in ("vhosts", "users") and "tags" in row:
        row["tags"] = _tags(row["tags"])
    for field in row.keys() & known.keys():
        if known[field] is None:
            continue
        if not isinstance(row[field], type(known[field])) or isinstance(row[field], bool) is not isinstance(known[field], bool):
            raise InvalidInput(f"{name}: {field} of the row{label} is not of type {type(known[field]).__name__}.")
    clean = {field: value for field, value in row.items() if field in known}
    _check(name, clean, label)
    return {field: Sensitive(value) if field in SECRETS else value for field, value in clean.items()}


def _take_type(row: Row) -> None:
    """Move the type of a queue out of its arguments, where the broker's format has it."""
    arguments = dict(row.get("arguments") or {})
    named = arguments.pop(QUEUE_TYPE, None)
    if "arguments" in row:
        row["arguments"] = arguments
    if named and row.get("type", named) != named:
        raise InvalidInput(f"queues: the type of {row.get('name')} is {row['type']}, and {named} in its arguments.")
    if named:
        row["type"] = named


def _check(name: str, row: Row, label: str) -> None:
    """Refuse rows that the broker would misread, or refuse after other objects were written."""
    if row.get("password") == "":
        raise InvalidInput(f"users: the password of{label} is empty. RabbitMQ sets an empty password and refuses every login with it.")
    if any("," in tag for tag in row.get("tags", ())):
        raise InvalidInput(f"{name}: a tag of{label} has a comma, which separates tags.")
    if name == "queues" and row.get("type", "classic") != "classic" and (not row["durable"] or row["auto_delete"]):
        raise InvalidInput(
            f"queues:{label}: a {row['type']} queue is always durable and never deleted by itself.",
            "Leave durable and auto_delete out, or choose type: classic.",
        )
    if name == "parameters" and row["component"] != VHOST_LIMITS:
        raise InvalidInput(f"parameters: {row['component']} is not managed, only {VHOST_LIMITS} is.")


def _tags(value: t.Any) -> t.Any:
    """Return sorted tags; before 3.9 the broker had one text with commas."""
    parts = value.split(",") if isinstance(value, str) else value
    return sorted({str(part) for part in parts if part}) if isinstance(parts, list) else value

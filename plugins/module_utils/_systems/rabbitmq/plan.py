# SPDX-License-Identifier: GPL-3.0-or-later
"""The comparison of a document of definitions with a broker: the requests, and the changes that a user sees. Pure.

The management API returns a password as a salted hash only. Whether the desired one is set is computed from that hash, and not tried by
a login: a login tells right from wrong only for users with a management tag, counts as a failed login where it is wrong, fails for other
reasons (guest from another host, a limit, a backend such as LDAP), and sends the password once more.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import hmac
import typing as t

from ..._core.deletion import Candidate, why_kept
from ..._core.errors import Immutable, InvalidInput
from ..._core.sensitive import Sensitive
from .document import KINDS, SECRETS, Document, Key, Kind, Row, body_of, references

_HASHES = {f"rabbit_password_hashing_{name}": name for name in ("sha256", "sha512", "md5")}
_SALT = 4
_NAMED = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class Wanted:
    """The objects that a broker must have, and those it must not have. Objects in neither document belong to other owners."""

    present: Document
    absent: Document
    update_password: bool = True
    purge_permissions: bool = False
    allow_lockout: bool = False
    delete_data: bool = False


@dataclasses.dataclass(frozen=True)
class ApiRequest:
    """One request that changes something; ``says`` describes it to users."""

    method: t.Literal["PUT", "POST", "DELETE"]
    path: Key
    says: str
    body: Row | None = None
    query: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    password: Sensitive | None = None
    """The new password of the user that the task logs in as: requests after this one need it."""
    locks_out: bool = False
    """Whether later requests of the same user fail; the task allows it."""
    needs: tuple[tuple[str, Row], ...] = ()
    """Objects that must exist before."""
    label: str = ""
    """The object that a deletion is about, whose data the broker may protect."""


@dataclasses.dataclass
class RequestPlan:
    """The requests, the fields that they change, by object, and the reasons for which objects are kept.

    A new object is only in ``after``, a deleted one only in ``before``.
    """

    steps: list[ApiRequest] = dataclasses.field(default_factory=list)
    before: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    after: dict[str, t.Any] = dataclasses.field(default_factory=dict)
    kept: list[str] = dataclasses.field(default_factory=list)


def plan(wanted: Wanted, live: Document, user: str) -> RequestPlan:
    """Return the requests from the live objects to the desired ones; USER sends them."""
    _check_contradictions(wanted)
    made = _Comparison(wanted, live, user)
    for name in KINDS:
        for key, row in wanted.present[name].items():
            made.write(name, row, live[name].get(key))
    for name in reversed(KINDS):
        for key in wanted.absent[name]:
            if key in live[name]:
                made.delete(name, live[name][key])
    if wanted.purge_permissions:
        made.purge()
    made.plan.steps.sort(key=lambda step: step.locks_out)
    return made.plan


def _check_contradictions(wanted: Wanted) -> None:
    """Refuse a document that deletes objects that it also defines, or that its rows need."""
    for name, rows in wanted.present.items():
        for key, row in rows.items():
            for other, need in ((name, key), *((kind, KINDS[kind].key_of(row)) for kind, row in references(name, row))):
                if need in wanted.absent[other]:
                    label = KINDS[other].label_of(wanted.absent[other][need])
                    raise InvalidInput(f"absent: {label} is also what the task should create or needs for it.")


class _Comparison:
    """Collects the plan."""

    def __init__(self, wanted: Wanted, live: Document, user: str) -> None:
        self.wanted, self.live, self.user = wanted, live, user
        self.plan = RequestPlan()

    def write(self, name: str, row: Row, found: Row | None) -> None:
        """Plan the creation or change of one object."""
        kind = KINDS[name]
        label = kind.label_of(row)
        fields = {field: row[field] for field in kind.new if field in row}
        if found is None:
            shown = {field: row.get(field, value) for field, value in kind.new.items()}
            self._show(label, None, shown)
            self._put(name, {**kind.new, **row}, f"create {label}", needs=tuple(references(name, row)))
            return
        # A version without default types of queues has none to change.
        differing = [f for f, value in fields.items() if found[f] != value and (f != "default_queue_type" or found[f])]
        if differing and kind.fixed:
            raise _immutable(label, {f: found[f] for f in differing}, {f: fields[f] for f in differing})
        if differing:
            self._show(label, {f: found[f] for f in differing}, {f: fields[f] for f in differing})
        if name == "users":
            self._change_user(label, row, found, differing)
        elif differing:
            self._put(name, {**found, **fields}, f"change {', '.join(differing)} of {label}")

    def _change_user(self, label: str, row: Row, found: Row, differing: list[str]) -> None:
        whole = {**found, **{field: row[field] for field in differing}}
        what = list(differing)
        if self._password_differs(row, found):
            self._show(label, {"password": "(another one)"}, {"password": "(that of the task)"})
            whole |= {field: row[field] for field in (*SECRETS, "hashing_algorithm") if field in row}
            what.insert(0, "password")
        if what:
            locks_out = "tags" in differing and self._loses_access(label, found, row["tags"])
            self._put("users", whole, f"change {', '.join(what)} of {label}", locks_out=locks_out)
        # A PUT adds limits to those that the user has.
        for limit in sorted(found["limits"].keys() - row["limits"].keys()) if "limits" in differing else ():
            self._add(ApiRequest("DELETE", ("user-limits", row["name"], limit), f"remove {limit} of {label}"))

    def delete(self, name: str, found: Row) -> None:
        """Plan the deletion of one object, unless it has data and the task does not allow to delete data."""
        kind, label = KINDS[name], KINDS[name].label_of(found)
        if name == "users" and found["name"] == self.user and not self.wanted.allow_lockout:
            raise InvalidInput(
                f"absent: {label} is the one that this task logs in as; without it no further login may be possible.",
                "Log in as another administrator, or set allow_lockout: true.",
            )
        why = why_kept(self._candidate(name, label, found), delete_data=self.wanted.delete_data)
        if why:
            self.plan.kept.append(f"{label} was kept: it {why}.")
            return
        self._show(label, {field: found[field] for field in (*kind.key, *kind.new) if field in found}, None)
        guarded = not self.wanted.delete_data
        query = {"if-empty": "true"} if guarded and found.get("type") == "classic" and name == "queues" else {}
        locks_out = name == "users" and found["name"] == self.user
        self._add(ApiRequest("DELETE", _path(name, kind, found), f"delete {label}", query=query,
                             label=label if guarded else "", locks_out=locks_out))  # fmt: skip

    def purge(self) -> None:
        """Plan the removal of permissions that the document's users have and the document does not name."""
        for name in ("permissions", "topic_permissions"):
            for key, found in self.live[name].items():
                if (found["user"],) in self.wanted.present["users"] and key not in self.wanted.present[name]:
                    self.delete(name, found)

    def _candidate(self, name: str, label: str, found: Row) -> Candidate:
        data = unknown = ""
        if name == "queues":
            # The broker checks atomically for classic queues only. The number of messages of other queues is up to 5 seconds old.
            data = f"holds {found['messages']} messages" if found["messages"] else ""
            counted = found["messages"] is not None or found["type"] == "classic" or self.wanted.delete_data
            unknown = "" if counted else "its messages were not counted yet"
        if name == "vhosts":
            gone = {key[1] for key in self.wanted.absent["queues"] if key[0] == found["name"]}
            data = vhost_data([queue for queue in found["queues"] if queue not in gone])
        return Candidate(label, marked=True, recorded=True, data=data, unknown=unknown)

    def _put(self, name: str, whole: Row, says: str, **more: t.Any) -> None:
        body, kind = body_of(name, whole), KINDS[name]
        if name == "bindings":
            self._add(ApiRequest("POST", _path(name, kind, whole), says, body, **more))
            return
        path = kind.path_of(whole)
        if name == "topic_permissions":
            path = path[:-1]
        if name == "users":
            # A PUT replaces the user: without a password, or the hash that was read, no login by password would work any more.
            algorithm = whole.get("hashing_algorithm")
            hashed = {"password_hash": whole.get("password_hash", ""), **({"hashing_algorithm": algorithm} if algorithm else {})}
            body |= {"password": whole["password"]} if "password" in whole else hashed
            if "password" in whole and whole["name"] == self.user:
                more["password"] = whole["password"]
        self._add(ApiRequest("PUT", path, says, body, **more))

    def _password_differs(self, row: Row, found: Row) -> bool:
        if not self.wanted.update_password:
            return False
        if "password" in row:
            return not is_password(row["password"], found["password_hash"], found["hashing_algorithm"], row["name"])
        return "password_hash" in row and row["password_hash"] != found["password_hash"]

    def _loses_access(self, label: str, found: Row, tags: list[str]) -> bool:
        loses = found["name"] == self.user and "administrator" in found["tags"] and "administrator" not in tags
        if loses and not self.wanted.allow_lockout:
            raise InvalidInput(
                f"users: {label} is the one that this task logs in as, and would lose the tag administrator.",
                "Log in as another administrator, or set allow_lockout: true.",
            )
        return loses

    def _add(self, step: ApiRequest) -> None:
        self.plan.steps.append(step)

    def _show(self, label: str, before: Row | None, after: Row | None) -> None:
        for side, fields in ((self.plan.before, before), (self.plan.after, after)):
            if fields is not None:
                side[label] = {**side.get(label, {}), **fields}


def vhost_data(queues: list[str]) -> str:
    """Return the data that would be lost with a vhost. Numbers of messages are seconds old; the list of queues is exact."""
    more = f" and {len(queues) - _NAMED} more" if len(queues) > _NAMED else ""
    return f"has queues ({', '.join(sorted(queues)[:_NAMED])}{more}), which may hold messages" if queues else ""


def is_password(password: Sensitive, hashed: Sensitive, algorithm: str, name: str) -> bool:
    """Return whether HASHED, base64 of four bytes of salt and the hash of salt and password, is that of PASSWORD."""
    if algorithm not in _HASHES:
        raise InvalidInput(
            f"users: the password of {name} is hashed by {algorithm}, which this module cannot compare.",
            "Set update_password: on_create to leave it as it is.",
        )
    raw = base64.b64decode(hashed.reveal())
    salt, stored = raw[:_SALT], raw[_SALT:]
    computed = hashlib.new(_HASHES[algorithm], salt + password.reveal().encode(), usedforsecurity=False).digest()
    return hmac.compare_digest(stored, computed)


def _path(name: str, kind: Kind, row: Row) -> Key:
    if name != "bindings":
        return kind.path_of(row)
    ends = ("e", row["source"], row["destination_type"][0], row["destination"])
    return ("bindings", row["vhost"], *ends, *([row["properties_key"]] if "properties_key" in row else []))


def _immutable(label: str, before: Row, after: Row) -> Immutable:
    return Immutable(
        f"{label} exists with {_difference(before)}, and {_difference(after)} is desired: it keeps what it was created with.",
        "Limits and such can be set by a policy. For the rest delete it first, in a task that has it in absent "
        "(messages are deleted with delete_data: true), or choose another name.",
        details={"before": before, "after": after},
    )


def _difference(fields: Row) -> str:
    words = []
    for field, value in fields.items():
        if field == "arguments":
            words.append(" ".join(f"{key}={item}" for key, item in sorted(value.items())) or "no arguments")
        else:
            words.append(f"{field} {str(value).lower() if isinstance(value, bool) else value}")
    return ", ".join(words)

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Users of the broker: tags, password, permissions, limits.

The API returns a password only as a salted hash. Whether the desired one is set is computed from that hash, and not tried by a login:
a login tells right from wrong only for users with a management tag, counts as a failed login where it is wrong, fails for other reasons
(guest from another host, a limit, a backend such as LDAP), and sends the password once more.

Private to the collection.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import hmac
import re
import typing as t
from collections.abc import Mapping, Sequence

from ..._core.deletion import Candidate
from ..._core.errors import InvalidInput, Unauthorized
from ..._core.sensitive import Sensitive
from .api import ManagementApi
from .plan import Comparison, Live, Plan, Step

_HASHES = {f"rabbit_password_hashing_{name}": name for name in ("sha256", "sha512", "md5")}
_SALT = 4
MANAGEMENT_TAGS = ("administrator", "management", "monitoring", "policymaker")
"""Each of them lets a user log in to the management API."""
# What Go's net/url leaves unescaped in the user part of a URL, without the dollar sign, which the runner expands as a variable.
_RUNNER_WORD = re.compile(r"[A-Za-z0-9._~&+,;=-]+")


@dataclasses.dataclass(frozen=True)
class Permission:
    """Regular expressions for the names of what a user may configure, write to and read from in a vhost."""

    vhost: str
    configure: str
    write: str
    read: str


@dataclasses.dataclass(frozen=True)
class TopicPermission:
    """Regular expressions for the routing keys that a user may write and read with at a topic exchange."""

    vhost: str
    exchange: str
    write: str
    read: str


Rights: t.TypeAlias = "Sequence[Permission] | Sequence[TopicPermission]"


@dataclasses.dataclass(frozen=True, kw_only=True)
class User:
    """A desired user. Of permissions, those that are named are managed; others stay, unless PURGE_PERMISSIONS."""

    name: str
    password: Sensitive | None = None
    update_password: bool = True
    tags: tuple[str, ...] | None = None
    permissions: tuple[Permission, ...] = ()
    topic_permissions: tuple[TopicPermission, ...] = ()
    purge_permissions: bool = False
    limits: Mapping[str, int | None] = dataclasses.field(default_factory=dict)
    own: bool = False
    """It is the user that we log in as."""
    allow_lockout: bool = False
    data_option: t.ClassVar[str] = ""
    delete_data: t.ClassVar[bool] = False

    @property
    def label(self) -> str:
        return f"user {self.name}"

    def unready(self, _live: Live | None) -> str | None:
        return None

    def read(self, api: ManagementApi) -> Live | None:
        found = api.get("users", self.name)
        if found is None:
            return None
        return {
            "name": self.name,
            "tags": _tags(found["tags"]),
            "password_hash": Sensitive(found["password_hash"]),
            "hashing_algorithm": found.get("hashing_algorithm") or "rabbit_password_hashing_md5",
            "limits": found.get("limits") or {},
            "permissions": _rows(Permission, api.get("users", self.name, "permissions")),
            "topic_permissions": _rows(TopicPermission, api.get("users", self.name, "topic-permissions")),
        }

    def plan(self, live: Live | None) -> Plan:
        compare = Comparison()
        if live is None:
            self._create(compare)
        else:
            self._change(compare, live)
        have = live or {"permissions": [], "topic_permissions": [], "limits": {}}
        self._rights(compare, "permissions", have["permissions"], self.permissions)
        self._rights(compare, "topic_permissions", have["topic_permissions"], self.topic_permissions)
        compare.limits("user", self.name, have["limits"], self.limits)
        compare.steps.sort(key=lambda step: step.locks_out)
        return compare.plan()

    def plan_absent(self, live: Live) -> Plan:
        if self.own and not self.allow_lockout:
            raise InvalidInput(
                f"state: user {self.name} is the one that this task logs in as; without it nobody may be able to log in again.",
                "Log in as another administrator, or set allow_lockout: true.",
            )
        step = Step("DELETE", ("users", self.name), f"delete user {self.name}")
        return Plan((step,), shown(live) or {}, {}, Candidate(self.label, marked=True, recorded=True))

    def _create(self, compare: Comparison) -> None:
        tags = sorted(set(self.tags or ()))
        compare.before["user"], compare.after["user"] = None, {"name": self.name, "tags": tags}
        # Without either of the two the broker would also make a user that cannot log in by password, and some versions refuse.
        secret = {"password": self.password} if self.password else {"password_hash": ""}
        self._put(compare, {**secret, "tags": ",".join(tags)}, f"create user {self.name}")

    def _change(self, compare: Comparison, live: Live) -> None:
        tags = None if self.tags is None else sorted(set(self.tags))
        other_tags = compare.differs("tags", live["tags"], tags)
        other_password = self._password_differs(live)
        locks_out = other_tags and self._loses_access(live, tags or [])
        if other_password:
            compare.before["password"], compare.after["password"] = "(another one)", "(that of the task)"
        if not other_tags and not other_password:
            return
        # A PUT replaces the user: without a password, or the hash that was read, nobody could log in as it any more.
        secret = (
            {"password": self.password}
            if other_password
            else {"password_hash": live["password_hash"], "hashing_algorithm": live["hashing_algorithm"]}
        )
        says = " and ".join([*(["password"] if other_password else []), *(["tags"] if other_tags else [])])
        body = {**secret, "tags": ",".join(live["tags"] if tags is None else tags)}
        self._put(compare, body, f"change {says} of user {self.name}", locks_out=locks_out)

    def _put(self, compare: Comparison, body: dict[str, t.Any], says: str, *, locks_out: bool = False) -> None:
        login = self.password if self.own and "password" in body else None
        compare.steps.append(Step("PUT", ("users", self.name), says, body, password=login, locks_out=locks_out))

    def _password_differs(self, live: Live) -> bool:
        if self.password is None or not self.update_password:
            return False
        return not is_password(self.password, live["password_hash"], live["hashing_algorithm"], self.label)

    def _loses_access(self, live: Live, tags: Sequence[str]) -> bool:
        """Whether nothing can be asked as this user after the change; refused without the word for it."""
        loses = self.own and "administrator" in live["tags"] and "administrator" not in tags
        if loses and not self.allow_lockout:
            raise InvalidInput(
                f"tags: user {self.name} is the one that this task logs in as, and would lose the tag administrator.",
                "Log in as another administrator, or set allow_lockout: true.",
            )
        return loses

    def _rights(self, compare: Comparison, field: str, live: Rights, desired: Rights) -> None:
        """Compare by vhost, or by vhost and exchange; rights elsewhere are others' business."""
        have, want = {_key(row): row for row in live}, {_key(row): row for row in desired}
        leaving = sorted(have.keys() - want.keys()) if self.purge_permissions else []
        changed = [key for key, row in want.items() if have.get(key) != row]
        if not changed and not leaving:
            return
        compare.before[field] = [dataclasses.asdict(have[key]) for key in [*changed, *leaving] if key in have]
        compare.after[field] = [dataclasses.asdict(want[key]) for key in changed]
        kind = field.replace("_", "-")
        for key in changed:
            body = {name: value for name, value in dataclasses.asdict(want[key]).items() if name != "vhost"}
            says = f"{field} in {' '.join(key)}"
            compare.steps.append(Step("PUT", (kind, key[0], self.name), says, body, vhost=key[0]))
        for key in leaving:
            # Without the exchange the broker would remove those of every exchange.
            path = (kind, key[0], self.name, *key[1:])
            compare.steps.append(Step("DELETE", path, f"remove {field} in {' '.join(key)}"))


def log_in(broker: ManagementApi, wanted: User) -> None:
    """Find out with which password the user itself logs in: an earlier run may have changed it."""
    if not wanted.own or wanted.password is None:
        return
    try:
        broker.get("whoami")
    except Unauthorized as exc:
        broker.log_in(wanted.password)
        try:
            broker.get("whoami")
        except Unauthorized:
            raise exc from None


def check(user: User, *, runner: bool) -> None:
    """Refuse what the broker, or the StudioML RUNNER that the user is for, would take badly or never accept."""
    if user.password is not None and not user.password.reveal():
        raise InvalidInput("password: it is empty. RabbitMQ sets an empty password and refuses every login with it.")
    for option, rows in (("permissions", user.permissions), ("topic_permissions", user.topic_permissions)):
        keys = [_key(row) for row in rows]
        twice = sorted({" ".join(key) for key in keys if keys.count(key) > 1})
        if twice:
            raise InvalidInput(f"{option}: there are several for {', '.join(twice)}, and only one can be.")
    if any("," in tag for tag in user.tags or ()):
        raise InvalidInput("tags: a tag cannot have a comma, which separates tags.")
    if runner:
        _check_runner(user)


def _check_runner(user: User) -> None:
    """Refuse what a StudioML runner cannot log in with.

    The runner takes the escaped user part of AMQP_URL apart at every colon and escapes it again (internal/runner/rmq.go of
    studio-go-runner 0.14), after it has replaced variables: only what needs no escape arrives as it was.
    """
    if user.password and ":" in user.password.reveal():
        raise InvalidInput(
            "password: it has a colon. The StudioML runner takes user:password of its URL apart at every colon, and would not start.",
            "Choose a password of letters, digits and any of - . _ ~ & + , ; =",
        )
    for option, value in (("name", user.name), ("password", user.password.reveal() if user.password else None)):
        if value is not None and not _RUNNER_WORD.fullmatch(value):
            raise InvalidInput(
                f"{option}: it has characters that the StudioML runner escapes twice in its URL, or replaces as a variable.",
                "Use letters, digits and any of - . _ ~ & + , ; =",
            )
    if not set(user.tags or ()) & set(MANAGEMENT_TAGS):
        raise InvalidInput(
            f"tags: the StudioML runner lists bindings by the management API, and {user.name} could not log in there.",
            f"Give it one of the tags {', '.join(MANAGEMENT_TAGS)}; management is enough.",
        )


def is_password(password: Sensitive, hashed: Sensitive, algorithm: str, label: str) -> bool:
    """Whether HASHED, base64 of four bytes of salt and the hash of salt and password, is that of PASSWORD."""
    if algorithm not in _HASHES:
        raise InvalidInput(
            f"password: that of {label} is hashed by {algorithm}, which this module cannot compare.",
            "Set update_password: on_create to leave it as it is.",
        )
    raw = base64.b64decode(hashed.reveal())
    salt, stored = raw[:_SALT], raw[_SALT:]
    computed = hashlib.new(_HASHES[algorithm], salt + password.reveal().encode(), usedforsecurity=False).digest()
    return hmac.compare_digest(stored, computed)


def shown(live: Live | None) -> Live | None:
    """The user as a result has it: without its hash."""
    if live is None:
        return None
    rights = {field: [dataclasses.asdict(row) for row in live[field]] for field in ("permissions", "topic_permissions")}
    return {"name": live["name"], "tags": live["tags"], "limits": live["limits"], **rights}


def _tags(value: str | list[str]) -> list[str]:
    """Sorted; before 3.9 the broker gave one text with commas."""
    parts = value.split(",") if isinstance(value, str) else value
    return sorted(part for part in parts if part)


def _rows(kind: t.Any, found: t.Any) -> list[t.Any]:
    fields = [field.name for field in dataclasses.fields(kind)]
    return [kind(**{name: row[name] for name in fields}) for row in found or []]


def _key(row: Permission | TopicPermission) -> tuple[str, ...]:
    return (row.vhost,) if isinstance(row, Permission) else (row.vhost, row.exchange)

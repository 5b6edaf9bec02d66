# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of StudioML's client: the desired settings, merged into the existing file. No I/O.

Read in the wheel studioml 0.0.49:

- The first file that exists is the whole configuration (db_providers/db_provider_setup.py, get_config): nothing is added from the defaults
  of the package. So ``verbose`` and ``resources_needed`` must be there, with ``gpus`` (runner.py, main; studio_dependencies_policy.py).
- Texts are expanded as by a shell (get_config, expandvars), so a ``$`` in one is refused here. Paths are opened as they are, without ``~``.
- A bucket needs ``credentials.aws`` with ``access_key`` and ``secret_access_key`` beside it (storage/s3_storage_handler.py). Older clients,
  and the programs of experiments, take the AWS variables of ``env``.
- A queue is declared as durable only with ``cloud.queue.persistent`` (queues/rabbit_queue.py); a broker refuses that for one that differs.

A value is ours if its digest is in the record beside the file. All other values belong to the user, and are kept.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import typing as t
import urllib.parse
from collections.abc import Mapping

from ..._core.errors import Conflict, InvalidInput
from ..._core.sensitive import Sensitive, revealed

Settings = dict[str, t.Any]
Path = tuple[str, ...]
Leaves = dict[Path, t.Any]

DEFAULTS: Settings = {"verbose": "info", "resources_needed": {"cpus": 1, "gpus": 0, "ram": "2gb", "hdd": "3gb"}}
"""The settings that the client requires, used if neither the user nor the file has them."""
_MISSING = object()
_RETRIES = {"connection_attempts": "30", "retry_delay": ".5", "socket_timeout": "5"}
"""The connection parameters of pika, as in seed 002."""


@dataclasses.dataclass(frozen=True)
class Client:
    """The desired settings of the client. Paths are absolute."""

    amqp_url: Sensitive
    endpoint_url: str
    bucket: str
    database_bucket: str
    region: str
    access_key: Sensitive
    secret_key: Sensitive
    public_key_path: str
    signing_key_path: str
    verbose: t.Literal["debug", "info", "warn", "error", "crit"] | None = None
    lifetime: str | None = None
    resources_needed: Mapping[str, t.Any] | None = None

    def settings(self) -> Settings:
        """The configuration; secret values are Sensitive."""
        credentials = {"aws": {"access_key": self.access_key, "secret_access_key": self.secret_key, "region": self.region}}
        place = {"type": "s3", "endpoint": self.endpoint_url, "credentials": credentials}
        found: Settings = {
            "database": {**place, "bucket": self.database_bucket, "authentication": "none"},
            "storage": {**place, "bucket": self.bucket},
            "cloud": {"queue": {"rmq": with_retries(self.amqp_url), "persistent": True}},
            "env": {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key, "AWS_DEFAULT_REGION": self.region},
            "public_key_path": self.public_key_path,
            "signing_key_path": self.signing_key_path,
        }
        own = {"verbose": self.verbose, "experimentLifetime": self.lifetime, "resources_needed": self.resources_needed}
        found |= {name: value for name, value in own.items() if value is not None}
        for path, value in leaves(found).items():
            if "$" in str(Sensitive(value).reveal()):
                raise InvalidInput(f"{dotted(path)}: the value has a $, which the client would expand.", "Choose one without.")
        return found


def with_retries(url: Sensitive) -> Sensitive:
    """Return a broker's URL with parameters for connection retries, unless it has parameters."""
    try:
        parts = urllib.parse.urlsplit(url.reveal())
    except ValueError:
        parts = urllib.parse.urlsplit("")
    if parts.scheme not in ("amqp", "amqps") or not parts.hostname or not parts.username or not parts.password:
        raise InvalidInput("amqp_url is not the address of a broker with user and password.", "amqp://USER:PASSWORD@HOST:5672/%2f is one.")
    if parts.query:
        return url
    return Sensitive(parts._replace(query=urllib.parse.urlencode(_RETRIES)).geturl())


# Merging

Record = Mapping[str, t.Sequence[str]]
"""Digests of our values, by path: one, or while a file is being replaced those of the old and the new value."""


@dataclasses.dataclass(frozen=True)
class Merged:
    """The new configuration, the record of our values in it, and the differences for the user."""

    config: Settings
    record: dict[str, list[str]]
    before: Settings
    after: Settings


def merged(live: Settings, desired: Settings, record: Record, *, overwrite: bool, where: str) -> Merged:
    """Return LIVE with the desired values. Values of other owners are kept; one that differs from a desired value is a conflict."""
    config, wanted, defaults = copy.deepcopy(live), leaves(desired), leaves(DEFAULTS)
    foreign = [] if overwrite else sorted(dotted(path) for path in wanted if _is_foreign(live, path, wanted[path], record))
    if foreign:
        raise Conflict(
            f"{where} has other values for {', '.join(foreign)}, which another owner has set.",
            "Correct the file or the options, or set overwrite to true.",
            fields=foreign,
        )
    after: Settings = {}
    before = _take_away(config, record, but={_key(path) for path in (*wanted, *defaults)})
    ours = {key: list(old) for key, old in record.items() if _is_ours(config, key, old)}
    missing = {path: value for path, value in defaults.items() if _found(config, path) is _MISSING}
    for path, value in {**missing, **wanted}.items():
        current, plain = _found(config, path), revealed(value)
        if current == plain and _key(path) not in record:
            continue  # set to the same value before, by other means: it is kept
        if current != plain:
            secret = isinstance(value, Sensitive) or isinstance(current, dict | list)
            before |= {} if current is _MISSING else {dotted(path): Sensitive(current) if secret else current}
            after[dotted(path)] = value
            _set(config, path, plain)
        ours[_key(path)] = [digest(plain)]
    return Merged(config, ours, before, after)


def without(live: Settings, record: Record) -> tuple[Settings, list[str]]:
    """Return LIVE without our values, and the names of our values that were changed since."""
    config = copy.deepcopy(live)
    _take_away(config, record, but=set())
    return config, sorted(dotted(_path(key)) for key in record if _found(config, _path(key)) is not _MISSING)


def _take_away(config: Settings, record: Record, *, but: set[str]) -> Settings:
    """Delete our values. Return the deleted ones, as they may be shown."""
    before: Settings = {}
    for key, old in record.items():
        if key not in but and _is_ours(config, key, old):
            before[dotted(_path(key))] = Sensitive(_found(config, _path(key)))
            _delete(config, _path(key))
    return before


def _is_foreign(live: Settings, path: Path, value: t.Any, record: Record) -> bool:
    current = _found(live, path)
    return current is not _MISSING and current != revealed(value) and digest(current) not in record.get(_key(path), ())


def _is_ours(config: Settings, key: str, old: t.Sequence[str]) -> bool:
    current = _found(config, _path(key))
    return current is not _MISSING and digest(current) in old


def leaves(settings: Mapping[str, t.Any], above: Path = ()) -> Leaves:
    """Values by their paths."""
    found: Leaves = {}
    for name, value in settings.items():
        found |= leaves(value, (*above, name)) if isinstance(value, Mapping) and value else {(*above, name): value}
    return found


def dotted(path: Path) -> str:
    return ".".join(path)


def digest(value: t.Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def _key(path: Path) -> str:
    return json.dumps(path)


def _path(key: str) -> Path:
    return tuple(json.loads(key))


def _found(config: t.Any, path: Path) -> t.Any:
    """Return the value at PATH, or the value of a parent that is no mapping."""
    for name in path:
        if not isinstance(config, dict):
            return config
        if name not in config or config[name] is None:
            return _MISSING
        config = config[name]
    return config


def _set(config: Settings, path: Path, value: t.Any) -> None:
    for name in path[:-1]:
        if not isinstance(config.get(name), dict):
            config[name] = {}
        config = config[name]
    config[path[-1]] = value


def _delete(config: Settings, path: Path) -> None:
    """Delete the value at PATH, and mappings that are empty then."""
    inner = config
    for name in path[:-1]:
        inner = inner[name]
    del inner[path[-1]]
    if len(path) > 1 and not inner:
        _delete(config, path[:-1])

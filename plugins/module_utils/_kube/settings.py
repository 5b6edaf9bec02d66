# SPDX-License-Identifier: GPL-3.0-or-later
"""One entry of a kubeconfig, read by name and type.

An error names file, entry and setting, but not the value, which may be a token.
"""

from __future__ import annotations

import base64
import pathlib
import typing as t

from .._core.errors import InvalidInput
from .._core.sensitive import Sensitive

Mapping = t.Mapping[str, t.Any]


class Settings:
    """The settings of one entry. Absent, null and empty are the same, as they are for kubectl."""

    def __init__(self, values: t.Any, where: str, folder: pathlib.Path) -> None:
        """``where`` names entry and file; paths are relative to ``folder``."""
        if not isinstance(values, dict | None):
            raise InvalidInput(f"{where} is not a mapping.")
        if not all(isinstance(key, str) for key in values or {}):
            raise InvalidInput(f"{where} has a name that is not text.", hint="Put it in quotes.")
        self._values = Sensitive(values or {})
        self.where = where
        self.folder = folder

    def __contains__(self, key: str) -> bool:
        return bool(self._values.reveal().get(key))

    def refuse_unknown(self, *known: str) -> None:
        """Refuse unknown settings: without them the connection would not be the one that the file describes."""
        unknown = sorted(str(key) for key in self._values.reveal() if key not in known)
        if unknown:
            raise InvalidInput(f"{self.where} has {', '.join(unknown)}, which Muster does not know.", hint=f"Known: {', '.join(known)}.")

    def _read(self, key: str, kind: type, what: str, hint: str | None = None) -> t.Any:
        value = self._values.reveal().get(key)
        if value is not None and not isinstance(value, kind):
            raise InvalidInput(f"{key} of {self.where} is not {what}.", hint=hint)
        return value

    def text(self, key: str) -> str:
        """The text; empty if it is not set."""
        value = self._read(key, str, "text", "Put it in quotes, or YAML reads it as something else.") or ""
        if "\0" in value:
            raise InvalidInput(f"{key} of {self.where} has a NUL byte.")
        return str(value)

    def secret(self, key: str) -> Sensitive | None:
        value = self.text(key)
        return Sensitive(value) if value else None

    def flag(self, key: str) -> bool:
        return bool(self._read(key, bool, "true or false", "Without quotes, or YAML reads it as text."))

    def texts(self, key: str) -> tuple[str, ...]:
        values = self._read(key, list, "a list") or ()
        if not all(isinstance(value, str) for value in values):
            raise InvalidInput(f"{key} of {self.where} has an item that is not text.", hint="Put it in quotes.")
        return tuple(values)

    def inner(self, key: str) -> Settings:
        """A mapping below this one."""
        return Settings(self._values.reveal().get(key), f"{key} of {self.where}", self.folder)

    def items(self, key: str) -> list[Settings]:
        """A list of mappings below this one."""
        values = self._read(key, list, "a list") or ()
        return [Settings(value, f"item {at} of {key} of {self.where}", self.folder) for at, value in enumerate(values)]

    def lists(self, key: str) -> dict[str, tuple[str, ...]]:
        """A mapping of lists below this one."""
        below = self.inner(key)
        return {name: below.texts(name) for name in sorted(below._values.reveal())}

    def revealed(self) -> Mapping:
        """Return the settings with their secrets, for a credential plugin."""
        return t.cast(Mapping, self._values.reveal())

    def path(self, key: str) -> pathlib.Path | None:
        value = self.text(key)
        return self.folder / expanded(value, f"{key} of {self.where}") if value else None

    def pem(self, key: str) -> str | None:
        """The text of ``<key>-data``, or of the file that ``<key>`` names."""
        data, path = self.text(f"{key}-data"), self.path(key)
        if data and path:
            raise InvalidInput(f"{self.where} has both {key} and {key}-data.", hint="kubectl refuses that, too.")
        if path:
            return read(path, f"{key} of {self.where}")
        return self._decoded(f"{key}-data", data) if data else None

    def _decoded(self, key: str, data: str) -> str:
        try:
            return base64.b64decode("".join(data.split()), validate=True).decode(errors="replace")
        except ValueError:
            pass  # raised below, not chained to one that may hold the value
        raise InvalidInput(f"{key} of {self.where} is not base64.")


def expanded(path: str, what: str) -> pathlib.Path:
    """The path with ``~`` expanded."""
    try:
        return pathlib.Path(path).expanduser()
    except RuntimeError as exc:
        raise InvalidInput(f"The path {path} ({what}) begins with ~, and there is no such home.") from exc


def read(path: pathlib.Path, what: str) -> str:
    """The text of a file. PEM and tokens are ASCII; other bytes become replacement characters, which later checks refuse."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError) as exc:
        problem = getattr(exc, "strerror", None) or "not a path"
    raise InvalidInput(f"The file {path} ({what}) cannot be read: {problem}.")

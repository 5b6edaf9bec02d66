# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of StudioML's client: its configuration, two keys, and a record of our values in them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import stat
import typing as t
from collections.abc import Mapping

from ..._core.brief import as_diff
from ..._core.clock import Clock, utc
from ..._core.errors import Conflict, InvalidInput
from ..._core.files import replaced
from ..._core.sensitive import Sensitive, printable
from . import client
from .client import Settings

CONFIG, RECORD, PUBLIC_KEY, SIGNING_KEY = "config.yaml", ".muster.json", "runner.pub.pem", "signing_key"


Record = dict[str, dict[str, list[str]]]
"""Parts config (by path) and files (by name), with digests."""


@dataclasses.dataclass
class Change:
    """The changes that a run made, or would make in check mode."""

    actions: list[str] = dataclasses.field(default_factory=list)
    before: Settings = dataclasses.field(default_factory=dict)
    after: Settings = dataclasses.field(default_factory=dict)
    kept: list[str] = dataclasses.field(default_factory=list)

    def result(self, *, diff: bool) -> dict[str, t.Any]:
        found: dict[str, t.Any] = {"changed": bool(self.actions), "actions": self.actions, "kept": self.kept}
        settings = {"before": printable(self.before), "after": printable(self.after)}
        return {**found, "diff": [settings, as_diff(self.actions)]} if diff else found


@dataclasses.dataclass
class Folder:
    """``~/.studioml``, or a folder like it."""

    path: pathlib.Path
    check: bool
    clock: Clock
    change: Change = dataclasses.field(default_factory=Change)

    @property
    def config(self) -> pathlib.Path:
        """The path of the configuration, with symbolic links resolved."""
        return (self.path / CONFIG).resolve()

    def record(self) -> Record:
        """Read the record of our values and files."""
        file = self.path / RECORD
        if not file.exists():
            return {"config": {}, "files": {}}
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            return {"config": dict(found["config"]), "files": dict(found["files"])}
        except (ValueError, KeyError, TypeError):
            raise InvalidInput(f"{file} is not a record of this collection.", "Remove it; what was written is then foreign.") from None

    def live(self) -> tuple[Settings, str]:
        """The configuration, and its text."""
        import yaml

        if not self.config.exists():
            return {}, ""
        text = self.config.read_text(encoding="utf-8")
        try:
            found = yaml.safe_load(text)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            place = f", line {mark.line + 1}" if mark else ""
            raise InvalidInput(f"{self.config}{place} cannot be read as YAML.", "Correct it first.") from None
        if found is not None and not isinstance(found, dict):
            raise InvalidInput(f"{self.config} is not a table of settings.", "Correct it first.")
        return found or {}, text

    def configure(self, desired: Settings, keys: Mapping[str, Sensitive], *, overwrite: bool) -> None:
        """Write the settings and the keys. All conflicts are found before anything is written."""
        record, (live, text) = self.record(), self.live()
        merged = client.merged(live, desired, record["config"], overwrite=overwrite, where=str(self.config))
        files = {name: self._checked(name, content, record["files"], overwrite=overwrite) for name, content in keys.items()}
        self.change.before, self.change.after = merged.before, merged.after
        if not self.path.is_dir():
            self._do(f"create {self.path}", lambda: self.path.mkdir(mode=0o700, parents=True))
        keys_record = {name: [client.digest(content.reveal())] for name, content in keys.items() if files[name] or name in record["files"]}
        self._note(record, {"config": merged.record, "files": keys_record})
        for name, content in keys.items():
            if files[name]:
                file = self.path / name
                self._do(f"write {file}", functools.partial(self._write, file, content.reveal(), _mode(name)))
            else:
                self._restrict(self.path / name, _mode(name))
        self._configured(merged, live, text)
        if self.record() != {"config": merged.record, "files": keys_record} and not self.check:
            self._write(self.path / RECORD, _record(merged.record, keys_record), 0o600)

    def _note(self, old: Record, new: Record) -> None:
        """Record the old and the new values before anything is replaced: if this run is stopped, the next one recognises both as ours."""
        if old == new or self.check:
            return
        both = {
            part: {key: [*old[part].get(key, []), *new[part].get(key, [])] for key in {**old[part], **new[part]}}
            for part in ("config", "files")
        }
        self._write(self.path / RECORD, _record(**both), 0o600)

    def _configured(self, merged: client.Merged, live: Settings, text: str) -> None:
        if merged.config == live:
            self._restrict(self.config, 0o600)
            return
        if text and text != _dumped(live):
            # Comments are lost when it is written again.
            stamp = utc(self.clock).strftime("%Y%m%dT%H%M%SZ")
            backup = self.config.with_name(f"{self.config.name}.{stamp}~")
            self._do("keep a backup of it, because its comments are lost", lambda: self._write(backup, text, 0o600))
        self._do(f"write {self.config}", lambda: self._write(self.config, _dumped(merged.config), 0o600))

    def _checked(self, name: str, content: Sensitive, known: Mapping[str, list[str]], *, overwrite: bool) -> bool:
        """Whether a key has to be written."""
        file = self.path / name
        if not file.exists():
            return True
        current = file.read_text(encoding="utf-8", errors="replace")
        if current == content.reveal():
            return False
        if not overwrite and client.digest(current) not in known.get(name, ()):
            raise Conflict(
                f"{file} is another key, which another owner has put there.", "Move it, or set overwrite to true.", fields=[name]
            )
        return True

    def remove(self) -> None:
        """Remove our values and files."""
        if not (self.path / RECORD).exists():
            return
        record, (live, _text) = self.record(), self.live()
        rest, changed = client.without(live, record["config"])
        self.change.kept = [f"{self.config}: {name}" for name in changed]
        if rest != live:
            if rest or (self.path / CONFIG).is_symlink():
                # Where the configuration is a link, the file that it leads to is not Muster's: only Muster's settings are removed from it.
                self._do(f"write {self.config}", lambda: self._write(self.config, _dumped(rest), 0o600))
            else:
                self._do(f"remove {self.config}", self.config.unlink)
        for name, old in record["files"].items():
            file = self.path / name
            if file.is_file() and not file.is_symlink() and client.digest(file.read_text(encoding="utf-8", errors="replace")) in old:
                self._do(f"remove {file}", file.unlink)
            elif os.path.lexists(file):
                self.change.kept.append(str(file))
        self._do(f"remove {self.path / RECORD}", (self.path / RECORD).unlink)
        # A folder that is a link, a mount point or not empty is kept.
        if not self.check and not self.path.is_symlink():
            with contextlib.suppress(OSError):
                self.path.rmdir()

    def _do(self, says: str, work: t.Callable[[], object]) -> None:
        self.change.actions.append(says)
        if not self.check:
            work()

    def _write(self, file: pathlib.Path, text: str, mode: int) -> None:
        with replaced(file, mode) as made:
            made.write(text.encode())

    def _restrict(self, file: pathlib.Path, mode: int) -> None:
        if file.exists() and stat.S_IMODE(file.stat().st_mode) != mode:
            self._do(f"set the mode of {file} to {mode:04o}", lambda: file.chmod(mode))


def _record(config: Mapping[str, t.Any], files: Mapping[str, t.Any]) -> str:
    return json.dumps({"muster": 1, "config": config, "files": files}, indent=1, sort_keys=True)


def _mode(name: str) -> int:
    return 0o644 if name == PUBLIC_KEY else 0o600


def _dumped(config: Settings) -> str:
    import yaml

    return str(yaml.safe_dump(config, sort_keys=False, default_flow_style=False))

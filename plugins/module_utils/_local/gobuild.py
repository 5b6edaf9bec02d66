# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Build programs from pinned Go modules, cached by content: the same pins and flags are built once per machine."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import typing as t
from pathlib import Path

from .._core.errors import CommandFailed, InvalidInput
from .._core.files import draft_prefix
from .host import run
from .once import making

PIN_FILES = ("go.mod", "go.sum")


@dataclasses.dataclass(frozen=True, kw_only=True)
class GoBuild:
    """One program: a package of a Go module that pins everything it needs by go.mod and go.sum."""

    name: str
    module_dir: Path
    package: str
    cache_dir: Path
    ldflags: str = ""
    tags: tuple[str, ...] = ()
    architecture: str = "amd64"
    # Whether packages in C belong to it: it is then linked to the C library, which its image must have.
    cgo: bool = False

    def sources(self) -> list[Path]:
        """The files that determine the result: the pins, and our own Go files beside them."""
        for pin in PIN_FILES:
            if not (self.module_dir / pin).is_file():
                raise InvalidInput(
                    f"{self.name}: {self.module_dir} has no {pin}.", hint="Give a folder with a go.mod and the go.sum that pins it."
                )
        return [self.module_dir / pin for pin in PIN_FILES] + sorted(self.module_dir.glob("*.go"))

    def key(self) -> str:
        parts = [self.name, self.package, self.ldflags, *self.tags, self.architecture, *(["cgo"] if self.cgo else [])]
        digest = hashlib.sha256(json.dumps(parts).encode())
        for path in self.sources():
            digest.update(path.read_bytes())
        return digest.hexdigest()[:16]

    @property
    def path(self) -> Path:
        return self.cache_dir / "bin" / self.key() / self.name

    def argv(self, go: str, out: Path) -> list[str]:
        tags = ["-tags", ",".join(self.tags)] if self.tags else []
        flags = ["-trimpath", "-buildvcs=false", "-mod=readonly", *tags, "-ldflags", f"-s -w {self.ldflags}".strip()]
        return [go, "build", *flags, "-o", str(out), self.package]

    def environment(self) -> dict[str, str]:
        # Without cgo a program needs no library of the host, so it runs in an image that contains nothing else.
        return {"CGO_ENABLED": "1" if self.cgo else "0", "GOOS": "linux", "GOARCH": self.architecture, "GOFLAGS": "", "GOWORK": "off"}


def architecture(machine: str | None = None) -> str:
    """Go's name of this machine's processor."""
    machine = machine or os.uname().machine
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def build(desired: GoBuild, go: str = "go", runner: t.Callable[..., str] = run) -> Path:
    """Build into the cache. The program appears there whole or not at all."""
    with making(desired.path) as missing:
        if missing:
            _build(desired, go, runner)
    return desired.path


def _build(desired: GoBuild, go: str, runner: t.Callable[..., str]) -> None:
    target = desired.path
    draft = target.with_name(f"{draft_prefix(target)}{os.getpid()}")
    try:
        runner(desired.argv(go, draft), env=desired.environment(), cwd=str(desired.module_dir))
        draft.replace(target)
    except CommandFailed as exc:
        raise CommandFailed(
            f"Building {desired.name} from {desired.package} failed: {exc.message}", hint=_hint(desired, exc.message)
        ) from exc
    finally:
        draft.unlink(missing_ok=True)


def _hint(desired: GoBuild, said: str) -> str:
    # Go's words where there is no compiler, and a compiler's where there is no C library to compile for.
    if desired.cgo and re.search(r"C compiler .* not found|fatal error: \S+\.h: No such file", said):
        return "Install gcc and libc6-dev, which it needs besides Go."
    return "If modules could not be fetched, check GOPROXY (go env GOPROXY) and run again: what was built is kept."


def ensure(desired: GoBuild, message: str, progress: t.Callable[[str], None]) -> Path:
    """The program, built now if it is not in the cache; MESSAGE announces that."""
    if not desired.path.is_file():
        progress(message)
        build(desired)
    return desired.path


def go_version(text: str) -> tuple[int, ...]:
    """(1, 26, 8) from the output of ``go version``; of a pre-release, its number."""
    found = re.search(r"go(\d+(?:\.\d+)*)", text)
    return tuple(int(part) for part in found.group(1).split(".")) if found else ()


def required_version(go_mod: str) -> tuple[int, ...]:
    """The version of Go that a go.mod asks for."""
    found = re.search(r"^go (\d+(?:\.\d+)*)", go_mod, re.MULTILINE)
    return tuple(int(part) for part in found.group(1).split(".")) if found else ()


def version_problem(installed: str, toolchain: str, needed: tuple[int, ...]) -> str | None:
    """Return why this Go cannot build it, or None. Since 1.21 Go fetches a newer toolchain itself unless that is switched off."""
    have = go_version(installed)
    if have >= needed or (have >= (1, 21) and toolchain not in {"local", "path"}):
        return None
    want = ".".join(map(str, needed))
    return f"Go {'.'.join(map(str, have)) or 'of unknown version'} is too old: {want} is needed"

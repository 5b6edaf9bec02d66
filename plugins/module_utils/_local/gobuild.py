# SPDX-License-Identifier: GPL-3.0-or-later
"""Build programs from pinned Go modules, cached by content: the same pins and flags are built once per machine."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import re
import shutil
import tempfile
import typing as t
from pathlib import Path

from .._core.errors import Causes, CommandFailed, InvalidInput, Rejected
from .._core.files import draft_prefix
from .host import run
from .once import making

# The sums are those of go.sum, so neither a workspace, nor the user's flags, nor the checksum database has a say.
SETTINGS = {"GOFLAGS": "", "GOWORK": "off", "GONOSUMDB": "*"}
_NO_COMPILER = "no compiler"
# Go's words where there is no compiler, and a compiler's where there is no C library to compile for.
_CAUSES: Causes = ((_NO_COMPILER, re.compile(r"C compiler .* not found|fatal error: \S+\.h: No such file")),)
_NEEDS_C = "Install gcc and libc6-dev, which it needs besides Go."
_AGAIN = "If modules could not be fetched, check GOPROXY (go env GOPROXY) and run again: what was built is kept."
PIN = re.compile(r"([A-Za-z0-9][\w.~/-]*) (v[\w.+-]+) (h1:\S+)")


class Pin(t.NamedTuple):
    """A line of go.sum: a module, and the sum of its files."""

    path: str
    version: str
    sum: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class GoBuild:
    """One program: a package of a Go module, in a folder that pins what it needs.

    With a go.mod, the folder's go.sum pins everything. Without one, it pins a module whose own go.mod and go.sum pin the rest, and after it
    those that the module's repository has beside it, because their folders are in none of the module's files.
    """

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
        if not (self.module_dir / "go.sum").is_file():
            raise InvalidInput(f"{self.name}: {self.module_dir} has no go.sum.", hint="Give a folder with the go.sum that pins it.")
        return [path for path in (self.module_dir / "go.mod", self.module_dir / "go.sum") if path.is_file()] + self.own()

    def own(self) -> list[Path]:
        """Go files of ours: the package ``.``."""
        return sorted(self.module_dir.glob("*.go"))

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
        # The linker leaves out what a debugger reads (-s -w). Compilers that do not write it first take an eighth less time.
        return [go, "build", *flags, "-gcflags=all=-dwarf=false", "-o", str(out), self.package]

    def environment(self) -> dict[str, str]:
        # Without cgo a program needs no library of the host, so it runs in an image that contains nothing else.
        return {**SETTINGS, "CGO_ENABLED": "1" if self.cgo else "0", "GOOS": "linux", "GOARCH": self.architecture}


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
        with main_module(desired, go, runner) as folder:
            runner(desired.argv(go, draft), env=desired.environment(), cwd=str(folder), causes=_CAUSES)
        draft.replace(target)
    except CommandFailed as exc:
        hint = _NEEDS_C if desired.cgo and exc.cause == _NO_COMPILER else _AGAIN
        raise CommandFailed(f"Building {desired.name} from {desired.package} failed: {exc.message}", hint) from exc
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def main_module(desired: GoBuild, go: str, runner: t.Callable[..., str]) -> t.Iterator[Path]:
    """The folder to build in: the one with the pins, or one with the go.mod and go.sum of the module that it pins."""
    if (desired.module_dir / "go.mod").is_file():
        yield desired.module_dir
        return
    first, *beside = found = downloaded(pins(desired.module_dir), desired.module_dir, go, runner)
    with tempfile.TemporaryDirectory() as own:
        for file in (Path(first["Dir"]) / "go.mod", Path(first["Dir"]) / "go.sum", *desired.own()):
            if not file.is_file():
                raise InvalidInput(
                    f"{first['Path']} {first['Version']} has no {file.name}.", hint=f"Give {desired.name} a go.mod and a go.sum of its own."
                )
            shutil.copyfile(file, Path(own) / file.name)
        with (Path(own) / "go.sum").open("a", encoding="utf-8") as sums:
            for one in found:
                sums.write("{Path} {Version} {Sum}\n{Path} {Version}/go.mod {GoModSum}\n".format_map(one))
        words = [f"-dropreplace={one['Path']}" for one in beside] + [f"-require={one['Path']}@{one['Version']}" for one in found]
        runner([go, "mod", "edit", "-module=muster.local/build", "-toolchain=none", *words], env=SETTINGS, cwd=own)
        yield Path(own)


def pins(module_dir: Path) -> list[Pin]:
    """The modules in a go.sum that stands alone."""
    found = [PIN.fullmatch(line) for line in (module_dir / "go.sum").read_text(encoding="utf-8").splitlines()]
    if not found or None in found:
        raise InvalidInput(
            f"go.sum in {module_dir} is not a line for each module: MODULE VERSION h1:...",
            hint="Pin the modules whose own go.mod and go.sum are to be used, or add a go.mod.",
        )
    return [Pin(*one.groups()) for one in found if one]


def downloaded(wanted: t.Sequence[Pin], module_dir: Path, go: str = "go", runner: t.Callable[..., str] = run) -> list[dict[str, str]]:
    """Download the modules that are missing, compare their sums, and return what Go says of each (``Dir`` is its folder)."""
    with tempfile.TemporaryDirectory() as own:
        (Path(own) / "go.mod").write_text("module muster.local/build\n", encoding="utf-8")
        said = runner([go, "mod", "download", "-json", *(f"{one.path}@{one.version}" for one in wanted)], env=SETTINGS, cwd=own)
    rows = {row["Path"]: row for row in json.loads("[" + said.strip().replace("\n}\n{", "\n},\n{") + "]")}
    for one in wanted:
        if rows[one.path]["Sum"] != one.sum:
            raise Rejected(
                f"{one.path} {one.version} has the sum {rows[one.path]['Sum']}, and go.sum in {module_dir} pins {one.sum}.",
                hint="Nothing of it ran. Do not use it: ask where it comes from (go env GOPROXY), and delete it (go clean -modcache).",
            )
    return [rows[one.path] for one in wanted]


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


def version_problem(installed: str, toolchain: str, needed: str) -> str | None:
    """Return why this Go cannot build it, or None. Since 1.21 Go fetches a newer toolchain itself unless that is switched off."""
    have = go_version(installed)
    if have >= go_version(f"go{needed}") or (have >= (1, 21) and toolchain not in {"local", "path"}):
        return None
    return f"Go {'.'.join(map(str, have)) or 'of unknown version'} is too old: {needed} is needed"

# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the objects of an apply from options, files, a folder or a URL."""

from __future__ import annotations

import codecs
import glob
import hashlib
import hmac
import pathlib
import typing as t
import urllib.error
import urllib.request

from .._core.errors import InvalidInput, Unreachable
from .objects import FromFile, to_plain_values
from .prepare import flatten
from .yaml_reader import Unreadable, read

_SUFFIXES = (".yaml", ".yml", ".json")
_TIMEOUT = 60.0


def documents(text: str, source: str) -> list[t.Any]:
    """Read the YAML (or JSON) documents of a text, with kubectl's values; an error names the line."""
    try:
        return read(to_plain_values(text))
    except Unreadable as exc:
        where = f", line {exc.line}" if exc.line else ""
        raise InvalidInput(f"{source}{where}: {exc}.", hint="Nothing was changed.") from exc


def from_definition(definition: t.Any, source: str = "definition") -> list[t.Any]:
    """Objects from a mapping, a list of anything accepted here, or YAML text."""
    if isinstance(definition, list):
        return [item for part in definition for item in from_definition(part, source)]
    if isinstance(definition, str):
        return [item for part in documents(definition, source) for item in (part if isinstance(part, list) else [part])]
    return [definition]


def from_path(src: str) -> list[t.Any]:
    """Objects from a file, all manifests of a folder (not of its folders), or a glob pattern, in the order of names."""
    path = pathlib.Path(src).expanduser()
    if path.is_dir():
        files = sorted(item for item in path.iterdir() if item.suffix in _SUFFIXES and _is_meant(item))
    elif path.is_file():
        files = [path]
    else:
        files = sorted(pathlib.Path(name) for name in glob.glob(str(path), recursive=True))  # noqa: PTH207  (may be absolute)
        files = [item for item in files if _is_meant(item)]
    if not files:
        raise InvalidInput(f"src {src}: there is no such file, or no {', '.join(_SUFFIXES)} in the folder.", hint="Nothing was changed.")
    return [item for file in files for item in _objects_in(file)]


def _is_meant(item: pathlib.Path) -> bool:
    """Whether it is a file, or a link to one that is not there: that is an error, or prune would delete what was in it."""
    return item.is_file() or (item.is_symlink() and not item.exists())


def _objects_in(file: pathlib.Path) -> t.Iterator[FromFile]:
    for item in flatten(from_definition(_read(file), str(file))):
        if not isinstance(item, dict):
            raise InvalidInput(f"{file}: has a document that is not a mapping but {type(item).__name__}.", hint="Nothing was changed.")
        found = FromFile(item)
        found.file = str(file)
        yield found


def _read(path: pathlib.Path) -> str:
    try:
        return _decoded(path.read_bytes())
    except (OSError, UnicodeDecodeError) as exc:
        raise InvalidInput(f"src {path} cannot be read: {exc}.") from exc


def _decoded(body: bytes) -> str:
    """The text of a file: UTF-8 whatever the locale, and the UTF-16 that some editors write."""
    return body.decode("utf-16" if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig")


def from_url(url: str, sha256: str) -> list[t.Any]:
    """Objects from a URL, if the digest of its content is the given one."""
    try:
        with urllib.request.build_opener().open(url, timeout=_TIMEOUT) as response:
            body = response.read()
    except (urllib.error.URLError, OSError, ValueError) as exc:
        wrong = Unreachable if isinstance(exc, OSError) else InvalidInput
        raise wrong(f"url {url} cannot be read: {getattr(exc, 'reason', None) or exc}.",
                    hint="Give a local copy with src where the URL cannot be reached.") from exc  # fmt: skip
    return _verified(body, f"url {url}", sha256)


def from_release(where: str, sha256: str) -> list[t.Any]:
    """Objects from a URL or the path of a file, if the digest of its content is the given one."""
    if where.startswith(("http://", "https://")):
        return from_url(where, sha256)
    try:
        return _verified(pathlib.Path(where).expanduser().read_bytes(), where, sha256)
    except OSError as exc:
        raise InvalidInput(f"{where} cannot be read: {exc}.", hint="Nothing was changed.") from exc


def _verified(body: bytes, where: str, sha256: str) -> list[t.Any]:
    found = hashlib.sha256(body).hexdigest()
    if not hmac.compare_digest(found.encode(), sha256.lower().removeprefix("sha256:").encode()):
        raise InvalidInput(f"{where} has sha256 {found}, not the {sha256} that was expected.",
                           hint="Look at what changed before you take the new digest. Nothing was changed.")  # fmt: skip
    try:
        return from_definition(_decoded(body), where)
    except UnicodeDecodeError as exc:
        raise InvalidInput(f"{where} is not text: {exc}.", hint="Nothing was changed.") from exc

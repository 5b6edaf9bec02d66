# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the objects of an apply come from: options, files, a folder, a URL. Reading, and nothing else.

Private to the collection.
"""

from __future__ import annotations

import functools
import glob
import hashlib
import hmac
import pathlib
import typing as t
import urllib.error
import urllib.request

from .errors import InvalidInput
from .objects import plain

_SUFFIXES = (".yaml", ".yml", ".json")
_TIMEOUT = 60.0
_STRING, _MAPPING, _SEQUENCE = (f"tag:yaml.org,2002:{name}" for name in ("str", "map", "seq"))


def documents(text: str, source: str) -> list[t.Any]:
    """All YAML (or JSON) documents of a text; an error names the line."""
    import yaml

    try:
        return list(yaml.load_all(plain(text), Loader=_loader()))
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise InvalidInput(
            f"{source}{where}: not YAML ({getattr(exc, 'problem', None) or exc}).", hint="Nothing was changed."
        ) from exc


@functools.cache
def _loader() -> t.Any:
    """A safe loader that makes JSON's own types: libyaml where it is there (ten times faster), and a short way for what is common."""
    import yaml

    resolver = yaml.resolver.Resolver()

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        # Which type a plain value has is asked for every node, and manifests say the same words over and over.
        resolve = staticmethod(functools.lru_cache(4096)(resolver.resolve))

        def construct_document(self, node: t.Any) -> t.Any:
            return self._made(node)

        def _made(self, node: t.Any) -> t.Any:
            if node.tag == _STRING and isinstance(node, yaml.ScalarNode):
                return node.value
            if node.tag == _MAPPING and isinstance(node, yaml.MappingNode):
                if any(key.tag != _STRING for key, _value in node.value):
                    self.flatten_mapping(node)  # merge keys
                    self.construct_mapping(node)  # says what cannot be a key
                return {self._made(key): self._made(value) for key, value in node.value}
            if node.tag == _SEQUENCE and isinstance(node, yaml.SequenceNode):
                return [self._made(item) for item in node.value]
            return plain(self.construct_object(node, deep=True))

    return Loader


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
        files = sorted(item for item in path.iterdir() if item.suffix in _SUFFIXES and item.is_file())
    elif path.is_file():
        files = [path]
    else:
        files = sorted(pathlib.Path(name) for name in glob.glob(str(path), recursive=True))  # noqa: PTH207  (may be absolute)
        files = [item for item in files if item.is_file()]
    if not files:
        raise InvalidInput(
            f"src {src}: there is no such file, or no {', '.join(_SUFFIXES)} in the folder.",
            hint="Nothing was changed.",
        )
    return [item for file in files for item in from_definition(_read(file), str(file))]


def _read(path: pathlib.Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as exc:
        raise InvalidInput(f"src {path} cannot be read: {exc}.") from exc


def from_url(url: str, sha256: str) -> list[t.Any]:
    """Objects from a URL whose content is known by its digest."""
    try:
        with urllib.request.build_opener().open(url, timeout=_TIMEOUT) as response:
            body = response.read()
    except (urllib.error.URLError, OSError, ValueError) as exc:
        raise InvalidInput(f"url {url} cannot be read: {getattr(exc, 'reason', None) or exc}.",
                           hint="Give a local copy with src where the URL cannot be reached.") from exc  # fmt: skip
    found = hashlib.sha256(body).hexdigest()
    if not hmac.compare_digest(found, sha256.lower().removeprefix("sha256:")):
        raise InvalidInput(f"url {url} has sha256 {found}, not the {sha256} that was expected.",
                           hint="Look at what changed before you take the new digest. Nothing was changed.")  # fmt: skip
    return from_definition(body.decode(), url)

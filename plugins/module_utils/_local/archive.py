# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a container image of one layer from a few files of the host, as an archive that containerd imports.

For Kubernetes' own images, which contain little more than one program each and must exist before the cluster. The same
input gives the same bytes: no times, no owners, sorted.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import tarfile
import typing as t
from pathlib import Path, PurePosixPath

CHUNK = 1 << 20
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImageFile:
    """A file of the host, a short text, or a link, in an image."""

    dest: str
    src: str = ""
    text: str = ""
    link: str = ""
    mode: int = 0o755


@dataclasses.dataclass(frozen=True, kw_only=True)
class Image:
    name: str
    files: tuple[ImageFile, ...]
    entrypoint: tuple[str, ...] = ()
    architecture: str = "amd64"


def write_image(image: Image, out: t.BinaryIO) -> None:
    """Write the archive (the format of ``docker save``) to ``out``, which need not be seekable."""
    digest, size = hashlib.sha256(), 0
    for chunk in _layer(image.files):
        digest.update(chunk)
        size += len(chunk)
    layer_name = f"{digest.hexdigest()}.tar"
    config = json.dumps(_config(image, digest.hexdigest()), sort_keys=True).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [image.name], "Layers": [layer_name]}]).encode()
    for name, content in (("manifest.json", manifest), (config_name, config)):
        out.write(_header(name, size=len(content), mode=0o644))
        out.write(_padded(content))
    out.write(_header(layer_name, size=size, mode=0o644))
    # A layer consists of whole blocks, so no padding is needed after it.
    for chunk in _layer(image.files):
        out.write(chunk)
    out.write(b"\0" * 2 * tarfile.BLOCKSIZE)


def _config(image: Image, layer: str) -> dict[str, t.Any]:
    return {
        "architecture": image.architecture,
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {"Env": [f"PATH={PATH}"], "Entrypoint": list(image.entrypoint), "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]},
    }


def _layer(files: t.Iterable[ImageFile]) -> t.Iterator[bytes]:
    """The layer's tar: folders first, then the files in order of their paths."""
    ordered = sorted(files, key=lambda file: file.dest)
    folders = {str(parent) for file in ordered for parent in PurePosixPath(file.dest).parents} | {"/tmp"}  # noqa: S108
    for folder in sorted(folders - {"/"}):
        yield _header(folder.lstrip("/"), kind=tarfile.DIRTYPE, mode=0o1777 if folder == "/tmp" else 0o755)  # noqa: S108
    for file in ordered:
        yield from _entry(file)
    yield b"\0" * 2 * tarfile.BLOCKSIZE


def _entry(file: ImageFile) -> t.Iterator[bytes]:
    name = file.dest.lstrip("/")
    if file.link:
        yield _header(name, kind=tarfile.SYMTYPE, link=file.link, mode=0o777)
        return
    if file.text:
        content = file.text.encode()
        yield _header(name, size=len(content), mode=file.mode) + _padded(content)
        return
    size = Path(file.src).stat().st_size
    yield _header(name, size=size, mode=file.mode)
    with Path(file.src).open("rb") as data:
        while chunk := data.read(CHUNK):
            yield chunk
    yield b"\0" * (-size % tarfile.BLOCKSIZE)


def _header(name: str, *, size: int = 0, mode: int, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.type, entry.linkname = size, mode, kind, link
    return entry.tobuf(tarfile.GNU_FORMAT)


def _padded(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % tarfile.BLOCKSIZE)


def library_files(program: str, dest: str, ldd: str) -> tuple[ImageFile, ...]:
    """A dynamically linked program with everything that ``ldd`` (its output) says it needs."""
    needed: list[ImageFile] = []
    for line in io.StringIO(ldd):
        words = line.split()
        # "libc.so.6 => /lib/x/libc.so.6 (0x..)" or "/lib64/ld-linux.so.2 (0x..)"; the kernel's own has no path.
        path = words[2] if "=>" in words else words[0] if words else ""
        if path.startswith("/"):
            needed.append(ImageFile(src=path, dest=path))
    return (ImageFile(src=program, dest=dest), *needed)

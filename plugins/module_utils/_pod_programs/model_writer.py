# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a model's folder on a volume for a client of a forwarded port: model_writer.py FOLDER PORT

It listens at the pod's loopback address only, so that it is reached by port forwarding alone.

GET / lists the files with their SHA-256, PUT /PATH?sha256=SUM puts one aside, POST / moves those put aside to where they belong, whole
versions at once, PUT /config.pbtxt replaces the configuration at once, DELETE /PATH deletes a file, and the folders that are empty then.

Python 3.9 and its standard library are enough.
"""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import shutil
import sys
import typing as t
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

CONFIG = "config.pbtxt"
# Triton reads no version there: it is hidden, and no number.
ASIDE = ".muster-incoming"
PIECE = 1 << 20


def sha256_of(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for piece in iter(lambda: file.read(PIECE), b""):
            digest.update(piece)
    return digest.hexdigest()


class Folder:
    """The folder of one model."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.aside = root / ASIDE

    def place(self, name: str) -> Path:
        """The path of a name; ValueError if it leads elsewhere."""
        parts = name.split("/")
        if not name or any(part.startswith(".") or not part for part in parts):
            raise ValueError(f"'{name}' is not the path of a file")
        return Path(*parts)

    def listing(self) -> dict[str, t.Any]:
        """The files but the configuration, and that."""
        config = self.root / CONFIG
        found = [path for path in self.root.rglob("*") if path.is_file()] if self.root.is_dir() else []
        names = {path.relative_to(self.root).as_posix(): path for path in found if path != config}
        files = {name: sha256_of(path) for name, path in sorted(names.items()) if not name.startswith(f"{ASIDE}/")}
        return {"files": files, "config": config.read_text("utf-8") if config.is_file() else None}

    def put(self, name: str, content: t.BinaryIO, size: int, sha256: str) -> None:
        """Write a file aside; the configuration to its place."""
        place = self.place(name)
        target = self.aside / place
        target.parent.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        with target.open("wb") as file:
            while size > 0:
                piece = content.read(min(PIECE, size))
                if not piece:
                    raise ValueError(f"{name} ends {size} bytes too early")
                size -= len(piece)
                digest.update(piece)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        if digest.hexdigest() != sha256:
            raise ValueError(f"{name} arrived with another SHA-256")
        if name == CONFIG:
            target.replace(self.root / place)
            shutil.rmtree(self.aside, ignore_errors=True)

    def commit(self) -> None:
        """Move what was put aside. A version that is not there yet comes as a whole."""
        for entry in sorted(self.aside.iterdir()) if self.aside.is_dir() else []:
            target = self.root / entry.name
            if entry.is_dir() and target.is_dir():
                for path in [path for path in entry.rglob("*") if path.is_file()]:
                    below = target / path.relative_to(entry)
                    below.parent.mkdir(parents=True, exist_ok=True)
                    path.replace(below)
            else:
                entry.replace(target)
        shutil.rmtree(self.aside, ignore_errors=True)

    def delete(self, name: str) -> None:
        """Delete a file, and the folders that it leaves empty, the model's own among them."""
        path = self.root / self.place(name)
        path.unlink(missing_ok=True)
        for folder in [folder for folder in path.parents if folder == self.root or self.root in folder.parents]:
            try:
                folder.rmdir()
            except OSError:
                break


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers with JSON."""

    protocol_version = "HTTP/1.1"
    folder: Folder

    def do_GET(self) -> None:
        self.answer(self.folder.listing)

    def do_POST(self) -> None:
        self.answer(self.folder.commit)

    def do_PUT(self) -> None:
        size, sha256 = int(self.headers["Content-Length"]), parse_qs(urlsplit(self.path).query)["sha256"][0]
        self.answer(lambda: self.folder.put(self.name, t.cast(t.BinaryIO, self.rfile), size, sha256))

    def do_DELETE(self) -> None:
        self.answer(lambda: self.folder.delete(self.name))

    @property
    def name(self) -> str:
        return unquote(urlsplit(self.path).path)[1:]

    def answer(self, does: t.Callable[[], t.Any]) -> None:
        try:
            status, body = 200, does() or {}
        except (OSError, ValueError) as error:
            # What the client still sends is not read.
            status, body, self.close_connection = 500, {"error": str(error)}, True
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_args: t.Any) -> None:
        """Print nothing."""


def main() -> None:
    """Serve until the pod ends."""
    Handler.folder = Folder(Path(sys.argv[1]))
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()


if __name__ == "__main__":
    main()

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A web server in a pod of the scenario: the digits as images in folders, as tiny-imagenet has them, in one archive."""

from __future__ import annotations

import hashlib
import http.server
import io
import sys
import tarfile
from pathlib import Path

from PIL import Image


def add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    """The same bytes wherever and whenever it is made."""
    member = tarfile.TarInfo(f"digits/{name}")
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def png(pixels: list[float]) -> bytes:
    found = io.BytesIO()
    Image.frombytes("L", (8, 8), bytes(int(value * 15) for value in pixels)).save(found, "PNG")
    return found.getvalue()


def make() -> bytes:
    with Path("/srv/digits.csv").open(encoding="ascii") as lines:
        rows = [[float(value) for value in line.split(",")] for line in lines]
    made, told = io.BytesIO(), []
    with tarfile.open(fileobj=made, mode="w") as archive:
        for number, (*pixels, label) in enumerate(rows):
            name, image = f"{number}.png", png(pixels)
            if number % 5:
                add(archive, f"train/digit-{label:.0f}/images/{name}", image)
            else:
                told.append(f"{name}\tdigit-{label:.0f}\t0\t0\t7\t7\n")
                add(archive, f"val/images/{name}", image)
        add(archive, "val/val_annotations.txt", "".join(told).encode())
    return made.getvalue()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(ARCHIVE)))
        self.end_headers()
        self.wfile.write(ARCHIVE)


ARCHIVE = make()
sys.stdout.write(f"sha256={hashlib.sha256(ARCHIVE).hexdigest()}\n")
sys.stdout.flush()
http.server.ThreadingHTTPServer(("", 8080), Handler).serve_forever()

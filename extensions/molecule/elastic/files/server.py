# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A web server in a pod of the scenario: the digits as image files in one archive, laid out as ImageNet and as tiny-imagenet are."""

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
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


def drawn(pixels: list[float], form: str) -> bytes:
    """A digit of 8x8 pixels, as large as an icon."""
    small, found = Image.frombytes("L", (8, 8), bytes(int(value * 15) for value in pixels)), io.BytesIO()
    small.resize((32, 32), Image.BICUBIC).save(found, form)
    return found.getvalue()


def make() -> bytes:
    with Path("/srv/digits.csv").open(encoding="ascii") as lines:
        rows = [[float(value) for value in line.split(",")] for line in lines]
    made, told = io.BytesIO(), []
    with tarfile.open(fileobj=made, mode="w") as archive:
        for number, (*pixels, label) in enumerate(rows):
            digit, png = f"digit-{label:.0f}", drawn(pixels, "PNG")
            add(archive, f"imagenet/{'train' if number % 5 else 'val'}/{digit}/{number}.JPEG", drawn(pixels, "JPEG"))
            if number % 5:
                add(archive, f"tiny/train/{digit}/images/{number}.png", png)
            else:
                told.append(f"{number}.png\t{digit}\t0\t0\t7\t7\n")
                add(archive, f"tiny/val/images/{number}.png", png)
        add(archive, "tiny/val/val_annotations.txt", "".join(told).encode())
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

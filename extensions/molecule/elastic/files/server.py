# SPDX-License-Identifier: GPL-3.0-or-later
"""A web server in a pod of the scenario: the digits as image files in one archive, laid out as ImageNet and as tiny-imagenet."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import io
import sys
import zipfile

from PIL import Image


def drawn(pixels: list[float]) -> bytes:
    """A digit of 8x8 pixels, as large as an icon."""
    small, found = Image.frombytes("L", (8, 8), bytes(int(value * 15) for value in pixels)), io.BytesIO()
    small.resize((32, 32), Image.BICUBIC).save(found, "JPEG")
    return found.getvalue()


def make() -> bytes:
    with gzip.open("/srv/digits.csv.gz", "rt", encoding="ascii") as lines:
        rows = [[float(value) for value in line.split(",")] for line in lines][: int(sys.argv[1])]
    made, told, tiny = io.BytesIO(), [], "tiny-imagenet-200"
    with zipfile.ZipFile(made, "w") as archive:
        for number, (*pixels, label) in enumerate(rows):
            digit, jpeg, file = f"n{label:08.0f}", drawn(pixels), f"{number}.JPEG"
            archive.writestr(f"imagenet/{'train' if number % 5 else 'val'}/{digit}/{file}", jpeg)
            if number % 5:
                archive.writestr(f"{tiny}/train/{digit}/images/{digit}_{file}", jpeg)
            else:
                told.append(f"val_{file}\t{digit}\t0\t0\t31\t31\n")
                archive.writestr(f"{tiny}/val/images/val_{file}", jpeg)
        for digit in range(10):
            archive.writestr(f"{tiny}/train/n{digit:08}/n{digit:08}_boxes.txt", "")
        archive.writestr(f"{tiny}/val/val_annotations.txt", "".join(told))
        archive.writestr(f"{tiny}/test/images/test_0.JPEG", jpeg)
        archive.writestr(f"{tiny}/wnids.txt", "".join(f"n{digit:08}\n" for digit in range(10)))
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

# SPDX-License-Identifier: GPL-3.0-or-later
"""A web server in a pod of the scenario: one archive of real files, whole or in ranges, /slow/ at 512 KiB a second until it is
interrupted; and /huge.tar, which is larger than any claim."""

from __future__ import annotations

import hashlib
import http.server
import re
import sys
import tarfile
import time
from pathlib import Path

ARCHIVE = Path("/tmp/data.tar")  # noqa: S108 - in a container of its own
SOURCES = ("/opt/persia/lib/yaml", "/usr/lib/python3.9")
CHUNK = 1 << 16


def plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """The same bytes wherever and whenever it is made."""
    if "__pycache__" in member.name or member.issym():
        return None
    member.mtime = 0
    return member


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/huge.tar":
            self.send_response(200)
            self.send_header("Content-Length", str(10**15))
            self.end_headers()
            return
        if not self.path.endswith("/data.tar"):
            self.send_error(404)
            return
        total = ARCHIVE.stat().st_size
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        begin = int(asked.group(1)) if asked else 0
        if asked and begin >= total:
            self.send_error(416)
            return
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {begin}-{total - 1}/{total}")
        self.send_header("Content-Length", str(total - begin))
        self.end_headers()
        with ARCHIVE.open("rb") as file:
            file.seek(begin)
            while chunk := file.read(CHUNK):
                self.wfile.write(chunk)
                if self.path.startswith("/slow/") and not asked:
                    # The second half takes minutes: on a busy machine, too, the pod is deleted before the end.
                    time.sleep(CHUNK / (512 << 10) if file.tell() < total / 2 else 2)


with tarfile.open(ARCHIVE, "w") as tar:
    for source in SOURCES:
        for path in sorted(Path(source).rglob("*")):
            tar.add(path, recursive=False, filter=plain)
sys.stdout.write(f"sha256={hashlib.sha256(ARCHIVE.read_bytes()).hexdigest()} bytes={ARCHIVE.stat().st_size}\n")
sys.stdout.flush()
http.server.ThreadingHTTPServer(("", 8080), Handler).serve_forever()

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the init container of an elastic job runs to fetch its script from Google Cloud Storage, with google-cloud-storage."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from gcp_storage_emulator.server import create_server

from ansible_collections.muster.ml.plugins.module_utils._manifests.elastic_launch import FETCH_SCRIPT

BUCKET = "scripts"
SCRIPT = "print('from a bucket')\n"


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """An emulator with the script in a bucket."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    server = create_server("127.0.0.1", port, in_memory=True, default_bucket=BUCKET)
    server.start()
    url = f"http://127.0.0.1:{port}"
    upload = f"{url}/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name=elastic%2Ftrain.py"
    urllib.request.urlopen(urllib.request.Request(upload, SCRIPT.encode())).close()  # noqa: S310
    yield url
    server.stop()


def fetch(store: str, folder: Path, name: str) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Run it as in an image that has Python and the library, but neither gcloud nor gsutil."""
    programs, to = folder / "bin", folder / "train.py"
    programs.mkdir()
    (programs / "sh").symlink_to("/bin/sh")
    (programs / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    (programs / "python3").chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", FETCH_SCRIPT, "fetch.sh", f"gs://{BUCKET}/{name}", str(to)],
        env={"PATH": os.fspath(programs), "STORAGE_EMULATOR_HOST": store}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done, to


def test_the_script_arrives(store: str, tmp_path: Path) -> None:
    done, to = fetch(store, tmp_path, "elastic/train.py")
    assert done.returncode == 0, done.stderr
    assert to.read_text(encoding="utf-8") == SCRIPT


def test_what_is_not_there_is_an_error(store: str, tmp_path: Path) -> None:
    done, to = fetch(store, tmp_path, "elastic/other.py")
    assert done.returncode != 0
    assert "404" in done.stderr
    assert not to.exists()

# SPDX-License-Identifier: GPL-3.0-or-later
"""What the init container of an elastic job runs to fetch its script from Google Cloud Storage."""

import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from gcp_storage_emulator.server import create_server

from ansible_collections.muster.ml.plugins.module_utils._pod_programs.dataset_fetch import EXIT_PERMANENT
from simulators.fetch import SCRIPT, fetch

BUCKET = "scripts"


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


def test_the_script_arrives(store: str, tmp_path: Path) -> None:
    done, to = fetch(f"gs://{BUCKET}/elastic/train.py", tmp_path, {"STORAGE_EMULATOR_HOST": store})
    assert done.returncode == 0, done.stdout
    assert to.read_text(encoding="utf-8") == SCRIPT


def test_what_is_not_there_is_an_error(store: str, tmp_path: Path) -> None:
    done, to = fetch(f"gs://{BUCKET}/elastic/other.py", tmp_path, {"STORAGE_EMULATOR_HOST": store})
    assert done.returncode == EXIT_PERMANENT
    assert "404" in done.stdout
    assert not to.exists()

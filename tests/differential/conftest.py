# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real kubectl."""

from __future__ import annotations

import os
import subprocess

import pytest
from support.places import BIN, ROOT


@pytest.fixture(scope="session")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Built like the rest of the local cluster, from the same pins, once per machine."""
    found = tmp_path_factory.mktemp("kubectl") / "path"
    words = [
        BIN / "ansible-playbook",
        "-e",
        f"bench_kubectl_path_file={found}",
        ROOT / "tests" / "bench" / "kubectl.yml",
    ]
    collections = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections")}
    subprocess.run(words, check=True, cwd=ROOT, env={**os.environ, **collections})
    return found.read_text()

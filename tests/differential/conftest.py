# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real cluster, and the kubectl to compare with."""

from __future__ import annotations

import os
import subprocess
import typing as t
from collections.abc import Iterator

import pytest
from faults.conftest import KUBECONFIG, direct
from support.places import BIN, ROOT

from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster


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


@pytest.fixture(scope="session")
def cluster() -> Iterator[HttpCluster]:
    found = direct()
    yield found
    found.close()


def ask(kubectl: str, *words: str, **options: t.Any) -> str:
    """What kubectl prints; an error is one of the test."""
    done = subprocess.run(
        [kubectl, "--kubeconfig", KUBECONFIG, *words], capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout

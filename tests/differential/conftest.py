# SPDX-License-Identifier: GPL-3.0-or-later
"""The real cluster, and the kubectl to compare with."""

import subprocess
import typing as t
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.conftest import KUBECONFIG, direct
from support.places import local_kubectl

from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster


@pytest.fixture(scope="session")
def kubectl() -> str:
    """That of the cluster, built from the same pins."""
    return local_kubectl(KUBECONFIG)


@pytest.fixture(scope="session")
def cluster() -> Iterator[HttpCluster]:
    found = direct()
    yield found
    found.close()


def ask(kubectl: str, *words: str, **options: t.Any) -> str:
    """What kubectl prints; an error is one of the test."""
    command: list[str | Path] = [kubectl, "--kubeconfig", KUBECONFIG, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stderr[-4000:]
    return str(done.stdout)

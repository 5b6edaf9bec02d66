# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs what the first container of an elastic job does where its script is in a bucket."""

import os
import subprocess
import sys
from pathlib import Path

from ansible_collections.muster.ml.plugins.module_utils._pod_programs import dataset_fetch

SCRIPT = "print('from a bucket')\n"


def fetch(url: str, folder: Path, environment: dict[str, str]) -> tuple[subprocess.CompletedProcess[str], Path]:
    """As in an image that has Python, and nothing besides: -S leaves out this environment's libraries."""
    to = folder / "train.py"
    done = subprocess.run(
        [sys.executable, "-I", "-S", dataset_fetch.__file__, url, str(to)],
        env={**environment, "PATH": os.fspath(folder)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done, to

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs what the first container of an elastic job does where its script is in a bucket."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ansible_collections.muster.ml.plugins.module_utils._pod_programs import elastic_fetch

SCRIPT = "print('from a bucket')\n"


def fetch(
    url: str, folder: Path, environment: dict[str, str], **programs: Path
) -> tuple[subprocess.CompletedProcess[str], Path]:
    """As in an image that has Python with this environment's libraries, and only these programs besides."""
    image, to = folder / "bin", folder / "train.py"
    image.mkdir()
    for name, program in {"sh": Path("/bin/sh"), "python3": Path(sys.executable), **programs}.items():
        (image / name).write_text(f'#!/bin/sh\nexec {program} "$@"\n', encoding="utf-8")
        (image / name).chmod(0o755)
    done = subprocess.run(
        [sys.executable, elastic_fetch.__file__, url, str(to)],
        env={**environment, "PATH": os.fspath(image)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done, to

# SPDX-License-Identifier: GPL-3.0-or-later
"""A playbook with this collection, that shows no secret."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support import canary
from support.places import BIN, ROOT

LOCAL = ("-i", "localhost,", "-c", "local")


def played(
    playbook: str,
    folder: Path,
    variables: Mapping[str, Any],
    *more: str,
    secrets: Mapping[str, str],
    fails: bool = False,
    where: Sequence[str] = LOCAL,
    **environment: str,
) -> str:
    """The output of a PLAYBOOK that FAILS or does not. Neither it nor the processes meanwhile show one of the SECRETS."""
    settings = folder / "settings.json"
    settings.touch(mode=0o600)
    settings.write_text(json.dumps({**variables, "ansible_python_interpreter": sys.executable}))
    words = [BIN / "ansible-playbook", *where, "-e", f"@{settings}", playbook, *more]
    own = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / "build" / "collections"), "NO_COLOR": "1", **environment}
    with canary.ProcessWatch(secrets) as watch:
        done = subprocess.run(words, cwd=ROOT, env={**os.environ, **own}, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    assert watch.found == set()
    assert canary.in_text(secrets, output.encode()) == set()
    assert bool(done.returncode) == fails, output
    return output

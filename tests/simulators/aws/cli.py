# SPDX-License-Identifier: GPL-3.0-or-later
"""The AWS CLI as a second reader beside boto3: what AWS's own users would see of the simulated account."""

import fcntl
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ..client import TESTS
from .client import Simulator

REQUIREMENTS = Path(__file__).with_name("requirements-cli.txt")
HOME = TESTS.parent / "build" / "aws-cli"


class Cli:
    """Calls commands of the CLI, and returns what they print."""

    def __init__(self, aws: Simulator) -> None:
        self._environment = aws.environment()
        self._program = installed()

    def __call__(self, *arguments: str) -> Any:
        """An empty answer is one without anything in it."""
        done = subprocess.run(
            [self._program, "--output", "json", *arguments],
            env=self._environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout or "{}")


def installed() -> Path:
    """The program, in an environment of its own; made anew when the pins have changed, by one of the tests' processes."""
    HOME.parent.mkdir(exist_ok=True)
    stamp = HOME / REQUIREMENTS.name
    desired = REQUIREMENTS.read_bytes()
    with HOME.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_bytes() != desired:
            subprocess.run([sys.executable, "-m", "venv", "--clear", HOME], check=True)
            subprocess.run([HOME / "bin" / "pip", "install", "--quiet", "--no-compile", "-r", REQUIREMENTS], check=True)
            stamp.write_bytes(desired)
    return HOME / "bin" / "aws"

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the first container of an elastic job does where its script is in a bucket: with the AWS CLI, and with boto3."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._manifests.elastic_launch import FETCH_SCRIPT
from simulators.aws.cli import installed
from simulators.aws.client import Simulator

SCRIPT = "print('from a bucket')\n"


@pytest.fixture(scope="module")
def url(aws: Simulator) -> str:
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="scripts", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.put_object(Bucket="scripts", Key="elastic/train.py", Body=SCRIPT.encode())
    return "s3://scripts/elastic/train.py"


def fetch(aws: Simulator, folder: Path, url: str, *, cli: bool) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Run the script as the container does, in an image that has the CLI or only Python with boto3."""
    programs = folder / "bin"
    programs.mkdir()
    there = {"sh": Path("/bin/sh"), "python3": Path(sys.executable), **({"aws": installed()} if cli else {})}
    for name, program in there.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {program} "$@"\n', encoding="utf-8")
        (programs / name).chmod(0o755)
    to = folder / "train.py"
    done = subprocess.run(
        ["/bin/sh", "-c", FETCH_SCRIPT, "fetch.sh", url, str(to)],
        env={**aws.environment(), "PATH": os.fspath(programs)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done, to


@pytest.mark.parametrize("cli", [True, False], ids=["cli", "boto3"])
def test_the_script_arrives(aws: Simulator, tmp_path: Path, url: str, *, cli: bool) -> None:
    done, to = fetch(aws, tmp_path, url, cli=cli)
    assert done.returncode == 0, done.stderr
    assert to.read_text(encoding="utf-8") == SCRIPT


@pytest.mark.parametrize("cli", [True, False], ids=["cli", "boto3"])
def test_what_is_not_there_is_an_error(aws: Simulator, tmp_path: Path, url: str, *, cli: bool) -> None:
    done, to = fetch(aws, tmp_path, f"{url}.not-there", cli=cli)
    assert done.returncode != 0
    assert "404" in done.stderr
    assert not to.exists()

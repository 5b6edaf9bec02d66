# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the first container of an elastic job does where its script is in a bucket: with the AWS CLI, and with boto3."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulators.aws.cli import installed
from simulators.aws.client import Simulator
from simulators.fetch import SCRIPT, fetch


@pytest.fixture(scope="module")
def url(aws: Simulator) -> str:
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="scripts", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.put_object(Bucket="scripts", Key="elastic/train.py", Body=SCRIPT.encode())
    return "s3://scripts/elastic/train.py"


def programs(*, cli: bool) -> dict[str, Path]:
    """What the image has besides Python with boto3."""
    return {"aws": installed()} if cli else {}


@pytest.mark.parametrize("cli", [True, False], ids=["cli", "boto3"])
def test_the_script_arrives(aws: Simulator, tmp_path: Path, url: str, *, cli: bool) -> None:
    done, to = fetch(url, tmp_path, aws.environment(), **programs(cli=cli))
    assert done.returncode == 0, done.stderr
    assert to.read_text(encoding="utf-8") == SCRIPT


@pytest.mark.parametrize("cli", [True, False], ids=["cli", "boto3"])
def test_what_is_not_there_is_an_error(aws: Simulator, tmp_path: Path, url: str, *, cli: bool) -> None:
    done, to = fetch(f"{url}.not-there", tmp_path, aws.environment(), **programs(cli=cli))
    assert done.returncode != 0
    assert "404" in done.stderr
    assert not to.exists()

# SPDX-License-Identifier: GPL-3.0-or-later
"""What the first container of an elastic job does where its script is in a bucket of S3."""

from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._pod_programs.dataset_fetch import EXIT_PERMANENT
from simulators.aws.client import Simulator
from simulators.fetch import SCRIPT, fetch


@pytest.fixture(scope="module")
def url(aws: Simulator) -> str:
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="scripts", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.put_object(Bucket="scripts", Key="elastic/train.py", Body=SCRIPT.encode())
    return "s3://scripts/elastic/train.py"


def test_the_script_arrives(aws: Simulator, tmp_path: Path, url: str) -> None:
    done, to = fetch(url, tmp_path, aws.environment())
    assert done.returncode == 0, done.stdout
    assert to.read_text(encoding="utf-8") == SCRIPT


def test_what_is_not_there_is_an_error(aws: Simulator, tmp_path: Path, url: str) -> None:
    done, to = fetch(f"{url}.not-there", tmp_path, aws.environment())
    assert done.returncode == EXIT_PERMANENT
    assert "404" in done.stdout
    assert not to.exists()

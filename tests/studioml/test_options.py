# SPDX-License-Identifier: GPL-3.0-or-later
"""What role studioml refuses before it asks a cluster, one clear reason each."""

from pathlib import Path
from typing import Any

import pytest
from rabbitmq.playing import played

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, ""),
    "the queue of another broker": ({"studioml_queue": "sqs_test"}, "and each has to begin with rmq_"),
    "the queue of an experiment": (
        {"studioml_experiments": [{"name": "a", "queue": "rmq_gpu"}], "studioml_runner_queue_match": "^rmq_studioml$"},
        "never take an experiment from rmq_gpu: studioml_runner_queue_match is ^rmq_studioml$",
    ),
    "a queue that is left out": (
        {"studioml_runner_queue_mismatch": "_studioml$"},
        "never take an experiment from rmq_studioml: studioml_runner_queue_match is ^rmq_.*$, and "
        "studioml_runner_queue_mismatch is _studioml$",
    ),
    "one name twice": ({"studioml_experiments": [{"name": "a"}, {"name": "a"}]}, "has the names a, a, and each can be used once"),
    "a store without a login": ({"studioml_endpoint_url": "https://store.example"}, "studioml_access_key, studioml_secret_key is missing"),
    "a store with TLS": (
        {"studioml_endpoint_url": "https://store.example", "studioml_access_key": "a", "studioml_secret_key": "s"},
        "The store of the runners is https://store.example, and studioml_store_ca is empty",
    ),
    "a store of AWS": ({"studioml_endpoint_url": "https://s3.amazonaws.com", "studioml_access_key": "a", "studioml_secret_key": "s"}, ""),
    "authorities for a store without TLS": ({"studioml_store_ca": "x"}, "in the cluster, without TLS, and studioml_store_ca is set"),
    "a folder": ({"studioml_dest": "/nosuch/folder"}, "studioml_dest: folder /nosuch/folder is not there"),
    "a file": ({"studioml_workspace": ["/nosuch.py"]}, "/nosuch.py is not there"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_wrong_option_is_refused_with_its_reason(what: str, tmp_path: Path) -> None:
    options, reason = REFUSED[what]
    output = played("tests/studioml/options.yml", tmp_path, options, secrets={})
    refusals = [line for line in output.splitlines() if "REFUSED" in line]
    assert (len(refusals), reason in "".join(refusals)) == (bool(reason), True), output

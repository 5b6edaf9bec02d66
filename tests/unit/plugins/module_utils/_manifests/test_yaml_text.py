# SPDX-License-Identifier: GPL-3.0-or-later
"""Our YAML reads back as the value it was made from, by YAML 1.1 rules too."""

import typing as t

import pytest
import yaml

from ansible_collections.muster.ml.plugins.module_utils._manifests.yaml_text import to_yaml


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        {"a": {}, "b": [], "c": None},
        {"yes": "no", "1": "1.10", "on": True, "n": "null"},
        {"text": 'two\nlines: "quoted" # not a comment', "empty": "", "star": "*x", "time": "12:30:45"},
        {"list": [1, 2.5, "a b", {"x": 1, "y": [1, [2, 3]]}, [], {}]},
        {"big": 1000000000, "neg": -5, "float": 1e-07, "path": "/workspace/incremental_dir/"},
        {"slots_config": {"age bucket": {"dim": 8}, "ünï": {"dim": 8}}},
        "just text",
        5,
    ],
)
def test_round_trip(value: t.Any) -> None:
    assert yaml.safe_load(to_yaml(value)) == value

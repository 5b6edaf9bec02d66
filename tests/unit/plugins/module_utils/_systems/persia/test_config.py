# SPDX-License-Identifier: GPL-3.0-or-later
"""PERSIA's configuration, of which PERSIA itself ignores what it does not know."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._systems.persia.config import check_embedding_config, check_global_config

GLOBAL: dict[str, t.Any] = {
    "common_config": {
        "metrics_config": {"enable_metrics": True, "job_name": "adult", "push_interval_seconds": 10},
        "job_type": "Train",
        "checkpointing_config": {"num_workers": 8},
    },
    "embedding_worker_config": {"forward_buffer_size": 1000, "buffered_data_expired_sec": 1000},
    "embedding_parameter_server_config": {
        "capacity": 1_000_000_000,
        "num_hashmap_internal_shards": 100,
        "enable_incremental_update": False,
        "incremental_buffer_size": 1_000_000,
        "incremental_dir": "/workspace/incremental_dir/",
        "incremental_channel_capacity": 1000,
    },
}


def embedding(**fields: t.Any) -> dict[str, t.Any]:
    return {"slots_config": {"age": {"dim": 8}, "job": {"dim": 16, "embedding_summation": True}}, **fields}


def test_a_whole_configuration_is_taken() -> None:
    check_global_config(GLOBAL)
    check_global_config({})
    check_embedding_config(embedding(feature_index_prefix_bit=8, feature_groups={"who": ["age"]}))
    check_embedding_config({"slots_config": {"a": {"dim": 8, "hash_stack_config": {"hash_stack_rounds": 2, "embedding_size": 100}}}})


# Shows row 000.17.
@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            {"common_config": {"metrics_config": {"push_interval_sec": 10}}},
            (
                r"global_config\.common_config\.metrics_config: unknown key 'push_interval_sec'\. "
                r"Did you mean 'push_interval_seconds'\?"
            ),
        ),
        ({"embedding_server_config": {}}, "unknown key 'embedding_server_config'"),
        ({"common_config": {"job_type": "train"}}, "One of Train, Eval, Infer"),
        ({"common_config": {"job_type": "Infer"}}, "needs infer_config"),
        ({"common_config": {"infer_config": {"servers": "a"}}}, "not a list of strings"),
        ({"common_config": []}, "not a dictionary"),
        ({"embedding_parameter_server_config": {"capacity": "1e9"}}, "not a whole number"),
        ({"embedding_parameter_server_config": {"capacity": 0}}, "too small"),
        ({"embedding_parameter_server_config": {"enable_incremental_update": 1}}, "not true or false"),
        ({"embedding_parameter_server_config": {"incremental_dir": 1}}, "not a string"),
    ],
)
def test_global_config_that_persia_would_ignore_or_panic_at(config: dict[str, t.Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        check_global_config(config)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "slots_config: missing"),
        ({"slots_config": {}}, "slots_config: missing"),
        ({"slot_config": {}}, "Did you mean 'slots_config'"),
        ({"slots_config": {"age": {}}}, r"slots_config\.age: dim is missing"),
        ({"slots_config": {"age": None}}, "Give at least dim"),
        ({"slots_config": {"age": {"dim": 0}}}, r"age\.dim: 0 is too small"),
        ({"slots_config": {"age": {"dim": "8"}}}, "not a whole number"),
        ({"slots_config": {"age": {"dim": True}}}, "not a whole number"),
        ({"slots_config": {"age": {"dim": 8, "dims": 8}}}, "Did you mean 'dim'"),
        ({"slots_config": {"age": {"dim": 8, "index_prefix": 1}}}, "Leave it out"),
        (embedding(feature_index_prefix_bit=0), "feature_index_prefix_bit: 0 is too small"),
        (embedding(feature_index_prefix_bit=64), "leaves no bit"),
        (embedding(feature_index_prefix_bit=1), "cannot tell 2 features apart"),
        (embedding(feature_groups={"age": ["job"]}), "must not have the name of a slot"),
        (embedding(feature_groups={"who": ["agee"]}), "'agee' is not in slots_config"),
        (embedding(feature_groups={"a": ["age"], "b": ["age"]}), "in group 'a' already"),
        (embedding(feature_groups=["age"]), "not a dictionary"),
    ],
)
def test_embedding_config_that_persia_would_panic_at(config: dict[str, t.Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        check_embedding_config(config)

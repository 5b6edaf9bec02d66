# SPDX-License-Identifier: GPL-3.0-or-later
"""PERSIA's two configuration files, checked more strictly than by PERSIA.

PERSIA ignores unknown keys, so that a misspelt one silently leaves the default in force, and most other mistakes end in a panic inside
a pod. Here they are refused before anything is created.
"""

from __future__ import annotations

import functools
import typing as t
from collections.abc import Mapping

from ..._core.errors import InvalidInput
from ..._manifests.meta import check_count, refuse_unknown_keys

_Check = t.Callable[[t.Any, str], object]

MAX_PREFIX_BIT = 63


def _is(kind: type, word: str) -> _Check:
    def check(value: t.Any, where: str) -> None:
        if not isinstance(value, kind):
            raise InvalidInput(f"{where}: {value!r} is not {word}.")

    return check


def _number(minimum: int) -> _Check:
    return functools.partial(check_count, minimum=minimum)


def _choice(*words: str) -> _Check:
    def check(value: t.Any, where: str) -> None:
        if value not in words:
            raise InvalidInput(f"{where}: {value!r} is unknown.", f"One of {', '.join(words)}.")

    return check


def _texts(value: t.Any, where: str) -> None:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise InvalidInput(f"{where}: {value!r} is not a list of strings.")


_BOOL, _TEXT = _is(bool, "true or false"), _is(str, "a string")

_GLOBAL: dict[str, t.Any] = {
    "common_config": {
        "metrics_config": {"enable_metrics": _BOOL, "job_name": _TEXT, "push_interval_seconds": _number(1)},
        "job_type": _choice("Train", "Eval", "Infer"),
        "infer_config": {"servers": _texts, "embedding_checkpoint": _TEXT},
        "checkpointing_config": {"num_workers": _number(1)},
    },
    "embedding_worker_config": {"forward_buffer_size": _number(1), "buffered_data_expired_sec": _number(1)},
    "embedding_parameter_server_config": {
        "capacity": _number(1),
        "num_hashmap_internal_shards": _number(1),
        "enable_incremental_update": _BOOL,
        "incremental_buffer_size": _number(1),
        "incremental_dir": _TEXT,
        "incremental_channel_capacity": _number(1),
    },
}

_SLOT: dict[str, t.Any] = {
    "dim": _number(1),
    "sample_fixed_size": _number(1),
    "embedding_summation": _BOOL,
    "sqrt_scaling": _BOOL,
    "hash_stack_config": {"hash_stack_rounds": _number(0), "embedding_size": _number(0)},
}


def _check_tree(value: t.Any, known: Mapping[str, t.Any], where: str) -> None:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{where}: {value!r} is not a dictionary.")
    refuse_unknown_keys(value, known, where)
    for key, item in value.items():
        rule = known[key]
        if isinstance(rule, Mapping):
            _check_tree(item, rule, f"{where}.{key}")
        else:
            rule(item, f"{where}.{key}")


# Of PersiaML/PERSIA before b74e8c6 (1 September 2021), before ebe7551 (23 November 2021), and of its examples of today.
_RENAMED = {
    "shard_server_config": "embedding_parameter_server_config",
    "embedding_server_config": "embedding_parameter_server_config",
    "middleware_config": "embedding_worker_config",
    "push_interval_sec": "push_interval_seconds",
}


def current_names(config: t.Any) -> t.Any:
    """The configuration with the names that PERSIA reads today instead of those that it had, which it would ignore."""
    if not isinstance(config, Mapping):
        return config
    named = _renamed(config)
    if isinstance(common := named.get("common_config"), Mapping):
        common = {key: _renamed(value) if key == "metrics_config" else value for key, value in common.items()}
        if "num_embedding_io_workers" in common and "checkpointing_config" not in common:  # before 0a3ad0d (17 November 2021)
            common["checkpointing_config"] = {"num_workers": common.pop("num_embedding_io_workers")}
        named["common_config"] = common
    return named


def _renamed(given: t.Any) -> t.Any:
    if not isinstance(given, Mapping):
        return given
    return {_RENAMED[key] if key in _RENAMED and _RENAMED[key] not in given else key: value for key, value in given.items()}


def check_global_config(config: Mapping[str, t.Any]) -> None:
    """Raise InvalidInput for the first thing in global_config.yml that PERSIA would ignore or stumble over."""
    _check_tree(config, _GLOBAL, "global_config")
    common = config.get("common_config") or {}
    if common.get("job_type") == "Infer" and not common.get("infer_config"):
        raise InvalidInput("global_config.common_config: job_type Infer needs infer_config.", "Give servers and embedding_checkpoint.")


def check_embedding_config(config: Mapping[str, t.Any]) -> None:
    """Raise InvalidInput for the first thing in embedding_config.yml that PERSIA would ignore or stumble over."""
    where = "embedding_config"
    if not isinstance(config, Mapping):
        raise InvalidInput(f"{where}: {config!r} is not a dictionary.")
    refuse_unknown_keys(config, ("feature_index_prefix_bit", "slots_config", "feature_groups"), where)
    prefix_bit = config.get("feature_index_prefix_bit", 8)
    check_count(prefix_bit, f"{where}.feature_index_prefix_bit", minimum=1)
    if prefix_bit > MAX_PREFIX_BIT:
        raise InvalidInput(f"{where}.feature_index_prefix_bit: {prefix_bit} leaves no bit of 64 for the ID itself.", "8 is usual.")
    slots = config.get("slots_config")
    if not isinstance(slots, Mapping) or not slots:
        raise InvalidInput(f"{where}.slots_config: missing.", "Name every ID feature there, with its dim.")
    for name, slot in slots.items():
        _check_slot(slot, f"{where}.slots_config.{name}")
    groups = _check_groups(config.get("feature_groups") or {}, slots, where)
    # Every group, and every slot outside of a group, needs a separate index prefix.
    if groups >= 2**prefix_bit:
        raise InvalidInput(f"{where}.feature_index_prefix_bit: {prefix_bit} bits cannot tell {groups} features apart.", "Raise it.")


def _check_slot(slot: t.Any, where: str) -> None:
    if not isinstance(slot, Mapping):
        raise InvalidInput(f"{where}: {slot!r} is not a dictionary.", "Give at least dim.")
    if "index_prefix" in slot:
        raise InvalidInput(f"{where}.index_prefix: PERSIA computes it and refuses a given one.", "Leave it out.")
    if "dim" not in slot:
        raise InvalidInput(f"{where}: dim is missing.", "It is the width of the feature's embedding, for example 16.")
    _check_tree(slot, _SLOT, where)


def _check_groups(groups: t.Any, slots: Mapping[str, t.Any], where: str) -> int:
    """Check feature_groups; return how many index prefixes the features need."""
    if not isinstance(groups, Mapping):
        raise InvalidInput(f"{where}.feature_groups: {groups!r} is not a dictionary.")
    grouped: dict[str, str] = {}
    for group, members in groups.items():
        here = f"{where}.feature_groups.{group}"
        if group in slots:
            raise InvalidInput(f"{here}: a group must not have the name of a slot.", "Rename the group.")
        _texts(members, here)
        for member in members:
            if member not in slots:
                raise InvalidInput(f"{here}: '{member}' is not in slots_config.")
            if member in grouped:
                raise InvalidInput(f"{here}: '{member}' is in group '{grouped[member]}' already.")
            grouped[member] = group
    return len(groups) + len(slots) - len(grouped)

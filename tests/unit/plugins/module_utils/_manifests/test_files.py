# SPDX-License-Identifier: GPL-3.0-or-later
"""The user's files as a ConfigMap and as a volume: plain names as they are, paths and other characters by items."""

import base64
import re
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._manifests.shared import (
    CONFIG_MAP_MAX,
    File,
    check_files,
    files_config_map,
    mounted,
)

NPZ = {"base64": base64.b64encode(b"\xff\xfe").decode()}


def volume(files: dict[str, File]) -> dict[str, t.Any]:
    (volumes, _mounts) = mounted("muster", {"config": ("c", "/c"), "files": ("f", "/f")}, None, files)
    assert volumes[0] == {"name": "muster-config", "configMap": {"name": "c"}}
    return volumes[1]["configMap"]


def test_plain_names_are_keys() -> None:
    files: dict[str, File] = {"train.py": "", "a-b_c.csv": "1"}
    check_files(files)
    assert files_config_map({}, files)["data"] == files
    assert volume(files) == {"name": "f"}


def test_paths_and_other_characters_come_back_by_items() -> None:
    files: dict[str, File] = {"train.py": "text", "data/train.npz": NPZ, "data_train.npz": "other", "größe 1.csv": "1"}
    check_files(files)
    config = files_config_map({}, files)
    back = {item["path"]: item["key"] for item in volume(files)["items"]}
    assert back.keys() == files.keys()
    assert len(set(back.values())) == len(files)
    assert all(re.fullmatch(r"[-._a-zA-Z0-9]{1,253}", key) for key in back.values())
    stored = {**config["data"], **{key: {"base64": value} for key, value in config["binaryData"].items()}}
    assert {path: stored[key] for path, key in back.items()} == files


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"": ""}, "must be a plain file name"),
        ({"/etc/passwd": ""}, "must be a plain file name"),
        ({"a//b": ""}, "must be a plain file name"),
        ({"data/": ""}, "must be a plain file name"),
        ({"./a": ""}, "must be a plain file name"),
        ({"../a": ""}, "must be a plain file name"),
        ({"a/..b/c": ""}, "must be a plain file name"),  # the API server refuses it, too
        ({"data": "", "data/a": ""}, "'data' is a file, and so it cannot be the folder of 'data/a'"),
        ({"a": 1}, "files.a: not text"),
        ({"a": None}, "files.a: not text"),
        ({"a": {"text": "b"}}, "files.a: not text"),
        ({"a": {"base64": "%"}}, "files.a: no valid base64"),
        ({"a": {"base64": 1}}, "files.a: no valid base64"),
        ({"a": "ä" * (CONFIG_MAP_MAX // 2), "b": NPZ}, f"files: {CONFIG_MAP_MAX + 2} bytes"),
    ],
)
def test_what_cannot_be_mounted_is_refused(files: dict[str, t.Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(said)):
        check_files(files)

# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup files: what is read, under which name, and what is refused."""

import typing as t
from pathlib import Path

import pytest
from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader

from ansible_collections.muster.ml.plugins.lookup.files import LookupModule

NPZ = b"PK\x03\x04\xff\xfe"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder as PERSIA's repository has its example, with what programs leave behind."""
    for name, data in {
        "adult/train.py": b"import torch\n",
        "adult/data/train.npz": NPZ,
        "adult/config/global_config.yml": b"common_config: {}\n",
        "adult/.docker.env": b"hidden",
        "adult/__pycache__/train.pyc": b"compiled",
        "settings.yml": b"a: \xc3\xa4\n\n",
        "other/train.py": b"",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    return tmp_path


def read(here: Path, *terms: str) -> dict[str, t.Any]:
    loader = DataLoader()
    loader.set_basedir(str(here))
    lookup = LookupModule(loader=loader)
    lookup._load_name = "muster.ml.files"
    (found,) = lookup.run([str(here / term) for term in terms])
    return found


def test_folders_keep_what_is_below_them(here: Path) -> None:
    assert read(here, "adult", "settings.yml") == {
        "train.py": "import torch\n",
        "data/train.npz": {"base64": "UEsDBP/+"},
        "config/global_config.yml": "common_config: {}\n",
        "settings.yml": "a: ä\n\n",
    }


def test_nothing_is_nothing(here: Path) -> None:
    assert read(here) == {}


@pytest.mark.parametrize(
    ("terms", "said"),
    [(("adult", "other"), "other/train.py and .*/adult/train.py would both be 'train.py' in the pods"), (("nowhere",), "nowhere")],
)
def test_what_cannot_be_read_is_named(here: Path, terms: tuple[str, ...], said: str) -> None:
    with pytest.raises(AnsibleError, match=said):
        read(here, *terms)


def test_files_that_are_too_large_are_not_read(here: Path) -> None:
    (here / "adult" / "data" / "all.csv").write_bytes(b"x" * 2**21)
    with pytest.raises(AnsibleError, match=r"4 files of \d+ bytes.* the largest is .*/data/all.csv \(2097152 bytes\)"):
        read(here, "adult")

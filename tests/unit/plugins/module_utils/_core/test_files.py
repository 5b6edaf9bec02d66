# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders that an option names by mistake, and disks that are full."""

import os
import pathlib
import tempfile

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._core.files import entries, locked, replaced


def test_a_folder_with_too_many_files_is_named(tmp_path: pathlib.Path) -> None:
    """As of ``src: /``, which would be read for hours."""
    for number in range(4):
        (tmp_path / str(number)).touch()
    assert len(entries(tmp_path, "src", 4)) == 4
    with pytest.raises(InvalidInput, match=r"src: .* has more than 3 files"):
        entries(tmp_path, "src", 3)


def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, draft = tmp_path / "kubeconfig", tmp_path / "draft"
    path.write_text("old")

    def on_full_disk(**_how: object) -> tuple[int, str]:
        draft.touch()
        return os.open("/dev/full", os.O_WRONLY), str(draft)

    monkeypatch.setattr(tempfile, "mkstemp", on_full_disk)
    with pytest.raises(OSError, match="No space left on device") as caught, replaced(path) as file:
        file.write(b"new")
    assert caught.value.filename == str(path)
    assert [one.name for one in tmp_path.iterdir()] == ["kubeconfig"]
    assert path.read_text() == "old"


def test_a_link_in_the_place_of_a_lock_empties_no_file(tmp_path: pathlib.Path) -> None:
    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / ".lock").symlink_to(tmp_path / "theirs")
    with locked(tmp_path / ".lock"):
        assert (tmp_path / "theirs").read_text() == "theirs"

# SPDX-License-Identifier: GPL-3.0-or-later

"""Folders that an option names by mistake."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._core.files import entries


def test_a_folder_with_too_many_files_is_named(tmp_path: pathlib.Path) -> None:
    """As of ``src: /``, which would be read for hours."""
    for number in range(4):
        (tmp_path / str(number)).touch()
    assert len(entries(tmp_path, "src", 4)) == 4
    with pytest.raises(InvalidInput, match=r"src: .* has more than 3 files"):
        entries(tmp_path, "src", 3)

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The data of the examples come into the pods with their programs, so that any image with PERSIA or PyTorch will do."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from support.reading import load

from ansible_collections.muster.ml.plugins.module_utils._manifests.shared import check_files

ROOT = Path(__file__).resolve().parents[3]
DATA = {"elastic": "digits.csv", "persia": "fair.csv"}


def brought(system: str) -> dict[str, str]:
    """The files that the default of the role names, as they are in its ConfigMap."""
    defaults = load(ROOT / "roles" / system / "defaults" / "main.yml")
    patterns = re.findall(r"role_path ~ '/([^']+)'", defaults[f"{system}_files"])
    named = {path for pattern in patterns for path in (ROOT / "roles" / system).glob(pattern)}
    return {path.name: path.read_text(encoding="utf-8") for path in named}


@pytest.mark.parametrize(("system", "name"), DATA.items())
def test_the_data_travel_with_the_programs(system: str, name: str) -> None:
    files = brought(system)
    assert {"train.py", name} <= set(files)
    assert any(f'Path(__file__).with_name("{name}")' in text for text in files.values())
    assert not [file for file, text in files.items() if re.search(r'"/(opt|usr|data)/', text)]
    check_files(files)


def test_the_data_are_whole() -> None:
    digits = [row.split(",") for row in brought("elastic")["digits.csv"].splitlines()]
    assert (len(digits), {len(row) for row in digits}) == (1797, {65})
    fair = list(csv.DictReader(brought("persia")["fair.csv"].splitlines()))
    assert (len(fair), sum(float(row["affairs"]) > 0 for row in fair)) == (6366, 2053)


def test_no_image_of_ours_holds_them() -> None:
    recipes = (ROOT / "roles" / "local_images" / "vars" / "main.yml").read_text(encoding="utf-8")
    assert not [name for name in DATA.values() if name in recipes]

# SPDX-License-Identifier: GPL-3.0-or-later
"""The data of the examples come into the pods with their programs, so that any image with PERSIA or PyTorch will do."""

import csv
import gzip
import re
from pathlib import Path

import pytest
from support.reading import load

ROOT = Path(__file__).resolve().parents[3]
DATA = {"elastic": "digits.csv.gz", "persia": "fair.csv.gz"}


def brought(system: str) -> dict[str, Path]:
    """The files that the default of the role names."""
    defaults = load(ROOT / "roles" / system / "defaults" / "main.yml")
    patterns = re.findall(r"role_path ~ '/([^']+)'", defaults[f"{system}_files"])
    return {path.name: path for pattern in patterns for path in (ROOT / "roles" / system).glob(pattern)}


def rows(system: str) -> list[str]:
    return gzip.decompress(brought(system)[DATA[system]].read_bytes()).decode().splitlines()


@pytest.mark.parametrize(("system", "name"), DATA.items())
def test_the_data_travel_with_the_programs(system: str, name: str) -> None:
    files = brought(system)
    programs = {file: path.read_text(encoding="utf-8") for file, path in files.items() if file != name}
    assert "train.py" in programs
    assert name in files
    assert any(f'Path(__file__).with_name("{name}")' in text for text in programs.values())
    assert not [file for file, text in programs.items() if re.search(r'"/(opt|usr|data)/', text)]


def test_the_data_are_whole() -> None:
    digits = [row.split(",") for row in rows("elastic")]
    assert (len(digits), {len(row) for row in digits}) == (1797, {65})
    fair = list(csv.DictReader(rows("persia")))
    assert (len(fair), sum(float(row["affairs"]) > 0 for row in fair)) == (6366, 2053)


def test_no_image_of_ours_holds_them() -> None:
    recipes = (ROOT / "roles" / "local_images" / "vars" / "main.yml").read_text(encoding="utf-8")
    assert not [name for name in DATA.values() if name in recipes]

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fault matrix in the documentation is the one that the check `faults` runs."""

from __future__ import annotations

import dataclasses

from faults.cases import ROWS
from faults.table import in_page, table


def test_the_page_shows_what_the_tests_expect() -> None:
    assert in_page() == table(map(dataclasses.asdict, ROWS)), "run the check faults, then python tests/faults/table.py"

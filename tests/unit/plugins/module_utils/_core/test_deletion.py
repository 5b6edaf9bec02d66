# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of deletion, each alone and all together."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.deletion import Candidate, why_kept

OURS = Candidate("ConfigMap ml/a", marked=True, recorded=True)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"marked": False}, "not have the mark"),
        ({"recorded": False}, "copy"),
        ({"needed": "is Namespace ml under another name"}, "under another name"),
        ({"unknown": "example.com/v1 does not answer"}, "cannot be judged"),
        ({"data": "holds data"}, "holds data; delete_data deletes it"),
    ],
)
def test_each_reason_alone_keeps_it(change: dict[str, object], told: str) -> None:
    candidate = dataclasses.replace(OURS, **change)  # type: ignore[arg-type]
    assert told in why_kept(candidate, data_option="delete_data", delete_data=False)


def test_only_data_goes_by_its_own_word() -> None:
    for marked, recorded, needed, unknown, data in itertools.product((True, False), (True, False), *[("", "x")] * 3):
        candidate = Candidate("x", marked, recorded, needed, unknown, data)
        goes = not why_kept(candidate, data_option="delete_data", delete_data=True)
        assert goes == (marked and recorded and not needed and not unknown)
        assert goes or why_kept(candidate, data_option="delete_data", delete_data=False)

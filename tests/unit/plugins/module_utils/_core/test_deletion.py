# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of deletion, each alone and all together."""

import dataclasses
import itertools

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.deletion import Candidate, why_kept

OURS = Candidate("ConfigMap ml/a", marked=True, recorded=True)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"marked": False}, "not have the mark"),
        ({"marked": False, "other": "web of namespace b"}, "does not have the mark of this owner, but that of web of namespace b"),
        ({"recorded": False}, "copy"),
        ({"needed": "is Namespace ml under another name"}, "under another name"),
        ({"unknown": "example.com/v1 does not answer"}, "cannot be judged"),
        ({"beyond": "is in namespace x"}, "is in namespace x"),
        ({"data": "holds data"}, "holds data; delete_data: true deletes it"),
    ],
)
def test_each_reason_alone_keeps_it(change: dict[str, object], told: str) -> None:
    candidate = dataclasses.replace(OURS, **change)  # type: ignore[arg-type]
    assert told in why_kept(candidate, delete_data=False)


def test_only_data_goes_by_its_own_word() -> None:
    for marked, recorded, *texts in itertools.product((True, False), (True, False), *[("", "x")] * 4):
        needed, unknown, data, beyond = texts
        candidate = Candidate("x", marked, recorded, needed, unknown, data, beyond)
        goes = not why_kept(candidate, delete_data=True)
        assert goes == (marked and recorded and not needed and not unknown and not beyond)
        assert goes or why_kept(candidate, delete_data=False)

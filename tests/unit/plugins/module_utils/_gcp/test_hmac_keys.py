# SPDX-License-Identifier: GPL-3.0-or-later
"""Which key is used, which ones go: never one that somebody else may use."""

import pytest

from ansible_collections.muster.ml.plugins.module_utils._gcp.hmac_keys import Decision, HmacKeys, Note, decide, decide_absent

A = "ACTIVE"


@pytest.mark.parametrize(
    ("states", "note", "rotate", "expected"),
    [
        ({}, Note(), False, Decision(make=True)),
        ({"theirs": A}, Note(), False, Decision(make=True)),
        ({"k": A}, Note("k"), False, Decision()),
        ({"k": "INACTIVE"}, Note("k"), False, Decision()),
        ({}, Note("k"), False, Decision(make=True)),
        ({"k": A, "theirs": A}, Note("k"), True, Decision(make=True, remove=("k",))),
        # killed after the note
        ({"theirs": A}, Note("", ("theirs",)), False, Decision(make=True)),
        ({"k": A}, Note("k", ("k",)), False, Decision(clear=True)),
        # killed between Google's answer and the Secret, or never; another cluster with the same account may have made the later one
        ({"theirs": A, "later": A}, Note("", ("theirs",)), False, Decision(make=True, unknown=("later",))),
        ({"k": A, "later": A}, Note("k", ("k",)), False, Decision(clear=True, unknown=("later",))),
        ({"k": A, "later": A}, Note("k", ("k",)), True, Decision(make=True, remove=("k",), unknown=("later",))),
        ({"k": A, "later": A}, Note("k"), False, Decision()),
        # killed before the old one was deleted; and it was
        ({"k": A, "old": "INACTIVE"}, Note("k", None, ("old",)), False, Decision(remove=("old",))),
        ({"k": A}, Note("k", None, ("old",)), False, Decision()),
    ],
)  # fmt: skip
def test_what_is_done_follows_from_what_is_noted(states: dict[str, str], note: Note, rotate: bool, expected: Decision) -> None:
    assert decide(states, note, rotate=rotate) == expected


def test_absent_takes_what_was_ours() -> None:
    states = {"k": A, "old": A, "later": A, "theirs": A}
    note = Note("k", ("k", "old", "theirs"), ("old",))
    assert decide_absent(states, note) == Decision(remove=("old", "k"), unknown=("later",))
    assert decide_absent(states, Note()).remove == ()


def test_an_active_key_is_deactivated_first() -> None:
    keys = HmacKeys("p", "a@b")
    assert [step.verb for step in keys.removal("k", A)] == ["PUT", "DELETE"]
    assert [step.verb for step in keys.removal("k", "INACTIVE")] == ["DELETE"]

# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of AWS that others published, read as ours would be: what is there already is not changed, and troubles are told.

recorded/aws.json has them, cut to what is read of them, with the class that reads them and options that say what is there.
"""

import importlib
import json
import typing as t

import pytest
from support.places import ROOT

from ansible_collections.muster.ml.plugins.module_utils._aws.api import Api
from ansible_collections.muster.ml.tests.unit.fakes.aws import Refusal
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock

ROWS: list[dict[str, t.Any]] = json.loads((ROOT / "tests" / "unit" / "recorded" / "aws.json").read_text(encoding="utf-8"))


class Recorded:
    """A client that gives the recorded answers, and knows nothing else."""

    def __init__(self, answers: dict[str, t.Any]) -> None:
        self.answers = answers

    def __getattr__(self, operation: str) -> t.Callable[..., t.Any]:
        def call(**_request: t.Any) -> t.Any:
            if operation not in self.answers:
                raise Refusal("ResourceNotFoundException")
            return self.answers[operation]

        return call

    @staticmethod
    def can_paginate(_operation: str) -> bool:
        return False


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["source"])
def test_what_aws_answered_is_what_was_asked_for(row: dict[str, t.Any]) -> None:
    module, name = row["kind"].split(".")
    kind = getattr(importlib.import_module(f"ansible_collections.muster.ml.plugins.module_utils._aws.{module}"), name)
    desired = kind(**row["options"])
    live = desired.read(Api(lambda _service: Recorded(row["answers"]), FakeClock()))
    state = desired.state(live)
    assert (state.stable, state.failure) == (row.get("stable", True), "")
    assert row.get("seen", "") in state.seen
    assert [str(step) for step in desired.plan(live).steps] == row.get("steps", [])

# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of Google that others published, read as ours would be: what is there already is not changed, and troubles are told.

recorded/google.json has them, cut to what is read of them, with the class that reads them and options that say what is there. `libcloud` is
apache/libcloud, libcloud/test/compute/fixtures/gce.
"""

import importlib
import json
import re
import typing as t

import pytest
from support.places import ROOT

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._gcp.errors import problem, refusal

ROWS: list[dict[str, t.Any]] = json.loads((ROOT / "tests" / "unit" / "recorded" / "google.json").read_text(encoding="utf-8"))


def rows(key: str) -> list[t.Any]:
    return [pytest.param(row, id=row["source"]) for row in ROWS if key in row]


@pytest.mark.parametrize("row", rows("live"))
def test_what_google_answered_is_what_was_asked_for(row: dict[str, t.Any]) -> None:
    module, name = row["kind"].split(".")
    kind = getattr(importlib.import_module(f"ansible_collections.muster.ml.plugins.module_utils._gcp.{module}"), name)
    desired = kind(project="p", **row["options"])
    if "raises" in row:
        with pytest.raises(InvalidInput, match=re.escape(row["raises"])):
            desired.plan(row["live"])
        return
    assert [str(step) for step in desired.plan(row["live"]).steps] == row.get("steps", [])


@pytest.mark.parametrize("row", rows("ended"))
def test_the_end_of_an_operation(row: dict[str, t.Any]) -> None:
    assert problem(row["ended"]).code == row["code"]


@pytest.mark.parametrize("row", rows("refused"))
def test_a_refusal(row: dict[str, t.Any]) -> None:
    refused = refusal("x", "compute", row["http"], row["refused"])
    assert (refused.code, refused.cause) == (row["code"], row.get("cause", ""))
    assert row.get("hint", "") in str(refused.hint)
    assert refused.delay == row.get("delay")

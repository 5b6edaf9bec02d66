# SPDX-License-Identifier: GPL-3.0-or-later
"""What a diff shows of objects with long texts in them."""

from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.module_utils._kube.report import LONGEST, Change, Report

REF = Ref("v1", "ConfigMap", "files", "ml")


def test_a_long_text_is_cut_and_a_changed_one_still_differs() -> None:
    rows = "3,32,9\n" * LONGEST
    before, after = ({"data": {"fair.csv": text, "train.py": "import torch\n"}} for text in (rows, rows + "1,1,1\n"))
    (shown,) = Report([Change(REF, "updated", before=before, after=after)]).diff()
    assert shown["after"]["data"]["train.py"] == "import torch\n"
    texts = [shown[side]["data"]["fair.csv"] for side in ("before", "after")]
    assert texts[0] != texts[1]
    assert all(len(text) < 300 and text.startswith("3,32,9\n") for text in texts)
    assert f"({len(rows)} characters" in texts[0]


def test_a_text_within_the_limit_is_shown_whole() -> None:
    before, after = ({"spec": {"args": [letter * LONGEST]}} for letter in "xy")
    (shown,) = Report([Change(REF, "updated", before=before, after=after)]).diff()
    assert (shown["before"], shown["after"]) == (before, after)


def test_a_program_of_an_object_that_is_created_is_not_listed() -> None:
    text = "print()\n" * 100
    (shown,) = Report([Change(REF, "created", after={"data": {"train.py": text}})]).diff()
    assert shown["before"] == ""
    assert len(shown["after"]["data"]["train.py"]) < 300
    assert f"({len(text)} characters" in shown["after"]["data"]["train.py"]

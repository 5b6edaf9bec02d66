# SPDX-License-Identifier: GPL-3.0-or-later
"""What is told when a Kubernetes version leaves standard support."""

from __future__ import annotations

import datetime as dt
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._aws.api import Api
from ansible_collections.muster.ml.plugins.module_utils._aws.eks_cluster import support_notice
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock

ROW = {
    "clusterVersion": "1.34",
    "endOfStandardSupportDate": dt.datetime(2026, 12, 2, tzinfo=dt.UTC),
    "endOfExtendedSupportDate": dt.datetime(2027, 12, 2, tzinfo=dt.UTC),
}


class Refusal(Exception):
    response: t.ClassVar = {"Error": {"Code": "AccessDeniedException", "Message": "no"}}


class Eks:
    def __init__(self, rows: list[dict[str, t.Any]] | None) -> None:
        self.rows = rows

    def describe_cluster_versions(self, **_request: t.Any) -> dict[str, t.Any]:
        if self.rows is None:
            raise Refusal
        return {"clusterVersions": self.rows}


def told(today: dt.date, support_type: str, rows: list[dict[str, t.Any]] | None) -> str:
    return support_notice(Api(lambda _service: Eks(rows), FakeClock()), "1.34", support_type, today)


@pytest.mark.parametrize(
    ("today", "support_type", "words"),
    [
        (dt.date(2026, 9, 2), "STANDARD", ""),
        (dt.date(2026, 9, 3), "STANDARD", "1.34 leaves standard support on 2026-12-02, in 90 days: AWS upgrades the control plane then"),
        (dt.date(2026, 12, 1), "EXTENDED", "in 1 days: the control plane costs six times as much from then on, until 2027-12-02"),
        (dt.date(2026, 12, 2), "EXTENDED", "1.34 left standard support on 2026-12-02"),
    ],
)
def test_it_is_told_from_90_days_before(today: dt.date, support_type: str, words: str) -> None:
    said = told(today, support_type, [ROW])
    assert words in said if words else not said


def test_not_knowing_is_no_error() -> None:
    today = dt.date(2026, 12, 1)
    assert told(today, "STANDARD", []) == ""
    assert told(today, "STANDARD", None) == ""

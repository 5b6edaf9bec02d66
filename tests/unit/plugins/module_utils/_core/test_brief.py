# SPDX-License-Identifier: GPL-3.0-or-later
"""One short line of progress, and everything in the error."""

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.brief import LONGEST, Missing, grouped, in_brief, listed
from ansible_collections.muster.ml.plugins.module_utils._core.clock import Deadline
from ansible_collections.muster.ml.plugins.module_utils._core.errors import WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._core.pool import Progress
from ansible_collections.muster.ml.plugins.module_utils._core.waiting import fixed_interval, wait_for
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock

ROUTES = [f"n-{number}: routes to 29 of 59 other servers" for number in range(1, 7)]


@pytest.mark.parametrize(
    ("clauses", "brief"),
    [
        (["5 of 6 servers have a pod"], "5 of 6 servers have a pod"),
        (ROUTES[:1], "n-1: routes to 29 of 59 other servers"),
        ([*ROUTES[:3], "n-9: does not answer"], "n-1 and 2 more: routes to 29 of 59 other servers"),
        ([], ""),
    ],
)
def test_equal_reasons_are_told_once(clauses: list[str], brief: str) -> None:
    assert grouped(clauses) == brief


def test_the_error_lists_what_progress_groups(clock: FakeClock) -> None:
    told: list[str] = []
    with pytest.raises(WaitTimeout) as caught:
        wait_for(lambda: (None, listed(ROUTES)), goal="NATS is not ready", deadline=Deadline(9, clock),
                 pause=fixed_interval(3, clock), progress=Progress(told.append, clock))  # fmt: skip
    assert told == ["n-1 and 5 more: routes to 29 of 59 other servers"]
    assert f"Last seen: {'; '.join(ROUTES[:4])} (and 2 more)." in caught.value.message


def test_nothing_missing_is_the_end_of_a_wait() -> None:
    assert listed([]) is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\n  b", "a b"),
        ("word " * 40, "word " * 11 + "... " + "word " * 10 + "word"),
        ("x" * 200, "x" * 57 + " ... " + "x" * 57),
        (Missing("long", "short"), "short"),
    ],
)
def test_a_line_of_progress_is_short(text: str, line: str) -> None:
    assert in_brief(text) == line
    assert len(in_brief(text)) <= LONGEST


def test_a_line_of_progress_names_the_object_and_ends_with_the_cause() -> None:
    """As the kubelet of Kubernetes 1.36 with containerd 2 tells of a registry whose name does not resolve."""
    image = "registry.nope.example/team/train:1"
    line = in_brief(
        f'Pending: 0 of 2 pods run; digits-0 and 1 more: ImagePullBackOff: Back-off pulling image "{image}": ErrImagePull: failed to pull '
        f'and unpack image "{image}": failed to resolve reference "{image}": failed to do request: Head "https://{image}": dial tcp: '
        "lookup registry.nope.example on 10.96.0.10:53: no such host"
    )
    assert line.startswith("Pending: 0 of 2 pods run; digits-0 and 1 more")
    assert line.endswith("registry.nope.example on 10.96.0.10:53: no such host")

# SPDX-License-Identifier: GPL-3.0-or-later
"""The one loop that waits: it ends in time, survives what passes, and says what was seen last."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.clock import Deadline
from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, Forbidden, Gone, ServerError, Unreachable, WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._core.pool import Progress
from ansible_collections.muster.ml.plugins.module_utils._core.waiting import fixed_interval, growing_interval, last_answer, wait_for
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock

Answer: t.TypeAlias = "str | Exception | None"
BEGAN = 1000


def looks(*answers: Answer) -> t.Callable[[], tuple[str, str | None]]:
    """Complaints and errors one after the other, the last one for ever."""
    following = list(answers)

    def look() -> tuple[str, str | None]:
        answer = following.pop(0) if len(following) > 1 else following[0]
        if isinstance(answer, Exception):
            raise answer
        return f"answer to {answer}", answer

    return look


def wait(clock: FakeClock, *answers: Answer, seconds: float = 60, **options: t.Any) -> str:
    given = {"goal": "x is not ready", "deadline": Deadline(seconds, clock), "pause": fixed_interval(2, clock), **options}
    return wait_for(looks(*answers), **given)


def test_what_is_ready_is_not_waited_for(clock: FakeClock) -> None:
    assert wait(clock, None, seconds=0) == "answer to None"
    assert clock.now == BEGAN


@pytest.mark.parametrize("trouble", [Gone("410"), Unreachable("refused"), ServerError("503")])
def test_what_passes_is_waited_out(clock: FakeClock, trouble: Exception) -> None:
    assert wait(clock, trouble, "not yet", trouble, trouble, None)


@pytest.mark.parametrize("trouble", [Gone("410"), Unreachable("refused"), ServerError("503")])
def test_trouble_that_stays_ends_at_the_deadline(clock: FakeClock, trouble: Exception) -> None:
    with pytest.raises(WaitTimeout):
        wait(clock, trouble)
    assert clock.now == pytest.approx(BEGAN + 60, abs=0.1)


def test_trouble_of_the_pause_is_trouble(clock: FakeClock) -> None:
    def broken(_left: float) -> None:
        raise Unreachable("The watch broke off.")

    with pytest.raises(WaitTimeout, match=r"^x is not ready after 60 s\. Last seen: not yet\. The watch broke off\.$"):
        wait(clock, "not yet", pause=broken)
    assert clock.now == pytest.approx(BEGAN + 60, abs=0.1)


def test_a_refusal_counts_where_nothing_was_allowed_before(clock: FakeClock) -> None:
    with pytest.raises(Forbidden):
        wait(clock, Forbidden("never"))
    assert wait(clock, "not yet", Unreachable("it restarts"), Forbidden("not yet"), None)


def test_a_failure_ends_the_wait(clock: FakeClock) -> None:
    with pytest.raises(Failed):
        wait(clock, "not yet", Failed("It ended."), None)


@pytest.mark.parametrize(
    ("answers", "said", "last"),
    [
        (["starts", "runs."], "x is not ready after 60 s. Last seen: runs.", "runs"),
        ([ServerError("It fails.")], "x is not ready after 60 s. It fails.", "It fails"),
        ([Gone("410")], "x is not ready after 60 s. Nothing was seen yet.", "Nothing was seen yet"),
    ],
)
def test_the_deadline_says_what_was_seen(clock: FakeClock, answers: list[Answer], said: str, last: str) -> None:
    with pytest.raises(WaitTimeout) as caught:
        wait(clock, *answers, hint="Look there.")
    assert (caught.value.message, caught.value.hint, caught.value.last_seen) == (said, "Look there.", [last])


def test_no_pause_is_longer_than_what_is_left(clock: FakeClock) -> None:
    with pytest.raises(WaitTimeout):
        wait(clock, "not yet", seconds=5, pause=fixed_interval(4, clock))
    assert clock.now == pytest.approx(BEGAN + 5, abs=0.1)


def test_progress_is_told(clock: FakeClock) -> None:
    told: list[str] = []
    wait(clock, "a", "a", "a", "b", "b", "b", "c", None, progress=Progress(told.append, clock))
    assert told == ["b", "c"]


def test_pauses_grow(clock: FakeClock) -> None:
    pause, times = growing_interval(1, 3, clock), []
    for _turn in range(5):
        pause(100)
        times.append(clock.now - BEGAN)
    assert times == [1, 2.5, 4.75, 7.75, 10.75]


def test_an_answer_that_may_be_missing(clock: FakeClock) -> None:
    def ask(*answers: Answer) -> str:
        return last_answer(looks(*answers), deadline=Deadline(2, clock), pause=fixed_interval(0.5, clock))

    assert ask("strange", None) == "answer to None"
    assert ask("a", "b") == "answer to b"
    assert ask("a", Unreachable("refused")) == "answer to a"
    with pytest.raises(Unreachable):
        ask(Unreachable("refused"))

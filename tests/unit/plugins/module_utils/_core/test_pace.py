# SPDX-License-Identifier: GPL-3.0-or-later
"""Rate limit and patience on a clock that passes only when somebody waits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.muster.ml.plugins.module_utils._core.errors import ApplyFailed, MusterError, NotFound
from ansible_collections.muster.ml.plugins.module_utils._core.pace import Backoff, TokenBucket
from ansible_collections.muster.ml.plugins.module_utils._core.pool import Progress, raise_all, run_all
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock


@given(st.integers(1, 200), st.integers(1, 50), st.integers(1, 400))
def test_never_more_than_burst_and_rate_allow(rate: int, burst: int, requests: int) -> None:
    clock = FakeClock()
    bucket = TokenBucket(rate, burst, clock)
    for _request in range(requests):
        bucket.take()
    assert clock.now - 1000 >= max(0, requests - burst) / rate - 1e-6


def test_a_burst_waits_for_nothing() -> None:
    clock = FakeClock()
    bucket = TokenBucket(1, 10, clock)
    for _request in range(10):
        bucket.take()
    assert clock.now == 1000


def test_patience_ends() -> None:
    clock = FakeClock()
    backoff = Backoff(clock)
    while backoff.wait_for_retry(limit=60):
        pass
    assert 50 < clock.now - 1000 <= 60


def test_retry_after_is_honoured() -> None:
    clock = FakeClock()
    assert Backoff(clock).wait_for_retry(limit=60, retry_after=7)
    assert clock.now == 1007
    assert not Backoff(clock).wait_for_retry(limit=60, retry_after=61)
    assert clock.now == 1007


def double(number: int) -> int:
    if number == 3:
        raise NotFound("no 3", hint="Take 4.")
    if number == 5:
        raise MusterError("no 5", hint="Take 4.")
    return number * 2


@pytest.mark.parametrize("parallel", [1, 4])
def test_one_failure_hides_no_other_result(parallel: int) -> None:
    results, failures = run_all(double, range(7), parallel=parallel)
    assert results == [0, 2, 4, 8, 12]
    assert [str(failure) for failure in failures] == ["no 3. Take 4.", "no 5. Take 4."]


def test_many_failures_become_one() -> None:
    with pytest.raises(ApplyFailed, match=r"2 objects failed: \(1\) no 3 \(2\) no 5 Take 4\.$"):
        raise_all(run_all(double, range(7), parallel=1)[1])
    with pytest.raises(NotFound):
        raise_all([NotFound("same"), NotFound("same")])


def test_progress_keeps_quiet_for_five_seconds_and_repeats_nothing() -> None:
    clock, told = FakeClock(), list[str]()
    progress = Progress(told.append, clock)
    for message in ("a", "b", "b", "c"):
        progress.report(message)
        clock.sleep(5)
    progress.report("c")
    assert told == ["b", "c"]

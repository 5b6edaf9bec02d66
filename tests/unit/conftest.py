# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures that all unit tests may use."""

import os
import sys
import time
import typing as t
from pathlib import Path

import hypothesis
import pytest

from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import keys
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock, FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.rabbitmq import FakeBroker
from ansible_collections.muster.ml.tests.unit.fakes.triton import FakeTriton

# ansible-test units has no pythonpath: some cases stand beside the other suites.
sys.path.append(str(Path(__file__).parents[1]))

# A busy machine is no reason to fail. `make histories` tries more.
hypothesis.settings.register_profile("muster", max_examples=int(os.environ.get("MUSTER_EXAMPLES", "10")), deadline=None)
hypothesis.settings.load_profile("muster")

# Thousands of small folders and files are made: in memory where programs may lie there, too.
_MEMORY = Path("/dev/shm")
if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) and not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

# Processor time, because a busy machine stretches any other; that, too, doubles where two cores have much else to do and nothing of Python
# is compiled yet. 6,600 tests took 150 s at rest, and 211 s beside two lanes of scenarios, which is how `make test` runs them.
_LIMIT_CPU_S = 300.0
_used: list[float] = []


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: t.Any) -> None:
    """A worker of xdist ended: note how long it computed."""
    _used.append(getattr(node, "workeroutput", {}).get("cpu_s", 0.0))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A suite too slow to run at every save is a finding of its own."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["cpu_s"] = time.process_time()
    elif (spent := time.process_time() + sum(_used)) > _LIMIT_CPU_S:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        told = f"the unit tests took {spent:.0f} s of processor time; {_LIMIT_CPU_S:.0f} s is the limit"
        session.config.get_terminal_writer().line(f"\n{told}", red=True)


@pytest.fixture
def triton() -> t.Iterator[FakeTriton]:
    """A server with one model."""
    found = FakeTriton()
    yield found
    found.stop()


@pytest.fixture
def broker() -> t.Iterator[FakeBroker]:
    """A broker with its first user."""
    found = FakeBroker()
    yield found
    found.stop()


@pytest.fixture
def small_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """RSA keys of StudioML that are quick to make are large enough."""
    monkeypatch.setattr(keys, "BITS", 2048)


@pytest.fixture
def clock() -> FakeClock:
    """Time that passes only when somebody waits."""
    return FakeClock()


@pytest.fixture
def cluster(clock: FakeClock) -> FakeCluster:
    """An empty cluster with the namespaces default and kube-system."""
    return FakeCluster(clock=clock)

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fixtures that all unit tests may use."""

from __future__ import annotations

import hypothesis
import pytest

from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock, FakeCluster

# A busy machine is no reason to fail, and the whole suite is meant to take seconds.
hypothesis.settings.register_profile("muster", max_examples=40, deadline=None)
hypothesis.settings.load_profile("muster")


@pytest.fixture
def clock() -> FakeClock:
    """Time that passes only when somebody waits."""
    return FakeClock()


@pytest.fixture
def cluster(clock: FakeClock) -> FakeCluster:
    """An empty cluster with the namespaces default and kube-system."""
    return FakeCluster(clock=clock)

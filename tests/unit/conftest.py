# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fixtures that all unit tests may use."""

from __future__ import annotations

import pytest

from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock, FakeCluster


@pytest.fixture
def clock() -> FakeClock:
    """Time that passes only when somebody waits."""
    return FakeClock()


@pytest.fixture
def cluster(clock: FakeClock) -> FakeCluster:
    """An empty cluster with the namespaces default and kube-system."""
    return FakeCluster(clock=clock)

# SPDX-License-Identifier: GPL-3.0-or-later
"""A TLS connection that the server ended: after 90 idle seconds, or because it goes down."""

from __future__ import annotations

import ssl
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden, Unreachable
from ansible_collections.muster.ml.plugins.module_utils._kube.client import Answer, HttpCluster, Transport
from ansible_collections.muster.ml.plugins.module_utils._kube.kubeconfig import Connection
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock

POD = Ref("v1", "Pod", "p", "ml")
BROKEN = ssl.SSLEOFError(8, "EOF occurred in violation of protocol")


class Wire(Transport):
    """Answers from a list; an exception in it is raised."""

    def __init__(self, clock: FakeClock, *answers: Answer | Exception) -> None:
        super().__init__(Connection(server="https://127.0.0.1:1", source="a test"), clock)
        self.answers = list(answers)

    def _exchange(self, *args: t.Any) -> Answer:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        self._answered = True
        return answer


def pod() -> Answer:
    return Answer(200, b'{"metadata": {"name": "p"}}')


def test_a_connection_that_worked_is_made_anew(clock: FakeClock) -> None:
    wire = Wire(clock, pod(), BROKEN, pod())
    kube = HttpCluster(wire)
    assert kube.get(POD) == kube.get(POD)
    assert wire.answers == []


def test_one_that_never_worked_is_told_at_once(clock: FakeClock) -> None:
    wire = Wire(clock, BROKEN, pod())
    with pytest.raises(Unreachable, match="EOF occurred"):
        HttpCluster(wire).get(POD)
    assert len(wire.answers) == 1


FORBIDDEN = Answer(403, b'{"kind": "Status", "message": "User \\"admin\\" cannot get resource \\"pods\\""}')


def test_a_server_that_just_came_back_may_forbid_for_a_moment(clock: FakeClock) -> None:
    wire = Wire(clock, pod(), ConnectionResetError(), FORBIDDEN, pod())
    kube = HttpCluster(wire)
    assert kube.get(POD) == kube.get(POD)


def test_one_that_was_there_all_the_time_means_it(clock: FakeClock) -> None:
    with pytest.raises(Forbidden):
        HttpCluster(Wire(clock, FORBIDDEN, pod())).get(POD)

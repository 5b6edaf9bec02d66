# SPDX-License-Identifier: GPL-3.0-or-later
"""One broker of each version and one store for all tests of this folder."""

import sys
from collections.abc import Iterator

import pytest
from rabbitmq.server import SUITES, running
from support import canary

from studioml.world import World, store


@pytest.fixture(scope="session", params=SUITES)
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("studioml")
    for name in ("broker", "store"):
        (folder / name).mkdir()
    with running(folder / "broker", request.param) as broker, store(folder / "store") as shop:
        world = World(broker, shop, folder)
        with canary.ProcessWatch(world.secrets()) as watch:
            yield world
        assert watch.found == set()


@pytest.fixture
def world(shared: World) -> Iterator[World]:
    yield shared
    for runner in shared.started:
        runner.kill()
        sys.stdout.write(runner.log)
        (runner.folder / "tmp" / "wait").unlink(missing_ok=True)
        assert canary.in_text(shared.secrets(), runner.log.encode()) == set()
    shared.started.clear()
    for queue in ("rmq_test", "rmq_other", "sqs_test"):
        shared.received(queue)

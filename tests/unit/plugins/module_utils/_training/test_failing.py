# SPDX-License-Identifier: GPL-3.0-or-later
"""A rank that ends again and again with the same error ends the wait; what heals by itself does not."""

import datetime as dt
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import KeepsFailing, WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.module_utils._kube.pod_status import EndedRun, ended_runs
from ansible_collections.muster.ml.plugins.module_utils._training.failing import failed_in_a_row
from ansible_collections.muster.ml.plugins.module_utils._training.status import INDEX_LABELS
from ansible_collections.muster.ml.plugins.modules import persia_job
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock, FakeCluster, Manifest
from ansible_collections.muster.ml.tests.unit.fakes.pods import labels, pod

NOON = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
FIRST = 1000.0
PEER_REPLACED = 75
OPTIONS: dict[str, t.Any] = {
    "name": "adult", "namespace": "default", "image": "example/persia:1", "global_config": {},
    "embedding_config": {"slots_config": {"age": {"dim": 8}}}, "files": {"train.py": ""}, "metrics": {"enabled": False},
    "nn_worker": {"replicas": 1, "entry": "train.py"}, "embedding_worker": {"replicas": 1},
    "embedding_parameter_server": {"replicas": 1}, "wait": True, "wait_for": "completed", "wait_timeout": 540,
}  # fmt: skip
LOG = "epoch 0\nFileNotFoundError: /data/train.npz\n"


def moment(seconds: float) -> str:
    return (NOON + dt.timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def over(began: float, seconds: float, code: int = 1, reason: str = "Error") -> Manifest:
    """The state of a container that ran for SECONDS."""
    times = {"startedAt": moment(began), "finishedAt": moment(began + seconds)}
    return {"terminated": {"exitCode": code, "reason": reason, **times}}


class Eventful(FakeClock):
    """Time in which something happens."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[tuple[float, t.Callable[[], None]]] = []

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        while self.events and self.events[0][0] <= self.now - FIRST:
            self.events.pop(0)[1]()


@pytest.fixture
def clock() -> Eventful:
    return Eventful()


def train(cluster: FakeCluster, **more: t.Any) -> None:
    tasks.run(persia_job, cluster, {**OPTIONS, **more})


def trainer(cluster: FakeCluster, began: float, seconds: float, code: int = 1) -> None:
    """A pod of the trainers' Job that has failed."""
    name = f"adult-trainer-0-at{began:.0f}"
    mine = labels("trainer", **{INDEX_LABELS[0]: "0"})
    cluster.add(pod(name, "Failed", labels=mine, created=moment(began), state=over(began, seconds, code)))
    cluster.log_lines["default", name] = LOG


def test_pods_of_a_job_that_fail_four_times_end_the_wait(cluster: FakeCluster, clock: Eventful) -> None:
    for began in (0, 15, 40, 85, 170):
        clock.events.append((began + 5, lambda began=began: trainer(cluster, began, 5)))
    with pytest.raises(KeepsFailing) as error:
        train(cluster)
    assert 89 < clock.now - FIRST < 95
    said = str(error.value)
    assert "pod adult-trainer-0-at85 has failed 4 times in a row at its start, the last time with Error (exit status 1)." in said
    assert "\n[adult-trainer-0-at85] FileNotFoundError: /data/train.npz" in said
    assert "Correct the cause, then set restart: true" in said
    assert "is that of container main of pod adult-trainer-0-at85 in namespace default." in said
    assert error.value.details["groups"]


def test_a_container_that_is_started_again_and_again_ends_the_wait(cluster: FakeCluster, clock: Eventful) -> None:
    name = "adult-emb-server-0"
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}

    def crash(began: float) -> None:
        cluster.objects.pop(Ref("v1", "Pod", name, "default").identity, None)
        cluster.add(pod(name, labels=labels("emb-server"), state=waiting, last_state=over(began, 5), restarts=1))
        cluster.log_lines["default", name] = LOG

    clock.events = [(began + 5, lambda began=began: crash(began)) for began in (0, 15, 40, 85, 170)]
    with pytest.raises(KeepsFailing, match="pod adult-emb-server-0 has failed 4 times"):
        train(cluster)
    assert 89 < clock.now - FIRST < 95


def test_who_waits_again_sees_one_more_attempt(cluster: FakeCluster, clock: Eventful) -> None:
    train(cluster, wait=False)
    for began in (-900, -800, -700, -500, -200):
        trainer(cluster, began, 5)
    with pytest.raises(WaitTimeout):
        train(cluster, wait_timeout=100)
    clock.events = [(clock.now - FIRST + 20, lambda: trainer(cluster, 120, 5))]
    with pytest.raises(KeepsFailing, match="has failed 6 times in a row"):
        train(cluster)


NO_SUCH_IMAGE = 'failed to pull and unpack image "registry.example/persia:2": registry.example/persia:2: not found'
DENIED = "pull access denied, repository does not exist or may require authorization: server message: insufficient_scope"
UNREACHABLE = 'failed to do request: Head "https://registry.example/v2/persia": dial tcp 192.0.2.1:443: i/o timeout'

NO_SUCH_HOST = 'failed to do request: Head "https://registry.nope.example/v2/a": dial tcp: lookup registry.nope.example: no such host'


def pulls(cluster: FakeCluster, reason: str, message: str) -> None:
    state = {"waiting": {"reason": reason, "message": message}}
    cluster.add(pod("adult-trainer-0-at0", labels=labels("trainer"), created=moment(0), state=state))


@pytest.mark.parametrize(("reason", "message"), [("ErrImagePull", NO_SUCH_IMAGE), ("ImagePullBackOff", DENIED), ("InvalidImageName", "")])
def test_an_image_that_is_refused_for_a_minute_ends_the_wait(cluster: FakeCluster, clock: Eventful, reason: str, message: str) -> None:
    clock.events = [(10, lambda: pulls(cluster, reason, message))]
    with pytest.raises(KeepsFailing, match="cannot start: pod adult-trainer-0-at0: ") as error:
        train(cluster)
    assert reason in str(error.value)
    assert "image_pull_secrets" in str(error.value)
    assert 70 <= clock.now - FIRST < 100


def test_an_image_may_still_come(cluster: FakeCluster, clock: Eventful) -> None:
    clock.events = [(10, lambda: pulls(cluster, "ImagePullBackOff", UNREACHABLE))]
    with pytest.raises(WaitTimeout):
        train(cluster, image_timeout=10000)


@pytest.mark.parametrize("message", [UNREACHABLE, NO_SUCH_HOST])
@pytest.mark.parametrize(("options", "seconds"), [({}, 300), ({"image_timeout": 120}, 120)])
def test_a_registry_without_an_answer_is_waited_for_some_minutes(
    cluster: FakeCluster, clock: Eventful, message: str, options: dict[str, int], seconds: int
) -> None:
    clock.events = [(10, lambda: pulls(cluster, "ImagePullBackOff", message))]
    with pytest.raises(KeepsFailing, match="cannot start: pod adult-trainer-0-at0: ImagePullBackOff: ") as error:
        train(cluster, wait_timeout=3600, **options)
    assert message in str(error.value)
    assert "image_timeout" in str(error.value)
    assert seconds <= clock.now - FIRST - 10 < seconds + 20


def test_a_rank_that_runs_again_is_let_run(cluster: FakeCluster, clock: Eventful) -> None:
    def succeed() -> None:
        for began in (30, 50, 70, 90):
            trainer(cluster, began, 5)
        cluster.add(pod("adult-trainer-0-new", labels=labels("trainer"), created=moment(110)))

    clock.events = [(10, succeed)]
    with pytest.raises(WaitTimeout):
        train(cluster)


@pytest.mark.parametrize(
    ("runs", "counted"),
    [
        ([(5, 1), (5, 1), (5, 1), (5, 1)], 4),
        pytest.param([(5, 1), (5, 1), (90, 1), (5, 1)], 1, id="a run that did some work begins anew"),
        pytest.param([(5, 1), (5, 1), (3600, 137), (5, 1)], 1, id="so does one that was killed"),
        pytest.param([(5, 1), (5, 137), (5, 143), (5, 1)], 2, id="a killed run is not counted"),
        pytest.param([(5, 1), (5, PEER_REPLACED), (5, PEER_REPLACED)], 1, id="nor is one that the Job does not count"),
        pytest.param([(5, 2), (5, 1), (5, 1)], 2, id="another error is another cause"),
        pytest.param([(5, 1), (5, 0), (5, 1)], 1, id="who ended well was well"),
        ([(5, 1), (90, 1)], 0),
        ([], 0),
    ],
)
def test_what_is_counted(runs: list[tuple[float, int]], counted: int) -> None:
    ended = [
        EndedRun(moment(100 * n + length), moment(100 * n), "p", "c", "Error", code, code in (137, 143))
        for n, (length, code) in enumerate(runs)
    ]
    assert len(failed_in_a_row(ended, frozenset({PEER_REPLACED}))) == counted


def test_a_sidecar_does_not_count_for_the_program() -> None:
    runs = [EndedRun(moment(n), moment(n - 5), "p", "main" if n % 2 else "sidecar", "Error", 1) for n in range(6)]
    assert [run.container for run in failed_in_a_row(runs, frozenset())] == ["main"] * 3


@pytest.mark.parametrize(
    ("code", "reason", "conditions", "was_ended"),
    [
        (1, "Error", [], False),
        (137, "Error", [], True),
        (137, "OOMKilled", [], False),
        (143, "Error", [], True),
        (255, "Unknown", [], True),
        (1, "Error", [{"type": "DisruptionTarget", "status": "True"}], True),
    ],
)
def test_who_did_not_end_by_itself(code: int, reason: str, conditions: list[Manifest], was_ended: bool) -> None:
    (run,) = ended_runs(pod("t-0", "Failed", state=over(0, 5, code, reason), conditions=conditions))
    assert run.was_ended is was_ended

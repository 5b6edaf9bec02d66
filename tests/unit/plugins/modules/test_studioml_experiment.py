# SPDX-License-Identifier: GPL-3.0-or-later
"""studioml_experiment at a fake of the management API and a bucket in memory; tests/studioml runs it at real ones."""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import hashlib
import io
import json
import os
import re
import tarfile
import types
import typing as t
import urllib.parse
from pathlib import Path

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from cryptography.hazmat.primitives.asymmetric import rsa

from ansible_collections.muster.ml.plugins.module_utils._core.errors import (
    Failed,
    Immutable,
    InvalidInput,
    MusterError,
    NotFound,
    Unreachable,
    WaitTimeout,
)
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._kube.made_once import to_be_dropped
from ansible_collections.muster.ml.plugins.module_utils._systems.object_store import store
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq.publish import TopicQueue
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import bucket as buckets
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import keys, submission
from ansible_collections.muster.ml.plugins.modules import studioml_experiment
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock
from ansible_collections.muster.ml.tests.unit.fakes.rabbitmq import PASSWORD, FakeBroker
from ansible_collections.muster.ml.tests.unit.fakes.studioml import request_of

pytestmark = pytest.mark.usefixtures("small_keys")
RUNNER = rsa.generate_private_key(65537, 2048)
PAIR = keys.rsa_pair(RUNNER, Sensitive("phrase"))
SIGNER, OTHER = keys.new_signing_pair(to_be_dropped()), keys.new_signing_pair(to_be_dropped())
SECRETS = ("canary-access", "canary-storage", "canary-token", PASSWORD, SIGNER.private.reveal().splitlines()[2])
NOTE, OUTPUT = "experiments/one/muster.json", "experiments/one/output.tar"
END = '{"studioml": {"stop_time": "2026-01-01"}}'
ENDED = f'{{"experiment": {{"loss": 0.5}}}}\n{{"experiment": {{"loss": 0.25, "acc": 1}}}}\n{END}\n'


class MemoryBucket:
    """Objects by key; ``later`` has what others do, one for each look at an experiment."""

    name = "example-store"

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.later: list[t.Callable[[], object]] = []
        self.writes: list[str] = []
        self.dies_at: str | None = None

    def look(self, folder: str) -> dict[str, buckets.Found]:
        if folder.startswith("experiments/") and self.later:
            self.later.pop(0)()
        moment = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
        return {
            key: buckets.Found(hashlib.sha256(body).hexdigest(), moment) for key, body in self.objects.items() if key.startswith(folder)
        }

    def get(self, key: str, target: t.IO[bytes]) -> bool:
        target.write(self.objects.get(key, b""))
        target.seek(0)
        return key in self.objects

    def put(self, key: str, content: t.IO[bytes]) -> None:
        body = content.read()
        if self.dies_at and self.dies_at in body.decode(errors="replace"):
            raise KeyboardInterrupt
        self.writes.append(key)
        self.objects[key] = body

    def delete(self, key: str) -> None:
        self.writes.append(f"delete {key}")
        self.objects.pop(key, None)

    def note(self) -> dict[str, t.Any]:
        found: dict[str, t.Any] = json.loads(self.objects[NOTE])
        return found

    def store(self, text: str, key: str = OUTPUT) -> None:
        """As a runner does."""
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w") as tar:
            info = tarfile.TarInfo("output")
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
        self.objects[key] = file.getvalue()


class World:
    """A broker with a queue, a bucket, a workspace, and what the module said."""

    def __init__(self, broker: FakeBroker, bucket: MemoryBucket, folder: Path, clock: FakeClock) -> None:
        self.broker, self.bucket, self.clock = broker, bucket, clock
        self.warnings: list[str] = []
        self.progress: list[str] = []
        broker.put(("queues", "/", "rmq_test"), {"arguments": {}})
        (folder / "sub").mkdir(parents=True)
        (folder / "train.py").write_text("print(1)")
        (folder / "sub" / "data.txt").write_text("1")
        (folder / "x.pyc").write_text("left out")
        self.folder = folder

    def __call__(self, *, check: bool = False, **more: t.Any) -> dict[str, t.Any]:
        options: dict[str, t.Any] = {
            **self.broker.login(), "name": "one", "queue": "rmq_test", "bucket": "gs://example-store", "access_key": "canary-access",
            "secret_key": "canary-storage", "public_key": PAIR.public, "signing_key": SIGNER.private.reveal(),
            "workspace": [str(self.folder)], "filename": "train.py", "wait_timeout": 60, **more,
        }  # fmt: skip
        given = tasks.options(studioml_experiment, {name: value for name, value in options.items() if value is not None})
        how = {"warn": self.warnings.append, "progress": self.progress.append, "diff": True, "clock": self.clock}
        ctx = HostContext(given, check, **how)
        try:
            found: dict[str, t.Any] = studioml_experiment.execute(ctx)
        except MusterError as error:
            self.clean([str(error), error.details])
            raise
        self.clean(found)
        return found

    def clean(self, said: t.Any) -> None:
        text = json.dumps([said, self.warnings, self.progress], default=str)
        assert [secret for secret in SECRETS if secret in text] == []

    def request(self, number: int = -1) -> dict[str, t.Any]:
        """What the runner reads in a published message."""
        return request_of(base64.b64decode(self.broker.published[number]["payload"]), RUNNER, SIGNER.public)

    def hosts(self) -> set[str]:
        """Where the runner finds the artifacts."""
        return {urllib.parse.urlsplit(row["qualified"]).netloc for row in self.request()["experiment"]["artifacts"].values()}

    def ends(self, text: str = ENDED) -> t.Callable[[], None]:
        """A runner takes the message and stores an output."""

        def end() -> None:
            self.broker.messages["queues", "/", "rmq_test"].clear()
            self.bucket.store(text)

        return end


def nothing() -> None:
    """Happens."""


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, clock: FakeClock, tmp_path: Path) -> t.Iterator[World]:
    broker, bucket = FakeBroker(), MemoryBucket()
    monkeypatch.setattr(buckets, "connect", lambda _storage, _ca: bucket)
    yield World(broker, bucket, tmp_path / "work", clock)
    broker.stop()


def test_an_experiment_is_submitted_once_and_its_metric_returned(world: World) -> None:
    world.bucket.later = [nothing, nothing, world.ends()]
    made = world(metric="experiment.loss", env={"TEAM": "a"}, secret_env={"TOKEN": "canary-token"}, args=["--epochs", "2"])
    assert (made["changed"], made["state"], made["metric"], made["metrics"]["experiment"]["acc"]) == (True, "finished", 0.25, 1)
    stored = [key for key in world.bucket.objects if key.startswith("blobstore/")]
    assert made["actions"] == [
        "create exchange StudioML.topic", "bind queue rmq_test to StudioML.topic", f"store {stored[0]} with 2 files",
        "publish one to queue rmq_test",
    ]  # fmt: skip
    assert world.broker.published[0]["properties"]["delivery_mode"] == 2
    assert made["signing_fingerprint"] == SIGNER.fingerprint
    assert (world.bucket.note()["state"], world.bucket.note()["count"]) == ("submitted", 1)
    assert not [secret for secret in SECRETS if secret in world.bucket.objects[NOTE].decode()]
    assert world.request()["config"]["env"] == {"AWS_DEFAULT_REGION": "us-east-1", "TEAM": "a", "TOKEN": "canary-token"}
    assert world.request()["experiment"]["artifacts"]["workspace"]["key"] == stored[0]
    writes = (len(world.broker.writes()), len(world.bucket.writes))
    for check in (True, False):
        again = world(metric="experiment.loss", env={"TEAM": "a"}, secret_env={"TOKEN": "b"}, args=["--epochs", "2"], check=check) | {}
        assert again | {"changed": True, "actions": made["actions"], "diff": made["diff"]} == made
        assert not again["changed"]
    assert (len(world.broker.writes()), len(world.bucket.writes)) == writes
    assert world.warnings == []


def test_check_mode_tells_what_would_be_sent_and_writes_nothing(world: World) -> None:
    planned = world(check=True)
    assert (planned["state"], planned["changed"]) == ("absent", True)
    assert (world.broker.writes(), world.bucket.writes) == ([], [])
    world.bucket.later = [nothing, nothing, world.ends()]
    made = world()
    assert (made["actions"], made["diff"]) == (planned["actions"], planned["diff"])


def test_a_workspace_that_is_stored_is_not_stored_again(world: World) -> None:
    world(wait=False)
    os.utime(world.folder / "train.py", (1, 1))
    made = world(name="two", wait=False)
    assert made["actions"] == ["publish two to queue rmq_test"]
    assert made["state"] == "submitted"


def test_one_that_waits_is_not_submitted_again(world: World) -> None:
    world(wait=False)
    again = world(wait=False)
    assert (again["changed"], again["actions"], again["state"]) == (False, [], "submitted")
    world.bucket.later = [nothing, nothing, world.ends()]
    ended = world()
    assert (ended["changed"], ended["state"], len(world.broker.published)) == (False, "finished", 1)


def test_an_output_of_somebody_elses_submission_counts(world: World) -> None:
    world.bucket.store(ENDED)
    found = world(metric="experiment.loss")
    assert (found["changed"], found["metric"], found["experiment"]["submissions"]) == (False, 0.25, 0)
    assert world.broker.requests == []


@pytest.mark.parametrize("more", [{"args": ["--epochs", "3"]}, {"env": {"A": "1"}}, {"resources_needed": {"gpus": 1}}])
def test_another_experiment_of_the_same_name_is_refused(world: World, more: dict[str, t.Any]) -> None:
    world(wait=False)
    with pytest.raises(Immutable, match=f"submitted with another {next(iter(more))}"):
        world(**more)
    assert len(world.broker.published) == 1


def test_other_files_make_another_experiment(world: World) -> None:
    world(wait=False)
    (world.folder / "sub" / "data.txt").write_text("2")
    with pytest.raises(Immutable, match="another workspace"):
        world()


# Between two requests


def test_a_run_that_ended_before_publishing_or_after_is_made_good_and_says_so(world: World) -> None:
    world.bucket.dies_at = '"submitted",'
    with pytest.raises(KeyboardInterrupt):
        world(wait=False)
    assert (world.bucket.note()["state"], len(world.broker.published)) == ("submitting", 1)
    world.bucket.dies_at = None
    made = world(wait=False)
    assert (made["changed"], made["experiment"]["submissions"], len(world.broker.published)) == (True, 2, 2)
    (warning,) = world.warnings
    assert "it is not known whether the broker got it. It is submitted again, and may run twice" in warning


def test_an_answer_that_is_lost_says_that_nobody_knows(world: World) -> None:
    world(wait=False, name="zero")
    before = len(world.broker.requests)
    world(wait=False, name="first")
    asked = len(world.broker.requests) - before
    world.broker.faults = [None] * (asked - 1) + ["cut after"]
    with pytest.raises(Unreachable) as caught:
        world(wait=False)
    assert caught.value.details["may_be_published"] is True
    assert world.bucket.note()["state"] == "submitting"


def test_what_the_broker_refused_leaves_no_note(world: World) -> None:
    with pytest.raises(Failed, match=r"No queue is bound to StudioML.topic.*StudioML.rmq_test: no queue got one.*bind: true"):
        world(bind=False)
    assert NOTE not in world.bucket.objects
    with pytest.raises(NotFound, match=r"no queue rmq_none in vhost /.*rabbitmq_definitions"):
        world(queue="rmq_none")


# Ends


def test_one_that_failed_fails_with_its_last_lines_and_may_be_submitted_again(world: World) -> None:
    failed = "Traceback\nkey canary-storage\nfailed when downloading user data\nexit status 1"
    world.bucket.later = [nothing, nothing, world.ends(failed)]
    with pytest.raises(Failed, match=r"one has failed.*Traceback | key <redacted>.*exit status 1") as caught:
        world()
    assert caught.value.details["state"] == "failed"
    with pytest.raises(Failed, match="has failed"):
        world()
    assert len(world.broker.published) == 1
    world.bucket.later = [nothing, nothing, nothing, world.ends()]
    made = world(resubmit=True, metric="experiment.loss")
    assert (made["metric"], made["experiment"]["submissions"], len(world.broker.published)) == (0.25, 2, 2)
    assert world.warnings == []
    assert not world(resubmit=True)["changed"]


ONLY_NAMED = dict.fromkeys(("public_key", "signing_key", "workspace", "filename"))


def test_one_that_runners_begin_again_and_again_can_be_taken_out(world: World) -> None:
    queue = world.broker.messages["queues", "/", "rmq_test"]
    assert not world(state="absent", **ONLY_NAMED)["changed"]
    world(wait=False)
    world(wait=False, name="two")
    world.bucket.store("failed when downloading user data\nexit status 1")  # 0.14.2 gives the message back
    assert world(state="absent", **ONLY_NAMED, check=True)["actions"] == ["take one out of queue rmq_test"]
    assert len(queue) == 2
    with pytest.raises(WaitTimeout, match=r"Experiment two is not taken out.*one waits before it in queue rmq_test"):
        world(state="absent", name="two", wait_timeout=2, **ONLY_NAMED)
    made = world(state="absent", **ONLY_NAMED)
    assert (made["changed"], made["state"], len(queue), NOTE in world.bucket.objects) == (True, "absent", 1, False)
    assert not world(state="absent", **ONLY_NAMED)["changed"]
    assert world(state="absent", name="two", **ONLY_NAMED)["changed"]
    assert queue == []


def test_another_message_that_comes_instead_is_published_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    queue, get = world.broker.messages["queues", "/", "rmq_test"], TopicQueue._get
    for name in ("one", "two"):
        world(wait=False, name=name)

    def faster(self: TopicQueue, mode: str) -> dict[str, t.Any] | None:
        if mode == "ack_requeue_false" and len(queue) == 2:
            queue.append(queue.pop(0))  # a runner took it, and gave it back later
        return get(self, mode)

    monkeypatch.setattr(TopicQueue, "_get", faster)
    monkeypatch.setattr(submission, "GONE_S", 1.0)
    with pytest.raises(WaitTimeout):
        world(state="absent", wait_timeout=3, **ONLY_NAMED)
    assert len(queue) == 2


def test_what_has_finished_or_was_purged_is_not_waited_for(world: World) -> None:
    world.bucket.later = [nothing, nothing, world.ends()]
    world()
    made = world(state="absent", **ONLY_NAMED)
    assert (made["changed"], made["state"]) == (False, "finished")
    world(wait=False, name="two")
    world.broker.messages["queues", "/", "rmq_test"].clear()
    assert world(state="absent", name="two", **ONLY_NAMED)["changed"]


def test_an_output_without_end_is_waited_for(world: World) -> None:
    world.bucket.later = [nothing, nothing, lambda: world.bucket.store("epoch 1\n"), nothing, nothing, nothing, nothing, world.ends()]
    assert world()["state"] == "finished"
    assert any("has no end yet" in line for line in world.progress)


def test_the_progress_in_an_output_is_shown(world: World) -> None:
    said = [{"epoch": epoch, "epochs": 20, "loss": 1 / epoch, "time": 1795273000 + 60 * epoch} for epoch in (2, 3, 4)]
    text = "".join(json.dumps({"experiment": one}) + "\n" for one in said)
    world.bucket.later = [nothing, nothing, lambda: world.bucket.store(text), nothing, nothing, nothing, nothing, world.ends()]
    assert world()["state"] == "finished"
    assert any(line.startswith("20 %, 16 min left, epoch 4 of 20, loss 0.25, ") for line in world.progress)


def test_a_metric_that_is_missing_names_those_that_are_there(world: World) -> None:
    world.bucket.store(ENDED)
    with pytest.raises(Failed, match=r"wrote no experiment\.f1.* It wrote experiment\.acc, experiment\.loss"):
        world(metric="experiment.f1")
    world.bucket.store(END)
    with pytest.raises(Failed, match="It has to print a line of JSON"):
        world(metric="experiment.f1")


def test_one_that_is_nowhere_was_refused(world: World) -> None:
    world(wait=False)
    world.broker.messages["queues", "/", "rmq_test"].clear()
    with pytest.raises(Failed, match=r"neither in queue rmq_test nor in bucket example-store.*backing off, receive failed.*resubmit"):
        world()
    world.bucket.later = [nothing, nothing, world.ends()]
    assert world(resubmit=True)["experiment"]["submissions"] == 2
    assert "and has no result. It is submitted again, and may run twice" in world.warnings[0]


def test_a_queue_is_not_taken_for_empty_as_soon_as_its_broker_is_back(world: World) -> None:
    world(wait=False)
    world.broker.faults = ["failing"] * 500

    def back() -> None:
        world.broker.faults.clear()
        world.broker.messages["queues", "/", "rmq_test"].clear()

    world.bucket.later = [*[nothing] * 30, back, nothing, nothing, world.ends()]
    assert world(startup_timeout=1, wait_timeout=300)["state"] == "finished"


def test_numbers_that_are_not_known_are_not_taken_for_an_empty_queue(world: World) -> None:
    world(wait=False)
    world.broker.messages["queues", "/", "rmq_test"].clear()
    world.broker.counts = False
    with pytest.raises(WaitTimeout, match="an unknown number of messages"):
        world()


def test_a_timeout_names_depth_consumers_and_what_came_back(world: World) -> None:
    world.broker.stats = {"consumers": 0, "messages_unacknowledged": 0, "message_stats": {"redeliver": 5}}
    world.bucket.later = [*[nothing] * 4, lambda: world.broker.stats.update(message_stats={"redeliver": 8})]
    with pytest.raises(WaitTimeout) as caught:
        world(lifetime="1h")
    said = str(caught.value)
    assert "Experiment one has no result after 60 s" in said
    assert "queue rmq_test has 1 messages, 0 of them held by runners, 0 consumers" in said
    assert "given back 3 times" in said
    assert "backing off, receive failed" in said
    assert "lifetime" not in said


def test_a_timeout_says_that_the_life_time_is_over(world: World) -> None:
    world(wait=False, lifetime="1ms")
    with pytest.raises(WaitTimeout, match="Its lifetime of 1ms ended at"):
        world(lifetime="1ms", wait_timeout=2)


# Options


def test_the_output_is_written_for_its_owner_only(world: World, tmp_path: Path) -> None:
    world.bucket.store(ENDED)
    dest = tmp_path / "output.tar"
    assert world(dest=str(dest), check=True)["actions"] == [f"write {dest}"]
    assert list(tmp_path.iterdir()) == [world.folder]
    assert world(dest=str(dest))["changed"]
    assert (dest.read_bytes(), dest.stat().st_mode & 0o777) == (world.bucket.objects[OUTPUT], 0o600)
    assert not world(dest=str(dest))["changed"]


REFUSED: dict[str, tuple[dict[str, t.Any], str]] = {
    "signing key of another prefix": (
        {"signing_public_keys": {"rmq_": OTHER.public, "sqs_": SIGNER.public}},
        re.escape(f"fingerprint {SIGNER.fingerprint}, but queue rmq_test is checked with {OTHER.fingerprint}, the key of rmq_."),
    ),
    "prefix of no queue": ({"signing_public_keys": {"sqs_": SIGNER.public}}, "no prefix fits queue rmq_test"),
    "public key as signing key": ({"signing_key": SIGNER.public}, "not an OPENSSH PRIVATE KEY"),
    "private key as public key": ({"public_key": PAIR.private.reveal()}, "is a private key"),
    "gs at another store": ({"endpoint_url": "http://store:7070"}, "gs:// is for https://storage.googleapis.com"),
    "endpoint": ({"endpoint_url": "store:7070", "bucket": "b"}, "is not http:// or https://"),
    "endpoint for runners": ({"runner_endpoint_url": "s3://x"}, "is not http:// or https://"),
    "name": ({"name": "a b"}, "name: 'a b' cannot be used"),
    "queue": ({"queue": "sqs_test"}, "begin with rmq_"),
    "duration": ({"max_duration": "20"}, "max_duration: '20' is not a duration"),
    **{f"duration {text}": ({"max_duration": text}, "is not a duration") for text in ("0s", "\uff130m", "9999999h")},
    **{f"size {text}": ({"resources_needed": {"ram": text}}, "is not a size") for text in ("6i", "6ib", "\u0663gb")},
    **{f"package {text}": ({"pythonenv": [text]}, "is no package") for text in ("-r requirements.txt", "# Editable", "")},
    "count": ({"resources_needed": {"cpus": -1}}, r"resources_needed.cpus: -1 is too small"),
    "size": ({"resources_needed": {"ram": "much"}}, r"resources_needed.ram: 'much' is not a size"),
    "variable": ({"env": {"_A": "1"}}, "'_A' is not the name of a variable"),
    "value": ({"secret_env": {"TOKEN": 'canary-token"'}}, 'the value of TOKEN has ", which'),
    "program": ({"filename": "test.py"}, "test.py is not among the 2 files of the workspace. Programs in it: train.py"),
    "workspace": ({"workspace": ["/nowhere"]}, "/nowhere does not exist"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_nonsense_is_refused_before_anything_is_sent(world: World, what: str) -> None:
    more, reason = REFUSED[what]
    with pytest.raises(InvalidInput, match=reason):
        world(**more)
    assert (world.broker.requests, world.bucket.writes) == ([], [])


def test_a_link_in_the_workspace_is_refused_unless_it_is_left_out(world: World) -> None:
    (world.folder / "link").symlink_to(world.folder / "train.py")
    with pytest.raises(InvalidInput, match="link is no plain file"):
        world()
    assert world(exclude=["link", "*.pyc"], wait=False)["changed"]


def test_files_are_packed_by_their_names(world: World, tmp_path: Path) -> None:
    other = tmp_path / "train.py"
    other.write_text("print(2)")
    assert world(workspace=[str(other), str(world.folder / "sub" / "data.txt")], wait=False)["changed"]
    with pytest.raises(InvalidInput, match="have the same name"):
        world(workspace=[str(other), str(world.folder)])


def test_runners_may_reach_the_store_by_another_address(world: World) -> None:
    world(runner_endpoint_url="http://store.studioml:7070", bucket="example-store", wait=False)
    request = world.request()
    assert request["config"]["storage"]["endpoint"] == "http://store.studioml:7070"
    assert request["experiment"]["artifacts"]["output"]["qualified"] == f"s3://store.studioml:7070/example-store/{OUTPUT}"


IN_CLUSTER = {"store_kubernetes": {"namespace": "ml"}, "access_key": None, "secret_key": None, "bucket": "example-store"}


def test_a_store_in_a_cluster_is_reached_by_its_name_and_runners_get_its_address_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[t.Any] = []
    way = types.SimpleNamespace(address="127.0.0.1:1", trouble=None)
    login = store.Login(Sensitive("canary-access"), Sensitive("canary-storage"))

    @contextlib.contextmanager
    def inside(where: t.Any, _clock: FakeClock) -> t.Iterator[store.Inside]:
        asked.append(where)
        yield store.Inside("http://store.ml.svc:7070", login, t.cast(t.Any, way))
        asked.append("closed")

    def connect(storage: t.Any, ca_cert: t.Any, at: t.Any) -> MemoryBucket:
        asked.append((storage.endpoint, ca_cert, at))
        return world.bucket

    monkeypatch.setattr(store, "inside", inside)
    monkeypatch.setattr(buckets, "connect", connect)
    assert world(wait=False, **IN_CLUSTER)["changed"]
    assert (asked[0]["name"], asked[0]["namespace"]) == ("store", "ml")
    assert asked[1:] == [("http://store.ml.svc:7070", None, way), "closed"]
    assert world.hosts() == {"store.ml.svc:7070"}
    with pytest.raises(InvalidInput, match="gs:// is for"):
        world(**{**IN_CLUSTER, "bucket": "gs://example-store"})
    world(name="two", wait=False, runner_endpoint_url="http://other:9000", **IN_CLUSTER)
    assert world.hosts() == {"other:9000"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "one of the following is required: access_key, store_kubernetes"),
        ({"access_key": "a"}, "required together: access_key, secret_key"),
        ({"access_key": "a", "secret_key": "b", "store_kubernetes": {}}, "mutually exclusive: store_kubernetes|access_key"),
        ({"store_ca_cert": "a", "store_kubernetes": {}}, "mutually exclusive: store_kubernetes|store_ca_cert"),
    ],
)
def test_a_login_is_either_given_or_that_of_a_store_in_a_cluster(options: dict[str, t.Any], told: str) -> None:
    spec = ArgumentSpecValidator(studioml_experiment.ARGUMENT_SPEC, **studioml_experiment.CONSTRAINTS)
    assert told in " ".join(spec.validate({"login_user": "u", "login_password": "p", **options}).error_messages)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Module studioml_experiment at a real RabbitMQ, a real object store and the stand-in: submitted once, run again if its runner is killed,
its metric returned; one reason for each refusal; no secret in what it says, in lists of processes or in the note."""

import concurrent.futures
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rabbitmq.playing import played
from rabbitmq.server import HOST
from support import canary

from ansible_collections.muster.ml.plugins.module_utils._core.errors import (
    Failed,
    InvalidInput,
    MusterError,
    NotFound,
    Rejected,
    Unauthorized,
    WaitTimeout,
)
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import submission
from ansible_collections.muster.ml.plugins.modules import studioml_experiment
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from studioml.world import ON_ONE, S3_ROOT, TRAINING, World, until

USER = "experimenter"
USER_PASSWORD, PASSPORT = (f"canary-{secrets.token_hex(12)}" for _name in range(2))
# What the module's documentation says that it needs.
RIGHTS = {"configure": r"^StudioML\.topic$", "write": r"^(StudioML\.topic|rmq_.*)$", "read": r"^(StudioML\.topic|rmq_.*)$"}


class Experimenter:
    """Somebody with a workspace, a signing key and as few rights as are needed."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.folder = world, folder
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        (self.workspace / "train.py").write_text(TRAINING)
        world.call("PUT", "users", USER, password=USER_PASSWORD, tags="management")
        world.call("PUT", "permissions", "/", USER, **RIGHTS)
        self.warnings: list[str] = []
        self.progress: list[str] = []

    @property
    def secrets(self) -> dict[str, str]:
        signing = self.world.signer.private.reveal().splitlines()[2]
        return {**self.world.secrets(), "user": USER_PASSWORD, "token": PASSPORT, "signing": signing}

    def options(self, name: str, **more: Any) -> dict[str, Any]:
        return {
            "name": name, "queue": "rmq_test", "bucket": self.world.store.bucket, "endpoint_url": self.world.store.endpoint,
            "access_key": S3_ROOT, "secret_key": self.world.store.secret, "public_key": self.world.key.public,
            "signing_key": self.world.signer.private.reveal(), "workspace": [str(self.workspace)], "filename": "train.py",
            "args": ["--epochs", "two words"], "env": {"TEAM": "evolution"}, "metric": "experiment.loss", "wait_timeout": 300,
            "project": "canaries", **more,
        }  # fmt: skip

    def run(self, name: str, *, check: bool = False, password: str = USER_PASSWORD, **more: Any) -> dict[str, Any]:
        options = {**self.world.broker.login(USER, password), **self.options(name, **more)}
        given = tasks.options(studioml_experiment, options)
        context = HostContext(given, check=check, warn=self.warnings.append, progress=self.progress.append, diff=True)
        try:
            found: dict[str, Any] = studioml_experiment.execute(context)
        except MusterError as error:
            self.clean([str(error), error.details])
            raise
        self.clean(found)
        return found

    def clean(self, said: Any) -> None:
        text = json.dumps([said, self.warnings, self.progress], default=str)
        assert canary.in_text(self.secrets, text.encode()) == set()

    def stored(self) -> list[str]:
        listed = self.world.store.client().list_objects_v2(Bucket=self.world.store.bucket)
        return [row["Key"] for row in listed.get("Contents", [])]

    def note(self, name: str) -> dict[str, Any]:
        found = self.world.store.client().get_object(Bucket=self.world.store.bucket, Key=f"experiments/{name}/muster.json")
        body = found["Body"].read()
        assert canary.in_text(self.secrets, body) == set()
        return dict(json.loads(body))

    def play(self, options: dict[str, Any], *more: str, elsewhere: bool = False) -> str:
        """As a playbook; its output shows no secret at -vvv."""
        login = self.world.broker.login(USER, USER_PASSWORD)
        environment = {"LC_ALL": "C.UTF-8"} if elsewhere else {}
        given = {"login": login, "experiment": options, "environment_of_tasks": environment}
        return played("tests/studioml/site.yml", self.folder, given, "-vvv", *more, secrets=self.secrets)


@pytest.fixture
def someone(world: World, tmp_path: Path) -> Iterator[Experimenter]:
    yield Experimenter(world, tmp_path)
    for queue in ("rmq_test", "rmq_other"):
        world.received(queue)


def hold(world: World, name: str) -> Any:
    """A runner whose experiments wait."""
    runner = world.runner(name)
    (runner.folder / "tmp" / "wait").touch()
    runner.start()
    return runner


def test_an_experiment_is_run_and_its_metric_returned_once(someone: Experimenter, world: World) -> None:
    planned = someone.run("real1", check=True)
    assert (planned["state"], "experiments/real1/muster.json" in someone.stored(), world.waiting("rmq_test")) == ("absent", False, 0)
    world.started_runner("experimenter")
    dest = someone.folder / "output.tar"
    made = someone.run("real1", dest=str(dest))
    assert (made["state"], made["metric"], made["changed"]) == ("finished", 0.25, True)
    assert made["actions"] == [*planned["actions"], f"write {dest}"]
    assert made["metrics"]["experiment"]["arguments"] == ["--epochs", "two words"]
    assert "CUDA -1 of team evolution" in world.result("real1")
    assert (someone.note("real1")["state"], someone.note("real1")["count"]) == ("submitted", 1)
    again = someone.run("real1", dest=str(dest))
    assert (again["changed"], again["metric"]) == (False, 0.25)
    assert world.waiting("rmq_test") == 0
    assert someone.warnings == []


@ON_ONE
@pytest.mark.parametrize("elsewhere", [False, True], ids=["on the controller", "as on another host"])
def test_as_a_playbook_it_shows_no_secret(someone: Experimenter, world: World, *, elsewhere: bool) -> None:
    world.started_runner("played")
    name = f"played{int(elsewhere)}"
    options = someone.options(name, secret_env={"TOKEN": PASSPORT})
    assert "changed=1" in someone.play(options, elsewhere=elsewhere)
    output = someone.play(options, "--diff", elsewhere=elsewhere)
    assert "finished with loss 0.25 after 1 submissions" in output
    assert "changed=0" in output


def test_a_queue_that_is_not_bound_is_bound_as_the_client_does(someone: Experimenter, world: World) -> None:
    world.queue("rmq_unbound", bound=False)
    with pytest.raises(Failed, match=r"No queue is bound to StudioML.topic in vhost / with routing key StudioML.rmq_unbound"):
        someone.run("unbound", queue="rmq_unbound", bind=False)
    assert "experiments/unbound/muster.json" not in someone.stored()
    world.started_runner("binding")
    made = someone.run("unbound", queue="rmq_unbound")
    assert (made["metric"], made["actions"][0]) == (0.25, "bind queue rmq_unbound to StudioML.topic")
    world.call("DELETE", "queues", "/", "rmq_unbound")
    with pytest.raises(NotFound, match="no queue rmq_unbound in vhost /"):
        someone.run("unbound2", queue="rmq_unbound")


@ON_ONE
def test_a_runner_that_is_killed_in_the_middle_runs_it_again(someone: Experimenter, world: World) -> None:
    first = hold(world, "killed")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(someone.run, "killed")
        first.says("experiment started")
        # Another run of the playbook meanwhile does not submit it.
        other = someone.run("killed", wait=False)
        assert (other["changed"], other["state"]) == (False, "submitted")
        first.kill()
        assert not running.done()
        world.started_runner("second").says("begun before")
        made = running.result(60)
    assert (made["state"], made["metric"], made["experiment"]["submissions"]) == ("finished", 0.25, 1)
    assert world.waiting("rmq_test") == 0


def test_one_that_was_killed_between_note_and_publishing_is_submitted_and_says_so(
    someone: Experimenter, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_args: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("ansible_collections.muster.ml.plugins.module_utils._edge.experiments.Channel.publish", die)
        with pytest.raises(KeyboardInterrupt):
            someone.run("between")
    assert (someone.note("between")["state"], world.waiting("rmq_test")) == ("submitting", 0)
    world.started_runner("between")
    made = someone.run("between")
    assert (made["metric"], made["experiment"]["submissions"]) == (0.25, 2)
    assert "not known whether the broker got it" in someone.warnings[0]


@ON_ONE
def test_one_that_fails_fails_with_its_last_lines(someone: Experimenter, world: World) -> None:
    (someone.workspace / "train.py").write_text("print('epoch 1', flush=True)\nraise SystemExit('no data')\n")
    world.started_runner("failed")
    with pytest.raises(Failed, match=r"Experiment failing2 has failed.*epoch 1 \| no data.*exit status 1"):
        someone.run("failing2")
    with pytest.raises(Failed, match="has failed"):
        someone.run("failing2")
    assert someone.note("failing2")["count"] == 1
    # The runner gives it back and begins it again, until it is taken out.
    assert someone.run("failing2", state="absent")["changed"]
    assert world.waiting("rmq_test") == 0


@ON_ONE
def test_what_a_runner_leaves_in_the_bucket_is_the_reason(someone: Experimenter, world: World) -> None:
    (someone.workspace / "only.txt").write_text("of this experiment")
    made = someone.run("emptied", wait=False)
    (key,) = [step.split()[1] for step in made["actions"] if step.startswith("store ")]
    world.store.client().delete_object(Bucket=world.store.bucket, Key=key)
    world.started_runner("emptied")
    with pytest.raises(Failed, match=r"Experiment emptied has failed.*failed when downloading user data \| fetching leaf-store/blobstore"):
        someone.run("emptied")


@ON_ONE
def test_a_signing_key_of_another_prefix_has_its_reason(someone: Experimenter, world: World) -> None:
    known = {"rmq_": world.signer.public, "rmq_other": world.other_signer.public}
    with pytest.raises(InvalidInput, match=r"queue rmq_other is checked with .*, the key of rmq_other"):
        someone.run("signed", queue="rmq_other", signing_public_keys=known)
    runner = world.started_runner("signed")
    someone.run("signed", queue="rmq_other", wait=False)
    runner.says("is not by the key of rmq_other")
    until(
        "the queue's numbers",
        lambda: world.call("GET", "queues", "/", "rmq_other").get("message_stats", {}).get("redeliver", 0) > 0,
    )
    with pytest.raises(WaitTimeout, match=r"queue rmq_other has .* messages.*were given back \d+ times.*backing off, receive failed"):
        someone.run("signed", queue="rmq_other", wait_timeout=20)


@ON_ONE
def test_a_request_that_a_runner_drops_is_noticed(someone: Experimenter, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission, "GONE_S", 8.0)
    runner = world.started_runner("dropping")
    with pytest.raises(Failed, match=r"neither in queue rmq_test nor in bucket leaf-store"):
        someone.run("dropped", public_key=world.other_key.public)
    assert "backing off, receive failed" in runner.log
    made = someone.run("dropped", resubmit=True)
    assert (made["metric"], made["experiment"]["submissions"]) == (0.25, 2)
    assert "and has no result" in someone.warnings[0]


REFUSED: dict[str, tuple[dict[str, Any], type[MusterError], str]] = {
    "bucket": ({"bucket": "nowhere"}, NotFound, "There is no bucket nowhere of http://"),
    "unknown or disabled key": ({"access_key": "nobody"}, Unauthorized, "does not know access_key, or it is disabled"),
    "storage secret": ({"secret_key": "wrong-secret"}, Unauthorized, "does not take secret_key with this access_key"),
    "store": ({"endpoint_url": f"http://{HOST}:1"}, MusterError, f"The store at http://{HOST}:1 gives no answer"),
    "password": ({"password": "wrong-password"}, Unauthorized, "refuses the password of user experimenter"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_each_refusal_has_one_reason(someone: Experimenter, world: World, what: str) -> None:
    more, error, reason = REFUSED[what]
    with pytest.raises(error, match=reason):
        someone.run("refused", **more)
    assert [key for key in someone.stored() if key.startswith("experiments/refused/")] == []
    assert world.waiting("rmq_test") == 0


def test_a_user_who_may_not_publish_is_refused(someone: Experimenter, world: World) -> None:
    world.call("PUT", "permissions", "/", USER, **{**RIGHTS, "write": "^nothing$"})
    with pytest.raises(Rejected, match=r"ACCESS_REFUSED - .*access to exchange 'StudioML\.topic' in vhost '/' refused for user"):
        someone.run("unpublished", wait=False)
    assert "experiments/unpublished/muster.json" not in someone.stored()


def test_a_broker_that_waits_is_no_reason_to_submit_again(someone: Experimenter, world: World) -> None:
    someone.run("queued", wait=False)
    again = someone.run("queued", wait=False)
    assert again["changed"] is False
    # Nobody gets the message meanwhile: the broker counts now and then, and might count it as held. Each number comes at a time of its own.
    counts = {"messages": 1, "messages_ready": 1}
    until("the queue's numbers", lambda: counts.items() <= world.call("GET", "queues", "/", "rmq_test").items())
    with pytest.raises(WaitTimeout, match=r"queue rmq_test has 1 messages, 0 of them held by runners, 0 consumers"):
        someone.run("queued", wait_timeout=3)
    assert world.waiting("rmq_test") == 1

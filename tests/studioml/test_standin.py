# SPDX-License-Identifier: GPL-3.0-or-later
"""The stand-in for StudioML's runner at a real RabbitMQ and a real object store: requests as module_utils build them, opened by a program
that shares no code with them. What is refused has one reason; nothing is lost; no secret is in a log, an output or a list of processes."""

import base64
import concurrent.futures
import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults.proxy import certificates
from rabbitmq.server import HOST, free_ports
from simulators.modules import Hasty
from support import canary
from support.places import ROOT

from ansible_collections.muster.ml.plugins.module_utils._core.clock import SYSTEM_CLOCK
from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, Unreachable
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import keys, message
from ansible_collections.muster.ml.plugins.modules import studioml_runner, training_secret
from ansible_collections.muster.ml.tests.unit.fakes import studioml, tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.pods import pod
from studioml.world import ON_ONE, PASSWORD, PHRASE, ApiServer, Standin, World, until


class PodCluster(FakeCluster):
    """A cluster without nodes: of its Deployments only the process of the stand-in is real, with the environment that they give it."""

    def __init__(self, world: World, folder: Path) -> None:
        super().__init__()
        self.clock = Hasty()  # type: ignore[assignment] -- its processes are real
        self.world, self.drains = world, ApiServer(folder)
        self.processes: dict[str, Standin] = {}
        self.shown: set[str] = set()
        self.url = f"amqp://runner:{PASSWORD}@{HOST}:{world.broker.ports['amqp']}/%2f"
        self.controllers["Deployment"] = self._roll_out
        self.controllers["ConfigMap"] = self._publish
        self.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "studioml"}})
        self._template: Any = None

    def keep_keys(self, phrase: str) -> None:
        own = {"private_key": self.world.key.private.reveal(), "passphrase": phrase}
        self.run(training_secret, namespace="studioml", content="decryption_key", **own)
        self.run(training_secret, namespace="studioml", content="signing_public_keys", public_keys={"rmq_": self.world.signer.public})
        self.run(training_secret, namespace="studioml", content="response_public_keys")

    def run(self, module: Any, **params: Any) -> dict[str, Any]:
        told: list[str] = []
        found = tasks.run(module, self, params, warn=told.append, diff=True, progress=told.append, clock=SYSTEM_CLOCK)
        self.shown |= canary.in_text(self.world.secrets(), json.dumps([found, told]).encode())
        return found

    def state(self) -> str:
        return self.drains.states.get("studioml-go-runner", "")

    def _publish(self, live: dict[str, Any]) -> None:
        if "STATE" in live["data"]:
            self.drains.states[live["metadata"]["name"]] = live["data"]["STATE"]

    def _roll_out(self, live: dict[str, Any]) -> dict[str, Any]:
        """As Recreate: old pods go, new ones come."""
        template, desired = live["spec"]["template"], live["spec"]["replicas"]
        if template != self._template:
            self._end()
        self._template = template
        while len(self.processes) < desired:
            name = f"pod-{len(self.world.started)}"
            self.processes[name] = self._started(name, template)
            self.add(pod(name, namespace="studioml", labels=template["metadata"]["labels"]))
        return {"observedGeneration": 1, "replicas": desired, "updatedReplicas": desired, "availableReplicas": desired}

    def _started(self, name: str, template: dict[str, Any]) -> Standin:
        secret = self.stored("Secret", "studioml-go-runner-amqp", "studioml")
        assert secret
        (container,) = template["spec"]["containers"]
        values = {row["name"]: row.get("value") for row in container["env"]}
        values |= {key: base64.b64decode(text).decode() for key, text in secret["data"].items()}
        # Only one pod of this machine could have port 9090.
        port = values.pop("PROM_ADDRESS")
        assert port == ":9090"
        found = self.world.runner(name, **values)
        self.drains.settings(found, name)
        found.start()
        return found

    def _end(self) -> None:
        for name, process in self.processes.items():
            process.kill()
            self.remove(Ref("v1", "Pod", name, "studioml"))
        self.processes.clear()

    def remove(self, ref: Ref) -> None:
        super().remove(ref)
        if ref.kind == "Deployment":
            self._end()

    def logs(self, namespace: str, pod: str, **_more: Any) -> str:
        return self.processes[pod].log

    def proxy_get(self, namespace: str, pod: str, port: int, path: str, *, timeout: float) -> tuple[int, str]:
        assert (port, path) == (9090, "/metrics")
        try:
            return 200, self.processes[pod].metrics()
        except OSError as error:
            raise Unreachable(str(error)) from None


def test_an_experiment_is_run_stored_answered_and_acknowledged(world: World) -> None:
    world.queue("rmq_test_response", bound=False)
    world.send("rmq_test", world.message("first", pythonenv=["numpy==1"]))
    runner = world.started_runner("whole")
    runner.says("experiment completed")
    output = world.result("first")
    assert '{"experiment": {"arguments": ["--epochs", "2"], "loss": 0.25}}' in output
    # Without the broker's address, which upstream gives it.
    assert "CUDA -1 of team evolution []" in output
    assert '"key": "first", "project": "canaries"' in output
    until("the answers", lambda: world.waiting("rmq_test_response") == 2)
    begun, ended = world.received("rmq_test_response")
    assert 'experiment_id { value: "first" }' in begun
    assert 'message { value: "start" }' in begun
    assert 'fields { key: "success" value: "True" }' in ended
    assert world.waiting("rmq_test") == 0
    assert "packages of pythonenv are not installed" in runner.log
    assert runner.view.state == "working"
    assert runner.view.experiments == ()
    assert 'runner_project_completed{experiment="first",' in runner.metrics()
    assert canary.in_text(world.secrets(), output.encode()) == set()


@ON_ONE
def test_reports_are_sealed_if_there_is_a_key(world: World) -> None:
    world.queue("rmq_test_response", bound=False)
    runner = world.runner("sealed")
    (runner.folder / "runner/certs/queues/response-encrypt/rmq_").write_text(world.other_key.public)
    runner.start()
    world.send("rmq_test", world.message("sealed"))
    until("the answers", lambda: world.waiting("rmq_test_response") == 2)
    own = keys.read_rsa_key(world.other_key.private, Sensitive(PHRASE), "key")
    texts = [studioml.opened(text, own).decode() for text in world.received("rmq_test_response")]
    assert [word for word in ("start", "stop") if f'value: "{word}"' in "".join(texts)] == ["start", "stop"]


@ON_ONE
def test_an_experiment_that_fails_is_answered_and_begun_again(world: World) -> None:
    """As 0.14.2 does, which never acknowledges it (scene "failed" of its recording)."""
    world.queue("rmq_test_response", bound=False)
    world.started_runner("failing")
    world.send("rmq_test", world.message("failing", filename="missing.py"))
    until("the answers of two tries", lambda: world.waiting("rmq_test_response") >= 4)
    assert (
        'fields { key: "success" value: "False" } fields { key: "error" value: "exit status 2" }' in world.received("rmq_test_response")[1]
    )
    assert "No such file" in world.result("failing")


def changed(world: World, name: str, **fields: Any) -> bytes:
    body = json.loads(world.message(name))
    body["message"] |= fields
    return json.dumps({"message": {key: value for key, value in body["message"].items() if value is not None}}).encode()


def tampered(world: World, name: str) -> bytes:
    """The box differs, and whoever did it can sign."""
    payload = json.loads(world.message(name))["message"]["payload"]
    key, _comma, box = payload.partition(",")
    raw = bytearray(base64.b64decode(box))
    raw[40] ^= 1
    payload = f"{key},{base64.b64encode(raw).decode()}"
    signature, fingerprint = message.sign(payload, world.signer.private)
    return changed(world, name, payload=payload, signature=signature, fingerprint=fingerprint)


REFUSED: dict[str, tuple[Callable[[World, str], bytes], str, bool]] = {
    "wrong key": (
        lambda w, n: message.build(w.request(n), w.other_key.public, w.signer.private), "the payload was encrypted for another key", True,
    ),
    "changed": (lambda w, n: changed(w, n, payload="QUJD,QUJD"), "is not by the key of rmq_", False),
    "changed and signed": (tampered, "the payload was changed after it was encrypted", True),
    "unsigned": (lambda w, n: changed(w, n, signature=None), "encrypted payload has no signature", False),
    "no fingerprint": (lambda w, n: changed(w, n, fingerprint=""), "encrypted payload has no fingerprint", False),
    "of another prefix": (
        lambda w, n: message.build(w.request(n), w.key.public, w.other_signer.private), "is not by the key of rmq_, with which", False,
    ),
    "clear text": (lambda w, n: json.dumps(w.request(n)).encode(), "unencrypted messages not enabled", True),
    "no request": (lambda _w, _n: b"what is this", "unencrypted messages not enabled", True),
    "bucket": (lambda w, n: w.message(n, bucket="nowhere"), "bucket nowhere of http://", False),
    "storage secret": (lambda w, n: w.message(n, secret="wrong"), "(status 403)", False),
    "life is over": (lambda w, n: w.message(n, time_added=1000.0), "the experiment's life time is over", True),
}  # fmt: skip


@ON_ONE
def test_each_refusal_has_one_reason(world: World) -> None:
    runner = world.started_runner("refusing")
    for number, (name, (build, reason, hard)) in enumerate(REFUSED.items()):
        queue = f"rmq_refused{number}"
        world.queue(queue)
        world.send(queue, build(world, f"refused{number}"))
        runner.says(f"subscription_id: %2F?{queue} error:")
        lines = [line for line in runner.log.splitlines() if f"subscription_id: %2F?{queue} error:" in line]
        assert all(reason in line for line in lines), (name, lines)
        until(f"the message of {name}", lambda queue=queue, left=0 if hard else 1: world.waiting(queue) == left)  # type: ignore[misc]
        world.call("DELETE", "queues", "/", queue)
    assert f"refused{len(REFUSED) - 1}" not in [
        row["Key"] for row in world.store.client().list_objects_v2(Bucket=world.store.bucket)["Contents"]
    ]


@ON_ONE
def test_the_longest_prefix_of_a_queue_checks_its_signatures(world: World) -> None:
    runner = world.started_runner("prefixes")
    body = message.build(world.request("prefix"), world.key.public, world.other_signer.private)
    world.send("rmq_other", body)
    runner.says("experiment completed")
    assert "loss" in world.result("prefix")


@ON_ONE
def test_a_passphrase_that_does_not_fit_is_told_and_nothing_is_taken(world: World) -> None:
    runner = world.started_runner("phrase", passphrase="wrong")
    world.send("rmq_test", world.message("phrase"))
    runner.says("unable to load message encryption secrets _: [error ssh-privatekey cannot be decrypted with ssh-passphrase")
    assert runner.view.trouble == "it could not read its keys, and refuses every request"
    assert world.waiting("rmq_test") == 1


@ON_ONE
def test_a_queue_that_does_not_match_is_left_alone(world: World) -> None:
    world.send("sqs_test", world.message("unmatched"))
    runner = world.started_runner("matching", QUEUE_MATCH="^rmq_nobody_.*$")
    runner.says("no queues _: [[identity amqp://")
    assert runner.view.state == "idle"
    assert world.waiting("sqs_test") == 1
    mismatching = world.started_runner("mismatching", QUEUE_MATCH="_", QUEUE_MISMATCH="^(rmq|sqs)_")
    mismatching.says("no queues _: [[identity amqp://")


def test_a_killed_runner_loses_nothing(world: World) -> None:
    first = world.runner("killed")
    (first.folder / "tmp" / "wait").touch()
    first.start()
    world.send("rmq_test", world.message("outlived"))
    until("the experiment", lambda: first.log != "" and "experiment started" in first.log)
    assert first.view.experiments == ("outlived",)
    first.kill()
    second = world.started_runner("next")
    second.says("an experiment that was begun before is run again")
    second.says("experiment completed")
    assert "loss" in world.result("outlived")
    assert world.waiting("rmq_test") == 0


@ON_ONE
def test_ten_experiments_of_two_queues_run_once_each_on_two_runners(world: World) -> None:
    names = [f"many{number}" for number in range(10)]
    for number, name in enumerate(names):
        queue, signer = (("rmq_test", world.signer), ("rmq_other", world.other_signer))[number % 2]
        world.send(queue, message.build(world.request(name), world.key.public, signer.private))
    runners = [world.runner(name) for name in ("one", "two")]
    waits = [runner.folder / "tmp" / "wait" for runner in runners]
    for runner, wait in zip(runners, waits, strict=True):
        wait.touch()
        runner.start()
    for runner in runners:
        runner.says("experiment started")
    for wait in waits:
        wait.unlink()
    until("all of them", lambda: sum(runner.log.count("experiment completed") for runner in runners) == len(names))
    begun = [line for runner in runners for line in runner.log.splitlines() if "experiment started" in line]
    assert sorted(name for line in begun for name in names if f"experiment_id {name} " in line) == sorted(names)
    assert all("loss" in world.result(name) for name in names)


@ON_ONE
def test_a_drained_runner_finishes_and_takes_no_more(world: World, tmp_path: Path) -> None:
    server = ApiServer(tmp_path)
    server.states["studioml-go-runner"] = "Running"
    runner = world.runner("drained")
    server.settings(runner, "drained")
    (runner.folder / "tmp" / "wait").touch()
    others = [f"rmq_drained{number}" for number in range(5)]
    for queue in others:
        world.queue(queue)
    world.send("rmq_test", world.message("drained1"))
    runner.start()
    runner.says("experiment started")
    for queue in ("rmq_test", *others):
        world.send(queue, world.message("drained2"))
    before = runner.view
    server.states["studioml-go-runner"] = "DrainAndSuspend"
    assert (before.experiments, before.ignored) == (("drained1",), 0)
    (runner.folder / "tmp" / "wait").unlink()
    until("the drain", lambda: runner.view.ignored > before.ignored and not runner.view.experiments)
    assert "loss" in world.result("drained1")
    assert [world.waiting(queue) for queue in ("rmq_test", *others)] == [1] * 6
    for queue in others:
        world.call("DELETE", "queues", "/", queue)
    runner.send(signal.SIGTERM)
    runner.says("SIGTERM is ignored")
    assert not runner.ended
    server.states["studioml-go-runner"] = "Running"
    runner.says("experiment_id drained2")
    # The ConfigMap of one pod drains that pod alone.
    server.states["drained"] = "DrainAndSuspend"
    until("the drain of one", lambda: runner.view.ignored > before.ignored + 3)
    server.stop()


@ON_ONE
def test_a_runner_is_upgraded_by_the_module_without_ending_an_experiment(world: World, tmp_path: Path) -> None:
    cluster = PodCluster(world, tmp_path)
    options = {"namespace": "studioml", "amqp_url": cluster.url, "gpus": 0, "wait": True, "wait_timeout": 300, "drain_timeout": 300,
               "amqp_mgt_url": f"https://{HOST}:{world.broker.port}", "broker_ca": world.broker.authority.read_text()}  # fmt: skip
    with pytest.raises(InvalidInput, match="cannot be decrypted"):
        cluster.keep_keys("wrong")
    cluster.keep_keys(PHRASE)
    first = cluster.run(studioml_runner, **options)
    assert [row["state"] for row in first["runners"]] == ["working"]
    assert not cluster.run(studioml_runner, **options)["changed"]
    (old,) = list(cluster.processes.values())
    (old.folder / "tmp" / "wait").touch()
    world.send("rmq_test", world.message("upgraded"))
    old.says("run starting")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        upgrade = pool.submit(cluster.run, studioml_runner, **options, queue_mismatch="^rmq_other$")
        old.says("experiment_id upgraded")
        until("the module's word", lambda: cluster.state() == "DrainAndSuspend")
        assert not old.ended
        assert not upgrade.done()
        (old.folder / "tmp" / "wait").unlink()
        result = upgrade.result(300)
    assert result["drained"]
    assert old not in cluster.processes.values()
    assert "loss" in world.result("upgraded")
    (new,) = list(cluster.processes.values())
    assert "begun before" not in new.log
    assert cluster.state() == "Running"
    world.send("rmq_test", world.message("afterwards"))
    until("the experiment", lambda: 'experiment="afterwards"' in new.metrics())
    assert cluster.run(studioml_runner, namespace="studioml", state="absent", wait=True)["drained"]
    assert cluster.processes == {}
    assert cluster.shown == set()


def test_a_broker_that_is_killed_loses_nothing_and_may_have_tls(world: World) -> None:
    """Last: the broker starts again."""
    world.send("rmq_test", world.message("survivor"))
    world.broker.stop(signal.SIGKILL)
    runner = world.started_runner("patient")
    runner.says("unable to refresh RMQ manifest _: [connect: connection refused")
    assert "its connection is refused" in runner.view.trouble
    (port,) = free_ports(1)
    secure = {"listeners.ssl.1": f"{HOST}:{port}"}
    for file in ("cacertfile", "certfile", "keyfile"):
        secure[f"ssl_options.{file}"] = world.broker.setting(f"management.ssl.{file}")
    world.broker.configure(secure)
    world.broker.start()
    runner.says("experiment completed")
    assert "loss" in world.result("survivor")
    runner.kill()
    world.send("rmq_test", world.message("secure"))
    stranger = world.runner("stranger", AMQP_URL=f"amqps://runner:{PASSWORD}@{HOST}:{port}/%2f")
    (stranger.folder / "ca" / "ca.crt").write_text(certificates(stranger.folder)[1])
    stranger.start()
    stranger.says("x509: certificate signed by unknown authority")
    assert "which broker_ca changes" in stranger.view.trouble
    trusting = world.started_runner("trusting", AMQP_URL=f"amqps://runner:{PASSWORD}@{HOST}:{port}/%2f")
    trusting.says("experiment completed")
    assert "loss" in world.result("secure")


def test_the_image_has_this_program() -> None:
    recipe = (ROOT / "roles" / "local_images" / "vars" / "main.yml").read_text()
    assert "role_path ~ '/files/studioml_runner/standin.py'" in recipe

# SPDX-License-Identifier: GPL-3.0-or-later
"""studioml_runner: what is refused, when runners are drained and restarted, when they are healthy, and that no secret is shown."""

from __future__ import annotations

import base64
import copy
import json
import typing as t

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Conflict, InvalidInput, MusterError, NotFound, WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._kube.made_once import to_be_dropped
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import ServedKind
from ansible_collections.muster.ml.plugins.module_utils._kube.served import Promised
from ansible_collections.muster.ml.plugins.module_utils._manifests.monitoring import MONITORS
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml import keys, runner_metrics
from ansible_collections.muster.ml.plugins.modules import studioml_runner, training_secret
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.pods import pod

Manifest = dict[str, t.Any]
NAME = "studioml-go-runner"
PASSWORD = "canary-of-the-broker"
URL = f"amqp://runner:{PASSWORD}@broker:5672/%2f"
CA = "-----BEGIN CERTIFICATE-----\nxyz\n-----END CERTIFICATE-----\n"
OWN, OTHER = (
    keys.rsa_pair(rsa.generate_private_key(65537, 1024), Sensitive("canary-phrase")).private.reveal()  # noqa: S505 -- quick
    for _key in range(2)
)
SIGNER = keys.new_signing_pair(to_be_dropped())
IGNORED = 'runner_queue_ignored{{host="h",queue_name="*",queue_type="rabbitMQ"}} {}\n'
CHECKED = 'runner_queue_checked{{host="h",queue_name="amqp://broker:5672/%2f",queue_type="rabbitMQ"}} {}\n'
BUSY = 'runner_project_running{host="h",queue_type="rmq",queue_name="q",project="",experiment="1606243639_a"} 1\n'
DONE = BUSY.replace("} 1", "} 0")
IDLE_LINE = "2020-11-23T22:58:16+0000 WRN runner no queues _: [[identity amqp://broker:5672/%2f matcher ^rmq_.*$]] in:\n"
UNREAD_LINE = f"2020-11-23T22:58:16+0000 WRN runner unable to refresh RMQ manifest _: [Get http://runner:{PASSWORD}@broker:15672/: {{}}]\n"


class World:
    """A cluster with keys, and runners that say what a test lets them say."""

    def __init__(self, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cluster = cluster
        self.metrics: list[str] = [CHECKED.format(1)]
        """What the pods answer, one after the other; the last again and again."""
        self.log = ""
        self.warned: list[str] = []
        self.promises: dict[str, Promised] = {}
        monkeypatch.setattr(keys, "BITS", 1024)
        monkeypatch.setattr(cluster, "proxy_get", self._answer)
        cluster.controllers["Deployment"] = self._rolled_out
        self.pods: list[str] = []
        self.states: list[str] = []

    def _answer(self, _namespace: str, _pod: str, port: int, path: str, *, timeout: float) -> tuple[int, str]:
        assert (port, path) == (9090, "/metrics")
        return 200, self.metrics.pop(0) if len(self.metrics) > 1 else self.metrics[0]

    def _rolled_out(self, live: Manifest) -> Manifest:
        """As its controller: pods by number, old ones gone at once."""
        count = live["spec"]["replicas"]
        self.states.append(self.state())
        self.pods = [f"{NAME}-{index}" for index in range(count)]
        return {"observedGeneration": 1, "replicas": count, "updatedReplicas": count, "availableReplicas": count}

    def start_pods(self, **more: t.Any) -> None:
        labels = {"app.kubernetes.io/name": "studioml-runner", "app.kubernetes.io/instance": NAME}
        for name in self.pods:
            self.cluster.add(pod(name, labels=labels, **more))
            self.cluster.log_lines["default", name] = self.log

    def state(self) -> str:
        found = self.cluster.stored("ConfigMap", NAME, "default")
        return str(found["data"]["STATE"]) if found else ""

    def make_keys(self, private: str = OWN) -> None:
        own = {"content": "decryption_key", "private_key": private, "passphrase": "canary-phrase", "generation": 1}
        if self.cluster.stored("Secret", "studioml-runner-key-secret", "default"):
            own["generation"] = 2
        self.run(training_secret, **own)
        self.run(training_secret, content="signing_public_keys", public_keys={"rmq_": SIGNER.public})
        self.run(training_secret, content="response_public_keys")

    def run(self, module: t.Any = studioml_runner, *, check: bool = False, **params: t.Any) -> Manifest:
        asked: Manifest = {"namespace": "default", **params}
        if module is studioml_runner and params.get("state") != "absent":
            asked = {"amqp_url": URL, "gpus": 0, **asked}
        promises = self.promises if check else {}
        found = tasks.run(module, self.cluster, asked, check=check, warn=self.warned.append, diff=True, promises=promises)
        text = json.dumps([found, self.warned])
        for secret in (PASSWORD, "canary-phrase", OWN.splitlines()[5]):
            assert secret not in text
            assert base64.b64encode(secret.encode()).decode()[2:-4] not in text
        return found

    def template(self) -> Manifest:
        found = self.cluster.stored("Deployment", NAME, "default")
        assert found
        return t.cast(Manifest, found["spec"]["template"])


@pytest.fixture
def world(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(cluster, monkeypatch)


@pytest.fixture
def ready(world: World) -> World:
    """With keys and two runners that have no work."""
    world.make_keys()
    world.run(replicas=2)
    world.start_pods()
    world.cluster.requests.clear()
    world.states.clear()
    return world


def actions(result: Manifest) -> dict[str, str]:
    return {f"{entry['kind']}/{entry['name']}": entry["action"] for entry in result["objects"] if entry["action"] != "unchanged"}


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"amqp_url": f"amqp://runner:{PASSWORD}:x@broker:5672/"}, "the password has a colon"),
        ({"amqp_url": "http://x"}, "does not begin with amqp://"),
        ({"queue_match": "["}, "queue_match: '\\[' is not a regular expression"),
        ({"queue_match": "^(?!rmq_a)"}, "looks ahead or back"),
        ({"cache_size": "512Mib"}, "at least 1Gib"),
        ({"cache_size": "10"}, "is not a size"),
        ({"max_mem": "much"}, "max_mem: 'much' is not a size"),
        ({"tmp_size": "200 GB"}, "tmp_size: '200 GB' is not a quantity"),
        ({"replicas": -1}, "replicas: -1 is too small"),
        ({"image": "quay.io/leafai/studio-go-runner:latest"}, "is not pinned"),
        ({"image": "quay.io/leafai/studio-go-runner"}, "is not pinned"),
        ({"image": "quay.io/leafai/studio-go-runner:0.15.0"}, "has no RabbitMQ any more"),
        ({"env": [{"name": "AMQP_URL", "value": "x"}]}, "AMQP_URL is set by an option of its own"),
        ({"env": [{"name": "CLEAR_TEXT_MESSAGES", "value": "true"}]}, "CLEAR_TEXT_MESSAGES is set by an option"),
        ({"broker_ca": "path/ca.crt"}, "broker_ca is not a certificate in PEM"),
        ({"name": "Runner"}, "not a valid name"),
    ],
)
def test_nonsense_is_refused_before_anybody_is_asked(world: World, params: Manifest, told: str) -> None:
    with pytest.raises(InvalidInput, match=told) as caught:
        world.run(**params)
    assert PASSWORD not in str(caught.value)
    assert world.cluster.requests == []


def test_keys_must_be_there_or_come_with_an_earlier_task_of_the_plan(world: World) -> None:
    with pytest.raises(NotFound, match="content: signing_public_keys"):
        world.run()
    with pytest.raises(MusterError, match=r"Secret default/studioml-runner-key-secret .*does not exist"):
        world.run(check=True)
    world.run(training_secret, content="decryption_key", check=True)
    world.run(training_secret, content="signing_public_keys", check=True)
    world.run(training_secret, content="response_public_keys", check=True)
    plan = world.run(check=True)
    assert set(actions(plan).values()) == {"created"}
    assert world.cluster.writes == []
    world.run(training_secret, content="signing_public_keys")
    world.run(training_secret, content="response_public_keys")
    with pytest.raises(NotFound, match="content: decryption_key"):
        world.run()


def test_a_passphrase_that_does_not_open_the_key_is_refused(ready: World) -> None:
    wrong = base64.b64encode(b"another").decode()
    found = ready.cluster.stored("Secret", "studioml-runner-passphrase-secret", "default")
    assert found
    found["data"]["ssh-passphrase"] = wrong
    with pytest.raises(InvalidInput, match="ssh-privatekey cannot be decrypted with its passphrase"):
        ready.run()
    assert ready.cluster.writes == []


def test_everything_is_created_once(world: World) -> None:
    world.make_keys()
    assert set(actions(world.run(check=True))) == set(actions(world.run()))
    writes = len(world.cluster.writes)
    again = world.run()
    assert (again["changed"], again["drained"], actions(again)) == (False, False, {})
    assert len(world.cluster.writes) == writes
    assert again["broker"] == "broker:5672/"


def test_no_signer_is_told(world: World) -> None:
    world.make_keys()
    world.run(training_secret, content="signing_public_keys", public_keys={})
    world.run()
    assert "has no public key yet" in world.warned[-1]


@pytest.mark.parametrize(
    ("served", "asked", "made"),
    [
        ([], "auto", None),
        (["ServiceMonitor"], "auto", "ServiceMonitor"),
        (["ServiceMonitor", "PodMonitoring"], "auto", "PodMonitoring"),
        (["PodMonitoring"], "none", None),
    ],
)
def test_metrics_are_collected_by_what_the_cluster_has(world: World, served: list[str], asked: str, made: str | None) -> None:
    for kind in served:
        world.cluster.kinds_served[MONITORS[kind], kind] = ServedKind(f"{kind.lower()}s", True)
    world.make_keys()
    kinds = {name.partition("/")[0] for name in actions(world.run(monitoring=asked))}
    assert kinds & set(MONITORS) == ({made} if made else set())


def test_what_is_switched_off_is_removed_without_a_restart(ready: World) -> None:
    result = ready.run(replicas=2, network_policy=False)
    assert actions(result) == {f"NetworkPolicy/{NAME}": "deleted"}
    assert not result["drained"]
    assert ready.cluster.stored("NetworkPolicy", NAME, "default") is None


# Restarts


def test_what_is_read_only_once_restarts_the_pods(ready: World) -> None:
    seen = [ready.template()]

    def restarted(**params: t.Any) -> bool:
        ready.metrics = [IGNORED.format(0), IGNORED.format(1)]
        ready.run(replicas=2, drain=False, **params)
        seen.append(ready.template())
        return seen[-1] != seen[-2]

    assert restarted(amqp_url=URL.replace(PASSWORD, "another"))
    assert restarted(broker_ca=CA)
    assert restarted(broker_ca=CA.replace("xyz", "abc"))
    assert restarted()
    ready.make_keys(OTHER)
    assert restarted()
    ready.run(training_secret, content="signing_public_keys", public_keys={"rmq_other": SIGNER.public})
    assert not restarted()


def test_a_digest_without_a_key_tells_nothing_of_the_password(world: World) -> None:
    def made(url: str) -> Manifest:
        context = tasks.context(studioml_runner, world.cluster, {"amqp_url": url}, check=True)
        return studioml_runner.deployment(studioml_runner.Life(context).desired("default"))

    first, second = made(URL), made(URL.replace(PASSWORD, "x"))
    assert first == second


# Draining


def test_runners_are_drained_before_they_are_replaced(ready: World) -> None:
    ready.metrics = [IGNORED.format(7)] * 2 + [BUSY + IGNORED.format(8)] * 2 + [DONE + IGNORED.format(9)]
    result = ready.run(replicas=2, queue_match="^rmq_other")
    assert result["drained"]
    assert actions(result) == {f"Deployment/{NAME}": "updated"}
    assert ready.states[0] == "DrainAndSuspend"
    assert ready.state() == "Running"
    assert not ready.run(replicas=2, queue_match="^rmq_other")["changed"]


@pytest.mark.parametrize(("replicas", "drained"), [(3, False), (1, True), (0, True)])
def test_fewer_runners_are_drained_and_more_are_not(ready: World, replicas: int, drained: bool) -> None:
    ready.metrics = [IGNORED.format(0)] * 2 + [IGNORED.format(1)]
    assert ready.run(replicas=replicas)["drained"] is drained
    assert ready.state() == "Running"
    assert ("DrainAndSuspend" in ready.states) is drained


def test_a_runner_that_has_not_noticed_is_waited_for(ready: World) -> None:
    ready.metrics = [IGNORED.format(3)]
    with pytest.raises(WaitTimeout, match="has not noticed yet that it is to drain") as caught:
        ready.run(replicas=0, drain_timeout=60)
    assert "Nothing was stopped" in str(caught.value)
    assert "drain: false" in str(caught.value)
    assert ready.template()
    assert ready.cluster.stored("Deployment", NAME, "default")["spec"]["replicas"] == 2  # type: ignore[index]


def test_experiments_that_do_not_end_are_named_and_the_next_run_goes_on(ready: World) -> None:
    ready.metrics = [IGNORED.format(0)] * 2 + [BUSY + IGNORED.format(1)]
    with pytest.raises(WaitTimeout, match=f"{NAME}-0: runs 1606243639_a"):
        ready.run(replicas=0, drain_timeout=60)
    assert ready.state() == "DrainAndSuspend"
    ready.metrics = [BUSY + IGNORED.format(5)] * 2 + [IGNORED.format(6)]
    assert ready.run(replicas=0)["drained"]
    assert ready.state() == "Running"


def test_a_change_that_is_taken_back_lets_runners_work_again(ready: World) -> None:
    ready.metrics = [BUSY]
    with pytest.raises(WaitTimeout):
        ready.run(replicas=0, drain_timeout=60)
    result = ready.run(replicas=2)
    assert (actions(result), result["drained"], ready.state()) == ({f"ConfigMap/{NAME}": "updated"}, False, "Running")


def test_without_drain_nobody_is_waited_for(ready: World) -> None:
    ready.metrics = [BUSY]
    assert ready.run(replicas=0, drain=False)["drained"] is False
    assert ready.states == ["DrainAndSuspend"]
    assert ready.state() == "Running"


def test_pods_that_cannot_start_have_nothing_to_finish(ready: World) -> None:
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no"}}
    ready.start_pods(phase="Pending", state=waiting)
    ready.metrics = ["must not be asked"]
    assert ready.run(replicas=2, image="example/runner:0.14.3")["drained"]


def test_a_run_killed_after_the_change_waits_until_old_pods_are_gone(ready: World) -> None:
    def leaving(live: Manifest) -> Manifest:
        return {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 0, "availableReplicas": 2}

    ready.cluster.controllers["Deployment"] = leaving
    ready.metrics = [IGNORED.format(0)] * 2 + [IGNORED.format(1)]
    for _run in range(2):
        with pytest.raises(WaitTimeout, match="2 old pods are still there"):
            ready.run(replicas=2, queue_match="^rmq_other")
        assert ready.state() == "DrainAndSuspend"
    ready.cluster.controllers["Deployment"] = ready._rolled_out
    live = ready.cluster.stored("Deployment", NAME, "default")
    assert live
    live["status"] = ready._rolled_out(live)
    ready.start_pods(deleted=True)
    with pytest.raises(WaitTimeout, match=f"{NAME}-0: is being deleted"):
        ready.run(replicas=2, queue_match="^rmq_other")
    ready.start_pods()
    ready.run(replicas=2, queue_match="^rmq_other")
    assert ready.state() == "Running"


def test_a_state_that_somebody_set_is_not_overwritten(ready: World) -> None:
    found = copy.deepcopy(ready.cluster.stored("ConfigMap", NAME, "default"))
    assert found
    found["data"]["STATE"] = "DrainAndSuspend"
    (ours,) = found["metadata"]["managedFields"]
    fields = {"f:data": ours["fieldsV1"].pop("f:data")}
    found["metadata"]["managedFields"].append(
        {"manager": "kubectl-edit", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    )
    ready.cluster.add(found)
    with pytest.raises(Conflict, match="kubectl-edit"):
        ready.run(replicas=2)


def test_removal_drains_and_leaves_the_keys(ready: World) -> None:
    ready.metrics = [BUSY] * 2 + [IGNORED.format(1)]
    result = ready.run(state="absent")
    assert result["drained"]
    left = {(kind, name) for (_group, kind, _namespace, name) in ready.cluster.objects if kind not in ("Pod", "Lease")}
    assert left == {("Secret", name) for name in (*training_secret.NAMES.values(), "studioml-runner-passphrase-secret")} - {
        ("Secret", name) for name in ("studioml-client-signing-key", "studioml-broker-login")
    }
    assert not ready.run(state="absent")["changed"]


def test_what_two_runners_share_stays_while_one_of_them_is_there(ready: World) -> None:
    login = {"content": "broker_login", "name": "login"}
    ready.run(training_secret, **login)
    gone = {**login, "state": "absent", "delete_data": True}
    for name in ("first", "second"):
        ready.run(name=name, used_secrets=["login"], replicas=0)
    ready.run(name="second", state="absent")
    (kept,) = ready.run(training_secret, **gone)["objects"]
    assert (kept["name"], kept["action"]) == ("login", "kept")
    assert "owner studioml_runner.default.first" in kept["reason"]
    ready.run(name="first", state="absent")
    assert ready.run(training_secret, **gone)["changed"]
    assert not ready.cluster.stored("Secret", "login", "default")


def test_a_plan_of_removal_drains_nobody(ready: World) -> None:
    result = ready.run(state="absent", check=True)
    assert (result["changed"], result["drained"], ready.cluster.writes) == (True, False, [])


def test_somebody_elses_runner_is_not_drained(ready: World) -> None:
    found = ready.cluster.stored("Deployment", NAME, "default")
    assert found
    found["metadata"]["labels"]["muster.ml/owner"] = "other"
    assert ready.run(state="absent")["drained"] is False


# Health


def healthy(world: World, **more: t.Any) -> t.Any:
    world.make_keys()
    world.pods = [f"{NAME}-0"]
    world.start_pods(**more)
    return world.run(wait=True, wait_timeout=60)["runners"]


@pytest.mark.parametrize(
    ("metrics", "log", "state"),
    [([""], IDLE_LINE, "idle"), ([CHECKED.format(3)], "", "working"), ([CHECKED.format(3)], UNREAD_LINE + IDLE_LINE, "working")],
)
def test_a_runner_is_healthy_with_and_without_queues(world: World, metrics: list[str], log: str, state: str) -> None:
    world.metrics, world.log = metrics, log
    assert healthy(world) == [{"pod": f"{NAME}-0", "state": state, "experiments": []}]


def test_a_runner_tells_what_it_runs(world: World) -> None:
    world.metrics = [CHECKED.format(3) + BUSY]
    assert healthy(world)[0]["experiments"] == ["1606243639_a"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("dial tcp 10.0.0.1:15672: connect: connection refused", "its connection is refused"),
        ("dial tcp: lookup broker: no such host", "its name is unknown"),
        ("Error: API responded with a 401 Unauthorized", "it refuses user or password, or its user lacks the tag management"),
        ("x509: certificate signed by unknown authority", "which broker_ca changes"),
        ("something new", "its log says why"),
    ],
)
def test_a_broker_that_cannot_be_asked_is_told_without_its_password(world: World, said: str, told: str) -> None:
    world.metrics, world.log = [CHECKED.format(3)], UNREAD_LINE.format(said)
    with pytest.raises(WaitTimeout, match=told) as caught:
        healthy(world)
    assert PASSWORD not in str(caught.value)


def test_a_runner_says_what_it_waits_for_in_its_queue(world: World) -> None:
    conditions = [{"type": "QuotaReserved", "status": "False", "message": "insufficient unused quota"}]
    kueue = "kueue.x-k8s.io/v1beta2"
    world.cluster.kinds_served[kueue, "Workload"] = ServedKind("workloads", namespaced=True)
    metadata = {"name": "w", "namespace": "default", "labels": {"kueue.x-k8s.io/job-uid": f"{NAME}-0"}}
    world.cluster.add({"apiVersion": kueue, "kind": "Workload", "metadata": metadata, "status": {"conditions": conditions}})
    labels = {"app.kubernetes.io/name": "studioml-runner", "app.kubernetes.io/instance": NAME, "kueue.x-k8s.io/queue-name": "one"}
    world.make_keys()
    world.cluster.add(pod(f"{NAME}-0", "Pending", labels=labels))
    with pytest.raises(WaitTimeout, match=f"{NAME}-0: waits in queue one: insufficient unused quota"):
        world.run(wait=True, wait_timeout=60, queue_name="one")


def test_an_error_that_is_over_is_not_held_against_it(world: World) -> None:
    world.metrics, world.log = ([CHECKED.format(1), CHECKED.format(1), CHECKED.format(2)], UNREAD_LINE.format("connection refused"))
    assert healthy(world)[0]["state"] == "working"


@pytest.mark.parametrize(
    ("metrics", "log", "more", "told"),
    [
        ("", "", {}, "has not listed the broker's queues yet"),
        (CHECKED.format(1), "WRN runner unable to load message encryption secrets phrase x", {}, "could not read its keys"),
        ("", "", {"phase": "Pending", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no"}}}, "ImagePullBackOff"),
    ],
)
def test_what_is_missing_is_told(world: World, metrics: str, log: str, more: Manifest, told: str) -> None:
    world.metrics, world.log = [metrics], log
    with pytest.raises(WaitTimeout, match=told):
        healthy(world, **more)


def test_metrics_of_others_are_not_counted() -> None:
    text = 'go_goroutines 12\nrunner_queue_ignored{queue_name="amqp://x",queue_type="rabbitMQ"} 5\n' + DONE
    found = runner_metrics.view("p", text, IDLE_LINE)
    assert (found.ignored, found.experiments, found.state) == (0, (), "idle")

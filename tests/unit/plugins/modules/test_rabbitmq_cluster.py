# SPDX-License-Identifier: GPL-3.0-or-later
"""rabbitmq_cluster: what is refused, what is made, secrets that stay as they are, and the way to the management API."""

import base64
import json
import stat
import subprocess
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.muster.ml.plugins.module_utils._core.errors import (
    Failed,
    InvalidInput,
    NotFound,
    Unauthorized,
    Unreachable,
    WaitTimeout,
)
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import revealed
from ansible_collections.muster.ml.plugins.module_utils._doctor.diagnosis import diagnose
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._kube import client
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq import health
from ansible_collections.muster.ml.plugins.modules import rabbitmq_cluster, rabbitmq_definitions
from ansible_collections.muster.ml.tests.unit.fakes import pods, tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.rabbitmq import PASSWORD, FakeBroker
from ansible_collections.muster.ml.tests.unit.fakes.tasks import actions

STATEFUL_SET = Ref("apps/v1", "StatefulSet", "rabbitmq", "default")
LABELS = {"app.kubernetes.io/name": "rabbitmq", "app.kubernetes.io/instance": "rabbitmq"}
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
PLAIN = {"tls": False, "admin_password": PASSWORD}
"""A broker without TLS with the administrator of FakeBroker."""


def run(cluster: FakeCluster, *, check: bool = False, warn: t.Callable[[str], None] = print, **params: t.Any) -> dict[str, t.Any]:
    cluster.add(tasks.DISKS)
    return tasks.run(rabbitmq_cluster, cluster, {"namespace": "default", **params}, check=check, warn=warn)


def secret(cluster: FakeCluster, name: str) -> dict[str, str]:
    found = cluster.get(Ref("v1", "Secret", name, "default"))
    assert found is not None
    return {key: base64.b64decode(revealed(value)).decode() for key, value in found["data"].items()}


def live(cluster: FakeCluster) -> dict[str, t.Any]:
    found = cluster.get(STATEFUL_SET)
    assert found is not None
    return found


def config(cluster: FakeCluster) -> str:
    found = cluster.get(Ref("v1", "ConfigMap", "rabbitmq", "default"))
    assert found is not None
    return str(found["data"]["rabbitmq.conf"])


def start(cluster: FakeCluster, broker: FakeBroker, size: int = 1, port: int = 15672) -> None:
    """As the controllers and the kubelet do: pods that are ready, with BROKER behind them."""
    for number in range(size):
        cluster.add(pods.pod(f"rabbitmq-{number}", labels=LABELS))
        cluster.forwarded["default", f"rabbitmq-{number}", port] = ("127.0.0.1", broker.server_port)
    status = {"observedGeneration": live(cluster)["metadata"].get("generation"), "replicas": size}
    cluster.set_status(STATEFUL_SET, {**status, "readyReplicas": size, "updatedReplicas": size})
    broker.nodes = [f"rabbit@rabbitmq-{number}" for number in range(size)]


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"replicas": 2}, "Choose 1 or 3"),
        ({"replicas": 5}, "Choose 1 or 3"),
        ({"replicas": 3, "image": "docker.io/library/rabbitmq:4.0.9"}, "4.1 or later"),
        ({"replicas": 3, "image": "docker.io/library/rabbitmq:3.13"}, "4.1 or later"),
        ({"image": "docker.io/library/rabbitmq"}, "is not pinned"),
        ({"image": "example:5000/rabbitmq:latest"}, "is not pinned"),
        ({"name": "r" * 42}, "41 fit"),
        ({"memory_watermark": 1.5}, "no share of the memory"),
        ({"disk_free_limit": "10GiB"}, "never free in a claim of 10Gi"),
        ({"disk_free_limit": "much"}, "not an amount of bytes"),
        ({"disk_free_limit": "2iB"}, "not an amount of bytes"),
        ({"admin_user": "a:b"}, "letters, digits"),
        ({"admin_password": "short"}, "fewer than 8"),
        ({"admin_password": "canary $(x) #"}, "reads as something else"),
        ({"admin_password": "encrypted:abcdefgh"}, "reads as something else"),
        ({"admin_password": "canary-password\n"}, "reads as something else"),
    ],
)
def test_nonsense_is_refused_before_anybody_is_asked(cluster: FakeCluster, params: dict[str, t.Any], told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        run(cluster, **params)
    assert told in f"{caught.value.message} {caught.value.hint}"
    assert "canary" not in str(caught.value)
    assert not cluster.requests


def test_a_broker_is_made_and_a_second_run_changes_nothing_and_keeps_every_secret(cluster: FakeCluster) -> None:
    made = run(cluster)
    assert set(actions(made)) == {
        "ConfigMap/rabbitmq", "ConfigMap/rabbitmq-ca", "NetworkPolicy/rabbitmq", "Secret/rabbitmq-admin",
        "Secret/rabbitmq-ca", "Secret/rabbitmq-cookie", "Secret/rabbitmq-server-tls", "Service/rabbitmq",
        "Service/rabbitmq-nodes", "StatefulSet/rabbitmq",
    }  # fmt: skip
    assert made["amqp_url"] == "amqps://rabbitmq.default.svc:5671"
    assert made["management_url"] == "https://rabbitmq.default.svc:15671"
    trusted = cluster.stored("ConfigMap", "rabbitmq-ca", "default")
    assert trusted is not None
    assert made["ca_cert"] == trusted["data"]["ca.crt"]
    assert (run(cluster, check=True)["ca_cert"], run(FakeCluster(), check=True)["ca_cert"]) == (made["ca_cert"], None)
    names = ("rabbitmq-admin", "rabbitmq-cookie", "rabbitmq-ca", "rabbitmq-server-tls")
    before = [secret(cluster, name) for name in names]
    assert set(actions(run(cluster)).values()) == {"unchanged"}
    assert [secret(cluster, name) for name in names] == before
    assert before[0]["username"] == "admin"
    assert len(before[0]["password"]) >= 32


def image(version: str) -> str:
    return f"docker.io/library/rabbitmq:{version}"


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(
    ("was", "to", "told"),
    [
        ("4.0.5", "3.13.7", "RabbitMQ 4.0.5, which cannot become 3.13.7: .* an upgrade to 4.1 or 4.2"),
        ("4.2.9", "4.2.8", "upgrade to later releases|upgrade to 4.3"),
        ("3.10.8", "4.2.9", "upgrade to 3.11"),
        ("3.11.10", "3.12.0", "upgrade to 3.11.18"),
        ("4.1.2", "4.3.0", "upgrade to 4.2"),
        ("3.13.7", "4.3", "upgrade to 4.0 or 4.1 or 4.2"),
        ("4.3.1", "5.0.0", "later releases of 4.3 only"),
    ],
)
def test_a_release_that_does_not_follow_the_running_one_is_refused(broker: FakeBroker, was: str, to: str, told: str, check: bool) -> None:
    cluster = FakeCluster()
    run(cluster, **PLAIN, image=image("4.2.9"))
    start(cluster, broker)
    broker.version = was
    writes = len(cluster.writes)
    with pytest.raises(InvalidInput, match=told):
        run(cluster, **PLAIN, image=image(to + "-management"), check=check)
    assert (len(cluster.writes), broker.writes()) == (writes, [])


def test_feature_flags_are_enabled_before_the_next_series_runs(cluster: FakeCluster, broker: FakeBroker) -> None:
    run(cluster, **PLAIN, image=image("3.13.6"))
    start(cluster, broker)
    broker.version = "3.13.6"
    broker.flags = {
        "stream_filtering": ("stable", "disabled"),
        "message_containers": ("stable", "enabled"),
        "khepri_db": ("experimental", "disabled"),
    }
    assert run(cluster, **PLAIN, image=image("4.2.9"), check=True)["changed"]
    run(cluster, **PLAIN, image=image("3.13.7"))
    assert broker.writes() == []
    run(cluster, **PLAIN, image=image("4.2.9"))
    assert broker.writes() == ["PUT /api/feature-flags/stream_filtering/enable"]
    assert live(cluster)["spec"]["template"]["spec"]["containers"][0]["image"] == image("4.2.9")


def test_what_runs_with_khepri_of_3_13_has_no_upgrade(cluster: FakeCluster, broker: FakeBroker) -> None:
    run(cluster, **PLAIN, image=image("3.13.7"))
    start(cluster, broker)
    broker.version, broker.flags = "3.13.7", {"khepri_db": ("experimental", "enabled")}
    with pytest.raises(InvalidInput, match=r"feature flag khepri_db, from which there is no upgrade to 4\.0\.1"):
        run(cluster, **PLAIN, image=image("4.0.1"))


def test_a_broker_that_does_not_answer_gets_another_image_with_a_warning(cluster: FakeCluster, broker: FakeBroker) -> None:
    run(cluster, **PLAIN, image=image("4.3.0"))
    warned: list[str] = []
    assert run(cluster, **PLAIN, image=image("4.2.9"), warn=warned.append)["changed"]
    assert "not known whether docker.io/library/rabbitmq:4.2.9 may follow" in warned[0]
    start(cluster, broker)
    run(cluster, **PLAIN, image=image("4.2.9").partition(":")[0] + "@sha256:" + "a" * 64, warn=warned.append)
    assert "the name of the image has no version" in warned[1]


def test_secrets_are_in_secrets_only(cluster: FakeCluster) -> None:
    result = run(cluster, admin_password="canary-password")
    hidden = ["canary-password", secret(cluster, "rabbitmq-cookie")["erlang-cookie"], "PRIVATE KEY"]
    shown = [json.dumps(o) for o in cluster.objects.values() if o["kind"] != "Secret"]
    assert not [word for word in hidden for text in (*shown, str(result)) if word in text]
    # Nor in the environment of the node, from a Secret, where every process of its pod could read it.
    (container,) = live(cluster)["spec"]["template"]["spec"]["containers"]
    assert not [row for row in container["env"] if "secretKeyRef" in str(row)]


def test_three_nodes_find_each_other_and_one_may_be_stopped_at_a_time(cluster: FakeCluster) -> None:
    assert "PodDisruptionBudget/rabbitmq" in actions(run(cluster, replicas=3))
    assert "peer_discovery_backend = rabbit_peer_discovery_k8s\n" in config(cluster)
    assert live(cluster)["spec"]["podManagementPolicy"] == "Parallel"
    with pytest.raises(InvalidInput, match="has 3 nodes and cannot be changed to 1"):
        run(cluster, replicas=1)
    alone = FakeCluster()
    assert "PodDisruptionBudget/rabbitmq" not in actions(run(alone))
    assert "peer_discovery" not in config(alone)


def test_the_memory_is_that_of_the_pod(cluster: FakeCluster) -> None:
    run(cluster, resources={"limits": {"memory": "2Gi"}}, memory_watermark=0.5)
    assert "total_memory_available_override_value = 2147483648\n" in config(cluster)
    assert "vm_memory_high_watermark.relative = 0.5\n" in config(cluster)
    before = live(cluster)["spec"]["template"]["metadata"]["annotations"]
    run(cluster, resources={"limits": {"memory": "2Gi"}}, memory_watermark=0.4)
    assert live(cluster)["spec"]["template"]["metadata"]["annotations"] != before, "nodes restart with their settings"


def test_tls_stays_as_it_is_and_is_turned_on_where_it_is_asked_for(cluster: FakeCluster, broker: FakeBroker) -> None:
    made = run(cluster, **PLAIN)
    assert (made["amqp_url"], made["ca_cert"]) == ("amqp://rabbitmq.default.svc:5672", None)
    assert "Secret/rabbitmq-server-tls" not in actions(run(cluster))
    again = run(cluster, tls=True)
    assert again["amqp_url"] == "amqps://rabbitmq.default.svc:5671"
    assert "listeners.tcp = none\n" in config(cluster)


def test_what_makes_a_node_ready_starts_no_program(cluster: FakeCluster) -> None:
    run(cluster)
    (container,) = live(cluster)["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["tcpSocket"] == {"port": 5671}
    assert not {"livenessProbe", "startupProbe"} & set(container)


def test_the_cookie_and_the_administrator_are_files_of_the_node_alone(cluster: FakeCluster, tmp_path: Path) -> None:
    run(cluster, admin_password="100~!@^*+=,:;?/|-x")
    (setup,) = live(cluster)["spec"]["template"]["spec"]["initContainers"]
    for mount, name in (("node", "rabbitmq-cookie"), ("admin", "rabbitmq-admin")):
        (tmp_path / "secrets" / mount).mkdir(parents=True)
        for key, value in secret(cluster, name).items():
            (tmp_path / "secrets" / mount / key).write_text(value)
    (tmp_path / "run").mkdir()
    script = setup["command"][2].replace("/run/secrets/rabbitmq", str(tmp_path / "secrets"))
    script = script.replace("/run/rabbitmq", str(tmp_path / "run"))
    for _restart in range(2):
        subprocess.run(["sh", "-c", script], check=True)
    cookie, conf = tmp_path / "run/.erlang.cookie", tmp_path / "run/conf.d/administrator.conf"
    assert cookie.read_text() == secret(cluster, "rabbitmq-cookie")["erlang-cookie"]
    assert conf.read_text() == "default_user = admin\ndefault_pass = 100~!@^*+=,:;?/|-x\n"
    assert {stat.S_IMODE(path.stat().st_mode) for path in (cookie, conf)} == {0o600}


def test_a_broker_is_waited_for_by_its_management_api(cluster: FakeCluster, broker: FakeBroker) -> None:
    run(cluster, replicas=3, **PLAIN)
    start(cluster, broker, 3)
    found = run(cluster, replicas=3, wait=True, **PLAIN)
    assert (found["version"], [node["running"] for node in found["nodes"]]) == ("3.10.8", [True] * 3)
    assert set(actions(found).values()) == {"unchanged"}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda _cluster, broker: broker.nodes.pop(), "2 of 3 nodes know each other"),
        (lambda _cluster, broker: broker.alarms.append({"node": "n", "resource": "disk"}), "has a disk alarm"),
        (lambda cluster, _broker: cluster.remove(Ref("v1", "Pod", "rabbitmq-2", "default")), "2 of 3 nodes have a pod"),
        (lambda cluster, _broker: cluster.forwarded.clear(), "nobody listens at port 15672"),
        (
            lambda cluster, _broker: cluster.add(pods.pod("rabbitmq-1", "Pending", labels=LABELS)),
            "rabbitmq-1: PersistentVolumeClaim default/data-rabbitmq-1 does not exist",
        ),
    ],
)
def test_what_is_waited_for_is_told(cluster: FakeCluster, broker: FakeBroker, change: t.Any, told: str) -> None:
    run(cluster, replicas=3, **PLAIN)
    start(cluster, broker, 3)
    change(cluster, broker)
    with pytest.raises(WaitTimeout, match=told):
        run(cluster, replicas=3, wait=True, wait_timeout=1, **PLAIN)


def test_the_doctor_tells_alarms_and_names_a_broker_that_it_may_not_ask(cluster: FakeCluster, broker: FakeBroker) -> None:
    def told() -> list[str]:
        found, unread = diagnose(cluster, "default", [], [health.faults])
        return [*(f"{one.cause}: {one.evidence}" for one in found if one.object == str(STATEFUL_SET)), *unread]

    run(cluster, **PLAIN)
    start(cluster, broker)
    cluster.set_status(Ref("v1", "Pod", "rabbitmq-0", "default"), READY)
    assert told() == []
    broker.alarms.append({"node": "n", "resource": "disk space"})
    assert told() == ["broker has a disk alarm: node n: has a disk space alarm: publishers are stopped"]
    cluster.remove(Ref("v1", "Secret", "rabbitmq-admin", "default"))
    assert told() == ["Secret default/rabbitmq-admin, which has the login of the administrator, does not exist."]


def test_claims_with_another_password_than_the_secret_are_told_at_once(cluster: FakeCluster, broker: FakeBroker) -> None:
    run(cluster, tls=False)
    start(cluster, broker)
    with pytest.raises(Failed, match="The login is that of Secret default/rabbitmq-admin") as caught:
        run(cluster, tls=False, wait=True, wait_timeout=60)
    assert "put the old password back" in str(caught.value.hint)


def test_another_password_is_set_in_the_broker_first_and_then_in_the_secret(cluster: FakeCluster, broker: FakeBroker) -> None:
    run(cluster, **PLAIN)
    start(cluster, broker)
    planned = run(cluster, check=True, tls=False, admin_password="canary-password")
    assert actions(planned)["Secret/rabbitmq-admin"] == "updated"
    assert broker.is_user("admin", PASSWORD)
    cluster.fail("apply", "rabbitmq-admin", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        run(cluster, tls=False, admin_password="canary-password")
    assert broker.is_user("admin", "canary-password")
    assert secret(cluster, "rabbitmq-admin")["password"] == PASSWORD
    run(cluster, tls=False, admin_password="canary-password")
    assert secret(cluster, "rabbitmq-admin")["password"] == "canary-password"
    assert broker.objects["users", "admin"]["tags"] == ["administrator"]
    written = broker.writes()
    assert set(actions(run(cluster, tls=False)).values()) == {"unchanged"}
    assert broker.writes() == written


def test_a_password_is_not_changed_in_a_broker_that_does_not_answer(cluster: FakeCluster) -> None:
    run(cluster, **PLAIN)
    with pytest.raises(Unreachable, match="Pod default/rabbitmq-0 does not exist"):
        run(cluster, tls=False, admin_password="canary-password")
    assert secret(cluster, "rabbitmq-admin")["password"] == PASSWORD


def own_secret(**values: str) -> dict[str, t.Any]:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine", "namespace": "default"}, "data": data}


def test_a_secret_of_the_user_is_read_and_never_changed(cluster: FakeCluster, broker: FakeBroker) -> None:
    with pytest.raises(NotFound, match="Secret default/mine does not exist"):
        run(cluster, admin_secret="mine")
    cluster.add(own_secret(username="admin"))
    with pytest.raises(InvalidInput, match="Secret default/mine has no key password"):
        run(cluster, admin_secret="mine")
    cluster.add(own_secret(username="admin", password=f"{PASSWORD}\n"))
    with pytest.raises(InvalidInput, match="Secret default/mine: the password has fewer than 8 characters, or one"):
        run(cluster, admin_secret="mine")
    cluster.add(own_secret(username="admin", password=PASSWORD))
    made = run(cluster, admin_secret="mine", tls=False)
    assert made["admin_secret"] == "mine"
    assert not [name for name in actions(made) if name in ("Secret/mine", "Secret/rabbitmq-admin")]
    start(cluster, broker)
    assert run(cluster, admin_secret="mine", wait=True)["version"] == "3.10.8"


def test_lost_secrets_are_told_before_anything_is_changed(cluster: FakeCluster) -> None:
    run(cluster, replicas=3)
    cluster.remove(Ref("v1", "Secret", "rabbitmq-cookie", "default"))
    written = len(cluster.writes)
    with pytest.raises(Failed, match="rabbitmq-cookie does not exist, but the nodes that trust each other by it do"):
        run(cluster, replicas=3)
    cluster.remove(Ref("v1", "Secret", "rabbitmq-admin", "default"))
    with pytest.raises(Failed, match="no copy of its password is known"):
        run(cluster, replicas=3)
    assert len(cluster.writes) == written
    other = FakeCluster()
    run(other)
    with pytest.raises(InvalidInput, match="was made with admin"):
        run(other, admin_user="root")


def test_a_login_whose_secret_is_lost_is_that_of_the_options(cluster: FakeCluster, broker: FakeBroker) -> None:
    run(cluster, **PLAIN)
    start(cluster, broker)
    cluster.remove(Ref("v1", "Secret", "rabbitmq-admin", "default"))
    with pytest.raises(Unauthorized):
        run(cluster, tls=False, admin_password="another-password")
    assert actions(run(cluster, **PLAIN))["Secret/rabbitmq-admin"] == "created"


def test_a_module_logs_in_through_the_api_server(cluster: FakeCluster, broker: FakeBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    run(cluster, **PLAIN)
    start(cluster, broker)
    asked: list[t.Any] = []
    monkeypatch.setattr(client, "connect", lambda params, _clock: asked.append(params) or cluster)
    where = {"kubeconfig": "k", "namespace": "default"}
    result = define(where, users=[{"name": "runner", "password": "canary-of-the-runner", "tags": ["management"]}])
    assert result["actions"] == ["create user runner"]
    assert broker.is_user("runner", "canary-of-the-runner")
    assert (asked[0]["kubeconfig"], asked[0]["name"]) == ("k", "rabbitmq")
    assert broker.headers[0]["Host"] == "rabbitmq.default.svc:15672"
    with pytest.raises(InvalidInput, match="the one that this task logs in as"):
        define(where, absent={"users": [{"name": "admin"}]})
    login = {"login_user": "runner", "login_password": "canary-of-the-runner"}
    with pytest.raises(Exception, match="User runner may not"):
        define(where, users=[{"name": "other"}], **login)
    cluster.forwarded.clear()
    with pytest.raises(Unreachable, match="nobody listens at port 15672"):
        define({**where, "context": "c"}, users=[{"name": "runner"}], startup_timeout=0)
    with pytest.raises(NotFound, match="nosuch does not exist"):
        define({**where, "name": "nosuch"})


def define(where: dict[str, t.Any], **options: t.Any) -> dict[str, t.Any]:
    given = tasks.options(rabbitmq_definitions, {"login_kubernetes": where, **options})
    return rabbitmq_definitions.execute(HostContext(params=given, check=False))


def test_a_login_without_a_broker_in_the_cluster_needs_a_password() -> None:
    spec = ArgumentSpecValidator(rabbitmq_definitions.ARGUMENT_SPEC, **rabbitmq_definitions.CONSTRAINTS)
    assert "login_password, login_kubernetes" in str(spec.validate({}).error_messages)
    assert spec.validate({"login_password": "y"}).error_messages

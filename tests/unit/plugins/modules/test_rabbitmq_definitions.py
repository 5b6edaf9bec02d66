# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules rabbitmq_definitions and rabbitmq_info at a fake of the management API; tests/rabbitmq runs them at real brokers."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, InvalidInput, MusterError, Rejected, WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq import api, control, document, health
from ansible_collections.muster.ml.plugins.modules import rabbitmq_definitions, rabbitmq_info
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock
from ansible_collections.muster.ml.tests.unit.fakes.rabbitmq import PASSWORD, FakeBroker

USER: dict[str, t.Any] = {"name": "runner", "password": "canary-of-the-runner", "tags": ["management"]}
RIGHTS: dict[str, t.Any] = {"user": "runner", "configure": ".*", "write": ".*", "read": ".*"}
EVERYTHING: dict[str, t.Any] = {
    "vhosts": [{"name": "v", "description": "theirs", "tags": ["b", "a"]}],
    "users": [{**USER, "tags": ["monitoring", "management", "management"], "limits": {"max-connections": 3}}],
    "permissions": [{**RIGHTS, "vhost": "v"}],
    "topic_permissions": [{"user": "runner", "vhost": "v", "exchange": "x", "write": "a", "read": "b"}],
    "parameters": [{"vhost": "v", "value": {"max-queues": 9}}],
    "policies": [{"name": "p", "vhost": "v", "pattern": "^rmq_", "definition": {"max-length": 5}}],
    "exchanges": [{"name": "x", "vhost": "v", "type": "topic"}],
    "queues": [{"name": "q", "vhost": "v", "arguments": {"x-max-priority": 5}}],
    "bindings": [{"source": "x", "vhost": "v", "destination": "q", "routing_key": "k"}],
}


class Run:
    """Modules with the broker's login; what they say is searched for passwords."""

    def __init__(self, broker: FakeBroker, clock: FakeClock) -> None:
        self.broker, self.clock = broker, clock
        self.warnings: list[str] = []

    def __call__(
        self, module: t.Any = rabbitmq_definitions, *, check: bool = False, login: tuple[str, str] | None = None, **params: t.Any
    ) -> dict[str, t.Any]:
        options = tasks.options(module, {**self.broker.login(*(login or ())), **params})
        context = HostContext(options, check=check, warn=self.warnings.append, diff=True, clock=self.clock)
        found: dict[str, t.Any] = module.execute(context)
        said = json.dumps([found, self.warnings])
        passwords = [row.get("password") for row in params.get("users", [])]
        for secret in (PASSWORD, *passwords, *(row.get("password_hash") for row in self.broker.objects.values())):
            assert not secret or secret not in said
        return found

    def again(self, **params: t.Any) -> None:
        """Assert that a rerun and a plan write nothing."""
        count = len(self.broker.writes())
        for check in (False, True):
            assert not self(check=check, **params)["changed"]
        assert len(self.broker.writes()) == count

    def refused(self, error: type[MusterError], module: t.Any = rabbitmq_definitions, **params: t.Any) -> str:
        count = len(self.broker.writes())
        with pytest.raises(error) as caught:
            self(module, **params)
        assert len(self.broker.writes()) == count
        return str(caught.value)


@pytest.fixture
def run(broker: FakeBroker, clock: FakeClock) -> Run:
    return Run(broker, clock)


# The document


def test_a_document_is_written_once_and_in_an_order_that_the_broker_takes(run: Run) -> None:
    planned = run(check=True, **EVERYTHING)
    assert run.broker.writes() == []
    made = run(**EVERYTHING)
    assert made["actions"] == planned["actions"] == [
        "create vhost v",
        "create user runner",
        "create permissions of user runner in vhost v",
        "create topic permissions of user runner at exchange x in vhost v",
        "create limits of vhost v",
        "create policy p in vhost v",
        "create exchange x in vhost v",
        "create queue q in vhost v",
        "create binding of queue q to exchange x in vhost v by key 'k'",
    ]  # fmt: skip
    assert made["diff"] == planned["diff"]
    assert (len(made["diff"]["before"]), len(made["diff"]["after"])) == (0, 9)
    assert run.broker.is_user("runner", USER["password"])
    assert run.broker.objects["users", "runner"]["tags"] == ["management", "monitoring"]
    # With its type, or the vhost's default type would decide, where there is one.
    assert run.broker.objects["queues", "v", "q"]["arguments"] == {"x-max-priority": 5, "x-queue-type": "classic"}
    run.again(**EVERYTHING)


def test_a_document_is_deleted_by_its_keys_and_nothing_else(run: Run) -> None:
    run(**EVERYTHING)
    run(queues=[{"name": "theirs"}], vhosts=[{"name": "other"}])
    keys = ("name", "vhost", "user", "exchange", "source", "destination", "routing_key")
    gone = {
        kind: [{key: row[key] for key in keys if key in row} for row in rows]
        for kind, rows in EVERYTHING.items()
        if kind != "topic_permissions"
    } | {"topic_permissions": [{"user": "runner", "vhost": "v", "exchange": "x"}]}
    before = set(run.broker.objects)
    planned = run(check=True, absent=gone)
    assert set(run.broker.objects) == before
    assert run(absent=gone)["actions"] == planned["actions"]
    assert planned["actions"][0] == "delete binding of queue q to exchange x in vhost v by key 'k'"
    assert planned["actions"][-1] == "delete vhost v"
    assert set(run.broker.objects) == {("vhosts", "/"), ("vhosts", "other"), ("users", "admin"), ("queues", "/", "theirs")}
    run.again(absent=gone)


def test_an_export_of_the_broker_is_a_document(run: Run, tmp_path: Path) -> None:
    """The rows are as 4.0.5 exports them, and those of one vhost as 3.10.8 does."""
    rights = {"configure": ".*", "write": ".*", "read": ".*"}
    metadata = {"description": "d", "tags": [], "default_queue_type": "classic"}
    whole = {
        "rabbit_version": "4.0.5", "product_name": "RabbitMQ", "explanation": "Definitions of cluster x",
        "users": [{"name": "u", "password_hash": "YWJjZA==", "hashing_algorithm": "rabbit_password_hashing_sha256",
                   "tags": ["management"], "limits": {}}],
        "vhosts": [{"name": "v", "metadata": metadata, **metadata, "limits": []}],
        "permissions": [{"user": "u", "vhost": "v", **rights}], "topic_permissions": [],
        "parameters": [{"value": {"uri": "amqp://x:secret@y"}, "vhost": "v", "component": "shovel", "name": "s"}],
        "global_parameters": [{"name": "cluster_name", "value": "x"}, {"name": "internal_cluster_id", "value": "rabbitmq-cluster-id-y"}],
        "queues": [{"name": "q", "vhost": "v", "durable": True, "auto_delete": False, "arguments": {"x-queue-type": "quorum"}}],
    }  # fmt: skip
    path = tmp_path / "definitions.json"
    path.write_text(json.dumps(whole))
    assert [action.partition(" of ")[0] for action in run(src=str(path))["actions"]] == [
        "create vhost v", "create user u", "create permissions", "create global parameter cluster_name", "create queue q in vhost v",
    ]  # fmt: skip
    assert run.broker.objects["users", "u"]["password_hash"] == "YWJjZA=="
    assert run.broker.objects["queues", "v", "q"]["type"] == "quorum"
    assert run.warnings == [f"Not managed, and skipped in {path}: shovel s."]
    run.again(src=str(path))
    changed = run(global_parameters=[{"name": "cluster_name", "value": {"of": ["any", 1]}}])
    assert changed["actions"] == ["change value of global parameter cluster_name"]
    assert run.broker.objects["global-parameters", "cluster_name"]["value"] == {"of": ["any", 1]}
    assert run(absent={"global_parameters": [{"name": "cluster_name"}]})["actions"] == ["delete global parameter cluster_name"]
    path.write_text(json.dumps({"queues": [{"name": "q", "durable": True, "auto_delete": False, "arguments": {}}]}))
    run(src=str(path), vhost="/")
    run.again(src=str(path))
    wrong = (
        ("[]", "is not a file of definitions"), ("{", "Line 1, column 2: "), ('{"queues": [1]}', "a row"),
        ('{"parameters": [{"name": "s"}]}', "A row has no 'component'."),
    )  # fmt: skip
    for text, told in wrong:
        path.write_text(text)
        assert told in run.refused(InvalidInput, src=str(path))


def test_a_file_of_anybody_is_read_as_the_broker_reads_it(run: Run, tmp_path: Path) -> None:
    """With a byte order mark, a hash of 3.5 without its algorithm, one row twice, and objects that the broker makes itself."""
    path = tmp_path / "definitions.json"
    to_gone = {"source": "x", "destination": "amq.gen-1", "destination_type": "queue"}
    rows = {
        "rabbit_version": "3.5.7",
        "users": [{"name": "u", "password_hash": "jl8SwsyUdF7PMwIqmg480wCRLDE=", "tags": "management"}],
        "exchanges": [{"name": "", "type": "direct"}, {"name": "amq.foobar", "type": "topic"}, {"name": "x"}, {"name": "x"}],
        "queues": [{"name": "q"}, {"name": "amq.gen-1"}],
        "bindings": [{"source": "", "destination": "q", "routing_key": "q"}, to_gone],
    }
    path.write_text(json.dumps(rows), "utf-8-sig")
    assert run(src=str(path))["actions"] == ["create user u", "create exchange x in vhost /", "create queue q in vhost /"]
    assert run.broker.objects["users", "u"]["hashing_algorithm"] == "rabbit_password_hashing_md5"
    skipped = "exchange with name '', exchange with name 'amq.foobar', queue with name 'amq.gen-1', binding with source '', "
    assert run.warnings == [f"Not managed, and skipped in {path}: {skipped}binding with destination 'amq.gen-1'."]
    run.again(src=str(path))


def test_operator_policies_of_an_export_are_taken(run: Run, tmp_path: Path) -> None:
    """As GET /api/definitions of 3.10.8 has one."""
    value = {"pattern": "^a", "definition": {"max-length": 9}, "priority": 1, "apply-to": "queues"}
    row = {"value": value, "vhost": "/", "component": "operator_policy", "name": "cap"}
    path = tmp_path / "definitions.json"
    path.write_text(json.dumps({"parameters": [row]}))
    assert run(src=str(path))["actions"] == ["create operator policy cap in vhost /"]
    assert run.broker.objects["operator-policies", "/", "cap"].items() >= value.items()
    assert (run(src=str(path))["actions"], run.warnings) == ([], [])
    changed = run(operator_policies=[{"name": "cap", "pattern": "^a", "definition": {"max-length": 5}}])
    assert changed["actions"] == ["change definition, priority of operator policy cap in vhost /"]
    assert run(absent={"operator_policies": [{"name": "cap"}]})["actions"] == ["delete operator policy cap in vhost /"]
    assert "cannot be read: No such file" in run.refused(InvalidInput, src="/nowhere")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"users": [{"name": "x", "password": ""}]}, "sets an empty password and refuses every login"),
        ({"users": [{"name": "x", "tags": ["a,b"]}]}, "has a comma"),
        ({"permissions": [{"user": "x"}, {"user": "x", "read": "y"}]}, "several rows for permissions of user x in vhost /"),
        ({"queues": [{"name": "q", "type": "quorum", "durable": False}]}, "a quorum queue is always durable"),
        ({"queues": [{"name": "q", "type": "stream", "auto_delete": True}]}, "a stream queue is always durable"),
        (
            {"queues": [{"name": "q", "type": "classic", "arguments": {"x-queue-type": "quorum"}}]},
            "the type of q is classic, and quorum in its arguments",
        ),
        ({"parameters": [{"component": "shovel", "name": "s", "value": {}}]}, "shovel is not managed"),
        ({"absent": {"queue": []}}, "absent: queue is no kind of object. Kinds are vhosts"),
        ({"absent": {"queues": [{}]}}, "queues: a row has no name"),
        ({"absent": {"queues": [{"name": "q", "durable": True}]}}, "has durable, which is no field"),
        ({"absent": {"users": [{"name": 5}]}}, "name of the row 5 is not of type str"),
        ({"permissions": [{"user": "x"}], "absent": {"users": [{"name": "x"}]}}, "user x is also what the task should"),
        ({"ensure_login": True, "login_kubernetes": {}}, "is for a broker on the host of the task"),
        ({"queues": [{"name": "q"}], "absent": {"queues": [{"name": "q"}]}}, "is also what the task should create"),
    ],
)
def test_what_no_broker_would_take_well_is_refused(run: Run, options: dict[str, t.Any], told: str) -> None:
    assert told in run.refused(InvalidInput, **options)


def test_a_broker_that_ignores_a_field_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    put = FakeBroker.put
    monkeypatch.setattr(FakeBroker, "put", lambda self, path, body: put(self, path, {**body, "tracing": False}))
    with pytest.raises(WaitTimeout, match=r"is not as desired.*still to do: change tracing of vhost v"):
        run(vhosts=[{"name": "v", "tracing": True}])


# Users


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"password": "a:b"}, "the password of runner has a colon"),
        ({"password": "a@b"}, "the password of runner has characters that the StudioML runner escapes twice"),
        ({"password": "a$b"}, "replaces as a variable"),
        ({"name": "a/b"}, "the name of a/b has characters"),
        ({"tags": ["none"]}, "one of the tags administrator, management"),
        ({"tags": None}, "one of the tags"),
    ],
)
def test_what_a_runner_cannot_use_is_refused_before_anything_is_asked(run: Run, options: dict[str, t.Any], told: str) -> None:
    wanted = {**USER, "password": "Az09-._~&+,;=", **options}
    assert told in run.refused(InvalidInput, users=[wanted], studioml_runners=[wanted["name"]])
    assert "is none of the users" in run.refused(InvalidInput, users=[wanted], studioml_runners=["other"])
    assert run.broker.requests == []
    run(users=[wanted])


def test_a_plan_ends_where_its_administrator_would_be_created(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"users": [USER], "ensure_login": True, "login": ("first", "canary-of-first")}
    commands: list[list[str]] = []

    def rabbitmqctl(argv: list[str], text: str) -> control.Answer:
        commands.append(argv[2:])
        if argv[2] != "list_users":
            tags = "administrator" if argv[2] == "set_user_tags" else ""
            run.broker.put(("users", "first"), {"password": text or "canary-of-first", "tags": tags})
        return control.Answer(0, "[]", "")

    monkeypatch.setattr(control, "run", rabbitmqctl)
    actions = ["create user first", "set tags of user first"]
    assert run(check=True, **given)["actions"] == actions
    assert "cannot be compared before user first can log in" in run.warnings[0]
    assert run(**given)["actions"] == [*actions, "create user runner"]
    count = len(commands)
    run.again(**given)
    assert len(commands) == count


def test_a_hash_of_another_kind_is_not_guessed_at(run: Run) -> None:
    run.broker.put(("users", "odd"), {"password_hash": "AAAA", "hashing_algorithm": "theirs", "tags": ""})
    odd = [{"name": "odd", "password": "x"}]
    assert "hashed by theirs" in run.refused(InvalidInput, users=odd)
    run.again(users=odd, update_password="on_create")


# Vhosts and queues


def test_a_vhost_is_not_deleted_with_a_queue_that_the_broker_keeps(run: Run) -> None:
    """The plan expects the queue to be empty, and a message comes before it is deleted."""
    run(vhosts=[{"name": "v"}], queues=[{"name": "q", "vhost": "v"}])
    run.broker.counts = False
    run.broker.messages["queues", "v", "q"].append("work")
    found = run(absent={"vhosts": [{"name": "v"}], "queues": [{"name": "q", "vhost": "v"}]})
    assert [reason.partition(" was kept")[0] for reason in found["kept"]] == ["queue q in vhost v", "vhost v"]
    assert (found["changed"], found["diff"]) == (False, {"before": {}, "after": {}})
    assert ("queues", "v", "q") in run.broker.objects


@pytest.mark.parametrize("there", [False, True])
def test_a_queue_of_studioml_is_bound_where_runners_look(run: Run, there: bool) -> None:
    """A runner lists the bindings of the exchange, and finds no queue that has none."""
    if there:
        run(queues=[{"name": "rmq_q"}])
    assert len(run(studioml_queues=["rmq_q"])["actions"]) == 3 - there
    exchange = run.broker.objects["exchanges", "/", "StudioML.topic"]
    assert (exchange["type"], exchange["durable"], exchange["auto_delete"]) == ("topic", True, True)
    assert [(row["source"], row["destination"], row["routing_key"]) for row in run.broker.bindings] == [
        ("StudioML.topic", "rmq_q", "StudioML.rmq_q")
    ]
    run.again(studioml_queues=["rmq_q"])
    run.again(queues=[{"name": "rmq_q"}])


@pytest.mark.parametrize(("kind", "counts"), [("classic", True), ("classic", False), ("quorum", True), ("quorum", False)])
def test_a_queue_with_messages_is_kept(run: Run, kind: str, counts: bool) -> None:
    run(queues=[{"name": "q", "type": kind}])
    run.broker.messages["queues", "/", "q"].append("work")
    run.broker.counts = counts
    gone = {"absent": {"queues": [{"name": "q"}]}}
    kept = run(**gone)
    assert ("not counted yet" if (kind, counts) == ("quorum", False) else "holds") in kept["kept"][0]
    assert run.warnings == kept["kept"]
    assert (kept["changed"], kept["actions"], kept["diff"]) == (False, [], {"before": {}, "after": {}})
    assert ("queues", "/", "q") in run.broker.objects
    assert run(**gone, delete_data=True)["changed"]
    run.again(**gone)


def test_another_refusal_of_a_deletion_is_an_error(run: Run) -> None:
    run(queues=[{"name": "q"}])
    run.broker.faults = [None, None, '{"error": "bad_request", "reason": "in use"}']
    with pytest.raises(Rejected, match="in use"):
        run(absent={"queues": [{"name": "q"}]})


# Health


def test_info_reports_and_a_message_goes_in_and_out(run: Run) -> None:
    run(queues=[{"name": "q"}])
    found = run(rabbitmq_info, wait=True, probe=True)
    assert (found["version"], found["problems"], found["changed"]) == ("3.10.8", [], False)
    assert found["listeners"] == [{"node": "n", "protocol": "amqp/ssl", "address": "::", "port": 5671, "tls": True}]
    assert [row["name"] for row in found["queues"]] == ["q"]
    assert found["probe"]["delivered"]
    assert [key[2] for key in run.broker.objects if key[0] == "queues"] == ["q"]
    count = len(run.broker.writes())
    assert "probe" not in run(rabbitmq_info, check=True, probe=True)
    assert len(run.broker.writes()) == count


def test_an_alarm_is_a_problem_and_no_message_is_sent(run: Run) -> None:
    run.broker.alarms = [{"node": "n", "resource": "memory"}]
    assert run(rabbitmq_info)["problems"] == ["node n: has a memory alarm (8 of 7 bytes): publishers are stopped"]
    assert "memory alarm" in run.refused(Failed, rabbitmq_info, probe=True)
    assert "is not healthy after 5 s" in run.refused(WaitTimeout, rabbitmq_info, wait=True, wait_timeout=5)


def test_a_probe_that_fails_leaves_no_queue(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health.secrets, "token_hex", lambda _size: "token")
    run.broker.faults = [*[None] * 5, "failing"]
    with pytest.raises(MusterError):
        run(rabbitmq_info, probe=True)
    assert run.broker.requests[-1] == "DELETE /api/queues/%2F/muster-probe-token"
    assert [key for key in run.broker.objects if key[0] == "queues"] == []


def test_queues_are_listed_by_their_names(run: Run) -> None:
    run(queues=[{"name": name} for name in ("rmq_b", "rmq_a", "other")])
    run.broker.messages["queues", "/", "rmq_b"].append("one")
    found = run(rabbitmq_info, match="^rmq_")["queues"]
    assert [(row["name"], row["messages"]) for row in found] == [("rmq_a", 0), ("rmq_b", 1)]
    assert [row["name"] for row in run(rabbitmq_info, match="", vhost="/")["queues"]] == ["other", "rmq_a", "rmq_b"]
    assert "match: '(' is not a regular expression" in run.refused(InvalidInput, rabbitmq_info, match="(")


def test_queues_are_empty_when_their_old_numbers_say_so_long_enough(run: Run, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("rmq_a", "other"):
        run(queues=[{"name": name}])
        run.broker.messages["queues", "/", name].append("waits")
    left = run.refused(WaitTimeout, rabbitmq_info, match="^rmq_", wait=True, wait_timeout=20)
    assert "queue rmq_a in vhost / has 1 messages, 0 of them held by consumers" in left
    assert "other" not in left
    began, sleep = clock.now, clock.sleep

    def later(seconds: float) -> None:
        # The first numbers are from before somebody published.
        run.broker.messages["queues", "/", "rmq_a"][:] = ["late"] if 3 < clock.now - began < 9 else []
        sleep(seconds)

    monkeypatch.setattr(clock, "sleep", later)
    run.broker.messages["queues", "/", "rmq_a"].clear()
    assert run(rabbitmq_info, match="^rmq_", wait=True, wait_timeout=60)["queues"][0]["messages"] == 0
    assert 15 <= clock.now - began < 18
    assert run(rabbitmq_info, match="other", check=True, wait=True)["queues"][0]["messages"] == 1


def test_a_number_that_is_not_known_is_not_0(run: Run) -> None:
    run(queues=[{"name": "rmq_a"}])
    run.broker.counts = False
    told = run.refused(WaitTimeout, rabbitmq_info, match="", wait=True, wait_timeout=20)
    assert "rmq_a in vhost / has a number of messages that is not known yet" in told


def test_a_wait_ends_in_time_though_nobody_answers(run: Run, clock: FakeClock) -> None:
    run.broker.faults = ["cut before"] * 1000
    with pytest.raises(WaitTimeout, match="does not answer"):
        run(rabbitmq_info, wait=True, wait_timeout=5, startup_timeout=30)
    assert clock.now <= 1006


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        ("routed to no queue", "took a message in vhost / and routed it to no queue"),
        ("not given out", "took a message in vhost / and does not give it out"),
    ],
)
def test_a_message_that_is_lost_is_told(run: Run, lost: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    send = api.ManagementApi.call

    def losing(self: api.ManagementApi, method: str, path: t.Any, *rest: t.Any, **more: t.Any) -> t.Any:
        found = send(self, method, path, *rest, **more)
        if path[-1] == "publish" and lost == "routed to no queue":
            return {"routed": False}
        return [] if path[-1] == "get" else found

    monkeypatch.setattr(api.ManagementApi, "call", losing)
    with pytest.raises(Failed, match=told):
        run(rabbitmq_info, probe=True)


def test_every_problem_has_its_words() -> None:
    node = {"name": "n", "running": True, "partitions": ["m"], "being_drained": True}
    stopped = {**node, "name": "m", "running": False}
    queue = {"name": "q", "vhost": "/", "state": "minority"}
    new = {**queue, "state": None}
    disk = {"node": "n", "resource": "disk space"}
    numbers = {"disk_free": 1, "disk_free_limit": 2}
    assert health.problems([{**node, **numbers}, stopped], [queue, new], [disk]) == [
        "node n: has a disk space alarm (1 bytes free, 2 needed): publishers are stopped",
        "node n: is cut off from m",
        "node n: is being drained",
        "node m: does not run",
        "queue q in vhost /: is minority",
    ]


def test_a_type_that_an_export_calls_undefined_is_none() -> None:
    """As 3.11 to 3.13 export a vhost without one (rabbitmq/rabbitmq-server#10468, #10891): a broker does not start with it."""
    vhost = {"name": "w", "metadata": {"description": "", "tags": [], "default_queue_type": "undefined"}, "limits": []}
    rows, _ignored = document.exported(json.dumps({"rabbit_version": "3.12.12", "vhosts": [vhost]}), "f")
    assert "default_queue_type" not in document.body_of("vhosts", document.parse(rows)["vhosts"]["w",])


def test_a_vhost_of_a_broker_that_starts_has_no_state_yet() -> None:
    """As RabbitMQ 4.0.5 listed the default one just after its start."""
    vhost = {"name": "/", "description": "Default virtual host", "tags": [], "default_queue_type": "classic", "cluster_state": []}
    assert document.live_row("vhosts", vhost)["state"] == []

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The modules for RabbitMQ at a fake of its management API; tests/rabbitmq runs them at real brokers."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.muster.ml.plugins.module_utils._core.errors import (
    Failed,
    Immutable,
    InvalidInput,
    MusterError,
    NotFound,
    Rejected,
    Unauthorized,
    WaitTimeout,
)
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq import api, converge, health, user
from ansible_collections.muster.ml.plugins.modules import (
    rabbitmq_info,
    rabbitmq_policy,
    rabbitmq_queue,
    rabbitmq_queue_info,
    rabbitmq_user,
    rabbitmq_vhost,
)
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock
from ansible_collections.muster.ml.tests.unit.fakes.rabbitmq import PASSWORD, FakeBroker

RUNNER: dict[str, t.Any] = {"name": "runner", "password": "canary-of-the-runner", "tags": ["management"]}


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch, clock: FakeClock) -> t.Iterator[FakeBroker]:
    found = FakeBroker()
    made = api.ManagementApi.__init__
    monkeypatch.setattr(api.ManagementApi, "__init__", lambda self, address, login: made(self, address, login, clock))
    yield found
    found.stop()


class Run:
    """Modules with the broker's login; what they say is searched for passwords."""

    def __init__(self, broker: FakeBroker) -> None:
        self.broker = broker
        self.warnings: list[str] = []

    def __call__(
        self, module: t.Any, *, check: bool = False, login: tuple[str, str] | None = None, **params: t.Any
    ) -> dict[str, t.Any]:
        options = {**self.broker.login(*(login or ())), **params}
        given = ArgumentSpecValidator(module.ARGUMENT_SPEC, **module.CONSTRAINTS).validate(options)
        assert not given.error_messages
        context = HostContext(given.validated_parameters, check=check, warn=self.warnings.append, diff=True)
        found: dict[str, t.Any] = module.execute(context)
        said = json.dumps([found, self.warnings])
        for secret in (
            PASSWORD,
            params.get("password"),
            *(row.get("password_hash") for row in self.broker.objects.values()),
        ):
            assert not secret or secret not in said
        return found

    def again(self, module: t.Any, **params: t.Any) -> None:
        """A rerun and a plan write nothing."""
        count = len(self.broker.writes())
        for check in (False, True):
            assert not self(module, check=check, **params)["changed"]
        assert len(self.broker.writes()) == count

    def refused(self, error: type[MusterError], module: t.Any, **params: t.Any) -> str:
        count = len(self.broker.writes())
        with pytest.raises(error) as caught:
            self(module, **params)
        assert len(self.broker.writes()) == count
        return str(caught.value)


@pytest.fixture
def run(broker: FakeBroker) -> Run:
    return Run(broker)


# Users


def test_a_user_with_everything_is_made_once(run: Run) -> None:
    options = {
        **RUNNER,
        "tags": ["monitoring", "management", "management"],
        "permissions": [{"configure": ".*", "write": ".*", "read": ".*"}],
        "topic_permissions": [{"exchange": "StudioML.topic", "write": "a", "read": "b"}],
        "limits": {"max_connections": 3},
    }
    planned = run(rabbitmq_user, check=True, **options)
    assert run.broker.writes() == []
    made = run(rabbitmq_user, **options)
    assert made["actions"] == planned["actions"] == [
        "create user runner", "permissions in /", "topic_permissions in / StudioML.topic", "max-connections 3",
    ]  # fmt: skip
    assert made["diff"] == planned["diff"]
    assert run.broker.is_user("runner", RUNNER["password"])
    assert made["user"]["tags"] == ["management", "monitoring"]
    assert made["user"].keys() == {"name", "tags", "limits", "permissions", "topic_permissions"}
    assert made["user"]["permissions"] == [{"vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}]
    run.again(rabbitmq_user, **options)


def test_a_change_of_tags_keeps_the_password_and_the_reverse(run: Run) -> None:
    run(rabbitmq_user, **RUNNER)
    run(rabbitmq_user, name="runner", tags=["monitoring", "policymaker"])
    assert run.broker.is_user("runner", RUNNER["password"])
    changed = run(rabbitmq_user, name="runner", password="another-one")
    assert changed["user"]["tags"] == ["monitoring", "policymaker"]
    assert changed["diff"]["after"] == {"password": "(that of the task)"}
    assert run.broker.is_user("runner", "another-one")
    run.again(rabbitmq_user, name="runner", password="a third one", update_password="on_create")


def test_a_new_user_without_a_password_has_none(run: Run) -> None:
    run(rabbitmq_user, name="certified", tags=["management"])
    assert run.broker.objects["users", "certified"]["password_hash"] == ""
    run.again(rabbitmq_user, name="certified")
    assert run(rabbitmq_user, check=True, name="certified", password="x")["changed"]


@pytest.mark.parametrize(
    ("module", "path"),
    [
        (rabbitmq_user, ("users", "x")),
        (rabbitmq_vhost, ("vhosts", "x")),
        (rabbitmq_policy, ("policies", "/", "x")),
        (rabbitmq_queue, ("queues", "/", "x")),
    ],
)
def test_a_plan_deletes_nothing(run: Run, module: t.Any, path: tuple[str, ...]) -> None:
    fields = {"tags": "", "arguments": {}, "pattern": "x", "definition": {}, "priority": 0, "apply-to": "all"}
    run.broker.put(path, fields)
    planned = run(module, check=True, name="x", state="absent")
    assert planned["changed"]
    assert planned["diff"]["before"]
    assert (run.broker.writes(), path in run.broker.objects) == ([], True)
    assert run(module, name="x", state="absent")["actions"] == planned["actions"]
    assert path not in run.broker.objects


def test_a_user_is_deleted_and_nobody_else(run: Run) -> None:
    run(rabbitmq_user, **RUNNER)
    before = set(run.broker.objects)
    assert run(rabbitmq_user, name="runner", state="absent")["actions"] == ["delete user runner"]
    assert before - set(run.broker.objects) == {("users", "runner")}
    run.again(rabbitmq_user, name="runner", state="absent")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"state": "absent"}, "is the one that this task logs in as"),
        ({"tags": ["management"]}, "would lose the tag administrator"),
    ],
)
def test_no_task_locks_itself_out(run: Run, options: dict[str, t.Any], told: str) -> None:
    assert told in run.refused(InvalidInput, rabbitmq_user, name="admin", **options)
    assert told in run.refused(InvalidInput, rabbitmq_user, name="admin", check=True, **options)
    run(rabbitmq_user, name="admin", permissions=[{}], **options, allow_lockout=True)
    assert run.broker.objects.get(("users", "admin"), {"tags": []})["tags"] != ["administrator"]


def test_its_own_password_is_tried_only_for_the_user_itself(run: Run) -> None:
    changed = run(rabbitmq_user, name="admin", password="new", permissions=[{}], tags=["administrator"])
    assert changed["actions"] == ["change password of user admin", "permissions in /"]
    run.again(rabbitmq_user, name="admin", password="new", permissions=[{}])  # with the old password as login_password
    assert "of user admin" in run.refused(Unauthorized, rabbitmq_user, name="admin", password="neither")
    assert "of user admin" in run.refused(Unauthorized, rabbitmq_user, name="other", password="new")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"password": "a:b"}, "password: it has a colon"),
        ({"password": "a@b"}, "password: it has characters that the StudioML runner escapes twice"),
        ({"password": "a$b"}, "replaces as a variable"),
        ({"name": "a/b"}, "name: it has characters"),
        ({"tags": ["none"]}, "one of the tags administrator, management"),
        ({"tags": None}, "one of the tags"),
    ],
)
def test_what_a_runner_cannot_use_is_refused_before_anything_is_asked(
    run: Run, options: dict[str, t.Any], told: str
) -> None:
    wanted = {**RUNNER, "password": "Az09-._~&+,;=", **options}
    assert told in run.refused(InvalidInput, rabbitmq_user, **wanted, studioml_runner=True)
    assert run.broker.requests == []
    run(rabbitmq_user, **wanted)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"password": ""}, "sets an empty password and refuses every login"),
        ({"tags": ["a,b"]}, "cannot have a comma"),
        ({"permissions": [{}, {"configure": "x"}]}, "permissions: there are several for /"),
        ({"topic_permissions": [{"exchange": "x"}, {"exchange": "x"}]}, "topic_permissions: there are several for / x"),
    ],
)
def test_what_no_broker_would_take_well_is_refused(run: Run, options: dict[str, t.Any], told: str) -> None:
    assert told in run.refused(InvalidInput, rabbitmq_user, **{**RUNNER, **options})
    assert run.broker.requests == []


@pytest.mark.parametrize(
    ("algorithm", "hashed"),
    [
        # https://www.rabbitmq.com/docs/passwords, its example of how a hash is computed
        ("rabbit_password_hashing_sha256", "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"),
    ],
)
def test_a_hash_is_computed_as_the_broker_does(algorithm: str, hashed: str) -> None:
    assert user.is_password(Sensitive("test12"), Sensitive(hashed), algorithm, "user x")
    assert not user.is_password(Sensitive("test13"), Sensitive(hashed), algorithm, "user x")
    assert not user.is_password(Sensitive("test12"), Sensitive(""), algorithm, "user x")


def test_a_hash_of_another_kind_is_not_guessed_at(run: Run) -> None:
    run.broker.put(("users", "odd"), {"password_hash": "AAAA", "hashing_algorithm": "theirs", "tags": ""})
    assert "hashed by theirs" in run.refused(InvalidInput, rabbitmq_user, name="odd", password="x")
    run.again(rabbitmq_user, name="odd", password="x", update_password="on_create")


def test_rights_elsewhere_stay(run: Run) -> None:
    run.broker.put(("vhosts", "other"), {})
    run(
        rabbitmq_user,
        **RUNNER,
        permissions=[{"vhost": "other"}],
        topic_permissions=[{"vhost": "other", "exchange": "x"}],
    )
    run(rabbitmq_user, **RUNNER, permissions=[{"vhost": "/"}])
    assert ("permissions", "other", "runner") in run.broker.objects
    purged = run(rabbitmq_user, **RUNNER, permissions=[{"vhost": "/"}], purge_permissions=True)
    assert purged["actions"] == ["remove permissions in other", "remove topic_permissions in other x"]
    assert purged["diff"]["before"]["permissions"] == [
        {"vhost": "other", "configure": "^$", "write": "^$", "read": "^$"}
    ]


def test_a_missing_vhost_stops_a_run_and_not_a_plan(run: Run) -> None:
    wanted = {**RUNNER, "permissions": [{"vhost": "later"}]}
    assert "no vhost later" in run.refused(NotFound, rabbitmq_user, **wanted)
    assert run(rabbitmq_user, check=True, **wanted)["changed"]
    assert "There is no vhost later" in run.warnings[0]


@pytest.mark.parametrize("survived", range(4))
def test_a_run_killed_between_two_requests_is_finished_by_the_next(
    run: Run, survived: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**RUNNER, "permissions": [{}], "topic_permissions": [{"exchange": "x"}], "limits": {"max_channels": 1}}
    whole = run(rabbitmq_user, check=True, **options)["actions"]
    send, left = converge._send, [survived]

    def until_killed(found: t.Any, step: t.Any) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        send(found, step)

    with monkeypatch.context() as patched:
        patched.setattr(converge, "_send", until_killed)
        with pytest.raises(KeyboardInterrupt):
            run(rabbitmq_user, **options)
    assert run(rabbitmq_user, **options)["actions"] == whole[survived:]
    run.again(rabbitmq_user, **options)


def test_a_broker_that_ignores_a_field_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    put = FakeBroker.put
    monkeypatch.setattr(FakeBroker, "put", lambda self, path, body: put(self, path, {**body, "tracing": False}))
    with pytest.raises(WaitTimeout, match=r"vhost v is not as desired.*still differs: tracing"):
        run(rabbitmq_vhost, name="v", tracing=True)


# Vhosts


def test_a_vhost_keeps_what_the_task_does_not_name(run: Run) -> None:
    options = {
        "name": "v",
        "description": "theirs",
        "tags": ["b", "a"],
        "limits": {"max_queues": 2, "max_connections": 3},
    }
    assert run(rabbitmq_vhost, **options)["actions"] == ["create vhost v", "max-connections 3", "max-queues 2"]
    run.again(rabbitmq_vhost, **options)
    changed = run(rabbitmq_vhost, name="v", tracing=True, limits={"max_queues": -1})
    assert changed["actions"] == ["change tracing of vhost v", "remove max-queues"]
    found = changed["vhost"]
    assert (found["description"], found["tags"], found["limits"]) == ("theirs", ["a", "b"], {"max-connections": 3})


def test_a_vhost_with_queues_is_kept(run: Run) -> None:
    run(rabbitmq_vhost, name="v")
    for number in range(5):
        run(rabbitmq_queue, name=f"q{number}", vhost="v")
    gone = {"name": "v", "state": "absent"}
    run.again(rabbitmq_vhost, **gone)
    assert "has queues (q0, q1, q2 and 2 more)" in run(rabbitmq_vhost, **gone)["kept"]
    assert "delete_queues: true deletes it" in run.warnings[0]
    assert run(rabbitmq_vhost, **gone, delete_queues=True)["changed"]
    run.again(rabbitmq_vhost, **gone)


# Policies


def test_a_policy_is_made_changed_and_deleted(run: Run) -> None:
    options = {"name": "p", "pattern": "^rmq_", "definition": {"max-length": 5}}
    run(rabbitmq_policy, **options)
    run.again(rabbitmq_policy, **options)
    changed = run(rabbitmq_policy, **{**options, "definition": {"max-length": 6}}, apply_to="queues", priority=2)
    assert changed["actions"] == ["change definition, priority, apply-to of policy p in vhost /"]
    assert changed["diff"]["after"] == {"definition": {"max-length": 6}, "priority": 2, "apply-to": "queues"}
    assert run(rabbitmq_policy, name="p", state="absent")["diff"]["after"] == {}
    run.again(rabbitmq_policy, name="p", state="absent")


# Queues


def test_a_queue_is_made_with_its_type(run: Run) -> None:
    """Or the vhost's default type would decide, where there is one."""
    run(rabbitmq_queue, name="q", arguments={"x-max-priority": 5})
    assert run.broker.objects["queues", "/", "q"]["arguments"] == {"x-max-priority": 5, "x-queue-type": "classic"}
    run.again(rabbitmq_queue, name="q", arguments={"x-max-priority": 5})
    run.again(rabbitmq_queue, name="q")


@pytest.mark.parametrize("there", [False, True])
def test_a_queue_of_studioml_is_bound_where_runners_look(run: Run, there: bool) -> None:
    """A runner lists the bindings of the exchange, and finds no queue that has none."""
    if there:
        run(rabbitmq_queue, name="rmq_q")
    done = run(rabbitmq_queue, name="rmq_q", studioml=True)
    made = [] if there else ["create classic queue rmq_q in vhost /"]
    assert done["actions"] == [
        *made, "declare exchange StudioML.topic", "bind queue rmq_q in vhost / to StudioML.topic",
    ]  # fmt: skip
    assert run.broker.objects["exchanges", "/", "StudioML.topic"] == {
        "type": "topic",
        "durable": True,
        "auto_delete": True,
        "arguments": {},
    }
    assert run.broker.bindings == {("/", "StudioML.topic", "rmq_q", "StudioML.rmq_q")}
    run.again(rabbitmq_queue, name="rmq_q", studioml=True)
    run.again(rabbitmq_queue, name="rmq_q")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"arguments": {"x-max-priority": 6}}, "exists with x-max-priority=5, and x-max-priority=6 is desired"),
        ({"arguments": {}}, "and no arguments is desired"),
        ({"type": "quorum"}, "exists with type classic, and type quorum is desired"),
        (
            {"durable": False, "auto_delete": True},
            "exists with durable true, auto_delete false, and durable false, auto_delete true",
        ),
    ],
)
def test_a_queue_does_not_change(run: Run, options: dict[str, t.Any], told: str) -> None:
    run(rabbitmq_queue, name="q", arguments={"x-max-priority": 5})
    for check in (False, True):
        said = run.refused(Immutable, rabbitmq_queue, name="q", check=check, **options)
        assert told in said
        assert "rabbitmq_policy" in said


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"type": "quorum", "durable": False}, "a quorum queue is always durable"),
        ({"type": "stream", "auto_delete": True}, "a stream queue is always durable and never deleted by itself"),
        ({"arguments": {"x-queue-type": "quorum"}}, "the type of a queue is the option type"),
    ],
)
def test_a_queue_that_cannot_be_is_refused(run: Run, options: dict[str, t.Any], told: str) -> None:
    assert told in run.refused(InvalidInput, rabbitmq_queue, name="q", **options)
    assert run.broker.requests == []


@pytest.mark.parametrize(
    ("kind", "counts"), [("classic", True), ("classic", False), ("quorum", True), ("quorum", False)]
)
def test_a_queue_with_messages_is_kept(run: Run, kind: str, counts: bool) -> None:
    queue = {"name": "q", "type": kind, "state": "absent"}
    run(rabbitmq_queue, name="q", type=kind)
    run.broker.messages["queues", "/", "q"].append("work")
    run.broker.counts = counts
    kept = run(rabbitmq_queue, **queue)
    assert ("not counted yet" if (kind, counts) == ("quorum", False) else "holds") in kept["kept"]
    assert run.warnings == [kept["kept"]]
    assert (kept["changed"], kept["actions"], kept["diff"]) == (False, [], {"before": {}, "after": {}})
    assert ("queues", "/", "q") in run.broker.objects
    assert run(rabbitmq_queue, **queue, delete_messages=True)["changed"]
    run.again(rabbitmq_queue, **queue)


def test_another_refusal_of_a_deletion_is_an_error(run: Run) -> None:
    run(rabbitmq_queue, name="q")
    run.broker.faults = [None, '{"error": "bad_request", "reason": "in use"}']
    with pytest.raises(Rejected, match="in use"):
        run(rabbitmq_queue, name="q", state="absent")


# Health


def test_info_reports_and_a_message_goes_in_and_out(run: Run) -> None:
    run(rabbitmq_queue, name="q")
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
    for name in ("rmq_b", "rmq_a", "other"):
        run(rabbitmq_queue, name=name)
    run.broker.messages["queues", "/", "rmq_b"].append("one")
    found = run(rabbitmq_queue_info, match="^rmq_")["queues"]
    assert [(row["name"], row["messages"]) for row in found] == [("rmq_a", 0), ("rmq_b", 1)]
    assert [row["name"] for row in run(rabbitmq_queue_info, vhost="/")["queues"]] == ["other", "rmq_a", "rmq_b"]
    assert "match: '(' is not a regular expression" in run.refused(InvalidInput, rabbitmq_queue_info, match="(")


def test_queues_are_empty_when_their_old_numbers_say_so_long_enough(
    run: Run, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("rmq_a", "other"):
        run(rabbitmq_queue, name=name)
        run.broker.messages["queues", "/", name].append("waits")
    left = run.refused(WaitTimeout, rabbitmq_queue_info, match="^rmq_", wait=True, wait_timeout=20)
    assert "queue rmq_a in vhost / has 1 messages, 0 of them held by consumers" in left
    assert "other" not in left
    began, sleep = clock.now, clock.sleep

    def later(seconds: float) -> None:
        # The first numbers are from before somebody published.
        run.broker.messages["queues", "/", "rmq_a"][:] = ["late"] if 3 < clock.now - began < 9 else []
        sleep(seconds)

    monkeypatch.setattr(clock, "sleep", later)
    run.broker.messages["queues", "/", "rmq_a"].clear()
    assert run(rabbitmq_queue_info, match="^rmq_", wait=True, wait_timeout=60)["queues"][0]["messages"] == 0
    assert 15 <= clock.now - began < 18
    assert run(rabbitmq_queue_info, match="other", check=True, wait=True)["queues"][0]["messages"] == 1


def test_a_number_that_is_not_known_is_not_0(run: Run) -> None:
    run(rabbitmq_queue, name="rmq_a")
    run.broker.counts = False
    told = run.refused(WaitTimeout, rabbitmq_queue_info, wait=True, wait_timeout=20)
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

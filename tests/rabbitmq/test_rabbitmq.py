# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules rabbitmq_definitions and rabbitmq_info at real brokers, the oldest and the newest of Debian; judged by access logs and logins."""

import base64
import contextlib
import hashlib
import json
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faults.proxy import certificates
from support import canary

from ansible_collections.muster.ml.plugins.module_utils._core.clock import SYSTEM_CLOCK
from ansible_collections.muster.ml.plugins.module_utils._core.errors import (
    Forbidden,
    Immutable,
    InvalidInput,
    MusterError,
    NotFound,
    Rejected,
    Unauthorized,
    Unreachable,
    WaitTimeout,
)
from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._kube.certificates import Leaf, files
from ansible_collections.muster.ml.plugins.module_utils._local.host import wait_until
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq import api
from ansible_collections.muster.ml.plugins.modules import rabbitmq_definitions, rabbitmq_info
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from rabbitmq.playing import played
from rabbitmq.server import FIRST_PASSWORD, FIRST_USER, STARTS_S, SUITES, Broker, running

ADMIN = "admin"
VHOST = "team/experiments"
# No part of a word that a log may have.
SECRETS = {name: f"canary-{secrets.token_hex(12)}" for name in ("admin", "runner", "other")}
ALL = {"vhost": VHOST, "configure": ".*", "write": ".*", "read": ".*"}


class Team:
    """An administrator's view of a broker."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.broker = broker
        self.folder = folder
        self.warnings: list[str] = []
        self.certificate: dict[str, str] = {}

    def run(
        self,
        module: Any = rabbitmq_definitions,
        *,
        check: bool = False,
        as_user: tuple[str, str] = (ADMIN, SECRETS["admin"]),
        **params: Any,
    ) -> dict[str, Any]:
        login = self.broker.login(*as_user, startup_timeout=5, **self.certificate)
        given = tasks.options(module, {**login, **params})
        context = HostContext(params=given, check=check, warn=self.warnings.append, diff=True)
        found: dict[str, Any] = module.execute(context)
        assert not canary.in_text(SECRETS, json.dumps([found, self.warnings]).encode())
        return found

    def again(self, **params: Any) -> None:
        """Assert that a rerun sends no write."""
        with nothing_written(self):
            assert not self.run(**params)["changed"]

    def fails(self, error: type[MusterError], module: Any = rabbitmq_definitions, **params: Any) -> str:
        """The message of a failure that wrote nothing."""
        before = self.broker.writes()
        with pytest.raises(error) as caught:
            self.run(module, **params)
        assert self.broker.writes() == before
        assert not canary.in_text(SECRETS, str(caught.value).encode())
        return str(caught.value)

    def logs_in(self, user: str, password: str) -> bool:
        with self.broker.api(user, password) as found:
            try:
                return bool(found.get("whoami")["name"] == user)
            except Unauthorized:
                return False

    def ask(self, *path: str) -> Any:
        with self.broker.api(ADMIN, SECRETS["admin"]) as found:
            return found.get(*path)

    def send(self, method: str, *path: str, **body: Any) -> Any:
        """What somebody else does, by the API and not by our modules."""
        with self.broker.api(ADMIN, SECRETS["admin"]) as found:
            return found.call(method, path, body)

    def publish(self, queue: str) -> None:
        message = {"properties": {}, "routing_key": queue, "payload": "work", "payload_encoding": "string"}
        assert self.send("POST", "exchanges", VHOST, "amq.default", "publish", **message)["routed"]

    def play(self, *options: str, elsewhere: bool = False) -> str:
        """Run the playbook; its output, which shows no secret. ELSEWHERE: modules run as on another host, not in Ansible's process."""
        login = self.broker.login(ADMIN, SECRETS["admin"])
        series = SUITES[self.folder.name]
        environment = {"LC_ALL": "C.UTF-8"} if elsewhere else {}
        given = {"environment_of_tasks": environment, "login": login, "runner_password": SECRETS["runner"], "series": series}
        return played("tests/rabbitmq/site.yml", self.folder, given, *options, secrets=SECRETS)


@pytest.fixture(scope="module", params=SUITES)
def team(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """A broker with an administrator beside the user that it comes with."""
    folder = tmp_path_factory.mktemp(request.param, numbered=False)
    with running(folder, request.param) as broker:
        found = Team(broker, folder)
        options = {
            "as_user": (FIRST_USER, FIRST_PASSWORD),
            "users": [{"name": ADMIN, "password": SECRETS["admin"], "tags": ["administrator"]}],
            "permissions": [{**ALL, "user": ADMIN, "vhost": "/"}],
        }
        assert found.run(check=True, **options)["changed"]
        assert not broker.writes()
        assert found.run(**options)["changed"]
        yield found


@contextlib.contextmanager
def nothing_written(team: Team) -> Iterator[None]:
    before = team.broker.writes()
    yield
    assert team.broker.writes() == before


def test_a_playbook_from_nothing_and_again(team: Team) -> None:
    """First, as later tests use what it makes. What others have on the broker stays as it was."""
    team.send("PUT", "vhosts", "theirs", description="not ours")
    team.send("PUT", "users", "their", password="x", tags="policymaker")
    team.send("PUT", "permissions", "theirs", "their", configure="a", write="b", read="c")
    team.send("PUT", "policies", "theirs", "theirs", pattern="x", definition={"max-length": 1})
    before = team.ask("definitions")
    with nothing_written(team):
        planned = team.play("--check", "--diff")
    # The plan has every change, though vhost and queue are not there yet.
    assert " changed=1 " in planned
    assert f"+    queue rmq_experiments in vhost {VHOST}:" in planned
    made = team.play("-vvv")
    assert " changed=1 " in made
    count = len(team.broker.writes())
    again = team.play("-vvv", "--diff", elsewhere=True)
    assert " changed=0 " in again
    # The probe alone: its queue made, a message in and out, the queue gone.
    probe = [request.split("?")[0].partition("muster-probe-")[0] for request in team.broker.writes()[count:]]
    assert probe == [
        "PUT /api/queues/%2F/",
        "POST /api/exchanges/%2F/amq.default/publish",
        "POST /api/queues/%2F/",
        "DELETE /api/queues/%2F/",
    ]
    after = team.ask("definitions")
    assert {user["name"] for user in after["users"]} == {ADMIN, "runner", "their"}
    assert [queue["name"] for queue in after["queues"]] == ["rmq_experiments"]
    for kind in ("users", "vhosts", "permissions", "policies"):
        ours = {json.dumps(row, sort_keys=True) for row in after[kind]}
        theirs = [row for row in before[kind] if "their" in json.dumps(row)]
        assert theirs
        assert [row for row in theirs if json.dumps(row, sort_keys=True) not in ours] == []


def test_no_secret_is_in_a_log_or_in_a_file_for_all(team: Team) -> None:
    assert not canary.in_text(SECRETS, team.broker.log.encode())
    assert not canary.in_text(SECRETS, "\n".join(team.broker.requests()).encode())
    assert not canary.in_open_files(SECRETS, [team.folder])


def test_the_first_user_cannot_log_in_any_more(team: Team) -> None:
    assert not team.logs_in(FIRST_USER, FIRST_PASSWORD)
    assert team.logs_in("runner", SECRETS["runner"])


def test_a_changed_password_is_set_once_and_the_old_one_refused(team: Team) -> None:
    first, other = ({"users": [{"name": "rotated", "tags": ["management"], "password": SECRETS[name]}]} for name in ("runner", "other"))
    team.run(**first)
    with nothing_written(team):
        assert team.run(check=True, **other)["changed"]
        assert team.logs_in("rotated", SECRETS["runner"])
        assert not team.run(**other, update_password="on_create")["changed"]
    assert team.run(**other)["actions"] == ["change password of user rotated"]
    assert (team.logs_in("rotated", SECRETS["runner"]), team.logs_in("rotated", SECRETS["other"])) == (False, True)
    team.again(**other)


def test_other_tags_and_limits_leave_the_password(team: Team) -> None:
    team.run(users=[{"name": "tagged", "password": SECRETS["runner"], "tags": ["management"]}])
    team.run(users=[{"name": "tagged", "tags": ["monitoring"], "limits": {"max-connections": 3, "max-channels": 4}}])
    found = team.ask("users", "tagged")
    assert (found["tags"], found["limits"]) == (["monitoring"], {"max-connections": 3, "max-channels": 4})
    assert team.logs_in("tagged", SECRETS["runner"])
    # With a password in the row, too, which is for new users only.
    row = {"name": "tagged", "password": SECRETS["other"], "tags": ["policymaker"], "limits": {"max-channels": 5}}
    team.run(users=[row], update_password="on_create")
    assert team.logs_in("tagged", SECRETS["runner"])
    assert team.ask("users", "tagged")["limits"] == {"max-channels": 5}
    team.again(users=[{"name": "tagged"}])


def test_a_new_user_without_a_password_cannot_log_in(team: Team) -> None:
    certified = {"users": [{"name": "certified", "tags": ["management"]}]}
    team.run(**certified)
    assert team.ask("users", "certified")["password_hash"] == ""
    team.again(**certified)
    assert not team.logs_in("certified", "")


@pytest.mark.parametrize("algorithm", ["sha256", "sha512", "md5"])
def test_a_hash_tells_what_a_login_tells(team: Team, algorithm: str) -> None:
    salt, password = b"salt", SECRETS["runner"]
    digest = hashlib.new(algorithm, salt + password.encode()).digest()
    hashed = {"password_hash": base64.b64encode(salt + digest).decode(), "hashing_algorithm": f"rabbit_password_hashing_{algorithm}"}
    team.run(users=[{"name": "hashed", "tags": ["management"], **hashed}])
    assert team.logs_in("hashed", password)
    team.again(users=[{"name": "hashed", "password": password}])
    assert team.run(check=True, users=[{"name": "hashed", "password": "another"}])["changed"]
    # Other tags keep the hash with its algorithm.
    team.run(users=[{"name": "hashed", "tags": ["monitoring"]}])
    assert team.logs_in("hashed", password)


def test_a_user_changes_its_own_password_and_a_rerun_finds_it_changed(team: Team) -> None:
    team.run(users=[{"name": "boss", "password": SECRETS["runner"], "tags": ["administrator"]}])
    options: dict[str, Any] = {
        "as_user": ("boss", SECRETS["runner"]),
        "users": [{"name": "boss", "password": SECRETS["other"]}],
        "permissions": [{"user": "boss", "vhost": "/", "configure": "a"}],
    }
    assert team.run(**options)["actions"] == ["change password of user boss", "create permissions of user boss in vhost /"]
    team.again(**options)
    options["users"] = [{"name": "boss", "password": "neither"}]
    assert "refuses the password of user boss" in team.fails(Unauthorized, **options)


def test_nobody_locks_itself_out_without_the_word(team: Team) -> None:
    team.run(users=[{"name": "last", "password": SECRETS["runner"], "tags": ["administrator"]}])
    own = ("last", SECRETS["runner"])
    lower = {"users": [{"name": "last", "tags": []}], "permissions": [{"user": "last", "vhost": "/"}]}
    gone = {"absent": {"users": [{"name": "last"}]}}
    assert "would lose the tag administrator" in team.fails(InvalidInput, as_user=own, **lower)
    assert "allow_lockout" in team.fails(InvalidInput, as_user=own, **gone)
    assert team.run(as_user=own, **lower, allow_lockout=True)["actions"] == [
        "create permissions of user last in vhost /",
        "change tags of user last",
    ]
    assert team.ask("users", "last")["tags"] == []
    team.run(users=[{"name": "last", "tags": ["administrator"]}])
    team.run(as_user=own, **gone, allow_lockout=True)
    assert team.ask("users", "last") is None


def test_permissions_elsewhere_stay_unless_they_are_purged(team: Team) -> None:
    def rights() -> list[tuple[str, str]]:
        rows = team.ask("users", "many", "topic-permissions")
        return sorted(
            [(r["vhost"], r["configure"]) for r in team.ask("users", "many", "permissions")] + [(r["vhost"], r["exchange"]) for r in rows]
        )

    topic = {"user": "many", "vhost": VHOST, "exchange": "amq.topic", "write": "t", "read": "t"}
    options = {"users": [{"name": "many", "tags": []}], "permissions": [{**ALL, "user": "many"}]}
    team.run(**options)
    team.send("PUT", "permissions", "theirs", "many", configure="t", write="t", read="t")
    for exchange in ("amq.topic", "StudioML.topic"):
        team.send("PUT", "topic-permissions", VHOST, "many", exchange=exchange, write="t", read="t")
    team.again(**options, topic_permissions=[topic])
    assert rights() == sorted([(VHOST, ".*"), ("theirs", "t"), (VHOST, "amq.topic"), (VHOST, "StudioML.topic")])
    purged = team.run(**options, topic_permissions=[topic], purge_permissions=True)
    assert purged["actions"] == [
        "delete permissions of user many in vhost theirs",
        f"delete topic permissions of user many at exchange StudioML.topic in vhost {VHOST}",
    ]
    assert rights() == [(VHOST, ".*"), (VHOST, "amq.topic")]


@pytest.mark.parametrize(
    ("missing", "options"),
    [
        ("vhost nowhere", {"permissions": [{"user": ADMIN, "vhost": "nowhere"}]}),
        ("user nobody", {"permissions": [{"user": "nobody"}]}),
        ("vhost nowhere", {"queues": [{"name": "new", "vhost": "nowhere"}]}),
        ("vhost nowhere", {"policies": [{"name": "new", "vhost": "nowhere", "pattern": "x", "definition": {"max-length": 1}}]}),
        ("exchange nosuch in vhost /", {"bindings": [{"source": "nosuch", "destination": "x"}]}),
    ],
)
def test_what_is_missing_is_told_before_anything_is_written(team: Team, missing: str, options: dict[str, Any]) -> None:
    new = {"users": [{"name": "new", "password": "x"}]}
    assert f"There is no {missing} at" in team.fails(NotFound, **new, **options)
    with nothing_written(team):
        assert team.run(check=True, **new, **options)["changed"]


def test_a_queue_with_other_arguments_is_refused(team: Team) -> None:
    same = {"name": "rmq_experiments", "vhost": VHOST}
    team.again(queues=[same])  # any arguments will do
    for other, told in [
        ({"arguments": {}}, "and no arguments is desired"),
        ({"arguments": {"x-max-priority": 10}}, "exists with x-max-priority=5, and x-max-priority=10 is desired"),
        ({"type": "quorum"}, "type classic, and type quorum is desired"),
        ({"durable": False}, "durable true, and durable false"),
    ]:
        assert told in team.fails(Immutable, queues=[{**same, **other}])
        assert told in team.fails(Immutable, check=True, queues=[{**same, **other}])
    exchange = {"name": "StudioML.topic", "vhost": VHOST, "durable": True, "auto_delete": True}
    assert "type topic, and type direct is desired" in team.fails(Immutable, exchanges=[exchange])
    with pytest.raises(Rejected, match="x-max-length"):
        team.run(queues=[{"name": "wrong", "vhost": VHOST, "arguments": {"x-max-length": "many"}}])


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_queue_with_messages_is_kept_without_the_word(team: Team, kind: str) -> None:
    name = f"rmq_{kind}"
    team.run(queues=[{"name": name, "vhost": VHOST, "type": kind}])
    assert team.ask("queues", VHOST, name)["type"] == kind
    team.publish(name)
    gone = {"absent": {"queues": [{"name": name, "vhost": VHOST}]}}
    # The broker has not counted the message yet: a classic queue is kept by its own decision, another one because nobody can tell.
    (kept,) = team.run(**gone)["kept"]
    assert (
        "holds messages; delete_data: true deletes it" if kind == "classic" else "not counted yet"
    ) in kept or "holds 1 messages" in kept
    assert kept in team.warnings
    with nothing_written(team):
        assert team.run(check=True, **gone, delete_data=True)["changed"]
    assert team.ask("queues", VHOST, name)
    assert team.run(**gone, delete_data=True)["changed"]
    assert team.ask("queues", VHOST, name) is None
    team.again(**gone)


def test_a_vhost_changes_and_goes_but_not_with_queues(team: Team) -> None:
    limits = {"vhost": "short", "value": {"max-queues": 2}}
    options = {"vhosts": [{"name": "short", "description": "for a while", "tags": ["a", "b"]}], "parameters": [limits]}
    team.run(**options, queues=[{"name": "q", "vhost": "short"}])
    team.again(**options)
    team.run(vhosts=[{"name": "short", "tracing": True}], absent={"parameters": [{"vhost": "short"}]})
    found = team.ask("vhosts", "short")
    assert (found["description"], found["tags"], found["tracing"]) == ("for a while", ["a", "b"], True)
    assert team.ask("vhost-limits", "short") == []
    gone = {"absent": {"vhosts": [{"name": "short"}]}}
    assert "has queues (q)" in team.run(**gone)["kept"][0]
    assert team.ask("vhosts", "short")
    # An empty queue is deleted at once, and the vhost is then empty.
    gone["absent"]["queues"] = [{"name": "q", "vhost": "short"}]
    assert team.run(**gone)["actions"] == ["delete queue q in vhost short", "delete vhost short"]
    assert team.ask("vhosts", "short") is None
    team.run(vhosts=[{"name": "short"}], queues=[{"name": "q", "vhost": "short"}])
    assert team.run(absent={"vhosts": [{"name": "short"}]}, delete_data=True)["changed"]
    assert team.ask("vhosts", "short") is None


def test_a_policy_changes_and_goes(team: Team) -> None:
    policy = {"name": "mine", "vhost": VHOST, "pattern": "^x", "definition": {"max-length": 1}, "priority": 3}
    team.run(policies=[policy])
    changed = team.run(policies=[{**policy, "definition": {"max-length": 2}}])
    label = f"policy mine in vhost {VHOST}"
    assert changed["diff"] == {side: {label: {"definition": {"max-length": most}}} for side, most in (("before", 1), ("after", 2))}
    assert team.run(absent={"policies": [{"name": "mine", "vhost": VHOST}]})["changed"]
    assert [row["name"] for row in team.ask("policies", VHOST)] == ["experiments"]
    with pytest.raises(Rejected, match="nosuch"):
        team.run(policies=[{**policy, "definition": {"nosuch": 1}}])


def test_bindings_are_told_apart_by_key_and_arguments(team: Team) -> None:
    binding = {"source": "amq.headers", "vhost": VHOST, "destination": "rmq_experiments"}
    rows = [binding, {**binding, "routing_key": "a b/c"}, {**binding, "routing_key": "a b/c", "arguments": {"x": "y"}}]
    assert len(team.run(bindings=rows)["actions"]) == 3
    team.again(bindings=rows)
    assert len(team.run(absent={"bindings": rows[1:]})["actions"]) == 2
    found = team.ask("bindings", VHOST, "e", "amq.headers", "q", "rmq_experiments")
    assert [(row["routing_key"], row["arguments"]) for row in found] == [("", {})]
    team.run(absent={"bindings": rows})


def test_what_the_broker_exports_is_a_document_for_it_and_for_another_vhost(team: Team) -> None:
    path = team.folder / "definitions.json"
    path.write_text(json.dumps(team.ask("definitions")))
    team.again(src=str(path))
    path.write_text(json.dumps(team.ask("definitions", VHOST)))
    team.run(vhosts=[{"name": "copy"}])
    team.run(src=str(path), vhost="copy")
    copied = team.ask("definitions", "copy")
    # Policies of such an export name their vhost in 3.10, and so stay there.
    kinds = ("queues", "exchanges", "bindings", *(() if team.folder.name == "bookworm" else ("policies",)))
    for kind in kinds:
        assert copied[kind] == team.ask("definitions", VHOST)[kind]
    assert copied["queues"]
    team.again(src=str(path), vhost="copy")


def test_a_run_that_was_killed_between_two_requests_is_finished_by_the_next(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {
        "users": [{"name": "killed", "password": SECRETS["runner"], "tags": ["management"], "limits": {"max-channels": 5}}],
        "vhosts": [{"name": "killed"}],
        "permissions": [{**ALL, "user": "killed"}],
        "topic_permissions": [{"user": "killed", "vhost": VHOST, "exchange": "amq.topic"}],
        "parameters": [{"vhost": "killed", "value": {"max-queues": 3}}],
        "policies": [{"name": "killed", "vhost": "killed", "pattern": "x", "definition": {"max-length": 1}}],
        "exchanges": [{"name": "killed", "vhost": "killed"}],
        "queues": [{"name": "killed", "vhost": "killed"}],
        "bindings": [{"source": "killed", "vhost": "killed", "destination": "killed"}],
    }
    gone = {"users": [{"name": "killed"}], "vhosts": [{"name": "killed"}]}
    whole = team.run(check=True, **options)["actions"]
    assert len(whole) == 9
    send = api.ManagementApi.call
    for survived in range(len(whole)):
        left = [survived]

        def until_killed(self: api.ManagementApi, method: str, *rest: Any, **more: Any) -> Any:
            if method != "GET":
                if not left[0]:  # noqa: B023  # of this round
                    raise KeyboardInterrupt
                left[0] -= 1  # noqa: B023
            return send(self, method, *rest, **more)

        with monkeypatch.context() as patched:
            patched.setattr(api.ManagementApi, "call", until_killed)
            with pytest.raises(KeyboardInterrupt):
                team.run(**options)
        assert team.run(**options)["actions"] == whole[survived:]
        team.again(**options)
        assert team.logs_in("killed", SECRETS["runner"])
        team.run(absent=gone, delete_data=True)


def test_who_may_not_is_told_what_is_missing(team: Team) -> None:
    runner = ("runner", SECRETS["runner"])
    assert "User runner may not GET users at" in team.fails(Forbidden, as_user=runner, users=[{"name": "x"}])
    assert "Not monitor user" in team.fails(Forbidden, rabbitmq_info, as_user=runner)
    told = team.fails(Unauthorized, as_user=("runner", "wrong"), users=[{"name": "x"}])
    assert "refuses the password of user runner" in told
    assert "or user runner may not see it" in team.fails(NotFound, as_user=runner, queues=[{"name": "x"}])


def test_who_has_permissions_needs_no_administrator_for_a_queue(team: Team) -> None:
    own = {"as_user": ("runner", SECRETS["runner"]), "vhost": VHOST}
    assert len(team.run(**own, studioml_queues=["rmq_own"])["actions"]) == 2
    team.again(**own, studioml_queues=["rmq_own"])
    assert team.run(**own, absent={"queues": [{"name": "rmq_own"}]})["changed"]
    names = [row["name"] for row in team.run(rabbitmq_info, **own, match="^rmq_")["queues"]]
    assert names == ["rmq_experiments"]


def test_another_authority_is_not_trusted(team: Team, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text(certificates(tmp_path)[1])
    told = team.fails(Unreachable, rabbitmq_info, ca_cert=str(tmp_path / "ca.crt"), startup_timeout=60)
    assert f"The broker at 127.0.0.1:{team.broker.port} has a certificate that is not trusted" in told
    assert "set ca_cert to the broker's authority" in told
    assert "set ca_cert" in team.fails(Unreachable, rabbitmq_info, ca_cert=None, startup_timeout=60)
    assert "The certificate is for other names" in team.fails(Unreachable, rabbitmq_info, login_host="localhost")
    plain = team.fails(Unreachable, rabbitmq_info, login_protocol="http", startup_timeout=0)
    assert "set login_protocol to https" in plain


def test_info_reports_what_is_there(team: Team) -> None:
    found = team.run(rabbitmq_info, vhost=VHOST, wait=True)
    assert found["version"].startswith(SUITES[team.folder.name])
    assert found["problems"] == []
    assert found["alarms"] == []
    assert [node["running"] for node in found["nodes"]] == [True]
    assert [queue["name"] for queue in found["queues"]] == ["rmq_experiments"]
    assert {row["port"]: row["tls"] for row in found["listeners"]}[team.broker.port] is True
    with nothing_written(team):
        assert "probe" not in team.run(rabbitmq_info, check=True, probe=True)


def asking_for_certificates(team: Team) -> dict[str, str]:
    """Settings of a broker that asks for a client certificate; the team has one from now on."""
    folder = team.folder / "clients"
    files(folder, "ca", "clients-ca", [Leaf("client", "client")], check=False, clock=SYSTEM_CLOCK)
    team.certificate = {"client_cert": str(folder / "client.crt"), "client_key": str(folder / "client.key")}
    verify = {"verify": "verify_peer", "fail_if_no_peer_cert": "true", "cacertfile": "/data/clients/ca.crt"}
    return {f"management.ssl.{name}": value for name, value in verify.items()}


def test_a_broker_that_stops_starts_again_with_other_settings(team: Team) -> None:
    """Last: the broker keeps an alarm and asks for a client certificate."""
    team.broker.stop(signal.SIGKILL)
    told = team.fails(Unreachable, startup_timeout=1)
    assert f"127.0.0.1:{team.broker.port} does not answer: Connection refused" in told
    team.broker.configure({"vm_memory_high_watermark.absolute": "10MB", **asking_for_certificates(team)})
    team.broker.start(wait=False)
    # Nobody waits for it but the module.
    assert team.run(users=[{"name": "patient", "password": "x"}], startup_timeout=STARTS_S)["changed"]
    nobody = {"client_cert": None, "client_key": None, "startup_timeout": 60}
    assert "check client_cert" in team.fails(Unreachable, rabbitmq_info, **nobody)

    def alarmed() -> str | None:
        return None if team.run(rabbitmq_info)["alarms"] else "the broker has no alarm yet"

    wait_until(alarmed, timeout=STARTS_S, what="the alarm", clock=SYSTEM_CLOCK, interval=0.5)
    with pytest.raises(WaitTimeout, match="has a memory alarm") as caught:
        team.run(rabbitmq_info, wait=True, wait_timeout=1)
    assert "is not healthy" in str(caught.value)
    assert "memory alarm" in team.fails(MusterError, rabbitmq_info, probe=True)

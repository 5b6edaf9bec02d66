# SPDX-License-Identifier: GPL-3.0-or-later
"""The client of the management API: logins, errors by meaning, a broker that starts or breaks off, and no secret in a message."""

from __future__ import annotations

import base64
import socket
import typing as t
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import (
    Forbidden,
    InvalidInput,
    MusterError,
    NotFound,
    Rejected,
    ServerError,
    Unauthorized,
    Unreachable,
)
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq import api
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock
from ansible_collections.muster.ml.tests.unit.fakes.ports import refused_port
from ansible_collections.muster.ml.tests.unit.fakes.rabbitmq import PASSWORD, FakeBroker


def client(port: int, clock: FakeClock, *, user: str = "admin", password: str = PASSWORD, **more: t.Any) -> api.ManagementApi:
    address = api.Address("127.0.0.1", port, **{"protocol": "http", "startup_timeout": 30, **more})
    return api.ManagementApi(address, api.Login(user, Sensitive(password)), clock)


def test_a_login_is_in_a_header_only(broker: FakeBroker, clock: FakeClock) -> None:
    with client(broker.server_port, clock) as found:
        assert found.get("users", "admin")["tags"] == ["administrator"]
        assert found.get("queues", "/", "a b/c") is None
    assert broker.requests == ["GET /api/users/admin", "GET /api/queues/%2F/a%20b%2Fc"]
    word = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()
    assert [headers["Authorization"] for headers in broker.headers] == [f"Basic {word}"] * 2


def test_one_connection_takes_all_requests(broker: FakeBroker, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    dialled = []
    dial = api.ManagementApi._dial
    monkeypatch.setattr(api.ManagementApi, "_dial", lambda self: dialled.append(1) or dial(self))
    with client(broker.server_port, clock) as found:
        for _number in range(3):
            found.get("whoami")
    assert dialled == [1]


@pytest.mark.parametrize(
    ("user", "password", "error", "told"),
    [
        ("admin", "wrong", Unauthorized, "refuses the password of user admin, or does not know the user"),
        ("nobody", "x", Unauthorized, "refuses the password of user nobody"),
        ("runner", "y", Forbidden, "User runner may not GET users/admin at 127.0.0.1:.*: Not administrator user"),
    ],
)
def test_who_cannot_and_who_may_not_are_two_errors(
    broker: FakeBroker, clock: FakeClock, user: str, password: str, error: type[MusterError], told: str
) -> None:
    """The broker answers both with 401."""
    broker.put(("users", "runner"), {"password": "y", "tags": "management"})
    with client(broker.server_port, clock, user=user, password=password) as found, pytest.raises(error, match=told):
        found.get("users", "admin")
    assert len(broker.requests) == 1


def test_absence_is_an_answer_to_get_and_delete_and_an_error_to_put(broker: FakeBroker, clock: FakeClock) -> None:
    with client(broker.server_port, clock) as found:
        assert found.get("users", "x") is None
        assert found.call("DELETE", ("users", "x")) is None
        with pytest.raises(NotFound, match=r"has no vhost v, .* Create it first, with muster.ml.rabbitmq_definitions"):
            found.call("PUT", ("queues", "v", "q"), {"arguments": {}})
        with pytest.raises(NotFound, match="has no vhost v"):
            found.call("PUT", ("permissions", "v", "admin"), {})


@pytest.mark.parametrize("fault", ["cut before", "cut after", "half", "failing"])
def test_what_passes_is_asked_again(broker: FakeBroker, clock: FakeClock, fault: str) -> None:
    broker.faults = [fault, fault]
    with client(broker.server_port, clock) as found:
        assert found.get("whoami")["name"] == "admin"
        broker.faults = [fault]
        found.call("PUT", ("vhosts", "v"), {})
        broker.faults = [fault]
        found.call("DELETE", ("vhosts", "v"))
    assert ("vhosts", "v") not in broker.objects
    assert clock.now < 1000 + 30


@pytest.mark.parametrize("fault", ["cut before", "cut after", "half", "failing"])
def test_a_message_is_sent_once(broker: FakeBroker, clock: FakeClock, fault: str) -> None:
    """Nobody knows whether it arrived."""
    broker.put(("queues", "/", "q"), {"arguments": {}})
    broker.faults = [fault]
    message = {"routing_key": "q", "payload": "x"}
    with client(broker.server_port, clock) as found, pytest.raises((Unreachable, ServerError)):
        found.call("POST", ("exchanges", "/", "amq.default", "publish"), message)
    assert len(broker.messages["queues", "/", "q"]) <= 1
    assert len(broker.requests) == 1


def test_tries_end_with_the_time_for_the_start(broker: FakeBroker, clock: FakeClock) -> None:
    broker.faults = ["failing"] * 1000
    with client(broker.server_port, clock) as found, pytest.raises(ServerError, match=r"status 500\): mnesia"):
        found.get("whoami")
    assert 1025 < clock.now <= 1030
    assert len(broker.requests) < 30


class Starting(FakeClock):
    """A broker that begins to listen after ten seconds."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.port = port
        self.broker: FakeBroker | None = None

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.now > 1010 and not self.broker:
            self.broker = FakeBroker(self.port)


def test_a_broker_that_starts_is_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    clock = Starting(port)
    with client(port, clock) as found:
        assert found.get("whoami")["name"] == "admin"
    assert clock.broker
    clock.broker.stop()


def test_who_does_not_listen_is_named_with_host_and_port(clock: FakeClock) -> None:
    with (
        refused_port() as port,
        client(port, clock) as found,
        pytest.raises(Unreachable, match=f"127.0.0.1:{port} does not answer: Connection refused. Check"),
    ):
        found.get("whoami")
    assert str(api.Address("::1", 15671)) == "[::1]:15671"


@pytest.mark.parametrize("fault", ["a page", "a redirect"])
def test_another_server_is_not_taken_for_a_broker(broker: FakeBroker, clock: FakeClock, fault: str) -> None:
    broker.faults = [fault]
    with client(broker.server_port, clock) as found, pytest.raises(Unreachable, match="not as RabbitMQ's management API"):
        found.get("whoami")
    assert len(broker.requests) == 1


def test_a_server_that_says_nothing_is_left(clock: FakeClock) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = {"request_timeout": 0.05, "startup_timeout": 0}
        with client(silent.getsockname()[1], clock, **address) as found, pytest.raises(Unreachable, match="timed out"):
            found.get("whoami")


def test_tls_at_a_port_without_it_is_said_at_once(broker: FakeBroker, clock: FakeClock) -> None:
    with client(broker.server_port, clock, protocol="https") as found, pytest.raises(Unreachable, match="is the one with TLS"):
        found.get("whoami")
    assert clock.now == 1000


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ('{"error": "bad_request", "reason": "no &lt;b&gt; with secret-of-admin or new-secret"}', "no <b> with <redacted> or <redacted>"),
        ('{"error": "bad_request", "reason": ["invalid_regexp", [91], [[109, 111], 1]]}', "invalid_regexp [ mo 1"),
        ('{"error": "bad_request"}', "refuses PUT users/x: 400"),
    ],
)
def test_a_refusal_is_readable_and_has_no_secret(broker: FakeBroker, clock: FakeClock, said: str, shown: str) -> None:
    broker.faults = [said]
    with client(broker.server_port, clock) as found, pytest.raises(Rejected) as caught:
        found.call("PUT", ("users", "x"), {"password": Sensitive("new-secret"), "tags": ""})
    assert shown in str(caught.value)
    assert PASSWORD not in str(caught.value)
    assert "new-secret" not in repr(caught.value.__dict__)


def params(**more: t.Any) -> dict[str, t.Any]:
    given = {name: option.get("default") for name, option in api.CONNECTION.items()}
    return {**given, "login_user": "admin", "login_password": PASSWORD, **more}


def test_ports_are_those_of_the_protocol() -> None:
    assert api.address_of(params()).port == 15671
    assert api.address_of(params(login_protocol="http")).port == 15672
    assert api.address_of(params(login_port=1)).port == 1


def test_what_cannot_be_used_is_said_before_anything_is_sent(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("-----BEGIN CERTIFICATE-----\nnothing\n-----END CERTIFICATE-----\n")
    empty = tmp_path / "empty"
    empty.write_text("")
    for options, told in [
        ({"ca_cert": str(empty)}, "is not a PEM certificate"),
        ({"login_user": "a:b"}, "a name with a colon cannot log in"),
        ({"ca_cert": "/nowhere"}, "ca_cert: /nowhere cannot be read: No such file"),
        ({"ca_cert": str(text)}, "is not a PEM certificate"),
        ({"client_cert": str(text), "client_key": str(text)}, "and its key cannot be used"),
    ]:
        with pytest.raises(InvalidInput, match=told):
            api.connect(params(**options), FakeClock())


def test_no_text_of_the_client_has_the_password(clock: FakeClock) -> None:
    found = client(1, clock)
    assert PASSWORD not in f"{found.login!r} {found.__dict__} {found.address}"

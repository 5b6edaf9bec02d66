# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of brokers: what the runner makes of them, and passwords that it could not send."""

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._systems.studioml.amqp_url import Broker, check_amqp_url

OPTIONS = "connection_attempts=30&retry_delay=.5&socket_timeout=5"


@pytest.mark.parametrize(
    ("url", "broker"),
    [
        (f"amqp://u:p-_.~&+,;=9@h:5672/%2f?{OPTIONS}", Broker("u", "h", 5672, "/", "http://h:15672")),
        ("amqps://u:p@10.0.0.4:5671/team", Broker("u", "10.0.0.4", 5671, "team", "https://10.0.0.4:15671")),
        ("amqp://u:p@[fd00::1]:5672", Broker("u", "fd00::1", 5672, "/", "http://[fd00::1]:15672")),
    ],
)
def test_an_address_that_the_runner_reads(url: str, broker: Broker) -> None:
    assert check_amqp_url(Sensitive(url)) == broker


@pytest.mark.parametrize(
    ("password", "told"),
    [
        ("canary:x", "the password has a colon"),
        ("canary%3Ax", "the password has a colon"),
        ("canary$HOME", "has a \\$, which the runner would replace"),
        ("canary%40x", "has a %, and the runner would not decode"),
        ("canary@x", "has a character that the runner would send in its escaped form"),
        ("canary!", "has a character that the runner would send in its escaped form"),
        ("", "the password is empty"),
    ],
)
def test_a_password_that_the_runner_could_not_send_is_refused(password: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told) as refused:
        check_amqp_url(Sensitive(f"amqp://runner:{password}@broker:5672/%2f"))
    assert "canary" not in f"{refused.value}{refused.value.__cause__}{refused.value.__context__}"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://u:canary@h:5672", "does not begin with amqp"),
        ("amqp://h:5672/%2f", "has no user and password"),
        ("amqp://u:canary/x@h:5672", "not an address|has no user and password"),
        ("amqp://u@h:5672", "the password is empty"),
        ("amqp://:canary@h:5672", "the user is empty"),
        ("amqp://u:canary@h/%2f", "has no port"),
        ("amqp://u:canary@:5672", "has no host"),
        ("amqp://u:canary@h:port", "is not an address"),
        ("canary", "does not begin with amqp"),
    ],
)
def test_an_address_that_the_runner_could_not_use_is_refused(url: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told) as refused:
        check_amqp_url(Sensitive(url))
    assert "canary" not in str(refused.value)

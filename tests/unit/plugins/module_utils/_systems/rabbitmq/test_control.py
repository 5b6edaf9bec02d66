# SPDX-License-Identifier: GPL-3.0-or-later
"""The administrator that rabbitmqctl makes: what is changed, what is only looked at, and no password in an argument or an error."""

import json
from collections.abc import Sequence

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, Forbidden, InvalidInput, Unauthorized
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq.api import Address, Login, ManagementApi
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq.control import Answer, ensure_login
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock

PASSWORD = "secret-of-admin"


class Broker(ManagementApi):
    """Answers as rabbitmqctl 3.10.8 does, with passwords from standard input, and as its management API to a login."""

    def __init__(self, **tags: list[str]) -> None:
        super().__init__(Address("127.0.0.1", 1, "http"), Login("admin", Sensitive(PASSWORD)), FakeClock())
        self.tags = tags
        self.passwords = dict.fromkeys(tags, PASSWORD)
        self.commands: list[str] = []
        self.status = 0

    def get(self, *path: str, **_query: str) -> dict[str, list[str]]:
        assert path == ("whoami",)
        if self.passwords.get(self.user) != self.login.password.reveal():
            raise Unauthorized("refused")
        if not self.tags[self.user]:
            raise Forbidden("not a management user")
        return {"tags": self.tags[self.user]}

    def program(self, argv: Sequence[str], text: str) -> Answer:
        assert argv[:2] == ["rabbitmqctl", "--quiet"]
        assert PASSWORD not in argv
        verb, *words = argv[2:]
        if self.status:
            return Answer(self.status, "", f"Error: unable to perform an operation on node, {text}")
        if verb == "list_users":
            return Answer(0, json.dumps([{"user": user, "tags": tags} for user, tags in self.tags.items()]), "")
        self.commands.append(" ".join([verb, *words]))
        if verb == "set_user_tags":
            self.tags[words[0]] = words[1:]
        else:
            self.tags.setdefault(words[0], [])
            self.passwords[words[0]] = text
        return Answer(0, "", "")

    def ensure(self, password: str = PASSWORD, *, check: bool = False) -> list[str]:
        self.log_in(Sensitive(password))
        return ensure_login(self, self.program, check=check)


def test_a_missing_administrator_is_created_once() -> None:
    broker = Broker(guest=["administrator"])
    planned = broker.ensure(check=True)
    assert broker.commands == []
    assert broker.ensure() == planned == ["create user admin", "set tags of user admin"]
    assert broker.commands == ["add_user admin", "set_user_tags admin administrator"]
    assert broker.tags == {"guest": ["administrator"], "admin": ["administrator"]}
    broker.status = 69  # Who can log in needs no rabbitmqctl.
    assert broker.ensure() == []


def test_a_lost_password_is_set_and_other_tags_are_kept() -> None:
    broker = Broker(admin=["monitoring"])
    assert broker.ensure("another") == ["set password of user admin", "set tags of user admin"]
    assert broker.passwords["admin"] == "another"
    assert broker.tags["admin"] == ["monitoring", "administrator"]


@pytest.mark.parametrize("tags", [[], ["management"]])
def test_a_run_that_was_killed_after_the_first_command_is_completed(tags: list[str]) -> None:
    assert Broker(admin=tags).ensure() == ["set tags of user admin"]


@pytest.mark.parametrize("password", ["", "two\nlines", " space"])
def test_a_password_that_standard_input_would_change_is_refused(password: str) -> None:
    with pytest.raises(InvalidInput, match="password is empty, or has"):
        Broker().ensure(password)


def test_a_broker_that_does_not_answer_is_an_error_without_the_password() -> None:
    broker = Broker(guest=["administrator"])
    broker.status = 69
    with pytest.raises(Failed, match=r"rabbitmqctl list_users ended with status 69: .*on node"):
        broker.ensure()
    answers = [Answer(0, "[]", ""), Answer(69, "", f"Error: {PASSWORD}")]
    with pytest.raises(Failed, match="rabbitmqctl add_user ended with status 69") as error:
        ensure_login(broker, lambda _argv, _text: answers.pop(0), check=False)
    assert PASSWORD not in str(error.value)

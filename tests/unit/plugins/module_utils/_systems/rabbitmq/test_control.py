# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The administrator that rabbitmqctl makes: what is changed, what is only looked at, and no password in an argument or an error."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._systems.rabbitmq.control import Answer, Control

PASSWORD = "secret-of-admin"


class Broker:
    """Answers as rabbitmqctl 3.10.8 does, with passwords from standard input."""

    def __init__(self, **tags: list[str]) -> None:
        self.tags = tags
        self.passwords = dict.fromkeys(tags, PASSWORD)
        self.writes: list[str] = []
        self.status = 0

    def __call__(self, argv: Sequence[str], text: str) -> Answer:
        assert argv[:2] == ["rabbitmqctl", "--quiet"]
        assert PASSWORD not in argv
        verb, *words = argv[2:]
        if self.status:
            return Answer(self.status, "", f"Error: unable to perform an operation on node, {text}")
        if verb == "list_users":
            return Answer(0, json.dumps([{"user": user, "tags": tags} for user, tags in self.tags.items()]), "")
        if verb == "authenticate_user":
            right = self.passwords.get(words[0]) == text
            return Answer(0, "Success", "") if right else Answer(65, "", "Error: failed to authenticate user")
        self.writes.append(" ".join([verb, *words]))
        if verb == "set_user_tags":
            self.tags[words[0]] = words[1:]
        else:
            self.tags.setdefault(words[0], [])
            self.passwords[words[0]] = text
        return Answer(0, "", "")

    def ensure(self, name: str = "admin", password: str = PASSWORD, *, check: bool = False) -> list[str]:
        return Control(self).ensure(name, Sensitive(password), check=check)


def test_a_missing_administrator_is_created_once() -> None:
    broker = Broker(guest=["administrator"])
    assert broker.ensure() == ["create user admin", "set tags of user admin"]
    assert broker.writes == ["add_user admin", "set_user_tags admin administrator"]
    assert broker.ensure() == []
    assert broker.tags == {"guest": ["administrator"], "admin": ["administrator"]}


def test_check_mode_only_looks() -> None:
    broker = Broker()
    assert broker.ensure(check=True) == ["create user admin", "set tags of user admin"]
    assert broker.writes == []


def test_a_lost_password_is_set_and_other_tags_are_kept() -> None:
    broker = Broker(admin=["monitoring"])
    assert broker.ensure(password="another") == ["set password of user admin", "set tags of user admin"]
    assert broker.passwords["admin"] == "another"
    assert broker.tags["admin"] == ["monitoring", "administrator"]


def test_a_run_that_was_killed_after_the_first_command_is_completed() -> None:
    broker = Broker(admin=[])
    assert broker.ensure() == ["set tags of user admin"]


@pytest.mark.parametrize("password", ["", "two\nlines", " space"])
def test_a_password_that_standard_input_would_change_is_refused(password: str) -> None:
    with pytest.raises(InvalidInput, match="password is empty, or has"):
        Broker().ensure(password=password)


def test_a_name_that_cannot_log_in_is_refused() -> None:
    with pytest.raises(InvalidInput, match="without a colon"):
        Broker().ensure(name="a:b")


def test_a_broker_that_does_not_answer_is_an_error_without_the_password() -> None:
    broker = Broker(admin=["administrator"])
    broker.status = 69
    with pytest.raises(Failed, match=r"rabbitmqctl list_users ended with status 69: .*on node"):
        broker.ensure()
    with pytest.raises(Failed) as error:
        Control(broker)._run(["change_password", "admin"], Sensitive(PASSWORD))
    assert PASSWORD not in str(error.value)

# SPDX-License-Identifier: GPL-3.0-or-later
"""rabbitmqctl on the broker's own host, for actions that need no login: create a first administrator, and reset a lost password.

The login is tried first, because each rabbitmqctl starts an Erlang system of its own. Passwords are passed by standard input, never as
arguments, which every user of the host could read.
"""

from __future__ import annotations

import json
import subprocess
import typing as t
from collections.abc import Sequence

from ..._core.errors import Failed, Forbidden, InvalidInput, Unauthorized
from ..._core.sensitive import Sensitive
from .api import ManagementApi

ADMINISTRATOR = "administrator"
_SECONDS = 60
"""The timeout of one command; rabbitmqctl itself gives up on a broker that does not respond."""


class Answer(t.NamedTuple):
    """The end of a program."""

    status: int
    output: str
    errors: str


Program = t.Callable[[Sequence[str], str], Answer]
"""Runs a program with a text as its standard input."""


def run(argv: Sequence[str], text: str) -> Answer:
    """Run a program with TEXT as its standard input."""
    try:
        done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False, timeout=_SECONDS)
    except FileNotFoundError as exc:
        raise Failed(f"{argv[0]} is not on this host.", hint="Role rabbitmq installs it with the broker.") from exc
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(argv[:3])} did not end within {_SECONDS} s.") from None  # the cause has all arguments
    return Answer(done.returncode, done.stdout, done.stderr)


def ensure_login(api: ManagementApi, program: Program, *, check: bool) -> list[str]:
    """Make the user of API an administrator who can log in with its password; returns what was done for it."""
    name, password = api.user, api.login.password
    _check(password)
    known = _tags_of_login(api)
    if ADMINISTRATOR in (known or ()):
        return []
    rows = json.loads(_output(program, ["list_users", "--formatter", "json"]))
    tags = {row["user"]: row["tags"] for row in rows}.get(name)
    steps: list[tuple[str, list[str], Sensitive | None]] = []
    if tags is None:
        steps.append(("create user", ["add_user", name], password))
    elif known is None:
        steps.append(("set password of user", ["change_password", name], password))
    if ADMINISTRATOR not in (tags or []):
        steps.append(("set tags of user", ["set_user_tags", name, *(tags or []), ADMINISTRATOR], None))
    if not check:
        for _what, words, secret in steps:
            _output(program, words, secret)
    return [f"{what} {name}" for what, _words, _secret in steps]


def _tags_of_login(api: ManagementApi) -> list[str] | None:
    """Return the tags of the user that logs in: empty if it may not use the API, None if the broker refuses the login."""
    try:
        return list(api.get("whoami")["tags"])
    except Forbidden:
        return []
    except Unauthorized:
        return None


def _output(program: Program, words: Sequence[str], secret: Sensitive | None = None) -> str:
    answer = program(["rabbitmqctl", "--quiet", *words], secret.reveal() if secret else "")
    if answer.status:
        said = " ".join((answer.errors or answer.output).split())[:400]
        if secret:
            said = said.replace(secret.reveal(), "********")
        raise Failed(
            f"rabbitmqctl {words[0]} ended with status {answer.status}: {said}",
            hint="journalctl -u rabbitmq-server and the files in /var/log/rabbitmq have more.",
        )
    return answer.output


def _check(password: Sensitive) -> None:
    text = password.reveal()
    if not text or "\n" in text or text != text.strip():
        raise InvalidInput(
            "login_password is empty, or has a line break or a space at an end, which rabbitmqctl would not take as they are.",
            "The filter trim takes them away.",
        )

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""rabbitmqctl on the broker's own host, for what needs no login: a first administrator, and one whose password is lost.

Passwords go in by standard input, never as arguments, which every user of the host could read.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import json
import typing as t
from collections.abc import Sequence

from ..._core.errors import Failed, InvalidInput
from ..._core.sensitive import Sensitive

ADMINISTRATOR = "administrator"
_REFUSED = 65
"""Exit status where a login is refused (EX_DATAERR), seen at 3.10.8; a broker that does not answer has 69 (EX_UNAVAILABLE)."""


class Answer(t.NamedTuple):
    """The end of a program."""

    status: int
    output: str
    errors: str


class Program(t.Protocol):
    """Runs a program with a text as its standard input."""

    def __call__(self, argv: Sequence[str], text: str) -> Answer: ...


@dataclasses.dataclass(frozen=True)
class Control:
    """The broker of this host."""

    program: Program

    def ensure(self, name: str, password: Sensitive, *, check: bool) -> list[str]:
        """Bring a user about that can log in with PASSWORD and has the tag administrator; returns what was done for it."""
        _check(name, password)
        tags = self._tags_by_user().get(name)
        steps: list[tuple[str, list[str], Sensitive | None]] = []
        if tags is None:
            steps.append(("create user", ["add_user", name], password))
        elif not self._logs_in(name, password):
            steps.append(("set password of user", ["change_password", name], password))
        if ADMINISTRATOR not in (tags or []):
            steps.append(("set tags of user", ["set_user_tags", name, *(tags or []), ADMINISTRATOR], None))
        if not check:
            for _what, words, secret in steps:
                self._run(words, secret)
        return [f"{what} {name}" for what, _words, _secret in steps]

    def _tags_by_user(self) -> dict[str, list[str]]:
        rows = json.loads(self._run(["list_users", "--formatter", "json"]))
        return {row["user"]: row["tags"] for row in rows}

    def _logs_in(self, name: str, password: Sensitive) -> bool:
        return self._answer(["authenticate_user", name], password, also=_REFUSED).status == 0

    def _run(self, words: Sequence[str], secret: Sensitive | None = None) -> str:
        return self._answer(words, secret).output

    def _answer(self, words: Sequence[str], secret: Sensitive | None, also: int = 0) -> Answer:
        answer = self.program(["rabbitmqctl", "--quiet", *words], secret.reveal() if secret else "")
        if answer.status not in (0, also):
            said = " ".join((answer.errors or answer.output).split())[:400]
            if secret:
                said = said.replace(secret.reveal(), "********")
            raise Failed(
                f"rabbitmqctl {words[0]} ended with status {answer.status}: {said}",
                hint="journalctl -u rabbitmq-server and the files in /var/log/rabbitmq have more.",
            )
        return answer


def _check(name: str, password: Sensitive) -> None:
    if not name or ":" in name:
        raise InvalidInput(f"name: {name!r} cannot log in to the management API.", "Take a name without a colon.")
    text = password.reveal()
    if not text or "\n" in text or text != text.strip():
        raise InvalidInput(
            "password is empty, or has a line break or a space at an end, which rabbitmqctl would not take as they are.",
            "The filter trim takes them away.",
        )

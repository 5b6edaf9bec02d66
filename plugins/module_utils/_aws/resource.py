# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What every kind of resource tells about itself, and what most kinds have in common.

Private to the collection.
"""

from __future__ import annotations

import abc
import typing as t

from .._core.errors import MusterError
from .api import Api
from .errors import CallRefused
from .plan import GONE, Body, Plan, State, Step


class Resource(abc.ABC):
    """One resource as it is wanted. Only what takes an ``Api`` asks AWS; the rest is pure.

    All of them are dataclasses with the fields ``tags`` and ``purge_tags``.
    """

    IDENTITY: t.ClassVar[tuple[str, ...]] = ()
    """Keys of what is there that no second one of the same name would have alike. The first is its ARN, which has the account in it."""
    data_option: t.ClassVar[str] = ""
    """The option, with its value, by which a user allows the data in it to be deleted as well."""

    @property
    @abc.abstractmethod
    def label(self) -> str:
        """What it is, for messages: ``EKS cluster x``."""

    @property
    def delete_data(self) -> bool:
        """Whether the user allowed it."""
        return False

    @abc.abstractmethod
    def read(self, api: Api) -> Body | None:
        """It as AWS describes it now; None where it does not exist."""

    @abc.abstractmethod
    def state(self, live: Body | None) -> State:
        """How far it is."""

    @abc.abstractmethod
    def plan(self, live: Body | None) -> Plan:
        """How to make it as it is wanted."""

    @abc.abstractmethod
    def plan_absent(self, live: Body | None) -> Plan:
        """How to delete it, whoever's it is: that it may be is decided before, in ``converge``."""

    def update_request(self, update: str) -> Body:
        """The request that asks how far an update is."""
        raise AssertionError(f"nothing here has updates to wait for, and {update} is none")

    def data_at_risk(self, api: Api, live: Body) -> str:  # noqa: ARG002  # most kinds hold none
        """What would be lost for good with it, as a clause; empty for nothing."""
        return ""

    def used_by(self, live: Body) -> str:  # noqa: ARG002
        """Who else it belongs to, as a clause; empty for nobody."""
        return ""

    def explain(self, refused: CallRefused) -> MusterError:
        """A refusal in better words, where this kind knows some."""
        return refused

    def examine(self, step: Step, answer: Body) -> None:  # noqa: B027  # most answers are what they seem
        """Raise where an answer that AWS calls a success is none."""

    def identity(self, live: Body) -> tuple[t.Any, ...]:
        return tuple(live.get(key) for key in self.IDENTITY)

    def account_of(self, live: Body) -> str:
        """The account in its ARN; empty where the ARN has none."""
        arn = str(live.get(self.IDENTITY[0], "")) if self.IDENTITY else ""
        return arn.split(":")[4] if arn.count(":") >= 5 else ""


class Immediate(Resource):
    """What is there as soon as AWS has answered."""

    def state(self, live: Body | None) -> State:
        return State(stable=True, seen="there") if live else GONE

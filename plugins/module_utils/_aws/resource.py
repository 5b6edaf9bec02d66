# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What every kind of resource implements, and what most kinds have in common.

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
    """One desired resource. Only methods with an ``Api`` send requests; the rest is pure.

    All of them are dataclasses with the fields ``tags`` and ``purge_tags``.
    """

    IDENTITY: t.ClassVar[tuple[str, ...]] = ()
    """Keys by which two live resources of the same name differ. The first is the ARN, which contains the account."""
    data_option: t.ClassVar[str] = ""
    """The option, with its value, that allows deleting its data."""

    @property
    @abc.abstractmethod
    def label(self) -> str:
        """The name for messages: ``EKS cluster x``."""

    @property
    def delete_data(self) -> bool:
        """Whether the user allowed deleting its data."""
        return False

    @abc.abstractmethod
    def read(self, api: Api) -> Body | None:
        """The live resource as AWS describes it; None if it does not exist."""

    @abc.abstractmethod
    def state(self, live: Body | None) -> State:
        """The state of the live resource."""

    @abc.abstractmethod
    def plan(self, live: Body | None) -> Plan:
        """The steps from the live to the desired resource."""

    @abc.abstractmethod
    def plan_absent(self, live: Body | None) -> Plan:
        """The steps that delete it; ``converge`` has decided before that it may be."""

    def update_request(self, update: str) -> Body:
        """The request for the status of an update."""
        raise AssertionError(f"this kind has no updates to wait for, such as {update}")

    def data_at_risk(self, api: Api, live: Body) -> str:  # noqa: ARG002  # most kinds hold none
        """What would be lost for ever with it, as a clause; empty for nothing."""
        return ""

    def used_by(self, live: Body) -> str:  # noqa: ARG002
        """Who else it belongs to, as a clause; empty for nobody."""
        return ""

    def explain(self, refused: CallRefused) -> MusterError:
        """The refusal, with a better explanation if this kind has one."""
        return refused

    def examine(self, step: Step, answer: Body) -> None:  # noqa: B027  # most answers need no look
        """Raise if an answer that AWS calls a success is none."""

    def identity(self, live: Body) -> tuple[t.Any, ...]:
        return tuple(live.get(key) for key in self.IDENTITY)

    def account_of(self, live: Body) -> str:
        """The account in its ARN; empty if the ARN has none."""
        arn = str(live.get(self.IDENTITY[0], "")) if self.IDENTITY else ""
        return arn.split(":")[4] if arn.count(":") >= 5 else ""


class Immediate(Resource):
    """A resource that is ready as soon as AWS has answered."""

    def state(self, live: Body | None) -> State:
        return State(stable=True, seen="there") if live else GONE

# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface that every kind of resource implements, in any cloud, for the one loop of ``converge``."""

from __future__ import annotations

import abc
import typing as t

from .._core.clock import Clock
from .._core.errors import MusterError
from .errors import CallRefused
from .plan import Body, CloudStep, Plan, State, deletion_plan, mark_text


class CloudApi(t.Protocol):
    """The parts of a cloud's API that the loop needs: a clock, the retry timeout, and one way to send a step."""

    @property
    def clock(self) -> Clock: ...

    @property
    def retry_timeout(self) -> float: ...

    def write(self, label: str, step: t.Any) -> Body: ...


A = t.TypeVar("A", bound=CloudApi)


class CloudResource(abc.ABC, t.Generic[A]):
    """One desired resource. Only methods with a ``CloudApi`` send requests; the rest is pure."""

    CLOUD: t.ClassVar[str]
    """The name of the cloud in messages."""
    MARK: t.ClassVar[str]
    """The term for an owner's mark in messages: a tag, a label."""
    BUSY: t.ClassVar[tuple[str, str]] = ("is still in use", "Delete what uses it, or run again later")
    """The cause of a refusal that passes (see ``passes``), for messages; and the hint if it does not pass."""
    LABEL: t.ClassVar[str] = ""
    """The name for messages, with fields in braces: ``EKS cluster {name}``."""
    IDENTITY: t.ClassVar[tuple[str, ...]] = ()
    """Keys by which two live resources of the same name differ."""

    @property
    def label(self) -> str:
        """The name for messages: ``EKS cluster x``."""
        return self.LABEL.format_map(vars(self))

    @property
    def delete_data(self) -> bool:
        """Whether the user allowed deleting its data."""
        return False

    @abc.abstractmethod
    def read(self, api: A) -> Body | None:
        """The live resource as the cloud describes it; None if it does not exist."""

    @abc.abstractmethod
    def state(self, live: Body | None) -> State:
        """The state of the live resource."""

    @abc.abstractmethod
    def plan(self, live: Body | None) -> Plan:
        """The steps from the live to the desired resource."""

    def plan_absent(self, live: Body | None) -> Plan:
        """The steps that delete it; ``converge`` has decided before that it may be."""
        steps = [] if live is None or self.going(live) else self.deletions(live)
        return deletion_plan({key: value for key, value in (live or {}).items() if not key.startswith("_")}, *steps) if steps else Plan()

    def going(self, live: Body) -> bool:  # noqa: ARG002  # most kinds are gone at once
        """Whether it is being deleted already."""
        return False

    def deletions(self, live: Body) -> t.Sequence[CloudStep]:  # noqa: ARG002
        """The steps of its deletion; none for a kind that stays."""
        return ()

    @abc.abstractmethod
    def marks(self, live: Body) -> dict[str, str]:
        """The tags or labels that it has, among which is its owner's."""

    @abc.abstractmethod
    def under_way(self, api: A, step: CloudStep, answer: Body) -> str | None:
        """The operation that a step with this answer started and that still runs, as a clause, or None. Raises if it failed."""

    def taking_over(self, mark: str, theirs: dict[str, str]) -> str:
        """The instruction to make it a resource of this owner; ``theirs`` is the mark of another one."""
        away = f"take {mark_text(theirs)} away and " if theirs else ""
        return f"{away}run with adopt: true, or give it the {self.MARK} {mark}"

    def recorded(self, api: A, live: Body) -> bool:  # noqa: ARG002  # most clouds only show what is in the account
        """Whether it is in the account or project of the caller, so that its mark is no copy."""
        return True

    def data_at_risk(self, api: A, live: Body) -> str:  # noqa: ARG002  # most kinds hold none
        """The data that its deletion would destroy, as a clause; empty if there is none."""
        return ""

    def used_by(self, live: Body) -> str:  # noqa: ARG002
        """The other owner of the resource as a clause, or nothing."""
        return ""

    def passes(self, refused: CallRefused) -> bool:  # noqa: ARG002
        """Whether the same step will be accepted once something else has ended."""
        return False

    def busy(self, refused: CallRefused) -> str:
        """The obstacle that a refusal names, if the refusal passes."""
        return str(refused)

    def explain(self, refused: CallRefused) -> MusterError:
        """The refusal, with a better explanation if this kind has one."""
        return refused

    def advice(self, codes: t.Collection[str]) -> str | None:  # noqa: ARG002
        """The next step after a state that the resource will not leave by itself, or after a failed update; None for the usual hint."""
        return None

    def examine(self, step: CloudStep, answer: Body) -> None:  # most answers need no look
        """Raise if an answer that the cloud calls a success is none."""

    def identity(self, live: Body) -> tuple[t.Any, ...]:
        return tuple(live.get(key) for key in self.IDENTITY)

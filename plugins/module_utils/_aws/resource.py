# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The base of all AWS resources: marked by tags, in the account that their ARN names, with updates that EKS records."""

from __future__ import annotations

import abc
import dataclasses
import typing as t

from .._cloud import resource as cloud
from .._cloud.errors import CallRefused
from .._cloud.plan import GONE, Body, CloudStep, Comparison, State, camel
from .._core.errors import Failed
from .api import BUSY, IN_USE, Api
from .plan import EKS_TAGS, Step, Tagging, changed_tags, live_tags
from .state import reason


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resource(cloud.CloudResource[Api]):
    """The first key of IDENTITY is the ARN, with the account."""

    CLOUD = "AWS"
    MARK = "tag"
    TAGGING: t.ClassVar[Tagging] = EKS_TAGS
    tags: dict[str, str] | None = None
    """None keeps those that it has."""
    purge_tags: bool = True

    @property
    def desired_tags(self) -> dict[str, str] | None:
        """The tags that it is to have; None keeps those that it has."""
        return self.tags

    def requested(self, *names: str) -> Body:
        """The fields of these names by the names of the API, without those that are None or empty."""
        return {camel(name): value for name in names if (value := getattr(self, name)) not in (None, [], {})}

    def changes(self, compare: Comparison, live: Body, *names: str) -> Body:
        """The fields of these names that differ from the live ones, by the names of the API."""
        asked = {name: getattr(self, name) for name in names}
        return {camel(name): value for name, value in asked.items() if compare.differs(name, live.get(camel(name)), value)}

    def tag_steps(self, compare: Comparison, live: Body, **named: t.Any) -> list[Step]:
        """The steps that change its tags; NAMED is the resource in the requests."""
        change = changed_tags(compare, live_tags(live), self.desired_tags, purge=self.purge_tags)
        return self.TAGGING.steps(change, named)

    def marks(self, live: Body) -> dict[str, str]:
        return live_tags(live)

    def under_way(self, api: Api, step: CloudStep, answer: Body) -> str | None:  # noqa: ARG002  # most changes show in its state
        return None

    def passes(self, refused: CallRefused) -> bool:
        return refused.code in IN_USE

    def recorded(self, api: Api, live: Body) -> bool:
        return self.account_of(live) in ("", api.caller().account)

    def account_of(self, live: Body) -> str:
        """The account in its ARN; empty if the ARN has none."""
        arn = str(live.get(self.IDENTITY[0], "")) if self.IDENTITY else ""
        return arn.split(":")[4] if arn.count(":") >= 5 else ""


class Updated(Resource):
    """An EKS cluster or a part of one. EKS makes one change at a time, and keeps a record of each, its update."""

    BUSY = ("is busy with another change", "Wait until that has ended, or run again later")

    @abc.abstractmethod
    def update_request(self, update: str) -> Body:
        """The request for the status of an update."""

    def under_way(self, api: Api, step: CloudStep, answer: Body) -> str | None:
        """The update that the step started."""
        if step.wait != "update":
            return None
        update = answer["update"]["id"]
        found = api.read(self.label, "eks", "describe_update", **self.update_request(update)) or {}
        record = found.get("update", {})
        if record.get("status") in ("Failed", "Cancelled"):
            reasons = "; ".join(reason(issue) for issue in record.get("errors", [])) or "AWS gave no reason"
            raise Failed(
                f"{self.label}: {step.says} ended as {record['status']}: {reasons}", self.advice(reasons), details={"update": update}
            )
        return None if record.get("status") == "Successful" else f"update {update} is {record.get('status')}"

    def passes(self, refused: CallRefused) -> bool:
        return refused.code == "ResourceInUseException" and bool(BUSY.search(refused.message))


class Immediate(Resource):
    """A resource that is ready as soon as AWS has answered."""

    def state(self, live: Body | None) -> State:
        return State(stable=True, seen="there") if live else GONE

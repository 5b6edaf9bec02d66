# SPDX-License-Identifier: GPL-3.0-or-later
"""Static addresses as values, of a region or global."""

from __future__ import annotations

import dataclasses
import typing as t

from .._cloud.plan import Body, Plan
from .._core.errors import InvalidInput
from .compare import MARK, split_mark, text_with
from .links import link
from .plan import Step
from .resource import SET_LABELS, Labelled


@dataclasses.dataclass(frozen=True, kw_only=True)
class GcpAddress(Labelled):
    """A static address, without a region a global one. It gets labels only by a second request; a description is there at once, and ends
    in its owner's mark, too."""

    NOUN = "address"
    SERVICE, COLLECTION = "compute", "addresses"
    CHANGES = (SET_LABELS,)
    ONCE = frozenset({"description"})
    FREED = True
    FIXED_HINT = "Choose another name, or delete it first: the address itself will then be another one"

    region: str | None = None
    address_type: t.Literal["EXTERNAL", "INTERNAL"] = "EXTERNAL"
    network_tier: t.Literal["PREMIUM", "STANDARD"] | None = None
    subnetwork: str | None = None
    description: str | None = None

    @property
    def parent(self) -> str:
        return f"projects/{self.project}/" + (f"regions/{self.region}" if self.region else "global")

    def method(self, name: str) -> str:
        return f"{self.COLLECTION if self.region else 'globalAddresses'}.{name}"

    def validate(self) -> None:
        if not self.region and (self.address_type == "INTERNAL" or self.subnetwork or self.network_tier == "STANDARD"):
            raise InvalidInput(f"{self.label} is global, so it is external and of the tier PREMIUM", hint="Set region")

    def body(self) -> Body:
        return {
            "name": self.name,
            "addressType": self.address_type,
            "networkTier": self.network_tier,
            "subnetwork": self.subnetwork and link(self.parent, "subnetworks", self.subnetwork),
            "description": text_with("", self.description, self.owner or "") or None,
        }

    def seen(self, live: Body) -> Body:
        """The address with the defaults of fields that an answer leaves out (compute v1 discovery document, Address)."""
        return {"addressType": "EXTERNAL", "networkTier": "PREMIUM", **live}

    def marks(self, live: Body) -> dict[str, str]:
        owner = split_mark(live.get("description") or "")[1]
        return {**({MARK: owner} if owner else {}), **super().marks(live)}

    def taking_over(self, mark: str, theirs: dict[str, str]) -> str:
        """Name only the label to set: without its label another owner's mark is still in the description, which stays."""
        return f"give it the label {mark}" if theirs else super().taking_over(mark, theirs)

    def creation(self) -> Step:
        step = super().creation()
        return dataclasses.replace(step, request={key: value for key, value in step.request.items() if key != "labels"})

    def plan(self, live: Body | None) -> Plan:
        plan = super().plan(live)
        labels = self.marked({})
        if live is not None or not labels.get("labels"):
            return plan
        later = self.change_step(SET_LABELS, labels, {})
        return dataclasses.replace(plan, after={**plan.after, **labels}, later=(later,))

# SPDX-License-Identifier: GPL-3.0-or-later
"""Service accounts as values."""

from __future__ import annotations

import dataclasses
import re

from .._cloud.plan import Body
from .._core.errors import InvalidInput
from .plan import Step
from .resource import Change, Described

ACCOUNT_ID = re.compile(r"[a-z][-a-z0-9]{4,28}[a-z0-9]")
DOMAIN = "iam.gserviceaccount.com"


@dataclasses.dataclass(frozen=True, kw_only=True)
class GcpServiceAccount(Described):
    """A service account without keys. A deleted account of its name was another one: grants to that do not apply to this."""

    NOUN, LABEL = "service account", "Google service account {account_id}"
    SERVICE, COLLECTION, METHODS = "iam", "serviceAccounts", "projects.serviceAccounts"
    PARENT, CREATE = "projects/{project}", "create"
    CHANGES = (Change(("displayName", "description")),)
    IDENTITY = ("uniqueId",)

    account_id: str
    name: str = ""
    display_name: str | None = None

    @property
    def email(self) -> str:
        return f"{self.account_id}@{self.project}.{DOMAIN}"

    @property
    def path(self) -> str:
        return f"{self.parent}/{self.COLLECTION}/{self.email}"

    def validate(self) -> None:
        if not ACCOUNT_ID.fullmatch(self.account_id):
            raise InvalidInput(
                f"{self.account_id} cannot be the ID of a service account",
                hint="Google allows 6 to 30 lowercase letters, digits and hyphens, beginning with a letter",
            )

    def body(self) -> Body:
        return {"displayName": self.display_name}

    def creation(self) -> Step:
        step = super().creation()
        return dataclasses.replace(step, request={"accountId": self.account_id, "serviceAccount": step.request})

    def change_step(self, change: Change, fields: Body, live: Body) -> Step:
        step = super().change_step(change, fields, live)
        return dataclasses.replace(step, request={"serviceAccount": fields, "updateMask": ",".join(sorted(fields))})

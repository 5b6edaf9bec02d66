# SPDX-License-Identifier: GPL-3.0-or-later
"""Repositories of Artifact Registry as values."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .._cloud.plan import Body
from .api import Api
from .plan import Step
from .resource import Change, Labelled

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d+)([smhd])")


@dataclasses.dataclass(frozen=True, kw_only=True)
class GcpArtifactRepository(Labelled):
    """A repository of images or packages."""

    NOUN = "repository"
    SERVICE, COLLECTION, METHODS = "artifactregistry", "repositories", "projects.locations.repositories"
    PARENT, CREATE = "projects/{project}/locations/{location}", "create"
    CHANGES = (Change(("description", "labels", "cleanupPolicies", "cleanupPolicyDryRun"), masked=True),)
    IDENTITY = ("name", "createTime")
    HINTS: t.ClassVar = {"PERMISSION_DENIED": "Check location, such as us-central1 or europe, and that the caller may manage repositories"}

    location: str
    format: t.Literal["APT", "DOCKER", "GENERIC", "GO", "KFP", "MAVEN", "NPM", "PYTHON", "YUM"] = "DOCKER"
    description: str | None = None
    cleanup_policies: dict[str, Body] | None = None
    cleanup_policy_dry_run: bool | None = None
    delete_data: bool = False

    def body(self) -> Body:
        return {
            "format": self.format,
            "description": self.description,
            "cleanupPolicies": self._policies(),
            "cleanupPolicyDryRun": self.cleanup_policy_dry_run,
        }

    def _policies(self) -> dict[str, Body] | None:
        """The policies as Google shows them: with their names, and times in seconds."""
        if self.cleanup_policies is None:
            return None
        return {name: {**_in_seconds(policy), "id": name} for name, policy in self.cleanup_policies.items()}

    def creation(self) -> Step:
        return dataclasses.replace(super().creation(), params={"repositoryId": self.name})

    def data_at_risk(self, api: Api, live: Body) -> str:  # noqa: ARG002  # it says itself how much it holds
        held = int(live.get("sizeBytes") or 0)
        return f"holds packages ({held} bytes)" if held else ""


def _in_seconds(policy: Body) -> Body:
    """The policy with its times in the form of the API; gcloud and the documentation write 30d (terraform-provider-google, older_than)."""
    condition = policy.get("condition")
    if not isinstance(condition, dict):
        return policy
    times = {key: _DURATION.fullmatch(str(condition[key])) for key in ("olderThan", "newerThan") if key in condition}
    return {**policy, "condition": {**condition, **{key: f"{int(found[1]) * _UNITS[found[2]]}s" for key, found in times.items() if found}}}

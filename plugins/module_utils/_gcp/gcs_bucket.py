# SPDX-License-Identifier: GPL-3.0-or-later
"""Buckets of Cloud Storage as values."""

from __future__ import annotations

import dataclasses
import json
import typing as t
from urllib.parse import quote

from .._cloud import plan as cloud
from .._cloud.errors import CallRefused
from .._cloud.plan import Body
from .._core.errors import MusterError
from .._core.pool import run_all
from .api import Api
from .errors import DISABLED, NOT_EMPTY, RETAINED, Refused
from .plan import Step
from .resource import Change, Labelled

_NOT_OURS = "another project owns it (names of buckets are unique in all of Google Cloud), or the caller lacks storage.buckets.get on it"
_EMPTY = "objects.delete"
"""The step of this method deletes one object; the others are deleted while it is waited for."""
_PAGE, _PARALLEL = 500, 8
_SLICE_S = 30.0
"""Seconds for which objects are deleted until the deadline is looked at."""
CLOSED = {"uniformBucketLevelAccess": {"enabled": True}, "publicAccessPrevention": "enforced"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class GcsBucket(Labelled):
    """A bucket with access by IAM alone, which cannot be made public. PATCH merges: what is not sent stays as others set it."""

    NOUN = "bucket"
    SERVICE, COLLECTION, PARENT = "storage", "buckets", ""
    CHANGES = (Change(("storageClass", "iamConfiguration", "versioning", "lifecycle", "softDeletePolicy", "labels")),)
    IDENTITY = ("id", "timeCreated", "generation")

    location: str
    storage_class: t.Literal["STANDARD", "NEARLINE", "COLDLINE", "ARCHIVE"] | None = None
    versioning: bool | None = None
    lifecycle_rules: t.Sequence[Body] | None = None
    soft_delete_retention_seconds: int | None = None
    delete_data: bool = False

    @property
    def path(self) -> str:
        return f"b/{quote(self.name, safe='')}"

    def body(self) -> Body:
        return {
            "name": self.name,
            "location": self.location.upper(),
            "storageClass": self.storage_class,
            "iamConfiguration": CLOSED,
            "versioning": _in("enabled", self.versioning),
            "lifecycle": _in("rule", None if self.lifecycle_rules is None else list(self.lifecycle_rules)),
            "softDeletePolicy": _in("retentionDurationSeconds", self.soft_delete_retention_seconds),
        }

    def read(self, api: Api) -> Body | None:
        try:
            live = super().read(api)
        except Refused as refused:
            if refused.http == 403 and DISABLED not in refused.codes:
                return {"name": self.name, "_unknown": f"{_NOT_OURS} ({refused.said})"}
            raise
        if live and self.delete_data:
            live["_objects"] = self._objects(api, most=1)
        return live

    def _objects(self, api: Api, most: int) -> list[Body]:
        """Versions of objects, so many at most."""
        params = {"versions": "true", "fields": "items(name,generation)", "maxResults": most}
        return (api.read(self.label, "storage", f"{self.path}/o", **params) or {}).get("items") or []

    def data_at_risk(self, api: Api, live: Body) -> str:  # noqa: ARG002  # a bucket does not say how much it holds
        found = self._objects(api, most=1)
        return f"holds objects ({found[0]['name']})" if found else ""

    def under_way(self, api: Api, step: cloud.CloudStep, answer: Body) -> str | None:
        if step.operation != _EMPTY:
            return super().under_way(api, step, answer)
        end = api.clock.monotonic() + _SLICE_S
        while rows := self._objects(api, most=_PAGE):
            failures = run_all(lambda row: api.write(self.label, self._removal(row)), rows, parallel=_PARALLEL)[1]
            if failures:
                raise failures[0]
            if api.clock.monotonic() > end:
                return "it may hold more objects"
        return None

    def creation(self) -> Step:
        return dataclasses.replace(super().creation(), path="b", params={"project": self.project})

    def change_step(self, change: Change, fields: Body, live: Body) -> Step:
        """A label that is to go must be named, as what is left out of a PATCH stays."""
        step = super().change_step(change, fields, live)
        if "labels" not in fields:
            return step
        gone = dict.fromkeys(set(live.get("labels") or {}) - set(fields["labels"]))
        return dataclasses.replace(step, request={**step.request, "labels": {**fields["labels"], **gone}})

    def deletions(self, live: Body) -> list[Step]:
        return [*(dataclasses.replace(self._removal(row), wait="update") for row in live.get("_objects") or ()), self.deletion()]

    def _removal(self, row: Body) -> Step:
        path = f"{self.path}/o/{quote(row['name'], safe='')}"
        params = {"generation": row["generation"]}
        return Step(_EMPTY, {}, "delete its objects", "storage", "none", "DELETE", path, params)

    def _differs(self, key: str, live: t.Any, desired: t.Any) -> bool:
        if key == "lifecycle":
            return _rules(live) != _rules(desired)
        return super()._differs(key, live, desired)

    def explain(self, refused: CallRefused) -> MusterError:
        if not isinstance(refused, Refused):
            return refused
        if refused.cause == NOT_EMPTY:
            more = ": run again" if self.delete_data else "; objects go only with delete_data: true"
            return refused.with_hint(f"Something was put into it a moment ago{more}")
        if refused.http == 409:
            return refused.with_hint(
                "Choose another name. It belongs to another project, or to a bucket of another project that was deleted and can be restored"
            )
        if {"RETENTION_POLICY_NOT_MET", "OBJECT_UNDER_ACTIVE_HOLD"} & refused.codes or refused.cause == RETAINED:
            return refused.with_hint("Run again when the retention has run out; holds and retention are never bypassed")
        return super().explain(refused)


def _in(field: str, value: t.Any) -> Body | None:
    """The object that has the field, if there is a value."""
    return None if value is None else {field: value}


def _rules(lifecycle: Body | None) -> list[str]:
    """Rules, as every key of them counts and their order does not. Numbers may be written as text."""
    return sorted(json.dumps(_plain(rule), sort_keys=True) for rule in (lifecycle or {}).get("rule") or ())


def _plain(value: t.Any) -> t.Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items() if one is not None}
    if isinstance(value, list):
        return sorted((_plain(one) for one in value), key=str)
    return value if isinstance(value, bool) else str(value)

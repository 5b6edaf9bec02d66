# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of an apply or a delete: what it did, or would do."""

from __future__ import annotations

import dataclasses
import hashlib
import typing as t

from .objects import Manifest, Ref

Action = t.Literal["created", "updated", "recreated", "deleted", "unchanged", "kept"]

LONGEST = 20_000
"""Characters of one text in a diff of two states, which shows the lines that differ. Longer ones are data, not programs."""
LONGEST_OF_ONE = 400
"""Characters of one text of an object that is created or deleted: a diff shows each of its lines."""


def in_brief(value: t.Any, longest: int = LONGEST) -> t.Any:
    """VALUE with texts longer than LONGEST characters shortened for a diff, each with a hash that shows a change."""
    if isinstance(value, dict):
        return {key: in_brief(item, longest) for key, item in value.items()}
    if isinstance(value, list):
        return [in_brief(item, longest) for item in value]
    if not isinstance(value, str) or len(value) <= longest:
        return value
    digest = hashlib.sha256(value.encode()).hexdigest()[:16]
    return f"{value[:200]}... ({len(value)} characters, sha256 {digest}...)"


@dataclasses.dataclass(frozen=True)
class Change:
    """One object: what was done to it, and the fields that matter before and after (already redacted)."""

    ref: Ref
    action: Action
    reason: str = ""
    before: Manifest | None = None
    after: Manifest | None = None

    @property
    def changed(self) -> bool:
        return self.action not in ("unchanged", "kept")

    def result(self) -> dict[str, t.Any]:
        """The row under ``objects`` of a module's result."""
        found: dict[str, t.Any] = {"kind": self.ref.kind, "name": self.ref.name, "namespace": self.ref.namespace, "action": self.action}
        return {**found, "reason": self.reason} if self.reason else found

    def diff(self) -> dict[str, t.Any]:
        """The entry of this object in the form that Ansible prints with --diff."""
        longest = LONGEST_OF_ONE if self.before is None or self.after is None else LONGEST
        return {
            "before_header": str(self.ref) if self.before is not None else f"{self.ref} (absent)",
            "after_header": str(self.ref) if self.after is not None else f"{self.ref} (absent)",
            "before": in_brief(self.before, longest) if self.before is not None else "",
            "after": in_brief(self.after, longest) if self.after is not None else "",
        }


@dataclasses.dataclass
class Report:
    """The changes of one call. ``objects`` has the objects as they are now, for callers that read their status."""

    changes: list[Change] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)
    objects: dict[Ref, Manifest] = dataclasses.field(default_factory=dict)

    @property
    def changed(self) -> bool:
        return any(change.changed for change in self.changes)

    @property
    def kept(self) -> list[Change]:
        """Objects that were to be deleted and are kept, because they hold data."""
        return [change for change in self.changes if change.action == "kept"]

    def diff(self) -> list[dict[str, t.Any]]:
        """One entry per changed object, in the form that Ansible prints with --diff."""
        return [change.diff() for change in self.changes if change.changed]

    def merge(self, other: Report) -> Report:
        """Add the changes of a later step."""
        self.changes.extend(other.changes)
        self.warnings.extend(other.warnings)
        self.objects.update(other.objects)
        return self

    def result(self, *, diff: bool) -> dict[str, t.Any]:
        """The keys that every module returns (warnings go through the edge's own channel)."""
        found: dict[str, t.Any] = {"changed": self.changed, "objects": [change.result() for change in self.changes]}
        return {**found, "diff": self.diff()} if diff else found

# SPDX-License-Identifier: GPL-3.0-or-later
"""Upload and serve a model, or remove it."""

from __future__ import annotations

import dataclasses
import typing as t

from ..._core.errors import InvalidInput
from ..._kube.report import Report
from .model import Store, after, all_serve, carry_out, remove
from .model_config import FILE
from .model_plan import ModelPlan, Stored, difference, plan
from .model_rollout import Rollout, served
from .model_source import Source


@dataclasses.dataclass(frozen=True)
class Wanted:
    """A model, the folder that is uploaded, if any, and the versions to serve."""

    model: str
    source: Source | None
    versions: list[int]
    purge: bool

    def plan(self, stored: Stored) -> ModelPlan:
        return plan(self.model, self.source, stored, self.versions, purge=self.purge)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result: uploaded and deleted files, the served versions, in all and by pod, and the difference as text."""

    report: Report
    changed: bool
    uploaded: list[str] = dataclasses.field(default_factory=list)
    deleted: list[str] = dataclasses.field(default_factory=list)
    versions: list[int] = dataclasses.field(default_factory=list)
    replicas: dict[str, list[int]] = dataclasses.field(default_factory=dict)
    difference: dict[str, t.Any] = dataclasses.field(default_factory=dict)


def present(store: Store, rollout: Rollout, wanted: Wanted, *, check: bool) -> Outcome:
    """Upload the versions that the repository lacks, and have every replica serve them."""
    stored, indexes = store.read(), rollout.indexes()
    made = wanted.plan(stored)
    replicas = {pod: served(index) for pod, index in indexes.items()}
    report, steady = Report(), all_serve(indexes, made.versions, rollout.server.replicas if rollout.server else 0)
    if check:
        report = store.note(after(stored, made, wanted.source), check=True)
    elif made.changes or not steady:
        stored = store.verify()
        made = wanted.plan(stored)
        report, replicas = carry_out(store, rollout, made, stored, wanted.source)
    return _planned(made, stored, wanted, report, replicas, steady=steady)


def planned(wanted: Wanted) -> Outcome:
    """Plan the upload to a repository that does not exist yet."""
    return _planned(wanted.plan(Stored()), Stored(), wanted, Report(), {}, steady=False)


def _planned(made: ModelPlan, stored: Stored, wanted: Wanted, report: Report, replicas: dict[str, list[int]], *, steady: bool) -> Outcome:
    return Outcome(
        report=report,
        changed=bool(made.changes or not steady),
        uploaded=made.upload,
        deleted=made.delete,
        versions=made.versions,
        replicas=replicas,
        difference=difference(stored, made, wanted.source) if made.changes else {},
    )


def absent(store: Store, rollout: Rollout, wanted: Wanted, *, delete_data: bool, check: bool) -> Outcome:
    """Unload the model, and delete its files if DELETE_DATA is set."""
    server = rollout.server
    stored, indexes = store.read(), rollout.indexes()
    loaded = {pod: served(index) for pod, index in indexes.items()}
    if delete_data and not check:
        stored = store.verify() if stored.files or stored.config or any(loaded.values()) else stored
    if server and wanted.model in server.load_models and stored.config:
        raise InvalidInput(
            f"{server.ref} loads model {wanted.model} when it starts (load_models), and would not start without it.",
            "Take it out of load_models first.",
            ref=server.ref,
        )
    if server and server.starts_with(wanted.model) and stored.config and not delete_data:
        raise InvalidInput(
            f"A replica of {server.ref} that starts would load model {wanted.model} again, because the repository has it.",
            "Set delete_data: true to delete its files, too.",
            ref=server.ref,
        )
    deleted = sorted([*stored.files, *([FILE] if stored.config else [])]) if delete_data else []
    changed = bool(deleted or any(loaded.values()))
    report = remove(store, rollout, stored, delete_data=delete_data) if changed and not check else Report()
    replicas = loaded if check else {pod: [] for pod in loaded}
    return Outcome(report=report, changed=changed, deleted=deleted, replicas=replicas)

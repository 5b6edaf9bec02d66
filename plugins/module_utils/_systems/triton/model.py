# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out a plan for a model: its files first, then the replicas, and its configuration in the store last.

Until then a replica that starts serves what was served before; from then on, the new versions.

Upload and serve a model, or remove it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t
from collections.abc import Iterable, Mapping

from ..._core.errors import InvalidInput, MusterError, WaitTimeout
from ..._kube.report import Report
from .model_config import FILE
from .model_plan import ModelPlan, Stored, difference, plan
from .model_rollout import Index, Rollout, served
from .model_source import Source

if t.TYPE_CHECKING:
    from .model_objects import BucketStore
    from .model_volume import VolumeStore

Store: t.TypeAlias = "BucketStore | VolumeStore"
"""The model repository, for one model."""


def after(stored: Stored, made: ModelPlan, source: Source | None) -> Stored:
    """Return the state of the store after the plan was carried out."""
    files = {**stored.files, **{path: source.files[path] for path in made.upload if source}}
    kept = {path: sha256 for path, sha256 in files.items() if path not in made.delete}
    return Stored(kept, made.config.text if made.new_config else stored.config)


def carry_out(
    store: Store, rollout: Rollout, made: ModelPlan, stored: Stored, source: Source | None
) -> tuple[Report, dict[str, list[int]]]:
    """Upload, load, switch, delete. If a replica refuses a version, the former state of store and replicas is restored."""
    known = rollout.indexes()
    stored = _pinned(store, made, stored)
    if made.upload and source:
        store.put(source, made.upload)
    try:
        if rollout.explicit and made.new_config:
            rollout.load(made.config.json, back=stored.config is not None)
        if made.new_config:
            store.put_config(made.config.text)
        replicas = rollout.wait_served(made.versions, known)
    except WaitTimeout:
        # The files in the store may be good: no server has refused them.
        store.note(store.verify(), check=False)
        raise
    except MusterError as error:
        _restore(store, made, stored)
        was = f"versions {', '.join(map(str, stored.served))} are served on" if stored.served else "no version was served before"
        error.message += f" The store has again what it had, and {was}."
        raise
    if made.delete:
        store.delete(made.delete)
    return store.note(after(stored, made, source), check=False), replicas


def _pinned(store: Store, made: ModelPlan, stored: Stored) -> Stored:
    """Pin the served versions in the store's configuration and return its new state: another policy would serve new versions at once."""
    config = stored.read_config
    pinned = config.serving(made.model, stored.served) if config and stored.served else None
    if not made.upload or pinned is None or pinned == config:
        return stored
    store.put_config(pinned.text)
    return dataclasses.replace(stored, config=pinned.text)


def _restore(store: Store, made: ModelPlan, stored: Stored) -> None:
    with contextlib.suppress(MusterError):  # the reason for which it is restored matters more
        if made.new_config and stored.config is not None:
            store.put_config(stored.config)
        new = [path for path in made.upload if path not in stored.files]
        store.delete([*new, *([FILE] if made.new_config and stored.config is None else [])])
        kept = {path: sha256 for path, sha256 in stored.files.items() if path not in made.upload}
        store.note(dataclasses.replace(stored, files=kept), check=False)


def remove(store: Store, rollout: Rollout, stored: Stored, *, delete_data: bool) -> Report:
    """Unload the model everywhere, then delete its files if DELETE_DATA is set."""
    if delete_data and stored.config is not None:
        store.delete([FILE])  # first, so that no replica loads it again
    if delete_data and not rollout.explicit:
        store.delete(sorted(stored.files))  # a server that polls unloads a model only when its folder is gone
    if rollout.server:
        rollout.unload()
    if not delete_data:
        return Report()
    if rollout.explicit:
        store.delete(sorted(stored.files))
    return store.note(Stored(), check=False)


def all_serve(indexes: Mapping[str, Index], versions: Iterable[int], replicas: int) -> bool:
    """Whether every replica serves exactly VERSIONS."""
    wanted = sorted(versions)
    return len(indexes) >= replicas and all(served(index) == wanted for index in indexes.values())


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

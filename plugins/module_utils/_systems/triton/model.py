# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out a plan for a model: its files first, then the replicas, and its configuration in the store last.

Until then a replica that starts serves what was served before; from then on, the new versions.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t
from collections.abc import Iterable, Mapping

from ..._core.errors import MusterError, WaitTimeout
from ..._kube.report import Report
from .model_config import FILE
from .model_plan import ModelPlan, Stored
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

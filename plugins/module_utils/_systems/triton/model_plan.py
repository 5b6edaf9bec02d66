# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan for a model's folder in the store: the files to upload and to delete, by content, without changes to served versions."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Mapping, Sequence

from ..._core.errors import InvalidInput, NotFound
from .model_config import FILE, ModelConfig, parsed
from .model_source import Source, version_of, versions_of


@dataclasses.dataclass(frozen=True)
class Stored:
    """A model in the store. ``files``: path -> SHA-256, empty if it is not known; ``config``: the text of its configuration."""

    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    config: str | None = None

    @property
    def read_config(self) -> ModelConfig | None:
        """The parsed configuration; None if there is none that can be read."""
        try:
            return parsed(self.config, f"{FILE} of the store") if self.config else None
        except InvalidInput:
            return None

    @property
    def served(self) -> list[int]:
        """The versions that a server which starts now would serve."""
        config = self.read_config
        return config.chosen(versions_of(self.files)) if config else []


@dataclasses.dataclass(frozen=True)
class ModelPlan:
    """``upload``: files that the store lacks; ``delete``: files that are no longer needed; ``config``: the desired configuration."""

    model: str
    config: ModelConfig
    versions: list[int]
    upload: list[str]
    delete: list[str]
    new_config: bool

    @property
    def changes(self) -> bool:
        return bool(self.upload or self.delete or self.new_config)


def plan(model: str, source: Source | None, stored: Stored, versions: Sequence[int], *, purge: bool) -> ModelPlan:
    """Plan the changes. VERSIONS: those to serve; empty for those of the source that its configuration serves."""
    of_source = source.files if source else {}
    base = source.config if source else stored.read_config
    if base is None:
        raise NotFound(f"The store has no model {model} whose versions could be chosen.", "Give src, the folder of the model.")
    after = {**stored.files, **of_source}
    wanted = sorted(set(versions)) or base.chosen(versions_of(of_source or stored.files))
    missing = [version for version in wanted if version not in versions_of(after)]
    if missing or not wanted:
        have = ", ".join(map(str, versions_of(after))) or "none"
        what = f"version {missing[0]} of model {model} is neither in src nor in the store" if missing else f"model {model} has no version"
        raise InvalidInput(f"versions: {what}.", f"There are: {have}.")
    upload = [path for path, sha256 in of_source.items() if stored.files.get(path) != sha256]
    for path in upload:
        _refuse_change(model, path, stored)
    config = base.serving(model, wanted)
    unwanted = {*versions_of(stored.files)} - {*versions_of(of_source), *wanted}
    delete = [path for path in stored.files if purge and version_of(path) in unwanted]
    return ModelPlan(model, config, wanted, sorted(upload), sorted(delete), stored.read_config != config)


def _refuse_change(model: str, path: str, stored: Stored) -> None:
    """Refuse a change of files that a served version uses: a replica that starts later would have other weights than the others."""
    if path not in stored.files or not stored.served:
        return
    version = version_of(path)
    if version is None:
        raise InvalidInput(
            f"src: {path} of model {model} differs from the one in the store, which the served versions read.",
            f"Give the new file another name, and name that in {FILE}.",
        )
    if version in stored.served:
        raise InvalidInput(
            f"src: {path} of model {model} differs from the one in the store, and version {version} is served.",
            f"Give what is new another number, such as {max(versions_of(stored.files)) + 1}.",
        )


def difference(stored: Stored, made: ModelPlan, source: Source | None) -> dict[str, t.Any]:
    """The state before and after, as Ansible shows it with --diff."""
    before = dict(stored.files)
    after = {path: sha256 for path, sha256 in {**before, **(source.files if source else {})}.items() if path not in made.delete}
    return {"before": _listed(before, stored.config), "after": _listed(after, made.config.text if made.new_config else stored.config)}


def _listed(files: Mapping[str, str], config: str | None) -> str:
    rows = [f"{path} sha256:{sha256[:16] or 'unknown'}" for path, sha256 in sorted(files.items())]
    return "\n".join([*rows, *([f"{FILE}:", config.rstrip()] if config else []), ""]) if rows or config else ""

# SPDX-License-Identifier: GPL-3.0-or-later
"""The model repository of a Triton server and its model control mode: checked options, and flags of tritonserver."""

from __future__ import annotations

import dataclasses
import posixpath
import re
import typing as t
from collections.abc import Sequence

from ..._core.errors import InvalidInput
from ..._manifests.meta import Manifest, check_count
from ..._manifests.storage import Storage

Mode = t.Literal["none", "poll", "explicit"]
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")

_BUCKET = re.compile(r"(?:s3://(?:https?://[^/\s]+/|[^/\s:]+:\d+/)?|gs://)[^/\s:]+(?:/[^\s]*)?")
_MODEL = re.compile(r"[^/\s]+")
_FORMS = "It is s3://BUCKET/FOLDER, s3://http://HOST:PORT/BUCKET/FOLDER, gs://BUCKET/FOLDER, or a folder of option storage."
OWN_FLAGS = {
    "model-repository": "model_repository",
    "model-store": "model_repository",
    "model-control-mode": "model_control_mode",
    "load-model": "load_models",
    "repository-poll-secs": "repository_poll_interval",
    "strict-readiness": "strict_readiness",
    "exit-timeout-secs": "exit_timeout",
    "allow-gpu-metrics": "resources",
    "http-port": "",
    "grpc-port": "",
    "metrics-port": "",
}
"""Flags that the module sets, with their options."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Repository:
    """A folder of models in a bucket or on a volume."""

    model_repository: str
    storage: Storage | None = None
    credentials_secret: str | None = None
    model_control_mode: Mode = "none"
    load_models: Sequence[str] = ()
    repository_poll_interval: int = 15

    @property
    def warnings(self) -> list[str]:
        """The warnings for the user."""
        if self.model_control_mode != "poll" or self.storage:
            return []
        lost = f"when {self.model_repository} does not answer, Triton unloads its models until it does"
        return [f"model_control_mode poll: {lost} (seen with 2.51.0). With explicit it serves on."]


def checked_repository(repository: Repository) -> Repository:
    """REPOSITORY, if a server can start with it."""
    _check_place(repository)
    mode, models = repository.model_control_mode, list(repository.load_models)
    check_count(repository.repository_poll_interval, "repository_poll_interval", minimum=1)
    if models and mode != "explicit":
        raise InvalidInput(
            f"load_models: with model_control_mode '{mode}' the server loads every model of its repository.",
            "Set model_control_mode to explicit, or leave load_models out.",
        )
    for model in models:
        if not _MODEL.fullmatch(model):
            raise InvalidInput(f"load_models: '{model}' is not a name of a model.", "It is the name of its folder.")
        if models.count(model) > 1:
            raise InvalidInput(f"load_models: '{model}' is there twice.")
    if "*" in models and len(models) > 1:
        raise InvalidInput("load_models: '*' means all models, so there can be no other name beside it.")
    return repository


def _check_place(repository: Repository) -> None:
    place, storage = repository.model_repository, repository.storage
    if not place.startswith("/"):
        if not _BUCKET.fullmatch(place):
            raise InvalidInput(f"model_repository: '{place}' is not a place for models.", _FORMS)
        if storage:
            raise InvalidInput(
                f"storage: the models are in {place}, so no server would read the volume.",
                "Leave storage out, or let model_repository be a folder of it.",
            )
        if repository.credentials_secret and not place.startswith("s3://"):
            raise InvalidInput(
                "credentials_secret: keys of an S3 store are of no use for Google Cloud Storage.", "Use service_account_annotations."
            )
        return
    if storage is None:
        raise InvalidInput(f"model_repository: {place} is a folder, but there is no volume.", "Give option storage.")
    below = posixpath.normpath(place)
    if not storage.mount_path.startswith("/"):
        raise InvalidInput(f"storage.mount_path: {storage.mount_path} must begin with '/'.")
    if posixpath.commonpath([below, posixpath.normpath(storage.mount_path)]) != posixpath.normpath(storage.mount_path):
        raise InvalidInput(f"model_repository: {place} is not below storage.mount_path, {storage.mount_path}.", _FORMS)
    if repository.credentials_secret:
        raise InvalidInput("credentials_secret: a volume needs no keys.", "Leave it out.")


def arguments(repository: Repository) -> list[str]:
    """The flags of tritonserver for the models."""
    flags = [f"--model-repository={repository.model_repository}", f"--model-control-mode={repository.model_control_mode}"]
    flags += [f"--load-model={model}" for model in repository.load_models]
    if repository.model_control_mode == "poll":
        flags.append(f"--repository-poll-secs={repository.repository_poll_interval}")
    return flags


def credentials(repository: Repository) -> list[Manifest]:
    """The variables that clients of S3 read, out of the Secret."""
    secret = repository.credentials_secret
    return [{"name": key, "value_from": {"secretKeyRef": {"name": secret, "key": key}}} for key in (KEYS if secret else ())]

# SPDX-License-Identifier: GPL-3.0-or-later
"""A training whose pods are equal and run a program of the user: the options that all of these have, and the objects around the pods."""

from __future__ import annotations

import dataclasses
import functools
import json
import typing as t
from collections.abc import Mapping, Sequence

from .devices import claim_templates
from .meta import ANNOTATION_SPEC_PARTS, LABEL_GROUP, LABEL_ROLE, Manifest, check_count, chosen, metadata, queued, spec_hash
from .network_policy import own_pods
from .pods import PodSettings
from .shared import File, check_files
from .storage import Storage, storage_claim


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProgramTraining:
    """The options of such a training."""

    app: t.ClassVar[str]
    """Value of the label app.kubernetes.io/name, and end of the names of its objects."""
    label: t.ClassVar[str]
    """The label of every object and pod, whose value is the training's name."""
    group: t.ClassVar[str]
    """The name of the group of pods."""
    changeable: t.ClassVar[frozenset[str]] = frozenset(("network_policy", "network_policy_from"))
    """Options that may change while it runs, or do not affect the training."""

    name: str
    namespace: str
    pod: PodSettings
    max_restarts: int = 3
    files: Mapping[str, File] = dataclasses.field(default_factory=dict)
    files_path: str = "/workspace/scripts"
    storage: Storage | None = None
    ttl_seconds_after_finished: int | None = None
    overrides: Mapping[str, t.Any] | None = None
    queue_name: str | None = None
    queue_priority_class: str | None = None
    network_policy: bool = True
    network_policy_from: Sequence[Mapping[str, t.Any]] = ()

    def __post_init__(self) -> None:
        """Refuse every option that is known not to work."""
        check_count(self.max_restarts, "max_restarts")
        if self.ttl_seconds_after_finished is not None:
            check_count(self.ttl_seconds_after_finished, "ttl_seconds_after_finished")
        check_files(self.files)

    @classmethod
    def from_params(cls, params: Mapping[str, t.Any]) -> t.Self:
        """The training that module options describe; an option that is None keeps the default."""
        names = {field.name for field in dataclasses.fields(cls)} - {"pod", "storage"}
        plain = {key: value for key, value in params.items() if key in names and value is not None}
        return cls(**plain, pod=PodSettings.from_params(params), storage=Storage.from_params(params.get("storage")))

    @functools.cached_property
    def selector(self) -> dict[str, str]:
        """The labels that select the pods."""
        return {self.label: self.name, LABEL_GROUP: self.group}

    @functools.cached_property
    def labels(self) -> dict[str, str]:
        """The labels of every object and pod."""
        more = {"app.kubernetes.io/name": self.app, "app.kubernetes.io/instance": self.name, LABEL_ROLE: self.group}
        return {**self.selector, **more}

    @functools.cached_property
    def objects_name(self) -> str:
        """The name of the ConfigMap with the record of the options, and of the NetworkPolicy."""
        return f"{self.name}-{self.app}"

    @functools.cached_property
    def parts(self) -> dict[str, str]:
        """A hash for each option that cannot change while it runs."""
        spec = {key: value for key, value in chosen(self).items() if key not in self.changeable}
        pod = spec.pop("pod")
        return {key: spec_hash(value) for key, value in {**spec, **pod}.items()}

    def metadata(self, name: str, *, in_queue: bool = False) -> Manifest:
        """The metadata of an object. IN_QUEUE: it is the workload, whose pods a queue admits."""
        described = metadata(name, self.namespace, self.labels)
        return queued(described, self.queue_name, self.queue_priority_class) if in_queue else described

    def shared_objects(self, config: Manifest) -> list[Manifest]:
        """The objects beside the workload: the ConfigMap CONFIG with the record of the options, storage, the NetworkPolicy."""
        # The record must outlive the workload.
        notes = {ANNOTATION_SPEC_PARTS: json.dumps(self.parts, sort_keys=True)}
        recorded = {**config, "metadata": {**config["metadata"], "annotations": notes}}
        objects = [recorded, *storage_claim(self.storage, self.namespace, self.labels)]
        if self.pod.resource_claims:
            objects += claim_templates(self.pod.resource_claims, self.metadata(self.name))
        if self.network_policy:
            metadata = self.metadata(self.objects_name)
            objects.append(own_pods(metadata, self.selector, self.network_policy_from))
        return objects

    @property
    def run_dir(self) -> dict[str, str]:
        """The variable with the folder of the storage that is the training's own."""
        return {"MUSTER_RUN_DIR": f"{self.storage.mount_path}/{self.name}"} if self.storage else {}

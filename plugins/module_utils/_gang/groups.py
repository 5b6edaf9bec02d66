# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The groups of pods that must run at once: given, or read from the objects that make them. No I/O.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import functools
import typing as t
from collections.abc import Callable, Iterable, Mapping, Sequence

from .._core.errors import InvalidInput
from .._kube.objects import CLAIM, GroupKind, Manifest, group_kind, labels_of
from .._kube.order import BUILT_IN_GROUPS
from .._manifests.meta import LABEL_QUEUE
from .amounts import Amounts, taken

_WITHOUT_PODS = (*BUILT_IN_GROUPS, "monitoring.coreos.com", "monitoring.googleapis.com")
_MADE_LATER: tuple[GroupKind, ...] = (("batch", "CronJob"), ("apps", "DaemonSet"))
"""Built-in kinds whose pods are not those of a gang."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Group:
    """Pods that are alike."""

    name: str
    replicas: int
    namespace: str
    spec: Mapping[str, t.Any]
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    claims: Sequence[Manifest] = ()
    """Templates of the claims that each pod gets for itself."""
    owner: str = ""
    queue: str = ""
    """The queue of Kueue that decides when the pods may begin."""
    there: int = 0
    """Pods of the group that have a node already, beside REPLICAS others."""

    @functools.cached_property
    def takes(self) -> Amounts:
        """What one pod takes of its node."""
        return taken(self.spec)

    def claims_of(self, template: Manifest) -> list[str]:
        """Names of the claims that the pods get by one of the templates."""
        return [f"{template['metadata']['name']}-{self.owner}-{number}" for number in range(self.replicas)]


def of_pod(pod: Manifest) -> Group:
    """A pod that is there, as a group of its own."""
    return Group(name=pod["metadata"]["name"], replicas=1, namespace=pod["metadata"]["namespace"], spec=pod["spec"])


def given(rows: Iterable[Mapping[str, t.Any]], namespace: str) -> list[Group]:
    """The groups that somebody lists, each with name, replicas and template."""
    return [
        _group(row["name"], int(row["replicas"]), row["template"], namespace, labels_of(dict(row["template"])))
        for row in rows
    ]


def read(objects: Iterable[Manifest], namespace: str) -> tuple[list[Group], list[str]]:
    """The groups that objects make, and the kinds of objects of which nobody here knows what pods they make."""
    groups: list[Group] = []
    unknown: list[str] = []
    for item in objects:
        found = group_kind(item)
        maker = _MAKERS.get(found)
        if maker:
            groups += maker(item, item["metadata"].get("namespace") or namespace)
        elif found[0] not in _WITHOUT_PODS or found in _MADE_LATER:
            unknown.append(f"{found[1]} {item['metadata']['name']}")
    return groups, unknown


def claims_among(objects: Iterable[Manifest]) -> dict[str, Manifest]:
    """The claims that the same run makes, by name."""
    return {item["metadata"]["name"]: item for item in objects if group_kind(item) == CLAIM}


def _group(
    name: str, replicas: int, template: Mapping[str, t.Any], namespace: str, outer: Mapping[str, str], **more: t.Any
) -> Group:
    spec = template.get("spec") or {}
    if not spec.get("containers"):
        raise InvalidInput(f"Group {name} has no containers", hint="Its template needs spec.containers.")
    if replicas < 0:
        raise InvalidInput(f"Group {name} cannot have {replicas} pods")
    labels = (template.get("metadata") or {}).get("labels") or {}
    queue = labels.get(LABEL_QUEUE) or outer.get(LABEL_QUEUE) or ""
    return Group(name=name, replicas=replicas, namespace=namespace, spec=spec, labels=labels, queue=queue, **more)


def _of_replicas(item: Manifest, namespace: str) -> list[Group]:
    spec, name = item["spec"], item["metadata"]["name"]
    replicas = 1 if spec.get("replicas") is None else int(spec["replicas"])
    claims = spec.get("volumeClaimTemplates") or ()
    return [_group(name, replicas, spec["template"], namespace, labels_of(item), claims=claims, owner=name)]


def _at_once(spec: Mapping[str, t.Any]) -> int:
    """Pods that a Job runs at the same time."""
    parallelism = 1 if spec.get("parallelism") is None else int(spec["parallelism"])
    return parallelism if spec.get("completions") is None else min(parallelism, int(spec["completions"]))


def _of_job(item: Manifest, namespace: str) -> list[Group]:
    spec = item["spec"]
    return [_group(item["metadata"]["name"], _at_once(spec), spec["template"], namespace, labels_of(item))]


def _of_pod(item: Manifest, namespace: str) -> list[Group]:
    return [_group(item["metadata"]["name"], 1, item, namespace, labels_of(item))]


def _of_pytorch_job(item: Manifest, namespace: str) -> list[Group]:
    rows = item["spec"]["pytorchReplicaSpecs"]
    name = item["metadata"]["name"]
    return [
        _group(f"{name}-{role.lower()}", int(row.get("replicas", 1)), row["template"], namespace, labels_of(item))
        for role, row in rows.items()
    ]


def _of_job_set(item: Manifest, namespace: str) -> list[Group]:
    name = item["metadata"]["name"]
    groups = []
    for row in item["spec"]["replicatedJobs"]:
        job = row["template"]["spec"]
        pods = int(row.get("replicas", 1)) * _at_once(job)
        groups.append(_group(f"{name}-{row['name']}", pods, job["template"], namespace, labels_of(item)))
    return groups


_PERSIA_SECTIONS = {
    "embeddingParameterServer": "embedding-ps",
    "embeddingWorker": "embedding-worker",
    "dataloader": "dataloader",
    "nnWorker": "nn-worker",
}


def _of_persia_job(item: Manifest, namespace: str) -> list[Group]:
    """Bare pods that PERSIA's operator makes, and a push gateway that asks for nothing. It gives them no label of Kueue's."""
    spec, name = item["spec"], item["metadata"]["name"]
    volumes = spec.get("volumes") or []

    def pods(word: str, replicas: int, container: Mapping[str, t.Any]) -> Group:
        template = {"spec": {"containers": [{**container, "name": word}], "volumes": volumes}}
        return _group(f"{name}-{word}", replicas, template, namespace, {})

    rows = [(word, spec.get(section) or {}) for section, word in _PERSIA_SECTIONS.items()]
    made = [
        pods(word, int(row["replicas"]), {"resources": row.get("resources") or {}})
        for word, row in rows
        if row.get("replicas")
    ]
    return [*made, pods("metrics-gateway", 1, {})] if spec.get("enableMetrics", True) else made


_MAKERS: dict[tuple[str, str], Callable[[Manifest, str], list[Group]]] = {
    ("", "Pod"): _of_pod,
    ("apps", "Deployment"): _of_replicas,
    ("apps", "ReplicaSet"): _of_replicas,
    ("apps", "StatefulSet"): _of_replicas,
    ("batch", "Job"): _of_job,
    ("jobset.x-k8s.io", "JobSet"): _of_job_set,
    ("kubeflow.org", "PyTorchJob"): _of_pytorch_job,
    ("persia.com", "PersiaJob"): _of_persia_job,
}

# SPDX-License-Identifier: GPL-3.0-or-later
"""One replica group of a training: StatefulSet, headless Service and, on request, a PodDisruptionBudget."""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Mapping

from .._core.errors import InvalidInput
from .devices import claim_templates
from .merge import apply_overrides
from .meta import LABEL_GROUP, LABEL_QUEUE, STATEFULSET_NAME_MAX, Manifest, check_count, check_name, check_port, compact, queued
from .pods import PodSettings, field_env, pod_template

# The StatefulSet controller sets this on each pod since Kubernetes 1.28.
POD_INDEX_FIELD = "metadata.labels['apps.kubernetes.io/pod-index']"


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingStatefulSet:
    """A group of ranks: pod <name>-<i> is rank i for as long as the group exists, on whatever node it runs."""

    name: str
    namespace: str
    replicas: int
    pod: PodSettings
    nproc_per_node: int = 1
    master_port: int = 29500
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    pod_labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    pod_annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # Labels by which the pods of this group differ from all others; the default is the name of the group.
    selector: Mapping[str, str] | None = None
    container: str | None = None
    inject_rendezvous: bool = True
    pod_disruption_budget: Mapping[str, t.Any] | None = None
    queue_name: str | None = None
    queue_priority_class: str | None = None
    overrides: Mapping[str, t.Any] | None = None

    @property
    def world_size(self) -> int:
        """Processes in the whole group."""
        return self.replicas * self.nproc_per_node

    @property
    def match_labels(self) -> dict[str, str]:
        """The labels by which Service, StatefulSet and budget select the pods."""
        return dict(self.selector or {LABEL_GROUP: self.name})

    @property
    def master_addr(self) -> str:
        """The DNS name of rank 0, valid before the pod is ready."""
        return f"{self.name}-0.{self.name}.{self.namespace}.svc"


def manifests(group: TrainingStatefulSet) -> list[Manifest]:
    """The objects of GROUP, in the order in which they are needed."""
    _check(group)
    objects = [*around(group), apply_overrides(stateful_set(group), group.overrides)]
    if group.pod_disruption_budget is not None:
        objects.append(_disruption_budget(group, group.pod_disruption_budget))
    return objects


def _check(group: TrainingStatefulSet) -> None:
    check_name(group.name, "name", limit=STATEFULSET_NAME_MAX, service=True)
    check_count(group.replicas, "replicas")
    check_count(group.nproc_per_node, "nproc_per_node", minimum=1)
    check_port(group.master_port, "master_port")


def _metadata(group: TrainingStatefulSet) -> Manifest:
    return compact({"name": group.name, "namespace": group.namespace, "labels": {**group.match_labels, **group.labels}})


def around(group: TrainingStatefulSet) -> list[Manifest]:
    """The objects that the pods need: the templates of their devices, and a Service."""
    return [*claim_templates(group.pod.resource_claims, _metadata(group)), headless_service(group)]


def headless_service(group: TrainingStatefulSet) -> Manifest:
    """The Service that gives every rank a DNS name, ready or not, because ranks must find each other to become ready."""
    spec = compact(
        {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": group.match_labels,
            "ports": [
                {
                    "name": port["name"],
                    "port": port["container_port"],
                    "targetPort": port["container_port"],
                    "protocol": port.get("protocol") or "TCP",
                }
                for port in group.pod.ports
            ],
        }
    )
    return {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(group), "spec": spec}


def rank_env(group: TrainingStatefulSet) -> list[Manifest]:
    """The variables that tell a pod its place in the group; the user's own variables of the same name win."""
    env = [field_env("REPLICA_INDEX", POD_INDEX_FIELD), {"name": "REPLICA_SIZE", "value": str(group.replicas)}]
    if group.inject_rendezvous:
        env += [
            {"name": "NPROC_PER_NODE", "value": str(group.nproc_per_node)},
            {"name": "WORLD_SIZE", "value": str(group.world_size)},
            {"name": "MASTER_ADDR", "value": group.master_addr},
            {"name": "MASTER_PORT", "value": str(group.master_port)},
        ]
    return env


def stateful_set(group: TrainingStatefulSet) -> Manifest:
    """The StatefulSet. All ranks start at once, because a rank that waits for the others must not hold back their creation."""
    described = queued(_metadata(group), group.queue_name, group.queue_priority_class)
    # The webhook for pods of role kueue sees only pods with the label of a queue.
    queue = {name: value for name, value in described["labels"].items() if name == LABEL_QUEUE}
    spec = compact(
        {
            "replicas": group.replicas,
            "serviceName": group.name,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": group.match_labels},
            "template": pod_template(
                group.pod,
                container=group.container or group.name,
                labels={**group.labels, **group.match_labels, **group.pod_labels, **queue},
                selector=group.match_labels,
                env=rank_env(group),
                annotations=group.pod_annotations,
            ),
        }
    )
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": described, "spec": spec}


def _disruption_budget(group: TrainingStatefulSet, budget: Mapping[str, t.Any]) -> Manifest:
    given = {key: value for key, value in budget.items() if value is not None}
    if len(given) != 1:
        raise InvalidInput("pod_disruption_budget: give either min_available or max_unavailable.")
    ((key, value),) = given.items()
    field = {"min_available": "minAvailable", "max_unavailable": "maxUnavailable"}[key]
    number: t.Any = int(value) if str(value).isdecimal() else str(value)
    if isinstance(number, str) and not number.rstrip("%").isdecimal():
        raise InvalidInput(f"pod_disruption_budget.{key}: '{value}' is neither a number nor a percentage.")
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(group),
        "spec": {field: number, "selector": {"matchLabels": group.match_labels}},
    }

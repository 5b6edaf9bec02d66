# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects that have metrics collected, and alerts raised, by whichever Prometheus a cluster has.

Pure: only the standard library, no Ansible, no Kubernetes client.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t
from collections.abc import Iterator, Mapping, Sequence

from .._core.errors import InvalidInput
from .meta import DEPLOYMENT, LABEL_QUEUE, LEADER_WORKER_SET, STATEFUL_SET, Manifest

MONITORS = {"PodMonitoring": "monitoring.googleapis.com/v1", "ServiceMonitor": "monitoring.coreos.com/v1"}
"""Kinds that have metrics collected, in the order in which the first that the cluster serves is taken."""
RULES = {"PodMonitoring": "Rules", "ServiceMonitor": "PrometheusRule"}
"""The kinds of the same API versions that raise alerts."""
DURATION = re.compile(r"([0-9]+(ms|[smhdwy]))+")
"""A time as in Prometheus."""
DOCTOR = "The doctor says why: ansible-playbook muster.ml.doctor -e muster_namespace={{ $labels.namespace }}"

_OF_SET = "kube_statefulset_replicas"
_WANTED = {STATEFUL_SET: _OF_SET, LEADER_WORKER_SET: _OF_SET, DEPLOYMENT: "kube_deployment_spec_replicas"}
"""The leaders of a LeaderWorkerSet are a StatefulSet of its name."""
_POD = "(-[0-9]+)?-[a-z0-9]{5}"
_JOBS = {
    ("batch/v1", "Job"): "",
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): "-[a-z]+-[0-9]+",
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): "-[a-z]+-[0-9]+",
}
_ALONE = {("kubeflow.org/v1", "PyTorchJob"): "-(master|worker)-[0-9]+", ("persia.com/v1", "PersiaJob"): "-[a-z-]+-[0-9]+"}
"""The pods of operators that make no Jobs."""
_PODS = {STATEFUL_SET: "-[0-9]+", **_ALONE, **{kind: end + _POD for kind, end in _JOBS.items()}}
_IDLE = 0.05
"""Cores of a pod that only waits: torchrun's agent polls its processes ten times a second."""


def monitor(
    kind: str,
    metadata: Manifest,
    selector: Mapping[str, str],
    *,
    port: str = "metrics",
    interval: str = "30s",
    paths: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
) -> Manifest:
    """Have the PORT of that name collected. PodMonitoring selects pods, ServiceMonitor their Service; SELECTOR: labels of both.

    PATHS: each with its parameters; without them it is /metrics.
    """
    asked = [{"path": path, "params": dict(params)} for path, params in paths.items()] if paths else [{}]
    spec = {"selector": {"matchLabels": dict(selector)}, "endpoints": [{"port": port, "interval": interval, **one} for one in asked]}
    return {"apiVersion": MONITORS[kind], "kind": kind, "metadata": metadata, "spec": spec}


def rules(kind: str, metadata: Manifest, alerts: Sequence[Manifest]) -> Manifest:
    """The alerts of a system, for the Prometheus that KIND of MONITORS belongs to.

    Each has the label workload: without it Alertmanager would take those of two trainings for one.
    """
    rules = [{**one, "labels": {**one["labels"], "workload": metadata["name"]}} for one in alerts]
    groups = [{"name": f"muster-{metadata['name']}", "rules": rules}]
    return {"apiVersion": MONITORS[kind], "kind": RULES[kind], "metadata": metadata, "spec": {"groups": groups}}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Alerts:
    """The thresholds for every system. ``after``: time that a fault must last; ``free_ratio``: the least free share of a claim."""

    after: str = "5m"
    free_ratio: float = 0.1

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("_ratio") and not 0 < value < 1:
                raise InvalidInput(f"alerts.{field.name}: {value} is not between 0 and 1.", "0.01 is one of a hundred.")
            if isinstance(value, str) and not DURATION.fullmatch(value):
                raise InvalidInput(f"alerts.{field.name}: '{value}' is not a time.", "30s, 5m and 12h are some.")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingAlerts(Alerts):
    """The thresholds for trainings.

    ``waiting``: time that pods may wait for room or in a queue; ``idle``: that they may run and compute nothing.
    """

    waiting: str = "1h"
    idle: str = "30m"


@dataclasses.dataclass(frozen=True, kw_only=True)
class RequestAlerts(Alerts):
    """The thresholds for servers of models.

    ``queue_time_ms``: mean time in the queue; ``failure_ratio``: that of the requests of one model.
    """

    queue_time_ms: float = 100.0
    failure_ratio: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.queue_time_ms <= 0:
            raise InvalidInput(f"alerts.queue_time_ms: {self.queue_time_ms} is not more than 0.")


def alert(name: str, expr: str, after: str, severity: str, summary: str, description: str) -> Manifest:
    """A rule that raises an alert. Its expression keeps the label namespace, by which the rulebook calls the doctor."""
    texts = {"summary": summary, "description": f"{description} {DOCTOR}"}
    return {"alert": name, "expr": expr, "for": after, "labels": {"severity": severity}, "annotations": texts}


def servers_alerts(alerts: Alerts, namespace: str, objects: Sequence[Manifest]) -> list[Manifest]:
    """The alerts of any servers, by the metrics of kube-state-metrics and of the kubelet."""
    found = []
    for item in objects:
        if wanted := _WANTED.get(_kind(item)):
            kind, name = wanted.split("_")[1], item["metadata"]["name"]
            of = f'{{namespace="{namespace}",{kind}="{name}"}}'
            found.append(alert("ServerDown", f"kube_{kind}_status_replicas_ready{of} < {wanted}{of}", alerts.after, "critical",
                               f"Only {{{{ $value }}}} pods of {name} are ready.", "The others serve nothing."))  # fmt: skip
    return [*found, *claims_alerts(alerts, namespace, objects)]


def training_alerts(alerts: TrainingAlerts, namespace: str, name: str, objects: Sequence[Manifest]) -> list[Manifest]:
    """The alerts of a training, whose pods and Jobs have the names that Kubernetes and operators make of those of its workloads."""
    pods, jobs, alone = (_named(objects, ends) for ends in (_PODS, _JOBS, _ALONE))
    of, of_jobs, of_alone = (f'namespace="{namespace}",{label}=~"{names}"' for label, names in
                             (("pod", pods), ("job_name", jobs), ("pod", alone)))  # fmt: skip
    # The kubelet starts it again every five minutes at last. Between two starts 1.36 does not always tell a reason to wait.
    failed = [f"increase(kube_pod_container_status_restarts_total{{{of}}}[30m]) > 3"]
    waits = [f'kube_pod_status_scheduled{{condition="true",{of}}} == 0']
    if jobs:
        failed.append(f'kube_job_failed{{condition="true",{of_jobs}}} == 1')
    if held := _named([item for item in objects if LABEL_QUEUE in item["metadata"].get("labels", ())], _JOBS):
        # A Job that a queue suspends has no time of its start; the pods of a group wait by themselves.
        created = f'kube_job_created{{namespace="{namespace}",job_name=~"{held}"}}'
        waits.append(f"({created} unless on (namespace, job_name) kube_job_status_start_time)")
    waits += [one for item in objects for one in _held(item, namespace)]
    if alone:
        failed.append(f'kube_pod_status_phase{{phase="Failed",{of_alone}}} == 1')
    # Of a pod and of its containers, where the kubelet tells both: not all of them do.
    used = f"sum by (namespace) (max by (namespace, pod) (rate(container_cpu_usage_seconds_total{{{of}}}[5m])))"
    running = f'count by (namespace) (kube_pod_status_phase{{phase="Running",{of}}} == 1)'
    return [
        alert("TrainingFailed", _any(failed), alerts.after, "critical", f"Training {name} has failed, or fails again and again.",
              "Its pods or its Job did."),
        alert("TrainingWaits", _any(waits), alerts.waiting, "warning", f"Training {name} has waited for {alerts.waiting}.",
              "Its pods are on no node, or a queue holds them back."),
        alert("TrainingIdle", f"{used} < {_IDLE} * {running}", alerts.idle, "warning",
              f"Training {name} runs and has computed nothing for {alerts.idle}.", "playbooks/stacks.yml shows where each rank waits."),
        *claims_alerts(alerts, namespace, objects),
    ]  # fmt: skip


def _held(item: Manifest, namespace: str) -> list[str]:
    """The condition that a PyTorchJob has no pods while its queue holds something. Nothing tells of the job itself (alerts.md of docs).

    Prometheus renames the label namespace of Kueue's metric, because what it collects has one of its own, unless it honours labels.
    """
    queue, made = item["metadata"].get("labels", {}).get(LABEL_QUEUE), _named([item], _ALONE)
    if not queue or not made or item["spec"].get("runPolicy", {}).get("ttlSecondsAfterFinished") is not None:
        return []
    pending = " or ".join(f'kueue_local_queue_pending_workloads{{name="{queue}",{where}}}' for where in
                          (f'exported_namespace="{namespace}"', f'namespace="{namespace}",exported_namespace=""'))  # fmt: skip
    pods = f'kube_pod_status_phase{{namespace="{namespace}",pod=~"{made}"}}'
    return [f'(label_replace({pending}, "namespace", "{namespace}", "", "") > 0 unless on (namespace) {pods})']


def claims_alerts(alerts: Alerts, namespace: str, objects: Sequence[Manifest]) -> list[Manifest]:
    """The alert of the claims that these objects make or mount, if there are any."""
    sets = [f"{claim['metadata']['name']}-{_literal(item['metadata']['name'])}-[0-9]+"
            for item in objects if _kind(item) == STATEFUL_SET for claim in item["spec"].get("volumeClaimTemplates", ())]  # fmt: skip
    names = "|".join(sorted({*map(_literal, _mounted(objects)), *sets}))
    of = f'{{namespace="{namespace}",persistentvolumeclaim=~"{names}"}}'
    free = f"kubelet_volume_stats_available_bytes{of} / kubelet_volume_stats_capacity_bytes{of}"
    summary = "Claim {{ $labels.persistentvolumeclaim }} has {{ $value | humanizePercentage }} left."
    more = "A claim can be made larger where its storage class allows it."
    return [alert("ClaimNearlyFull", f"{free} < {alerts.free_ratio:g}", alerts.after, "warning", summary, more)] if names else []


def _mounted(value: t.Any) -> Iterator[str]:
    """The names of the claims that are mounted anywhere in a value."""
    if isinstance(value, Mapping):
        yield from [value["claimName"]] if isinstance(value.get("claimName"), str) else []
    for part in value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ():
        yield from _mounted(part)


def _named(objects: Sequence[Manifest], ends: Mapping[tuple[str, str], str]) -> str:
    """A regular expression for names that are made of those of objects, by kind. Empty: there are none."""
    return "|".join(_literal(item["metadata"]["name"]) + ends[_kind(item)] for item in objects if _kind(item) in ends)


def _kind(item: Manifest) -> tuple[str, str]:
    return item["apiVersion"], item["kind"]


def _literal(name: str) -> str:
    return name.replace(".", "[.]")


def _any(conditions: Sequence[str]) -> str:
    return f"count by (namespace) ({' or '.join(conditions)}) > 0"

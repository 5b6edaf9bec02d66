# SPDX-License-Identifier: GPL-3.0-or-later
"""A PERSIA training in Kubernetes' own workloads.

Embedding servers and workers are StatefulSets; data loaders and trainers are Indexed Jobs, which end. Each group has
a headless Service, and a stable rank from the index of its pods.
"""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Sequence

from ..._kube.objects import CONFIG_MAP, DEPLOYMENT, JOB, STATEFUL_SET, group_kind
from ..._manifests.merge import apply_overrides
from ..._manifests.meta import (
    ANNOTATION_CONFIG_HASH,
    LABEL_JOB,
    LABEL_POD_GROUP,
    LABEL_ROLE,
    Manifest,
    check_name,
    compact,
    queued,
    spec_hash,
)
from ..._manifests.pods import READ_ONLY_CONTAINER, PodSettings, field_env, on_disruption, on_exit, pod_template
from ..._manifests.programs import program
from ..._manifests.servers import client_service
from ..._manifests.training_statefulset import TrainingStatefulSet, around, stateful_set
from ..._manifests.training_statefulset import manifests as statefulset_manifests
from ..._pod_programs import persia_launch, persia_metrics
from ..._pod_programs.persia_launch import EXIT_MISCONFIGURED, EXIT_PEER_REPLACED, METRICS
from ..._pod_programs.persia_metrics import SETTINGS
from . import gpus
from .spec import (
    CONFIG_PATH,
    GATEWAY_PORT,
    NATS_ENV,
    WORDS,
    Group,
    PersiaJob,
    Role,
    config_paths,
    metrics_config,
    script_program,
    shared_objects,
    shared_volumes,
)

SUCCESS_DIR = "/run/muster"
SUCCESS_FILE = f"{SUCCESS_DIR}/success"
GATEWAY_GROUP = "metrics-gateway"
JOB_INDEX_FIELD = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
# PERSIA's own default for push_interval_seconds.
_PUSH_SECONDS = 10
# Default ports of the processes; persia-launcher cannot change all of them.
_PORTS: dict[Role, int] = {"embedding_worker": 8887, "embedding_parameter_server": 8888}
# The groups that each group connects to at its start, and must restart with.
_PEERS: dict[Role, tuple[Role, ...]] = {
    "embedding_parameter_server": (),
    "embedding_worker": ("embedding_parameter_server",),
    "dataloader": ("embedding_parameter_server", "embedding_worker", "nn_worker"),
    "nn_worker": ("embedding_parameter_server", "embedding_worker", "nn_worker"),
}


def runs_to_completion(job: PersiaJob, role: Role) -> bool:
    """Whether the group's pods end by themselves, so that it is a Job."""
    return job.completion and role in ("nn_worker", "dataloader")


def in_queue(job: PersiaJob, run: str) -> tuple[dict[str, str], dict[str, str]]:
    """Labels and annotations by which a queue admits all pods of the training or none, as one group; empty without a queue.

    Pods with a suspending parent have no finalizer of Kueue. With it a lost pod of a StatefulSet would stay, and be in the way of its
    successor, for which Kueue waits (pkg/controller/jobs/pod of 0.19). RUN: a part of the group's name that no earlier run had, because
    the Workload of a group that has ended admits nothing more.
    """
    labels = queued({"labels": {}}, job.queue_name, job.queue_priority_class)["labels"]
    if not labels:
        return {}, {}
    count = sum(group.replicas for group in job.groups.values()) + job.metrics.makes_gateway
    return (
        {**labels, LABEL_POD_GROUP: f"{job.name}-{run}", "kueue.x-k8s.io/managed": "true"},
        {"kueue.x-k8s.io/pod-group-total-count": str(count), "kueue.x-k8s.io/pod-suspending-parent": "muster.ml"},
    )


def manifests(job: PersiaJob, run: str = "1") -> list[Manifest]:
    """All objects of JOB."""
    objects = shared_objects(job, {LABEL_JOB: job.name}, {"launch.py": program(persia_launch), **script_program(), **_metrics_program(job)})
    config_hash = spec_hash([{**item["data"], **item.get("binaryData", {})} for item in objects if group_kind(item) == CONFIG_MAP])
    if job.metrics.makes_gateway:
        objects += metrics_gateway(job, run)
    for role in WORDS:
        group = job.groups.get(role)
        if group is not None and group.replicas:
            objects += _group_objects(job, group, config_hash, run)
    return objects


def _metrics_program(job: PersiaJob) -> dict[str, str]:
    """Return the program that queries the gateway after the training; empty if only a file in the pods has PERSIA's push settings."""
    config = metrics_config(job)
    if job.gateway_address is None or job.global_config is None or not config["enable_metrics"]:
        return {}
    # Trainers and data loaders push nothing.
    processes = sum(job.groups[role].replicas for role in _PORTS)
    seconds = config.get("push_interval_seconds", _PUSH_SECONDS)
    settings = {"job": config["job_name"], "processes": processes, "seconds": seconds}
    return {METRICS: program(persia_metrics), SETTINGS: json.dumps(settings)}


def scaled_to_zero(objects: Sequence[Manifest]) -> list[Manifest]:
    """The objects of an ended training, without its Jobs: its servers are scaled to zero."""
    others = [copy.deepcopy(item) for item in objects if group_kind(item) != JOB]
    for item in others:
        if group_kind(item) in (STATEFUL_SET, DEPLOYMENT):
            item["spec"]["replicas"] = 0
    return others


def _group_objects(job: PersiaJob, group: Group, config_hash: str, run: str) -> list[Manifest]:
    ranked = _ranked(job, group, config_hash, run)
    if not runs_to_completion(job, group.role):
        return statefulset_manifests(ranked)
    return [*around(ranked), apply_overrides(indexed_job(job, group, ranked), group.overrides)]


def _ranked(job: PersiaJob, group: Group, config_hash: str, run: str) -> TrainingStatefulSet:
    """The user's group with what PERSIA's processes need."""
    volumes, mounts = shared_volumes(job)
    volumes.append({"name": "muster-run", "emptyDir": {}})
    mounts.append({"name": "muster-run", "mountPath": SUCCESS_DIR})
    port, (labels, annotations) = _PORTS.get(group.role), in_queue(job, run)
    pod = dataclasses.replace(
        group.pod,
        command=("python3", "-u", f"{CONFIG_PATH}/launch.py", WORDS[group.role].launcher),
        env=(*persia_env(job, group), *group.pod.env),
        volumes=(*group.pod.volumes, *volumes),
        volume_mounts=(*group.pod.volume_mounts, *mounts),
        ports=({"name": "persia", "container_port": port},) if port else (),
    )
    return TrainingStatefulSet(
        name=job.object_name(group),
        namespace=job.namespace,
        replicas=group.replicas,
        nproc_per_node=group.nproc_per_node,
        pod=pod,
        labels={**job.labels, "app.kubernetes.io/component": group.group_name, LABEL_ROLE: WORDS[group.role].launcher},
        pod_labels=labels,
        pod_annotations={ANNOTATION_CONFIG_HASH: config_hash, **annotations},
        selector=job.selector(group.group_name),
        container=group.group_name,
        inject_rendezvous=False,
        pod_disruption_budget=group.pod_disruption_budget,
        overrides=group.overrides,
    )


def persia_env(job: PersiaJob, group: Group) -> list[Manifest]:
    """The environment of today's persia-launcher, and that of launch.py."""
    global_path, embedding_path = config_paths(job)
    peers = " ".join(f"{job.object_name(peer)}:{peer.replicas}" for role in _PEERS[group.role] if (peer := job.groups.get(role)))
    values = {
        "PERSIA_GLOBAL_CONFIG": global_path,
        "PERSIA_EMBEDDING_CONFIG": embedding_path,
        NATS_ENV: job.nats_url,
        "PERSIA_SOCKET_IFNAME": "eth0",
        "LOG_LEVEL": job.log_level,
        "RUST_BACKTRACE": "full",
        "PERSIA_METRICS_GATEWAY_ADDR": job.gateway_address,
        "MUSTER_PEERS": peers or None,
        "MUSTER_PEER_TIMEOUT": str(job.peer_timeout) if peers else None,
    }
    if job.launch_script:
        values["MUSTER_LAUNCH_SCRIPT"] = f"{job.launch_script} {WORDS[group.role].script}"
        values["PERSIA_PORT"] = str(port) if (port := _PORTS.get(group.role)) else None
    if group.role == "nn_worker":
        if job.launch_script:
            values["MASTER_ADDR"] = f"{job.object_name(group)}-0.{job.object_name(group)}"
        values["NPROC_PER_NODE"] = str(group.nproc_per_node)
        values["PERSIA_NN_WORKER_ENTRY"] = group.entry
        values["MUSTER_SUCCESS_FILE"] = SUCCESS_FILE
        values["MUSTER_GPUS"] = str(gpus.count(group.pod.resources) or "") or None
    if group.role == "dataloader":
        values["PERSIA_DATALOADER_ENTRY"] = group.entry
    env: list[Manifest] = [{"name": name, "value": value} for name, value in values.items() if value is not None]
    if runs_to_completion(job, group.role):
        # Overrides the way in which a pod of a StatefulSet gets its index.
        env.append(field_env("REPLICA_INDEX", JOB_INDEX_FIELD))
    return env


def indexed_job(job: PersiaJob, group: Group, ranked: TrainingStatefulSet) -> Manifest:
    """A Job with REPLICAS pods, each of which must succeed once; pod <name>-<i> has index i, also after it was replaced."""
    template = stateful_set(ranked)["spec"]["template"]
    template["spec"] |= {"restartPolicy": "Never", "subdomain": ranked.name}
    rules = [
        on_disruption("Ignore"),
        on_exit("Ignore", group.group_name, EXIT_PEER_REPLACED),
        on_exit("FailJob", group.group_name, EXIT_MISCONFIGURED),
    ]
    spec = compact(
        {
            "completionMode": "Indexed",
            "completions": group.replicas,
            "parallelism": group.replicas,
            "backoffLimit": job.backoff_limit,
            "activeDeadlineSeconds": job.active_deadline_seconds,
            "podFailurePolicy": {"rules": rules},
            "suspend": False,
            "template": template,
        }
    )
    check_name(ranked.name, f"{group.role}: Job name")
    metadata = {"name": ranked.name, "namespace": job.namespace, "labels": {**ranked.match_labels, **ranked.labels}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def metrics_gateway(job: PersiaJob, run: str) -> list[Manifest]:
    """A push gateway for the job, to which PERSIA's processes push their metrics for Prometheus."""
    selector, (queue, annotations) = job.selector(GATEWAY_GROUP), in_queue(job, run)
    labels = {**job.labels, **selector, "app.kubernetes.io/component": GATEWAY_GROUP}
    service_name = f"{job.gateway}-service"
    pod = PodSettings(
        image=job.metrics.image,
        resources=job.metrics.resources,
        ports=({"name": "http", "container_port": GATEWAY_PORT},),
        readiness_probe={"httpGet": {"path": "/-/ready", "port": GATEWAY_PORT}, "periodSeconds": 5},
        security_context=READ_ONLY_CONTAINER,
    )
    template = pod_template(pod, container="pushgateway", labels={**labels, **queue}, selector=selector, annotations=annotations)
    deployment: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": job.gateway, "namespace": job.namespace, "labels": labels},
        "spec": {"replicas": 1, "selector": {"matchLabels": selector}, "template": template},
    }
    its = {"name": service_name, "namespace": job.namespace, "labels": labels}
    return [client_service(its, selector, {"http": GATEWAY_PORT}), deployment]

# SPDX-License-Identifier: GPL-3.0-or-later
"""The PersiaJob resource of PERSIA's own operator, and the options that it has no field for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..._core.errors import InvalidInput
from ..._gang.groups import PodSet
from ..._manifests.meta import Manifest, compact, metadata
from ..._manifests.pods import merge_env, resources, unsayable, volumes_and_mounts
from ..._pod_programs.persia_launch import PROGRAM
from ..._pod_programs.persia_program import ENTRY
from ..._training.status import GroupStatus, judge_bare, ranks_of
from . import gpus
from .spec import (
    CONFIG_PATH,
    NATS_ENV,
    WORDS,
    Group,
    PersiaJob,
    config_paths,
    script_program,
    shared_objects,
    shared_volumes,
)

API_VERSION = "persia.com/v1"
KIND = "PersiaJob"
FINALIZER = "persiajobs.persia.com"
# The operator sets this label on its pods and Services, which have no owner reference.
JOB_LABEL = "persia_job"


def manifests(job: PersiaJob) -> list[Manifest]:
    """The objects of JOB; the operator creates the pods and the gateway."""
    refuse_unsupported(job)
    return [*shared_objects(job, {JOB_LABEL: job.name}, script_program()), persia_job_resource(job)]


def groups(resource: Manifest, pods: Sequence[Manifest]) -> list[GroupStatus]:
    """The groups of a PersiaJob, whose bare pods differ only by name."""
    name, spec = resource["metadata"]["name"], resource.get("spec") or {}
    found = []
    for words in WORDS.values():
        desired = int((spec.get(words.section) or {}).get("replicas") or 0)
        if desired:
            own = [p for p in pods if re.fullmatch(rf"{re.escape(name)}-{words.pod}-\d+", p["metadata"]["name"])]
            group = GroupStatus(name=words.group, role=words.launcher, kind="Pod", desired=desired, ranks=ranks_of(own))
            found.append(judge_bare(group))
    return found


def pod_sets(item: Manifest) -> list[PodSet]:
    """The bare pods that the operator makes of a PersiaJob, its push gateway among them."""
    spec, name = item["spec"], item["metadata"]["name"]
    rows = [(words.pod, spec.get(words.section) or {}) for words in WORDS.values()]
    if spec.get("enableMetrics", True):
        rows.append(("metrics-gateway", {"replicas": 1}))
    found = []
    for word, row in rows:
        container = {"name": word, "image": row.get("image") or word, "resources": row.get("resources") or {}}
        template = {"spec": {"containers": [container], "volumes": spec.get("volumes") or []}}
        if row.get("replicas"):
            found.append(PodSet(f"{name}-{word}", int(row["replicas"]), template))
    return found


def refuse_unsupported(job: PersiaJob) -> None:
    """Name every option that the PersiaJob resource has no field for, rather than dropping it."""
    found = []
    for role, group in job.groups.items():
        known = ("image", "image_pull_policy", "env", "resources", "volumes", "volume_mounts")
        found += [f"{role}.{name}" for name in unsayable(group.pod, *known)]
        found += [f"{role}.{name}" for name in ("overrides", "pod_disruption_budget") if getattr(group, name)]
    found += [name for name in ("queue_name", "queue_priority_class") if getattr(job, name)]
    if job.launch_script:
        found.append("launch_script")
    if not job.completion:
        found.append("completion=false")
    if job.active_deadline_seconds is not None:
        found.append("active_deadline_seconds")
    if job.metrics.resources:
        found.append("metrics.resources")
    if len({group.pod.image_pull_policy for group in job.groups.values()}) > 1:
        found.append("image_pull_policy per group")
    if found:
        raise InvalidInput(f"backend operator: a PersiaJob has no field for {', '.join(found)}.", "Leave it out, or use backend: native.")


def persia_job_resource(job: PersiaJob) -> Manifest:
    """The PersiaJob in its current field names (persiaEnv; globalConfigPath and the like ended in December 2021)."""
    global_path, embedding_path = config_paths(job)
    nn_worker, dataloader = job.groups["nn_worker"], job.groups.get("dataloader")
    volumes, _mounts = shared_volumes(job)
    # Another gateway than the operator's: of two values PERSIA takes the later one.
    values = {NATS_ENV: job.nats_url, "PERSIA_METRICS_GATEWAY_ADDR": job.metrics.address}
    spec = compact(
        {
            "persiaEnv": compact(
                {
                    "PERSIA_GLOBAL_CONFIG": global_path,
                    "PERSIA_EMBEDDING_CONFIG": embedding_path,
                    # Each runs the script in its group's MUSTER_ENTRY.
                    "PERSIA_NN_WORKER_ENTRY": f"{CONFIG_PATH}/{PROGRAM}",
                    "PERSIA_DATALOADER_ENTRY": f"{CONFIG_PATH}/{PROGRAM}" if dataloader else None,
                }
            ),
            "env": merge_env([{"name": name, "value": value} for name, value in values.items() if value]),
            "logLevel": job.log_level,
            "enableMetrics": job.metrics.makes_gateway,
            # Also the operator's default. With OnFailure the kubelet starts a failed script again from its beginning, without a limit.
            "restartPolicy": "Never",
            "imagePullPolicy": nn_worker.pod.image_pull_policy,
            "volumes": [*nn_worker.pod.volumes, *volumes],
            **{WORDS[role].section: _section(job, group) for role, group in job.groups.items() if group.replicas},
        }
    )
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata(job.name, job.namespace, job.labels), "spec": spec}


def _own_env(group: Group) -> list[Manifest]:
    asked = gpus.count(group.pod.resources) if group.role == "nn_worker" else 0
    values = {ENTRY: group.entry, "MUSTER_GPUS": str(asked or "")}
    return [{"name": name, "value": value} for name, value in values.items() if value]


def _section(job: PersiaJob, group: Group) -> Manifest:
    volumes_and_mounts(group.pod)
    _volumes, shared = shared_volumes(job)
    return compact(
        {
            "replicas": group.replicas,
            "nprocPerNode": group.nproc_per_node if group.role == "nn_worker" else None,
            "image": group.pod.image,
            "resources": resources(group.pod.resources, f"{group.role}.resources"),
            "env": merge_env(_own_env(group), group.pod.env),
            "volumeMounts": [*group.pod.volume_mounts, *shared],
        }
    )

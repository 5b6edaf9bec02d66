# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of a training as a JobSet: one Job for each slice, and in it one pod for each host. Its controller makes the Service."""

from __future__ import annotations

import dataclasses

from ..._manifests.merge import apply_overrides
from ..._manifests.meta import Manifest, compact
from ..._manifests.pods import field_env, on_disruption, pod_template, text
from ..._manifests.shared import files_config_map, mounted
from .spec import GROUP, JobSet

API_VERSION = "jobset.x-k8s.io/v1alpha2"
JOB_SET = "JobSet"
ANNOTATION_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
LABEL_REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
LABEL_JOB_INDEX = "jobset.sigs.k8s.io/job-index"
LABEL_RESTARTS = "jobset.sigs.k8s.io/restart-attempt"


def manifests(job: JobSet) -> list[Manifest]:
    """All objects of JOB."""
    config = files_config_map(job.metadata(job.objects_name), job.files)
    return [*job.shared_objects(config), apply_overrides(_job_set(job), job.overrides)]


def _job_set(job: JobSet) -> Manifest:
    # A pod that is evicted, preempted or lost with its node begins a restart that is not counted.
    disrupted = {"name": "disrupted", "action": "RestartJobSetAndIgnoreMaxRestarts", "onJobFailureReasons": ["PodFailurePolicy"]}
    spec = {
        "suspend": job.suspend,
        "ttlSecondsAfterFinished": job.ttl_seconds_after_finished,
        "successPolicy": {"operator": job.success_operator, "targetReplicatedJobs": [GROUP]},
        "failurePolicy": {"maxRestarts": job.max_restarts, "restartStrategy": job.restart_strategy, "rules": [disrupted]},
        "replicatedJobs": [{"name": GROUP, "replicas": job.slices, "template": {"spec": _job(job)}}],
    }
    described = job.metadata(job.name, in_queue=True)
    if job.exclusive_topology:
        described["annotations"] = {ANNOTATION_EXCLUSIVE: job.exclusive_topology}
    return {"apiVersion": API_VERSION, "kind": JOB_SET, "metadata": described, "spec": compact(spec)}


def _job(job: JobSet) -> Manifest:
    pods = _pods(job)
    pods["spec"]["restartPolicy"] = "Never"
    return {
        "completionMode": "Indexed",
        "completions": job.hosts,
        "parallelism": job.hosts,
        # Pods of one world cannot go on without one of them, so the first one that fails ends its Job, and the JobSet begins again.
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": [on_disruption("FailJob")]},
        "template": pods,
    }


def _pods(job: JobSet) -> Manifest:
    maps = {"files": (job.objects_name, job.files_path)} if job.files else {}
    volumes, mounts = mounted("muster", maps, job.storage, job.files)
    pod = dataclasses.replace(
        job.pod,
        volumes=(*job.pod.volumes, *volumes),
        volume_mounts=(*job.pod.volume_mounts, *mounts),
        ports=({"name": "coordinator", "container_port": job.coordinator_port}, *job.pod.ports),
    )
    annotations = {key: text(value, f"pod_annotations: {key}") for key, value in job.pod_annotations.items()}
    return pod_template(pod, container=GROUP, labels=job.labels, selector=job.selector, env=_env(job), annotations=annotations)


def _env(job: JobSet) -> list[Manifest]:
    """The variables by which a script finds the other pods; Kubernetes adds JOB_COMPLETION_INDEX, the number of the pod in its slice."""
    values = {
        "MUSTER_SLICES": str(job.slices),
        "MUSTER_HOSTS": str(job.hosts),
        # The DNS name of the first pod of the first slice, which it keeps when the JobSet is restarted.
        "MUSTER_COORDINATOR": f"{job.name}-{GROUP}-0-0.{job.name}.{job.namespace}.svc:{job.coordinator_port}",
        "PYTHONUNBUFFERED": "1",
        **job.run_dir,
    }
    return [
        field_env("MUSTER_SLICE", f"metadata.labels['{LABEL_JOB_INDEX}']"),
        field_env("MUSTER_RESTARTS", f"metadata.labels['{LABEL_RESTARTS}']"),
        *({"name": name, "value": value} for name, value in values.items()),
    ]

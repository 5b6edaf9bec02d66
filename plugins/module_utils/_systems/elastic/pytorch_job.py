# SPDX-License-Identifier: GPL-3.0-or-later
"""An elastic job as a PyTorchJob of training-operator 1.x, whose pods run the same launcher.

The operator creates pods <name>-worker-<i>, each with a Service of its name, and gives them torchrun's variables (PET_*) from
the elasticPolicy. The highest indexes are removed first when the job shrinks.
"""

from __future__ import annotations

from ..._gang.groups import PodSet
from ..._manifests.merge import apply_overrides
from ..._manifests.meta import Manifest, compact
from ..._manifests.pods import field_env
from ..._pod_programs.elastic_launch import EXIT_AGAIN
from .native import C10D_PORT, launcher_env, shared_objects, template
from .spec import ElasticJob

API_VERSION = "kubeflow.org/v1"
KIND = "PyTorchJob"
GROUP_KIND = ("kubeflow.org", KIND)
# The field with the number of pods.
SIZE = ("spec", "pytorchReplicaSpecs", "Worker", "replicas")
# The operator looks for both by these names.
CONTAINER = "pytorch"
PORT = "pytorchjob-port"
INDEX_FIELD = "metadata.labels['training.kubeflow.org/replica-index']"


def manifests(job: ElasticJob, run_id: str) -> list[Manifest]:
    """All objects of JOB. RUN_ID differs from that of other runs at the same etcd; scaling keeps it."""
    return [*shared_objects(job), apply_overrides(_pytorch_job(job, run_id), job.overrides)]


def pod_sets(item: Manifest) -> list[PodSet]:
    """The pods of a PyTorchJob, a set for each role."""
    roles = item["spec"]["pytorchReplicaSpecs"].items()
    name = item["metadata"]["name"]
    return [PodSet(f"{name}-{role.lower()}", int(row.get("replicas", 1)), row["template"]) for role, row in roles]


def with_run_of(item: Manifest, live: Manifest) -> Manifest:
    """The PyTorchJob ITEM with the run ID of LIVE."""
    run_id = (live["spec"].get("elasticPolicy") or {}).get("rdzvId")
    if run_id is None:
        return item
    return {**item, "spec": {**item["spec"], "elasticPolicy": {**item["spec"]["elasticPolicy"], "rdzvId": str(run_id)}}}


def _pytorch_job(job: ElasticJob, run_id: str) -> Manifest:
    worker = {
        "replicas": job.replicas,
        # Below 128 the job has failed. From 128 on, the exit status of signals, the pod is recreated.
        "restartPolicy": "ExitCode",
        "template": _pods(job),
    }
    spec = {
        # Running pods are not deleted, because their logs would be lost. They end by themselves.
        "runPolicy": compact(
            {
                "cleanPodPolicy": "None",
                "ttlSecondsAfterFinished": job.ttl_seconds_after_finished,
                "activeDeadlineSeconds": job.active_deadline_seconds,
            }
        ),
        "elasticPolicy": _elastic_policy(job, run_id),
        "nprocPerNode": job.nproc_per_node,
        "pytorchReplicaSpecs": {"Worker": worker},
    }
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": job.metadata(job.name, in_queue=True), "spec": spec}


def _elastic_policy(job: ElasticJob, run_id: str) -> Manifest:
    endpoint = job.rdzv_endpoint or f"{job.name}-worker-0.{job.namespace}.svc:{C10D_PORT}"
    host, _colon, port = endpoint.rpartition(":")
    return {
        "minReplicas": job.min_replicas,
        "maxReplicas": job.max_replicas,
        "maxRestarts": job.max_restarts,
        "rdzvBackend": job.rdzv_backend,
        "rdzvHost": host,
        "rdzvPort": int(port),
        "rdzvId": run_id,
        "rdzvConf": [{"key": key, "value": str(value)} for key, value in job.rendezvous.items()],
    }


def _pods(job: ElasticJob) -> Manifest:
    values = {**launcher_env(job), "MUSTER_EXIT_AGAIN": str(EXIT_AGAIN)}
    env = [field_env("JOB_COMPLETION_INDEX", INDEX_FIELD)]
    made = template(job, CONTAINER, [*env, *({"name": key, "value": value} for key, value in values.items())], PORT)
    if job.active_deadline_seconds is not None:
        # The operator only marks the job as failed, and leaves its pods running.
        made["spec"]["activeDeadlineSeconds"] = job.active_deadline_seconds
    return made

# SPDX-License-Identifier: GPL-3.0-or-later
"""An elastic job as a TrainJob of Kubeflow Trainer 2, with a TrainingRuntime of its own that holds the pods.

The Trainer creates a JobSet of the TrainJob's name with one Job, <name>-node-0. That Job is the one of the native backend, so that its
pods are replaced and counted in the same way. The number of nodes of a TrainJob is immutable (Trainer 2.3.0, TrainJobSpec).
"""

from __future__ import annotations

from ..._gang.groups import PodSet, at_once
from ..._manifests.merge import apply_overrides
from ..._manifests.meta import Manifest, compact
from .native import job_spec, shared_objects
from .spec import TRAINER_NODE, ElasticJob

API_VERSION = "trainer.kubeflow.org/v1alpha1"
KIND = "TrainJob"
RUNTIME = "TrainingRuntime"
GROUP_KIND = ("trainer.kubeflow.org", KIND)
# The field with the number of pods.
SIZE = ("spec", "trainer", "numNodes")
LABEL_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"


def manifests(job: ElasticJob) -> list[Manifest]:
    """All objects of JOB. Overrides change the TrainJob, whose runtimePatches change the pods."""
    return [*shared_objects(job), _runtime(job), apply_overrides(_train_job(job), job.overrides)]


def pod_sets(runtime: Manifest) -> list[PodSet]:
    """The pods that a TrainJob makes of its TrainingRuntime."""
    spec = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]
    return [PodSet(runtime["metadata"]["name"], at_once(spec), spec["template"])]


def _train_job(job: ElasticJob) -> Manifest:
    spec = compact({
        "runtimeRef": {"apiGroup": GROUP_KIND[0], "kind": RUNTIME, "name": job.name},
        "trainer": {"numNodes": job.replicas},
        "activeDeadlineSeconds": job.active_deadline_seconds,
    })  # fmt: skip
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": job.metadata(job.name, in_queue=True), "spec": spec}


def _runtime(job: ElasticJob) -> Manifest:
    # The Trainer looks for a job with this label and for its container "node".
    template = {"metadata": {"labels": {LABEL_STEP: "trainer"}}, "spec": job_spec(job, TRAINER_NODE, f"{job.name}-{TRAINER_NODE}-0")}
    job_set = compact({
        "ttlSecondsAfterFinished": job.ttl_seconds_after_finished,
        # The pods have the names of the Service that all backends have.
        "network": {"enableDNSHostnames": False},
        "replicatedJobs": [{"name": TRAINER_NODE, "replicas": 1, "template": template}],
    })  # fmt: skip
    spec = {"mlPolicy": {"numNodes": job.replicas}, "template": {"spec": job_set}}
    return {"apiVersion": API_VERSION, "kind": RUNTIME, "metadata": job.metadata(job.name, in_queue=True), "spec": spec}

# SPDX-License-Identifier: GPL-3.0-or-later
"""Trainings as JobSets: what is applied, and what slices of TPUs mean."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._systems.jobset.manifests import manifests
from ansible_collections.muster.ml.plugins.module_utils._systems.jobset.spec import from_params

Manifest = dict[str, t.Any]
Golden = t.Callable[..., None]
JOB: Manifest = {"name": "lm", "namespace": "ml", "image": "example/jax:0.10", "command": ["python3", "train.py"]}
V5E: Manifest = {**JOB, "tpu": {"type": "v5e", "topology": "4x4"}}


def job_set(**params: t.Any) -> Manifest:
    (found,) = [item for item in manifests(from_params(params)) if item["kind"] == "JobSet"]
    return found


def job(made: Manifest) -> Manifest:
    found: Manifest = made["spec"]["replicatedJobs"][0]["template"]["spec"]
    return found


# Shows row 003.21.
def test_two_slices_of_tpus(golden: Golden) -> None:
    more = {"slices": 2, "storage": {"claim_name": "lm", "size": "10Gi"}, "files": {"train.py": "print(1)"}}
    made = manifests(from_params({**V5E, **more, "ttl_seconds_after_finished": 3600}))
    golden("jobset_tpu", made)
    assert not [word for word in ("hostNetwork", "privileged") if word in str(made)]
    golden("jobset_hosts", manifests(from_params({**JOB, "slices": 2, "hosts": 2, "suspend": True, "network_policy": False})), made)


# Shows row 003.15.
@pytest.mark.parametrize(
    ("tpu", "hosts", "chips", "labels"),
    [
        ({"type": "v4-16"}, 2, 4, ("tpu-v4-podslice", "2x2x2")),
        ({"type": "v5e", "topology": "2x4", "machine_type": "ct5lp-hightpu-4t"}, 2, 4, ("tpu-v5-lite-podslice", "2x4")),
        ({"type": "v5p", "topology": "4x4x4"}, 16, 4, ("tpu-v5p-slice", "4x4x4")),
        ({"type": "v6e", "topology": "16x16"}, 64, 4, ("tpu-v6e-slice", "16x16")),
    ],
)
def test_a_slice_is_a_job_with_one_pod_for_each_machine(tpu: Manifest, hosts: int, chips: int, labels: tuple[str, str]) -> None:
    made = job_set(**JOB, tpu=tpu, slices=3)
    pods = job(made)["template"]["spec"]
    assert made["spec"]["replicatedJobs"][0]["replicas"] == 3
    assert (job(made)["completions"], job(made)["parallelism"]) == (hosts, hosts)
    assert pods["containers"][0]["resources"]["limits"] == {"google.com/tpu": str(chips)}
    accelerator, topology = labels
    assert pods["nodeSelector"] == {"cloud.google.com/gke-tpu-accelerator": accelerator, "cloud.google.com/gke-tpu-topology": topology}
    annotations = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"}
    assert made["metadata"]["annotations"] == annotations


def test_one_machine_shares_its_node_pool() -> None:
    assert "annotations" not in job_set(**JOB, tpu={"type": "v5e", "topology": "2x2"})["metadata"]
    assert "annotations" not in job_set(**V5E, exclusive_topology="")["metadata"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"tpu": {"type": "v5e", "topology": "3x3"}}, "no slice with topology 3x3"),
        ({"tpu": {"type": "v5e", "topology": "4x4"}, "hosts": 3}, "has 4"),
        ({"tpu": {"type": "v5e", "topology": "2x2"}, "slices": 2}, "cannot train together"),
        ({"tpu": {"type": "v5e", "topology": "4x4"}, "resources": {"limits": {"google.com/tpu": 8}}}, "means 4"),
        ({"tpu": {"type": "v5e", "topology": "4x4"}, "node_selector": {"cloud.google.com/gke-tpu-topology": "2x4"}}, "means 4x4"),
        ({"hosts": 0}, "too small"),
        ({"hosts": 2, "name": "a" * 60}, "characters"),
    ],
)
def test_what_cannot_be_is_refused(more: Manifest, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        from_params({**JOB, **more})


def test_it_may_be_suspended_and_kept_shorter_without_training_again() -> None:
    parts = from_params({**JOB, "hosts": 2}).parts
    assert from_params({**JOB, "hosts": 2, "suspend": True, "ttl_seconds_after_finished": 5}).parts == parts
    assert from_params({**JOB, "hosts": 3}).parts != parts

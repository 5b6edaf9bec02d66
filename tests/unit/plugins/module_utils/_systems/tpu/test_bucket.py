# SPDX-License-Identifier: GPL-3.0-or-later
"""Buckets as folders of pods."""

import typing as t

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.muster.ml.plugins.filter.gcs_mount import gcs_mount
from ansible_collections.muster.ml.plugins.module_utils._systems.jobset.manifests import manifests
from ansible_collections.muster.ml.plugins.module_utils._systems.jobset.spec import from_params

JOB: dict[str, t.Any] = {"name": "lm", "namespace": "ml", "image": "example/jax:0.10", "hosts": 2}


def options(found: dict[str, t.Any]) -> list[str]:
    csi = found["volumes"][0]["csi"]
    assert csi["driver"] == "gcsfuse.csi.storage.gke.io"
    words: list[str] = csi["volumeAttributes"]["mountOptions"].split(",")
    return words


def test_pods_of_a_training_get_volume_mount_and_annotation() -> None:
    found = gcs_mount("lm-checkpoints", "/workspace/shared")
    (made,) = (one for one in manifests(from_params({**JOB, **found})) if one["kind"] == "JobSet")
    pods = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert pods["metadata"]["annotations"] == {"gke-gcsfuse/volumes": "true"}
    (volume,) = pods["spec"]["volumes"]
    assert volume["csi"]["volumeAttributes"]["bucketName"] == "lm-checkpoints"
    assert pods["spec"]["containers"][0]["volumeMounts"] == [{"name": volume["name"], "mountPath": "/workspace/shared"}]


def test_a_checkpoint_can_be_renamed_and_belongs_to_the_user_of_the_pods() -> None:
    assert options(gcs_mount("lm-1", "/a")) == ["implicit-dirs", "rename-dir-limit=200000", "uid=1000", "gid=1000"]
    assert options(gcs_mount("lm-1", "/a", ["only-dir=team"], {"runAsUser": 7}))[2:] == ["uid=7", "only-dir=team"]
    assert options(gcs_mount("lm-1", "/a", pod_security_context={"runAsUser": 0}))[2:] == []


@pytest.mark.parametrize(
    ("bucket", "path", "words"),
    [
        ("gs://lm", "/a", "without gs://"),
        ("lm/team", "/a", "'lm/team' cannot be the name of a bucket"),
        ("LM", "/a", "cannot be the name of a bucket"),
        ("lm-1", "a", "does not begin with '/'"),
    ],
)
def test_what_cannot_be_mounted_is_refused(bucket: str, path: str, words: str) -> None:
    with pytest.raises(AnsibleFilterError, match=words):
        gcs_mount(bucket, path)

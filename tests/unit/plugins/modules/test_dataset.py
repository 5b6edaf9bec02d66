# SPDX-License-Identifier: GPL-3.0-or-later
"""dataset: the Job that fetches a data set."""

import contextlib
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, MusterError
from ansible_collections.muster.ml.plugins.module_utils._kube import storage
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.modules import dataset
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster


def storage_class(name: str, provisioner: str, *, default: bool = False) -> dict[str, t.Any]:
    annotations = {"storageclass.kubernetes.io/is-default-class": str(default).lower()}
    metadata = {"name": name, "annotations": annotations}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": metadata, "provisioner": provisioner}


def ready() -> FakeCluster:
    cluster = FakeCluster()
    cluster.add(storage_class("shared", "efs.csi.aws.com", default=True))
    return cluster


def run(cluster: FakeCluster, **params: t.Any) -> dict[str, t.Any]:
    base = {"name": "tiny", "namespace": "default", "sha256": "a" * 64, "claim_name": "c", "url": "https://e.org/x.tar"}
    return tasks.run(dataset, cluster, {**base, **params})


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"sha256": "abc"}, "64 hexadecimal"),
        ({"path": "../x"}, "not a folder"),
        ({"url": "ftp://e.org/x"}, "no address"),
        ({"url": "https://e.org/x?X-Amz-Signature=1"}, "url_secret"),
        ({"url": "https://me:word@e.org/x"}, "url_secret"),
        ({"storage_size": "5 GB"}, "not a quantity"),
        ({"endpoint_url": "minio:9000"}, "is no server"),
    ],
)
def test_nonsense_is_refused(params: dict[str, t.Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        run(FakeCluster(), **params)


def test_a_second_run_changes_nothing_and_another_order_is_another_job() -> None:
    cluster = ready()
    run(cluster, storage_size="1Gi")
    again = run(cluster, storage_size="1Gi")
    assert {entry["action"] for entry in again["objects"]} == {"unchanged"}
    other = run(cluster, storage_size="1Gi", sha256="b" * 64)
    jobs = sorted(entry["action"] for entry in other["objects"] if entry["kind"] == "Job")
    assert jobs == ["created", "deleted"]
    assert not [e for e in other["objects"] if e["kind"] == "PersistentVolumeClaim" and e["action"] == "deleted"]


@pytest.mark.parametrize(
    ("path", "refused"), [("vision", True), ("vision/tiny", True), ("vision/tiny/x", True), ("vision/t", False), ("visionary", False)]
)
def test_a_folder_of_another_data_set_is_refused_before_anything_is_made(path: str, refused: bool) -> None:
    cluster = ready()
    cluster.add({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "default"}})
    run(cluster, name="other", path="vision/tiny")
    run(cluster, name="elsewhere", path=path, claim_name="d", storage_size="1Gi")
    written = len(cluster.writes)
    told = pytest.raises(InvalidInput, match="and data set other has vision/tiny")
    with told if refused else contextlib.nullcontext():
        run(cluster, path=path)
    assert refused == (len(cluster.writes) == written)
    run(cluster, name="other", path="vision/tiny", sha256="b" * 64)


def test_pods_of_one_job_share_what_they_fetched() -> None:
    cluster = ready()
    run(cluster, storage_size="1Gi")
    (job,) = [item for item in cluster.objects.values() if item["kind"] == "Job"]
    env = {row["name"]: row for row in job["spec"]["template"]["spec"]["containers"][0]["env"]}
    field = env["DATASET_RUN"]["valueFrom"]["fieldRef"]["fieldPath"]
    assert field == "metadata.labels['batch.kubernetes.io/controller-uid']"


@pytest.mark.parametrize(
    ("classes", "params", "told"),
    [
        (
            [],
            {},
            "PersistentVolumeClaim default/c .*does not exist, so its pods would not start. Correct the name of the claim, or set its size",
        ),
        ([], {"storage_size": "1Gi"}, "has no default StorageClass. Name one in storage_class_name. There are: none"),
        ([("a", "x.io", False)], {"storage_size": "1Gi"}, "no default StorageClass. .* There are: a"),
        ([("a", "x.io", True)], {"storage_size": "1Gi", "storage_class_name": "b"}, "no StorageClass b. .*There are: a"),
        ([("gp3", "ebs.csi.aws.com", True)], {"storage_size": "1Gi"}, "gp3 makes volumes of EBS, .*ReadWriteMany.*EFS"),
    ],
)
def test_a_claim_that_would_never_be_bound(cluster: FakeCluster, classes: list[t.Any], params: dict[str, t.Any], told: str) -> None:
    cluster.default_class = False
    cluster.add(*(storage_class(name, provisioner, default=default) for name, provisioner, default in classes))
    with pytest.raises(MusterError, match=told):
        run(cluster, **params)
    assert cluster.writes == []


def test_a_disk_is_enough_for_one_node(cluster: FakeCluster) -> None:
    cluster.add(storage_class("gp3", "ebs.csi.aws.com", default=True))
    assert run(cluster, storage_size="1Gi", access_modes=["ReadWriteOnce"])["changed"]


def test_why_a_claim_is_not_bound(cluster: FakeCluster) -> None:
    claim = Ref("v1", "PersistentVolumeClaim", "c", "default")
    assert storage.why_unbound(cluster, claim) == "PersistentVolumeClaim default/c does not exist"
    spec = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "default"}}
    cluster.add({**spec, "status": {"phase": "Pending"}})
    assert storage.why_unbound(cluster, claim).endswith("no event says why")
    cluster.say(claim, "ProvisioningFailed", "no access point", type="Warning")
    assert storage.why_unbound(cluster, claim).endswith("is not bound: ProvisioningFailed: no access point")
    cluster.set_status(claim, {"phase": "Bound"})
    assert storage.why_unbound(cluster, claim) == ""

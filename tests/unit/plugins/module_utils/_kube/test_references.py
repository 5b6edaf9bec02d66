# SPDX-License-Identifier: GPL-3.0-or-later
"""What pods name is there before anything is written."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import ApplyFailed, Forbidden, MusterError
from ansible_collections.muster.ml.plugins.module_utils._kube.engine import apply_objects
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest
from ansible_collections.muster.ml.plugins.module_utils._kube.report import Report
from ansible_collections.muster.ml.plugins.module_utils._kube.served import Promised
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster


def job(container: Manifest | None = None, **spec: t.Any) -> Manifest:
    pod = {"containers": [{"name": "main", "image": "registry.example.com/a:1", **(container or {})}], **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default"}, "spec": {"template": {"spec": pod}}}


def thing(kind: str, name: str, version: str = "v1", **more: t.Any) -> Manifest:
    home = {} if "Class" in kind else {"namespace": "default"}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **home}, **more}


def applied(cluster: FakeCluster, *objects: Manifest, check: bool = False, promised: Promised | None = None) -> Report:
    return apply_objects(cluster, list(objects), owner="t", check=check, references=promised or Promised())


def refusal(cluster: FakeCluster, *objects: Manifest) -> str:
    """The message about objects that are refused before anything is written."""
    with pytest.raises(MusterError) as caught:
        applied(cluster, *objects)
    assert not cluster.writes
    return str(caught.value)


def claim(**spec: t.Any) -> Manifest:
    return thing("PersistentVolumeClaim", "data", spec={"accessModes": ["ReadWriteMany"], **spec})


FILES = {"name": "v", "configMap": {"name": "c", "items": [{"key": "a", "path": "a"}]}}
NEEDS: list[tuple[Manifest, Manifest]] = [
    (job(priorityClassName="high"), thing("PriorityClass", "high", "scheduling.k8s.io/v1")),
    (job(runtimeClassName="nvidia"), thing("RuntimeClass", "nvidia", "node.k8s.io/v1")),
    (job(serviceAccountName="trainer"), thing("ServiceAccount", "trainer")),
    (job({"envFrom": [{"secretRef": {"name": "keys"}}]}), thing("Secret", "keys")),
    (job({"envFrom": [{"configMapRef": {"name": "c"}}]}), thing("ConfigMap", "c")),
    (job(volumes=[{"name": "v", "secret": {"secretName": "keys"}}]), thing("Secret", "keys")),
    (job(volumes=[{"name": "v", "projected": {"sources": [{"secret": {"name": "keys"}}]}}]), thing("Secret", "keys")),
    (job(volumes=[FILES]), thing("ConfigMap", "c", data={"a": ""})),
    (job(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]), thing("PersistentVolumeClaim", "data", spec={})),
]  # fmt: skip


@pytest.mark.parametrize(("item", "needed"), NEEDS)
def test_what_pods_name_is_there_first(cluster: FakeCluster, item: Manifest, needed: Manifest) -> None:
    said = refusal(cluster, item)
    assert "Job default/j names" in said
    assert needed["kind"] in said
    assert needed["metadata"]["name"] in said
    assert "does not exist, so its pods would not start." in said
    cluster.add(needed)
    assert applied(cluster, item).changed


@pytest.mark.parametrize(("item", "needed"), NEEDS)
def test_what_the_same_run_creates_counts(cluster: FakeCluster, item: Manifest, needed: Manifest) -> None:
    promised = Promised()
    promised.add([needed])
    assert applied(cluster, item, check=True, promised=promised).changed
    if needed["metadata"].get("namespace") and needed["kind"] != "PersistentVolumeClaim":
        assert applied(cluster, needed, item).changed


def test_check_mode_promises_what_it_would_create(cluster: FakeCluster) -> None:
    promised = Promised()
    applied(cluster, thing("Secret", "keys"), check=True, promised=promised)
    assert promised.objects == {("Secret", "default", "keys")}


def test_a_missing_pull_secret_is_a_warning(cluster: FakeCluster) -> None:
    pulls = [{"name": "pull"}]
    report = applied(cluster, job(imagePullSecrets=pulls))
    assert report.changed
    assert report.warnings == [
        "Job default/j names Secret default/pull (imagePullSecrets), which does not exist: images that need a login cannot be pulled."
    ]
    both = job({"envFrom": [{"secretRef": {"name": "pull"}}]}, imagePullSecrets=pulls)
    with pytest.raises(MusterError, match=r"Secret default/pull \(secretRef\), which does not exist"):
        applied(cluster, both)


def test_a_missing_key_is_named_with_those_that_are_there(cluster: FakeCluster) -> None:
    item = job({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "tokn"}}}]})
    cluster.add(thing("Secret", "keys", data={"token": "YQ=="}))
    assert "names key tokn of Secret default/keys (secretKeyRef), which has no such key" in refusal(cluster, item)
    assert "It has: token." in refusal(cluster, item)
    assert "It has none." in refusal(
        cluster, thing("ConfigMap", "c"), job(volumes=[{"name": "v", "configMap": {"name": "c", "items": [{"key": "a", "path": "a"}]}}])
    )


def test_what_is_optional_or_comes_by_itself_may_be_missing(cluster: FakeCluster) -> None:
    env = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "a", "optional": True}}}]
    volumes = [{"name": "ca", "configMap": {"name": "kube-root-ca.crt"}}]
    assert applied(cluster, job({"env": env}, volumes=volumes, serviceAccountName="default")).changed


def test_all_that_is_missing_is_said_at_once_with_what_there_is(cluster: FakeCluster) -> None:
    cluster.add(thing("PriorityClass", "hihg", "scheduling.k8s.io/v1"))
    with pytest.raises(ApplyFailed) as caught:
        applied(cluster, job({"image": "Registry/A B"}, priorityClassName="high"))
    said = str(caught.value)
    assert "There are: hihg." in said
    assert "'Registry/A B' is no name of an image" in said


def test_without_the_right_to_look_it_is_a_warning(cluster: FakeCluster) -> None:
    cluster.fail("get", "keys", Forbidden("User dev may not get secrets."))
    report = applied(cluster, job(volumes=[{"name": "v", "secret": {"secretName": "keys"}}]))
    assert report.changed
    assert report.warnings == ["What pods name could not all be checked: User dev may not get secrets."]


def test_a_rerun_without_changes_asks_nothing(cluster: FakeCluster) -> None:
    cluster.add(thing("ServiceAccount", "trainer"))
    applied(cluster, job(serviceAccountName="trainer"))
    cluster.requests.clear()
    assert not applied(cluster, job(serviceAccountName="trainer")).changed
    assert not [one for one in cluster.requests if one.ref.kind == "ServiceAccount"]


def test_objects_without_pods_are_not_judged(cluster: FakeCluster) -> None:
    assert applied(cluster, thing("ConfigMap", "c", spec={"secretRef": {"name": "nope"}})).changed


@pytest.mark.parametrize("name", ["a", "a:1", "localhost:5000/a/b-c__d.e:v1", "[::1]:5000/a", "r.example.com/a@sha256:" + "0" * 64])
def test_names_of_images(cluster: FakeCluster, name: str) -> None:
    assert applied(cluster, job(containers=[{"name": "main", "image": name}])).changed


@pytest.mark.parametrize(
    "name", ["", "A", "a b", "https://r.example.com/a", "a:", "a:-1", "a@sha256:12", "r.example.com/A:1", "a//b", "{{ x }}"]
)
def test_no_names_of_images(cluster: FakeCluster, name: str) -> None:
    with pytest.raises(MusterError, match="is no name of an image"):
        applied(cluster, job(containers=[{"name": "main", "image": name}]))


# Claims


def storage_class(name: str, provisioner: str = "local", *, default: bool = False) -> Manifest:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": annotations},
        "provisioner": provisioner,
    }


def test_a_claim_of_an_unknown_class_is_refused(cluster: FakeCluster) -> None:
    cluster.add(storage_class("fast"))
    said = refusal(cluster, claim(storageClassName="nope"))
    assert "PersistentVolumeClaim default/data would never be bound: there is no StorageClass nope." in said
    assert "There are: fast." in said


def test_a_claim_needs_a_default_class_or_a_volume(cluster: FakeCluster) -> None:
    cluster.default_class = False
    assert "the cluster has no default StorageClass" in refusal(cluster, claim())
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": {}, "status": {"phase": "Available"}}
    cluster.add(volume)
    assert applied(cluster, claim()).changed


def test_volumes_may_name_a_class_that_is_no_object(cluster: FakeCluster) -> None:
    spec = {"storageClassName": "manual"}
    cluster.add(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": spec, "status": {"phase": "Available"}}
    )
    assert applied(cluster, claim(**spec)).changed


def test_disks_of_one_node_are_refused_for_many(cluster: FakeCluster) -> None:
    cluster.add(storage_class("gp3", "ebs.csi.aws.com", default=True))
    assert "StorageClass gp3 makes volumes of EBS, which do not support ReadWriteMany" in refusal(cluster, claim())
    assert applied(cluster, claim(accessModes=["ReadWriteOnce"])).changed


def test_templates_of_claims_are_claims(cluster: FakeCluster) -> None:
    template = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "nope"}}
    servers = thing("StatefulSet", "s", "apps/v1", spec={"template": job()["spec"]["template"], "volumeClaimTemplates": [template]})
    assert "PersistentVolumeClaim default/data-s-0 would never be bound" in refusal(cluster, servers)
    cluster.add(thing("PersistentVolumeClaim", "data-s-0", spec={}))
    assert applied(cluster, servers).changed


def test_a_class_that_an_earlier_task_would_create_counts_in_check_mode(cluster: FakeCluster) -> None:
    promised = Promised(objects={("StorageClass", "", "efs")})
    assert applied(cluster, claim(storageClassName="efs"), check=True, promised=promised).changed


def test_classes_that_may_not_be_listed_are_a_warning(cluster: FakeCluster) -> None:
    cluster.fail("list", "", Forbidden("User dev may not list storageclasses."))
    assert "may not list storageclasses" in applied(cluster, claim(storageClassName="nope")).warnings[0]

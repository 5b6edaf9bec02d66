# SPDX-License-Identifier: GPL-3.0-or-later
"""What is sent for what was written, in which order, and what of it may be seen."""

from __future__ import annotations

import base64
import json
import random
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import revealed
from ansible_collections.muster.ml.plugins.module_utils._kube import order
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import GroupKind, Manifest, Ref, is_made_for
from ansible_collections.muster.ml.plugins.module_utils._kube.prepare import digest, flatten, prepare


def secret(**more: t.Any) -> Manifest:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, **more}


def ready(manifest: Manifest, namespaced: bool = True) -> Manifest:
    return prepare(manifest, owner="o.x", namespaced=namespaced, namespace="ml")


def test_labels_namespace_and_digest_are_added() -> None:
    sent = ready({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"x": "y"}}})
    assert sent["metadata"]["namespace"] == "ml"
    assert sent["metadata"]["labels"] == {"x": "y", "app.kubernetes.io/managed-by": "muster", "muster.ml/owner": "o.x"}
    assert sent["metadata"]["annotations"]["muster.ml/applied"].startswith("2:")


def test_who_manages_an_object_is_what_the_user_wrote() -> None:
    labels = {"app.kubernetes.io/managed-by": "kustomize"}
    sent = ready({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": labels}})
    assert sent["metadata"]["labels"] == {**labels, "muster.ml/owner": "o.x"}


def test_what_a_controller_counts_up_is_not_sent() -> None:
    """kubectl get -o yaml of a Deployment has it, and every rollout would be a conflict."""
    notes = {"deployment.kubernetes.io/revision": "1", "mine": "x"}
    for api_version, kind, kept in (("apps/v1", "Deployment", {"mine"}), ("v1", "ConfigMap", set(notes))):
        sent = ready({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "annotations": notes}})
        assert set(sent["metadata"]["annotations"]) - {"muster.ml/applied"} == kept
    assert set(notes) == {"deployment.kubernetes.io/revision", "mine"}


@pytest.mark.parametrize(
    ("api_version", "kind", "gets"), [("batch/v1", "Job", True), ("v1", "ReplicationController", True), ("apps/v1", "Deployment", False)]
)
def test_our_label_does_not_keep_the_server_from_giving_those_of_the_pods(api_version: str, kind: str, gets: bool) -> None:
    """kubernetes/examples, _archived/https-nginx/nginx-app.yaml: kubectl get rc -l app=nginx finds what has no label of its own."""
    sent = ready(
        {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": {"template": {"metadata": {"labels": {"app": "x"}}}}}
    )
    assert ("app" in sent["metadata"]["labels"]) is gets
    own = ready(
        {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": {"name": "a", "labels": {"b": "c"}},
            "spec": {"template": {"metadata": {"labels": {"app": "x"}}}},
        }
    )
    assert "app" not in own["metadata"]["labels"]


def test_the_record_says_for_whom_and_where_the_object_was_made() -> None:
    sent = ready({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    elsewhere = {**sent, "metadata": {**sent["metadata"], "namespace": "copy"}}
    mirrored = {**sent, "apiVersion": "example.com/v1"}
    assert is_made_for(sent, "o.x")
    assert not any((is_made_for(sent, "o.y"), is_made_for(elsewhere, "o.x"), is_made_for(mirrored, "o.x")))


def test_the_record_holds_for_every_version_of_an_api() -> None:
    sent = ready({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"}})
    assert is_made_for({**sent, "apiVersion": "autoscaling/v1"}, "o.x")


def test_what_was_read_from_a_cluster_asks_for_the_same_as_what_was_sent() -> None:
    """With another owner's label and an old record on it, as in a file that somebody exported."""
    sent = ready({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    exported = json.loads(json.dumps(sent))
    exported["metadata"]["labels"]["muster.ml/owner"] = "o.another"
    exported["metadata"]["annotations"]["muster.ml/not-kept"] = "spec.x"
    assert ready(exported) == sent


def test_what_only_the_server_sets_is_left_out() -> None:
    metadata = {"name": "a", "namespace": "gone", "uid": "1", "resourceVersion": "2", "creationTimestamp": None, "managedFields": []}
    sent = ready({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"x": 1}}, namespaced=False)
    assert set(sent["metadata"]) == {"name", "labels", "annotations"}
    assert "status" not in sent


def test_the_given_manifest_is_not_touched() -> None:
    given_one = secret(stringData={"a": "b"})
    before = json.dumps(given_one)
    ready(given_one)
    assert json.dumps(given_one) == before


def test_string_data_becomes_data() -> None:
    sent = ready(secret(stringData={"a": "hunter2"}, data={"a": "b2xk", "b": "YQ=="}))
    assert "stringData" not in sent
    assert revealed(sent)["data"] == {"a": base64.b64encode(b"hunter2").decode(), "b": "YQ=="}


def test_no_secret_value_is_in_a_digest() -> None:
    """Two Secrets that differ only in values have one digest, so the digest cannot tell them."""
    assert digest(ready(secret(stringData={"a": "1"}))) == digest(ready(secret(stringData={"a": "2"})))
    assert digest(ready(secret(stringData={"a": "1"}))) != digest(ready(secret(stringData={"b": "1"})))


def test_quantities_written_differently_have_one_digest() -> None:
    one, two = ({"kind": "Pod", "metadata": {}, "spec": {"resources": {"limits": {"cpu": cpu}}}} for cpu in ("1", "1000m"))
    assert digest(one) == digest(two)


def test_a_custom_resource_may_mean_anything_by_limits() -> None:
    one, two = (
        {"apiVersion": "x.io/v1", "kind": "Foo", "metadata": {}, "spec": {"limits": {"version": version}}} for version in ("1.10", "1.1")
    )
    assert digest(one) != digest(two)


@pytest.mark.parametrize("namespace", [None, ""])
def test_a_namespace_that_is_left_empty_is_the_default_one(namespace: str | None) -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": namespace}}
    assert ready(manifest)["metadata"]["namespace"] == "ml"


def test_null_is_not_stored_as_a_word() -> None:
    assert revealed(ready(secret(stringData={"password": None})))["data"] == {"password": ""}


def test_lists_are_taken_apart() -> None:
    assert flatten([None, {"kind": "List", "items": [{"kind": "ConfigMapList", "items": [1]}, {"kind": "Playlist"}]}]) == [
        1,
        {"kind": "Playlist"},
    ]


REFS = [
    Ref("v1", "Namespace", "a"),
    Ref("apiextensions.k8s.io/v1", "CustomResourceDefinition", "f.x.io"),
    Ref("rbac.authorization.k8s.io/v1", "Role", "r", "a"),
    Ref("v1", "Secret", "s", "a"),
    Ref("rbac.authorization.k8s.io/v1", "RoleBinding", "r", "a"),
    Ref("apps/v1", "StatefulSet", "w", "a"),
    Ref("x.io/v1", "Foo", "f", "a"),
    Ref("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "h"),
]


def test_waves() -> None:
    kinds = [[ref.kind for ref in wave] for wave in order.waves(REFS)]
    assert kinds == [
        ["Namespace", "CustomResourceDefinition"],
        ["Role"],
        ["Secret", "RoleBinding"],
        ["StatefulSet"],
        ["ValidatingWebhookConfiguration"],
        ["Foo"],
    ]


CORE, RBAC, ADMISSION = "", "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
POD = (CORE, "Pod")
NEEDS = [
    # helm#7159, helm#4884, kapp#514: the first of a pair is deleted, refused or completed otherwise for want of the second.
    ((CORE, "Secret"), (CORE, "ServiceAccount")),
    (POD, (CORE, "ServiceAccount")),
    (POD, ("scheduling.k8s.io", "PriorityClass")),
    (POD, ("node.k8s.io", "RuntimeClass")),
    (POD, (CORE, "LimitRange")),
    (POD, (CORE, "ResourceQuota")),
    (POD, (CORE, "Node")),
    (POD, (ADMISSION, "ValidatingAdmissionPolicyBinding")),
    (POD, ("resource.k8s.io", "ResourceClaim")),
    (POD, ("scheduling.k8s.io", "PodGroup")),
    (("scheduling.k8s.io", "PodGroup"), ("scheduling.k8s.io", "Workload")),
    ((CORE, "PersistentVolumeClaim"), (CORE, "LimitRange")),
    ((CORE, "PersistentVolumeClaim"), (CORE, "ResourceQuota")),
    ((CORE, "PersistentVolumeClaim"), (CORE, "PersistentVolume")),
    ((CORE, "PersistentVolumeClaim"), ("storage.k8s.io", "StorageClass")),
    ((CORE, "PersistentVolumeClaim"), ("storage.k8s.io", "VolumeAttributesClass")),
    ((CORE, "Service"), (CORE, "ResourceQuota")),
    ((CORE, "Service"), ("networking.k8s.io", "ServiceCIDR")),
    ((CORE, "Endpoints"), (CORE, "Service")),
    (("networking.k8s.io", "IPAddress"), (CORE, "Service")),
    (("networking.k8s.io", "Ingress"), ("networking.k8s.io", "IngressClass")),
    ((RBAC, "RoleBinding"), (RBAC, "Role")),
    ((RBAC, "RoleBinding"), (RBAC, "ClusterRole")),
    ((RBAC, "ClusterRoleBinding"), (RBAC, "ClusterRole")),
    ((ADMISSION, "ValidatingAdmissionPolicyBinding"), (ADMISSION, "ValidatingAdmissionPolicy")),
    ((ADMISSION, "ValidatingAdmissionPolicyBinding"), (CORE, "ConfigMap")),
    ((ADMISSION, "MutatingAdmissionPolicyBinding"), (ADMISSION, "MutatingAdmissionPolicy")),
    ((ADMISSION, "ValidatingWebhookConfiguration"), ("apps", "Deployment")),
    ((ADMISSION, "MutatingWebhookConfiguration"), (CORE, "Service")),
    (("apiregistration.k8s.io", "APIService"), ("apps", "Deployment")),
    (("autoscaling", "HorizontalPodAutoscaler"), ("apps", "StatefulSet")),
    (("flowcontrol.apiserver.k8s.io", "FlowSchema"), ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration")),
    (("x.io", "Foo"), ("apiextensions.k8s.io", "CustomResourceDefinition")),
    (("x.io", "Foo"), (ADMISSION, "MutatingWebhookConfiguration")),
    ((CORE, "ConfigMap"), (CORE, "Namespace")),
    (("trainer.kubeflow.org", "TrainJob"), ("trainer.kubeflow.org", "TrainingRuntime")),
]


@pytest.mark.parametrize(("needy", "needed"), NEEDS)
def test_what_an_object_needs_goes_before_it(needy: GroupKind, needed: GroupKind) -> None:
    assert order.wave_of(needed) < order.wave_of(needy)


def test_a_custom_kind_with_a_known_name_is_custom() -> None:
    for group in ("apps.kruise.io", "x.io"):
        assert order.wave_of((group, "Namespace")) == order.wave_of((group, "Secret")) == order.WAVE_CUSTOM


@given(st.lists(st.sampled_from(REFS), unique=True), st.randoms(use_true_random=False))
def test_waves_lose_nothing_and_do_not_depend_on_the_given_order(refs: list[Ref], shuffle: random.Random) -> None:
    mixed = list(refs)
    shuffle.shuffle(mixed)
    assert [set(wave) for wave in order.waves(refs)] == [set(wave) for wave in order.waves(mixed)]
    assert sorted(ref for wave in order.waves(refs) for ref in wave) == sorted(refs)
    assert [set(wave) for wave in order.waves(refs, reverse=True)] == [set(wave) for wave in order.waves(refs)][::-1]


def test_a_gateway_kind_is_custom_although_its_group_looks_built_in() -> None:
    assert order.wave_of(("gateway.networking.k8s.io", "Gateway")) == order.WAVE_CUSTOM

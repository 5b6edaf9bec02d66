# SPDX-License-Identifier: GPL-3.0-or-later
"""Inputs of public bug reports of other tools, beside `kubectl apply --server-side`, which is the judge wherever it has an answer."""

import contextlib
import json
import time
import typing as t
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from faults.conftest import KUBECONFIG, run_apply

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import revealed
from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref, ref_of
from ansible_collections.muster.ml.plugins.module_utils._manifests.merge import strategic_merge
from differential.conftest import ask
from differential.objects import GROUP as OTHER_GROUP
from differential.objects import definition

SPACE, OWNER = "differential-reports", "differential.reports"
WIDE = "differential-reports"
"""The name of what has no namespace."""
RBAC, REGISTRATION = "rbac.authorization.k8s.io/v1", "admissionregistration.k8s.io/v1"
GROUP = "reports.muster.ml"
# Two of the kinds have only the name of a by-product of Kubernetes.
CRDS = [json.loads(json.dumps(definition(kind, ("v1",))).replace(OTHER_GROUP, GROUP)) for kind in ("Gadget", "Event", "EndpointSlice")]
APPLY = ("apply", "--server-side", "-f", "-")


@pytest.fixture(autouse=True)
def space(cluster: HttpCluster) -> Iterator[None]:
    for item in [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}, *CRDS]:
        cluster.apply(item, dry_run=False, manager="ground")
    yield
    for kind, group in WIDE_KINDS:
        cluster.delete(Ref(group, kind, WIDE), dry_run=False)
    cluster.delete(Ref("v1", "Namespace", SPACE), dry_run=False)
    deadline = time.monotonic() + 180
    while cluster.get(Ref("v1", "Namespace", SPACE)):
        assert time.monotonic() < deadline, "the namespace does not go"
        time.sleep(0.2)


WIDE_KINDS = [("ClusterRole", RBAC), ("PriorityClass", "scheduling.k8s.io/v1"), ("RuntimeClass", "node.k8s.io/v1"),
              ("MutatingAdmissionPolicy", REGISTRATION), ("MutatingAdmissionPolicyBinding", REGISTRATION)]  # fmt: skip


def made(api_version: str, kind: str, name: str = "x", /, **content: t.Any) -> Manifest:
    wide = (kind, api_version) in WIDE_KINDS
    metadata = {"name": WIDE} if wide else {"name": name, "namespace": SPACE}
    return {"apiVersion": api_version, "kind": kind, **content, "metadata": {**metadata, **content.get("metadata", {})}}


def apply(*objects: Manifest, kubeconfig: Path = KUBECONFIG, **options: t.Any) -> dict[str, t.Any]:
    return run_apply(kubeconfig, list(objects), owner=OWNER, namespace=SPACE, **options)


def applied(*objects: Manifest, **options: t.Any) -> list[str]:
    """What it did to each object."""
    result = apply(*objects, **options)
    assert not result.get("failed"), result["msg"]
    return [item["action"] for item in result["objects"]]


def live(cluster: HttpCluster, item: Manifest) -> Manifest:
    found = cluster.get(ref_of(item))
    assert found
    return t.cast(Manifest, revealed(found))


def by_kubectl(kubectl: str, item: Manifest, *words: str) -> None:
    ask(kubectl, *(words or ("create", "-f", "-")), input=json.dumps(item))


def patched(kubectl: str, item: Manifest, patch: t.Any, how: str = "json") -> None:
    resource = f"{item['kind']}.{ref_of(item).group}".rstrip(".")
    ask(kubectl, "patch", resource, item["metadata"]["name"], "-n", SPACE, f"--type={how}", "-p", json.dumps(patch))


def config(**data: str) -> Manifest:
    return made("v1", "ConfigMap", data=data)


def pod_template(**spec: t.Any) -> Manifest:
    return {"metadata": {"labels": {"app": "x"}}, "spec": spec}


def workload(kind: str, container: Manifest | None = None, /, **spec: t.Any) -> Manifest:
    template = pod_template(containers=[{"name": "c", "image": "registry.invalid/a", **(container or {})}])
    more = {"serviceName": "x"} if kind == "StatefulSet" else {}
    return made("apps/v1", kind, spec={"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": template, **more, **spec})


def service(*ports: Manifest) -> Manifest:
    return made("v1", "Service", spec={"ports": [{"name": f"p{index}", **port} for index, port in enumerate(ports)]})


def ingress(**backend: t.Any) -> Manifest:
    return made("networking.k8s.io/v1", "Ingress", spec={"defaultBackend": backend})


def gadget(**spec: t.Any) -> Manifest:
    return made(f"{GROUP}/v1", "Gadget", spec=spec)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (config(python="3.10"), config(python="3.1")),
        (config(size="1024Mi"), config(size="1Gi")),
        (gadget(timeout="1.0"), gadget(timeout="1")),
        (gadget(free={"on": 1}), gadget(free={"on": True})),
        (workload("Deployment", {"args": ["1.10"]}), workload("Deployment", {"args": ["1.1"]})),
        (made("v1", "ConfigMap", metadata={"labels": {"v": "1.10"}}), made("v1", "ConfigMap", metadata={"labels": {"v": "1.1"}})),
        # An empty value is one wherever the API server stores it.
        (config(b="1"), config(a="", b="1")),
        (made("v1", "ServiceAccount"), made("v1", "ServiceAccount", automountServiceAccountToken=False)),
        (made("policy/v1", "PodDisruptionBudget", spec={"maxUnavailable": 1}),
         made("policy/v1", "PodDisruptionBudget", spec={"maxUnavailable": 1, "selector": {}})),
        (gadget(size=1), gadget(size=1, free={})),
    ],
)  # fmt: skip
def test_text_that_only_means_the_same_number_differs(kubectl: str, theirs: Manifest, ours: Manifest) -> None:
    by_kubectl(kubectl, theirs)
    assert "differs in" in apply(ours)["msg"]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (workload("Deployment", {"resources": {"limits": {"cpu": "1000m"}}}),
         workload("Deployment", {"resources": {"limits": {"cpu": 1}}})),
        (made("v1", "LimitRange", spec={"limits": [{"type": "Container", "max": {"memory": "1Gi"}}]}),
         made("v1", "LimitRange", spec={"limits": [{"type": "Container", "max": {"memory": "1024Mi"}}]})),
        (config(), made("v1", "ConfigMap", data={}, binaryData=None, metadata={"annotations": {}})),
        (config(a="1"), made("v1", "ConfigMap", data={"a": "1"}, binaryData={})),
        (made("v1", "ServiceAccount"), made("v1", "ServiceAccount", imagePullSecrets=[])),
        (service({"port": 53}, {"port": 53, "protocol": "UDP"}), service({"port": 53}, {"port": 53, "protocol": "UDP"})),
    ],
)  # fmt: skip
def test_what_the_api_stores_alike_is_used_as_it_is(kubectl: str, theirs: Manifest, ours: Manifest) -> None:
    by_kubectl(kubectl, theirs)
    assert applied(ours) == ["unchanged"]


TWO = ({"port": 1194}, {"port": 1194, "protocol": "UDP"})
DRIFT: dict[str, tuple[Manifest, t.Any, Callable[[Manifest], t.Any]]] = {
    "a port whose protocol is left out": (service(*TWO), [{"op": "remove", "path": "/spec/ports/0"}], lambda item: item["spec"]["ports"]),
    "it stands last": (service(*reversed(TWO)), [{"op": "remove", "path": "/spec/ports/1"}], lambda item: item["spec"]["ports"]),
    "a port of a container": (
        workload("Deployment", {"ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}]}),
        [{"op": "remove", "path": "/spec/template/spec/containers/0/ports/0"}],
        lambda item: item["spec"]["template"]["spec"]["containers"][0]["ports"],
    ),
    "a key with a default of a definition": (
        gadget(listeners=[{"port": 1}, {"port": 1, "protocol": "UDP"}, {"port": 1, "protocol": "SCTP"}]),
        [{"op": "remove", "path": "/spec/listeners/0"}],
        lambda item: item["spec"]["listeners"],
    ),
    "the order of variables": (
        workload("Deployment", {"env": [{"name": "FOO", "value": "1"}, {"name": "BAR", "value": "$(FOO)"}]}),
        [{"op": "move", "from": "/spec/template/spec/containers/0/env/1", "path": "/spec/template/spec/containers/0/env/0"}],
        lambda item: item["spec"]["template"]["spec"]["containers"][0]["env"],
    ),
    "the order of init containers": (
        workload("StatefulSet", template=pod_template(
            containers=[{"name": "c", "image": "i"}], initContainers=[{"name": "b", "image": "i"}, {"name": "a", "image": "i"}])),
        [{"op": "move", "from": "/spec/template/spec/initContainers/1", "path": "/spec/template/spec/initContainers/0"}],
        lambda item: [one["name"] for one in item["spec"]["template"]["spec"]["initContainers"]],
    ),
    "the order of a list of a custom resource": (
        gadget(listeners=[{"port": 2}, {"port": 1, "protocol": "UDP"}]),
        [{"op": "move", "from": "/spec/listeners/1", "path": "/spec/listeners/0"}],
        lambda item: item["spec"]["listeners"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DRIFT)
def test_drift_in_a_list_is_repaired_as_kubectl_does(kubectl: str, cluster: HttpCluster, case: str) -> None:
    item, patch, part = DRIFT[case]
    assert [applied(item), applied(item)] == [["created"], ["unchanged"]]
    right = part(live(cluster, item))
    patched(kubectl, item, patch)
    assert part(live(cluster, item)) != right
    assert applied(item, check=True) == ["updated"]
    assert applied(item) == ["updated"]
    assert part(live(cluster, item)) == right
    by_kubectl(kubectl, item, *APPLY)
    assert part(live(cluster, item)) == right
    assert applied(item) == ["unchanged"]


def test_a_mutation_is_undone_once_its_policy_is_gone(cluster: HttpCluster) -> None:
    def meddling(item: Manifest) -> bool:
        """Whether the policy works, which takes it some moments."""
        return bool(cluster.apply(item, dry_run=True, manager="probe")["data"]["a"] == "meddled")

    match = {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}]}
    patch = {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'replace', path: '/data/a', value: 'meddled'}]"}}
    policy = made(REGISTRATION, "MutatingAdmissionPolicy", spec={
        "matchConstraints": match, "mutations": [patch], "reinvocationPolicy": "Never", "failurePolicy": "Fail"})  # fmt: skip
    binding = made(REGISTRATION, "MutatingAdmissionPolicyBinding", spec={"policyName": WIDE, "matchResources": {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SPACE}}}})  # fmt: skip
    probe = {**config(a="b"), "metadata": {"name": "probe", "namespace": SPACE}}
    for item in (policy, binding):
        cluster.apply(item, dry_run=False, manager="ground")
    await_true(lambda: meddling(probe))
    assert [applied(config(a="asked")), applied(config(a="asked"))] == [["created"], ["unchanged"]]
    cluster.delete(ref_of(binding), dry_run=False)
    await_true(lambda: not meddling(probe))
    assert [applied(config(a="asked"), check=True), applied(config(a="asked"))] == [["updated"], ["updated"]]
    assert live(cluster, config())["data"] == {"a": "asked"}
    assert applied(config(a="asked")) == ["unchanged"]


def await_true(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_the_rules_of_an_aggregated_role_are_the_controllers(cluster: HttpCluster) -> None:
    select = {"clusterRoleSelectors": [{"matchLabels": {"differential": "reports"}}]}
    role = made(RBAC, "ClusterRole", aggregationRule=select, rules=[])
    part = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": f"{WIDE}-part", "labels": {"differential": "reports"}},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}  # fmt: skip
    try:
        assert applied(role, part) == ["created", "created"]
        await_true(lambda: live(cluster, role).get("rules") == part["rules"])
        assert [applied(role, part), applied(role, part, force_conflicts=True)] == [["unchanged"] * 2] * 2
        assert applied({**role, "metadata": {"name": WIDE, "labels": {"more": "yes"}}}, part) == ["updated", "unchanged"]
        assert live(cluster, role)["rules"] == part["rules"]
    finally:
        cluster.delete(ref_of(part), dry_run=False)


def test_a_label_of_the_maker_is_left_and_bookkeeping_taken(kubectl: str, cluster: HttpCluster) -> None:
    theirs = made("v1", "ConfigMap", data={"a": "1"}, metadata={"labels": {"app.kubernetes.io/managed-by": "Helm"}})
    by_kubectl(kubectl, theirs, "create", "--field-manager=helm", "-f", "-")
    assert applied(config(a="1")) == ["unchanged"]
    assert [applied(config(a="1"), adopt=True), applied(config(a="1"))] == [["updated"], ["unchanged"]]
    assert live(cluster, config())["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"
    for path in ("annotations/muster.ml~1applied", "annotations/muster.ml~1not-kept", "labels/muster.ml~1home"):
        patched(kubectl, config(), [{"op": "add", "path": f"/metadata/{path}", "value": "x"}])
        result = apply(config(a="1"), force_conflicts="home" in path)
        assert not result.get("failed"), result["msg"]
        assert applied(config(a="1")) == ["unchanged"]


@pytest.mark.parametrize("manager", ["kubectl-create", "helm", "OpenAPI-Generator", "a-tool-of-theirs"])
@pytest.mark.parametrize("again", [False, True])
def test_what_is_adopted_loses_what_its_maker_set(kubectl: str, cluster: HttpCluster, manager: str, again: bool) -> None:
    by_kubectl(kubectl, config(keep="1", drop="1"), "create", f"--field-manager={manager}", "-f", "-")
    if again and manager != "a-tool-of-theirs":  # the time of its entry is then a later one
        time.sleep(1.1)
        patched_by(kubectl, manager, {"data": {"drop": "2"}})
    patched_by(kubectl, "kubectl-edit" if manager == "helm" else "somebody", {"metadata": {"annotations": {"note": "x"}}})
    drop = live(cluster, config())["data"]["drop"]
    assert applied(config(keep="1", drop=drop), adopt=True) == ["updated"]
    assert applied(config(keep="1")) == ["updated"]
    assert live(cluster, config())["data"] == {"keep": "1"}


def patched_by(kubectl: str, manager: str, patch: Manifest) -> None:
    ask(kubectl, "patch", "configmap", "x", "-n", SPACE, f"--field-manager={manager}", "--type=merge", "-p", json.dumps(patch))


def test_what_a_backup_brought_back_loses_what_is_not_desired_any_more(kubectl: str, cluster: HttpCluster) -> None:
    assert applied(config(keep="1", drop="1")) == ["created"]
    stored = live(cluster, config())
    removed(cluster, config())
    kept = {key: stored["metadata"][key] for key in ("name", "namespace", "labels", "annotations")}
    by_kubectl(kubectl, {**stored, "metadata": kept}, "create", "--field-manager=velero-server", "-f", "-")
    assert [applied(config(keep="1")), applied(config(keep="1"))] == [["updated"], ["unchanged"]]
    assert live(cluster, config())["data"] == {"keep": "1"}


def test_what_another_controller_set_in_the_first_second_stays(kubectl: str, cluster: HttpCluster) -> None:
    """Without its finalizer nothing would clean up behind a load balancer."""
    by_kubectl(kubectl, config(keep="1"), "create", "--field-manager=helm", "-f", "-")
    patched_by(kubectl, "controller", {"metadata": {"finalizers": ["example.com/a"], "annotations": {"note": "x"}}})
    assert applied(config(keep="1"), adopt=True) == ["updated"]
    assert live(cluster, config())["metadata"]["finalizers"] == ["example.com/a"]
    assert live(cluster, config())["metadata"]["annotations"]["note"] == "x"
    patched_by(kubectl, "controller", {"metadata": {"finalizers": None}})


def test_whose_fields_stay_is_said(kubectl: str) -> None:
    by_kubectl(kubectl, config(keep="1"))
    time.sleep(1.1)
    patched_by(kubectl, "somebody", {"data": {"theirs": "1"}})
    (change,) = apply(config(keep="1"), adopt=True)["objects"]
    assert "data.theirs stays with somebody" in change["reason"]


UNIONS: dict[str, tuple[Manifest, Manifest]] = {
    "strategy": (workload("Deployment"), workload("Deployment", strategy={"type": "Recreate"})),
    "null": (workload("Deployment"), workload("Deployment", strategy={"type": "Recreate", "rollingUpdate": None})),
    "update strategy": (workload("StatefulSet"), workload("StatefulSet", updateStrategy={"type": "OnDelete"})),
    "source of a volume": (
        workload("Deployment", template=pod_template(containers=[{"name": "c", "image": "i"}], volumes=[{"name": "v"}, {"name": "w"}])),
        workload("Deployment", template=pod_template(
            containers=[{"name": "c", "image": "i"}], volumes=[{"name": "v"}, {"name": "w", "configMap": {"name": "x"}}])),
    ),
    "handler of a probe": (workload("Deployment", {"livenessProbe": {"httpGet": {"port": 80}}}),
                           workload("Deployment", {"livenessProbe": {"exec": {"command": ["true"]}}})),
    "backend of an Ingress": (ingress(service={"name": "a", "port": {"number": 80}}),
                              ingress(resource={"apiGroup": "x.io", "kind": "Foo", "name": "a"})),
    "type of a Service": (
        made("v1", "Service", spec={"type": "NodePort", "ports": [{"port": 80}]}),
        made("v1", "Service", spec={"type": "ExternalName", "externalName": "example.com"}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", UNIONS)
def test_a_default_member_of_a_union_is_in_nobodys_way(kubectl: str, cluster: HttpCluster, case: str) -> None:
    before, after = UNIONS[case]
    assert [applied(before), applied(after, check=True), applied(after)] == [["created"], ["updated"], ["updated"]]
    assert applied(after) == ["unchanged"]
    other = made("v1", "ConfigMap", "other")
    assert applied(before, other) == ["updated", "created"]
    assert applied(after, {**other, "data": {"a": "b"}}) == ["updated", "updated"]
    removed(cluster, before)
    by_kubectl(kubectl, before)  # what its maker has set goes with it, which no dry run of an apply knows
    assert applied(after, adopt=True, check=True) == ["updated"]
    assert applied(after, {**other, "data": {"a": "c"}}, adopt=True) == ["updated", "updated"]
    assert applied(after) == ["unchanged"]


_TWO = {"app": "x", "b": "c"}
_LABELLED = {**pod_template(containers=[{"name": "c", "image": "i"}]), "metadata": {"labels": _TWO}}
FIXED: dict[str, tuple[Manifest, ...]] = {
    "PriorityClass": (made("scheduling.k8s.io/v1", "PriorityClass", value=10), made("scheduling.k8s.io/v1", "PriorityClass", value=20)),
    "RuntimeClass": (made("node.k8s.io/v1", "RuntimeClass", handler="a"), made("node.k8s.io/v1", "RuntimeClass", handler="b")),
    "Secret": (made("v1", "Secret", type="Opaque"), made("v1", "Secret", type="example.com/other")),
    "ConfigMap": (made("v1", "ConfigMap", immutable=True, data={"a": "1"}), made("v1", "ConfigMap", immutable=True, data={"a": "2"})),
    "selector": (workload("Deployment"), workload("Deployment", selector={"matchLabels": _TWO}, template=_LABELLED)),
    "RoleBinding": tuple(made(RBAC, "RoleBinding", roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name})
                         for name in ("view", "edit")),
    "completions": tuple(made("batch/v1", "Job", spec={"suspend": True, "completionMode": mode, "completions": 1, "template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}) for mode in ("NonIndexed", "Indexed")),
    "a rule of a definition": (gadget(fixed="a"), gadget(fixed="b")),
}  # fmt: skip


@pytest.mark.parametrize("case", FIXED)
def test_what_cannot_be_changed_is_recreated(cluster: HttpCluster, case: str) -> None:
    before, after = FIXED[case]
    assert applied(before) == ["created"]
    refused = apply(after)
    assert "cannot be changed in place" in refused["msg"]
    assert "recreate" in refused["msg"]
    assert [applied(after, recreate=True, check=True), applied(after, recreate=True)] == [["recreated"], ["recreated"]]
    assert applied(after) == ["unchanged"]
    wrong = apply(config(a="1"), {**after, "metadata": {**after["metadata"], "labels": {"app": "-" * 9}}}, recreate=True)
    assert wrong["failed"]
    assert live(cluster, after)


def test_a_wrong_change_is_no_reason_to_recreate(cluster: HttpCluster) -> None:
    assert applied(workload("Deployment")) == ["created"]
    uid = live(cluster, workload("Deployment"))["metadata"]["uid"]
    for recreate in (False, True):
        assert "The API server refused" in apply(workload("Deployment", replicas=-1), recreate=recreate)["msg"]
    assert live(cluster, workload("Deployment"))["metadata"]["uid"] == uid


@pytest.fixture
def without_list(kubectl: str, cluster: HttpCluster, tmp_path: Path) -> Path:
    """The kubeconfig of a user who may get, create, patch and delete, and list nothing."""
    verbs = ["get", "create", "patch", "delete"]
    rule = {"apiGroups": ["", "apps"], "resources": ["configmaps", "deployments"], "verbs": verbs}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"}
    subject = {"kind": "ServiceAccount", "name": "team", "namespace": SPACE}
    for item in (made("v1", "ServiceAccount", "team"), made(RBAC, "Role", rules=[rule]),
                 made(RBAC, "RoleBinding", roleRef=role, subjects=[subject])):  # fmt: skip
        cluster.apply(item, dry_run=False, manager="ground")
    content = yaml.safe_load(KUBECONFIG.read_text())
    content["users"] = [{"name": "team", "user": {"token": ask(kubectl, "create", "token", "team", "-n", SPACE).strip()}}]
    content["contexts"] = [{"name": "team", "context": {"cluster": content["clusters"][0]["name"], "user": "team", "namespace": SPACE}}]
    path = tmp_path / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump({**content, "current-context": "team"}))
    return path


@pytest.mark.parametrize("kind", ["ConfigMap", "Deployment"])
def test_without_the_right_to_list_each_object_is_read(kubectl: str, cluster: HttpCluster, without_list: Path, kind: str) -> None:
    def numbered(extra: str) -> list[Manifest]:
        one = config(a=extra) if kind == "ConfigMap" else workload("Deployment", {"image": f"registry.invalid/{extra}"})
        return [{**one, "metadata": {"name": f"x{index}", "namespace": SPACE}} for index in range(6)]

    given: dict[str, t.Any] = {"kubeconfig": without_list, "wait": True, "wait_timeout": 180}
    by_kubectl(kubectl, listed(*numbered("1")), "--kubeconfig", str(without_list), *APPLY)
    theirs = [plain(live(cluster, item)) for item in numbered("1")]
    removed(cluster, *numbered("1"))
    assert applied(*numbered("1"), **given) == ["created"] * 6
    assert [plain(live(cluster, item)) for item in numbered("1")] == theirs
    assert applied(*numbered("1"), **given) == ["unchanged"] * 6
    assert applied(*numbered("2"), **given) == ["updated"] * 6
    # Whether pods use a ConfigMap cannot be known without the right to list pods.
    assert applied(*numbered("2"), **given, state="absent") == [{"ConfigMap": "kept", "Deployment": "deleted"}[kind]] * 6


@pytest.mark.parametrize("ours", [True, False])
def test_by_products_of_known_controllers_keep_no_namespace(kubectl: str, cluster: HttpCluster, ours: bool) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{SPACE}-own"}}
    assert applied(space) in (["created"], ["unchanged"])

    def inside(kind: str, name: str, api_version: str = "v1", **content: t.Any) -> None:
        item = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": f"{SPACE}-own"}, **content}
        cluster.apply(item, dry_run=False, manager="controller")

    for name in ("istio-ca-root-cert", "openshift-service-ca.crt", "of-the-user"):
        inside("ConfigMap", name)
    inside("ServiceAccount", "builder")
    inside(
        "RoleBinding",
        "system:image-pullers",
        RBAC,
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    )
    if not ours:  # kubectl asks for nothing
        by_kubectl(kubectl, space, "delete", "--wait", "-f", "-")
        assert cluster.get(ref_of(space)) is None
        return
    removal: dict[str, t.Any] = {"definition": None, "namespaces": [f"{SPACE}-own"], "state": "absent", "delete_data": True, "wait": True}
    assert "of-the-user" in str(apply(**removal)["objects"])
    done = apply(**removal, ignore_users_of=["ConfigMap/of-the-*"])
    assert [item["action"] for item in done["objects"]] == ["deleted"], done
    assert cluster.get(ref_of(space)) is None


def test_base64_of_several_lines_is_the_same_secret() -> None:
    wrapped = "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFh\nYWE=\n"
    for item in (made("v1", "Secret", data={"a": wrapped}), made("v1", "ConfigMap", binaryData={"a": wrapped})):
        assert [applied(item), applied(item)] == [["created"], ["unchanged"]]


def test_a_list_of_a_kind_says_the_kind_of_its_items(kubectl: str) -> None:
    items = [{"metadata": {"name": name, "namespace": SPACE}} for name in ("a", "b")]
    listing = {"apiVersion": "v1", "kind": "ConfigMapList", "items": items}
    by_kubectl(kubectl, listing, *APPLY, "--dry-run=server")
    assert applied(listing) == ["created", "created"]


def test_what_cannot_be_applied_is_said_at_once() -> None:
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {"name": "x"}, "spec": {}}
    for item in (review, made("authorization.k8s.io/v1", "LocalSubjectAccessReview", spec={}), made("v1", "Binding", target={"name": "x"})):
        for check in (False, True):
            began = time.monotonic()
            said = apply(item, check=check)["msg"]
            assert "cannot be applied" in said
            assert time.monotonic() - began < 25  # it was 30 s, then "not found"


def test_an_element_that_is_there_twice_is_named() -> None:
    for part in ({"env": [{"name": "A", "value": "1"}] * 2}, {"ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "TCP"}]}):
        result = apply(workload("Deployment", part))
        assert "duplicate" in result["msg"]
        assert "once" in result["msg"]


HELM = {"labels": {"app.kubernetes.io/managed-by": "Helm"}}
# Row of the reports: what is there, what is applied, options, and how it ends: "same" for both, refused by "both", or by "kubectl" only.
BESIDE: dict[str, tuple[Manifest | None, Manifest, dict[str, t.Any], str]] = {
    "A1": (None, made(f"{GROUP}/v1", "Event", spec={"size": 1}), {}, "same"),
    "A1, another": (None, made(f"{GROUP}/v1", "EndpointSlice", spec={"size": 1}), {}, "same"),
    "A3": (config(python="3.10"), config(python="3.1"), {}, "both"),
    "A6": (made("v1", "ConfigMap", metadata=HELM), made("v1", "ConfigMap", metadata=HELM), {"adopt": True}, "same"),
    "A7": (config(keep="1", drop="1"), config(keep="1"), {"adopt": True}, "same but for what kubectl leaves: drop"),
    "A9": (workload("Deployment"), workload("Deployment", strategy={"type": "Recreate"}), {"adopt": True}, "kubectl"),
    "A11": (made("v1", "ConfigMap", immutable=True, data={"a": "1"}), config(a="2"), {"adopt": True, "recreate": True}, "kubectl"),
    "A13": (None, workload("Deployment", {"env": [{"name": "A", "value": True}]}), {}, "both"),
    "A16a": (None, made("v1", "Secret", data={"a": "YWFh\nYWFh\n"}), {}, "same"),
    "A16b": (None, made("example.com/v1", "Nothing"), {"check": True}, "both"),
    "A16b, another": (None, made("extensions/v1beta1", "Deployment", spec={}), {"check": True}, "both"),
    "A16g": (None, made("authorization.k8s.io/v1", "LocalSubjectAccessReview", spec={}), {}, "both"),
    "A16i": (None, workload("Deployment", {"env": [{"name": "A", "value": "1"}] * 2}), {}, "both"),
}  # fmt: skip


@pytest.mark.parametrize("row", BESIDE)
def test_the_end_is_that_of_kubectl(kubectl: str, cluster: HttpCluster, row: str) -> None:
    before, item, options, end = BESIDE[row]
    words = (*APPLY, "--dry-run=server") if options.get("check") else APPLY
    content: list[t.Any] = []
    for ours in (False, True):
        if before:
            by_kubectl(kubectl, before)
        if ours:
            result = apply(item, **options)
            assert (result.get("failed", False)) == (end == "both"), result
        elif end in ("both", "kubectl"):
            with pytest.raises(AssertionError):
                by_kubectl(kubectl, item, *words)
        else:
            by_kubectl(kubectl, item, *words)
        if before or end != "both":
            content.append({part: live(cluster, item).get(part) for part in ("data", "spec")})
            removed(cluster, item)
    if end in ("same", "both"):
        assert content[:1] == content[1:]
    elif end.startswith("same"):
        assert set(content[0]["data"]) - set(content[1]["data"]) == {end.rsplit(" ", 1)[1]}


def listed(*items: Manifest) -> Manifest:
    return {"apiVersion": "v1", "kind": "List", "items": list(items)}


def plain(item: Manifest) -> Manifest:
    """What was asked for of an object that is stored."""
    return {part: item[part] for part in ("data", "spec", "rules", "type", "value") if part in item}


def removed(cluster: HttpCluster, *items: Manifest) -> None:
    for item in items:
        cluster.delete(ref_of(item), dry_run=False, grace_period_seconds=0)
    await_true(lambda: not any(cluster.get(ref_of(item)) for item in items))


def numbered_tokens() -> list[Manifest]:
    note = "kubernetes.io/service-account.name"
    tokens = [made("v1", "Secret", f"t{number}", type="kubernetes.io/service-account-token", metadata={
        "annotations": {note: f"a{number}"}}) for number in range(10)]  # fmt: skip
    return [*(made("v1", "ServiceAccount", f"a{number}") for number in range(10)), *tokens]


NEEDED: dict[str, Callable[[], list[Manifest]]] = {
    "A2": numbered_tokens,
    "A2, another": lambda: [
        made("scheduling.k8s.io/v1", "PriorityClass", value=10), made("v1", "ServiceAccount"),
        made("v1", "LimitRange", spec={"limits": [{"type": "Container", "default": {"cpu": "1"}}]}),
        made("v1", "Pod", spec={"priorityClassName": WIDE, "serviceAccountName": "x", "nodeSelector": {"a": "nowhere"},
                                "automountServiceAccountToken": False, "containers": [{"name": "c", "image": "registry.invalid/a"}]}),
    ],
}  # fmt: skip


@pytest.mark.parametrize("row", NEEDED)
def test_what_others_of_its_list_need_comes_first_in_any_order(kubectl: str, cluster: HttpCluster, row: str) -> None:
    """kubectl sends objects in the order of its list, which has to be the right one."""
    items, found = NEEDED[row](), list[list[Manifest]]()
    for ours in (False, True):
        if ours:
            assert applied(*reversed(items)) == ["created"] * len(items)
        else:
            by_kubectl(kubectl, listed(*items), *APPLY)
        secrets = [item for item in items if item["kind"] == "Secret"]
        await_true(lambda: all("token" in (live(cluster, item).get("data") or {}) for item in secrets))  # noqa: B023
        found.append([{**plain(live(cluster, item)), "data": None} for item in items])
        if ours:
            assert applied(*items) == ["unchanged"] * len(items)
        removed(cluster, *reversed(items))
    assert found[0] == found[1]


def test_who_sets_a_field_after_us_has_it_as_with_kubectl(kubectl: str, cluster: HttpCluster) -> None:
    """A5: what a controller owns by design is left to it; kubectl stops. What a client has set since then stops both."""
    label = {"differential": "reports-beside"}
    part = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": f"{WIDE}-part", "labels": label},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}  # fmt: skip
    role = made(RBAC, "ClusterRole", aggregationRule={"clusterRoleSelectors": [{"matchLabels": label}]}, rules=[])
    for item, ours in ((role, False), (role, True), (workload("Deployment"), False), (workload("Deployment"), True)):
        run = apply if ours else lambda *items: by_kubectl(kubectl, listed(*items), *APPLY)
        is_role = item is role
        run(item, part)
        if is_role:
            await_true(lambda: live(cluster, role).get("rules") == part["rules"])
        else:
            ask(kubectl, "scale", "deployment", "x", "-n", SPACE, "--replicas=3")
        if ours:
            again = apply(item, part)
            assert bool(again.get("failed")) is not is_role
            assert is_role or "spec.replicas (set by kubectl" in again["msg"]
        else:
            with pytest.raises(AssertionError, match="conflict"):
                run(item, part)
        assert is_role or live(cluster, item)["spec"]["replicas"] == 3
        removed(cluster, item, part)


POD = {"containers": [{"name": "main", "image": "a", "args": ["x"], "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                       "ports": [{"containerPort": 1}]}], "tolerations": [{"key": "k"}], "nodeSelector": {"x": "1"},
       "volumes": [{"name": "v", "emptyDir": {}}]}  # fmt: skip


@pytest.mark.parametrize(
    "patch",
    [
        {"containers": [{"name": "main", "env": [{"$patch": "replace"}, {"name": "ONLY", "value": "x"}]}]},
        {"containers": [{"name": "main", "env": [{"$patch": "delete", "name": "A"}, {"name": "C", "value": "3"}]}]},
        {"containers": [{"$patch": "delete", "name": "main"}, {"name": "other", "image": "b"}]},
        {"containers": [{"name": "main", "args": ["y"], "$setElementOrder/env": [{"name": "B"}, {"name": "A"}]}]},
        {"volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}]},
        {"nodeSelector": {"$patch": "replace", "y": "2"}},
        {"nodeSelector": {"$patch": "delete"}},
        {"nodeSelector": None, "tolerations": []},
        {"nodeSelector": {"$patch": "remove"}},
        {"containers": [{"name": "main", "ports": [{"containerPort": 1, "name": "p"}, {"containerPort": 2}]}]},
    ],
)  # fmt: skip
def test_overrides_are_the_strategic_merge_patch_of_kubectl(kubectl: str, patch: Manifest) -> None:
    item = made("v1", "Pod", spec=POD)
    try:
        theirs = ask(kubectl, "patch", "--local", "--type=strategic", f"--patch={json.dumps({'spec': patch})}", "-f", "-", "-o", "json",
                     input=json.dumps(item))  # fmt: skip
    except AssertionError:
        with pytest.raises(InvalidInput):
            strategic_merge(item, {"spec": patch})
        return
    merged = strategic_merge(item, {"spec": patch})
    assert comparable(merged["spec"], patch) == comparable(json.loads(theirs)["spec"], patch)


def comparable(value: t.Any, patch: Manifest) -> t.Any:
    """Without the maps and lists that Kubernetes' types leave out where they are empty; new elements stand last here, and first there."""
    if isinstance(value, dict):
        found = {key: comparable(one, patch) for key, one in value.items()}
        return {key: one for key, one in found.items() if one not in ({}, [], None) or key == "emptyDir"}
    if isinstance(value, list):
        return sorted((comparable(one, patch) for one in value), key=str if "$setElementOrder" not in str(patch) else lambda _one: 0)
    return value


@pytest.mark.parametrize("taken", [True, False])
def test_plain_names_in_a_kubeconfig_are_taken_as_by_kubectl(kubectl: str, tmp_path: Path, taken: bool) -> None:
    """Of those that kubectl refuses as numbers or booleans we take ``n`` and ``1e3``, which PyYAML reads as text."""
    content = yaml.safe_load(KUBECONFIG.read_text())
    for part in ("clusters", "users", "contexts"):
        content[part][0]["name"] = "NAME"
    content["contexts"][0]["context"] |= {"cluster": "NAME", "user": "NAME"}
    path = tmp_path / "kubeconfig"
    path.touch(mode=0o600)
    for name in ("10:20", "=", "<<", "2001-12-14", "12:30:45", ".") if taken else ("1_000", "yes", "0x1F", ".5", "1.10"):
        path.write_text(yaml.safe_dump({**content, "current-context": "NAME"}).replace("NAME", name))
        with contextlib.nullcontext() if taken else pytest.raises(AssertionError, match="of type string"):
            ask(kubectl, "--kubeconfig", str(path), "get", "--raw", "/version")
        result = apply(config(a=name), kubeconfig=path)
        assert bool(result.get("failed")) is not taken, (name, result)


@pytest.mark.parametrize("bad", ["a: 1\n\tb: 2\n", '{"kind": "ConfigMap", ', "kind: [\n", "just text\n", "kind: ConfigMap\n"])
def test_a_bad_file_of_a_folder_is_named_as_by_kubectl(kubectl: str, cluster: HttpCluster, tmp_path: Path, bad: str) -> None:
    """kubectl has applied the other files by then; here nothing is written."""
    for name, text in (("a.yaml", json.dumps(config(a="1"))), ("b.yaml", bad)):
        (tmp_path / name).write_text(text)
    with pytest.raises(AssertionError, match=r"b\.yaml"):
        ask(kubectl, "apply", "--server-side", "-f", str(tmp_path))
    result = apply(src=str(tmp_path))
    assert "b.yaml" in result["msg"]
    assert not list(cluster.list("v1", "ConfigMap", SPACE, f"muster.ml/owner={OWNER}"))

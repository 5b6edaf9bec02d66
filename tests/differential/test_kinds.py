# SPDX-License-Identifier: GPL-3.0-or-later
"""What real controllers make of the order of objects, and of kinds that only have the name of one of Kubernetes."""

import typing as t
from collections.abc import Iterator

import pytest
from faults.conftest import KUBECONFIG, run_apply

from ansible_collections.muster.ml.plugins.module_utils._core.clock import SYSTEM_CLOCK, Deadline
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import revealed
from ansible_collections.muster.ml.plugins.module_utils._core.waiting import fixed_interval, wait_for
from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref

SPACE, OWNER, GROUP = "differential-kinds", "differential.kinds", "differential-calendar.example.com"
PAIRS = 40
LATE_S = 180.0
"""What controllers may need on a busy machine."""
EVENTS: Manifest = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"events.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "events", "singular": "event", "kind": "Event", "listKind": "EventList"},
        "versions": [{
            "name": "v1", "served": True, "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        }],
    },
}  # fmt: skip


def thing(api_version: str, kind: str, name: str, **more: t.Any) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": SPACE}, **more}


def space() -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}


def apply(*objects: Manifest, owner: str = OWNER, **options: t.Any) -> dict[str, t.Any]:
    return run_apply(KUBECONFIG, list(objects), owner=owner, namespace=SPACE, **options)


def remove(**options: t.Any) -> dict[str, t.Any]:
    return run_apply(KUBECONFIG, t.cast("list[Manifest]", None), owner=OWNER, namespace=SPACE, state="absent", **options)


@pytest.fixture(autouse=True)
def ground(cluster: HttpCluster) -> Iterator[None]:
    yield
    cluster.delete(Ref("v1", "Namespace", SPACE), dry_run=False)
    cluster.delete(Ref("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"events.{GROUP}"), dry_run=False)

    def observe() -> tuple[None, str | None]:
        return None, "the namespace is there" if cluster.get(Ref("v1", "Namespace", SPACE)) else None

    wait_for(observe, goal="namespace gone", deadline=Deadline(LATE_S, SYSTEM_CLOCK), pause=fixed_interval(0.5, SYSTEM_CLOCK))


def test_no_token_is_lost_for_want_of_its_account(cluster: HttpCluster) -> None:
    """helm#7159, kapp#514: of 40 pairs in this order, sent at once, the controller deleted 30 tokens that were reported as created."""
    notes = {"kubernetes.io/service-account.name": "a{}"}
    tokens = [thing("v1", "Secret", f"t{number}", type="kubernetes.io/service-account-token") for number in range(PAIRS)]
    for number, token in enumerate(tokens):
        token["metadata"]["annotations"] = {key: value.format(number) for key, value in notes.items()}
    accounts = [thing("v1", "ServiceAccount", f"a{number}") for number in range(PAIRS)]
    made = apply(space(), *tokens, *accounts)
    assert not made.get("failed"), made

    def observe() -> tuple[int, str | None]:
        found = [item for item in cluster.list("v1", "Secret", SPACE) if revealed(item.get("data") or {}).get("token")]
        return len(found), None if len(found) == PAIRS else f"{len(found)} of {PAIRS} have a token"

    wait_for(observe, goal="tokens", deadline=Deadline(LATE_S, SYSTEM_CLOCK), pause=fixed_interval(0.5, SYSTEM_CLOCK))
    assert not apply(space(), *tokens, *accounts)["changed"]


def test_a_claim_gets_the_volume_and_the_limits_of_its_list(cluster: HttpCluster) -> None:
    limits = thing("v1", "LimitRange", "l", spec={"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]})
    claim = thing("v1", "PersistentVolumeClaim", "c", spec={
        "accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "2Gi"}},
    })  # fmt: skip
    refused = apply(space(), claim, limits)
    assert refused["failed"]
    assert "maximum storage usage per PersistentVolumeClaim is 1Gi" in refused["msg"]


@pytest.mark.parametrize("check", [True, False])
def test_what_only_has_the_name_of_a_by_product_keeps_its_namespace(cluster: HttpCluster, check: bool) -> None:
    assert not apply(space(), EVENTS, thing("v1", "ConfigMap", "ours")).get("failed")
    slices = thing("discovery.k8s.io/v1", "EndpointSlice", "database", addressType="IPv4", endpoints=[], ports=[])
    for item in (thing(f"{GROUP}/v1", "Event", "party"), slices):
        cluster.apply(item, dry_run=False, manager="somebody")
    found = remove(delete_data=True, check=check)
    kept = {item["kind"]: item["reason"] for item in found["objects"] if item["action"] == "kept"}
    assert kept["Namespace"] == "EndpointSlice database, Event party in it would be deleted with it", found
    assert cluster.get(Ref(f"{GROUP}/v1", "Event", "party", SPACE))


def test_what_kubernetes_makes_of_a_service_does_not_keep_its_namespace(cluster: HttpCluster) -> None:
    service = thing("v1", "Service", "s", spec={"selector": {"a": "b"}, "ports": [{"port": 80}]})
    assert not apply(space(), service).get("failed")

    def observe() -> tuple[None, str | None]:
        made = [cluster.list("v1", "Endpoints", SPACE), cluster.list("discovery.k8s.io/v1", "EndpointSlice", SPACE)]
        return None, None if all(made) else "nothing was made of the Service"

    wait_for(observe, goal="endpoints", deadline=Deadline(LATE_S, SYSTEM_CLOCK), pause=fixed_interval(0.2, SYSTEM_CLOCK))
    removed = remove(delete_data=True)
    assert {item["kind"]: item["action"] for item in removed["objects"]} == {"Service": "deleted", "Namespace": "deleted"}


@pytest.mark.parametrize("kind", ["secret", "Secrets", "v1 secrets"])
def test_a_misspelt_kind_is_refused_as_by_the_run(kind: str) -> None:
    item = {**thing("v1", "Secret", "s", stringData={"password": "hunter2-hunter2"}), "kind": kind}
    for check in (True, False):
        found = run_apply(KUBECONFIG, [item], owner=OWNER, check=check)
        assert found["msg"].startswith(f"The cluster does not serve {kind} (v1), did you mean Secret (v1)?")
        assert "hunter2" not in str(found)

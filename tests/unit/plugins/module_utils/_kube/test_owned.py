# SPDX-License-Identifier: GPL-3.0-or-later
"""How everything of an owner is found: each object once, and what could not be looked at is told."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Forbidden, ServerError, Unreachable
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import LABEL_OWNER, ServedKind
from ansible_collections.muster.ml.plugins.module_utils._kube.owned import owned_objects
from ansible_collections.muster.ml.tests.unit.fakes.applied import OWNER, apply, config, space
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.mirrored import MIRRORS, Mirrored


def found(cluster: FakeCluster) -> tuple[list[str], list[str]]:
    objects, warnings, _others = owned_objects(cluster, OWNER, namespaces=["default"], parallel=1)
    return [f"{item['kind']} {item['metadata']['name']}" for item in objects], warnings


@pytest.mark.parametrize("order", [[*MIRRORS, ...], [..., *MIRRORS]], ids=["mirrors-first", "mirrors-last"])
def test_an_object_that_two_apis_show_is_found_once_and_as_what_it_was_made(order: list[t.Any]) -> None:
    cluster = Mirrored(order)
    apply(cluster, space())
    assert found(cluster) == (["Namespace ml"], [])


def test_what_a_controller_made_with_a_copy_of_our_label_is_left_out(cluster: FakeCluster) -> None:
    apply(cluster, config("a"))
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "u"}]
    metadata = {"name": "p", "namespace": "default", "labels": {LABEL_OWNER: OWNER}, "ownerReferences": owners}
    cluster.add({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}, manager="a-controller")
    assert found(cluster) == (["ConfigMap a"], [])


def test_only_apis_outside_kubernetes_own_are_cut_short(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A big cluster needs its time to list Secrets; a server that is down needs nobody's."""
    cluster.kinds_served["slow.example.com/v1", "Slow"] = ServedKind("slows", True)
    apply(cluster, config("a"))
    late = FakeCluster()
    late.fail("list", "", *[Unreachable("does not answer: timed out.")] * 9)
    monkeypatch.setattr(cluster, "within", lambda _seconds: late)
    assert found(cluster) == (["ConfigMap a"], ["Objects of kind Slow are left out: does not answer: timed out."])
    assert {request.ref.kind for request in late.requests} == {"Slow"}


def test_a_kind_of_kubernetes_itself_that_cannot_be_listed_is_an_error(cluster: FakeCluster) -> None:
    cluster.refuse("list", ServerError("boom"), "Secret")
    with pytest.raises(ServerError, match="boom"):
        found(cluster)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("ClusterRole", ["Objects of kind ClusterRole are left out: nobody may."]),
        (
            "Secret",
            [
                "Only namespaces default were searched: the user may not list objects of all namespaces.",
                "Objects of kind Secret in namespace default are left out: nobody may.",
            ],
        ),
    ],
)
def test_each_kind_that_may_not_be_listed_is_told(cluster: FakeCluster, kind: str, told: list[str]) -> None:
    apply(cluster, config("a"))
    cluster.refuse("list", Forbidden("nobody may."), kind)
    assert found(cluster) == (["ConfigMap a"], told)

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes are meant, what they lack, and waiting for it."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import (
    Forbidden,
    Gone,
    InvalidInput,
    ServerError,
    Unreachable,
    WaitTimeout,
)
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context
from ansible_collections.muster.ml.plugins.module_utils._kube import nodes
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Event, Manifest, Ref
from ansible_collections.muster.ml.plugins.modules import node_info

GPU = "nvidia.com/gpu"


def node(name: str, gpus: str | None = None, ready: str = "True", **labels: str) -> Manifest:
    allocatable = {"cpu": "8", **({GPU: gpus} if gpus else {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "allocatable": allocatable,
            "nodeInfo": {"kubeletVersion": "v1.36.3"},
            "conditions": [{"type": "Ready", "status": ready, "message": "kubelet stopped posting node status."}],
        },
    }


@pytest.mark.parametrize(
    ("selector", "fits"),
    [
        ("accelerator", True),
        ("!accelerator", False),
        ("accelerator=a100", True),
        ("accelerator==a100", True),
        ("accelerator!=a100", False),
        ("accelerator=t4", False),
        ("accelerator, !other", True),
        ("accelerator,other", False),
    ],
)
def test_selectors(selector: str, fits: bool) -> None:
    assert nodes.matches({"accelerator": "a100"}, selector) is fits


def test_set_based_selectors_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"'a in \(b'"):
        nodes.matches({}, "a in (b, c)")


def test_any_selector_is_enough_and_lacking_nodes_are_named(cluster: t.Any) -> None:
    cluster.add(node("a", "8", gke="x"), node("b", nfd="x"), node("c", "0", nfd="x"), node("plain"))
    found, _version = nodes.read(cluster, nodes.NodeQuery(selectors=["gke", "nfd=x"], resource=GPU))
    assert found.lacking == ["b", "c"]
    assert found.pending_reason == "2 of 3 nodes report no allocatable nvidia.com/gpu: b, c."


def test_too_few_nodes(cluster: t.Any) -> None:
    cluster.add(node("a", "8", gke="x"))
    found, _version = nodes.read(cluster, nodes.NodeQuery(selectors=["gke"], resource=GPU, minimum_nodes=2))
    assert found.pending_reason == "1 nodes fit (gke), 2 are needed."


def test_wait_ends_as_soon_as_the_node_reports(cluster: t.Any) -> None:
    cluster.add(node("a", gke="x"))
    watches: list[float] = []
    watch = cluster.watch

    def report_during_watch(*args: t.Any, timeout: float, **kwargs: t.Any) -> t.Iterator[Event]:
        watches.append(timeout)
        cluster.set_status(Ref("v1", "Node", "a"), {"allocatable": {GPU: "8"}})
        return t.cast("t.Iterator[Event]", watch(*args, timeout=timeout, **kwargs))

    cluster.watch = report_during_watch
    said: list[str] = []
    query = nodes.NodeQuery(selectors=["gke"], resource=GPU)
    found = nodes.wait(cluster, query, timeout=60, progress=said.append, clock=cluster.clock)
    assert found.pending_reason is None
    assert watches == [10]
    assert cluster.clock.now < 1001
    assert said == []  # it was there before anybody would have read it


def test_wait_gives_up_and_names_the_node(cluster: t.Any) -> None:
    cluster.add(node("a", "8", gke="x"), node("b", gke="x"))
    query = nodes.NodeQuery(selectors=["gke"], resource=GPU)
    with pytest.raises(WaitTimeout, match=r"not as required after 60 s\. Last seen: 1 of 2 nodes .*: b\.") as caught:
        nodes.wait(cluster, query, timeout=60, progress=lambda _: None, clock=cluster.clock)
    assert caught.value.last_seen == ["1 of 2 nodes report no allocatable nvidia.com/gpu: b"]


@pytest.mark.parametrize("error", [Gone("410"), Unreachable("It does not answer."), ServerError("It fails.")])
@pytest.mark.parametrize("verb", ["list", "watch"])
def test_wait_goes_on_after_trouble(cluster: t.Any, error: Exception, verb: str) -> None:
    cluster.add(node("a", gke="x"))
    query = nodes.NodeQuery(selectors=["gke"], resource=GPU)
    watch = cluster.watch

    def watched(*args: t.Any, **options: t.Any) -> t.Iterator[Event]:
        if cluster.clock.now > 1003:
            cluster.set_status(Ref("v1", "Node", "a"), {"allocatable": {GPU: "8"}})
        yield from watch(*args, **options)

    cluster.watch = watched
    cluster.fail(verb, "", error, error)
    cluster.fail("watch", "", *[error] * 2)
    assert nodes.wait(cluster, query, timeout=60, progress=lambda _: None, clock=cluster.clock).pending_reason is None


@pytest.mark.parametrize("error", [Gone("410"), ServerError("It fails.")])
def test_wait_in_endless_trouble_ends_at_its_deadline(cluster: t.Any, error: Exception) -> None:
    cluster.add(node("a", gke="x"))
    cluster.fail("watch", "", *[error] * 999)
    query = nodes.NodeQuery(selectors=["gke"], resource=GPU)
    with pytest.raises(WaitTimeout, match=r"report no allocatable nvidia\.com/gpu: a\."):
        nodes.wait(cluster, query, timeout=20, progress=lambda _: None, clock=cluster.clock)
    assert cluster.clock.now <= 1021


def test_a_server_that_comes_back_may_forbid_for_a_moment_what_it_allowed(cluster: t.Any) -> None:
    cluster.add(node("a", gke="x"))
    query, listed = nodes.NodeQuery(selectors=["gke"], resource=GPU), cluster.list
    answers: list[Exception | None] = [None, Unreachable("refused"), Forbidden("not yet"), Forbidden("not yet")]

    def restarting(*args: t.Any) -> t.Any:
        answer = answers.pop(0) if answers else cluster.set_status(Ref("v1", "Node", "a"), {"allocatable": {GPU: "8"}})
        if answer:
            raise answer
        return listed(*args)

    cluster.list = restarting
    assert nodes.wait(cluster, query, timeout=60, progress=lambda _: None, clock=cluster.clock).pending_reason is None


def test_a_right_that_is_missing_from_the_start_is_told_at_once(cluster: t.Any) -> None:
    cluster.fail("list", "", Forbidden("User x may not list nodes."))
    with pytest.raises(Forbidden):
        nodes.wait(cluster, nodes.NodeQuery(), timeout=60, progress=lambda _: None, clock=cluster.clock)
    assert cluster.clock.now == 1000


def test_wait_that_gives_up_in_trouble_tells_both(cluster: t.Any) -> None:
    cluster.add(node("a", gke="x"))
    cluster.fail("watch", "", *[Unreachable("It does not answer.")] * 99)
    query = nodes.NodeQuery(selectors=["gke"], resource=GPU)
    with pytest.raises(WaitTimeout, match=r"report no allocatable nvidia\.com/gpu: a\. It does not answer\."):
        nodes.wait(cluster, query, timeout=20, progress=lambda _: None, clock=cluster.clock)


def test_module_reads_only(cluster: t.Any) -> None:
    cluster.add(node("b", "8", type="kwok"), node("a", ready="Unknown"))
    params = {"label_selectors": [], "resource": GPU, "minimum_nodes": 0, "wait": False, "wait_timeout": 1}
    result = node_info.execute(Context(params=params, check=False, connect=lambda: cluster))
    assert [entry["name"] for entry in result["nodes"]] == ["a", "b"]
    assert result["nodes"][0]["reason"] == "kubelet stopped posting node status."
    assert [entry["simulated"] for entry in result["nodes"]] == [False, True]
    assert (result["changed"], result["lacking"], result["server_version"]) == (False, ["a"], "v1.36.3")
    assert cluster.writes == []

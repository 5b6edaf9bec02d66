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
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref
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
    found, _version = nodes.read(cluster, nodes.NodeQuery(selectors=["gke"], resource=GPU, min_nodes=2))
    assert found.pending_reason == "1 nodes fit (gke), 2 are needed."


def reports_during(cluster: t.Any, verb: str, *, after: float = 0) -> None:
    """Node a has the resource from a request on, or from the first one after this time."""

    def report(_ref: Ref) -> None:
        if cluster.clock.now > after:
            cluster.set_status(Ref("v1", "Node", "a"), {"allocatable": {GPU: "8"}})

    cluster.before(verb, report, once=False)


def test_wait_ends_as_soon_as_the_node_reports(cluster: t.Any) -> None:
    cluster.add(node("a", gke="x"))
    reports_during(cluster, "watch")
    said: list[str] = []
    query = nodes.NodeQuery(selectors=["gke"], resource=GPU)
    found = nodes.wait(cluster, query, timeout=60, progress=said.append)
    assert found.pending_reason is None
    assert [request.verb for request in cluster.requests].count("watch") == 1
    assert cluster.clock.now < 1001
    assert said == []  # it was there before anybody would have read it


def test_wait_gives_up_and_names_the_node(cluster: t.Any) -> None:
    cluster.add(node("a", "8", gke="x"), node("b", gke="x"))
    query = nodes.NodeQuery(selectors=["gke"], resource=GPU)
    with pytest.raises(WaitTimeout, match=r"not as required after 60 s\. Last seen: 1 of 2 nodes .*: b\.") as caught:
        nodes.wait(cluster, query, timeout=60, progress=lambda _: None)
    assert caught.value.last_seen == ["1 of 2 nodes report no allocatable nvidia.com/gpu: b"]


@pytest.mark.parametrize("error", [Gone("410"), Unreachable("It does not answer."), ServerError("It fails.")])
@pytest.mark.parametrize("verb", ["list", "watch"])
def test_wait_goes_on_after_trouble(cluster: t.Any, error: Exception, verb: str) -> None:
    cluster.add(node("a", gke="x"))
    query = nodes.NodeQuery(selectors=["gke"], resource=GPU)
    reports_during(cluster, "watch", after=1003)
    cluster.fail(verb, "", error, error)
    cluster.fail("watch", "", *[error] * 2)
    assert nodes.wait(cluster, query, timeout=60, progress=lambda _: None).pending_reason is None


@pytest.mark.parametrize("error", [Gone("410"), ServerError("It fails.")])
def test_wait_in_endless_trouble_ends_at_its_deadline(cluster: t.Any, error: Exception) -> None:
    cluster.add(node("a", gke="x"))
    cluster.fail("watch", "", *[error] * 999)
    query = nodes.NodeQuery(selectors=["gke"], resource=GPU)
    with pytest.raises(WaitTimeout, match=r"report no allocatable nvidia\.com/gpu: a\."):
        nodes.wait(cluster, query, timeout=20, progress=lambda _: None)
    assert cluster.clock.now <= 1021


def test_a_server_that_comes_back_may_forbid_for_a_moment_what_it_allowed(cluster: t.Any) -> None:
    cluster.add(node("a", gke="x"))
    query = nodes.NodeQuery(selectors=["gke"], resource=GPU)
    cluster.before("watch", lambda _ref: cluster.fail("list", "", Unreachable("refused"), Forbidden("not yet"), Forbidden("not yet")))
    reports_during(cluster, "list", after=1004)
    assert nodes.wait(cluster, query, timeout=60, progress=lambda _: None).pending_reason is None


def test_a_right_that_is_missing_from_the_start_is_told_at_once(cluster: t.Any) -> None:
    cluster.fail("list", "", Forbidden("User x may not list nodes."))
    with pytest.raises(Forbidden):
        nodes.wait(cluster, nodes.NodeQuery(), timeout=60, progress=lambda _: None)
    assert cluster.clock.now == 1000


def test_wait_that_gives_up_in_trouble_tells_both(cluster: t.Any) -> None:
    cluster.add(node("a", gke="x"))
    cluster.fail("watch", "", *[Unreachable("It does not answer.")] * 99)
    query = nodes.NodeQuery(selectors=["gke"], resource=GPU)
    with pytest.raises(WaitTimeout, match=r"report no allocatable nvidia\.com/gpu: a\. It does not answer\."):
        nodes.wait(cluster, query, timeout=20, progress=lambda _: None)


def test_module_reads_only(cluster: t.Any) -> None:
    cluster.add(node("b", "8", type="kwok"), node("a", ready="Unknown"))
    params = {"label_selectors": [], "resource_name": GPU, "min_nodes": 0, "plugin": None, "wait": False, "wait_timeout": 1}
    result = node_info.execute(Context(params=params, check=False, connect=lambda: cluster))
    assert [entry["name"] for entry in result["nodes"]] == ["a", "b"]
    assert result["nodes"][0]["reason"] == "kubelet stopped posting node status."
    assert [entry["simulated"] for entry in result["nodes"]] == [False, True]
    assert (result["changed"], result["lacking"], result["server_version"]) == (False, ["a"], "v1.36.3")
    assert cluster.writes == []


PLUGIN = nodes.Plugin(namespace="kube-system", label_selector="app=plugin")
NO_DRIVER = """\
E1125 17:13:09.402185   11918 factory.go:113] Incompatible strategy detected auto
E1125 17:13:09.402195   11918 factory.go:114] If this is a GPU node, did you configure the NVIDIA Container Toolkit?
I1125 17:13:09.402212   11918 main.go:385] No devices found. Waiting indefinitely.

"""


def plugin_pod(name: str, on: str, state: Manifest, init: Manifest | None = None) -> Manifest:
    statuses = {"containerStatuses": [{"name": "plugin", "state": state}]}
    if init:
        statuses["initContainerStatuses"] = [{"name": "install", "state": init}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "kube-system", "labels": {"app": "plugin"}},
        "spec": {"nodeName": on},
        "status": {"phase": "Running", **statuses},
    }


def reason_and_hint(cluster: t.Any) -> tuple[str, str]:
    query = nodes.NodeQuery(selectors=["gke"], resource=GPU, plugin=PLUGIN)
    with pytest.raises(WaitTimeout) as caught:
        nodes.wait(cluster, query, timeout=20, progress=lambda _: None)
    return caught.value.last_seen[0], caught.value.hint or ""


def test_the_plugin_of_a_node_without_a_driver_tells_the_cause_and_the_next_step(cluster: t.Any) -> None:
    cluster.add(node("a", gke="x"), plugin_pod("plugin-1", "a", {"running": {}}))
    cluster.log_lines["kube-system", "plugin-1"] = NO_DRIVER
    reason, hint = reason_and_hint(cluster)
    assert reason == (
        "1 of 1 nodes report no allocatable nvidia.com/gpu: a. "
        "On a pod plugin-1 is Running: its log ends with: No devices found. Waiting indefinitely"
    )
    assert "Install the driver and the NVIDIA Container Toolkit" in hint
    assert "delete the pods" in hint


@pytest.mark.parametrize("state", [{"waiting": {"reason": "CrashLoopBackOff"}}, {"running": {}}], ids=["waits", "runs"])
def test_a_plugin_that_fails_and_one_that_is_missing_are_told(cluster: t.Any, state: Manifest) -> None:
    failing = plugin_pod("plugin-1", "b", state)
    failing["status"]["containerStatuses"][0]["lastState"] = {"terminated": {"exitCode": 1}}
    cluster.add(node("a", gke="x"), node("b", gke="x"), failing)
    cluster.log_lines["kube-system", "plugin-1"] = "E1 no socket\n"
    reason, hint = reason_and_hint(cluster)
    said = reason.partition(": a, b. On a there is no pod with app=plugin. On b pod plugin-1 is Running: ")[2]
    assert said.removeprefix("CrashLoopBackOff after ") == "Error (exit status 1); its log ends with: E1 no socket"
    assert hint.startswith("Look at the pods")


def test_of_an_installer_the_container_that_has_not_succeeded_is_asked(cluster: t.Any) -> None:
    asked: list[str | None] = []
    cluster.logs = lambda *_where, container, **_options: asked.append(container) or ""
    done = {"terminated": {"exitCode": 0}}
    cluster.add(node("a", gke="x"), node("b", gke="x"))
    cluster.add(plugin_pod("plugin-1", "a", {"waiting": {}}, {"running": {}}), plugin_pod("plugin-2", "b", {}, done))
    nodes.read(cluster, nodes.NodeQuery(selectors=["gke"], resource=GPU, plugin=PLUGIN))
    assert asked == ["install", "plugin"]


@pytest.mark.parametrize("verb", ["list", "logs"])
def test_what_the_plugin_says_may_be_forbidden(cluster: t.Any, verb: str) -> None:
    cluster.add(node("a", gke="x"), plugin_pod("plugin-1", "a", {"running": {}}))
    cluster.log_lines["kube-system", "plugin-1"] = NO_DRIVER
    cluster.refuse(verb, Forbidden("not you"), "Pod")
    found, _version = nodes.read(cluster, nodes.NodeQuery(selectors=["gke"], resource=GPU, plugin=PLUGIN))
    assert (found.pending_reason or "").startswith("1 of 1 nodes report no allocatable nvidia.com/gpu: a.")


def test_nodes_that_offer_it_need_no_plugin(cluster: t.Any) -> None:
    cluster.add(node("a", "8", gke="x"))
    found, _version = nodes.read(cluster, nodes.NodeQuery(selectors=["gke"], resource=GPU, plugin=PLUGIN))
    assert (found.pending_reason, list(found.said)) == (None, [])
    assert [request.ref.kind for request in cluster.requests] == ["Node"]


def test_too_few_nodes_are_a_matter_of_labels(cluster: t.Any) -> None:
    cluster.add(node("a", "8"))
    query = nodes.NodeQuery(selectors=["gke"], resource=GPU, min_nodes=1, plugin=PLUGIN)
    with pytest.raises(WaitTimeout) as caught:
        nodes.wait(cluster, query, timeout=20, progress=lambda _: None)
    assert "Label the nodes" in (caught.value.hint or "")

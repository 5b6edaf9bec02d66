# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""triton_server: what is refused, what is made, what goes and what stays."""

from __future__ import annotations

import copy
import typing as t

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Resource
from ansible_collections.muster.ml.plugins.module_utils._manifests.monitoring import MONITORS, RULES
from ansible_collections.muster.ml.plugins.modules import triton_server
from ansible_collections.muster.ml.tests.unit.fakes import pods
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster

KINDS = {*MONITORS, *RULES.values()}
BUCKET = {"model_repository": "gs://example-models/live"}
VOLUME = {"model_repository": "/models", "storage": {"claim_name": "models", "mount_path": "/models", "size": "1Gi"}}


def run(cluster: FakeCluster, *, check: bool = False, **params: t.Any) -> dict[str, t.Any]:
    given = ArgumentSpecValidator(triton_server.ARGUMENT_SPEC, **triton_server.CONSTRAINTS).validate(
        copy.deepcopy({"namespace": "default", **params})
    )
    assert not given.error_messages
    context = Context(
        params=given.validated_parameters, check=check, connect=lambda: cluster, warn=lambda _said: None, diff=True
    )
    return triton_server.execute(context)


def actions(result: dict[str, t.Any]) -> dict[str, str]:
    return {f"{entry['kind']}/{entry['name']}": entry["action"] for entry in result["objects"]}


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({**BUCKET, "image": "nvcr.io/nvidia/tritonserver"}, "is not pinned"),
        ({"model_repository": "models"}, "is not a place for models"),
        ({**BUCKET, "load_models": ["a"]}, "loads every model"),
        ({**BUCKET, "resources": {"limits": {"nvidia.com/gpu": 0.5}}}, "is not a whole number"),
        ({**BUCKET, "args": ["--load-model=a"]}, "Use option load_models"),
    ],
)
def test_nonsense_is_refused_before_anybody_is_asked(params: dict[str, t.Any], told: str) -> None:
    cluster = FakeCluster()
    with pytest.raises(InvalidInput) as caught:
        run(cluster, **params)
    assert told in f"{caught.value.message} {caught.value.hint}"
    assert not cluster.requests


def test_a_place_for_models_is_required_only_for_a_server() -> None:
    for state, errors in (("present", 1), ("absent", 0)):
        given = ArgumentSpecValidator(triton_server.ARGUMENT_SPEC, **triton_server.CONSTRAINTS).validate(
            {"state": state}
        )
        assert len(given.error_messages) == errors


def test_a_server_is_made_and_a_second_run_changes_nothing() -> None:
    cluster = FakeCluster()
    planned = run(cluster, check=True, **BUCKET)
    assert planned["changed"]
    assert not cluster.writes
    made = run(cluster, **BUCKET)
    kinds = ("Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceAccount")
    assert set(actions(made)) == {f"{kind}/triton" for kind in kinds} == set(actions(planned))
    assert made["endpoints"] == {
        "http": "triton.default.svc:8000",
        "grpc": "triton.default.svc:8001",
        "metrics": "triton.default.svc:8002",
    }
    assert set(actions(run(cluster, **BUCKET)).values()) == {"unchanged"}


def test_what_is_not_wanted_any_more_goes() -> None:
    cluster = FakeCluster()
    run(cluster, **BUCKET)
    changed = actions(run(cluster, **BUCKET, network_policy=False, service_account_name="mine"))
    assert (changed["NetworkPolicy/triton"], changed["ServiceAccount/triton"]) == ("deleted", "deleted")


@pytest.mark.parametrize(
    ("served", "asked", "made"),
    [
        ([], "auto", set()),
        (["ServiceMonitor"], "auto", {"ServiceMonitor", "PrometheusRule"}),
        (["ServiceMonitor", "PodMonitoring"], "auto", {"PodMonitoring", "Rules"}),
        (["PodMonitoring"], "none", set()),
    ],
)
def test_metrics_are_collected_by_what_the_cluster_has(served: list[str], asked: str, made: set[str]) -> None:
    cluster = FakeCluster()
    for kind in served:
        for name in (kind, RULES[kind]):
            cluster.kinds_served[MONITORS[kind], name] = Resource(f"{name.lower()}s", True)
    result = run(cluster, **BUCKET, monitoring=asked, alerts={"queue_time_ms": 20}, dashboard=True)
    assert {name.partition("/")[0] for name in actions(result)} & KINDS == made
    assert actions(result)["ConfigMap/triton-dashboard"] == "created"
    assert set(
        actions(run(cluster, **BUCKET, monitoring=asked, alerts={"queue_time_ms": 20}, dashboard=True)).values()
    ) == {"unchanged"}
    gone = actions(run(cluster, **BUCKET, monitoring="none"))
    deleted = {name.partition("/")[0] for name, action in gone.items() if action == "deleted"}
    assert deleted == {"ConfigMap", *made}


def test_without_alerts_there_are_no_rules() -> None:
    cluster = FakeCluster()
    for name in ("ServiceMonitor", "PrometheusRule"):
        cluster.kinds_served[MONITORS["ServiceMonitor"], name] = Resource(f"{name.lower()}s", True)
    assert {name.partition("/")[0] for name in actions(run(cluster, **BUCKET))} & KINDS == {"ServiceMonitor"}


def test_an_account_of_somebody_else_stays() -> None:
    cluster = FakeCluster()
    metadata = {"name": "triton", "namespace": "default"}
    cluster.add({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    assert "ServiceAccount/triton" not in actions(run(cluster, **BUCKET, service_account_name="triton"))


def test_a_claim_stays_and_goes_by_its_own_word_later() -> None:
    cluster = FakeCluster()
    run(cluster, **VOLUME)
    removed = actions(run(cluster, state="absent"))
    assert removed.pop("PersistentVolumeClaim/models") == "kept"
    assert set(removed.values()) == {"deleted"}
    assert actions(run(cluster, state="absent", delete_data=True))["PersistentVolumeClaim/models"] == "deleted"


LOG = """\
E1125 03:11:03.559508 1 server.cc:241] "CudaDriverHelper has not been initialized."
error: creating server: Invalid argument - load failed for model 'broken': RuntimeError: these weights are of another model

At:
  /models/broken/1/model.py(11): initialize
"""


def test_a_server_that_does_not_get_ready_is_told_in_its_own_words() -> None:
    cluster = FakeCluster()
    with pytest.raises(WaitTimeout, match="Deployment default/triton") as caught:
        run(cluster, **BUCKET, wait=True, wait_timeout=1)
    assert "The server says" not in caught.value.message
    labels = {"app.kubernetes.io/name": "triton", "app.kubernetes.io/instance": "triton"}
    cluster.add(pods.pod("triton-a", labels=labels, conditions=[{"type": "Ready", "status": "True"}]))
    cluster.add(pods.pod("triton-b", labels=labels))
    cluster.log_lines["default", "triton-a"] = "error: of a pod that is ready"
    with pytest.raises(WaitTimeout) as caught:
        run(cluster, **BUCKET, wait=True, wait_timeout=1)
    assert "The server says" not in caught.value.message
    cluster.log_lines["default", "triton-b"] = LOG
    with pytest.raises(WaitTimeout, match=r"of another model$"):
        run(cluster, **BUCKET, wait=True, wait_timeout=1)

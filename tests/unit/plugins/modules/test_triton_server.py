# SPDX-License-Identifier: GPL-3.0-or-later
"""triton_server: what is refused, what is made, what goes and what stays."""

from __future__ import annotations

import copy
import typing as t

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Conflict, InvalidInput, WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref, ServedKind
from ansible_collections.muster.ml.plugins.module_utils._manifests.monitoring import MONITORS, RULES
from ansible_collections.muster.ml.plugins.module_utils._systems.triton.failing import said_by_server
from ansible_collections.muster.ml.plugins.modules import triton_server
from ansible_collections.muster.ml.tests.unit.fakes import pods, tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.tasks import actions
from ansible_collections.muster.ml.tests.unit.fakes.triton import RECORDED

KINDS = {*MONITORS, *RULES.values()}
BUCKET = {"model_repository": "gs://example-models/live"}
VOLUME = {"model_repository": "/models", "storage": {"claim_name": "models", "mount_path": "/models", "size": "1Gi"}}


def run(cluster: FakeCluster, *, check: bool = False, warned: list[str] | None = None, **params: t.Any) -> dict[str, t.Any]:
    warn = ([] if warned is None else warned).append
    return tasks.run(triton_server, cluster, {"namespace": "default", **params}, check=check, warn=warn, diff=True)


def test_a_place_for_models_is_required_only_for_a_server() -> None:
    for state, errors in (("present", 1), ("absent", 0)):
        given = ArgumentSpecValidator(triton_server.ARGUMENT_SPEC, **triton_server.CONSTRAINTS).validate({"state": state})
        assert len(given.error_messages) == errors


def test_a_server_tells_its_addresses(cluster: FakeCluster) -> None:
    made = run(cluster, **BUCKET)
    assert made["endpoints"] == {"http": "triton.default.svc:8000", "grpc": "triton.default.svc:8001", "metrics": "triton.default.svc:8002"}


def test_what_is_not_wanted_any_more_goes(cluster: FakeCluster) -> None:
    run(cluster, **BUCKET)
    cluster.add({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "mine", "namespace": "default"}})
    changed = actions(run(cluster, **BUCKET, network_policy=False, service_account_name="mine"))
    assert (changed["NetworkPolicy/triton"], changed["ServiceAccount/triton"]) == ("deleted", "deleted")


# Shows row 003.8.
@pytest.mark.parametrize(
    ("served", "asked", "made"),
    [
        ([], "auto", set()),
        (["ServiceMonitor"], "auto", {"ServiceMonitor", "PrometheusRule"}),
        (["ServiceMonitor", "PodMonitoring"], "auto", {"PodMonitoring", "Rules"}),
        (["PodMonitoring"], "none", set()),
    ],
)
def test_metrics_are_collected_by_what_the_cluster_has(cluster: FakeCluster, served: list[str], asked: str, made: set[str]) -> None:
    for kind in served:
        for name in (kind, RULES[kind]):
            cluster.kinds_served[MONITORS[kind], name] = ServedKind(f"{name.lower()}s", True)
    result = run(cluster, **BUCKET, monitoring=asked, alerts={"queue_time_ms": 20})
    assert {name.partition("/")[0] for name in actions(result)} & KINDS == made
    monitors = [item for key, item in cluster.objects.items() if made & set(MONITORS) & set(key)]
    assert [item["spec"]["endpoints"][0]["interval"] for item in monitors] == ["15s"] * bool(made)
    assert set(actions(run(cluster, **BUCKET, monitoring=asked, alerts={"queue_time_ms": 20})).values()) == {"unchanged"}
    gone = actions(run(cluster, **BUCKET, monitoring="none"))
    deleted = {name.partition("/")[0] for name, action in gone.items() if action == "deleted"}
    assert deleted == made


def test_without_alerts_there_are_no_rules(cluster: FakeCluster) -> None:
    for name in ("ServiceMonitor", "PrometheusRule"):
        cluster.kinds_served[MONITORS["ServiceMonitor"], name] = ServedKind(f"{name.lower()}s", True)
    assert {name.partition("/")[0] for name in actions(run(cluster, **BUCKET))} & KINDS == {"ServiceMonitor"}


def test_an_account_of_somebody_else_stays(cluster: FakeCluster) -> None:
    metadata = {"name": "triton", "namespace": "default"}
    cluster.add({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    assert "ServiceAccount/triton" not in actions(run(cluster, **BUCKET, service_account_name="triton"))


def test_a_claim_stays_and_goes_by_its_own_word_later(cluster: FakeCluster) -> None:
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


# Each is the end of the log of tritonserver 2.51.0 with --model-control-mode=explicit and --load-model.
CUDA = 'E1126 23:12:41.019196 28959 server.cc:241] "CudaDriverHelper has not been initialized."\n'
NOT_THERE = (
    "E1126 23:12:41.019459 28959 model_repository_manager.cc:1415] "
    "\"failed to poll model 'nope': model not found in any model repository.\"\n"
    "error: creating server: Internal - failed to load all models\n"
)
NO_CONFIG = (
    "E1126 23:12:42.931189 29041 model_repository_manager.cc:1460] \"Poll failed for model directory 'wrongcfg': failed to read text proto "
    'from /models/wrongcfg/config.pbtxt"\nerror: creating server: Internal - failed to load all models\n'
)
BROKEN = (
    "E1126 23:12:42.673180 29016 model_lifecycle.cc:642] \"failed to load 'broken' version 1: Internal: RuntimeError: these weights are of "
    'another model\\n\\nAt:\\n  /models/broken/1/model.py(1): <module>\\n"\n'
)


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (NOT_THERE, "failed to poll model 'nope': model not found in any model repository"),
        (NO_CONFIG, "Poll failed for model directory 'wrongcfg': failed to read text proto from /models/wrongcfg/config.pbtxt"),
        (
            BROKEN + NOT_THERE,
            "failed to load 'broken' version 1: Internal: RuntimeError: these weights are of another model; failed to poll model 'nope': "
            "model not found in any model repository",
        ),
        ("error: creating server: Internal - failed to load all models\n", "Internal - failed to load all models"),
        (
            "E0712 13:09:16.608702 1 model_repository_manager.cc:1551] Invalid argument: ensemble test contains models that are not"
            " available: resize\nerror: creating server: Internal - failed to load all models\n",  # triton-inference-server/server#4630
            "Invalid argument: ensemble test contains models that are not available: resize",
        ),
        (
            # With --log-format=ISO8601 (log_format of server 24.08).
            "2024-08-12T07:25:44Z E 1 model_lifecycle.cc:654] \"failed to load 'a' version 1: Internal: no\"\n"
            "error: creating server: Internal - failed to load all models\n",
            "failed to load 'a' version 1: Internal: no",
        ),
        # triton-inference-server/server#2402
        (
            "tritonserver: error while loading shared libraries: libnvrtc.so.11.1: cannot open shared object file",
            "error while loading shared libraries: libnvrtc.so.11.1: cannot open shared object file",
        ),
        ("error: creating server: Internal - failed to stat file /models/sub/dir\n", "Internal - failed to stat file /models/sub/dir"),
    ],
)
def test_each_model_has_its_reason(log: str, said: str) -> None:
    assert said_by_server(CUDA + log) == said


@pytest.mark.parametrize("place", ["/models", "/models/"])
def test_the_folder_of_the_models_is_made_on_a_new_claim(place: str) -> None:
    def first(folder: str) -> list[t.Any]:
        cluster = FakeCluster()
        run(cluster, model_repository=folder, storage={"claim_name": "models", "size": "1Gi", "mount_path": "/models"})
        found = cluster.stored("Deployment", "triton", "default")
        assert found is not None
        return list(found["spec"]["template"]["spec"].get("initContainers") or [])

    assert first(place) == []
    (made,) = first("/models/team/live")
    assert made["command"] == ["mkdir", "-p", "/models/team/live"]
    assert made["volumeMounts"] == [{"name": "models", "mountPath": "/models"}]


@pytest.mark.parametrize("begun_again", [False, True])
def test_a_server_that_does_not_get_ready_is_told_in_its_own_words(cluster: FakeCluster, begun_again: bool) -> None:
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
    cluster.log_lines["default", "triton-b"] = "" if begun_again else LOG
    cluster.earlier_log_lines["default", "triton-b"] = LOG if begun_again else ""
    with pytest.raises(WaitTimeout, match=r"of another model. Its models are in gs://example-models/live.$"):
        run(cluster, **BUCKET, wait=True, wait_timeout=1)
    cluster.log_lines["default", "triton-b"] = RECORDED["no_backend"]["log"]
    with pytest.raises(WaitTimeout, match=r"library for backend 'vllm'.*Another image has it: .*-vllm-python-py3 has vllm"):
        run(cluster, **BUCKET, wait=True, wait_timeout=1)


@pytest.mark.parametrize(
    ("given", "warns"),
    [
        ({**BUCKET, "model_control_mode": "poll"}, True),
        ({**BUCKET, "model_control_mode": "explicit"}, False),
        ({**VOLUME, "model_control_mode": "poll"}, False),
    ],
)
def test_a_server_that_would_lose_its_models_with_the_store_is_warned_of(given: dict[str, t.Any], warns: bool) -> None:
    warned: list[str] = []
    run(FakeCluster(), **given, warned=warned)
    assert [True for text in warned if "Triton unloads its models until it does" in text] == [True] * warns


def test_a_store_in_the_cluster_that_is_away_is_named(cluster: FakeCluster) -> None:
    """The server says nothing of it for a minute, and then neither its name nor that of the bucket."""

    def told() -> str:
        place = {"model_repository": "s3://http://store.ml.svc:7070/models/live"}
        with pytest.raises(WaitTimeout) as caught:
            run(cluster, **place, wait=True, wait_timeout=1)
        assert "Its models are in s3://http://store.ml.svc:7070/models/live." in caught.value.message
        return caught.value.message

    assert "Service ml/store, which leads to the store of the models, does not exist." in told()
    spec = {"selector": {"app": "store"}, "ports": [{"port": 7070}]}
    cluster.add({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "store", "namespace": "ml"}, "spec": spec})
    away = "The store of the models, Service ml/store, has no pod that is ready."
    assert away in told()
    cluster.add(pods.pod("store-0", namespace="ml", labels={"app": "store"}))
    assert away in told()
    cluster.add(pods.pod("store-1", namespace="ml", labels={"app": "store"}, conditions=[{"type": "Ready", "status": "True"}]))
    assert "no pod that is ready" not in told()


# Autoscaling: the number of replicas belongs to the autoscaler.

SCALED = {**BUCKET, "autoscaling": {"max_replicas": 5}}
BY_HPA = {"manager": "kube-controller-manager", "operation": "Update", "subresource": "scale"}
AUTOSCALER = Ref("autoscaling/v2", "HorizontalPodAutoscaler", "triton", "default")


def deployment(cluster: FakeCluster) -> dict[str, t.Any]:
    found = cluster.stored("Deployment", "triton", "default")
    assert found
    return found


def scaled_by_autoscaler(cluster: FakeCluster, number: int) -> None:
    """As the controller of Kubernetes does it: everybody else loses the field."""
    live = copy.deepcopy(deployment(cluster))
    for entry in live["metadata"]["managedFields"]:
        entry["fieldsV1"].get("f:spec", {}).pop("f:replicas", None)
    live["metadata"]["managedFields"].append({**BY_HPA, "fieldsV1": {"f:spec": {"f:replicas": {}}}})
    live["spec"]["replicas"] = number
    cluster.objects[Ref("apps/v1", "Deployment", "triton", "default").identity] = live


@pytest.mark.parametrize(
    ("autoscaling", "told"),
    [
        ({"max_replicas": 2, "min_replicas": 0}, "no queue to measure"),
        ({"max_replicas": 1, "min_replicas": 2}, "is less than min_replicas, 2"),
        ({"max_replicas": 2, "queue_time_us": 0}, "is too small"),
        ({"max_replicas": 2, "metric": ""}, "it is empty"),
        ({"max_replicas": 2, "behavior": {"scale_down": {}}}, "Did you mean 'scaleDown'?"),
    ],
)
def test_autoscaling_that_cannot_work_is_refused(cluster: FakeCluster, autoscaling: dict[str, t.Any], told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        run(cluster, **BUCKET, autoscaling=autoscaling)
    assert told in f"{caught.value.message} {caught.value.hint}"
    assert not cluster.requests


def test_a_number_of_replicas_by_overrides_is_refused_with_autoscaling() -> None:
    with pytest.raises(InvalidInput, match="what autoscaling changes"):
        run(FakeCluster(), **SCALED, overrides={"spec": {"replicas": 2}})


def test_an_autoscaler_is_made_and_nobody_writes_the_number(cluster: FakeCluster) -> None:
    made = actions(run(cluster, **SCALED))
    assert made["HorizontalPodAutoscaler/triton"] == "created"
    assert "replicas" not in deployment(cluster)["spec"]
    scaled_by_autoscaler(cluster, 3)
    before = len(cluster.writes)
    assert set(actions(run(cluster, **SCALED)).values()) == {"unchanged"}
    assert (len(cluster.writes), deployment(cluster)["spec"]["replicas"]) == (before, 3)


def test_the_number_stays_when_the_autoscaler_gets_it(cluster: FakeCluster) -> None:
    run(cluster, **BUCKET, replicas=3)
    planned = actions(run(cluster, check=True, **SCALED))
    assert deployment(cluster)["spec"]["replicas"] == 3
    made = actions(run(cluster, **SCALED))
    assert (made["Deployment/triton"], made["HorizontalPodAutoscaler/triton"]) == ("updated", "created")
    assert made == planned
    assert deployment(cluster)["spec"]["replicas"] == 3
    assert set(actions(run(cluster, **SCALED)).values()) == {"unchanged"}


def test_the_number_is_within_the_bounds_at_once(cluster: FakeCluster) -> None:
    run(cluster, **BUCKET, replicas=0)
    run(cluster, **SCALED)
    assert deployment(cluster)["spec"]["replicas"] == 1


@pytest.mark.parametrize("number", [3, 4])
def test_the_number_is_taken_back_from_the_autoscaler(cluster: FakeCluster, number: int) -> None:
    run(cluster, **SCALED)
    scaled_by_autoscaler(cluster, 3)
    planned = actions(run(cluster, check=True, **BUCKET, replicas=number))
    assert planned["HorizontalPodAutoscaler/triton"] == "deleted"
    assert deployment(cluster)["spec"]["replicas"] == 3
    run(cluster, **BUCKET, replicas=number)
    assert not cluster.get(AUTOSCALER)
    assert deployment(cluster)["spec"]["replicas"] == number
    assert set(actions(run(cluster, **BUCKET, replicas=number)).values()) == {"unchanged"}
    run(cluster, **BUCKET, replicas=2)
    assert deployment(cluster)["spec"]["replicas"] == 2


def test_the_number_is_taken_back_if_the_autoscaler_never_changed_it(cluster: FakeCluster) -> None:
    run(cluster, **BUCKET, replicas=3)
    run(cluster, **SCALED)
    run(cluster, **BUCKET, replicas=2)
    assert deployment(cluster)["spec"]["replicas"] == 2
    run(cluster, **BUCKET, replicas=4)
    assert deployment(cluster)["spec"]["replicas"] == 4


def test_a_run_that_ended_after_the_autoscaler_was_deleted_is_finished_by_the_next(cluster: FakeCluster) -> None:
    run(cluster, **SCALED)
    scaled_by_autoscaler(cluster, 3)
    cluster.remove(AUTOSCALER)
    run(cluster, **BUCKET, replicas=2)
    assert deployment(cluster)["spec"]["replicas"] == 2


def of_somebody_else(name: str) -> dict[str, t.Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "triton"}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": {"scaleTargetRef": target}}


def test_a_second_autoscaler_is_refused(cluster: FakeCluster) -> None:
    run(cluster, **BUCKET)
    cluster.add(of_somebody_else("theirs"))
    before = len(cluster.writes)
    with pytest.raises(Conflict, match="is scaled by HorizontalPodAutoscaler theirs already"):
        run(cluster, **SCALED)
    assert len(cluster.writes) == before


def test_what_another_autoscaler_or_a_user_has_set_is_not_overwritten(cluster: FakeCluster) -> None:
    run(cluster, **SCALED)
    scaled_by_autoscaler(cluster, 3)
    cluster.remove(AUTOSCALER)
    cluster.add(of_somebody_else("theirs"))
    with pytest.raises(Conflict, match="kube-controller-manager"):
        run(cluster, **BUCKET, replicas=2)
    cluster.remove(Ref("autoscaling/v2", "HorizontalPodAutoscaler", "theirs", "default"))
    deployment(cluster)["metadata"]["managedFields"][-1]["manager"] = "kubectl"
    with pytest.raises(Conflict, match="kubectl"):
        run(cluster, **BUCKET, replicas=2)

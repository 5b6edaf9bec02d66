# SPDX-License-Identifier: GPL-3.0-or-later
"""A PERSIA training on both backends."""

from __future__ import annotations

import copy
import json
import typing as t

import pytest
import yaml

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import changed_keys
from ansible_collections.muster.ml.plugins.module_utils._systems.persia import native, operator, spec
from ansible_collections.muster.ml.plugins.module_utils._systems.persia.spec import PersiaJob, from_params

Golden = t.Callable[..., None]

PARAMS: dict[str, t.Any] = {
    "name": "adult",
    "namespace": "ml",
    "image": "example/persia:1",
    "global_config": {"embedding_worker_config": {"forward_buffer_size": 100}},
    "embedding_config": {"slots_config": {"age": {"dim": 8}}},
    "files": {"train.py": "print('train')\n", "data_loader.py": "print('data')\n"},
    "env": [{"name": "EPOCHS", "value": "3"}],
    "storage": {"claim_name": "adult-shared", "size": "1Gi", "access_modes": None},
    "nn_worker": {"replicas": 2, "nproc_per_node": 1, "entry": "train.py"},
    "dataloader": {"replicas": 1, "entry": "data_loader.py"},
    "embedding_worker": {"replicas": 1},
    "embedding_parameter_server": {"replicas": 2, "resources": {"limits": {"memory": "2Gi"}}},
}


def job(**fields: t.Any) -> PersiaJob:
    """PARAMS with FIELDS; a dict for a group is merged into that group's."""
    params = copy.deepcopy(PARAMS)
    for key, value in fields.items():
        params[key] = {**params[key], **value} if key in params and isinstance(value, dict) else value
    return from_params(params)


def gpus(count: t.Any, **more: t.Any) -> dict[str, t.Any]:
    return {"nn_worker": {"resources": {"limits": {"nvidia.com/gpu": count}}, **more}}


def by_name(objects: list[dict[str, t.Any]]) -> dict[tuple[str, str], dict[str, t.Any]]:
    return {(o["kind"], o["metadata"]["name"]): o for o in objects}


@pytest.fixture
def program_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Golden files, and the hashes in them, do not change with the text of a program."""
    for place in (native, spec):
        monkeypatch.setattr(place, "program", lambda module: f"{module.__name__.rpartition('.')[2]}.py\n")


@pytest.mark.usefixtures("program_by_name")
def test_native(golden: Golden) -> None:
    golden("persia_job_native", native.manifests(job()))


@pytest.mark.usefixtures("program_by_name")
def test_operator(golden: Golden) -> None:
    golden("persia_job_operator", operator.manifests(job(backend="operator", image_pull_policy="IfNotPresent")), native.manifests(job()))


# Shows row 000.5.
@pytest.mark.usefixtures("program_by_name")
def test_seed_scale(golden: Golden) -> None:
    """The numbers of PERSIA's Google Cloud document, which must survive unchanged."""

    def group(replicas: int, cpu: int, memory: str, **more: t.Any) -> dict[str, t.Any]:
        desired = {"cpu": cpu, "memory": memory, **more}
        return {"replicas": replicas, "resources": {"requests": desired, "limits": desired}}

    big = job(
        storage=None,
        metrics={"enabled": False},
        nn_worker={**group(8, 80, "600Gi", **{"nvidia.com/gpu": 8}), "nproc_per_node": 8},
        dataloader=group(240, 1, "12Gi"),
        embedding_worker=group(100, 28, "100Gi"),
        embedding_parameter_server=group(120, 80, "2500Gi"),
        active_deadline_seconds=86400,
    )
    golden("persia_job_seed_scale", native.manifests(big), native.manifests(job()))


@pytest.mark.parametrize("image", ["cpu/persia-cuda:1", "example/persia:cpu", "registry:5000/cpu-and-cuda", "example/persia"])
def test_gpus_for_an_image_that_may_use_them(image: str) -> None:
    objects = by_name(native.manifests(job(**gpus(1, image=image))))
    container = objects["Job", "adult-trainer"]["spec"]["template"]["spec"]["containers"][0]
    assert {"name": "MUSTER_GPUS", "value": "1"} in container["env"]
    (resource,) = (item for item in operator.manifests(job(**gpus(1, image=image))) if item["kind"] == "PersiaJob")
    assert {"name": "MUSTER_GPUS", "value": "1"} in resource["spec"]["nnWorker"]["env"]


# Shows row 000.16.
@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({}, {"job": "adult", "processes": 3, "seconds": 10}),
        ({"metrics": {"address": "push.monitoring:9091"}}, {"job": "adult", "processes": 3, "seconds": 10}),
        (
            {"global_config": {"common_config": {"metrics_config": {"job_name": "a", "push_interval_seconds": 3}}}},
            {"job": "a", "processes": 3, "seconds": 3},
        ),
        ({"global_config": {"common_config": {"metrics_config": {"enable_metrics": False}}}}, None),
        ({"metrics": {"enabled": False}}, None),
        ({"global_config": None, "global_config_path": "/data/g.yml"}, None),
    ],
)
def test_the_gateway_is_asked_for_what_persia_pushes(fields: dict[str, t.Any], asked: dict[str, t.Any] | None) -> None:
    params = {**copy.deepcopy(PARAMS), **fields}
    data = by_name(native.manifests(from_params(params)))["ConfigMap", "adult-config"]["data"]
    assert (json.loads(data["metrics.json"]) if "metrics.json" in data else None) == asked
    assert ("metrics.py" in data) == (asked is not None)


def test_a_gateway_that_exists_is_used() -> None:
    there = job(metrics={"address": "gateway.monitoring:9091"})
    objects = by_name(native.manifests(there))
    container = objects["Job", "adult-trainer"]["spec"]["template"]["spec"]["containers"][0]
    assert {"name": "PERSIA_METRICS_GATEWAY_ADDR", "value": "gateway.monitoring:9091"} in container["env"]
    assert ("Deployment", "adult-metrics-gateway") not in objects
    assert ("Service", "adult-metrics-gateway-service") not in objects
    assert changed_keys(job().parts, there.parts) == ["metrics"]
    spec = by_name(operator.manifests(there))["PersiaJob", "adult"]["spec"]
    assert spec["enableMetrics"] is False
    assert {"name": "PERSIA_METRICS_GATEWAY_ADDR", "value": "gateway.monitoring:9091"} in spec["env"]
    config = yaml.safe_load(objects["ConfigMap", "adult-config"]["data"]["global_config.yml"])
    assert config["common_config"]["metrics_config"]["enable_metrics"] is True


# Shows row 000.23.
def test_what_nccl_logs_is_said_by_the_user() -> None:
    assert "NCCL_DEBUG" not in str(native.manifests(job()))
    objects = by_name(native.manifests(job(env=[{"name": "NCCL_DEBUG", "value": "INFO"}])))
    told = {name for (_kind, name), item in objects.items() if "NCCL_DEBUG" in str(item.get("spec"))}
    assert told == {"adult-trainer", "adult-data-compose", "adult-middleware", "adult-emb-server"}


# Shows row 000.7.
def test_every_group_has_a_headless_service_that_exists() -> None:
    objects = by_name(native.manifests(job()))
    for (kind, name), item in objects.items():
        if kind == "StatefulSet":
            assert objects["Service", item["spec"]["serviceName"]]["spec"]["clusterIP"] == "None"
        if kind == "Job":
            assert objects["Service", item["spec"]["template"]["spec"]["subdomain"]]["spec"]["clusterIP"] == "None", name


def test_a_finished_training_gives_back_all_but_its_jobs() -> None:
    running = by_name(native.manifests(job()))
    finished = by_name(native.scaled_to_zero(list(running.values())))
    assert running.keys() - finished.keys() == {("Job", "adult-trainer"), ("Job", "adult-data-compose")}
    for name in ("adult-emb-server", "adult-middleware"):
        assert finished["StatefulSet", name]["spec"]["replicas"] == 0
    assert finished["Deployment", "adult-metrics-gateway"]["spec"]["replicas"] == 0


# Shows row 000.4.
def test_without_completion_trainers_are_a_statefulset() -> None:
    by_default = [o["kind"] for o in native.manifests(job())]
    assert (by_default.count("Job"), by_default.count("StatefulSet")) == (2, 2)
    kinds = [o["kind"] for o in native.manifests(job(completion=False))]
    assert "Job" not in kinds
    assert kinds.count("StatefulSet") == 4


def test_configuration_on_the_shared_storage() -> None:
    params = {**copy.deepcopy(PARAMS), "global_config": None, "global_config_path": "/data/g.yml"}
    objects = by_name(native.manifests(from_params(params)))
    assert "global_config.yml" not in objects["ConfigMap", "adult-config"]["data"]
    env = objects["Job", "adult-trainer"]["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "PERSIA_GLOBAL_CONFIG", "value": "/data/g.yml"} in env


def test_what_changed_is_named() -> None:
    def changed(**fields: t.Any) -> list[str]:
        return changed_keys(job().parts, job(**fields).parts)

    assert changed() == []
    assert changed(metrics={"image": "other:1"}) == []
    assert changed(nn_worker={"replicas": 3}) == ["nn_worker.replicas"]
    assert changed(env=[{"name": "EPOCHS", "value": "4"}]) == ["env"]
    assert changed(image_pull_policy="IfNotPresent") == []
    assert changed(embedding_config={"slots_config": {"age": {"dim": 16}}}, files={"train.py": "other"}) == ["embedding_config", "files"]
    assert changed(backend="operator") == ["backend"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"node_selector": {"a": "b"}}, r"nn_worker\.node_selector"),
        ({"nn_worker": {"tolerations": [{"key": "a"}]}}, r"no field for nn_worker\.tolerations"),
        ({"embedding_worker": {"overrides": {"spec": {}}}}, r"embedding_worker\.overrides"),
        ({"active_deadline_seconds": 5}, "active_deadline_seconds"),
        ({"completion": False}, "completion=false"),
        ({"nn_worker": {"image_pull_policy": "Always"}}, "image_pull_policy per group"),
    ],
)
def test_what_the_operator_cannot_say_is_named(fields: dict[str, t.Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        operator.manifests(job(backend="operator", **fields))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "Adult"}, "not a valid name"),
        ({"launch_script": "lunch.sh"}, r"launch_script: 'lunch.sh' is not among files"),
        (
            {"global_config": {"common_config": {"metrics_config": {"push_interval_sec": 7, "push_interval_seconds": 8}}}},
            "push_interval_sec",
        ),
        ({"name": "a" * 50}, "job and group name together"),
        ({"nn_worker": {"replicas": 0}}, r"nn_worker\.replicas: 0 is too small"),
        ({"nn_worker": {"replicas": -1}}, r"nn_worker\.replicas: -1 is too small"),
        ({"dataloader": {"replicas": -1}}, r"dataloader\.replicas: -1 is too small"),
        ({"nn_worker": {"entry": None}}, r"nn_worker\.entry: missing"),
        ({"nn_worker": {"entry": "trian.py"}}, "'trian.py' is not among files"),
        ({"nn_worker": {"group_name": "middleware"}}, "name too"),
        ({"nn_worker": {"resources": {"limits": {"memory": "12 GB"}}}}, "12G"),
        ({"metrics": {"address": "http://gateway:9091"}}, r"metrics\.address: .* is not HOST:PORT"),
        ({"metrics": {"address": "gateway"}}, r"metrics\.address: 'gateway' is not HOST:PORT"),
        (gpus(2), r"nn_worker: 2 nvidia\.com/gpu for nproc_per_node 1"),
        (gpus(1, nproc_per_node=8), r"nn_worker: 1 nvidia\.com/gpu for nproc_per_node 8"),
        (gpus("many"), r"nn_worker\.resources\.limits\.nvidia\.com/gpu: 'many'"),
        (gpus("0.5"), "not a whole number"),
        (gpus(1, image="muster.local/persia-cpu:0.1.dev251"), "which is one for CPUs by its name"),
        (gpus(1, image="persiaml/persia-cpu-runtime@sha256:abc"), "which is one for CPUs by its name"),
        ({"embedding_config": {"slots_config": {"age": {}}}}, "dim is missing"),
        ({"env": [{"name": "PERSIA_NATS_URL", "value": "nats://a:1"}]}, "env of .*: PERSIA_NATS_URL is set by an option"),
        ({"nn_worker": {"env": [{"name": "NPROC_PER_NODE", "value": "2"}]}}, "env of nn_worker: NPROC_PER_NODE"),
        *(({"nats_url": url}, "nats_url: .* is not nats://HOST:PORT") for url in ("queue:4222", "nats://", "nats://queue", "nats://a b:1")),
        ({"files": {"a/../b": "x"}}, "plain file name"),
        ({"files": {"train.py": "x" * 1048577}}, "a ConfigMap holds 1 MiB"),
        ({"backoff_limit": -1}, "backoff_limit"),
        ({"storage": {"size": "1 GB"}}, r"storage\.size"),
        ({"image": None}, "image: missing"),
    ],
)
def test_bad_input_is_refused_by_name(fields: dict[str, t.Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        native.manifests(job(**fields))


# Shows row 000.17.
def test_the_interval_of_persias_own_examples_is_carried() -> None:
    """PERSIA reads push_interval_seconds and skips push_interval_sec, which examples/src/adult-income has (ff754b8)."""
    config = {"common_config": {"job_type": "Train", "metrics_config": {"push_interval_sec": 7}}}
    assert spec.metrics_config(from_params({**PARAMS, "global_config": config}))["push_interval_seconds"] == 7


@pytest.mark.parametrize("section", ["shard_server_config", "embedding_server_config"])
def test_a_configuration_of_2021_has_the_names_of_today(section: str) -> None:
    """As e2e/adult_income/config of PersiaML/PERSIA had them from July to November 2021; PERSIA would skip each."""
    common = {"num_embedding_io_workers": 4, "metrics_config": {"push_interval_sec": 7}}
    old = {"common_config": common, section: {"capacity": 9}, "middleware_config": {"forward_buffer_size": 8}}
    assert from_params({**PARAMS, "global_config": old}).global_config == {
        "common_config": {"metrics_config": {"push_interval_seconds": 7}, "checkpointing_config": {"num_workers": 4}},
        "embedding_parameter_server_config": {"capacity": 9},
        "embedding_worker_config": {"forward_buffer_size": 8},
    }


def test_a_launch_script_gets_the_word_of_its_group_and_the_addresses() -> None:
    own = job(launch_script="launch.sh", files={**PARAMS["files"], "launch.sh": "#!/bin/bash\n"})
    env = {role: {item["name"]: item.get("value") for item in native.persia_env(own, group)} for role, group in own.groups.items()}
    words = {role: values["MUSTER_LAUNCH_SCRIPT"] for role, values in env.items()}
    assert words == {
        "nn_worker": "/workspace/scripts/launch.sh trainer",
        "dataloader": "/workspace/scripts/launch.sh datacompose",
        "embedding_worker": "/workspace/scripts/launch.sh middleware",
        "embedding_parameter_server": "/workspace/scripts/launch.sh embserver",
    }
    assert env["nn_worker"]["MASTER_ADDR"] == "adult-trainer-0.adult-trainer"
    assert [env[role].get("PERSIA_PORT") for role in words] == ["8888", "8887", None, None]
    with pytest.raises(InvalidInput, match="launch_script"):
        operator.manifests(job(backend="operator", launch_script="/launch.sh"))

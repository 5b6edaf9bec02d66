# SPDX-License-Identifier: GPL-3.0-or-later

"""Job files in the shapes of PERSIA's documentation: what is taken over, what is told, what is refused."""

from __future__ import annotations

import typing as t

import pytest
import yaml

from ansible_collections.muster.ml.plugins.filter.persia_job_file import persia_job_file
from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._systems.persia import native
from ansible_collections.muster.ml.plugins.module_utils._systems.persia.job_file import translate
from ansible_collections.muster.ml.plugins.module_utils._systems.persia.spec import from_params

OLD = """
apiVersion: persia.com/v1
kind: PersiaJob
metadata: {name: clicks, namespace: default}
spec:
  globalConfigPath: /workspace/global_config.yml
  embeddingConfigPath: /workspace/embedding_config.yml
  nnWorkerPyEntryPath: /workspace/train.py
  dataLoaderPyEntryPath: /workspace/data_loader.py
  imagePullPolicy: IfNotPresent
  restartPolicy: Never
  enableMetrics: false
  logLevel: debug
  env:
    - {name: PERSIA_NATS_URL, value: "nats://queue:4222"}
    - {name: FOR_ALL, value: "1"}
  volumes:
    - {name: data, persistentVolumeClaim: {claimName: data}}
  embeddingParameterServer: {replicas: 3, image: example/persia:1, resources: {limits: {memory: 24Gi, cpu: "4"}}}
  embeddingWorker: {replicas: 2, image: example/persia:1}
  dataloader: {replicas: 4, image: example/persia:1}
  nnWorker:
    replicas: 2
    nprocPerNode: 8
    image: example/persia-cuda:1
    resources: {limits: {memory: 24Gi, cpu: "12", nvidia.com/gpu: "8"}}
    env: [{name: FOR_TRAINERS, value: "2"}]
    volumeMounts: [{name: data, mountPath: /data/, read_only: true}]
---
apiVersion: nats.io/v1alpha2
kind: NatsCluster
metadata: {name: queue}
spec: {size: 1, natsConfig: {maxPayload: 52428800}, resources: {limits: {memory: 8Gi, cpu: "2"}}}
"""
RENAMED = {
    "spec.globalConfigPath",
    "spec.embeddingConfigPath",
    "spec.nnWorkerPyEntryPath",
    "spec.dataLoaderPyEntryPath",
    "spec.nnWorker.volumeMounts[0].read_only",
    "NatsCluster spec.resources",
}
# As the second document of the documentation shows it: parts, around which the reader thinks the rest.
FRAGMENT = """
apiVersion: persia.com/v1
kind: PersiaJob
metadata: {name: part}
spec:
  nnWorker: {replicas: 1, nprocPerNode: 1, image: "example/persia-cuda:dev"}
"""


def read(text: str) -> list[t.Any]:
    return list(yaml.safe_load_all(text))


def new() -> list[t.Any]:
    """The same job in the names of today."""
    job, nats = read(OLD)
    old = ("globalConfigPath", "embeddingConfigPath", "nnWorkerPyEntryPath", "dataLoaderPyEntryPath")
    today = ("PERSIA_GLOBAL_CONFIG", "PERSIA_EMBEDDING_CONFIG", "PERSIA_NN_WORKER_ENTRY", "PERSIA_DATALOADER_ENTRY")
    job["spec"]["persiaEnv"] = {name: job["spec"].pop(key) for key, name in zip(old, today, strict=True)}
    mount = job["spec"]["nnWorker"]["volumeMounts"][0]
    mount["readOnly"] = mount.pop("read_only")
    nats["spec"]["pod"] = {"resources": nats["spec"].pop("resources")}
    return [job, nats]


def fields(differences: list[str]) -> set[str]:
    return {line.split(": ")[0] for line in differences}


def leaves(value: t.Any) -> list[t.Any]:
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, list) else [value]


def test_old_and_new_names_ask_for_the_same_training() -> None:
    old, today = translate(read(OLD), "old.yml"), translate(new(), "new.yml")
    assert (old.options, old.nats) == (today.options, today.nats)
    assert fields(old.differences) - fields(today.differences) == RENAMED
    assert fields(today.differences) == {"PersiaJob metadata.namespace", "spec.restartPolicy"}


def test_every_value_of_the_file_is_taken_over_or_told() -> None:
    found = translate(read(OLD), "old.yml")
    kept = leaves([found.options, found.nats])
    told = {"persia.com/v1", "PersiaJob", "nats.io/v1alpha2", "NatsCluster", "default", "Never"}
    told |= {"PERSIA_NATS_URL", "nats://queue:4222"}  # the name of the servers
    assert [leaf for leaf in leaves(read(OLD)) if leaf not in kept and leaf not in told] == []


def test_a_translated_file_is_a_training() -> None:
    options = translate(read(OLD), "old.yml").options
    job = from_params({**options, "namespace": "ml"})
    made = {f"{item['kind']}/{item['metadata']['name']}": item for item in native.manifests(job)}
    trainers = made["Job/clicks-trainer"]["spec"]
    container = trainers["template"]["spec"]["containers"][0]
    env = {variable["name"]: variable.get("value") for variable in container["env"]}
    assert trainers["completions"] == 2
    assert {"name": "data", "mountPath": "/data/", "readOnly": True} in container["volumeMounts"]
    assert (env["FOR_ALL"], env["FOR_TRAINERS"], env["NPROC_PER_NODE"]) == ("1", "2", "8")
    assert env["PERSIA_GLOBAL_CONFIG"] == "/workspace/global_config.yml"
    assert env["PERSIA_NN_WORKER_ENTRY"] == "/workspace/train.py"
    assert made["StatefulSet/clicks-emb-server"]["spec"]["replicas"] == 3
    assert "FOR_TRAINERS" not in str(made["Job/clicks-data-compose"])


@pytest.mark.parametrize("url", ["nats://nats.else.svc:4222", "nats://queue:4223", "nats://10.0.0.7:4222/"])
def test_servers_elsewhere_are_used_and_told(url: str) -> None:
    found = translate(read(OLD.replace("nats://queue:4222", url)), "old.yml")
    assert found.options["nats_url"] == url
    assert [line for line in found.differences if url in line and "none are made" in line]
    job = from_params({**found.options, "namespace": "ml"})
    assert {"name": "PERSIA_NATS_URL", "value": url} in native.persia_env(job, job.groups["nn_worker"])


def test_what_a_part_leaves_to_the_variables_is_told() -> None:
    found = translate(read(FRAGMENT), "part.yml")
    assert found.options["nn_worker"] == {"replicas": 1, "nproc_per_node": 1, "image": "example/persia-cuda:dev"}
    missing = ["imagePullPolicy", "embeddingParameterServer", "embeddingWorker", "dataloader"]
    entries = {f"spec.persiaEnv (entry of {section})" for section in ("nnWorker", "dataloader")}
    configs = {f"spec.persiaEnv ({name}_config_path)" for name in ("global", "embedding")}
    assert fields(found.differences) == {f"spec.{name}" for name in missing} | entries | configs | {"spec.nnWorker.image"}
    assert "may be another image tomorrow" in next(line for line in found.differences if "nnWorker.image" in line)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (OLD.replace("nprocPerNode", "nprocPerNod"), r"spec\.nnWorker\.nprocPerNod: unknown; did you mean nprocPerNode\?"),
        (OLD.replace("logLevel: debug", "tolerations: []"), r"spec\.tolerations: unknown"),
        (OLD.replace("  globalConfigPath", "  persiaEnv: {PERSIA_GLOBAL_CONFIG: /x}\n  globalConfigPath"), "a second time"),
        (OLD.replace("nats://queue:4222", "nats://other:4222"), "NATS is called other elsewhere"),
        (OLD.replace("nats://queue:4222", "nats.else.svc:4222"), "nats.else.svc:4222; give nats://HOST:PORT"),
        (OLD.replace("nats://queue:4222", "nats://nats.else.svc"), "nats://nats.else.svc; give nats://HOST:PORT"),
        (OLD.replace("persia.com/v1", "persia.com/v2"), r"apiVersion persia\.com/v2 is not persia\.com/v1"),
        (OLD.replace("{replicas: 2,", "{"), r"spec\.embeddingWorker\.replicas: missing"),
        (OLD.replace("name: clicks, ", ""), r"metadata\.name is missing"),
        (OLD + "---\napiVersion: v1\nkind: Secret\n", r"kind Secret: .*muster\.ml\.apply"),
        (OLD.split("---")[1], "kind PersiaJob: missing"),
        (OLD + "---" + OLD, "kind PersiaJob: there is one already"),
        ("just words", "kind None"),
    ],
)
def test_what_cannot_be_taken_over_is_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as caught:
        translate(read(text), "job.yml")
    assert caught.value.message.startswith("job.yml cannot be run as it is:")


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InvalidInput, match=r"spec\.a: unknown.*spec\.b: unknown"):
        translate(read(OLD.replace("logLevel: debug", "a: 1\n  b: 2")), "job.yml")


def test_a_refused_file_has_no_name_to_make_or_remove() -> None:
    refused = persia_job_file("a: [", "job.yml")
    assert (refused["options"], refused["nats"]) == ({"name": ""}, {"name": ""})
    assert "job.yml, line" in refused["refused"]
    assert persia_job_file("", "")["options"] == {}
    assert persia_job_file(OLD, "job.yml")["options"]["name"] == "clicks"

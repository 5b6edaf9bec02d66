# SPDX-License-Identifier: GPL-3.0-or-later
"""Job files in the shapes of PERSIA's documentation: what is taken over, what is told, what is refused."""

import copy
import re
import typing as t

import pytest
import yaml

from ansible_collections.muster.ml.plugins.filter.job_file import job_file
from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._systems.persia import native
from ansible_collections.muster.ml.plugins.module_utils._systems.persia.job_fields import role_of
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
    env: [{name: FOR_TRAINERS, value: "2"}, {name: FOR_ALL, value: "3"}]
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


# Shows rows 001.4 and 001.6.
def test_old_and_new_names_ask_for_the_same_training() -> None:
    old, today = translate(read(OLD), "old.yml"), translate(new(), "new.yml")
    assert old.options == today.options
    assert fields(old.differences) - fields(today.differences) == RENAMED
    assert fields(today.differences) == {"PersiaJob clicks metadata.namespace", "spec.restartPolicy"}


# Shows row 001.2.
def test_every_value_of_the_file_is_taken_over_or_told() -> None:
    found = translate(read(OLD), "old.yml")
    kept = leaves(found.options)
    told = {"persia.com/v1", "PersiaJob", "nats.io/v1alpha2", "NatsCluster", "default", "Never"}
    told |= {"PERSIA_NATS_URL", "nats://queue:4222"}  # the name of the servers
    assert [leaf for leaf in leaves(read(OLD)) if leaf not in kept and leaf not in told] == []


# Shows row 001.11.
def test_a_translated_file_is_a_training() -> None:
    options = translate(read(OLD), "old.yml").options
    job = from_params({**options, "namespace": "ml"})
    made = {f"{item['kind']}/{item['metadata']['name']}": item for item in native.manifests(job)}
    trainers = made["Job/clicks-trainer"]["spec"]
    container = trainers["template"]["spec"]["containers"][0]
    env = {variable["name"]: variable.get("value") for variable in container["env"]}
    assert trainers["completions"] == 2
    assert {"name": "data", "mountPath": "/data/", "readOnly": True} in container["volumeMounts"]
    assert (env["FOR_ALL"], env["FOR_TRAINERS"], env["NPROC_PER_NODE"]) == ("3", "2", "8")
    assert env["PERSIA_GLOBAL_CONFIG"] == "/workspace/global_config.yml"
    assert env["PERSIA_NN_WORKER_ENTRY"] == "/workspace/train.py"
    assert made["StatefulSet/clicks-emb-server"]["spec"]["replicas"] == 3
    loaders = made["Job/clicks-data-compose"]["spec"]["template"]["spec"]["containers"][0]["env"]
    assert [variable["value"] for variable in loaders if variable["name"] in ("FOR_ALL", "FOR_TRAINERS")] == ["1"]


@pytest.mark.parametrize("url", ["nats://nats.else.svc:4222", "nats://queue:4223", "nats://10.0.0.7:4222/"])
def test_servers_elsewhere_are_used_and_told(url: str) -> None:
    found = translate(read(OLD.replace("nats://queue:4222", url)), "old.yml")
    assert found.options["nats_url"] == url
    assert [line for line in found.differences if url in line and "none are made" in line]
    job = from_params({**found.options, "namespace": "ml"})
    assert {"name": "PERSIA_NATS_URL", "value": url} in native.persia_env(job, job.groups["nn_worker"])


# Shows row 001.9.
def test_what_a_part_leaves_to_the_variables_is_told() -> None:
    found = translate(read(FRAGMENT), "part.yml")
    assert found.options["nn_worker"] == {"replicas": 1, "nproc_per_node": 1, "image": "example/persia-cuda:dev"}
    missing = {"emb-server", "middleware", "data-compose", "PERSIA_GLOBAL_CONFIG", "PERSIA_EMBEDDING_CONFIG", "spec.imagePullPolicy"}
    assert fields(found.differences) == missing | {"program of trainer", "program of data-compose", "spec.nnWorker.image"}
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
        (OLD.split("---")[1], "kind PersiaJob or StatefulSet: missing"),
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
    refused = job_file("a: [", "persia", "job.yml")
    assert refused["options"] == {"name": "", "nats": {"name": ""}}
    assert "job.yml, line" in refused["refused"]
    assert job_file("", "persia", "")["options"] == {}
    assert job_file(OLD, "persia", "job.yml")["options"]["name"] == "clicks"


def test_a_field_of_another_kind_ends_in_one_refusal() -> None:
    """Every field in turn is replaced by values of other kinds; an error of Python would end the play without a cause."""
    documents = [one for one in yaml.safe_load_all(OLD) if one]
    for number, path in ((number, path) for number, one in enumerate(documents) for path in _paths(one)):
        for value in (None, "x", 7, [1], {"a": 1}, [None]):
            broken = copy.deepcopy(documents)
            place: t.Any = broken[number]
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = value
            found = job_file(yaml.safe_dump_all(broken), "persia", "job.yml")
            assert bool(found["refused"]) == (found["options"].get("name") == "")


def _paths(value: t.Any, before: tuple[t.Any, ...] = ()) -> t.Iterator[tuple[t.Any, ...]]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        yield (*before, step)
        yield from _paths(inner, (*before, step))


# The four groups of PERSIA's document about Google Cloud: the word of its script, replicas, and resources.
GROUPS = {
    "trainer": ("trainer", 8, {"memory": "600Gi", "cpu": "80", "nvidia.com/gpu": 8}),
    "data-compose": ("datacompose", 240, {"memory": "12Gi", "cpu": "1"}),
    "middleware": ("middleware", 100, {"memory": "100Gi", "cpu": "28"}),
    "emb-server": ("embserver", 120, {"memory": "2500Gi", "cpu": "80"}),
}
ROLES = {"trainer": "nn_worker", "data-compose": "dataloader", "middleware": "embedding_worker", "emb-server": "embedding_parameter_server"}


def stateful_set(name: str) -> dict[str, t.Any]:
    word, replicas, resources = GROUPS[name]
    env = {"REPLICA_SIZE": str(replicas), **({"NPROC_PER_NODE": "8"} if name == "trainer" else {})}
    env["PERSIA_NATS_IP"] = "nats://persia-nats-service:4222"
    container = {
        "name": name,
        "image": "persiaml/persia-cuda-runtime:latest",
        "imagePullPolicy": "Always",
        "args": ["/workspace/launch.sh", word],
        "resources": {"requests": resources, "limits": resources},
        "env": [{"name": key, "value": value} for key, value in env.items()],
    }
    template = {"metadata": {"labels": {"service": name}}, "spec": {"containers": [container]}}
    spec = {"serviceName": name, "replicas": replicas, "selector": {"matchLabels": {"service": name}}, "template": template}
    metadata = {"name": name, "labels": {"service": name}}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec, "status": {"replicas": replicas}}


def document() -> list[t.Any]:
    spec = {"size": 60, "natsConfig": {"maxPayload": 52428800}, "resources": {"limits": {"memory": "32Gi", "cpu": "4"}}}
    nats = {"apiVersion": "nats.io/v1alpha2", "kind": "NatsCluster", "metadata": {"name": "persia-nats-service"}, "spec": spec}
    return [*map(stateful_set, GROUPS), nats]


# Shows rows 000.3 and 000.6.
def test_the_stateful_sets_of_the_document_are_a_training() -> None:
    found = translate(document(), "train.persia.yml")
    taken = {name: found.options[role] for name, role in ROLES.items()}
    assert {name: group["replicas"] for name, group in taken.items()} == {name: row[1] for name, row in GROUPS.items()}
    assert taken["trainer"]["nproc_per_node"] == 8
    assert found.options["nats"]["replicas"] == 60
    job = from_params({**found.options, "name": "clicks", "namespace": "ml", "completion": False, "global_config_path": "/g",
                       "embedding_config_path": "/e", "nn_worker": {**taken["trainer"], "entry": "/t.py"},
                       "dataloader": {**taken["data-compose"], "entry": "/d.py"}})  # fmt: skip
    made = {item["metadata"]["name"]: item for item in native.manifests(job) if item["kind"] == "StatefulSet"}
    for name, (_word, replicas, resources) in GROUPS.items():
        spec = made[f"clicks-{name}"]["spec"]
        container = spec["template"]["spec"]["containers"][0]
        assert (spec["replicas"], container["resources"]["limits"]) == (replicas, {key: str(value) for key, value in resources.items()})
        assert spec["template"]["metadata"]["labels"]["service"] == name
        assert (container["image"], container["imagePullPolicy"]) == ("persiaml/persia-cuda-runtime:latest", "Always")


# Shows rows 000.8 and 000.15.
def test_each_difference_of_the_document_is_told() -> None:
    told = "\n".join(translate(document(), "train.persia.yml").differences)
    for name in GROUPS:
        for place in ("status", "spec.serviceName", "spec.selector", "metadata.labels", "args", "image"):
            assert re.search(rf"^StatefulSet {name}[ .]{place}: ", told, re.MULTILINE), (name, place)
        assert f"StatefulSet {name}.env REPLICA_SIZE: " in told
        assert f"StatefulSet {name}.env PERSIA_NATS_IP: renamed to PERSIA_NATS_URL" in told
    for word in ("---port", "RUST_BACKTRACE-full", "persia_launch_script", "persia_completion: false", "pod.resources"):
        assert word in told
    assert "name of the training: not in the file" in told


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda item: item["spec"].update(volumeClaimTemplates=[]), r"spec\.volumeClaimTemplates: unknown"),
        (lambda item: item["spec"]["template"]["spec"]["containers"].append({}), "2, and a group has one container"),
        (lambda item: item["spec"].update(replicas=3), "REPLICA_SIZE: 8, but replicas is 3"),
        (lambda item: item["spec"]["template"]["spec"].update(hostNetwork=True), r"spec\.hostNetwork: unknown"),
        (lambda item: item["metadata"].update(name="middleware"), "the file has middleware a second time"),
        (lambda item: item["spec"]["template"]["spec"].update(containers={}), "is not a list"),
        (lambda item: item["spec"]["template"]["spec"]["containers"][0].update(env="A=B"), "env: 'A=B' is not a list"),
        (lambda item: item["spec"]["template"]["spec"]["containers"][0].update(args="x"), "args: 'x' is not a list"),
    ],
)
def test_a_stateful_set_that_is_no_group_is_refused(change: t.Callable[[t.Any], None], said: str) -> None:
    documents = document()
    change(documents[0])
    with pytest.raises(InvalidInput, match=said):
        translate(documents, "train.persia.yml")


def test_a_stateful_set_of_no_group_is_refused() -> None:
    other = stateful_set("trainer")
    other["metadata"]["name"] = other["spec"]["template"]["metadata"]["labels"]["service"] = "web"
    other["spec"]["template"]["spec"]["containers"][0]["args"] = []
    with pytest.raises(InvalidInput, match="StatefulSet web: no group of PERSIA"):
        translate([other], "web.yml")
    with pytest.raises(InvalidInput, match="kind PersiaJob or StatefulSet: only one of them"):
        translate([*document(), read(OLD)[0]], "both.yml")


def test_a_volume_of_several_groups_is_one_volume() -> None:
    documents = document()
    for one in documents[:2]:
        one["spec"]["template"]["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    assert len(translate(documents, "train.persia.yml").options["volumes"]) == 1
    documents[1]["spec"]["template"]["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] = "other"
    with pytest.raises(InvalidInput, match="data is another volume elsewhere in the file"):
        translate(documents, "train.persia.yml")


def test_a_group_is_known_by_name_label_or_word() -> None:
    names = ["trainer", "clicks-trainer", "data_compose", "middlewareServer", "embedding-ps", "embedding-parameter-server", "web"]
    expected = ["nn_worker", "nn_worker", "dataloader", "embedding_worker", *["embedding_parameter_server"] * 2, None]
    assert [role_of([name]) for name in names] == expected
    assert role_of(["web", "embserver"]) == "embedding_parameter_server"


# Shows row 001.3.
def test_the_names_of_early_november_2021_are_read() -> None:
    text = OLD.replace("nnWorkerPyEntryPath", "trainerPyEntryPath").replace("embeddingParameterServer", "embeddingServer")
    text = text.replace("embeddingWorker", "middlewareServer").replace("  nnWorker:", "  trainer:")
    found, old = translate(read(text), "old.yml"), translate(read(OLD), "old.yml")
    assert found.options == old.options
    assert fields(found.differences) >= {"spec.embeddingServer", "spec.middlewareServer", "spec.trainer", "spec.trainerPyEntryPath"}


def changed(old: str, new: str) -> t.Any:
    text = OLD.replace(old, new)
    assert text != OLD
    return translate(read(text), "job.yml")


def test_a_variable_of_the_job_is_carried_or_refused() -> None:
    given = '- {name: NPROC_PER_NODE, value: "8"}\n    - {name: FOR_ALL'
    assert changed("- {name: FOR_ALL", given).options["nn_worker"]["nproc_per_node"] == 8
    assert (
        translate(read(OLD.replace("- {name: FOR_ALL", given).replace("    nprocPerNode: 8\n", "")), "j").options["nn_worker"][
            "nproc_per_node"
        ]
        == 8
    )
    for more, said in (
        (given.replace('"8"', '"4"'), "nproc_per_node is given a second time"),
        (given.replace("NPROC_PER_NODE", "REPLICA_SIZE"), "each group has a size"),
    ):
        with pytest.raises(InvalidInput, match=said):
            changed("- {name: FOR_ALL", more)


def test_a_variable_of_one_group_that_is_an_option_of_the_job_is_told() -> None:
    found = translate(read(OLD.replace('{name: FOR_TRAINERS, value: "2"}', "{name: LOG_LEVEL, value: debug}")), "job.yml")
    assert "spec.nnWorker.env: log_level of this group is that of all groups, as an option of the job" in found.differences


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["python", "-m", "torch.distributed.launch", "/t.py"], "is no launcher of trainer"),
        (["persia-launcher", "data-loader", "/t.py"], "is no launcher of trainer"),
        (["persia-launcher", "nn-worker", "/t.py", "--x", "1"], "--x: no option has it"),
    ],
)
def test_a_program_of_a_stateful_set_is_carried_or_refused(words: list[str], said: str) -> None:
    one = stateful_set("trainer")
    container = one["spec"]["template"]["spec"]["containers"][0]
    container["args"] = words
    with pytest.raises(InvalidInput, match=said):
        translate([one], "job.yml")
    container["args"] = ["persia-launcher", "nn-worker", "/t.py", "--nproc-per-node=8", "--node-rank", "$(RANK)"]
    found = translate([one], "job.yml")
    assert (found.options["nn_worker"]["entry"], found.options["nn_worker"]["nproc_per_node"]) == ("/t.py", 8)
    assert not any("does what" in line for line in found.differences)


@pytest.mark.parametrize("host", ["queue.default", "queue.default.svc.cluster.local"])
def test_servers_of_the_file_are_made_under_any_of_their_names(host: str) -> None:
    found = changed("nats://queue:4222", f"nats://{host}:4222")
    assert ("nats_url" in found.options, found.options["nats"]["name"]) == (False, "queue")
    assert f"nats://{host}:4222 is nats://queue:4222 here" in str(found.differences)


def test_a_login_is_not_printed() -> None:
    found = changed("nats://queue:4222", "nats://u:hidden@nats.else:4222")
    assert "hidden" not in str(found.differences)
    assert found.options["nats_url"] == "nats://u:hidden@nats.else:4222"
    with pytest.raises(InvalidInput, match=r"address of NATS nats://nats\.else; give") as caught:
        changed("nats://queue:4222", "nats://u:hid@den@nats.else")
    assert "hid" not in str(caught.value)


def test_what_is_null_is_not_there() -> None:
    text = re.sub(r"  volumes:\n.*\n", "  volumes:\n", OLD).replace("enableMetrics: false", "enableMetrics:\n  persiaEnv:") + "---\n# end\n"
    found = translate(read(text.replace("image: example/persia-cuda:1", 'image: ""')), "job.yml")
    assert not {"volumes", "metrics_enabled"} & found.options.keys()
    assert "image" not in found.options["nn_worker"]
    assert changed('value: "1"', "value: null").options["env"] == [{"name": "FOR_ALL", "value": ""}]
    one = stateful_set("trainer")
    one["spec"]["template"]["metadata"]["labels"]["muster.ml/group"] = "x"
    with pytest.raises(InvalidInput, match=r"labels\.muster\.ml/group: this collection selects pods by it"):
        translate([one], "job.yml")


def test_what_stands_for_a_name_is_refused_in_images() -> None:
    for blank in ("<your image>", "\u2039REGISTRY\u203a/x:1"):
        with pytest.raises(InvalidInput, match="stands for a name of yours"):
            changed("example/persia-cuda:1", f'"{blank}"')
    mount = changed("read_only: true", "recursiveReadOnly: Disabled").options["nn_worker"]["volume_mounts"][0]
    assert mount["recursiveReadOnly"] == "Disabled"

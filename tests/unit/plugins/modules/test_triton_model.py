# SPDX-License-Identifier: GPL-3.0-or-later
"""triton_model: what is refused, uploaded, loaded, rolled back and deleted, on a volume and in a bucket.

tests/simulators/google/test_triton_model.py does it in a bucket of Google Cloud Storage.
"""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core import s3
from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, InvalidInput, NotFound, Unreachable, WaitTimeout
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from ansible_collections.muster.ml.plugins.modules import triton_model
from ansible_collections.muster.ml.tests.unit.fakes import pods, tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.models import CONFIG, FakeBucket, FakeReplica, serve_writer, write_model
from ansible_collections.muster.ml.tests.unit.fakes.triton import RECORDED

Manifest = dict[str, t.Any]
LABELS = {"app.kubernetes.io/name": "triton", "app.kubernetes.io/instance": "triton"}
READY = [{"type": "Ready", "status": "True"}]
CLAIM = Ref("v1", "PersistentVolumeClaim", "models", "default")
ONE, TWO, THREE, BROKEN = "one", "two", "three", "broken"


class World:
    """A cluster with two replicas that read a folder, and a folder of models to upload."""

    def __init__(self, tmp: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
        self.cluster = FakeCluster()
        self.warned: list[str] = []
        self.where, self.root, self.src = where, tmp / "live", tmp / "src"
        self.root.mkdir()
        self.bucket = FakeBucket(self.root)
        monkeypatch.setattr(s3, "client", lambda *_args, **_more: self.bucket)
        self.replicas = {name: FakeReplica(self.root) for name in ("triton-a", "triton-b")}
        self.writer = serve_writer(self.root / "add")
        self.cluster.controllers["Pod"] = self.runs
        self.cluster.add({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "models", "namespace": "default"}})

    def runs(self, pod: Manifest) -> Manifest:
        self.cluster.forwarded["default", pod["metadata"]["name"], 8765] = ("127.0.0.1", self.writer.port)
        return {"phase": "Running", "conditions": READY}

    def start(self, mode: str = "explicit", replicas: int = 2, load: str = "*") -> None:
        args = ["tritonserver", f"--model-control-mode={mode}", f"--load-model={load}", "--repository-poll-secs=1"]
        spec = {"replicas": replicas, "template": {"spec": {"containers": [{"name": "triton", "args": args}]}}}
        self.cluster.add(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "triton", "namespace": "default"}, "spec": spec}
        )
        for name, replica in [*self.replicas.items()][:replicas]:
            self.cluster.controllers.pop("Pod", None)
            self.cluster.add(pods.pod(name, labels=LABELS, conditions=READY))
            self.cluster.forwarded["default", name, 8000] = ("127.0.0.1", replica.port)
        self.cluster.controllers["Pod"] = self.runs

    def model(self, versions: dict[int, str], config: str = CONFIG) -> str:
        return str(write_model(self.src, versions, config))

    def run(self, *, check: bool = False, **params: t.Any) -> dict[str, t.Any]:
        place: Manifest = {"model_repository": "s3://models"}
        if self.where == "volume":
            place = {"model_repository": "/models", "storage": {"claim_name": "models", "mount_path": "/models"}}
        given = {"namespace": "default", "model": "add", "wait_timeout": 10, **place, **params}
        return tasks.run(triton_model, self.cluster, given, check=check, warn=self.warned.append, diff=True)

    def served(self) -> list[list[int]]:
        return [replica.served() for replica in self.replicas.values()]

    def files(self) -> set[str]:
        return {path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file()}

    @property
    def policy(self) -> str:
        return (self.root / "add" / "config.pbtxt").read_text()


@pytest.fixture(params=["volume", "bucket"])
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[World]:
    found = World(tmp_path, monkeypatch, request.param)
    yield found
    for one in (*found.replicas.values(), found.writer):
        one.stop()


@pytest.fixture
def volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[World]:
    found = World(tmp_path, monkeypatch, "volume")
    yield found
    for one in (*found.replicas.values(), found.writer):
        one.stop()


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("backend: 3", "not a configuration of a model: 1:10"),
        ('backend: "python"\nnosuch: 1', 'no field named "nosuch"'),
        ("max_batch_size: ${triton_max_batch_size}", "It is a template"),
        (CONFIG + 'name: "other"', "name is 'other', but the model is add"),
        ('default_model_filename: "weights.bin"', "nor a file of a version that tells one"),
        ('backend: "python"\nmax_batch_size: -1', "max_batch_size is -1"),
        (CONFIG + 'input [ { name: "A", data_type: TYPE_FP32, dims: [ 1 ] } ]', "input A is there twice"),
        (CONFIG + 'output [ { name: "C", data_type: TYPE_FP32, dims: [ 0 ] } ]', "output C has a dimension of 0"),
        (CONFIG.replace("python", "onnxruntime"), "version 1 has no model.onnx"),
        (CONFIG + "version_policy { specific { versions: 7 } }", "version 7 of model add is neither in src nor in the store"),
    ],
)
def test_a_configuration_that_no_server_would_load_is_refused_before_anything_is_sent(world: World, config: str, told: str) -> None:
    world.start()
    with pytest.raises(InvalidInput) as caught:
        world.run(src=world.model({1: ONE}, config))
    assert told in str(caught.value)
    assert (world.cluster.writes, world.bucket.writes, world.files()) == ([], [], set())


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({}, "Give src"),
        ({"src": "/nosuch"}, "is not a folder"),
        ({"model": "a/b", "versions": [1]}, "not a name of a model"),
        ({"versions": [0]}, "versions: 0 is too small"),
        ({"versions": [1], "model_repository": "gs://models:1/a", "storage": None}, "is not a place for models"),
        ({"versions": [1], "model_repository": "/elsewhere"}, "not below storage.mount_path"),
    ],
)
def test_nonsense_is_refused_before_anybody_is_asked(volume: World, params: dict[str, t.Any], told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        volume.run(**params)
    assert told in caught.value.message
    assert not volume.cluster.requests


def filled(src: Path, files: list[str]) -> str:
    """A folder with these files, whose content is their name, and empty folders for names with a slash at their end."""
    for name in files:
        (src / name).parent.mkdir(parents=True, exist_ok=True)
        (src / name).mkdir() if name.endswith("/") else (src / name).write_text(name)
    return str(src)


ENSEMBLE = 'platform: "ensemble"\n'
# The fields of the configuration of densenet_onnx among the examples of server 2.71.0.
DENSENET = """platform: "onnxruntime_onnx"
input [ { name: "data_0", data_type: TYPE_FP32, format: FORMAT_NCHW, dims: [ 3, 224, 224 ], reshape { shape: [ 1, 3, 224, 224 ] } } ]
output [ { name: "fc6_1", data_type: TYPE_FP32, dims: [ 1000 ], label_filename: "densenet_labels.txt" } ]"""


@pytest.mark.parametrize(
    ("config", "files", "uploaded"),
    [
        (ENSEMBLE, ["1/"], ["1/empty-version"]),  # triton-inference-server/server#3623
        (ENSEMBLE, ["1/.gitkeep"], ["1/empty-version"]),  # as its own examples for Jetson have it
        (CONFIG, ["1/model.py", "warmup/raw"], ["1/model.py", "warmup/raw"]),  # server#3012
        (CONFIG, ["1/model.py", "initial_state/zero", "configs/small.pbtxt"], None),
        (CONFIG, ["1/model.py", "1/.DS_Store", "env/bin/python", "01/model.py"], ["01/model.py", "1/model.py", "env/bin/python"]),
        ("", ["1/model.onnx"], ["1/model.onnx"]),  # server#3135
        (None, ["1/model.onnx/model.onnx", "1/model.onnx/weights"], ["1/model.onnx/model.onnx", "1/model.onnx/weights"]),
        (DENSENET, ["1/model.onnx", "densenet_labels.txt"], ["1/model.onnx", "densenet_labels.txt"]),
        (None, ["1/model.savedmodel/saved_model.pb"], ["1/model.savedmodel/saved_model.pb"]),
        ('output [ { name: "C", dims: [ 1 ] } ]', ["1/model.plan"], ["1/model.plan"]),  # qa/L0_model_config, incomplete_output
        ('backend: "pytorch"\nplatform: "torch_aoti"', ["1/model.pt2"], ["1/model.pt2"]),
        ('backend: "tensorrt"\ncc_model_filenames { key: "9.0" value: "h100.plan" }', ["1/h100.plan"], ["1/h100.plan"]),
        # As qa/L0_triton_repo_agent has it: an agent brings the model.
        ('model_repository_agents { agents [ { name: "relocation" } ] }', ["1/x"], ["1/x"]),
        # As fauxpilot's models for FasterTransformer, which reads the folder that a parameter names.
        ('backend: "fastertransformer"\ndefault_model_filename: "codegen"', ["1/1-gpu/config.ini"], ["1/1-gpu/config.ini"]),
    ],
)
def test_what_the_server_loads_is_taken(world: World, config: str | None, files: list[str], uploaded: list[str] | None) -> None:
    src = filled(world.src, files)
    if config is not None:
        (world.src / "config.pbtxt").write_text(config)
    made = world.run(src=src)
    assert (made["uploaded"], made["versions"]) == (sorted(files) if uploaded is None else uploaded, [1])
    assert world.files() == {f"add/{name}" for name in [*made["uploaded"], "config.pbtxt"]}
    assert [name in "".join(world.warned) for name in (".gitkeep", ".DS_Store")] == ["1/.gitkeep" in files, "1/.DS_Store" in files]
    assert not world.run(src=src)["changed"]


VLLM = 'backend: "vllm"\ninstance_group [ { count: 1 kind: KIND_MODEL } ]\n'


@pytest.mark.parametrize(
    ("config", "text", "told"),
    [
        (VLLM, None, "version 1 has no model.json, which its backend reads"),
        (VLLM + 'default_model_filename: "engine.json"', None, "version 1 has no model.json, which its backend reads"),
        (VLLM, "model: example/chat", "model.json is not JSON"),
        (VLLM, '["example/chat"]', "model.json names no model"),
        (VLLM, '{"dtype": "auto"}', "model.json names no model"),
        (VLLM, '{"model": "./weights"}', "names ./weights, and the server starts in a folder of its image"),
        ('backend: "vllm"', '{"model": "/models/a", "tensor_parallel_size": 2}', "has several GPUs, and an instance may be given one"),
    ],
)
def test_arguments_with_which_vllm_would_not_start_are_refused(volume: World, config: str, text: str | None, told: str) -> None:
    src = Path(filled(volume.src, ["1/engine.json"]))
    (src / "config.pbtxt").write_text(config)
    if text is not None:
        (src / "1" / "model.json").write_text(text)
    with pytest.raises(InvalidInput) as caught:
        volume.run(src=str(src))
    assert told in caught.value.message
    assert not volume.cluster.writes


@pytest.mark.parametrize(
    ("text", "fetched"),
    [
        # As the example in samples/model_repository of triton-inference-server/vllm_backend 8de0c14.
        ('{"model":"facebook/opt-125m", "gpu_memory_utilization": 0.1, "enforce_eager": true}', ["facebook/opt-125m"]),
        ('{"model": "gpt2"}', ["gpt2"]),
        ('{"model": "/models/weights/chat", "tensor_parallel_size": 2}', []),
        ('{"model": "s3://models/chat", "load_format": "runai_streamer"}', []),
    ],
)
def test_a_model_that_the_replicas_fetch_from_the_hub_is_told(volume: World, text: str, fetched: list[str]) -> None:
    src = Path(filled(volume.src, ["1/model.json"]))
    (src / "config.pbtxt").write_text(VLLM)
    (src / "1" / "model.json").write_text(text)
    assert volume.run(src=str(src))["uploaded"] == ["1/model.json"]
    assert [word for word in fetched if f"fetches {word} from the hub" in "".join(volume.warned)] == fetched
    assert bool(fetched) == bool(volume.warned)


def test_an_image_without_the_backend_is_told(world: World) -> None:
    world.start()
    for replica in world.replicas.values():
        replica.refuses = RECORDED["no_backend"]["error"]
    with pytest.raises(Failed, match="unable to find backend library for backend 'vllm'") as caught:
        world.run(src=world.model({1: ONE}))
    assert "26.07-vllm-python-py3 has vllm" in str(caught.value)


def test_a_link_to_a_file_is_its_content_and_one_to_a_folder_is_refused(volume: World) -> None:
    src = Path(volume.model({1: ONE}))
    (volume.src.parent / "weights").write_text("weights")
    (src / "1" / "weights").symlink_to(volume.src.parent / "weights")
    assert volume.run(src=str(src))["uploaded"] == ["1/model.py", "1/weights"]
    (src / "2").symlink_to(src / "1")
    with pytest.raises(InvalidInput, match="not a plain file"):
        volume.run(src=str(src))


def test_a_model_is_uploaded_and_served_and_a_second_run_writes_nothing(world: World) -> None:
    world.start()
    src = world.model({1: ONE})
    planned = world.run(src=src, check=True)
    assert (planned["changed"], planned["uploaded"], world.files(), world.served()) == (True, ["1/model.py"], set(), [[], []])
    assert not world.cluster.writes
    made = world.run(src=src)
    assert (made["changed"], made["uploaded"], made["versions"]) == (True, ["1/model.py"], [1])
    assert made["replicas"] == {"triton-a": [1], "triton-b": [1]}
    assert world.files() == {"add/config.pbtxt", "add/1/model.py"}
    assert "1/model.py sha256:" in made["diff"][-1]["after"]
    assert "specific" in made["diff"][-1]["after"]
    assert world.cluster.stored("Pod", "triton-model-add-7e9e5a-writer", "default") is None
    before = (len(world.cluster.writes), len(world.bucket.writes), [replica.asked[:] for replica in world.replicas.values()])
    for check in (True, False):
        again = world.run(src=src, check=check)
        assert (again["changed"], again["uploaded"], again["replicas"]) == (False, [], made["replicas"])
    assert before == (len(world.cluster.writes), len(world.bucket.writes), [replica.asked for replica in world.replicas.values()])


def test_a_new_version_takes_over_and_the_one_of_before_can_be_chosen_again(world: World) -> None:
    world.start()
    world.run(src=world.model({1: ONE}))
    made = world.run(src=world.model({1: ONE, 2: TWO}))
    assert (made["uploaded"], world.served()) == (["2/model.py"], [[2], [2]])
    back = world.run(versions=[1])
    assert (back["changed"], back["uploaded"], world.served()) == (True, [], [[1], [1]])
    assert not world.run(versions=[1])["changed"]
    both = world.run(versions=[1, 2])
    assert (both["versions"], world.served()) == ([1, 2], [[1, 2], [1, 2]])


def test_a_broken_version_leaves_replicas_and_store_as_they_were(world: World) -> None:
    world.start()
    world.run(src=world.model({1: ONE}))
    config = world.policy
    with pytest.raises(Failed, match=r"RuntimeError: broken.*has again what it had, and versions 1 are served on") as caught:
        world.run(src=world.model({2: BROKEN}))
    assert "Triton in Pod default/triton-a" in caught.value.message
    assert (world.served(), world.policy) == ([[1], [1]], config)
    assert world.files() == {"add/config.pbtxt", "add/1/model.py"}
    assert "load add" not in world.replicas["triton-b"].asked[1:]
    assert world.run(src=world.model({2: TWO}))["uploaded"] == ["2/model.py"]
    assert world.served() == [[2], [2]]


def test_replicas_that_took_it_go_back_if_a_later_one_refuses(world: World) -> None:
    world.start()
    world.run(src=world.model({1: ONE}))
    world.replicas["triton-b"].refuses = "no memory"
    with pytest.raises(Failed, match=r"no memory.*Going back failed, too"):
        world.run(src=world.model({2: TWO}))
    assert world.served() == [[1], [1]]


def test_a_first_version_that_is_broken_leaves_nothing(world: World) -> None:
    world.start()
    with pytest.raises(Failed, match="no version was served before"):
        world.run(src=world.model({1: BROKEN}))
    assert (world.files(), world.served()) == (set(), [[], []])
    assert world.cluster.stored("ConfigMap", "triton-model-add-7e9e5a", "default") is None


def test_what_is_served_does_not_change_under_its_number(world: World) -> None:
    world.start()
    world.run(src=world.model({1: ONE}))
    with pytest.raises(InvalidInput, match="version 1 is served") as caught:
        world.run(src=world.model({1: TWO}))
    assert "such as 2" in str(caught.value.hint)
    assert (world.root / "add/1/model.py").read_text() == ONE


def test_old_versions_go_by_their_own_word(world: World) -> None:
    world.start()
    world.run(src=world.model({1: ONE}))
    (world.src / "1" / "model.py").unlink()
    (world.src / "1").rmdir()
    assert world.run(src=world.model({2: TWO}))["deleted"] == []
    assert "add/1/model.py" in world.files()
    assert world.run(src=world.model({2: TWO}), purge_versions=True)["deleted"] == ["1/model.py"]
    assert world.files() == {"add/config.pbtxt", "add/2/model.py"}
    with pytest.raises(InvalidInput, match="version 1 of model add is neither"):
        world.run(versions=[1])


def test_a_replica_that_serves_something_else_is_told_again(world: World) -> None:
    world.start()
    src = world.model({1: ONE})
    world.run(src=src)
    world.replicas["triton-b"].index.clear()
    assert world.run(src=src, check=True)["changed"]
    assert world.served() == [[1], []]
    assert world.run(src=src)["replicas"] == {"triton-a": [1], "triton-b": [1]}


def test_a_policy_of_somebody_elses_does_not_let_a_new_version_out_early(world: World) -> None:
    world.start()
    write_model(world.root / "add", {1: ONE})  # its policy: the latest
    for replica in world.replicas.values():
        assert not replica.load("add", {})
    with pytest.raises(Failed, match="broken"):
        world.run(src=world.model({2: BROKEN}))
    assert "versions: 1" in world.policy
    assert world.served() == [[1], [1]]


def test_without_a_server_only_the_store_is_written(world: World) -> None:
    made = world.run(src=world.model({1: ONE}))
    assert (made["changed"], made["replicas"]) == (True, {})
    assert world.files() == {"add/config.pbtxt", "add/1/model.py"}
    assert not world.run(src=world.model({1: ONE}))["changed"]


def test_for_a_server_that_loads_at_its_start_only_nothing_but_the_store_is_written(world: World) -> None:
    world.start("none")
    made = world.run(src=world.model({1: ONE}))
    assert (made["changed"], made["replicas"], world.served()) == (True, {}, [[], []])
    assert world.files() == {"add/config.pbtxt", "add/1/model.py"}
    assert "serves what is uploaded from its next start on only" in world.warned[0]
    assert not world.run(src=world.model({1: ONE}))["changed"]


def test_it_waits_for_every_replica(world: World) -> None:
    world.start(replicas=1)
    deployment = world.cluster.stored("Deployment", "triton", "default")
    assert deployment
    deployment["spec"]["replicas"] = 2
    with pytest.raises(WaitTimeout, match="Last seen: 1 of 2 replicas are ready"):
        world.run(src=world.model({1: ONE}), wait_timeout=1)
    assert "add/config.pbtxt" not in world.files()


def test_a_replica_that_an_autoscaler_ends_meanwhile_is_not_missed(world: World) -> None:
    world.start()
    deployment = world.cluster.stored("Deployment", "triton", "default")
    assert deployment

    def ends() -> None:
        """The second replica goes while the first one loads."""
        deployment["spec"]["replicas"] = 1
        gone = Ref("v1", "Pod", "triton-b", "default")
        if world.cluster.stored("Pod", "triton-b", "default"):
            world.cluster.remove(gone)
            world.cluster.forwarded.pop(("default", "triton-b", 8000))

    first = world.replicas["triton-a"]
    load = first.load
    first.load = lambda *given: (ends(), load(*given))[1]  # type: ignore[method-assign]
    assert world.run(src=world.model({1: ONE}))["replicas"] == {"triton-a": [1]}
    assert world.served() == [[1], []]


def test_a_server_that_polls_is_waited_for(world: World) -> None:
    world.start("poll")

    def polls() -> None:
        for replica in world.replicas.values():
            if (world.root / "add").exists():
                replica.load("add", {})
            else:
                replica.unload("add")

    for replica in world.replicas.values():
        replica.rows = lambda rows=replica.rows: (polls(), rows())[1]  # type: ignore[method-assign]
    assert world.run(src=world.model({1: ONE}))["replicas"] == {"triton-a": [1], "triton-b": [1]}
    assert not world.run(src=world.model({1: ONE}))["changed"]
    assert world.run(src=world.model({2: TWO}))["versions"] == [2]
    with pytest.raises(Failed, match=r"refuses to load model add: version 3: RuntimeError: broken. The store has again"):
        world.run(src=world.model({3: BROKEN}))
    polls()
    assert world.served() == [[2], [2]]
    assert not [one for one in world.files() if one.startswith("add/3")]
    assert not [one for replica in world.replicas.values() for one in replica.asked]
    gone = world.run(state="absent", delete_data=True)
    assert (gone["changed"], world.served(), world.files()) == (True, [[], []], set())
    assert not (world.root / "add").exists()


def test_files_go_by_their_own_word_only(world: World) -> None:
    world.start()
    world.run(src=world.model({1: ONE}))
    with pytest.raises(InvalidInput, match="would load model add again"):
        world.run(state="absent")
    assert world.served() == [[1], [1]]
    planned = world.run(state="absent", delete_data=True, check=True)
    assert (planned["changed"], planned["deleted"], world.served()) == (True, ["1/model.py", "config.pbtxt"], [[1], [1]])
    gone = world.run(state="absent", delete_data=True)
    assert (gone["changed"], gone["deleted"], world.files(), world.served()) == (True, planned["deleted"], set(), [[], []])
    assert world.cluster.stored("ConfigMap", "triton-model-add-7e9e5a", "default") is None
    assert not world.run(state="absent", delete_data=True)["changed"]


def test_a_model_that_no_start_loads_can_be_unloaded_with_its_files_kept(world: World) -> None:
    world.start(load="other")
    world.run(src=world.model({1: ONE}))
    assert world.run(state="absent")["changed"]
    assert (world.served(), "add/1/model.py" in world.files()) == ([[], []], True)
    assert not world.run(state="absent")["changed"]


def test_a_model_that_every_start_needs_stays(world: World) -> None:
    world.start(load="add")
    world.run(src=world.model({1: ONE}))
    with pytest.raises(InvalidInput, match="would not start without it"):
        world.run(state="absent", delete_data=True)
    assert world.served() == [[1], [1]]


def test_a_note_that_is_wrong_is_found_out_where_a_replica_does_not_serve(volume: World) -> None:
    volume.start()
    src = volume.model({1: ONE})
    volume.run(src=src)
    (volume.root / "add/1/model.py").unlink()
    volume.replicas["triton-b"].index.clear()
    assert volume.run(src=src)["uploaded"] == ["1/model.py"]
    assert volume.served() == [[1], [1]]


def test_a_claim_that_is_missing_is_told_but_not_in_a_plan(volume: World) -> None:
    volume.cluster.remove(CLAIM)
    assert volume.run(src=volume.model({1: ONE}), check=True)["uploaded"] == ["1/model.py"]
    with pytest.raises(NotFound, match="the volume of the models, does not exist"):
        volume.run(src=volume.model({1: ONE}))


def test_keys_that_are_missing_are_told_but_not_in_a_plan(volume: World) -> None:
    volume.where = "bucket"
    given = {"src": volume.model({1: ONE}), "credentials_secret": "store-login"}
    assert volume.run(**given, check=True)["uploaded"] == ["1/model.py"]
    with pytest.raises(NotFound, match="Secret default/store-login, which has the keys"):
        volume.run(**given)


def test_a_store_in_the_cluster_is_reached_by_its_service(volume: World, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[t.Any] = []
    monkeypatch.setattr(s3, "client", lambda endpoint, *_keys, **more: seen.append((endpoint, more["direct"])) or volume.bucket)
    place = {"model_repository": "s3://http://store.ml.svc:7070/models", "storage": None, "src": volume.model({1: ONE})}
    with pytest.raises(NotFound, match="Service ml/store, which leads to the store"):
        volume.run(**place)
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "store", "namespace": "ml"},
               "spec": {"selector": {"app": "store"}, "ports": [{"port": 7070, "targetPort": 7071}]}}  # fmt: skip
    volume.cluster.add(service)
    with pytest.raises(Unreachable, match="has no pods"):
        volume.run(**place)
    volume.cluster.controllers.clear()
    volume.cluster.add(pods.pod("store-0", namespace="ml", labels={"app": "store"}, conditions=READY))
    volume.cluster.forwarded["ml", "store-0", 7071] = ("127.0.0.1", volume.writer.port)
    assert volume.run(**place)["uploaded"] == ["1/model.py"]
    assert seen[0][0].startswith("http://127.0.0.1:")
    assert seen[0][1] is True

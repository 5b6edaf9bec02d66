# SPDX-License-Identifier: GPL-3.0-or-later
"""A system is added to a copy of the collection, and lives its life on a real cluster (MUSTER_KUBECONFIG).

What it takes is new files and one entry in one list: no other file of the copy is touched, and all playbooks know the system.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.places import BIN, ROOT, sources

from ansible_collections.muster.ml.plugins.module_utils._core.clock import SYSTEM_CLOCK
from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster, connect
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref
from systems.sample import ENTRY, FILES, LIST

KUBECONFIG = os.environ["MUSTER_KUBECONFIG"]
NAMESPACE = "sample-system"
CLUSTER = {"muster_kubeconfig": KUBECONFIG, "muster_systems": ["sample"]}
NAMESPACE_REF = Ref("v1", "Namespace", NAMESPACE, None)
GREETING = Ref("v1", "ConfigMap", "sample", NAMESPACE)


def words(text: str) -> str:
    """Without line breaks, which Ansible puts wherever a message is long."""
    return " ".join(text.split())


class Collection:
    """A copy of the collection with the sample in it."""

    def __init__(self, root: Path) -> None:
        self.root = root / "ansible_collections" / "muster" / "ml"
        self.summary = root / "summary.json"
        for name in sources():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self.root / name)

    def add_sample(self) -> None:
        for name, text in FILES.items():
            path = self.root / name
            assert not path.exists(), f"{name} is there already: adding a system changes nothing but {LIST}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        known = (self.root / LIST).read_text(encoding="utf-8")
        before, mark, after = known.partition("__systems_names:")
        (self.root / LIST).write_text(before + ENTRY + mark + after, encoding="utf-8")

    def run(self, program: str, *arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
        """An Ansible program on the given cluster, in the namespace of the sample."""
        given = {**CLUSTER, "muster_namespace": NAMESPACE, **settings}
        return self.ansible(program, "-i", "inventories/existing", "-e", json.dumps(given), *arguments)

    def ansible(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        collections = [str(self.root.parents[2]), *(path for path in sys.path if path.endswith("site-packages"))]
        return subprocess.run(
            [BIN / program, *arguments],
            cwd=self.root,
            env={
                **os.environ,
                "ANSIBLE_COLLECTIONS_PATH": os.pathsep.join(collections),
                "ANSIBLE_CONFIG": str(self.root / "ansible.cfg"),
                "MUSTER_SUMMARY_PATH": str(self.summary),
                "NO_COLOR": "1",
            },
            capture_output=True,
            text=True,
            check=False,
        )

    def play(self, playbook: str, *options: str, **settings: Any) -> str:
        done = self.run("ansible-playbook", f"playbooks/{playbook}.yml", *options, **settings)
        assert done.returncode == 0, done.stdout + done.stderr
        return words(done.stdout)

    def refused(self, playbook: str, **settings: Any) -> str:
        done = self.run("ansible-playbook", f"playbooks/{playbook}.yml", **settings)
        assert done.returncode != 0, done.stdout
        assert "changed=0" in done.stdout
        return words(done.stdout)


@pytest.fixture(scope="module")
def cluster() -> Iterator[HttpCluster]:
    connected = connect({"kubeconfig": KUBECONFIG}, SYSTEM_CLOCK)
    yield connected
    connected.close()


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory, cluster: HttpCluster) -> Collection:
    copied = Collection(tmp_path_factory.mktemp("collection"))
    copied.add_sample()
    if cluster.get(NAMESPACE_REF):  # of a run that failed
        copied.play("teardown", "--tags", "sample,namespace")
    return copied


def test_a_name_that_no_system_has_is_refused_with_those_there_are(collection: Collection) -> None:
    told = collection.refused("site", muster_systems=["sampel"])
    assert "sampel unknown; there is persia, elastic, studioml, triton, tpu, llm, sample" in told


def test_its_images_are_those_of_the_local_cluster(collection: Collection) -> None:
    shown = collection.run("ansible", "localhost", "-m", "ansible.builtin.debug", "-a", "var=muster_images", "-e", f"@{LIST}")
    assert "- tools" in shown.stdout


def test_bad_options_are_refused_before_anything_is_made(collection: Collection, cluster: HttpCluster) -> None:
    assert "sample_greeting is empty." in collection.refused("site", sample_greeting="")
    assert "nobody reads more than 20 characters" in collection.refused("site", sample_greeting="x" * 21)
    assert cluster.get(NAMESPACE_REF) is None


def test_a_plan_names_its_objects_and_makes_none(collection: Collection, cluster: HttpCluster) -> None:
    collection.play("site", "--check")
    planned = json.loads(collection.summary.read_text(encoding="utf-8"))["objects"]
    assert {(entry["kind"], entry["name"]) for entry in planned} == {("Namespace", NAMESPACE), ("ConfigMap", "sample")}
    assert cluster.get(NAMESPACE_REF) is None


def test_it_is_installed_once(collection: Collection, cluster: HttpCluster) -> None:
    collection.play("site")
    assert cluster.get(GREETING) is not None
    summary = json.loads(collection.summary.read_text(encoding="utf-8"))
    assert summary["systems"] == {"sample": {"ok": True}}
    assert f"sample.{NAMESPACE}" in collection.play("status")
    assert "changed=0" in collection.play("sample", muster_systems=["persia"])
    assert json.loads(collection.summary.read_text(encoding="utf-8"))["playbook"] == "sample.yml"


def test_it_is_removed_by_its_name(collection: Collection, cluster: HttpCluster) -> None:
    told = collection.play("teardown", "--tags", "sample")
    assert cluster.get(GREETING) is None
    assert f"namespace.{NAMESPACE}" in told
    assert f"sample.{NAMESPACE}" not in told
    told = collection.play("teardown", "--tags", "namespace")
    assert f"namespace.{NAMESPACE}" not in told, told
    assert cluster.get(NAMESPACE_REF) is None


class Fleet:
    """An inventory with two hosts of the group muster_clusters: two namespaces of the one cluster."""

    def __init__(self, collection: Collection, folder: Path) -> None:
        self._collection, self._path = collection, folder / "fleet.json"
        here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        self.hosts = {name: {**here, **CLUSTER, "muster_platform": "existing", "muster_namespace": f"sample-{name}"} for name in "ab"}

    def play(self, playbook: str, *options: str) -> subprocess.CompletedProcess[str]:
        self._path.write_text(json.dumps({"muster_clusters": {"hosts": self.hosts}}), encoding="utf-8")
        return self._collection.ansible("ansible-playbook", "-i", str(self._path), f"playbooks/{playbook}.yml", *options)

    def summary(self, name: str) -> dict[str, Any]:
        path = self._collection.summary
        found: dict[str, Any] = json.loads(path.with_name(f"summary-{name}.json").read_text(encoding="utf-8"))
        return found


@pytest.fixture(scope="module")
def fleet(collection: Collection, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    made = Fleet(collection, tmp_path_factory.mktemp("fleet"))
    yield made
    made.play("teardown", "--tags", "sample,namespace")


def greetings(cluster: HttpCluster) -> list[bool]:
    return [cluster.get(Ref("v1", "ConfigMap", "sample", f"sample-{name}")) is not None for name in "ab"]


def test_each_cluster_of_a_fleet_gets_its_system(fleet: Fleet, cluster: HttpCluster) -> None:
    fleet.hosts["b"]["sample_greeting"] = ""
    done = fleet.play("site")
    assert (done.returncode, greetings(cluster)) == (2, [False, False]), done.stdout + done.stderr
    del fleet.hosts["b"]["sample_greeting"]
    done = fleet.play("site")
    assert done.returncode == 0, done.stdout + done.stderr
    assert greetings(cluster) == [True, True]
    for name in "ab":
        summary = fleet.summary(name)
        assert (summary["systems"], summary["failed"]) == ({"sample": {"ok": True}}, 0)
        assert {entry["namespace"] for entry in summary["objects"]} <= {None, f"sample-{name}"}
    fleet.play("site")
    assert [fleet.summary(name)["changed"] for name in "ab"] == [0, 0]


def test_what_one_cluster_of_a_fleet_lacks_is_no_matter_to_the_other(fleet: Fleet, cluster: HttpCluster) -> None:
    fleet.play("teardown", "--tags", "sample")
    assert greetings(cluster) == [False, False]
    fleet.hosts["a"]["muster_context"] = "none"
    done = fleet.play("sample")
    assert done.returncode == 2
    assert greetings(cluster) == [False, True], done.stdout + done.stderr
    assert [fleet.summary(name)["failed"] for name in "ab"] == [1, 0]
    del fleet.hosts["a"]["muster_context"]


def test_one_cluster_of_a_fleet_is_removed(fleet: Fleet, cluster: HttpCluster) -> None:
    assert fleet.play("sample").returncode == 0
    done = fleet.play("teardown", "--tags", "sample,namespace", "--limit", "a")
    assert (done.returncode, greetings(cluster)) == (0, [False, True]), done.stdout + done.stderr
    assert "sample.sample-a" not in done.stdout

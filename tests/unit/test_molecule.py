# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster that a molecule scenario may run on: one that role local_cluster made on this machine, whatever ~/.kube/config names."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import scenario
from support.docs import collection
from support.places import BIN

RECORDS = "'/var/lib/muster/' ~ entry.name"
SERVERS = {
    "local": "https://10.220.0.2:6443",
    "by_name": "https://kubernetes.example.org",
    "beside": "https://10.220.1.2:6443",
    "sixth": "https://[2001:db8::1]:6443",
}


def given(folder: Path, name: str) -> tuple[Any, Any]:
    """The variables of all hosts, and the connection of localhost."""
    found = scenario.Scenario(name, folder).settings()
    connection = found["driver"]["options"]["ansible_connection_options"]["ansible_connection"]
    return found["provisioner"]["inventory"]["group_vars"]["all"], connection


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What one task prints on a host for each cluster, beside the record of cluster sample."""
    folder = tmp_path_factory.mktemp("molecule")
    (folder / "sample").mkdir()
    (folder / "sample" / "cluster.json").write_text(json.dumps({"name": "sample", "node_subnet": "10.220.0.0/24"}), encoding="utf-8")
    scenario.Scenario("namespace", folder).write()
    variables, connection = given(folder, "namespace")
    # The folder of records is fixed; the test's own stands in for it.
    refusal = variables["molecule_refusal"].replace(RECORDS, f"'{folder}/' ~ entry.name")
    assert refusal != variables["molecule_refusal"]
    hosts = {name: {"muster_kubeconfig": str(folder / name)} for name in [*SERVERS, "to_be_made"]} | {"unset": {"muster_kubeconfig": ""}}
    for name, server in SERVERS.items():
        clusters = {"clusters": [{"name": "sample", "cluster": {"server": server}}]}
        (folder / name).write_text(yaml.safe_dump(clusters), encoding="utf-8")
    shared = {"ansible_connection": connection, "molecule_refusal": refusal}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts, "vars": shared}}), encoding="utf-8")
    done = subprocess.run(
        [BIN / "ansible", "-i", folder / "hosts.yml", "all", "-o", "-m", "ansible.builtin.debug"],
        env={**os.environ, "ANSIBLE_CONFIG": str(folder / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    return {line.split(" | ")[0]: line for line in done.stdout.splitlines() if " | " in line}


@pytest.mark.parametrize("host", ["local", "to_be_made"])
def test_a_local_cluster_is_connected_to(answers: dict[str, str], host: str) -> None:
    assert answers[host].startswith(f"{host} | SUCCESS")


@pytest.mark.parametrize("host", ["by_name", "beside", "sixth"])
def test_another_cluster_is_refused(answers: dict[str, str], host: str) -> None:
    assert f"names cluster sample at {SERVERS[host]}, which role local_cluster did not make on this machine" in answers[host]


def test_molecule_by_itself_is_refused(answers: dict[str, str]) -> None:
    """It sets no kubeconfig, and clients would read ~/.kube/config."""
    assert "MUSTER_KUBECONFIG is not set" in answers["unset"]


@pytest.mark.parametrize("name", collection.scenarios())
def test_no_scenario_has_a_connection_of_its_own(tmp_path: Path, name: str) -> None:
    variables, connection = given(tmp_path, name)
    assert "molecule_refusal" in connection
    assert "ansible_connection" not in variables

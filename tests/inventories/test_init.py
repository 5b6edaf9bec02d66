# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook init: the inventory that it writes without a cluster can be used, and nothing is overwritten."""

import pytest

from inventories.conftest import Theirs
from inventories.server import Server


def test_an_inventory_for_this_machine(theirs: Theirs) -> None:
    theirs.write("inventory/hosts.yml", {"all": {"hosts": {"localhost": {"ansible_connection": "local"}}}})
    assert theirs.play("muster.ml.init", init_folder="mine", muster_systems=["persia", "elastic"]) == 0, theirs.output
    hosts = theirs.folder / "mine" / "hosts.yml"
    assert hosts.exists()
    before = {path: path.read_bytes() for path in (theirs.folder / "mine").rglob("*") if path.is_file()}
    assert theirs.play("muster.ml.init", init_folder="mine") == 2
    assert "mine exists, and nothing is overwritten" in theirs.told
    assert {path: path.read_bytes() for path in (theirs.folder / "mine").rglob("*") if path.is_file()} == before
    assert theirs.play("muster.ml.status", "-i", "mine", local_cluster_name="nothere") == 0, theirs.output


def test_a_system_that_does_not_exist(theirs: Theirs) -> None:
    theirs.write("inventory/hosts.yml", {"all": {"hosts": {"localhost": {"ansible_connection": "local"}}}})
    assert theirs.play("muster.ml.init", init_folder="mine", muster_systems=["elastik"]) == 2
    assert "elastik" in theirs.told
    assert not (theirs.folder / "mine").exists()


@pytest.mark.parametrize("kubeconfig", ["nothere:{}", ":{}", ""])
def test_an_inventory_for_a_cluster(theirs: Theirs, servers: tuple[Server, Server], kubeconfig: str) -> None:
    """One of several files, the first of which is missing or has no name; or a mapping, such as one from a vault."""
    content = servers[0].kubeconfig()
    theirs.environment["KUBECONFIG"] = kubeconfig.format(theirs.write("kubeconfig", content))
    given = {} if kubeconfig else {"muster_kubeconfig": content}
    theirs.write("inventory/hosts.yml", {"all": {"hosts": {"localhost": {"ansible_connection": "local"}}, "vars": given}})
    assert theirs.play("muster.ml.init", init_folder="mine") == 0, theirs.output
    assert "is for the cluster" in theirs.told
    assert "token-of-one" not in theirs.output


def test_claims_need_a_class_where_there_is_none(theirs: Theirs, servers: tuple[Server, Server]) -> None:
    """A comment where the role makes no claim by itself."""
    theirs.write("inventory/hosts.yml", {"all": {"hosts": {"localhost": {"ansible_connection": "local"}}}})
    kubeconfig = str(theirs.write("kubeconfig", servers[0].kubeconfig()))
    systems = ["elastic", "llm", "persia", "tpu", "triton"]
    assert theirs.play("muster.ml.init", init_folder="mine", muster_kubeconfig=kubeconfig, muster_systems=systems) == 0, theirs.output
    lines = (theirs.folder / "mine" / "group_vars" / "all.yml").read_text().splitlines()
    found = [line for line in lines if "_storage: {storage_class_name: " in line]
    assert [line.partition("_storage")[0] for line in found] == ["persia", "elastic", "# triton", "tpu", "# llm"]

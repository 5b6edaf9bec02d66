# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook init: the inventory that it writes without a cluster can be used, and nothing is overwritten."""

from __future__ import annotations

from inventories.conftest import Theirs


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

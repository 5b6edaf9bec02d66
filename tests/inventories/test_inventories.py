# SPDX-License-Identifier: GPL-3.0-or-later
"""Inventories as people have them, those of docs/platforms/inventory.md first, against two API servers that run here."""

import json
import re
import resource
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.docs.pages import Page
from support.places import BIN, ROOT

from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from inventories.conftest import Theirs
from inventories.server import Server

SITE = "muster.ml.site"
LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "muster_platform": "existing"}


def shape(number: int) -> dict[str, Any]:
    """An inventory of the page, by its position."""
    name = "docs/platforms/inventory.md"
    page = Page(name, (ROOT / name).read_text(encoding="utf-8"))
    found = [yaml.safe_load(fence.text) for fence in page.fences() if fence.language == "yaml"]
    return [content for content in found if "all" in content][number]


def of_group(inventory: dict[str, Any]) -> dict[str, Any]:
    group: dict[str, Any] = inventory["all"]["children"]["muster_clusters"]
    return group


def fleet(theirs: Theirs, servers: tuple[Server, ...], **variables: Any) -> dict[str, dict[str, Any]]:
    """An inventory with clusters a, b, ... and another host; returns the variables of each, to be changed and written again."""
    hosts: dict[str, dict[str, Any]] = {}
    for name, server in zip("abc", servers, strict=False):
        path = theirs.write(f"{name}.kubeconfig", server.kubeconfig())
        hosts[name] = {**LOCAL, "muster_kubeconfig": str(path), "muster_systems": [], **variables}
    return write_fleet(theirs, hosts)


def write_fleet(theirs: Theirs, hosts: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    children = {"muster_clusters": {"hosts": hosts}, "webservers": {"hosts": {"web1": {}}}, "local": {"hosts": {"old": {}}}}
    theirs.write("inventory/hosts.yml", {"all": {"children": children}})
    return hosts


def test_strategy_and_tags_of_the_command_are_no_way_around_the_checks(theirs: Theirs, servers: tuple[Server, Server]) -> None:
    hosts = fleet(theirs, servers)
    hosts["b"]["muster_systems"] = ["elastik"]
    write_fleet(theirs, hosts)
    theirs.environment["ANSIBLE_STRATEGY"] = "free"
    assert theirs.play(SITE, "--check") == 2
    assert "elastik unknown" in theirs.told
    assert [server.requests for server in servers] == [[], []]
    for playbook in (SITE, "muster.ml.teardown"):
        assert theirs.play(playbook, "--check", "--skip-tags", "always") != 0
        assert "--skip-tags always leaves out the checks of the inventory" in theirs.told


def test_clusters_beside_other_hosts(theirs: Theirs, servers: tuple[Server, Server]) -> None:
    """One kubeconfig in a file, one in a vault; ansible_become for all hosts would need a sudo that asks for a password."""
    one, two = servers
    inventory = shape(0)
    of_group(inventory)["hosts"]["research"]["muster_kubeconfig"] = str(theirs.write("research", one.kubeconfig()))
    theirs.write("inventory/hosts.yml", inventory)
    vault = theirs.write("inventory/group_vars/muster_clusters/vault.yml", {"vault_production_kubeconfig": two.kubeconfig()})
    theirs.write("password", "correct horse")
    encrypt = [BIN / "ansible-vault", "encrypt", "--vault-password-file", theirs.folder / "password", vault]
    subprocess.run(encrypt, check=True, capture_output=True)
    with_vault = "--vault-password-file", "password"
    assert theirs.play(SITE, *with_vault, muster_systems=[]) == 0, theirs.output
    assert set(theirs.recap()) == {"research", "production"}
    assert "token-of-two" not in theirs.output
    assert {name: (found["cluster"], found["failed"]) for name, found in theirs.summaries().items()} == {
        "research": ("research", 0),
        "production": ("production", 0),
    }
    one.requests.clear()
    assert theirs.play("muster.ml.status", *with_vault, "--limit", "production") == 0, theirs.output
    assert set(theirs.recap()) == {"production"}
    assert one.requests == []
    assert "nothing of namespace ml is on this cluster" in theirs.told
    # The kubeconfig of a local cluster is looked for by a module of Ansible's own.
    assert theirs.play("muster.ml.status", *with_vault, "--limit", "research", muster_platform="local") == 0, theirs.output
    assert theirs.log("sudo") == ""


def test_behind_a_bastion(theirs: Theirs, servers: tuple[Server, Server]) -> None:
    """The kubeconfig is on the host, for root: all is asked from there."""
    inventory = shape(1)
    group = of_group(inventory)
    group["vars"]["ansible_python_interpreter"] = sys.executable
    for host, server in zip(group["hosts"].values(), servers, strict=True):
        host["muster_kubeconfig"] = str(theirs.write(f"{server.name}.kubeconfig", server.kubeconfig()))
    theirs.write("inventory/hosts.yml", inventory)
    assert theirs.play(SITE, muster_systems=[]) == 0, theirs.output
    assert theirs.play("muster.ml.status") == 0, theirs.output
    assert set(theirs.recap()) == {"north", "south"}
    assert all("GET /version" in server.requests for server in servers)
    for address in ("10.1.0.10", "10.2.0.10"):
        assert " -o ProxyJump=ops@bastion.example.com" in theirs.log("ssh")
        assert f" {address} " in theirs.log("ssh")
    assert "-u root" in theirs.log("sudo")


def test_clusters_that_muster_makes() -> None:
    """The two clusters of inventories/fleet share nothing that they must not share, and have the rest from inventories/local."""
    command = [BIN / "ansible-inventory", "-i", "inventories/local", "-i", "inventories/fleet", "--list"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = yaml.safe_load(done.stdout)
    assert found["muster_clusters"]["hosts"] == ["a", "b"]
    a, b = (found["_meta"]["hostvars"][name] for name in "ab")
    assert (a["muster_systems"], b["muster_systems"]) == (["persia"], ["elastic"])
    assert a["persia_image"] == b["persia_image"] != ""
    own = ("local_cluster_name", "local_cluster_audit_log", "muster_kubeconfig")
    assert all("inventory_hostname" in a[name] for name in own)


def test_only_the_clusters_of_a_playbook_are_touched(theirs: Theirs, servers: tuple[Server, Server]) -> None:
    """Hosts of a group that happens to be called local, clusters of another platform, and those without the system."""
    hosts = fleet(theirs, servers)
    assert theirs.play("muster.ml.local") == 0, theirs.output
    assert theirs.play("muster.ml.eks") == 0, theirs.output
    assert theirs.play("muster.ml.gke") == 0, theirs.output
    assert theirs.play("muster.ml.persia") == 0, theirs.output
    assert [server.requests for server in servers] == [[], []]
    hosts["b"]["muster_systems"] = ["persia"]
    write_fleet(theirs, hosts)
    assert theirs.play("muster.ml.persia", persia_image="example.com/persia:1") == 2
    assert "No module" not in theirs.output
    assert (servers[0].requests, bool(servers[1].requests)) == ([], True)


def test_different_systems_are_installed_at_the_same_time(theirs: Theirs, servers: tuple[Server, Server]) -> None:
    """The first request of PERSIA on one cluster waits for the first one of elastic PyTorch on the other."""
    hosts = fleet(theirs, servers, persia_image="example.com/persia:1")
    hosts["a"]["muster_systems"], hosts["b"]["muster_systems"] = ["persia"], ["elastic"]
    write_fleet(theirs, hosts)
    came = {server.name: threading.Event() for server in servers}
    passed: set[str] = set()

    def meet(server: Server) -> None:
        # Those of existing.yml come before. One run may send several requests at once.
        if server.requests[-1] not in ("GET /version", "GET /api/v1/nodes"):
            came[server.name].set()
            if all(event.wait(60) for event in came.values()):
                passed.add(server.name)

    for server in servers:
        server.before = lambda server=server: meet(server)
    assert theirs.play(SITE) == 2, "these servers have nothing that could be installed on"
    assert passed == {"one", "two"}


@pytest.mark.parametrize("dead", ["connection", "host"])
def test_the_failure_of_one_does_not_stop_the_others(dead: str, theirs: Theirs, servers: tuple[Server, Server]) -> None:
    hosts = fleet(theirs, servers)
    if dead == "connection":
        servers[0].stop()
    else:
        theirs.program("ssh", "#!/bin/sh\nexit 255\n")
        hosts["a"]["ansible_connection"] = "ssh"
        write_fleet(theirs, hosts)
    assert theirs.play(SITE) == {"connection": 2, "host": 4}[dead]
    recap = theirs.recap()
    assert recap["a"]["failed"] + recap["a"]["unreachable"] == 1
    assert recap["b"]["failed"] + recap["b"]["unreachable"] == 0
    assert "state of everything" in theirs.output
    assert {name: found["failed"] for name, found in theirs.summaries().items()} == {"a": 1, "b": 0}


@pytest.mark.parametrize("playbook", ["site", "persia", "teardown", "local", "eks", "gke", "status"])
def test_a_cluster_without_a_kubeconfig_stops_all(playbook: str, theirs: Theirs, servers: tuple[Server, Server]) -> None:
    hosts = fleet(theirs, servers, muster_systems=["persia"])
    del hosts["b"]["muster_kubeconfig"]
    write_fleet(theirs, hosts)
    assert theirs.play(f"muster.ml.{playbook}") == 2
    told = "Cluster b of the group muster_clusters has no muster_kubeconfig. Set it for this host"
    assert theirs.output.count("fatal: [") == 1
    assert told in theirs.told
    assert [server.requests for server in servers] == [[], []]
    assert theirs.play("muster.ml.status", "--limit", "!b") == 0, theirs.output


def test_wrong_options_of_one_stop_all(theirs: Theirs, servers: tuple[Server, Server]) -> None:
    hosts = fleet(theirs, servers)
    hosts["b"]["muster_systems"] = ["persai"]
    write_fleet(theirs, hosts)
    assert theirs.play(SITE) == 2
    assert theirs.output.count("fatal: [") == 1
    assert "persai unknown" in theirs.told
    assert [server.requests for server in servers] == [[], []]


def test_a_variable_that_does_not_exist_stops_all(theirs: Theirs, servers: tuple[Server, Server]) -> None:
    """The file of the inventory and the line are named. What a play of theirs registers is not judged, nor what they say is theirs."""
    fleet(theirs, servers)
    settings = {"etcd_data_dir": "/var/lib/etcd", "elastic_replica": 3, "elastic_verfy": True}
    path = theirs.write("inventory/group_vars/muster_clusters.yml", settings)
    assert theirs.play(SITE) == 2
    for name, line, meant in (("elastic_replica", 1, "elastic_replicas"), ("elastic_verfy", 2, "elastic_verify")):
        assert f"{name} ({path.relative_to(theirs.folder)}:{line}) is not a variable of Muster. Did you mean {meant}?" in theirs.told
    assert "etcd_data_dir" not in theirs.told
    assert [server.requests for server in servers] == [[], []]
    assert theirs.play("muster.ml.status", muster_ignored_variables=["elastic_*"]) == 0, theirs.output
    play = {"hosts": "muster_clusters", "gather_facts": False, "tasks": [{"ansible.builtin.ping": {}, "register": "elastic_answer"}]}
    path.unlink()
    theirs.write("own.yml", [play, {"import_playbook": "muster.ml.status"}])
    assert theirs.play("own.yml") == 0, theirs.output


def test_a_tag_that_nothing_has_stops_all(theirs: Theirs, servers: tuple[Server, Server]) -> None:
    """It would do nothing, and end well. A tag of theirs that their playbook gives to ours is known; another one may be of their plays."""
    fleet(theirs, servers)
    for playbook, option, tag, meant in (
        (SITE, "--tags", "elastc", "elastic"),
        ("muster.ml.teardown", "--skip-tags", "persa", "persia"),
        ("muster.ml.tpu", "--tags", "tpi", "tpu"),
    ):
        assert theirs.play(playbook, option, tag) == 2
        assert f"{tag} ({option}) is not a tag of Muster. Did you mean {meant}?" in theirs.told
    theirs.write("own.yml", [{"import_playbook": "muster.ml.status", "tags": "gpu"}])
    assert theirs.play("own.yml", "--tags", "tpuu") == 0, theirs.output
    assert "Did you mean tpu? If it is yours, name it in muster_ignored_variables." in theirs.told
    assert [server.requests for server in servers] == [[], []]
    assert theirs.play("own.yml", "--tags", "gpu") == 0, theirs.output
    assert "is not a tag" not in theirs.told
    assert all(server.requests for server in servers)


# Groups, a host and some variables of kubespray's inventory/sample (46dbdd399) and deepops' config.example (3957a42f), August 2026.
THEIRS = {
    "kubespray": (
        {"kube_control_plane": "node1", "etcd": "node1", "kube_node": "node4"},
        {
            "etcd_data_dir": "/var/lib/etcd",
            "etcd_deployment_type": "host",
            "etcd_version": "3.6.14",
            "local_path_provisioner_enabled": False,
        },
        {"ansible_host": "95.54.0.12", "ip": "10.3.0.1", "etcd_member_name": "etcd1"},
    ),
    "deepops": (
        {"kube_control_plane": "mgmt01", "etcd": "mgmt01", "k8s_cluster": "mgmt01", "slurm-master": "login01", "slurm-node": "gpu01"},
        {"deepops_dir": "/opt/deepops", "kubeconfig_localhost": True, "nvidia_driver_branch": "580"},
        {"ansible_host": "10.0.0.1"},
    ),
}


@pytest.mark.parametrize("project", THEIRS)
def test_beside_the_inventory_of_another_project(project: str, theirs: Theirs, servers: tuple[Server, Server]) -> None:
    """One host of theirs gets into muster_clusters; their files stay as they are."""
    groups, variables, own = THEIRS[project]
    host = groups["kube_control_plane"]
    children = {group: {"hosts": {name: own if name == host else {}}} for group, name in groups.items()}
    theirs.write("theirs/hosts.yml", {"all": {"children": children}})
    theirs.write("theirs/group_vars/all.yml", variables)
    path = theirs.write("kubeconfig", servers[0].kubeconfig())
    settings = {"ansible_python_interpreter": sys.executable, "muster_platform": "existing", "muster_kubeconfig": str(path)}
    write_fleet(theirs, {host: {**settings, "muster_systems": []}})
    for playbook in (SITE, "muster.ml.status"):
        assert theirs.play(playbook, "-i", "theirs") == 0, theirs.output
        assert set(theirs.recap()) == {host}
    assert f" {own['ansible_host']} " in theirs.log("ssh")


TYPOS = yaml.safe_load((ROOT / "tests/inventories/typos.yml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("place", TYPOS)
def test_typos_and_wrong_values_are_refused_at_once(place: str, theirs: Theirs) -> None:
    """Each with its name, the place where it was set, and the nearest name, in one start of Ansible (2 s on an idle machine)."""
    given = {name: row["value"] if isinstance(row, dict) else 1 for name, row in TYPOS[place].items()}
    host = {**LOCAL, **(given if place == "inventory" else {})}
    files = {"group_vars": "inventory/group_vars/all.yml", "host_vars": "inventory/host_vars/localhost.yml", "file": "settings.yml"}
    written = theirs.write("inventory/hosts.yml", {"all": {"hosts": {"localhost": host}}})
    if place in files:
        written = theirs.write(files[place], given)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    options = ["-e", "@settings.yml"] if place == "file" else []
    assert theirs.play(SITE, *options, **(given if place == "command line" else {})) == 2
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    lines = written.read_text().splitlines()
    for name, row in TYPOS[place].items():
        number = next((n for n, line in enumerate(lines, 1) if line.strip().startswith(f"{name}:")), 0)
        where = "set by -e" if place == "command line" else f"{written.relative_to(theirs.folder)}:{number}"
        said = row["told"] if isinstance(row, dict) else f"is not a variable of Muster. Did you mean {row}?"
        assert f"{name} ({where}) {said}" in theirs.told
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 6


def test_extra_variables_cannot_name_one_cluster_for_all(theirs: Theirs, servers: tuple[Server, Server]) -> None:
    hosts = fleet(theirs, servers)
    assert theirs.play(SITE, muster_kubeconfig=hosts["a"]["muster_kubeconfig"]) == 2
    assert "are the same cluster" in theirs.told
    assert [server.requests for server in servers] == [[], []]


OF_THE_CLUSTER = ("kube-system", "coredns", "local_cluster.nowhere", "kube-system")
OF_ANOTHER = ("other", "theirs", "persia_job.other.fair", "")


def thing(namespace: str, name: str, owner: str = "", home: str = "") -> dict[str, Any]:
    labels = {"app.kubernetes.io/managed-by": "muster", "muster.ml/owner": owner, "muster.ml/home": home} if owner else {}
    metadata = {"name": name, "namespace": namespace, "labels": {label: value for label, value in labels.items() if value}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


@pytest.fixture
def local(theirs: Theirs, servers: tuple[Server, Server]) -> Server:
    """The API server of a local cluster that is not on this machine, with nothing but what role local_cluster installs."""
    theirs.write("inventory/hosts.yml", {"all": {"children": {"local": {"hosts": {"localhost": LOCAL | {"muster_platform": "local"}}}}}})
    settings = {"muster_kubeconfig": str(theirs.write("kubeconfig", servers[0].kubeconfig())), "local_cluster_name": "nowhere"}
    theirs.write("inventory/group_vars/all.yml", {**settings, "muster_namespace": "mine"})
    servers[0].cluster.kinds_served = FakeCluster().kinds_served
    servers[0].cluster.add(thing(*OF_THE_CLUSTER), thing("kube-system", "root"))
    return servers[0]


@pytest.mark.parametrize(
    ("more", "word", "stays"),
    [
        ([("mine", "ours", "elastic_job.mine.digits")], {}, ""),
        (
            [OF_ANOTHER, ("somebodys", "diary"), ("mine", "diary")],
            {},
            "fair, ConfigMap mine/diary, ConfigMap somebodys/diary.",
        ),
        ([], {"muster_delete_cluster": False}, "muster_delete_cluster is false"),
    ],
)
def test_a_local_cluster_goes_only_with_what_is_of_its_inventory(
    more: list[tuple[str, ...]], word: dict[str, bool], stays: str, theirs: Theirs, local: Server
) -> None:
    """There is no cluster of this name on the machine: its removal has nothing to do, and says so. By its tag, which is no other word."""
    local.cluster.add(*(thing(*one) for one in more))
    assert theirs.play("muster.ml.teardown", "--tags", "local", muster_delete_data=True, **word) == 0, theirs.output
    told = theirs.told.partition("PLAY [Remove the local cluster]")[2]
    assert ("The local cluster stays" in told, stays in told) == (bool(stays), True), told
    assert ("nowhere" in told) == (not stays), told


def test_a_local_cluster_that_does_not_answer_goes_by_its_own_word_only(theirs: Theirs, local: Server) -> None:
    local.stop()
    assert theirs.play("muster.ml.teardown", muster_delete_data=True) == 2
    assert "nothing was removed" in theirs.told
    assert "muster_delete_cluster=true" in theirs.told
    assert theirs.play("muster.ml.teardown", muster_delete_data=True, muster_delete_cluster=True) == 0, theirs.output


def test_the_objects_of_a_local_cluster_are_nobody_elses(theirs: Theirs, local: Server) -> None:
    operator = ("persia-operator", "operator", "persia_operator", "persia-operator")
    local.cluster.add(*(thing(*one) for one in (operator, OF_ANOTHER)))
    assert theirs.play("muster.ml.status") == 0, theirs.output
    rows = re.findall(r"([\w.]+) +1 object +ready", theirs.output)
    assert rows == ["persia_operator", "local_cluster.nowhere"], theirs.output
    assert "1 other owner of objects on this cluster" in theirs.told
    assert "nothing of namespace mine is on this cluster" in theirs.told


def test_an_empty_group_is_no_cluster(theirs: Theirs) -> None:
    theirs.write("inventory/hosts.yml", {"all": {"children": {"muster_clusters": {}, "web": {"hosts": {"web1": {}}}}}})
    assert theirs.play(SITE) == 0
    assert theirs.recap() == {}


def test_from_awx(theirs: Theirs, servers: tuple[Server, Server]) -> None:
    """An inventory from a program, the settings in a file, a playbook of one's own, and the switch for privilege escalation."""
    hosts = fleet(theirs, servers)
    shutil.rmtree(theirs.folder / "inventory")
    listed = {"muster_clusters": {"hosts": list(hosts)}, "_meta": {"hostvars": hosts}}
    script = theirs.write("inventory", f"#!/bin/sh\ncat <<'END'\n{json.dumps(listed)}\nEND\n")
    script.chmod(0o755)
    theirs.write("site.yml", [{"import_playbook": "muster.ml.site"}])
    theirs.write("settings.yml", {"muster_namespace": "team", "muster_systems": []})
    assert theirs.play("site.yml", "-e", "@settings.yml", "--become") == 0, theirs.output
    assert set(theirs.recap()) == set(hosts)
    assert theirs.log("sudo") == ""
    assert "-n team get pods" in theirs.told


def test_without_the_group_localhost_is_the_cluster(theirs: Theirs, servers: tuple[Server, Server]) -> None:
    shutil.copytree(ROOT / "inventories" / "existing", theirs.folder / "inventory")
    kubeconfig = str(theirs.write("kubeconfig", servers[0].kubeconfig()))
    assert theirs.play(SITE, muster_kubeconfig=kubeconfig, muster_systems=[]) == 0, theirs.output
    assert set(theirs.recap()) == {"localhost"}
    (summary,) = theirs.summaries().values()
    assert "cluster" not in summary
    assert Path(theirs.folder / "build" / "run" / "summary.json").exists()

# SPDX-License-Identifier: GPL-3.0-or-later
"""What an inventory may be wrong about before any cluster is asked."""

import typing as t
from pathlib import Path

import pytest
import yaml
from ansible.errors import AnsibleUndefinedVariable

from ansible_collections.muster.ml.plugins.callback.summary import DEFAULT_AUDIT_LOG
from ansible_collections.muster.ml.plugins.filter.cluster_problems import FilterModule

ROOT = Path(__file__).parents[4]
cluster_problems = FilterModule().filters()["cluster_problems"]


class Broken(dict[str, t.Any]):
    """Variables of a host one of which names a variable that is nowhere."""

    def get(self, name: str, default: t.Any = None) -> t.Any:
        if name == "muster_kubeconfig":
            raise AnsibleUndefinedVariable("'vault_kubeconfig' is undefined")
        return super().get(name, default)


def host(name: str, **variables: t.Any) -> dict[str, t.Any]:
    return {"inventory_hostname": name, "ansible_connection": "local", "muster_kubeconfig": f"/{name}", **variables}


def pair(**variables: t.Any) -> list[dict[str, t.Any]]:
    return [host("a", muster_kubeconfig="/same", **variables), host("b", muster_kubeconfig="/same")]


@pytest.mark.parametrize("given", [{"muster_kubeconfig": ""}, {"muster_kubeconfig": None}, {"muster_kubeconfig": {}}])
def test_a_cluster_needs_a_kubeconfig(given: dict[str, t.Any]) -> None:
    problems = cluster_problems([host("a"), host("b", **given)])
    assert list(problems) == ["b"]
    assert "Cluster b of the group muster_clusters has no muster_kubeconfig" in problems["b"]
    assert "--limit '!b'" in problems["b"]


def test_a_kubeconfig_that_cannot_be_read_is_named() -> None:
    problems = cluster_problems([Broken(host("a")), host("b"), host("c", muster_kubeconfig="{{ vault_c }}")])
    assert list(problems) == ["a", "c"]
    assert "of cluster a cannot be read: 'vault_kubeconfig' is undefined" in problems["a"]
    assert "of cluster c cannot be read: {{ vault_c }}" in problems["c"]


def test_a_cluster_is_not_given_twice() -> None:
    assert "a and b are the same cluster" in cluster_problems(pair())["b"]
    content = {"apiVersion": "v1", "users": [{"token": "secret"}]}
    told = cluster_problems([host("a", muster_kubeconfig=content), host("b", muster_kubeconfig=dict(content))])["b"]
    assert "secret" not in told


@pytest.mark.parametrize(
    "other",
    [
        {"muster_namespace": "other"},
        {"muster_context": "other"},
        {"ansible_connection": "ssh"},
        {"ansible_connection": "ssh", "ansible_host": "192.0.2.1"},
    ],
)
def test_another_namespace_context_or_host_is_another_place(other: dict[str, t.Any]) -> None:
    assert cluster_problems(pair(**other)) == {}


def test_two_hosts_with_the_same_path_are_two_clusters() -> None:
    remote = {"ansible_connection": "ssh", "muster_kubeconfig": "/etc/kubernetes/admin.conf"}
    assert cluster_problems([host("a", **remote), host("b", **remote)]) == {}
    assert "b" in cluster_problems([host(n, **remote, ansible_host="192.0.2.1") for n in ("a", "b")])


@pytest.mark.parametrize("platforms", [("local", "local"), ("eks", "eks")])
def test_two_clusters_are_not_made_with_one_kubeconfig(platforms: tuple[str, str]) -> None:
    both = [host(n, muster_platform=p, muster_kubeconfig="/k", muster_namespace=n) for n, p in zip("ab", platforms, strict=True)]
    assert "would both be made with the same muster_kubeconfig" in cluster_problems(both)["b"]


def test_local_clusters_do_not_share_their_audit_log() -> None:
    local = {"muster_platform": "local"}
    defaults = yaml.safe_load((ROOT / "roles/local_cluster/defaults/main.yml").read_text(encoding="utf-8"))
    assert f" {defaults['local_cluster_audit_log']}." in cluster_problems([host("a", **local), host("b", **local)])["b"]
    assert defaults["local_cluster_audit_log"] == DEFAULT_AUDIT_LOG
    assert f"'{DEFAULT_AUDIT_LOG}'" in (ROOT / "playbooks/systems.yml").read_text(encoding="utf-8")
    own = {"local_cluster_audit_log": "/var/log/muster/b/audit.log"}
    assert cluster_problems([host("a", **local), host("b", **local, **own)]) == {}

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import itertools
import typing as t

from ansible.errors import AnsibleError
from jinja2.exceptions import UndefinedError

DOCUMENTATION = r"""
name: cluster_problems
short_description: List clusters that the inventory does not define, or defines twice
author: Muster contributors (!UNKNOWN)
description:
  - Returns what is wrong with hosts of an inventory that stand for clusters, before anything is asked of a cluster.
  - Each host needs its own C(muster_kubeconfig). Several hosts may have the same cluster if it was not made by this collection and
    they differ in C(muster_namespace), for two runs in one namespace would undo each other's work.
  - Local clusters on one machine need their own C(local_cluster_audit_log), too.
positional: _input
options:
  _input:
    description: Variables of the hosts, from C(hostvars).
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Show which clusters the inventory is wrong about
  ansible.builtin.debug:
    msg: "{{ groups['muster_clusters'] | map('extract', hostvars) | muster.ml.cluster_problems }}"
"""

RETURN = r"""
_value:
  description: The problem and the next step, by name of the host. Empty if there is none.
  type: dict
  sample: {b: "Clusters a and b would both be made with the same muster_kubeconfig. Set another one for each of them."}
"""

Host = t.Mapping[str, t.Any]

_MADE = ("local", "eks", "gke")
_AUDIT_LOG = "/var/log/muster/audit.log"


def cluster_problems(hosts: t.Iterable[Host]) -> dict[str, str]:
    found = list(hosts)
    problems = {name: problem for host in found if (name := host["inventory_hostname"]) and (problem := _missing(host))}
    for first, second in itertools.combinations([host for host in found if _name(host) not in problems], 2):
        if problem := _same(first, second):
            problems.setdefault(_name(second), problem)
    return problems


def _name(host: Host) -> str:
    return str(host["inventory_hostname"])


def _missing(host: Host) -> str:
    """Refuse a cluster without a kubeconfig: the one of the environment would be used, for every cluster the same."""
    name = _name(host)
    try:
        given = host.get("muster_kubeconfig")
        unread = given if isinstance(given, str) and "{{" in given else ""  # ansible-core 2.18 leaves the template as it is
        is_set = bool(given)
    except (AnsibleError, UndefinedError) as exc:
        unread, is_set = str(exc), True
    if unread:
        return f"The muster_kubeconfig of cluster {name} cannot be read: {unread}. Correct it, or leave {name} out (--limit '!{name}')."
    if is_set:
        return ""
    return (
        f"Cluster {name} of the group muster_clusters has no muster_kubeconfig. Set it for this host, to the path of a kubeconfig or to "
        f"its content (host_vars/{name}.yml), or leave {name} out (--limit '!{name}')."
    )


def _same(first: Host, second: Host) -> str:
    """Find settings that two clusters share and each needs for itself."""
    names = f"{_name(first)} and {_name(second)}"
    if _machine(first) != _machine(second):
        return ""
    if _kubeconfig(first) == _kubeconfig(second):
        if _is_made(first) and _is_made(second):
            return f"Clusters {names} would both be made with the same muster_kubeconfig. Set another one for each of them."
        if _namespace(first) == _namespace(second):
            return (
                f"{names} are the same cluster: same muster_kubeconfig, muster_context and muster_namespace. Set one of these to another "
                "value, as a variable of each host (-e sets it for all)."
            )
    if _platform(first) == _platform(second) == "local" and _audit_log(first) == _audit_log(second):
        return (
            f"The API servers of clusters {names} would write to the same audit log, {_audit_log(first)}. Set local_cluster_audit_log of "
            "one of them to another file."
        )
    return ""


def _machine(host: Host) -> str:
    """The machine that reads the kubeconfig, and runs a local cluster: the controller, or the host itself."""
    return "" if host.get("ansible_connection") == "local" else str(host.get("ansible_host") or _name(host))


def _kubeconfig(host: Host) -> tuple[str, str]:
    return str(host["muster_kubeconfig"]), str(host.get("muster_context") or "")


def _namespace(host: Host) -> str:
    return str(host.get("muster_namespace") or "ml")


def _platform(host: Host) -> str:
    return str(host.get("muster_platform") or "")


def _is_made(host: Host) -> bool:
    """Whether site.yml makes the cluster, and writes its kubeconfig."""
    return _platform(host) in _MADE


def _audit_log(host: Host) -> str:
    return str(host.get("local_cluster_audit_log") or _AUDIT_LOG)


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"cluster_problems": cluster_problems}

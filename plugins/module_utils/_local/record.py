# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a cluster's options, with the versions that it has or is being upgraded to.

It is written before anything else is created, and removed after everything else. So what exists on the host under a cluster's name was
created by us if, and only if, there is a record.
"""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

from .._core.errors import Failed
from .node import marker, write_if_changed
from .spec import DEFAULT_LOG_FOLDER, record_file

if t.TYPE_CHECKING:
    from .cluster import LocalCluster

Record = dict[str, t.Any]
VERSIONS = ("kubernetes_version", "etcd_version", "coredns_version")
"""The options that an upgrade changes (upgrade.py)."""


def versions(options: t.Mapping[str, t.Any]) -> dict[str, str]:
    return {key: options[key] for key in VERSIONS if key in options}


def read(name: str) -> Record | None:
    """The recorded options of the cluster of that name, None if no record says that we created one."""
    path = record_file(name)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as exc:
        raise _unreadable(name, path, str(exc)) from exc
    if not isinstance(found, dict) or not isinstance(found.get("audit_log"), str):
        raise _unreadable(name, path, "it is not the record of a cluster")
    if found.get("name", name) != name:
        raise _unreadable(name, path, f"it is that of the cluster {found['name']}")
    return found


def _unreadable(name: str, path: Path, why: str) -> Failed:
    return Failed(
        f"The record of local cluster {name}, {path}, cannot be read: {why}.",
        hint="Nothing was changed. Restore the file; or remove it, run role local_cluster for this cluster again, which writes it again "
        "from the variables, and repeat this task.",
    )


def desired(cluster: LocalCluster) -> Record:
    """The desired record: the options, and what earlier ones left on the host."""
    before = read(cluster.spec.name)
    now = {**cluster.options, **{key: str(value) for key, value in cluster.spec.subnets.items()}}
    if before is None:
        return {**now, "found": _there_before(Path(now["audit_log"]))}
    # These cannot be changed in place; a kubeconfig stays listed until it is removed.
    fixed = {key: before[key] for key in cluster.immutable() if key in before}
    kubeconfigs = list(dict.fromkeys([*before.get("kubeconfigs", []), *now["kubeconfigs"]]))
    return {**now, **fixed, "kubeconfigs": kubeconfigs, "found": before.get("found", [])}


def _there_before(audit_log: Path) -> list[str]:
    """Existing files of others that the API server would write to."""
    return [str(audit_log)] if audit_log.exists() and not audit_log.is_relative_to(DEFAULT_LOG_FOLDER) else []


def is_stale(cluster: LocalCluster) -> bool:
    """Whether the record is missing or outdated."""
    return read(cluster.spec.name) != desired(cluster)


def write(cluster: LocalCluster) -> None:
    """Write the record, before anything of the cluster is created."""
    text = json.dumps(desired(cluster), indent=2, sort_keys=True) + "\n"
    before = " ".join(versions(read(cluster.spec.name) or {}).values())
    for unwritten in (one for one in map(marker, cluster.spec.all_nodes) if one.is_file() and not one.stat().st_size):
        write_if_changed(unwritten, before, 0o644)  # an earlier Muster wrote down no versions of nodes
    write_if_changed(record_file(cluster.spec.name), text, 0o644)

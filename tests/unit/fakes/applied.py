# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects that tests of the engine apply, one after the other, so that what a fake does at one request is the same each time."""

import copy
import typing as t

from ansible_collections.muster.ml.plugins.module_utils._kube.engine import apply_objects
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest
from ansible_collections.muster.ml.plugins.module_utils._kube.report import Report
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster

OWNER, OTHER = "o.ours", "o.theirs"


def config(name: str = "a", namespace: str | None = "default", **data: t.Any) -> Manifest:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {"x": "1"}}


def space(name: str = "ml", **labels: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def stateful(name: str = "w", **spec: t.Any) -> Manifest:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": {"replicas": 1, **spec}}


def apply(cluster: FakeCluster, *objects: t.Any, owner: str = OWNER, **options: t.Any) -> Report:
    given = {"check": False, "parallel": 1, **options}
    return apply_objects(cluster, copy.deepcopy(objects), owner=owner, **given)


def actions(report: Report) -> dict[str, str]:
    return {f"{change.ref.kind} {change.ref.name}": change.action for change in report.changes}

# SPDX-License-Identifier: GPL-3.0-or-later
"""A task with a module of ours: its options as Ansible hands them over, and what it does on a cluster."""

import copy
import types
import typing as t

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.muster.ml.plugins.module_utils._edge.run import Context
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster

Result = dict[str, t.Any]

# The class of the volumes of who names none.
DISKS: dict[str, t.Any] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "provisioner": "ebs.csi.aws.com",
    "metadata": {"name": "disks", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
}


def options(module: types.ModuleType, params: dict[str, t.Any]) -> dict[str, t.Any]:
    """The options of a task with their defaults; none of them may be wrong."""
    constraints = getattr(module, "CONSTRAINTS", {})
    given = ArgumentSpecValidator(module.ARGUMENT_SPEC, **constraints).validate(copy.deepcopy(params))
    assert not given.error_messages
    return dict(given.validated_parameters)


def context(module: types.ModuleType, cluster: FakeCluster, params: dict[str, t.Any], *, check: bool = False, **more: t.Any) -> Context:
    """What a module is called with."""
    return Context(params=options(module, params), check=check, connect=lambda: cluster, **{"clock": cluster.clock, **more})


def run(module: types.ModuleType, cluster: FakeCluster, params: dict[str, t.Any], **more: t.Any) -> Result:
    """The result of a task; MORE is for its Context, such as check."""
    return dict(module.execute(context(module, cluster, params, **more)))


def actions(result: Result) -> dict[str, str]:
    """What was done with each object, by KIND/NAME."""
    return {f"{entry['kind']}/{entry['name']}": entry["action"] for entry in result["objects"]}

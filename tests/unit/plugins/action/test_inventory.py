# SPDX-License-Identifier: GPL-3.0-or-later
"""What actions take from the inventory: whether root is needed, and which cluster they report about."""

import types
import typing as t

import pytest
from ansible.plugins.action import ActionBase

from ansible_collections.muster.ml.plugins.action import local_node, node_info
from ansible_collections.muster.ml.plugins.plugin_utils._controller import ControllerAction


def action_of(plugin: types.ModuleType) -> ControllerAction:
    action: ControllerAction = object.__new__(plugin.ActionModule)
    action._task = types.SimpleNamespace(args={}, become=None, async_val=0, check_mode=False, environment=[], name="Wait")
    action._connection = types.SimpleNamespace(transport="local", become=None)
    return action


@pytest.mark.parametrize(("plugin", "elsewhere"), [(local_node, True), (node_info, False)])
def test_who_heeds_ansible_become(plugin: types.ModuleType, elsewhere: bool) -> None:
    """What works on the host gets root by it, what asks Kubernetes needs none."""
    action = action_of(plugin)
    assert not action._runs_elsewhere()
    action._connection.become = object()
    assert action._runs_elsewhere() == elsewhere


@pytest.mark.parametrize(
    ("variables", "shown"),
    [
        ({"inventory_hostname": "a", "groups": {"muster_clusters": ["a", "b"]}}, "a: Wait"),
        ({"inventory_hostname": "localhost", "groups": {"muster_clusters": ["a", "b"]}}, "Wait"),
        ({"inventory_hostname": "localhost", "groups": {}}, "Wait"),
        (None, "Wait"),
    ],
)
def test_progress_names_its_cluster(variables: dict[str, t.Any] | None, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    action = action_of(node_info)
    action._connection.transport = "ssh"
    monkeypatch.setattr(ActionBase, "run", lambda *_: {})
    monkeypatch.setattr(action, "_execute_module", lambda **_: {})
    action.run(task_vars=variables)
    assert action._named(action._title()) == shown

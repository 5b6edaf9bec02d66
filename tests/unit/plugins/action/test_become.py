# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An inventory with ansible_become for all of its hosts: what works on the host gets root by it, what asks Kubernetes needs none."""

from __future__ import annotations

import types

import pytest

from ansible_collections.muster.ml.plugins.action import local_node, node_info
from ansible_collections.muster.ml.plugins.plugin_utils._controller import ControllerAction


@pytest.mark.parametrize(("plugin", "elsewhere"), [(local_node, True), (node_info, False)])
def test_who_heeds_ansible_become(plugin: types.ModuleType, elsewhere: bool) -> None:
    action: ControllerAction = object.__new__(plugin.ActionModule)
    action._task = types.SimpleNamespace(become=None, async_val=0, environment=[])
    action._connection = types.SimpleNamespace(transport="local", become=None)
    assert not action._runs_elsewhere()
    action._connection.become = object()
    assert action._runs_elsewhere() == elsewhere

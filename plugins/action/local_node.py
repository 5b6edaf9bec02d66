# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run the module local_node on the controller where that is the host."""

from __future__ import annotations

from ansible_collections.muster.ml.plugins.modules import local_node
from ansible_collections.muster.ml.plugins.plugin_utils._host_action import HostAction


class ActionModule(HostAction):
    module = local_node

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the module node_info on the controller."""

from __future__ import annotations

from ansible_collections.muster.ml.plugins.modules import node_info
from ansible_collections.muster.ml.plugins.plugin_utils._action import MusterAction


class ActionModule(MusterAction):
    """Runs the module's execute in this process."""

    module = node_info

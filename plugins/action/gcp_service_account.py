# SPDX-License-Identifier: GPL-3.0-or-later

from ansible_collections.muster.ml.plugins.plugin_utils._cloud_action import GcpAction


class ActionModule(GcpAction):
    """Run the module of this name on the controller."""

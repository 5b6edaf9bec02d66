# SPDX-License-Identifier: GPL-3.0-or-later

from ansible_collections.muster.ml.plugins.plugin_utils._action import MusterAction


class ActionModule(MusterAction):
    """Run the module of this name on the controller."""

# SPDX-License-Identifier: GPL-3.0-or-later

from ansible_collections.muster.ml.plugins.plugin_utils._action import MusterAction
from ansible_collections.muster.ml.plugins.plugin_utils._cloud_action import GcpAction


class ActionModule(GcpAction, MusterAction):
    """Runs the module gcs_hmac_key on the controller, with a connection to the cluster."""

    _run_here = MusterAction._run_here

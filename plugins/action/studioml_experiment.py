# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from ansible_collections.muster.ml.plugins.plugin_utils._early import ENCRYPTION, KUBERNETES, import_early, read_s3_early
from ansible_collections.muster.ml.plugins.plugin_utils._host_action import HostAction

import_early(ENCRYPTION, KUBERNETES)
read_s3_early()


class ActionModule(HostAction):
    """Runs the module studioml_experiment on the controller."""

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugin of modules that talk to Kubernetes. Those without a file of their own are links to this one."""

from __future__ import annotations

from ansible_collections.muster.ml.plugins.plugin_utils._action import MusterAction
from ansible_collections.muster.ml.plugins.plugin_utils._controller import module_named_like


class ActionModule(MusterAction):
    """Runs the module that has the name of this file or link."""

    module = module_named_like(__name__)

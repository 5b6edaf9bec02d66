# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options for waiting; twin of WAIT in module_utils/_edge/options.py."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  wait:
    description:
      - Whether to wait until every object is ready (or gone, with O(state=absent)).
      - All objects are watched at the same time. In check mode there is no waiting.
    type: bool
    default: false
  wait_timeout:
    description:
      - Seconds after which waiting fails. The error says for each object what was last seen.
    type: int
    default: 120
"""

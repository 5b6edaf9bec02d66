# SPDX-License-Identifier: GPL-3.0-or-later
"""Options for waiting; the same as WAIT in module_utils/_edge/options.py."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  wait:
    description:
      - Wait until every object is ready, or deleted with O(state=absent).
      - Check mode does not wait.
    type: bool
    default: false
  wait_timeout:
    description:
      - Seconds after which waiting fails. The error contains the last observed state of each object.
    type: int
    default: 120
"""

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Libraries that several modules need, with the versions of ``_edge/failure.py``."""

from __future__ import annotations


class ModuleDocFragment:
    CRYPTOGRAPHY = r"""
options: {}
requirements:
  - cryptography >= 45.0.0
"""

    YAML = r"""
options: {}
requirements:
  - PyYAML >= 6.0.1
"""

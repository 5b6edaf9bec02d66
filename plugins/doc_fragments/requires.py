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

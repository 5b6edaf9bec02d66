# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cannot be loaded."""

from __future__ import annotations


class TritonPythonModel:
    def initialize(self, args):
        raise RuntimeError("these weights are of another model")

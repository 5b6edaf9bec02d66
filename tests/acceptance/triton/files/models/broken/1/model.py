# SPDX-License-Identifier: GPL-3.0-or-later
"""Cannot be loaded."""

from __future__ import annotations


class TritonPythonModel:
    def initialize(self, args: dict[str, str]) -> None:
        raise RuntimeError("these weights are of another model")

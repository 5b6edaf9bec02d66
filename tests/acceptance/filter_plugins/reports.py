# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the report of a claim says of a failure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def failure_text(result: Mapping[str, Any], task: str) -> str:
    """The task that failed and why; where it ran a playbook, the errors of that playbook, too."""
    errors = [line for line in result.get("stdout_lines") or [] if line.startswith("[ERROR]")]
    return " ".join([f"{task}: {result.get('msg') or dict(result)}", *errors])


class FilterModule:
    """Filters of the report."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Every filter by its name."""
        return {"failure_text": failure_text}

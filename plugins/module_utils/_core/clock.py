# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Time, so that tests need not wait.

Private to the collection.
"""

from __future__ import annotations

import time
import typing as t


class Clock(t.Protocol):
    """Time as the engine sees it; the module ``time`` is one."""

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float, /) -> None: ...


SYSTEM_CLOCK: Clock = t.cast(Clock, time)

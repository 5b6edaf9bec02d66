# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is compiled is kept, also where the environment forbids it: each worker of each run would compile every file anew."""

from __future__ import annotations

import sys
from pathlib import Path

sys.dont_write_bytecode = False
sys.pycache_prefix = sys.pycache_prefix or str(Path(__file__).resolve().parents[1] / "build" / "pycache")

# SPDX-License-Identifier: GPL-3.0-or-later
"""What is compiled is kept, also where the environment forbids it: each worker of each run would compile every file anew."""

import sys
from pathlib import Path

sys.dont_write_bytecode = False
sys.pycache_prefix = sys.pycache_prefix or str(Path(__file__).resolve().parents[1] / "build" / "pycache")

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the checks: all of them, or those named on the command line (make test ONLY='ruff unit').

What needs no cluster and what needs it run side by side. Each has a log under build/test/logs; a table and a line of
counts close.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from support import cluster, static
from support.lanes import run_lanes
from support.places import BUILD


def main() -> int:
    lanes = [[*static.CHECKS, *cluster.machine_checks()], *cluster.checks()]
    names = [check.name for lane in lanes for check in lane]
    parser = argparse.ArgumentParser(description="Run Muster's checks.")
    parser.add_argument("names", nargs="*", metavar="CHECK", help=f"one of: {', '.join(names)} (default: all)")
    desired = set(parser.parse_args().names) or set(names)
    if unknown := desired - set(names):
        parser.error(f"no check is named {', '.join(sorted(unknown))}; there are: {', '.join(names)}")
    desired |= cluster.with_what_they_need(desired)
    static.prepare()
    return run_lanes([[c for c in lane if c.name in desired] for lane in lanes], BUILD / "logs")


if __name__ == "__main__":
    sys.exit(main())

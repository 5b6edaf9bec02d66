# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the checks: all of them, or those named on the command line (make test ONLY='ruff unit').

What needs no cluster and what needs it run side by side. Each has a log under build/test/logs; a table and a line of
counts close. What passed before and whose inputs have not changed since is not run again, unless it is named, or FULL=1 is set.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "build" / "collections"))
sys.path.insert(0, str(Path(__file__).parent))

from support import cluster, static
from support.inputs import Green, forget, key, matching, reached
from support.lanes import Check, Result, run_lanes
from support.places import BUILD


def key_of(check: Check) -> str:
    return key(reached(check.reads) if check.names else matching(check.reads))


def main() -> int:
    shared, lanes = [*static.CHECKS, *cluster.machine_checks()], cluster.checks()
    checks = {check.name: check for lane in (shared, *lanes) for check in lane}
    parser = argparse.ArgumentParser(description="Run Muster's checks.")
    parser.add_argument("names", nargs="*", metavar="CHECK", help=f"one of: {', '.join(checks)} (default: all)")
    named = set(parser.parse_args().names)
    if unknown := named - set(checks):
        parser.error(f"no check is named {', '.join(sorted(unknown))}; there are: {', '.join(checks)}")
    green = Green()
    keys = {name: key_of(check) for name, check in checks.items()}
    known = {} if named or os.environ.get("FULL") else {name: green.since(name, keys[name]) for name in checks}
    unchanged = {name: since for name, since in known.items() if since and name not in cluster.GROUND}
    desired = (named or set(checks)) - set(unchanged) - set(cluster.GROUND)
    desired |= cluster.with_what_they_need(desired)
    if desired:
        static.prepare()

    def note(results: Sequence[Result]) -> None:
        """Record the checks, but for those whose inputs were changed during the run."""
        forget()
        for result in results:
            if not result.unchanged:
                same = key_of(checks[result.name]) == keys[result.name]
                green.note(result.name, keys[result.name], passed=result.ok and same)

    same = [Result(name, True, 0, reason=f"since {since}", unchanged=True) for name, since in unchanged.items()]
    to_run = [[check for check in lane if check.name in desired] for lane in (shared, *lanes)]
    return run_lanes(to_run[1:], BUILD / "logs", shared=to_run[0], unchanged=same, ended=note)


if __name__ == "__main__":
    sys.exit(main())

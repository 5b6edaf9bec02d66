# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the benchmarks: all of them, or those named on the command line (make bench ONLY='serving')."""

import argparse
import pathlib
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
# Name -> its program with its options, and whether it measures on the cluster that is there.
BENCHES = {
    "apply": ("apply.py", True),
    "scale": (
        "apply.py --tools muster.ml.apply --objects 1000 5000 20000 --latency-ms 0 --repeats 1 --output build/bench/scale.json",
        True,
    ),
    "site": ("whole_site.py", False),
    "serving": ("serving.py", False),
}


def commands(names: list[str], kubeconfig: str, arguments: list[str]) -> list[list[str]]:
    """The command lines, in the order of BENCHES. ARGUMENTS are for the one that is named, or for the first of all."""
    desired = names or list(BENCHES)
    found = []
    for name, (program, on_cluster) in BENCHES.items():
        if name in desired:
            own = arguments if name == (names[0] if len(names) == 1 else "apply") else []
            words = program.split()
            found.append([str(HERE / words[0]), *words[1:], *(["--kubeconfig", kubeconfig] if on_cluster else []), *own])
    return found


def main() -> None:
    """Run one after the other; the first that fails ends it."""
    parser = argparse.ArgumentParser(description="Run Muster's benchmarks.")
    parser.add_argument("names", nargs="*", metavar="BENCH", help=f"one of: {', '.join(BENCHES)} (default: all)")
    parser.add_argument("--kubeconfig", required=True, help="of the local cluster that is there")
    parser.add_argument("--args", default="", help="more options for the one that is named, or for apply")
    options = parser.parse_args()
    if unknown := set(options.names) - BENCHES.keys():
        parser.error(f"no benchmark is named {', '.join(sorted(unknown))}; there are: {', '.join(BENCHES)}")
    for command in commands(options.names, options.kubeconfig, shlex.split(options.args)):
        subprocess.run([sys.executable, *command], check=True)


if __name__ == "__main__":
    main()

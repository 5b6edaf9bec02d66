# SPDX-License-Identifier: GPL-3.0-or-later
"""Show that time and memory of muster.ml.apply grow linearly: one run each at growing numbers of objects.

Writes build/bench/scale.json, rows as those of apply.json, and prints milliseconds and KiB per object.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import tempfile

from apply import OURS, Bench, command_for, find_kubectl, measure, namespace_of, summarise, write_yaml
from objects import manifests


def main() -> None:
    """Apply and apply again at each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", type=pathlib.Path, default=pathlib.Path.home() / ".kube/muster-muster.kubeconfig")
    parser.add_argument("--audit-log", type=pathlib.Path, default=pathlib.Path("/var/log/muster/audit.log"))
    parser.add_argument("--kubectl", help="kubectl that makes and removes the namespace (default: built)")
    parser.add_argument("--objects", type=int, nargs="+", default=[1000, 5000, 20000])
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/bench/scale.json"))
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        kubectl = options.kubectl or find_kubectl(pathlib.Path(folder))
        bench = Bench(kubectl, options.kubeconfig.resolve(), pathlib.Path(folder), options.audit_log)
        for count in options.objects:
            with namespace_of(bench, f"bench-scale-{os.getpid()}-{count}") as namespace:
                file = write_yaml(bench.folder / "first.yml", manifests(count))
                for phase in ("first", "again"):
                    run = measure(bench, command_for(OURS, bench, namespace, file, None), namespace, bench.kubeconfig)
                    rows.append(summarise(OURS, phase, count, 0, [run]))
                    print(
                        f"{count:>6} objects, {phase}: {run.wall_s:.2f} s ({1000 * run.wall_s / count:.2f} ms per object), "
                        f"{run.rss_mib:.0f} MiB ({1024 * run.rss_mib / count:.0f} KiB per object)",
                        flush=True,
                    )
            options.output.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

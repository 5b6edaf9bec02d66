# SPDX-License-Identifier: GPL-3.0-or-later
"""Time the whole site.yml: cold (no cluster; the caches of programs and images as they are) and again, in all and per role.

Brings up a cluster of its own beside any other, and removes it. Writes build/bench/site.json:
{cold: {...}, again: {...}}, each with wall_s, tool_s (with Ansible's own start), changed, write_requests, roles: {role: seconds}.
"""

import argparse
import json
import os
import pathlib
import subprocess
import time
import typing as t

NAME = "bench"


def play(book: str, *options: str, summary: pathlib.Path | None = None, name: str = NAME) -> float:
    """Run a playbook as make does; return its seconds."""
    environment = dict(os.environ, **({"MUSTER_SUMMARY_PATH": str(summary.resolve())} if summary else {}))
    own = ["-e", f"local_cluster_name={name}", "-e", f"local_cluster_audit_log=/var/log/muster/{name}/audit.log"]
    started = time.monotonic()
    subprocess.run(["scripts/play", book, "-i", "inventories/local", *own, *options], check=True, env=environment)
    return time.monotonic() - started


def main() -> None:
    """Cold, again, away with it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/bench/site.json"))
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    summary = options.output.with_name("site-summary.json")
    found: dict[str, t.Any] = {}
    try:
        for phase in ("cold", "again"):
            seconds = play("site.yml", summary=summary)
            told = json.loads(summary.read_text(encoding="utf-8"))
            kept = {key: told[key] for key in ("wall_s", "changed", "write_requests", "roles")}
            found[phase] = {"tool_s": round(seconds, 1), **kept}
            options.output.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    finally:
        play("playbooks/teardown.yml", "-e", "muster_delete_data=true", "-e", "muster_delete_cluster=true")
        summary.unlink(missing_ok=True)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()

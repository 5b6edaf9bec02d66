# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare ways to apply objects, side by side against one real API server.

Tools run in turn inside every repeat, so that a machine that drifts hits all of them alike, and each begins when the cluster has come
to rest. Prints a table, writes build/bench/apply.json and draws build/bench/apply.png. Nothing here asserts a time: the ratios are for
people to read. Every row tells how often it was measured: a slow tool repeats less, and the slowest are left out of the largest setting.
"""

import argparse
import collections
import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import typing as t
import urllib.parse
from collections.abc import Iterator

import yaml
from delay_proxy import delayed
from measured import machine_cpu_s
from objects import Manifest, manifests

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "build" / "collections"))  # by scripts/setup
from ansible_collections.muster.ml.plugins.callback.summary import AuditLog
from ansible_collections.muster.ml.tests.support.places import local_kubectl

VERBS = {"list": "LIST", "get": "GET", "patch": "PATCH", "create": "POST", "update": "PUT", "delete": "DELETE"}
LOOP_LIMIT = 20  # the loop takes about a second an object: 200 of them tell nothing new
BASELINE = "kubectl apply --server-side"
OURS = "muster.ml.apply"
SLOW_FROM = 10_000  # objects times milliseconds from which a repeat of the slow tools takes ten minutes
BUDGET_S = 100.0  # a tool does not begin another repeat in a setting where it used more than this
BUDGET_OF_THE_PAIR_S = 300.0  # the same for the two that the targets speak of
AT_REST = 0.5  # processors that a cluster may use to which nothing happens
PATIENCE_S = 60.0  # for it to come to rest


@dataclasses.dataclass(frozen=True)
class Run:
    """One measured process: seconds, MiB. ``machine_cpu_s`` is what all processors did meanwhile, the API server's work included.

    ``others_cpu_s`` tells who else worked, by program.
    """

    wall_s: float
    cpu_s: float
    machine_cpu_s: float
    others_cpu_s: dict[str, float]
    rss_mib: float
    requests: dict[str, int]


@dataclasses.dataclass(frozen=True)
class Bench:
    """What every tool needs: where the cluster is and where files go."""

    kubectl: str
    kubeconfig: pathlib.Path
    folder: pathlib.Path
    audit_log: pathlib.Path


def write_yaml(path: pathlib.Path, objects: list[Manifest]) -> pathlib.Path:
    """Write the objects as a multi-document file, which every tool reads."""
    text = yaml.dump_all(objects, Dumper=yaml.CSafeDumper, sort_keys=False)
    path.write_text(text, encoding="utf-8")
    return path


def ansible_playbook() -> list[str]:
    """Return the command that runs a playbook on this machine with this Python."""
    program = str(pathlib.Path(sys.executable).with_name("ansible-playbook"))
    return [program, "-i", "localhost,", "-c", "local", "-e", f"ansible_python_interpreter={sys.executable}"]


def playbook(path: pathlib.Path, task: dict[str, t.Any]) -> list[str]:
    """Write a playbook of one task; return the command that runs it."""
    play = {"hosts": "localhost", "gather_facts": False, "tasks": [{"name": "Apply", **task}]}
    path.write_text(yaml.safe_dump([play], sort_keys=False), encoding="utf-8")
    return [*ansible_playbook(), str(path)]


def command_for(tool: str, bench: Bench, namespace: str, file: pathlib.Path, gone: pathlib.Path | None) -> list[str]:
    """Return the command line with which `tool` applies `file`, or takes away what is in `gone`.

    muster.ml.apply gets the whole file and prunes by its owner label. The others are told what to delete, which favours them.
    """
    kubectl = [bench.kubectl, "-n", namespace]
    book = bench.folder / f"{namespace}.yml"
    if tool.startswith("kubectl"):
        if gone:
            return [*kubectl, "delete", "--wait=false", "-f", str(gone)]
        return [*kubectl, *tool.split()[1:], "-f", str(file)]
    if tool == OURS:
        options = {"src": str(file), "namespace": namespace, "owner": "bench", "prune": bool(gone), "wait": False}
        return playbook(book, {"muster.ml.apply": options})
    common: dict[str, t.Any] = {"namespace": namespace}
    if gone:
        common |= {"state": "absent"}
    else:
        common |= {"apply": True, "server_side_apply": {"field_manager": "bench"}}
    if tool == "kubernetes.core.k8s":
        return playbook(book, {"kubernetes.core.k8s": {"src": str(gone or file), **common}})
    definitions = list(yaml.safe_load_all((gone or file).read_text(encoding="utf-8")))
    return playbook(book, {"kubernetes.core.k8s": {"definition": "{{ item }}", **common}, "loop": definitions})


def requests_of(audit: AuditLog, namespace: str) -> dict[str, int]:
    """Count the requests of whoever worked in `namespace`, by HTTP verb, in what is new in the audit log.

    What has no namespace (discovery, lists of all) counts where the same client also asked for something in it.
    """
    counts: dict[tuple[str, bool], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for line in audit.lines():
        event = json.loads(line)
        own = not event["user"]["username"].startswith("system:") and event["verb"] in VERBS
        where = event.get("objectRef", {}).get("namespace")
        if own and where in (namespace, None) and event["stage"] == "ResponseComplete":
            counts[event.get("userAgent", ""), bool(where)][VERBS[event["verb"]]] += 1
    clients = {client for client, inside in counts if inside}
    return dict(sum((found for (client, _inside), found in counts.items() if client in clients), collections.Counter()))


def come_to_rest() -> None:
    """Wait until the controllers are done with what was applied before, or the faster a tool is, the more of it falls on its next phase."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        worked, started = machine_cpu_s(), time.monotonic()
        time.sleep(1)
        if machine_cpu_s() - worked < AT_REST * (time.monotonic() - started):
            return
    print(f"The machine did not come to rest in {PATIENCE_S:.0f} s; what follows is measured beside other work.", flush=True)


def measure(bench: Bench, argv: list[str], namespace: str, kubeconfig: pathlib.Path) -> Run:
    """Run one command on a cluster at rest; take its wall time, CPU (children included), peak memory and requests."""
    come_to_rest()
    audit = AuditLog(bench.audit_log, started=time.time())
    environment = dict(os.environ, KUBECONFIG=str(kubeconfig), K8S_AUTH_KUBECONFIG=str(kubeconfig))
    log, account = bench.folder / "last.log", bench.folder / "account.json"
    measured = [sys.executable, "-S", "-I", str(pathlib.Path(__file__).with_name("measured.py")), str(account), str(log)]
    subprocess.run([*measured, *argv], env=environment, check=True)
    used = json.loads(account.read_text(encoding="utf-8"))
    if used["status"]:
        told = log.read_text(errors="replace")[-3000:]
        raise SystemExit(f"{' '.join(argv)} ended with status {used['status']}:\n{told}")
    requests = requests_of(audit, namespace)
    del used["status"]
    return Run(**used, requests=requests)


@contextlib.contextmanager
def namespace_of(bench: Bench, name: str) -> Iterator[str]:
    """Make an empty namespace, and wait until it is gone again: its removal must not disturb who is measured next."""
    kubectl = [bench.kubectl, "--kubeconfig", str(bench.kubeconfig)]
    subprocess.run([*kubectl, "create", "namespace", name], check=True, stdout=subprocess.DEVNULL)
    try:
        yield name
    finally:
        subprocess.run([*kubectl, "delete", "namespace", name], check=True, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def kubeconfig_with_latency(bench: Bench, latency_ms: int) -> Iterator[pathlib.Path]:
    """Yield a kubeconfig whose server is as far away as asked; certificates are still checked by the real name."""
    if not latency_ms:
        yield bench.kubeconfig
        return
    config = yaml.safe_load(bench.kubeconfig.read_text(encoding="utf-8"))
    cluster = config["clusters"][0]["cluster"]
    server = urllib.parse.urlsplit(cluster["server"])
    assert server.hostname
    assert server.port
    with delayed(server.hostname, server.port, latency_ms) as (host, port):
        cluster["server"] = f"https://{host}:{port}"
        # Not every client honours tls-server-name, so the proxy's leg goes unchecked for all alike.
        cluster.pop("certificate-authority-data", None)
        cluster["insecure-skip-tls-verify"] = True
        path = bench.folder / f"kubeconfig-{latency_ms}ms"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        yield path


def phases(bench: Bench, tool: str, namespace: str, count: int, kubeconfig: pathlib.Path) -> dict[str, Run]:
    """Run first apply, again unchanged, again with 1 % changed, prune of 1 %; return a Run for each."""
    one_percent = range(max(1, count // 100))
    first = write_yaml(bench.folder / "first.yml", manifests(count))
    changed = write_yaml(bench.folder / "changed.yml", manifests(count, changed=one_percent))
    kept = write_yaml(bench.folder / "kept.yml", manifests(count, changed=one_percent, dropped=one_percent))
    gone = write_yaml(bench.folder / "gone.yml", manifests(len(one_percent)))
    steps: list[tuple[str, pathlib.Path, pathlib.Path | None]] = [
        ("first", first, None),
        ("again", first, None),
        ("changed 1 %", changed, None),
        ("prune 1 %", kept, gone),
    ]
    return {
        phase: measure(bench, command_for(tool, bench, namespace, file, removed), namespace, kubeconfig) for phase, file, removed in steps
    }


def tools_for(count: int, latency_ms: int, only: list[str] | None) -> list[str]:
    """Return the tools that were asked for, or else those that make sense at this number of objects."""
    if only:
        return only
    if count * latency_ms >= SLOW_FROM:
        return [BASELINE, OURS]
    tools = ["kubectl apply", BASELINE, "kubernetes.core.k8s", OURS]
    return [*tools, "kubernetes.core.k8s in a loop"] if count <= LOOP_LIMIT else tools


def summarise(tool: str, phase: str, count: int, latency_ms: int, runs: list[Run]) -> dict[str, t.Any]:
    """Return one row of the result file; requests are those of the last repeat (they do not vary by chance)."""
    walls = [run.wall_s for run in runs]
    programs = {program for run in runs for program in run.others_cpu_s}
    return {
        "tool": tool,
        "phase": phase,
        "objects": count,
        "latency_ms": latency_ms,
        "wall_s_median": round(statistics.median(walls), 3),
        "wall_s_min": round(min(walls), 3),
        "wall_s_max": round(max(walls), 3),
        "cpu_s": round(statistics.median(run.cpu_s for run in runs), 3),
        "machine_cpu_s": round(statistics.median(run.machine_cpu_s for run in runs), 2),
        "others_cpu_s": {
            program: round(statistics.median(run.others_cpu_s.get(program, 0.0) for run in runs), 2) for program in sorted(programs)
        },
        "requests": {verb: runs[-1].requests.get(verb, 0) for verb in ("LIST", "GET", "PATCH", "POST", "DELETE")},
        "rss_mib": round(max(run.rss_mib for run in runs), 1),
        "repeats": len(runs),
    }


def print_table(rows: list[dict[str, t.Any]]) -> None:
    """Print the rows with each wall time's ratio to `kubectl apply --server-side` in the same setting."""
    base = {(r["phase"], r["objects"], r["latency_ms"]): r["wall_s_median"] for r in rows if r["tool"] == BASELINE}
    print(
        f"{'objects':>7} {'ms':>3} {'phase':<12} {'tool':<30} {'wall s':>8} {'min-max':>14} {'ratio':>6} {'CPU s':>6} "
        f"{'busy':>5} {'MiB':>5} {'runs':>4}  requests"
    )
    for row in sorted(rows, key=lambda r: (r["objects"], r["latency_ms"], r["phase"], r["wall_s_median"])):
        beside = base.get((row["phase"], row["objects"], row["latency_ms"]))
        ratio = f"{row['wall_s_median'] / beside:.2f}" if beside else "-"
        asked = " ".join(f"{verb} {count}" for verb, count in row["requests"].items() if count)
        spread = f"{row['wall_s_min']:.2f}-{row['wall_s_max']:.2f}"
        busy = row["machine_cpu_s"] / row["wall_s_median"] / (os.cpu_count() or 1)
        print(
            f"{row['objects']:>7} {row['latency_ms']:>3} {row['phase']:<12} {row['tool']:<30} "
            f"{row['wall_s_median']:>8.2f} {spread:>14} {ratio:>6} {row['cpu_s']:>6.2f} "
            f"{min(busy, 1):>5.0%} {row['rss_mib']:>5.0f} {row['repeats']:>4}  {asked}"
        )


def measure_setting(bench: Bench, count: int, latency_ms: int, repeats: int, only: list[str] | None) -> list[dict[str, t.Any]]:
    """Run all tools of one setting in turn, as often as asked or as their budget allows; return their rows."""
    runs: dict[tuple[str, str], list[Run]] = collections.defaultdict(list)
    used: collections.Counter[str] = collections.Counter()
    tools = tools_for(count, latency_ms, only)
    for repeat in range(repeats):
        print(f"{count} objects, {latency_ms} ms, repeat {repeat + 1} of {repeats}", flush=True)
        for number, tool in enumerate(tools):
            if used[tool] > (BUDGET_OF_THE_PAIR_S if tool in (BASELINE, OURS) else BUDGET_S):
                continue
            started = time.monotonic()
            with (
                namespace_of(bench, f"bench-{os.getpid()}-{count}-{latency_ms}-{repeat}-{number}") as namespace,
                kubeconfig_with_latency(bench, latency_ms) as kubeconfig,
            ):
                for phase, run in phases(bench, tool, namespace, count, kubeconfig).items():
                    runs[tool, phase].append(run)
            used[tool] += round(time.monotonic() - started)
    return [summarise(tool, phase, count, latency_ms, got) for (tool, phase), got in runs.items()]


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--kubeconfig",
        type=pathlib.Path,
        default=pathlib.Path.home() / ".kube" / "muster-muster.kubeconfig",
        help="cluster to measure on (default: the local one of make run)",
    )
    parser.add_argument("--audit-log", type=pathlib.Path, default=pathlib.Path("/var/log/muster/audit.log"))
    parser.add_argument("--kubectl", help="kubectl to compare with (default: that of the local cluster)")
    parser.add_argument("--objects", type=int, nargs="+", default=[20, 200, 2000])
    parser.add_argument("--latency-ms", type=int, nargs="+", default=[0, 20])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--tools", nargs="+", help="only these, by the names of the table (default: all)")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/bench/apply.json"))
    return parser.parse_args()


def main() -> None:
    """Measure every tool in every setting and report; what is done is kept if a later setting fails."""
    options = parse_arguments()
    if not options.kubeconfig.exists():
        raise SystemExit(f"{options.kubeconfig} does not exist: start a cluster by `make run`, or name one by --kubeconfig.")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, t.Any]] = []
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        kubectl = options.kubectl or local_kubectl(options.kubeconfig)
        bench = Bench(kubectl, options.kubeconfig.resolve(), pathlib.Path(folder), options.audit_log)
        for count, latency_ms in itertools.product(options.objects, options.latency_ms):
            rows += measure_setting(bench, count, latency_ms, options.repeats, options.tools)
            options.output.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    chart = pathlib.Path(__file__).with_name("chart.py")
    subprocess.run([sys.executable, str(chart), str(options.output)], check=True)
    print_table(rows)


if __name__ == "__main__":
    main()

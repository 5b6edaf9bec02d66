# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare three ways to one model, side by side: through a Gateway, at the Service, and the same server without Kubernetes.

Brings up a cluster of its own beside any other, with role triton and triton_gateway, and removes it. The third way is the program of the
pod with the same files, arguments, variables, user, priority and limits (it joins the pod's control groups), as a process of this machine.
The clients are one program, too: on the cluster's node for the first two ways, so that a Service leads on as for everyone there, and on
this machine for the third.

The ways take turns, another one first in each round, so that a machine that drifts hits all of them alike. Prints a table and writes
build/bench/serving.json. Nothing here asserts a time: the ratios are for people to read.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import typing as t
import urllib.error
import urllib.request
from collections.abc import Iterator

from whole_site import NAME, play

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "build" / "collections"))  # by scripts/setup
from ansible_collections.muster.ml.tests.support.places import local_kubectl

ROOT = pathlib.Path(__file__).parents[2]
HOSTNAME = "inference.example.com"
NAMESPACE = "ml"
GATEWAY, SERVICE, PROCESS = "Gateway", "Service", "no Kubernetes"
VARIABLES = {
    "muster_systems": ["triton"],
    "muster_namespace": NAMESPACE,
    "triton_models": [{"model": "add", "src": str(ROOT / "tests/acceptance/triton/files/models/add")}],
    "triton_network_policy_from": [{"namespaceSelector": {}}],
    "triton_gateway": True,
    "inference_gateway_hostnames": [HOSTNAME],
}
STARTS_S = 120.0
ENDS_S = 60.0
HTTP_PORT = 18000  # gRPC and metrics come after it
START = """set -e
for membership in $MEMBERSHIPS; do echo $$ >"$membership"; done
mount --bind /dev "$0/dev"
mount -t tmpfs -o mode=1777 tmpfs "$0/dev/shm"
mount -t proc proc "$0/proc"
exec chroot --userspec=1000:1000 "$0" env -i "$@"
"""
Row = dict[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Way:
    """How clients get to the model. ``before``: the command that puts the client where it asks from."""

    name: str
    host: str
    port: int
    before: tuple[str, ...] = ()

    def measure(self, clients: int, seconds: float) -> Row:
        """Run the clients."""
        program = pathlib.Path(__file__).with_name("closed_loop.py")
        asks = [sys.executable, "-S", "-I", program, self.host, str(self.port), HOSTNAME, str(clients), str(seconds)]
        done = subprocess.run([*self.before, *asks], check=False, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{self.name}, {clients} clients: {done.stderr}")
        found: Row = json.loads(done.stdout)
        return {"way": self.name, "clients": clients, **found}


def ways_in(name: str, kubeconfig: pathlib.Path) -> list[Way]:
    """The ways in the cluster, asked from its first node."""
    on_node = ("nsenter", f"--net=/run/netns/muster-{name}-1")

    def address(namespace: str, service: str) -> str:
        kubectl = [local_kubectl(kubeconfig), "--kubeconfig", str(kubeconfig), "-n", namespace]
        query = ["get", "service", service, "-o", "jsonpath={.spec.clusterIP}"]
        return subprocess.run([*kubectl, *query], check=True, capture_output=True, text=True).stdout

    return [Way(GATEWAY, address("traefik", "traefik"), 80, on_node), Way(SERVICE, address(NAMESPACE, "triton"), 8000, on_node)]


def pid_in_pod(name: str) -> int:
    """The process id, on this machine, of the server in the cluster's pod."""
    of_the_cluster = re.compile(rf"/muster-{name}/")
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # a process that has just ended
            if (place / "comm").read_text().strip() == "tritonserver" and of_the_cluster.search((place / "cgroup").read_text()):
                return int(place.name)
    raise SystemExit(f"No tritonserver runs in cluster {name}.")


def copied(pid: int, folder: pathlib.Path) -> list[str]:
    """The command line of a process, after its files were copied to FOLDER, those of its model repository among them."""
    root, (program, *arguments) = f"/proc/{pid}/root", _words(pid, "cmdline")
    repository = next(word.partition("=")[2] for word in arguments if word.startswith("--model-repository="))
    for place in ("", repository):  # which is on another file system
        pathlib.Path(f"{folder}{place}").mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", "--one-file-system", f"{root}{place}/.", f"{folder}{place}"], check=True)
    for name in ("dev", "proc", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "tmp").chmod(0o1777)
    ports = [f"--{what}-port={HTTP_PORT + number}" for number, what in enumerate(("http", "grpc", "metrics"))]
    return [*_words(pid, "environ"), program, *arguments, *ports]


def _words(pid: int, name: str) -> list[str]:
    return pathlib.Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8").rstrip("\0").split("\0")


def _lines(pid: int, name: str) -> list[str]:
    return pathlib.Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8").splitlines()


def groups_of(pid: int) -> list[str]:
    """The files that take a process into the control groups, of version 1 or 2, that limit processors and memory of another one."""
    one = pathlib.Path("/sys/fs/cgroup")
    is_two = (one / "cgroup.controllers").exists()
    found = []
    for line in _lines(pid, "cgroup"):
        _number, controllers, path = line.split(":", 2)
        if (is_two and not controllers) or {"cpu", "memory"} & set(controllers.split(",")):
            found.append(f"{one / controllers}{path}/cgroup.procs")
    return found


@contextlib.contextmanager
def process(pid: int) -> Iterator[Way]:
    """Run the program of a process again, on this machine, for the time of the with block."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as place:
        folder = pathlib.Path(place)
        folder.chmod(0o755)  # for the user that the server runs as
        (folder / "root").mkdir()
        command = copied(pid, folder / "root")
        # Mounts of a namespace of its own go with it. One process after the other takes the place of the one before: it is tritonserver.
        isolated = ["unshare", "--mount", "--propagation", "private", "sh", "-c", START, folder / "root", *command]
        with (folder / "log").open("w") as log:
            environment = {**os.environ, "MEMBERSHIPS": " ".join(groups_of(pid))}
            server = subprocess.Popen(isolated, stdout=log, stderr=log, env=environment)
        # As the pod's, also where the benchmark itself was started with less.
        os.setpriority(os.PRIO_PROCESS, server.pid, os.getpriority(os.PRIO_PROCESS, pid))
        try:
            _wait_until_ready(server, folder / "log")
            yield Way(PROCESS, "127.0.0.1", HTTP_PORT)
        finally:
            server.terminate()
            try:
                server.wait(ENDS_S)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _wait_until_ready(server: subprocess.Popen[bytes], log: pathlib.Path) -> None:
    deadline = time.monotonic() + STARTS_S
    while server.poll() is None and time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{HTTP_PORT}/v2/models/add/ready", timeout=5).close()
        except (OSError, urllib.error.HTTPError):
            time.sleep(0.2)
        else:
            return
    raise SystemExit(f"The server did not start:\n{log.read_text(errors='replace')[-3000:]}")


def rounds(ways: list[Way], count: int, clients: list[int], seconds: float) -> Iterator[Row]:
    """Measure every way with each number of clients in each round."""
    for number in range(count):
        turn = number % len(ways)
        for several in clients:
            for way in [*ways[turn:], *ways[:turn]]:
                yield {"round": number + 1, **way.measure(several, seconds)}


def summarise(rows: list[Row]) -> list[Row]:
    """A row for each way and number of clients: medians of the rounds, and the ratios to the server without Kubernetes, round by round."""
    by_round = {(row["round"], row["clients"], row["way"]): row for row in rows}
    found = []
    for clients in sorted({row["clients"] for row in rows}):
        for way in dict.fromkeys(row["way"] for row in rows):
            own = [row for row in rows if (row["clients"], row["way"]) == (clients, way)]
            pairs = [(row, by_round[row["round"], clients, PROCESS]) for row in own]
            rates = [row["per_second"] for row in own]
            found.append(
                {
                    "way": way,
                    "clients": clients,
                    "rounds": len(own),
                    "requests": sum(row["requests"] for row in own),
                    "per_second": statistics.median(rates),
                    "per_second_min": min(rates),
                    "per_second_max": max(rates),
                    "p50_ms": round(statistics.median(row["p50_ms"] for row in own), 3),
                    "p99_ms": round(statistics.median(row["p99_ms"] for row in own), 3),
                    "rate_ratio": round(statistics.median(a["per_second"] / b["per_second"] for a, b in pairs), 2),
                    "p50_ratio": round(statistics.median(a["p50_ms"] / b["p50_ms"] for a, b in pairs), 2),
                    "p99_ratio": round(statistics.median(a["p99_ms"] / b["p99_ms"] for a, b in pairs), 2),
                }
            )
    return found


def print_table(rows: list[Row]) -> None:
    """Print what summarise made; each ratio is to the server without Kubernetes."""
    print(f"{'clients':>7} {'way':<14} {'req/s':>8} {'min-max':>15} {'ratio':>6} {'p50 ms':>8} {'ratio':>6} {'p99 ms':>8} {'ratio':>6}")
    for row in rows:
        spread = f"{row['per_second_min']:.0f}-{row['per_second_max']:.0f}"
        print(
            f"{row['clients']:>7} {row['way']:<14} {row['per_second']:>8.1f} {spread:>15} {row['rate_ratio']:>6.2f} "
            f"{row['p50_ms']:>8.3f} {row['p50_ratio']:>6.2f} {row['p99_ms']:>8.3f} {row['p99_ratio']:>6.2f}"
        )


def main() -> None:
    """Bring up, measure, away with it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default=NAME, help="of the cluster that is made and removed")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each way in each round")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/bench/serving.json"))
    options = parser.parse_args()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    try:
        play("site.yml", "-e", json.dumps(VARIABLES), name=options.name)
        ways = ways_in(options.name, pathlib.Path.home() / f".kube/muster-{options.name}.kubeconfig")
        with process(pid_in_pod(options.name)) as alone:
            rows = list(rounds([*ways, alone], options.rounds, options.clients, options.seconds))
    finally:
        play("playbooks/teardown.yml", "-e", "muster_delete_data=true", "-e", "muster_delete_cluster=true", name=options.name)
    found = {"processors": os.cpu_count(), "seconds": options.seconds, "rounds": rows, "summary": summarise(rows)}
    options.output.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print_table(found["summary"])


if __name__ == "__main__":
    main()

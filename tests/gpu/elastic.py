# SPDX-License-Identifier: GPL-3.0-or-later
"""Elastic training on a real GPU, which no check has: the launcher and the example of system elastic, with NCCL.

    PYTHONPATH=build/collections python3 tests/gpu/elastic.py FOLDER [CASE...]

Needs root, torch and PyYAML. Four pods are four processes, each with a host name of its own (NCCL refuses two ranks on one GPU of one host)
and with the variables that the Job's manifest gives it. A pod that fails is started again, as its Job does. Prints one line of JSON for
each case; without a GPU the same runs with gloo. FOLDER gets the logs.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import typing as t
from pathlib import Path

from ansible_collections.muster.ml.plugins.module_utils._pod_programs.elastic_launch import TERMINATION_LOG
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.native import PROGRAMS, manifests
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.spec import from_params
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.world import events

EXAMPLE = Path(os.environ.get("EXAMPLE") or Path(__file__).parents[2] / "roles" / "elastic" / "files" / "example")
PODS, LIMIT, FINAL = 4, int(os.environ.get("LIMIT", "150")), (0, 70, 78)
BACKOFF = 5
"""Seconds from the end of a pod to its successor."""
NAME = "digits"


class Pod:
    """A process that runs the launcher under the host name of a pod, started again when it fails."""

    def __init__(self, index: int, folder: Path, arguments: list[str], env: dict[str, str]) -> None:
        self.index, self.folder, self.arguments, self.codes = index, folder, arguments, list[int]()
        self.env = {**env, "JOB_COMPLETION_INDEX": str(index), "NCCL_SOCKET_IFNAME": "lo", "GLOO_SOCKET_IFNAME": "lo"}
        self.log = folder / f"{index}.log"
        self.start()

    def start(self) -> None:
        self.ended: float | None = None
        script = 'echo "$0" > /proc/sys/kernel/hostname; mount --bind "$1" /etc/hosts; shift; exec "$@"'
        command = [sys.executable, "-u", str(self.folder / "launch.py"), str(self.folder / "train.py"), *self.arguments]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                ["unshare", "--uts", "--mount", "sh", "-c", script, f"{NAME}-{self.index}", str(self.folder / "hosts"), *command],
                env={**os.environ, **self.env}, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def is_over(self) -> bool:
        """Whether the pod has ended for good; else it runs, again if it failed."""
        code = self.process.poll()
        if code is None:
            return False
        if self.ended is None:
            self.codes.append(code)
            self.ended = time.monotonic()
        if code not in FINAL and time.monotonic() > self.ended + BACKOFF:
            self.start()
        return code in FINAL

    def kill(self, signum: int) -> None:
        """SIGKILL ends the whole pod, any other signal goes to its launcher as from the kubelet."""
        if signum != signal.SIGKILL:
            self.process.send_signal(signum)
            return
        for stat in Path("/proc").glob("[0-9]*/environ"):
            try:
                ours = f"JOB_COMPLETION_INDEX={self.index}\0".encode() in stat.read_bytes()
                if ours and str(self.folder).encode() in (stat.parent / "cmdline").read_bytes():
                    os.kill(int(stat.parent.name), signum)
            except (OSError, ProcessLookupError):
                continue


def run(case: str, folder: Path, signum: int | None) -> dict[str, t.Any]:
    """One training; SIGNUM goes to the last pod once half of the epochs are done."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, text in PROGRAMS.items():
        (folder / name).write_text(text)
    for path in EXAMPLE.iterdir():
        shutil.copy(path, folder)
    names = " ".join(f"{NAME}-{index} {NAME}-{index}.{NAME}.ml.svc" for index in range(PODS))
    (folder / "hosts").write_text(f"127.0.0.1 localhost {names}\n")
    params = {"name": NAME, "namespace": "ml", "image": "any", "replicas": PODS, "min_replicas": 1, "max_replicas": PODS,
              "script": "train.py", "files": {"train.py": ""}}  # fmt: skip
    (job,) = (item for item in manifests(from_params(params)) if item["kind"] == "Job")
    rows = job["spec"]["template"]["spec"]["containers"][0]["env"]
    env = {row["name"]: str(row.get("value") or "1") for row in rows} | {"PET_RDZV_ID": case}
    epochs = int(os.environ.get("EPOCHS", "60"))
    arguments = [f"--run-dir={folder}/run", f"--epochs={epochs}", "--step-time=0.01", "--timeout=45"]
    began, hit, pods = time.monotonic(), 0.0, [Pod(index, folder, arguments, env) for index in range(PODS)]
    try:
        while {pod.is_over() for pod in pods} != {True} and time.monotonic() - began < LIMIT:
            told = [row for row in events([pods[0].log.read_text()]) if row["event"] == "epoch"]
            if signum and not hit and told and told[-1]["epoch"] >= epochs // 2:
                hit = time.monotonic() - began
                pods[-1].kill(signum)
            time.sleep(0.2)
    finally:
        for pod in pods:
            pod.kill(signal.SIGKILL)
    rows = events(pod.log.read_text() for pod in pods)
    starts = [[row["world_size"], row["step"]] for row in rows if row["event"] == "start"]
    result = next((row for row in rows if row["event"] == "result"), {})
    return {
        "case": case, "seconds": round(time.monotonic() - began, 1), "hit_after": round(hit, 1), "codes": [pod.codes for pod in pods],
        "worlds_and_steps_of_starts": starts, "stopped": [[row["rank"], row["step"]] for row in rows if row["event"] == "stopped"],
        "peer_lost": [[row["rank"], row["step"]] for row in rows if row["event"] == "peer_lost"],
        "accuracy": result.get("accuracy"), "steps": result.get("steps"), "world": result.get("world_size"),
        "failed": [row.get("reason") for row in rows if row["event"] == "failed"],
    }  # fmt: skip


CASES = {"undisturbed": None, "asked to end": signal.SIGTERM, "lost": signal.SIGKILL}


def main() -> None:
    import torch

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
    nccl = ".".join(map(str, torch.cuda.nccl.version())) if gpu else ""
    sys.stdout.write(json.dumps({"torch": torch.__version__, "gpu": gpu, "nccl": nccl}) + "\n")
    there = Path(TERMINATION_LOG).exists()
    folder, *cases = sys.argv[1:]
    try:
        for case in cases or CASES:
            sys.stdout.write(json.dumps(run(case, Path(folder).resolve() / case.replace(" ", "-"), CASES[case])) + "\n")
    finally:
        if not there:
            Path(TERMINATION_LOG).unlink(missing_ok=True)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-3.0-or-later
"""A training of four ranks hangs, because one of them does not come to where the others wait: it is found at once."""

import contextlib
import time
import types
import typing as t
from collections.abc import Iterator

import pytest

from ansible_collections.muster.ml.plugins.module_utils._kube.client import HttpCluster
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Manifest, Ref
from ansible_collections.muster.ml.plugins.modules import job_logs, job_stacks, training_statefulset
from ansible_collections.muster.ml.tests.unit.fakes import tasks

WITHIN = 60.0  # Alone on a machine it takes three; here other work is beside it.
PYTHON, SPY = "docker.io/library/python:3.12-slim-bookworm", "muster.local/py-spy:0.4.3"
WHICH: dict[str, t.Any] = {"name": "hang", "kind": "training_statefulset"}
# A collective without torch. Who has sent its byte is on the line in which it waits for ever.
PROGRAM = """
import os, socket, threading, time

def serve(listener):
    wires = [listener.accept()[0] for _rank in range(4)]
    print("begun by", len([wire.recv(1) for wire in wires]), flush=True)
    listener.accept()

def connect():
    while True:
        try:
            return socket.create_connection((os.environ["MASTER_ADDR"], port))
        except OSError:  # rank 0 does not listen yet
            time.sleep(0.1)

def all_reduce(wire):
    wire.sendall(b".") or wire.recv(1)

def load_batch(wire):
    wire.sendall(b".") or threading.Event().wait()

rank, port = int(os.environ["REPLICA_INDEX"]), int(os.environ["MASTER_PORT"])
if rank == 0:
    threading.Thread(target=serve, args=(socket.create_server(("", port)),), daemon=True).start()
all_reduce(connect()) if rank != 3 else load_batch(connect())
"""
# The image has no py-spy; a volume brings it into the containers of the ranks.
WITH_PY_SPY: dict[str, t.Any] = {
    "volumes": [{"name": "py-spy", "emptyDir": {}}],
    "volume_mounts": [{"name": "py-spy", "mountPath": "/usr/local/sbin"}],
    "init_containers": [{
        "name": "py-spy", "image": SPY, "command": ["cp", "/usr/local/bin/py-spy", "/py-spy/"],
        "volumeMounts": [{"name": "py-spy", "mountPath": "/py-spy"}],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }],
}  # fmt: skip


@contextlib.contextmanager
def hanging(cluster: HttpCluster, place: str, level: str, **options: t.Any) -> Iterator[None]:
    """The training in a new namespace of this Pod Security level, once it hangs."""
    metadata = {"name": place, "labels": {"pod-security.kubernetes.io/enforce": level}}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, dry_run=False)
    options = {"name": "hang", "namespace": place, "replicas": 4, "image": PYTHON, "command": ["python3", "-c", PROGRAM], **options}
    try:
        # A rank may hang before the API tells that it runs.
        run(cluster, training_statefulset, wait=True, wait_timeout=300, termination_grace_period_seconds=0, **options)
        run(cluster, job_logs, **WHICH, namespace=place, search="begun by 4", matches=1, wait_timeout=300)
        yield
    finally:
        cluster.delete(Ref("v1", "Namespace", place), dry_run=False)


def run(cluster: HttpCluster, module: types.ModuleType, **options: t.Any) -> dict[str, t.Any]:
    return tasks.run(module, t.cast(t.Any, cluster), options)


# Each case has a namespace of its own, so that no pod or name of an earlier one is taken for one of this.
@pytest.mark.parametrize(
    ("place", "level", "given", "options", "security"),
    [
        ("root", "privileged", {}, {"image": SPY}, {"runAsUser": 0, "runAsNonRoot": False, "capabilities": {"add": ["SYS_PTRACE"]}}),
        ("user", "restricted", {}, {"image": SPY}, {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}),
        ("inside", "restricted", WITH_PY_SPY, {}, None),
    ],
)
def test_the_rank_for_which_the_others_wait_is_first(
    cluster: HttpCluster, place: str, level: str, given: Manifest, options: Manifest, security: Manifest | None
) -> None:
    which = {**WHICH, "namespace": f"muster-stacks-{place}"}
    with hanging(cluster, which["namespace"], level, **given):
        began = time.monotonic()
        found = run(cluster, job_stacks, **which, **options)
        took = time.monotonic() - began
        pod = cluster.get(Ref("v1", "Pod", "hang-3", which["namespace"]))
        assert pod
        nothing = run(cluster, job_stacks, **which) if security else {}
    odd, others = found["folds"][:2]
    told = "\n".join([*found["table"], *map(str, found["unread"])])
    assert (odd["ranks"], any(frame.endswith(" load_batch") for frame in odd["stack"])) == (["hang-3"], True), told
    assert (others["ranks"], others["stack"][0].split()[1]) == (["hang-0", "hang-1", "hang-2"], "all_reduce"), told
    assert found["unread"] == []
    assert [one["securityContext"] for one in pod["spec"].get("ephemeralContainers", ())] == ([security] if security else [])
    assert {row["reason"] for row in nothing.get("unread", ())} == ({"its image has no py-spy"} if security else set())
    assert took < WITHIN

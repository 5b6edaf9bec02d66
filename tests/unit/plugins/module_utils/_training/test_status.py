# SPDX-License-Identifier: GPL-3.0-or-later
"""One state and one reason out of what pods and workloads say."""

import dataclasses
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.brief import LONGEST, in_brief
from ansible_collections.muster.ml.plugins.module_utils._systems.persia.operator import groups
from ansible_collections.muster.ml.plugins.module_utils._training.status import (
    JOB,
    STATEFUL_SET,
    JobStatus,
    group_status,
    job_status,
    last_lines,
    rank_of,
    ranks_of,
)
from ansible_collections.muster.ml.tests.unit.fakes.pods import Manifest, ended, pod, workload

COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}

EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}


@pytest.mark.parametrize(
    ("found", "reason", "stuck"),
    [
        (pod("t-0"), "", False),
        (pod("t-0", "Failed", state=ended(137, "OOMKilled")), "OOMKilled (exit status 137)", True),
        (pod("t-0", "Failed", state=ended(1)), "Error (exit status 1)", True),
        (
            pod("t-0", "Pending", state={"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}),
            "ImagePullBackOff: not found",
            True,
        ),
        (
            pod("t-0", state={"waiting": {"reason": "CrashLoopBackOff"}}, last_state=ended(3), restarts=4),
            "CrashLoopBackOff after Error (exit status 3)",
            True,
        ),
        (
            pod(
                "t-0",
                "Pending",
                conditions=[
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
                    }
                ],
            ),
            "Unschedulable: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
            True,
        ),
        (pod("t-0", "Pending", state={"waiting": {"reason": "ContainerCreating"}}), "ContainerCreating", False),
        (pod("t-0", deleted=True), "is being deleted", False),
        (
            pod("t-0", deleted=True, conditions=[EVICTED]),
            "is evicted and waits for an answer of node node-1; if that is off: "
            "kubectl taint node node-1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
            False,
        ),
    ],
)
def test_why_a_rank_does_not_run(found: dict[str, t.Any], reason: str, stuck: bool) -> None:
    rank = rank_of(found)
    assert (rank.reason, rank.stuck) == (reason, stuck)


def test_a_container_that_is_started_again_and_again_does_not_run() -> None:
    loops = pod("t-0", state={"waiting": {"reason": "CrashLoopBackOff"}}, last_state=ended(3), restarts=4)
    group = group_status(STATEFUL_SET, workload("StatefulSet", "t", "t", "t", 1), [loops])
    assert (group.running, group.state) == (0, "Degraded")


def test_a_failed_init_container_tells_its_last_words() -> None:
    found = pod("t-0", "Failed", state={"waiting": {"reason": "PodInitializing"}})
    found["status"]["initContainerStatuses"] = [
        {"name": "first", "state": ended(0, "Completed", "done")},
        {"name": "fetch-script", "state": ended(65, message="s3://sets/train.py: the server answers 403 Forbidden")},
    ]
    rank = rank_of(found)
    assert (rank.message, rank.exit_code) == ("s3://sets/train.py: the server answers 403 Forbidden", 65)


def with_sidecar(found: Manifest, **sidecar: t.Any) -> Manifest:
    """As Istio injects it: the first one in spec and status, and a native one beside it. An annotation names the container of the user."""
    found["metadata"]["annotations"] = {"kubectl.kubernetes.io/default-container": "main"}
    found["spec"]["containers"].insert(0, {"name": "istio-proxy"})
    found["spec"]["initContainers"] = [{"name": "a-proxy", "restartPolicy": "Always"}]
    found["status"]["containerStatuses"].insert(0, {"name": "istio-proxy", "restartCount": 7, "ready": True, **sidecar})
    found["status"]["initContainerStatuses"] = [{"name": "a-proxy", **sidecar}]
    return found


KILLED = {"terminated": {"exitCode": 143, "reason": "Error", "message": "drained", "finishedAt": "2026-11-21T10:05:09Z"}}


def test_a_sidecar_is_not_the_training() -> None:
    rank = rank_of(with_sidecar(pod("t-0", "Failed", state=ended(3, message="no data"), restarts=1), state=KILLED))
    assert (rank.reason, rank.message, rank.exit_code, rank.restarts) == ("Error (exit status 3)", "no data", 3, 1)
    assert (rank.finished, [run.container for run in rank.ended_runs]) == ("2026-11-21T10:05:00Z", ["main"])
    loops = {"waiting": {"reason": "CrashLoopBackOff"}}
    rank = rank_of(with_sidecar(pod("t-0", state=loops, last_state=ended(4, message="no GPU")), state=loops, lastState=KILLED))
    assert (rank.message, rank.exit_code) == ("no GPU", 4)


def test_without_an_annotation_the_first_container_of_the_pod_is_the_training() -> None:
    """The kubelet lists statuses by name, whatever the order of the pod is."""
    found = with_sidecar(pod("t-0", "Failed", state=ended(3)), state=KILLED)
    del found["metadata"]["annotations"]
    assert rank_of(found).exit_code == 143
    found["spec"]["containers"].reverse()
    assert rank_of(found).exit_code == 3


def test_the_index_comes_from_the_label_or_the_name() -> None:
    label = {"batch.kubernetes.io/job-completion-index": "7"}
    assert rank_of(pod("adult-trainer-7-x2b4k", labels=label)).rank == 7
    assert rank_of(pod("adult-emb-server-12")).rank == 12


def test_the_newest_pod_of_an_index_is_its_rank() -> None:
    index = {"batch.kubernetes.io/job-completion-index": "0"}
    failed = pod("a", "Failed", labels=index, state=ended(1), created="2026-11-21T10:00:00Z")
    running = pod("b", labels=index, created="2026-11-21T10:01:00Z")
    assert [rank.pod for rank in ranks_of([running, failed])] == ["b"]
    done = pod("c", "Succeeded", labels=index, state=ended(0, "Completed"), created="2026-11-21T09:00:00Z")
    assert [rank.pod for rank in ranks_of([running, done, failed])] == ["c"]


def status(*entries: tuple[dict[str, t.Any], list[dict[str, t.Any]]]) -> JobStatus:
    groups = [group_status(JOB if item["kind"] == "Job" else STATEFUL_SET, item, pods) for item, pods in entries]
    return job_status("adult", "default", groups, trainer_role="nn-worker")


def trainer(*pods: dict[str, t.Any], count: int = 1, **more: t.Any) -> tuple[dict[str, t.Any], list[dict[str, t.Any]]]:
    return workload("Job", "adult-trainer", "trainer", "nn-worker", count, **more), list(pods)


def server(*pods: dict[str, t.Any], count: int = 1) -> tuple[dict[str, t.Any], list[dict[str, t.Any]]]:
    kind = "embedding-parameter-server"
    return workload("StatefulSet", "adult-emb-server", "emb-server", kind, count), list(pods)


def test_running_needs_every_group() -> None:
    assert status(trainer(pod("t-0")), server(pod("s-0"))).state == "Running"


def test_before_it_began_it_is_pending() -> None:
    waits = pod("s-0", "Pending", state={"waiting": {"reason": "ContainerCreating"}}, created="2026-11-21T10:00:00Z")
    found = status(trainer(pod("t-0")), server(waits))
    assert (found.state, found.reason) == ("Pending", "emb-server: s-0: ContainerCreating")


def test_a_server_that_came_later_is_one_that_was_lost() -> None:
    waits = pod("s-0", "Pending", state={"waiting": {"reason": "ContainerCreating"}}, created="2026-11-21T10:09:00Z")
    assert status(trainer(pod("t-0")), server(waits)).state == "Degraded"
    assert status(trainer(pod("t-0")), server()).state == "Degraded"
    assert status(trainer(pod("t-0")), server(pod("s-0"), count=2)).state == "Degraded"


def test_the_trainers_decide_the_end() -> None:
    done = pod("t-0", "Succeeded", state=ended(0, "Completed", '{"auc": 0.74}'))
    found = status(trainer(done, **COMPLETE), server(count=0))
    assert (found.state, found.reason) == ("Succeeded", "")
    assert found.groups[0].ranks[0].message == '{"auc": 0.74}'


def test_a_failed_job_says_which_rank_and_why() -> None:
    failed = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "limit"}]}
    found = status(trainer(pod("t-0", "Failed", state=ended(137, "OOMKilled", "batch 7\n")), **failed), server(pod("s-0")))
    assert found.state == "Failed"
    assert found.reason == "trainer: BackoffLimitExceeded: t-0: OOMKilled (exit status 137): batch 7"


def test_nothing_there_is_unknown() -> None:
    found = job_status("adult", "default", ())
    assert (found.state, found.groups) == ("Unknown", ())


def test_trainers_without_servers_are_degraded() -> None:
    assert status(trainer(pod("t-0")), server(count=0)).state == "Degraded"


def operator(*pods: dict[str, t.Any]) -> JobStatus:
    resource = {"metadata": {"name": "adult"}, "spec": {"nnWorker": {"replicas": 1}, "embeddingParameterServer": {"replicas": 1}}}
    return job_status("adult", "default", groups(resource, list(pods)), trainer_role="nn-worker")


def test_bare_pods_are_told_apart_by_name() -> None:
    assert operator(pod("adult-nn-worker-0"), pod("adult-embedding-ps-0")).state == "Running"
    assert operator(pod("adult-nn-worker-0", "Succeeded")).state == "Succeeded"
    assert operator(pod("adult-nn-worker-0")).state == "Degraded"
    assert operator(pod("adult2-nn-worker-0")).state == "Pending"


def test_a_bare_pod_that_failed_has_failed_the_training() -> None:
    found = operator(pod("adult-nn-worker-0"), pod("adult-embedding-ps-0", "Failed", state=ended(101)))
    assert (found.state, found.reason) == ("Failed", "emb-server: adult-embedding-ps-0: Error (exit status 101)")


def test_launchers_tracebacks_are_not_the_last_words() -> None:
    text = """MUSTER error: no batch for 60 s
Traceback (most recent call last):
  File "launch.py", line 260, in <module>
subprocess.CalledProcessError: Command 'train.py' returned non-zero exit status 1.
Traceback (most recent call last):
  File "launcher.py", line 8, in <module>
subprocess.CalledProcessError: Command 'launch' returned non-zero exit status 1.
"""
    assert last_lines(text) == "MUSTER error: no batch for 60 s"
    assert last_lines("ValueError: x\n") == "ValueError: x"
    assert last_lines("ValueError: x\nsubprocess.CalledProcessError: git failed\ngoes on\nValueError: y").endswith("ValueError: y")
    event = 'muster.ml/elastic {"event": "failed", "index": 0}'
    assert last_lines(f"OSError: shm\n{event}\n{event}") == "OSError: shm"
    assert last_lines("") == ""


ELASTIC = """\
W0921 00:45:34.000000 495300 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 495402 closing signal SIGTERM
E0921 00:45:35.000000 495300 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) local_rank: 3 (pid: 495404)
Traceback (most recent call last):
  File "/opt/bin/torchrun", line 8, in <module>
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2025-09-21_00:45:35
  exitcode  : 1 (pid: 495404)
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""
OLDER = """\
ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 19442) of binary: /usr/bin/python
Traceback (most recent call last):
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
tools/test.py FAILED
"""
DEEPSPEED = """\
[2024-01-01 12:00:00,123] [INFO] [launch.py:316:sigkill_handler] Killing subprocess 123
[2024-01-01 12:00:00,124] [ERROR] [launch.py:322:sigkill_handler] ['/usr/bin/python', '-u', 'train.py'] exits with return code = 1
"""
OPEN_MPI = """\
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
--------------------------------------------------------------------------
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[12345,1],0]
  Exit code:    1
--------------------------------------------------------------------------
"""
LEAKS = """\
[rank0]:[W1101 12:00:00.000 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been destroyed before we destruct it.
/usr/lib/python3.10/multiprocessing/resource_tracker.py:224: UserWarning: resource_tracker: There appear to be 1 leaked semaphore objects
  warnings.warn('resource_tracker: There appear to be %d '
"""


@pytest.mark.parametrize("launcher", [ELASTIC, OLDER, DEEPSPEED, OPEN_MPI, LEAKS, DEEPSPEED + ELASTIC])
def test_what_a_launcher_says_of_its_child_is_no_reason(launcher: str) -> None:
    """As torchrun (2.8, 1.13), DeepSpeed 0.14 and Open MPI 4 end, and what follows an error of Python."""
    said = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\nRuntimeError: CUDA out of memory.'
    assert last_lines(f"{said}\n{launcher}") == said


def test_progress_is_one_short_line_and_the_error_has_everything() -> None:
    """Seven pods, four of which wait for the same image, in words of their own."""
    back_off = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "registry.example/persia:1": not found'}}
    runs = [pod(f"s-{n}") for n in range(3)]
    wait = [pod(f"t-{n}", "Pending", state=back_off) for n in range(4)]
    groups = [
        group_status(STATEFUL_SET, workload("StatefulSet", "s", "emb-server", "server", 3), runs),
        group_status(JOB, workload("Job", "t", "trainer", "nn-worker", 4), wait),
    ]
    line = job_status("fair", "ml", groups, trainer_role="nn-worker").line()
    assert line.brief == (
        'Pending: 3 of 7 pods run; t-0 and 3 more: ImagePullBackOff: Back-off pulling image "registry.example/persia:1": not found'
    )
    assert len(in_brief(line)) <= LONGEST
    assert [name in line for name in ("t-0:", "t-1:", "t-2:", "(and 1 more)")] == [True] * 4


def test_a_group_without_pods_says_in_brief_why_there_are_none() -> None:
    group = group_status(JOB, workload("Job", "t", "trainer", "nn-worker", 2), [])
    refused = dataclasses.replace(group, reason=f"{group.reason} (FailedCreate: exceeded quota)")
    line = job_status("fair", "ml", [refused]).line()
    assert line.brief == "Pending: 0 of 2 pods run; 2 of 2 pods are missing (FailedCreate: exceeded quota)"


@pytest.mark.parametrize(("queue", "state"), [("", "Succeeded"), ("default", "Pending")])
def test_a_job_that_kueue_has_suspended_has_not_ended(queue: str, state: str) -> None:
    """With a LocalQueue named default, Kueue gives every Job of its namespace the label of a queue."""
    item, _pods = trainer()
    item["spec"]["suspend"] = True
    item["metadata"]["labels"] |= {"kueue.x-k8s.io/queue-name": queue} if queue else {}
    assert group_status(JOB, item, []).state == state

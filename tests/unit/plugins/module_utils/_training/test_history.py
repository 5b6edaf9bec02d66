# SPDX-License-Identifier: GPL-3.0-or-later
"""The records of trainings, which stay when the trainings are removed."""

import hashlib
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, Forbidden
from ansible_collections.muster.ml.plugins.module_utils._kube.cluster import Cluster
from ansible_collections.muster.ml.plugins.module_utils._kube.limited import LimitedCluster
from ansible_collections.muster.ml.plugins.module_utils._kube.managed import managed_objects, unmanaged_objects
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import HISTORY, Ref
from ansible_collections.muster.ml.plugins.module_utils._manifests.meta import LABEL_GROUP
from ansible_collections.muster.ml.plugins.module_utils._systems.elastic.spec import ElasticJob
from ansible_collections.muster.ml.plugins.module_utils._training import history
from ansible_collections.muster.ml.plugins.module_utils._training.status import INDEX_LABELS
from ansible_collections.muster.ml.plugins.modules import apply, elastic_job, job_info, training_history_info
from ansible_collections.muster.ml.tests.unit.fakes import tasks
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from ansible_collections.muster.ml.tests.unit.fakes.pods import ended, pod
from ansible_collections.muster.ml.tests.unit.plugins.modules.test_elastic_job import JOB

JOB_REF, RECORDS = Ref("batch/v1", "Job", "digits", "default"), Ref("v1", "ConfigMap", HISTORY, "default")
SECRET_TEXT = "in-the-program"
RESULT = 'muster.ml/elastic {"event": "result", "time": 1795272899.1, "world_size": 2, "accuracy": 0.95, "epochs": 10, "steps": 240}\n'
DIGEST = f"example/torch@sha256:{'5' * 64}"
OPTIONS: dict[str, t.Any] = {**JOB, "script": "train.py", "files": {"train.py": SECRET_TEXT}, "args": [SECRET_TEXT]}


class Run(t.NamedTuple):
    """What a run has returned, and of what it has warned."""

    result: dict[str, t.Any]
    warnings: list[str]


def run(cluster: FakeCluster, *, check: bool = False, **more: t.Any) -> Run:
    warnings: list[str] = []
    return Run(tasks.run(elastic_job, cluster, {**OPTIONS, **more}, check=check, warn=warnings.append), warnings)


def remove(cluster: FakeCluster, **more: t.Any) -> Run:
    return run(cluster, **{"state": "absent", "delete_data": True, **more})


def end(cluster: FakeCluster, condition: str = "Complete") -> None:
    """Let both pods end after five minutes, each with a GPU."""
    for index in range(2):
        done = ended(0 if condition == "Complete" else 1)
        labels = {ElasticJob.label: "digits", LABEL_GROUP: "worker", INDEX_LABELS[0]: str(index)}
        item = pod(f"digits-{index}", "Succeeded" if condition == "Complete" else "Failed", labels=labels, state=done)
        item["spec"]["containers"] = [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]
        item["status"]["containerStatuses"][0] |= {"image": "example/torch:1", "imageID": DIGEST}
        cluster.add(item)
        cluster.log_lines["default", f"digits-{index}"] = RESULT
    cluster.set_status(JOB_REF, {"conditions": [{"type": condition, "status": "True"}]})


def without_pods(cluster: FakeCluster) -> None:
    """Delete the pods, as Kubernetes does when their Job is gone."""
    for name in ("digits-0", "digits-1"):
        cluster.remove(Ref("v1", "Pod", name, "default"))


def records(cluster: FakeCluster) -> list[dict[str, t.Any]]:
    return list(tasks.run(training_history_info, cluster, {"namespace": "default"})["records"])


@pytest.fixture
def trained(cluster: FakeCluster) -> FakeCluster:
    """A cluster with a training that has ended after the run that made it."""
    run(cluster)
    end(cluster)
    return cluster


def test_a_removed_training_stays_on_record(trained: FakeCluster) -> None:
    assert remove(trained).warnings == []
    assert trained.stored("Job", "digits", "default") is None
    (found,) = records(trained)
    known = ("namespace", "name", "kind", "state", "by", "started", "ended", "pods", "world_size", "restarts", "gpu_hours", "images")
    assert [found[key] for key in known] == [
        "default", "digits", "elastic_job", "Succeeded", "ada", "2026-11-21T10:00:05Z", "2026-11-21T10:05:00Z", 2, 2, 0, 0.16,
        {"example/torch:1": DIGEST},
    ]  # fmt: skip
    assert (found["progress"]["step"], found["progress"]["percent"], found["progress"]["metrics"]) == (240, 100, {"accuracy": 0.95})
    assert {"image", "args", "script"} <= found["options"].keys()
    assert found["files"]["train.py"] == hashlib.sha256(SECRET_TEXT.encode()).hexdigest()
    assert SECRET_TEXT not in str(found)


def test_check_mode_and_second_runs_write_no_record(trained: FakeCluster) -> None:
    trained.requests.clear()
    remove(trained, check=True)
    run(trained)
    assert trained.writes == []
    remove(trained)
    trained.requests.clear()
    remove(trained)
    assert trained.writes == []
    assert len(records(trained)) == 1


def test_one_that_a_run_has_waited_for_is_recorded_once(cluster: FakeCluster) -> None:
    run(cluster)
    cluster.before("watch", lambda _ref: end(cluster))
    with_wait: dict[str, t.Any] = {"wait": True, "wait_for": "completed"}
    assert run(cluster, **with_wait).result["state"] == "Succeeded"
    assert [one["state"] for one in records(cluster)] == ["Succeeded"]
    cluster.requests.clear()
    run(cluster, **with_wait)
    assert cluster.writes == []


def test_a_failed_one_is_recorded_with_its_reason(cluster: FakeCluster) -> None:
    run(cluster)
    end(cluster, "Failed")
    with pytest.raises(Failed):
        run(cluster, wait=True)
    (found,) = records(cluster)
    assert (found["state"], "digits-0" in found["reason"]) == ("Failed", True)


def test_trained_again_and_stopped_are_two_records(trained: FakeCluster) -> None:
    run(trained, restart=True)
    without_pods(trained)
    remove(trained)
    assert [(one["state"], one["reason"]) for one in records(trained)] == [("Stopped", "removed while it was Pending"), ("Succeeded", "")]
    assert len({one["uid"] for one in records(trained)}) == 2


def test_a_run_that_was_killed_before_the_record_is_made_up_for(trained: FakeCluster) -> None:
    trained.fail("create", HISTORY, KeyboardInterrupt())  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        remove(trained)
    assert trained.stored("Job", "digits", "default")
    remove(trained)
    assert [one["state"] for one in records(trained)] == ["Succeeded"]


@pytest.mark.parametrize("first", [True, False])
def test_of_two_runs_at_once_both_records_stay(trained: FakeCluster, first: bool) -> None:
    def other(_ref: Ref) -> None:
        entry = {"uid": "theirs", "state": "Succeeded", "ended": "2026-11-21T09:00:00Z"}
        history._keep(trained, RECORDS, entry)

    if not first:
        history._keep(trained, RECORDS, {"uid": "earlier", "state": "Failed", "ended": "2026-11-20T09:00:00Z"})
    trained.before("create" if first else "apply", other, "ConfigMap")
    assert remove(trained).warnings == []
    assert {one["uid"] for one in records(trained)} >= {"theirs", *(() if first else ("earlier",))}
    assert len(records(trained)) == (2 if first else 3)


def test_the_latest_are_kept_and_fit(cluster: FakeCluster) -> None:
    for number in range(history.MOST + 5):
        history._keep(cluster, RECORDS, {"uid": str(number), "state": "Failed", "ended": f"{number:03}", "reason": "x" * 20_000})
    found = records(cluster)
    assert [one["uid"] for one in found][:2] == [str(history.MOST + 4), str(history.MOST + 3)]
    assert len(str(cluster.stored("ConfigMap", HISTORY, "default"))) < 1024 * 1024
    for number in range(history.MOST + 5):
        history._keep(cluster, RECORDS, {"uid": f"small-{number}", "state": "Failed", "ended": f"b{number:03}"})
    assert len(records(cluster)) == history.MOST


@pytest.mark.parametrize("verb", ["create", "get"])
def test_without_the_right_it_is_a_warning(trained: FakeCluster, verb: str) -> None:
    trained.fail(verb, HISTORY, Forbidden("you may not"))
    assert remove(trained).warnings == ["Training default/digits is not recorded in ConfigMap muster-history: you may not"]
    assert trained.stored("Job", "digits", "default") is None


def test_who_may_not_read_its_files_is_told_the_rest(trained: FakeCluster) -> None:
    trained.refuse("list", Forbidden("you may not"), "ConfigMap")
    seen = tasks.run(job_info, trained, {"name": "digits", "namespace": "default", "kind": "elastic_job"})
    assert (seen["state"], seen["record"]["pods"], seen["record"]["files"]) == ("Succeeded", 2, {})


def test_what_somebody_else_has_under_that_name_stays_as_it_is(trained: FakeCluster) -> None:
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": HISTORY, "namespace": "default"}, "data": {"a": "b"}}
    trained.add(theirs)
    (warning,) = remove(trained).warnings
    assert "not Muster's" in warning
    stored = trained.stored("ConfigMap", HISTORY, "default")
    assert stored
    assert stored["data"] == {"a": "b"}
    assert (records(trained), unmanaged_objects(trained, "default")[:1]) == ([], ["ConfigMap default/muster-history"])


def test_a_plan_does_not_name_the_record_and_does_not_stop_it(trained: FakeCluster) -> None:
    asked: list[str] = []
    limited = t.cast(FakeCluster, LimitedCluster(t.cast(Cluster, trained), lambda ref, _deletes: asked.append(ref.name)))
    assert remove(limited).warnings == []
    assert ("digits" in asked, HISTORY in asked, "" in asked) == (True, False, False)
    assert [one["by"] for one in records(trained)] == ["ada"]


def test_lines_that_somebody_has_spoilt_are_no_records(trained: FakeCluster) -> None:
    history._keep(trained, RECORDS, {"uid": "theirs", "state": "Succeeded", "ended": "2026-11-21T09:00:00Z"})
    trained.objects[RECORDS.identity]["data"]["trainings"] += '{"uid": "half\n[1]\n{}\n'
    assert remove(trained).warnings == []
    assert [one["state"] for one in records(trained)] == ["Succeeded", "Succeeded"]


def test_the_training_of_another_owner_is_not_recorded(cluster: FakeCluster) -> None:
    run(cluster)
    end(cluster)
    stored = cluster.stored("Job", "digits", "default")
    assert stored
    cluster.objects[JOB_REF.identity]["metadata"]["labels"]["muster.ml/owner"] = "theirs"
    remove(cluster)
    assert records(cluster) == []


def test_records_keep_no_namespace_and_it_says_that_they_go_with_it(trained: FakeCluster) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    options = {"owner": "space", "namespace": "default", "definition": [space], "adopt": True}
    tasks.run(apply, trained, options)
    remove(trained)
    assert [item.owner for item in managed_objects(trained, namespace="default")] == []
    without_pods(trained)
    assert unmanaged_objects(trained, "default") == []
    for check in (True, False):
        warnings: list[str] = []
        gone = tasks.run(apply, trained, {**options, "state": "absent", "delete_data": True}, check=check, warn=warnings.append)
        assert tasks.actions(gone) == {"Namespace/default": "deleted"}, warnings
        assert warnings == ["Namespace default goes with the records of its trainings (ConfigMap muster-history)."]


def test_the_word_that_deletes_the_records(trained: FakeCluster) -> None:
    remove(trained)
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": HISTORY, "namespace": "default"}}
    gone = tasks.run(apply, trained, {"owner": "history.default", "definition": [config], "state": "absent", "adopt": True})
    assert tasks.actions(gone) == {f"ConfigMap/{HISTORY}": "deleted"}
    assert records(trained) == []

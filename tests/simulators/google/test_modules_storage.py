# SPDX-License-Identifier: GPL-3.0-or-later
"""Buckets, repositories of images, and HMAC keys."""

import base64
import contextlib
import itertools
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import Unreachable
from ansible_collections.muster.ml.plugins.module_utils._edge import run as edge
from ansible_collections.muster.ml.plugins.module_utils._gcp import gcs_bucket
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeCluster
from simulators.google.client import PROJECT, Simulator
from simulators.google.conftest import killed
from simulators.google.reader import REGION, Reader
from simulators.modules import Run

STORAGE = "https://storage.googleapis.com/storage/v1"
BUCKET_URL = f"{STORAGE}/b/results-of-x"
AGE: dict[str, Any] = {"action": {"type": "Delete"}, "condition": {"age": 90}}
CLASS: dict[str, Any] = {"action": {"type": "SetStorageClass", "storageClass": "COLDLINE"}, "condition": {"age": 30}}
BUCKET: dict[str, Any] = {"name": "results-of-x", "location": "us-central1", "owner": "m"}


@pytest.fixture
def bucket(run: Run) -> None:
    assert not run("gcs_bucket", **BUCKET).get("failed")


def upload(reader: Reader, name: str) -> None:
    url = f"https://storage.googleapis.com/upload/storage/v1/b/results-of-x/o?uploadType=media&name={name}"
    reader.write("POST", url, {"some": "text"})


def test_a_bucket_is_private_and_its_own(run: Run, changes: Run, reader: Reader) -> None:
    done = changes("gcs_bucket", **BUCKET, lifecycle_rules=[AGE], versioning=True, labels={"team": "ml"})
    assert done["actions"] == ["storage:buckets.insert (create)"]
    found = reader.get(BUCKET_URL)
    assert found["iamConfiguration"]["publicAccessPrevention"] == "enforced"
    assert found["iamConfiguration"]["uniformBucketLevelAccess"]["enabled"] is True
    assert found["labels"] == {"team": "ml", "muster-owner": "m"}
    assert run("gcs_bucket", **{**BUCKET, "location": "US-CENTRAL1"})["changed"] is False
    run("gcs_bucket", **BUCKET, state="absent")


@pytest.mark.parametrize(
    ("change", "field", "after"),
    [
        ({"lifecycle_rules": [AGE]}, "lifecycle", {"rule": [AGE]}),
        ({"lifecycle_rules": [CLASS, AGE]}, "lifecycle", {"rule": [CLASS, AGE]}),
        ({"lifecycle_rules": []}, "lifecycle", None),
        ({"versioning": True}, "versioning", {"enabled": True}),
        ({"versioning": False}, "versioning", {"enabled": False}),
        ({"labels": {"a": "1", "b": "2"}}, "labels", {"a": "1", "b": "2", "muster-owner": "m"}),
        ({"labels": {"b": "2"}}, "labels", {"b": "2", "muster-owner": "m"}),
        ({"labels": {}}, "labels", {"muster-owner": "m"}),
        ({"storage_class": "NEARLINE"}, "storageClass", "NEARLINE"),
    ],
)  # fmt: skip
def test_a_setting_is_changed_and_those_that_others_set_stay(
    changes: Run, bucket: None, reader: Reader, change: dict[str, Any], field: str, after: Any
) -> None:
    cors = [{"origin": ["https://x.example"], "method": ["GET"]}]
    reader.write("PATCH", BUCKET_URL, {"cors": cors})
    assert changes("gcs_bucket", **BUCKET, **change)["actions"] == [f"storage:buckets.patch ({field})"]
    found = reader.get(BUCKET_URL)
    assert (found.get(field), found["cors"]) == (after, cors)


def test_soft_delete_is_set_and_rules_may_be_written_in_any_order(
    google: Simulator, run: Run, changes: Run, bucket: None, reader: Reader
) -> None:
    changes("gcs_bucket", **BUCKET, soft_delete_retention_seconds=0, lifecycle_rules=[AGE, CLASS])
    assert reader.get(BUCKET_URL)["softDeletePolicy"]["retentionDurationSeconds"] == "0"
    google.clear()
    spelled = [CLASS, {"condition": {"age": "90"}, "action": {"type": "Delete"}}]
    assert run("gcs_bucket", **BUCKET, soft_delete_retention_seconds=0, lifecycle_rules=spelled)["changed"] is False
    narrower = [CLASS, {"action": {"type": "Delete"}, "condition": {"age": 90, "isLive": False}}]
    assert run("gcs_bucket", **BUCKET, lifecycle_rules=narrower, check=True)["changed"] is True
    assert google.attempts() == []


def test_a_bucket_that_was_made_open_by_hand_is_closed(run: Run, changes: Run, bucket: None, reader: Reader) -> None:
    reader.write("PATCH", BUCKET_URL, {"iamConfiguration": {"publicAccessPrevention": "inherited"}})
    assert changes("gcs_bucket", **BUCKET)["actions"] == ["storage:buckets.patch (iamConfiguration)"]


def test_what_cannot_be_is_refused(google: Simulator, run: Run, bucket: None) -> None:
    google.clear()
    moved = run("gcs_bucket", **{**BUCKET, "location": "europe-west1"})
    assert "has location 'US-CENTRAL1'; Google cannot change it to 'EUROPE-WEST1'" in moved["msg"]
    taken = run("gcs_bucket", **{**BUCKET, "name": "training-data"})
    assert "another project owns it (names of buckets are unique in all of Google Cloud)" in taken["msg"]
    assert google.attempts() == []
    short = run("gcs_bucket", **BUCKET, soft_delete_retention_seconds=60)
    assert "must be 0, or between 7 and 90 days" in short["msg"]


def test_objects_go_only_by_their_own_word(google: Simulator, run: Run, changes: Run, bucket: None, reader: Reader) -> None:
    run("gcs_bucket", **BUCKET, versioning=True)
    for name in ("a/1", "a/1", "b c"):
        upload(reader, name.replace("/", "%2F").replace(" ", "%20"))
    google.clear()
    kept = run("gcs_bucket", **BUCKET, state="absent")
    assert "bucket results-of-x was kept: it holds objects (a/1); delete_data: true deletes it" in kept["kept"]
    assert (kept["changed"], google.attempts()) == (False, [])
    planned = run("gcs_bucket", **BUCKET, state="absent", delete_data=True, check=True)
    assert google.attempts() == []
    done = run("gcs_bucket", **BUCKET, state="absent", delete_data=True)
    assert planned["actions"] == done["actions"] == ["storage:objects.delete (delete its objects)", "storage:buckets.delete (delete)"]
    assert google.writes() == [*["storage:objects.delete"] * 3, "storage:buckets.delete"]
    assert reader.get(BUCKET_URL) is None


def test_the_deletion_of_objects_ends_with_the_time_limit_and_is_gone_on_with(
    google: Simulator, run: Run, bucket: None, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        upload(reader, f"o{number}")
    monkeypatch.setattr(gcs_bucket, "_PAGE", 5)
    monkeypatch.setattr(gcs_bucket, "_SLICE_S", 0.0)
    late = run("gcs_bucket", **BUCKET, state="absent", delete_data=True, wait_timeout=0)
    assert "it may hold more objects" in late["msg"]
    assert "run again, or with a longer wait_timeout" in late["msg"]
    done = run("gcs_bucket", **BUCKET, state="absent", delete_data=True)
    assert done.get("changed") is True, done["msg"]
    assert reader.get(BUCKET_URL) is None


def test_a_bucket_of_the_cluster_of_another_region_is_left_alone(left_alone: Callable[..., None]) -> None:
    left_alone("gcs_bucket", delete_data=True, name="of-both", location="us-central1")


# Repositories

IMAGES: dict[str, Any] = {"name": "images", "location": REGION, "owner": "m"}
IMAGES_URL = f"https://artifactregistry.googleapis.com/v1/projects/{PROJECT}/locations/{REGION}/repositories/images"
KEEP = {"action": "KEEP", "mostRecentVersions": {"keepCount": 10}}
OLD = {"action": "DELETE", "condition": {"olderThan": "2592000s"}}


def test_a_repository_is_made_changed_and_deleted(changes: Run, run: Run, reader: Reader) -> None:
    made = changes("gcp_artifact_repository", **IMAGES, cleanup_policies={"keep": KEEP, "old": OLD})
    days = {"action": "DELETE", "condition": {"olderThan": "30d"}}
    assert run("gcp_artifact_repository", **IMAGES, cleanup_policies={"keep": KEEP, "old": days})["changed"] is False
    assert made["actions"] == ["artifactregistry:projects.locations.repositories.create (create)"]
    for change, field, after in (
        ({"cleanup_policies": {"keep": KEEP}}, "cleanupPolicies", {"keep": {**KEEP, "id": "keep"}}),
        ({"cleanup_policies": {}}, "cleanupPolicies", None),
        ({"labels": {"team": "ml"}}, "labels", {"team": "ml", "muster-owner": "m"}),
        ({"labels": {}}, "labels", {"muster-owner": "m"}),
        ({"description": "text"}, "description", "text"),
        ({"cleanup_policy_dry_run": True}, "cleanupPolicyDryRun", True),
    ):
        done = changes("gcp_artifact_repository", **IMAGES, **change)
        assert done["actions"] == [f"artifactregistry:projects.locations.repositories.patch ({field})"]
        assert reader.get(IMAGES_URL).get(field) == after
    assert "has format 'DOCKER'; Google cannot change it" in run("gcp_artifact_repository", **IMAGES, format="GO")["msg"]
    assert "does not have the mark" in run("gcp_artifact_repository", **{**IMAGES, "owner": "x"}, state="absent")["kept"]
    changes("gcp_artifact_repository", **IMAGES, state="absent")
    assert reader.get(IMAGES_URL) is None


# HMAC keys

EMAIL = f"storage-of-x@{PROJECT}.iam.gserviceaccount.com"
KEY: dict[str, Any] = {"email": EMAIL, "secret": {"name": "hmac", "namespace": "ml"}}
KEYS_URL = f"{STORAGE}/projects/{PROJECT}/hmacKeys"
NOTE, WRITE = "kubernetes:secrets.apply (note which keys there are)", "kubernetes:secrets.apply (write the key)"
CREATE = "storage:projects.hmacKeys.create (create)"


def removal(access_id: str) -> list[str]:
    return [f"storage:projects.hmacKeys.update (deactivate {access_id})", f"storage:projects.hmacKeys.delete (delete {access_id})"]


@pytest.fixture
def cluster(run: Run, reader: Reader, monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """A cluster with nothing of ours, and a service account without keys."""
    run("gcp_service_account", account_id="storage-of-x")
    for row in active(reader).values():
        reader.write("PUT", row["selfLink"], {"state": "INACTIVE"})
        reader.write("DELETE", row["selfLink"])
    fake = FakeCluster()
    fake.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
    monkeypatch.setattr(edge, "connector", lambda _params: lambda: fake)
    return fake


def active(reader: Reader) -> dict[str, Any]:
    rows = reader.get(f"{KEYS_URL}?serviceAccountEmail={EMAIL}").get("items", [])
    return {row["accessId"]: row for row in rows}


def stored(cluster: FakeCluster) -> dict[str, str]:
    secret = cluster.stored("Secret", "hmac", "ml")
    return {key: base64.b64decode(value).decode() for key, value in ((secret or {}).get("data") or {}).items()}


def secret_that_is(done: str) -> dict[str, str]:
    return {"kind": "Secret", "name": "hmac", "namespace": "ml", "action": done}


def named_as_unknown(result: dict[str, Any]) -> set[str]:
    """The keys that a warning names, of which nothing says who made them."""
    rows = [json.dumps(row) for row in result.get("warnings", [])]
    told = [text for text in rows if "appeared after a run that was ended" in text]
    return {one for text in told for one in re.findall("GOOG1E[A-Z2-7=]+", text)}


def google_only(actions: list[str]) -> list[str]:
    return [action.split(" ")[0] for action in actions if action.startswith("storage:")]


def test_a_key_goes_into_the_secret_and_nowhere_else(google: Simulator, run: Run, cluster: FakeCluster, reader: Reader) -> None:
    google.clear()
    planned = run("gcs_hmac_key", check=True, **KEY)
    assert (google.attempts(), [request for request in cluster.writes if not request.dry_run]) == ([], [])
    done = run("gcs_hmac_key", **KEY)
    assert planned["actions"] == done["actions"] == [NOTE, CREATE, WRITE]
    assert planned["objects"] == done["objects"] == [secret_that_is("created")]
    assert google.writes() == google_only(done["actions"])
    secret = stored(cluster)
    assert list(active(reader)) == [secret["access_key"]] == [done["key"]["access_id"]]
    assert len(secret["secret_key"]) == 40
    assert secret["secret_key"] not in json.dumps([planned, done])
    google.clear()
    before = len(cluster.writes)
    again = run("gcs_hmac_key", **KEY)
    assert (again["changed"], again["actions"], google.attempts(), len(cluster.writes)) == (False, [], [], before)
    assert again["objects"] == []


def test_a_rotation_makes_the_new_key_first(google: Simulator, run: Run, cluster: FakeCluster, reader: Reader) -> None:
    run("gcs_hmac_key", **KEY)
    old = stored(cluster)
    planned = run("gcs_hmac_key", check=True, **KEY, rotate=True)
    google.clear()
    done = run("gcs_hmac_key", **KEY, rotate=True)
    assert planned["actions"] == done["actions"] == [NOTE, CREATE, WRITE, *removal(old["access_key"])]
    assert planned["objects"] == done["objects"] == [secret_that_is("updated")]
    new = stored(cluster)
    assert new["access_key"] != old["access_key"]
    assert new["secret_key"] != old["secret_key"]
    assert list(active(reader)) == [new["access_key"]]
    assert run("gcs_hmac_key", **KEY)["changed"] is False


@pytest.mark.parametrize("rotate", [False, True])
@pytest.mark.parametrize("answered", [False, True])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_run_killed_anywhere_leaves_one_key_that_works_and_none_of_others_is_touched(
    google: Simulator, run: Run, cluster: FakeCluster, reader: Reader, monkeypatch: pytest.MonkeyPatch,
    at: int, answered: bool, rotate: bool,
) -> None:  # fmt: skip
    url = f"{KEYS_URL}?serviceAccountEmail={EMAIL}"
    theirs = reader.write("POST", url)["metadata"]["accessId"]
    if rotate:
        run("gcs_hmac_key", **KEY)
    with monkeypatch.context() as patched:
        killed(patched, at, answered=answered)
        with contextlib.suppress(KeyboardInterrupt):
            run("gcs_hmac_key", **KEY, rotate=rotate)
    used = stored(cluster).get("access_key")
    planned = run("gcs_hmac_key", check=True, **KEY)
    google.clear()
    done = run("gcs_hmac_key", **KEY)
    assert not done.get("failed"), done["msg"]
    assert planned["actions"] == done["actions"]
    assert google.writes() == google_only(done["actions"])
    kept = set(active(reader)) - {stored(cluster)["access_key"]}
    assert theirs in kept
    assert kept - {theirs} == named_as_unknown(done) == named_as_unknown(planned), "what is not known is kept and named"
    assert used in (None, stored(cluster)["access_key"]), "a key that works is not given up"
    assert run("gcs_hmac_key", **KEY)["changed"] is False


def before_write(patched: pytest.MonkeyPatch, at: int, act: Callable[[], object]) -> None:
    """Let something happen right before the nth write of the Secret."""
    count = itertools.count(1)

    def late(write: Callable[..., Any]) -> Callable[..., Any]:
        def written(self: FakeCluster, *arguments: Any, **options: Any) -> Any:
            if not options.get("dry_run") and next(count) == at:
                act()
            return write(self, *arguments, **options)

        return written

    for verb in ("create", "apply"):
        patched.setattr(FakeCluster, verb, late(getattr(FakeCluster, verb)))


@pytest.mark.parametrize("rotate", [False, True])
@pytest.mark.parametrize("at", [1, 2])
def test_two_runs_at_once_keep_one_key(
    run: Run, cluster: FakeCluster, reader: Reader, monkeypatch: pytest.MonkeyPatch, at: int, rotate: bool
) -> None:
    """The second one runs from its beginning to its end right before a write of the first one."""
    if rotate:
        run("gcs_hmac_key", **KEY)
    others: list[dict[str, Any]] = []
    with monkeypatch.context() as patched:
        before_write(patched, at, lambda: others.append(run("gcs_hmac_key", **KEY, rotate=rotate)))
        done = run("gcs_hmac_key", **KEY, rotate=rotate)
    assert [one.get("msg") for one in (done, *others) if one.get("failed")] == []
    assert len(others) == 1
    assert done["key"] == others[0]["key"]
    assert set(active(reader)) == {stored(cluster)["access_key"]} == {done["key"]["access_id"]}
    assert any("by another run at the same moment" in str(text) for text in done.get("warnings", []))
    assert run("gcs_hmac_key", **KEY)["changed"] is False


@pytest.mark.parametrize("at", [1, 2])
def test_a_run_killed_at_a_write_of_the_secret_is_taken_up(
    run: Run, cluster: FakeCluster, reader: Reader, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """The second is the worst: Google made a key whose secret was not kept, and whose ID is known to nothing that is left."""

    def end() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        before_write(patched, at, end)
        with pytest.raises(KeyboardInterrupt):
            run("gcs_hmac_key", **KEY)
    orphans = set(active(reader))
    assert len(orphans) == at - 1
    done = run("gcs_hmac_key", **KEY)
    assert named_as_unknown(done) == orphans
    assert set(active(reader)) == {*orphans, stored(cluster)["access_key"]}
    assert run("gcs_hmac_key", **KEY)["changed"] is False


@pytest.mark.parametrize("state", ["present", "absent"])
def test_a_key_that_another_cluster_made_after_a_killed_run_is_named_and_kept(
    run: Run, cluster: FakeCluster, reader: Reader, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    """The run was killed after its note, before it asked Google for a key."""
    url = f"{KEYS_URL}?serviceAccountEmail={EMAIL}"
    earlier = reader.write("POST", url)["metadata"]["accessId"]
    with monkeypatch.context() as patched:
        killed(patched, 1, answered=False)
        with contextlib.suppress(KeyboardInterrupt):
            run("gcs_hmac_key", **KEY)
    later = reader.write("POST", url)["metadata"]["accessId"]
    done = run("gcs_hmac_key", **KEY, state=state)
    assert named_as_unknown(done) == {later}
    assert not [action for action in done["actions"] if earlier in action or later in action]
    assert {earlier, later} <= set(active(reader))
    done = run("gcs_hmac_key", **KEY, state="absent")
    assert {one for action in done["actions"] for one in (earlier, later) if one in action} == set()
    assert set(active(reader)) == {earlier, later}


def test_a_key_whose_secret_cannot_be_written_is_named(
    run: Run, cluster: FakeCluster, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Secret was writable when that was asked, and is not any more when Google has made the key."""
    write = FakeCluster.apply

    def apply(self: FakeCluster, *arguments: Any, **options: Any) -> Any:
        if active(reader):
            raise Unreachable("The API server did not answer")
        return write(self, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(FakeCluster, "apply", apply)
        told = run("gcs_hmac_key", **KEY)["msg"]
    (made,) = active(reader)
    assert f"{made} was made, and its secret could not be written into Secret ml/hmac: The API server did not answer" in told
    assert f"gcloud storage hmac delete {made}" in told
    assert named_as_unknown(run("gcs_hmac_key", **KEY)) == {made}


def test_a_key_that_was_disabled_is_told_and_one_that_was_deleted_is_replaced(run: Run, cluster: FakeCluster, reader: Reader) -> None:
    run("gcs_hmac_key", **KEY)
    used = stored(cluster)["access_key"]
    reader.write("PUT", active(reader)[used]["selfLink"], {"state": "INACTIVE"})
    told = run("gcs_hmac_key", **KEY)
    assert told["changed"] is False
    assert f"{used}, which Secret ml/hmac names, is INACTIVE" in json.dumps(told["warnings"])
    reader.write("DELETE", active(reader)[used]["selfLink"])
    assert run("gcs_hmac_key", **KEY)["actions"] == [NOTE, CREATE, WRITE]
    assert list(active(reader)) == [stored(cluster)["access_key"]]


def test_absent_takes_the_key_and_the_secret_and_only_those(run: Run, cluster: FakeCluster, reader: Reader) -> None:
    theirs = reader.write("POST", f"{KEYS_URL}?serviceAccountEmail={EMAIL}")["metadata"]["accessId"]
    run("gcs_hmac_key", **KEY)
    used = stored(cluster)["access_key"]
    planned = run("gcs_hmac_key", check=True, **KEY, state="absent")
    done = run("gcs_hmac_key", **KEY, state="absent")
    assert planned["actions"] == done["actions"] == [*removal(used), "kubernetes:secrets.delete (delete)"]
    assert planned["objects"] == done["objects"] == [secret_that_is("deleted")]
    assert (set(active(reader)), cluster.stored("Secret", "hmac", "ml")) == ({theirs}, None)
    again = run("gcs_hmac_key", **KEY, state="absent")
    assert again["changed"] is False
    assert f"{theirs} of {EMAIL} were kept" in again["kept"]


def test_a_secret_of_somebody_else_is_refused_before_a_key_is_made(google: Simulator, run: Run, cluster: FakeCluster) -> None:
    metadata = {"name": "hmac", "namespace": "ml"}
    cluster.add({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"access_key": "YQ=="}})
    google.clear()
    assert "Secret ml/hmac exists and was not made by this module" in run("gcs_hmac_key", **KEY)["msg"]
    assert run("gcs_hmac_key", **KEY, state="absent")["changed"] is False
    assert google.attempts() == []


def test_a_plan_needs_neither_the_account_nor_the_api(google: Simulator, run: Run, cluster: FakeCluster) -> None:
    google.reset()
    assert run("gcs_hmac_key", check=True, **KEY)["actions"] == [NOTE, CREATE, WRITE]
    google.enable()

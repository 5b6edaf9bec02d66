# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulator's service accounts, policies, buckets and HMAC keys refuse what Google's do, and Google's libraries say why."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.api_core import exceptions
from googleapiclient.errors import HttpError

from simulators.google import clients
from simulators.google.client import PROJECT, Simulator

IAM = f"https://iam.googleapis.com/v1/projects/{PROJECT}/serviceAccounts"
STORAGE = "https://storage.googleapis.com/storage/v1"
BUCKET: dict[str, Any] = {"name": "muster-kept", "location": "us-central1"}


def account(google: Simulator, name: str) -> str:
    """A service account that every service knows by now."""
    made: str = clients.session(google).post(IAM, json={"accountId": name}).json()["email"]
    return made


def known(google: Simulator, name: str) -> str:
    email = account(google, name)
    answer = clients.session(google).get(f"{IAM}/{email}")
    while answer.status_code == 404:
        answer = clients.session(google).get(f"{IAM}/{email}")
    return email


def test_a_bucket_by_google_cloud_storage(google: Simulator) -> None:
    client = clients.storage(google)
    bucket = client.create_bucket("muster-lib", location="us-central1")
    bucket.blob("a/b.txt").upload_from_string(b"text")
    assert (bucket.location, bucket.blob("a/b.txt").download_as_bytes()) == ("US-CENTRAL1", b"text")
    with pytest.raises(exceptions.Conflict, match="you already own it"):
        client.create_bucket("muster-lib", location="us-central1")
    with pytest.raises(exceptions.Conflict, match=r"The requested bucket name is not available"):
        client.create_bucket("training-data", location="us-central1")
    with pytest.raises(exceptions.Forbidden, match=r"storage\.buckets\.get"):
        client.get_bucket("training-data")


@pytest.mark.parametrize("name", ["Upper-Case", "goog-x", "my-google-x", "ab"])
def test_a_bucket_is_named_as_buckets_are(google: Simulator, name: str) -> None:
    """By google-auth's session: google-cloud-storage refuses some names itself."""
    answer = clients.session(google).post(f"{STORAGE}/b?project={PROJECT}", json={"name": name})
    assert (answer.status_code, "Invalid bucket name" in answer.text) == (400, True)


def test_a_bucket_goes_only_when_empty_and_is_kept_for_a_while(google: Simulator) -> None:
    client = clients.storage(google)
    bucket = client.create_bucket("muster-full", location="us-central1")
    bucket.versioning_enabled = True
    bucket.patch()
    blob = bucket.blob("x")
    blob.upload_from_string(b"1")
    with pytest.raises(exceptions.Conflict, match="not empty"):
        bucket.delete()
    bucket.delete_blob("x")  # blob.delete() would name the version that it has uploaded, which then is gone
    with pytest.raises(exceptions.Conflict, match="not empty"):
        bucket.delete()  # its older version is there
    for one in client.list_blobs("muster-full", versions=True):
        one.delete()
    bucket.delete()
    with pytest.raises(exceptions.NotFound):
        client.get_bucket("muster-full")
    assert list(google.ask("holdings")["deletedBuckets"]) == ["muster-full"]
    client.create_bucket("muster-full", location="us-central1")


def test_preconditions_of_a_bucket(google: Simulator) -> None:
    client = clients.storage(google)
    bucket = client.create_bucket("muster-pre", location="us-central1")
    before = bucket.metageneration
    bucket.labels = {"a": "1"}
    bucket.patch(if_metageneration_match=before)
    with pytest.raises(exceptions.PreconditionFailed, match="pre-conditions"):
        bucket.patch(if_metageneration_match=before)
    bucket.storage_class = "NEARLINE"
    bucket.patch()
    answer = clients.session(google).patch(f"{STORAGE}/b/muster-pre", json={"location": "EU"})
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, "The location of a bucket cannot be changed.")


def test_a_bucket_policy_with_a_stale_etag(google: Simulator) -> None:
    bucket = clients.storage(google).create_bucket("muster-policy", location="us-central1")
    policy, stale = bucket.get_iam_policy(), bucket.get_iam_policy()
    email = known(google, "bucket-reader")
    policy["roles/storage.objectViewer"] = {"user:somebody@example.com"}
    bucket.set_iam_policy(policy)
    stale["roles/storage.objectViewer"] = {"user:another@example.com"}
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.set_iam_policy(stale)
    fresh = bucket.get_iam_policy()
    fresh["roles/storage.objectViewer"].add(f"serviceAccount:{email}")
    with pytest.raises(exceptions.BadRequest, match="does not exist"):
        bucket.set_iam_policy(fresh)  # Cloud Storage does not know the new account yet
    bucket.set_iam_policy(fresh)
    bucket.iam_configuration.public_access_prevention = "enforced"
    bucket.patch()
    fresh = bucket.get_iam_policy()
    fresh["roles/storage.objectViewer"].add("allUsers")
    with pytest.raises(exceptions.PreconditionFailed, match="public access prevention is enforced"):
        bucket.set_iam_policy(fresh)


CONDITION = {"title": "t", "expression": "true"}


def test_conditions_need_uniform_access_and_lifecycles_make_sense(google: Simulator) -> None:
    session, url = clients.session(google), f"{STORAGE}/b/muster-rules"
    clients.storage(google).create_bucket("muster-rules", location="us-central1")
    policy = session.get(f"{url}/iam?optionsRequestedPolicyVersion=3").json()
    row = {"role": "roles/storage.objectViewer", "members": ["user:a@example.com"], "condition": CONDITION}
    wanted = {**policy, "version": 3, "bindings": [*policy["bindings"], row]}
    answer = session.put(f"{url}/iam", json=wanted)
    assert (answer.status_code, answer.json()["error"]["errors"][0]["reason"]) == (412, "conditionNotMet")
    session.patch(url, json={"iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}}})
    assert session.put(f"{url}/iam", json=wanted).ok
    for storage_class, status in (("NEARLINE", 400), (None, 200)):
        action = {"type": "Delete", **({"storageClass": storage_class} if storage_class else {})}
        rule = {"action": action, "condition": {"age": 1}}
        assert session.patch(url, json={"lifecycle": {"rule": [rule]}}).status_code == status


def test_a_policy_with_conditions_is_not_written_over_by_an_older_version(google: Simulator) -> None:
    projects = clients.discovered(google, "cloudresourcemanager", "v3").projects()
    name, ask = f"projects/{PROJECT}", {"options": {"requestedPolicyVersion": 3}}
    before = projects.getIamPolicy(resource=name, body=ask).execute()
    row = {"role": "roles/viewer", "members": ["user:a@example.com"], "condition": CONDITION}
    body = {"policy": {**before, "version": 3, "bindings": [*before["bindings"], row]}}
    policy = projects.setIamPolicy(resource=name, body=body).execute()
    plain = {"version": 1, "bindings": before["bindings"]}
    with pytest.raises(HttpError) as caught:
        projects.setIamPolicy(resource=name, body={"policy": {**plain, "etag": policy["etag"]}}).execute()
    assert "version (1) cannot be less than the existing policy version (3)" in clients.told(caught.value)[2]
    written = projects.setIamPolicy(resource=name, body={"policy": plain}).execute()
    assert written["version"] == 1, "without an etag nobody asks for it"


def test_only_what_is_kept_has_most_recent_versions(google: Simulator) -> None:
    url = f"https://artifactregistry.googleapis.com/v1/projects/{PROJECT}/locations/us-central1/repositories"
    for action, status in (("DELETE", 400), ("KEEP", 200)):
        policy = {"action": action, "mostRecentVersions": {"keepCount": 3}}
        body = {"format": "DOCKER", "cleanupPolicies": {"recent": policy}}
        answer = clients.session(google).post(f"{url}?repositoryId=kept-{status}", json=body)
        assert answer.status_code == status, answer.text


def test_a_project_policy_with_a_stale_etag(google: Simulator) -> None:
    projects = clients.discovered(google, "cloudresourcemanager", "v3").projects()
    name = f"projects/{PROJECT}"
    policy = projects.getIamPolicy(resource=name, body={}).execute()
    row = {"role": "roles/container.viewer", "members": ["user:a@example.com"]}
    changed = {**policy, "bindings": [*policy["bindings"], row]}
    projects.setIamPolicy(resource=name, body={"policy": changed}).execute()
    with pytest.raises(HttpError) as caught:
        projects.setIamPolicy(resource=name, body={"policy": changed}).execute()
    assert clients.told(caught.value)[0] == 409
    assert json.loads(caught.value.content)["error"]["status"] == "ABORTED"
    assert "There were concurrent policy changes" in clients.told(caught.value)[2]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"role": "roles/no.such", "members": ["user:a@example.com"]}, "Role roles/no.such is not supported"),
        ({"role": "roles/storage.admin", "members": ["a@example.com"]}, "The member a@example.com is of an unknown type."),
        ({"role": "roles/storage.admin", "members": [f"serviceAccount:nobody@{PROJECT}.iam.gserviceaccount.com"]},
         f"Service account nobody@{PROJECT}.iam.gserviceaccount.com does not exist."),
        ({"role": "roles/storage.admin", "members": [f"serviceAccount:{PROJECT}.svc.id.goog[ns/ksa]"]},
         f"Identity Pool does not exist ({PROJECT}.svc.id.goog)"),
        ({"role": "roles/storage.admin", "members": ["user:a@example.com"], "condition": {"title": "t", "expression": "true"}},
         "cannot contain condition"),
    ],
    ids=["role", "member", "account", "pool", "condition"],
)  # fmt: skip
def test_members_of_a_policy_are_there(google: Simulator, row: dict[str, Any], message: str) -> None:
    projects = clients.discovered(google, "cloudresourcemanager", "v3").projects()
    policy = projects.getIamPolicy(resource=f"projects/{PROJECT}", body={}).execute()
    wanted = {**policy, "bindings": [*policy["bindings"], row]}
    with pytest.raises(HttpError) as caught:
        projects.setIamPolicy(resource=f"projects/{PROJECT}", body={"policy": wanted}).execute()
    status, _reason, text = clients.told(caught.value)
    assert (status, message in text) == (400, True), text


def test_a_new_service_account_is_seen_late_and_a_deleted_one_kept(google: Simulator) -> None:
    accounts = clients.discovered(google, "iam").projects().serviceAccounts()
    made = accounts.create(name=f"projects/{PROJECT}", body={"accountId": "late-one"}).execute()
    with pytest.raises(HttpError) as caught:
        accounts.get(name=made["name"]).execute()
    assert clients.told(caught.value)[0] == 404
    assert accounts.get(name=made["name"]).execute()["uniqueId"] == made["uniqueId"]
    with pytest.raises(HttpError) as caught:
        accounts.create(name=f"projects/{PROJECT}", body={"accountId": "late-one"}).execute()
    assert clients.told(caught.value)[0] == 409
    with pytest.raises(HttpError) as caught:
        accounts.create(name=f"projects/{PROJECT}", body={"accountId": "short"}).execute()
    assert "does not have a length between 6 and 30" in clients.told(caught.value)[2]

    projects = clients.discovered(google, "cloudresourcemanager", "v3").projects()
    member = f"serviceAccount:{made['email']}"
    row = {"role": "roles/container.viewer", "members": [member]}
    for _time in range(2):
        policy = projects.getIamPolicy(resource=f"projects/{PROJECT}", body={}).execute()
        wanted = {"policy": {**policy, "bindings": [*policy["bindings"], row]}}
        answer = clients.session(google).post(
            f"https://cloudresourcemanager.googleapis.com/v3/projects/{PROJECT}:setIamPolicy", json=wanted
        )
    assert answer.status_code == 200, answer.text
    accounts.delete(name=made["name"]).execute()
    policy = projects.getIamPolicy(resource=f"projects/{PROJECT}", body={}).execute()
    members = [one for row in policy["bindings"] for one in row["members"]]
    assert f"deleted:{member}?uid={made['uniqueId']}" in members
    assert member not in members
    assert list(google.ask("holdings")["deletedServiceAccounts"]) == [made["uniqueId"]]
    again = accounts.create(name=f"projects/{PROJECT}", body={"accountId": "late-one"}).execute()
    assert again["uniqueId"] != made["uniqueId"]


def test_an_hmac_key_shows_its_secret_once_and_goes_only_inactive(google: Simulator) -> None:
    email, client = known(google, "hmac-owner"), clients.storage(google)
    with pytest.raises(exceptions.NotFound):
        client.create_hmac_key(email)  # Cloud Storage does not know the new account yet
    key, secret = client.create_hmac_key(email)
    assert len(secret) == 40
    seen = json.dumps([one._properties for one in client.list_hmac_keys(service_account_email=email)])
    assert (key.access_id in seen, secret in seen) == (True, False)
    assert secret not in json.dumps(google.ask("holdings"))
    assert secret not in json.dumps(google.ask("requests"))
    answer = clients.session(google).delete(f"{STORAGE}{key.path}")  # the library refuses it itself
    assert (answer.status_code, "Cannot delete keys in 'ACTIVE' state" in answer.text) == (400, True)
    stale = key.etag
    key.state = "INACTIVE"
    key.update()
    answer = clients.session(google).put(f"{STORAGE}{key.path}", json={"state": "ACTIVE", "etag": stale})
    assert answer.status_code == 412
    key.delete()
    assert list(client.list_hmac_keys(service_account_email=email)) == []
    assert [one.state for one in client.list_hmac_keys(service_account_email=email, show_deleted_keys=True)] == ["DELETED"]
    assert "hmacKeys" not in google.ask("holdings")


def test_a_service_account_has_ten_hmac_keys(google: Simulator) -> None:
    email, session = known(google, "hmac-hoarder"), clients.session(google)
    url = f"{STORAGE}/projects/{PROJECT}/hmacKeys?serviceAccountEmail={email}"
    assert session.post(url).status_code == 404
    answers = [session.post(url).status_code for _time in range(11)]
    assert answers == [200] * 10 + [429]

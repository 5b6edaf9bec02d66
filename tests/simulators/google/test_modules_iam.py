# SPDX-License-Identifier: GPL-3.0-or-later
"""APIs, service accounts, and members of policies."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.muster.ml.plugins.module_utils._edge.host import HostContext
from ansible_collections.muster.ml.plugins.module_utils._gcp import api
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock
from simulators.google.client import PROJECT, Simulator
from simulators.google.reader import REGION, Reader
from simulators.modules import Run, on_clock

EMAIL = f"nodes-of-x@{PROJECT}.iam.gserviceaccount.com"
MEMBER = f"serviceAccount:{EMAIL}"
ACCOUNT = {"account_id": "nodes-of-x", "display_name": "Nodes of x", "owner": "m"}
ACCOUNT_URL = f"https://iam.googleapis.com/v1/projects/{PROJECT}/serviceAccounts/{EMAIL}"
PROJECTS = f"https://cloudresourcemanager.googleapis.com/v3/projects/{PROJECT}"
VIEWER = {"resource": {"project": PROJECT}, "role": "roles/viewer", "member": MEMBER}
GROUP = "group:ops@example.com"
CONDITION = {"title": "until", "expression": 'request.time < timestamp("2030-01-01T00:00:00Z")'}


@pytest.fixture
def account(run: Run) -> None:
    assert not run("gcp_service_account", **ACCOUNT).get("failed")


def bindings(reader: Reader) -> list[dict[str, Any]]:
    body = {"options": {"requestedPolicyVersion": 3}}
    rows: list[dict[str, Any]] = reader.write("POST", f"{PROJECTS}:getIamPolicy", body)["bindings"]
    return rows


def members(reader: Reader, role: str = "roles/viewer") -> list[str]:
    return [one for row in bindings(reader) if row["role"] == role for one in row["members"]]


def set_project(reader: Reader, *rows: dict[str, Any]) -> None:
    """Somebody else's change."""
    policy = reader.write("POST", f"{PROJECTS}:getIamPolicy", {"options": {"requestedPolicyVersion": 3}})
    policy |= {"version": 3, "bindings": [*policy["bindings"], *rows]}
    reader.write("POST", f"{PROJECTS}:setIamPolicy", {"policy": policy})


# APIs


def test_apis_are_enabled_and_those_that_are_already_are_not_asked_for(google: Simulator, run: Run) -> None:
    google.reset()
    wanted = ["container.googleapis.com", "artifactregistry.googleapis.com", "compute.googleapis.com"]
    google.clear()
    planned = run("gcp_service", check=True, services=wanted)
    assert google.attempts() == []
    done = run("gcp_service", services=wanted)
    assert done["actions"] == planned["actions"]
    assert google.writes() == ["serviceusage:services.batchEnable"]
    assert set(done["services"].values()) == {"ENABLED"}
    google.clear()
    assert run("gcp_service", services=wanted)["changed"] is False
    assert google.attempts() == []
    more = run("gcp_service", services=[*wanted, "file.googleapis.com"])
    assert more["actions"] == ["serviceusage:services.batchEnable (enable file.googleapis.com)"]
    google.enable()


def test_an_api_that_was_just_enabled_is_waited_for(google: Simulator, run: Run) -> None:
    google.reset()
    run("gcp_service", services=["compute.googleapis.com"])
    assert run("gcp_network", name="n")["changed"] is True
    assert "Enable iam.googleapis.com" in run("gcp_service_account", **ACCOUNT)["msg"]
    google.enable()


def test_a_plan_of_many_apis_is_in_requests_that_google_takes(google: Simulator, run: Run) -> None:
    """Not 20 are simulated that are not enabled: the requests are what counts."""
    google.clear()
    refused = run("gcp_service", services=[f"a{number}.googleapis.com" for number in range(21)], check=True)
    assert "Not found or permission denied for service(s): a0.googleapis.com" in refused["msg"]
    assert "Check the spelling" in refused["msg"]


# Service accounts


def test_an_account_is_made_and_waited_for_until_it_is_seen(changes: Run, reader: Reader) -> None:
    done = changes("gcp_service_account", **ACCOUNT)
    assert done["actions"] == ["iam:projects.serviceAccounts.create (create)"]
    assert done["service_account"]["email"] == EMAIL
    assert reader.get(ACCOUNT_URL)["description"] == "(muster-owner=m)"


def test_an_account_is_renamed_and_described(changes: Run, account: None, reader: Reader) -> None:
    done = changes("gcp_service_account", **{**ACCOUNT, "display_name": "New", "description": "text"})
    assert done["actions"] == ["iam:projects.serviceAccounts.patch (description, displayName)"]
    found = reader.get(ACCOUNT_URL)
    assert (found["displayName"], found["description"]) == ("New", "text (muster-owner=m)")


@pytest.mark.parametrize("name", ["short", "Upper-case", "a" * 31, "ends-in-"])
def test_an_id_that_google_does_not_take_is_refused(google: Simulator, run: Run, name: str) -> None:
    google.clear()
    assert "cannot be the ID of a service account" in run("gcp_service_account", account_id=name)["msg"]
    assert google.attempts() == []


def test_an_account_of_the_cluster_of_another_region_is_left_alone(left_alone: Callable[..., None]) -> None:
    left_alone("gcp_service_account", account_id="muster-nodes", display_name="Nodes")


# Members of policies


def test_a_member_is_added_and_removed_and_nothing_else_is_touched(run: Run, changes: Run, account: None, reader: Reader) -> None:
    set_project(reader, {"role": "roles/viewer", "members": [GROUP]})
    before = bindings(reader)
    done = changes("gcp_iam_member", **VIEWER)
    assert done["actions"] == [f"cloudresourcemanager:projects.setIamPolicy (add {MEMBER} as roles/viewer)"]
    assert done["policy"]["members"] == [GROUP, MEMBER]
    assert [row for row in bindings(reader) if row["role"] != "roles/viewer"] == [row for row in before if row["role"] != "roles/viewer"]
    shouted = f"serviceAccount:{EMAIL.upper()}"
    assert run("gcp_iam_member", **{**VIEWER, "member": shouted})["changed"] is False
    done = changes("gcp_iam_member", **VIEWER, state="absent")
    assert done["actions"] == [f"cloudresourcemanager:projects.setIamPolicy (remove {MEMBER} as roles/viewer)"]
    assert bindings(reader) == before


def test_a_role_on_a_condition_is_another_thing_and_conditions_of_others_stay(changes: Run, account: None, reader: Reader) -> None:
    other = {"role": "roles/compute.viewer", "members": [GROUP], "condition": {"title": "t", "expression": "false"}}
    set_project(reader, other)
    changes("gcp_iam_member", **VIEWER)
    changes("gcp_iam_member", **VIEWER, condition=CONDITION)
    rows = [row for row in bindings(reader) if MEMBER in row["members"]]
    assert [row.get("condition") for row in rows] == [None, CONDITION]
    assert other in bindings(reader)
    changes("gcp_iam_member", **VIEWER, condition=CONDITION, state="absent")
    assert members(reader).count(MEMBER) == 1
    changes("gcp_iam_member", **VIEWER, state="absent")
    assert other in bindings(reader)


def test_a_policy_that_somebody_else_changes_meanwhile_is_read_again(
    google: Simulator, run: Run, account: None, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice; and nothing of theirs is lost."""
    send, met = api.Api.write, []

    def write(self: api.Api, label: str, step: Any) -> Any:
        if len(met) < 2:
            met.append(f"group:new{len(met)}@example.com")
            set_project(reader, {"role": "roles/viewer", "members": met[-1:]})
        return send(self, label, step)

    run("gcp_iam_member", **VIEWER, state="absent")
    with monkeypatch.context() as patched:
        patched.setattr(api.Api, "write", write)
        google.clear()
        done = run("gcp_iam_member", **VIEWER)
    assert done["changed"] is True
    assert google.writes().count("cloudresourcemanager:projects.setIamPolicy") == 3
    assert {*met, MEMBER} <= set(members(reader))
    assert run("gcp_iam_member", **VIEWER)["changed"] is False


def test_a_request_whose_answer_was_lost_is_reported_as_what_it_did(google: Simulator, run: Run, account: None, reader: Reader) -> None:
    run("gcp_iam_member", **VIEWER, state="absent")
    google.fault("drop", "cloudresourcemanager.projects.setIamPolicy")
    done = run("gcp_iam_member", **VIEWER)
    assert (done["changed"], len(done["actions"])) == (True, 1)
    assert members(reader).count(MEMBER) == 1


def test_an_account_that_is_not_seen_yet_is_waited_for_and_a_wrong_one_is_told(
    google: Simulator, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("gcp_service_account", **{**ACCOUNT, "state": "absent"})
    assert run("gcp_service_account", **ACCOUNT)["changed"]
    google.clear()
    assert run("gcp_iam_member", **VIEWER)["changed"] is True
    assert google.attempts().count("cloudresourcemanager:projects.setIamPolicy") == 2
    on_clock(monkeypatch, HostContext, FakeClock())
    wrong = run("gcp_iam_member", **{**VIEWER, "member": "serviceAccount:nobody@muster-test.iam.gserviceaccount.com"})
    assert "Service account nobody@muster-test.iam.gserviceaccount.com does not exist" in wrong["msg"]


@pytest.mark.parametrize(
    ("status", "reason", "message", "policy"),
    [
        (412, "conditionNotMet", "One or more users named in the policy do not belong to a permitted customer.",
         "constraints/iam.allowedPolicyMemberDomains"),
        (400, "failedPrecondition", "One or more users named in the policy do not belong to a permitted customer.",
         "constraints/iam.allowedPolicyMemberDomains"),
        (412, "conditionNotMet", "Request violates constraint 'constraints/iam.managed.allowedPolicyMembers'",
         "constraints/iam.managed.allowedPolicyMembers"),
    ],
)  # fmt: skip
def test_what_a_policy_of_the_organization_forbids_is_told_at_once(
    google: Simulator, run: Run, account: None, status: int, reason: str, message: str, policy: str
) -> None:
    """In the words of a policy that was changed since it was read, which would be tried again for long."""
    run("gcp_iam_member", **VIEWER, state="absent")
    google.clear()
    google.fault(  # once: a second try would go through
        "refuse", "cloudresourcemanager.projects.setIamPolicy", status=status, reason=reason, message=message
    )
    refused = run("gcp_iam_member", **VIEWER)
    assert google.attempts() == ["cloudresourcemanager:projects.setIamPolicy"]
    assert f"A policy of the organization, {policy}, forbids it" in refused["msg"]
    assert "run again" not in refused["msg"]


def test_a_deleted_account_is_told_and_its_trace_goes_with_absent(run: Run, changes: Run, account: None, reader: Reader) -> None:
    run("gcp_iam_member", **VIEWER)
    unique = reader.get(ACCOUNT_URL)["uniqueId"]
    changes("gcp_service_account", **{**ACCOUNT, "state": "absent"})
    trace = f"deleted:{MEMBER}?uid={unique}"
    assert trace in members(reader)
    run("gcp_service_account", **ACCOUNT)
    done = run("gcp_iam_member", **VIEWER)
    assert done["changed"] is True, "the new account of the name is not the old one"
    assert f"still has {trace} as roles/viewer" in json.dumps(done["warnings"])
    changes("gcp_iam_member", **VIEWER, state="absent")
    assert not [one for one in members(reader) if EMAIL in one]


def test_pods_become_a_service_account_once_the_project_has_a_pool(google: Simulator, run: Run, account: None) -> None:
    wanted = {
        "resource": {"service_account": EMAIL},
        "role": "roles/iam.workloadIdentityUser",
        "member": f"serviceAccount:{PROJECT}.svc.id.goog[ml/trainer]",
    }
    refused = run("gcp_iam_member", **wanted)
    assert "The pool comes with the first cluster that has Workload Identity" in refused["msg"]
    assert refused["code"]


def test_buckets_service_accounts_and_repositories_have_policies_too(changes: Run, run: Run, account: None, reader: Reader) -> None:
    storage, registry = "https://storage.googleapis.com/storage/v1", "https://artifactregistry.googleapis.com/v1"
    closed = {"uniformBucketLevelAccess": {"enabled": True}, "publicAccessPrevention": "enforced"}
    bucket = {"name": "b-of-x", "location": REGION, "iamConfiguration": closed}
    reader.write("POST", f"{storage}/b?project={PROJECT}", bucket)
    places = f"{registry}/projects/{PROJECT}/locations/{REGION}"
    name = reader.write("POST", f"{places}/repositories?repositoryId=images", {"format": "DOCKER"})["name"]
    while not reader.get(f"{registry}/{name}").get("done"):
        pass
    for resource, role, sent in (
        ({"bucket": "b-of-x"}, "roles/storage.objectUser", "storage:buckets"),
        ({"service_account": EMAIL}, "roles/iam.serviceAccountUser", "iam:projects.serviceAccounts"),
        ({"repository": f"{REGION}/images"}, "roles/artifactregistry.reader", "artifactregistry:projects.locations.repositories"),
    ):  # fmt: skip
        for state, word in (("present", "add"), ("absent", "remove")):
            done = changes("gcp_iam_member", resource=resource, role=role, member=MEMBER, state=state)
            assert done["actions"] == [f"{sent}.setIamPolicy ({word} {MEMBER} as {role})"]
    public = run("gcp_iam_member", resource={"bucket": "b-of-x"}, role="roles/storage.objectViewer", member="allUsers")
    assert "The bucket does not allow public access: name who may read it" in public["msg"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"member": "nodes@x"}, "Write its type before it"),
        ({"resource": {"project": PROJECT, "bucket": "b"}}, "mutually exclusive"),
        ({"resource": {}}, "one of the following is required"),
        ({"resource": {"repository": "images"}}, "Write LOCATION/NAME"),
        ({"role": "roles/nonsense"}, "roles/nonsense is not supported"),
    ],
)
def test_what_cannot_be_is_refused(google: Simulator, run: Run, change: dict[str, Any], told: str) -> None:
    assert told in run("gcp_iam_member", **{**VIEWER, **change})["msg"]
    google.clear()


def test_what_does_not_exist_has_no_member_to_remove_and_may_be_planned_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    on_clock(monkeypatch, HostContext, FakeClock())
    wanted = {"resource": {"bucket": "nothing-here"}, "role": "roles/storage.objectUser", "member": MEMBER}
    assert run("gcp_iam_member", **wanted, state="absent")["changed"] is False
    assert len(run("gcp_iam_member", **wanted, check=True)["actions"]) == 1
    assert "bucket nothing-here does not exist. Create it first" in run("gcp_iam_member", **wanted)["msg"]

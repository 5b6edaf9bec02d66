# SPDX-License-Identifier: GPL-3.0-or-later
"""Google's errors, in all their shapes, are one error with one spelling of words, a next step, and no secret."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._cloud.errors import without_secrets
from ansible_collections.muster.ml.plugins.module_utils._gcp.errors import HINTS, hint_of, problem, refusal, word
from ansible_collections.muster.ml.tests.unit.fakes.google import error

INFO = "type.googleapis.com/google.rpc.ErrorInfo"


def info(reason: str, **metadata: str) -> dict[str, t.Any]:
    return {"@type": INFO, "reason": reason, "domain": "googleapis.com", "metadata": metadata}


@pytest.mark.parametrize(
    ("older", "word_"),
    [
        ("alreadyExists", "ALREADY_EXISTS"),
        ("resourceInUseByAnotherResource", "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE"),
        ("RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE"),
        ("accessNotConfigured", "SERVICE_DISABLED"),
        ("userRateLimitExceeded", "RATE_LIMIT_EXCEEDED"),
        ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "STOCKOUT"),
    ],
)
def test_words_have_one_spelling(older: str, word_: str) -> None:
    assert word(older) == word_


@pytest.mark.parametrize(
    ("service", "message", "details", "permission"),
    [
        ("compute", "Required 'compute.networks.create' permission for 'projects/p/global/networks/x'", [], "compute.networks.create"),
        ("container", 'Required "container.clusters.create" permission(s) for "projects/p".', [], "container.clusters.create"),
        ("storage", "a@p.iam.gserviceaccount.com does not have storage.buckets.create access.", [], "storage.buckets.create"),
        ("iam", "no", [info("IAM_PERMISSION_DENIED", permission="iam.roles.get")], "iam.roles.get"),
    ],
)  # fmt: skip
def test_a_missing_permission_is_named(service: str, message: str, details: list[t.Any], permission: str) -> None:
    refused = refusal("x", service, *error(403, "forbidden", message, **({"details": details} if details else {})))
    assert refused.hint == f"The caller lacks the permission {permission}"


AGENT = "service-123@container-engine-robot.iam.gserviceaccount.com"


@pytest.mark.parametrize(
    ("message", "who"),
    [
        # terraform-google-modules/terraform-google-kubernetes-engine#302, hashicorp/terraform-provider-google#8262
        (
            "Google Compute Engine: Required 'compute.subnetworks.get' permission for 'projects/h/regions/us-central1/subnetworks/s'",
            "service-PROJECT_NUMBER@container-engine-robot.iam.gserviceaccount.com",
        ),
        (f"{AGENT} does not have compute.subnetworks.get access to projects/h/regions/us-central1/subnetworks/s", AGENT),
    ],
)  # fmt: skip
def test_a_permission_that_an_account_of_googles_lacks_is_not_the_callers(message: str, who: str) -> None:
    """Also where an operation ends with it."""
    refused = refusal("x", "container", *error(403, "forbidden", message, status="PERMISSION_DENIED"))
    ended = problem({"code": 7, "message": message})
    for hint in (refused.hint, hint_of(ended, ended.codes, "container")):
        assert hint
        assert f"own service account {who} lacks the permission compute.subnetworks.get: " in hint
        assert "roles/container.serviceAgent" in hint


def test_an_error_that_is_no_json_is_told_as_it_is() -> None:
    refused = refusal("bucket x: insert", "storage", 502, "<html>Bad Gateway</html>")
    assert (refused.code, refused.http) == ("502", 502)
    assert "<html>Bad Gateway</html>" in str(refused)


def test_the_error_of_a_login_is_read_too() -> None:
    assert "invalid_grant" in str(problem("invalid_grant"))


@pytest.mark.parametrize(
    "message",
    [
        "Google Compute Engine: The zone 'projects/p/zones/europe-west4-a' does not have enough resources available to do it.",
        "[GCE_STOCKOUT]: Instance 'gke-x' creation failed",
    ],
)  # fmt: skip
def test_gke_tells_of_a_stock_out_in_a_sentence(message: str) -> None:
    assert problem({"code": 8, "message": message}).codes == ["STOCKOUT", "RESOURCE_EXHAUSTED"]


def test_gke_tells_of_a_range_that_is_used_up_in_a_sentence() -> None:
    message = "Not all instances running in IGM. Current errors: [IP_SPACE_EXHAUSTED]: IP space of 'x' is exhausted."
    assert problem({"code": 8, "message": message}).codes == ["IP_SPACE_EXHAUSTED", "RESOURCE_EXHAUSTED"]
    assert "smaller max_pods_per_node" in HINTS["IP_SPACE_EXHAUSTED"]


@pytest.mark.parametrize(
    ("message", "cause", "named"),
    [
        ("Policy modification failed. Inconsistent representation of deleted member serviceAccount:a@p", "account made again", {}),
        ("Identity Pool does not exist (p.svc.id.goog). Please check that you specified a valid resource name", "no identity pool", {}),
        ("Service account a@p.iam.gserviceaccount.com does not exist.", "account not seen", {}),
        ("Your previous request to create the named bucket succeeded and you already own it.", "owned", {}),
        ("The bucket you tried to delete is not empty.", "not empty", {}),
        ("The secondary range is being used by 'projects/p/zones/z/instances/i'", "range in use", {"holder": "instances/i"}),
        ("'projects/p/global/networks/x' is already being used by 'projects/p/global/firewalls/ssh'", "held", {"holder": "firewalls/ssh"}),
    ],
)
def test_a_sentence_tells_the_cause(message: str, cause: str, named: dict[str, str]) -> None:
    refused = refusal("Google network busy", "compute", *error(400, "invalid", message))
    assert (refused.cause, refused.named) == (cause, named)
    assert refused.with_hint("Wait").cause == cause


def test_gke_tells_of_a_stale_fingerprint_in_a_sentence() -> None:
    message = 'Labels could not be set due to fingerprint mismatch; try again with the proper fingerprint: supplied was "1"'
    refused = refusal("x", "container", *error(400, "failedPrecondition", message, status="FAILED_PRECONDITION"))
    assert (refused.code, refused.hint) == ("CONDITION_NOT_MET", "Another client changed it at the same time: run again")


@pytest.mark.parametrize(
    ("http", "reason", "message", "named"),
    [
        (412, "conditionNotMet", "Constraint constraints/compute.vmExternalIpAccess violated for project 1. Add instance "
         "projects/p/zones/z/instances/i to the constraint to use external IP with it.", ", constraints/compute.vmExternalIpAccess,"),
        (412, "conditionNotMet", "'us-central1' violates constraint 'constraints/gcp.resourceLocations'",
         ", constraints/gcp.resourceLocations,"),
        (400, "failedPrecondition", "Operation denied by custom org policies: [\"customConstraints/custom.small\": \"small\"]",
         ", customConstraints/custom.small,"),
        (412, "conditionNotMet", "Operation denied by org policy on resource 'projects/p'", ""),
        (403, "forbidden", "do not belong to a permitted customer", ", constraints/iam.allowedPolicyMemberDomains,"),
        # terraform-google-modules/terraform-example-foundation#974
        (403, "SECURITY_POLICY_VIOLATED", "Request is prohibited by organization's policy. vpcServiceControlsUniqueIdentifier: x",
         ", a perimeter of VPC Service Controls,"),
    ],
)  # fmt: skip
def test_a_policy_of_the_organization_is_no_condition_that_may_be_met_later(http: int, reason: str, message: str, named: str) -> None:
    refused = refusal("x", "compute", *error(http, reason, message))
    assert refused.code == "ORGANIZATION_POLICY"
    assert not refused.codes & {"CONDITION_NOT_MET", "ABORTED"}
    assert refused.hint
    assert refused.hint.startswith(f"A policy of the organization{named} forbids it")


@pytest.mark.parametrize(
    ("http", "reason", "message", "hint"),
    [
        # Words of google.api.ErrorReason (google/api/error_reason.proto), of Cloud Storage
        # (reference of the JSON API, HTTP status and error codes) and of Service Usage.
        (403, "BILLING_DISABLED", "This API method requires billing to be enabled.", "Link the project to a billing account"),
        (403, "accountDisabled", "The billing account for the owning project is disabled in state absent", "Link the project to a billing"),
        (400, "UREQ_PROJECT_BILLING_NOT_FOUND", "Billing account for project '1' is not found.", "Link the project to a billing account"),
        (403, "CONSUMER_INVALID", "Project 'projects/nope' not found or deleted.", "Check the project"),
        (403, "operationRateExceeded", "Too frequent operations from the source resource.", "Too many requests"),
    ],
)  # fmt: skip
def test_not_every_403_is_a_missing_permission(http: int, reason: str, message: str, hint: str) -> None:
    assert (refusal("x", "compute", *error(http, reason, message)).hint or "").startswith(hint)


def test_a_condition_that_is_not_met_is_anothers_change() -> None:
    refused = refusal("x", "storage", *error(412, "conditionNotMet", "At least one of the pre-conditions did not hold."))
    assert (refused.code, refused.hint) == ("CONDITION_NOT_MET", "Another client changed it at the same time: run again")


def test_the_most_telling_word_comes_first() -> None:
    told = {"code": 400, "message": "no", "status": "FAILED_PRECONDITION", "errors": [{"reason": "badRequest", "message": "no"}]}
    assert problem(told).codes == ["FAILED_PRECONDITION", "BAD_REQUEST"]


@pytest.mark.parametrize(
    "text",
    [
        "Invalid header value: 'Bearer ya29.CANARY-1_x\\n'",
        "Authorization: Bearer CANARY",
        "token ya29.CANARY.x is expired",
        "http://me:CANARY@proxy:3128",
        '{"private_key": "CANARY", "type": "service_account"}',
        "-----BEGIN PRIVATE KEY-----\nCANARY\n-----END PRIVATE KEY-----\n",
    ],
)
def test_no_secret_is_in_a_message(text: str) -> None:
    assert "CANARY" not in without_secrets(text)
    assert "CANARY" not in str(refusal("x", "storage", 500, text))
    assert "CANARY" not in str(refusal("x", "storage", *error(500, "backendError", text)))

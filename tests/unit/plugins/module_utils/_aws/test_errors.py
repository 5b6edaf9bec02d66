# SPDX-License-Identifier: GPL-3.0-or-later
"""No credential is in what AWS, or the client of AWS, says went wrong."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._aws.api import Api
from ansible_collections.muster.ml.plugins.module_utils._aws.plan import Step
from ansible_collections.muster.ml.plugins.module_utils._cloud.errors import CallRefused
from ansible_collections.muster.ml.tests.unit.fakes.aws import Refusal, meta_of
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock

TOKEN = "IQoJb3JpZ2luX2VjEXAMPLETOKEN"
# What IAM and STS answer when a clock is wrong, or a proxy changed the request.
CANONICAL = (
    "The request signature we calculated does not match the signature you provided.\n\nThe Canonical String for this request should have "
    f"been\n'POST\n/\n\nhost:iam.amazonaws.com\nx-amz-date:20260101T000000Z\nx-amz-security-token:{TOKEN}\n\nhost;x-amz-date\n'"
)
INCOMPLETE = f"Authorization header requires 'Credential' parameter. Authorization=AWS4-HMAC-SHA256 Credential={TOKEN}, Signature={TOKEN}"


def client_error(name: str, text: str, **kwargs: t.Any) -> Exception:
    """An error of botocore's own; made here, so that the test needs no boto3."""
    made: Exception = type(name, (Exception,), {"__module__": "botocore.exceptions"})(text)
    made.kwargs = kwargs  # type: ignore[attr-defined]
    return made


class Fails:
    meta = meta_of("clientRequestToken")

    def __init__(self, error: Exception) -> None:
        self.error = error

    def get_role(self, **_request: t.Any) -> t.Any:
        raise self.error

    def list_roles(self, **_request: t.Any) -> t.Any:
        raise self.error

    @staticmethod
    def can_paginate(_operation: str) -> bool:
        return False


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Refusal("SignatureDoesNotMatch", CANONICAL), "does not match the signature"),
        (Refusal("IncompleteSignature", INCOMPLETE), "IncompleteSignature"),
        (
            client_error(
                "HTTPClientError",
                f"An HTTP Client raised an unhandled exception: Invalid header value b'{TOKEN}\\n'",
                error=ValueError(f"Invalid header value b'{TOKEN}\\n'"),
            ),
            "failed with ValueError; a line break in the credentials does that",
        ),
        (client_error("ProxyConnectionError", f'Failed to connect to proxy URL: "http://me:{TOKEN}@proxy:3128"'), "proxy:3128"),
    ],
)
def test_no_credential_is_in_a_message(error: Exception, told: str) -> None:
    api = Api(lambda _service: Fails(error), FakeClock())
    for ask in (lambda: api.read("role x", "iam", "get_role"), lambda: api.pages("roles", "iam", "list_roles", "Roles")):
        with pytest.raises(CallRefused) as refused:
            ask()
        assert TOKEN not in str(refused.value)
        assert TOKEN not in repr(refused.value.details)
        assert told in str(refused.value)


@pytest.mark.parametrize(
    ("code", "message", "cause"),
    [
        ("InvalidRequestException", "The cluster's authentication mode must be set to one of [API] to perform this.", "no access entries"),
        ("InvalidParameterException", "Unsupported authentication mode update from API to CONFIG_MAP.", ""),
        ("InvalidRequestException", "You are not authorized to launch instances with this launch template.", "launch not allowed"),
        ("ResourceInUseException", "Cluster has nodegroups attached", "has parts"),
        ("ResourceInUseException", "Nodegroup cannot be updated as it is currently not in Active State", "busy"),
    ],
)
def test_code_and_sentence_tell_the_cause(code: str, message: str, cause: str) -> None:
    with pytest.raises(CallRefused) as refused:
        Api(lambda _service: Fails(Refusal(code, message)), FakeClock()).write("x", Step("get_role", {}, "read", "iam"))
    assert (refused.value.cause, refused.value.said) == (cause, message.rstrip("."))


class Recovers(Fails):
    """A service that fails three times."""

    calls = 0

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.requests: list[dict[str, t.Any]] = []

    def get_role(self, **request: t.Any) -> t.Any:
        self.calls += 1
        self.requests.append(request)
        if self.calls <= 3:
            raise self.error
        return {"Role": {}}


# LocalStack's record of S3, test_s3_api.snapshot.json; awslabs/amazon-eks-ami#999
OUTAGES = (
    Refusal("InternalError", "We encountered an internal error."),
    client_error("ConnectTimeoutError", "Connect timeout on endpoint"),
)


@pytest.mark.parametrize("error", OUTAGES)
def test_an_outage_is_ridden_out(error: Exception) -> None:
    """A request that changes something has one token, by which AWS does it once."""
    service = Recovers(error)
    assert Api(lambda _service: service, FakeClock()).read("x", "iam", "get_role") == {"Role": {}}
    assert service.requests == [{}] * 4
    service = Recovers(error)
    assert Api(lambda _service: service, FakeClock()).write("x", Step("get_role", {}, "change", "iam")) == {"Role": {}}
    assert len(service.requests) == 4
    assert len({request["clientRequestToken"] for request in service.requests}) == 1


def test_a_wrong_region_is_told_in_seconds() -> None:
    clock, begun = FakeClock(), FakeClock().monotonic()
    error = client_error("EndpointConnectionError", 'Could not connect to the endpoint URL: "https://eks.x.amazonaws.com/"')
    with pytest.raises(CallRefused, match="Could not connect"):
        Api(lambda _service: Fails(error), clock).read("x", "iam", "get_role")
    assert 0 < clock.monotonic() - begun < 10


def test_an_old_boto3_is_named() -> None:
    error = client_error("ParamValidationError", 'Unknown parameter in CreateBucketConfiguration: "Tags"')
    with pytest.raises(CallRefused, match=r"an older boto3 than that of requirements-aws\.txt"):
        Api(lambda _service: Fails(error), FakeClock()).read("bucket x", "iam", "get_role")

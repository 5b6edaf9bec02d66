# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to AWS are repeated in one place: whatever botocore would repeat, ours repeats, and botocore repeats nothing."""

from __future__ import annotations

import json
import typing as t

import pytest
from botocore.awsrequest import AWSResponse
from botocore.loaders import Loader
from botocore.retries.standard import ThrottledRetryableChecker, TransientRetryableChecker

from ansible_collections.muster.ml.plugins.module_utils._aws.api import Api, too_early
from ansible_collections.muster.ml.plugins.module_utils._aws.plan import Step
from ansible_collections.muster.ml.plugins.module_utils._cloud.errors import CallRefused
from ansible_collections.muster.ml.plugins.module_utils._edge.aws import Login
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock

Rows = dict[str, t.Any]
STEPS = [Step("x", {}, says) for says in ("read", "list", "create", "change", "delete")]
# An account's quota, which only kinesis means as a rate; the last two are of services that no module asks.
QUOTA = {"LimitExceededException", "ReplicatedWriteConflictException"}


def rules(found: t.Any) -> t.Iterator[Rows]:
    """The conditions in botocore's file of retries."""
    if isinstance(found, dict):
        if {"service_error_code", "http_status_code"} & set(found):
            yield found
        for value in found.values():
            yield from rules(value)


LEGACY = list(rules(Loader().load_data("_retry")))
CODES = {rule["service_error_code"] for rule in LEGACY if "service_error_code" in rule}
CODES |= {*ThrottledRetryableChecker._THROTTLED_ERROR_CODES, *TransientRetryableChecker._TRANSIENT_ERROR_CODES}
STATUSES = {rule["http_status_code"] for rule in LEGACY if "service_error_code" not in rule}
STATUSES |= {*TransientRetryableChecker._TRANSIENT_STATUS_CODES}


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.says)
def test_what_botocore_would_repeat_is_repeated(step: Step) -> None:
    assert [code for code in sorted(CODES - QUOTA) if not too_early(step, CallRefused("no", code=code))] == []
    assert {429, 500, 502, 503, 504, 509} <= STATUSES
    assert [http for http in sorted(STATUSES) if not too_early(step, CallRefused("no", code="Unheard", http=http))] == []
    assert [code for code in sorted(QUOTA) if too_early(step, CallRefused("no", code=code))] == []


class Answers:
    """The endpoint: an answer to each request, without a network."""

    def __init__(self, *statuses: int) -> None:
        self.statuses, self.bodies = list(statuses), list[Rows]()

    def __call__(self, request: t.Any, **_more: t.Any) -> AWSResponse:
        self.bodies.append(json.loads(request.body or "{}"))
        status = self.statuses.pop(0)
        answered = AWSResponse(request.url, status, {}, None)
        answered._content = b'{"nodegroup": {}}' if status == 200 else b'{"message": "no"}'
        return answered


@pytest.mark.parametrize("operation", ["create_nodegroup", "describe_nodegroup"])
def test_botocore_sends_a_request_once(monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "5")
    names = {"access_key": "a", "secret_key": "b", "region": "eu-west-1", "endpoint_url": "http://127.0.0.1:9"}
    client = Login({**names, "session_token": None, "profile": None, "validate_certs": True, "aws_ca_bundle": None}).client("eks")
    request = {"clusterName": "c", "nodegroupName": "n", "subnets": ["s"], "nodeRole": "r"}
    if operation.startswith("describe"):
        request = {"clusterName": "c", "nodegroupName": "n"}
    answers = Answers(500, 429, 503, 200)
    client.meta.events.register("before-send", answers)
    clock, begun = FakeClock(), FakeClock().monotonic()
    api = Api(lambda _service: client, clock)
    assert api._send("x", Step(operation, request, "create" if "create" in operation else "read"))["nodegroup"] == {}
    assert (len(answers.bodies), answers.statuses) == (4, [])
    assert clock.monotonic() - begun > 4
    assert len({body.get("clientRequestToken") for body in answers.bodies}) == 1
    assert ("clientRequestToken" in answers.bodies[0]) is (operation == "create_nodegroup")

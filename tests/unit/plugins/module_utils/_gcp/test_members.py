# SPDX-License-Identifier: GPL-3.0-or-later
"""Members of policies, as values: where a policy is, what is no difference, and which refusals pass."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._gcp.api import Api
from ansible_collections.muster.ml.plugins.module_utils._gcp.errors import Refused, refusal
from ansible_collections.muster.ml.plugins.module_utils._gcp.iam_member import IamMember, converge_member, is_stale, place
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock
from ansible_collections.muster.ml.tests.unit.fakes.google import PROJECT, error

MEMBER = "principal://X/a"
WANTED = IamMember(place(PROJECT, {"project": PROJECT}), "roles/viewer", MEMBER)
POLICY: dict[str, t.Any] = {"version": 3, "etag": "1", "bindings": [{"role": "roles/viewer", "members": [MEMBER]}]}


def test_the_case_of_a_principal_is_a_difference_and_a_binding_without_members_is_none() -> None:
    assert not WANTED.plan(POLICY).changed
    assert IamMember(WANTED.place, "roles/viewer", MEMBER.lower()).plan(POLICY).changed
    (step,) = IamMember(WANTED.place, "roles/viewer", MEMBER, absent=True).plan(POLICY).steps
    assert step.request["policy"] == {"version": 3, "etag": "1", "bindings": []}


@pytest.mark.parametrize(
    ("answer", "stale"),
    [
        (error(409, "aborted"), True),
        (error(412, "conditionNotMet"), True),
        (error(409, "conflict"), True),
        (error(412, "conditionNotMet", "not allowed since public access prevention is enforced."), False),
        (error(412, "conditionNotMet", "Conditions need uniform bucket-level access."), False),
        (error(400, "badRequest", "Role roles/viewer is not supported for this resource."), False),
    ],
)
def test_every_word_for_a_stale_etag_is_known(answer: tuple[int, t.Any], stale: bool) -> None:
    assert is_stale(refusal("policy", "storage", *answer)) is stale


@pytest.mark.parametrize(("until", "told"), [(2000, r"concurrent policy changes\. Another client changed it"), (1070, "slow down")])
def test_what_never_ends_is_told_once_for_all_requests(until: int, told: str, clock: FakeClock) -> None:
    class Session:
        def request(self, _verb: str, url: str, *, json: t.Any, params: t.Any) -> tuple[int, t.Any]:
            refused = error(409, "aborted", "There were concurrent policy changes") if clock.now < until else error(429, "x", "slow down")
            return refused if url.endswith(":setIamPolicy") else (200, {})

    with pytest.raises(Refused, match=told):
        converge_member(WANTED, Api(Session(), clock), check=False)
    assert clock.now <= 1090


@pytest.mark.parametrize(
    ("resource", "path"),
    [
        ({"service_account": "a@other.iam.gserviceaccount.com"}, "projects/other/serviceAccounts/a@other.iam.gserviceaccount.com"),
        ({"service_account": "1@developer.gserviceaccount.com"}, f"projects/{PROJECT}/serviceAccounts/1@developer.gserviceaccount.com"),
        ({"bucket": "b"}, "b/b"),
        ({"repository": "eu/x"}, f"projects/{PROJECT}/locations/eu/repositories/x"),
    ],
)  # fmt: skip
def test_each_resource_has_its_place(resource: dict[str, str | None], path: str) -> None:
    assert place(PROJECT, resource).path == path


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(InvalidInput, match="resource: bucket is empty"):
        place(PROJECT, {"project": None, "bucket": ""})

# SPDX-License-Identifier: GPL-3.0-or-later
"""Members of policies, as values: what is asked for is changed, and nothing else."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput, Unreachable
from ansible_collections.muster.ml.plugins.module_utils._gcp.api import Api
from ansible_collections.muster.ml.plugins.module_utils._gcp.errors import Refused
from ansible_collections.muster.ml.plugins.module_utils._gcp.iam_member import VERSION, IamMember, converge_member, place
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock
from ansible_collections.muster.ml.tests.unit.fakes.google import PROJECT, error

MEMBER = "serviceAccount:a@muster-test.iam.gserviceaccount.com"
GROUP = "group:ops@example.com"
UNTIL = {"title": "until", "expression": "false"}
ROWS: list[dict[str, t.Any]] = [
    {"role": "roles/owner", "members": ["user:o@example.com"]},
    {"role": "roles/viewer", "members": [GROUP], "condition": UNTIL},
    {"role": "roles/viewer", "members": [GROUP]},
]
WANTED = IamMember(place(PROJECT, {"project": PROJECT}), "roles/viewer", MEMBER)


class Policies:
    """A session with one policy, which somebody else may change between a read and a write."""

    def __init__(self, rows: list[dict[str, t.Any]] | None = None) -> None:
        self.policy: dict[str, t.Any] | None = {"version": 3, "etag": "1", "bindings": rows or []}
        self.meanwhile: list[t.Callable[[], None]] = []
        self.lose_answers = 0
        self.refuse: list[t.Any] = []
        self.writes = 0

    def change(self, *rows: dict[str, t.Any]) -> None:
        assert self.policy
        self.policy = {
            **self.policy, "etag": str(int(self.policy["etag"]) + 1), "bindings": [*self.policy["bindings"], *rows],
        }  # fmt: skip

    def request(self, _verb: str, url: str, *, json: t.Any, params: t.Any) -> tuple[int, t.Any]:
        if not url.endswith(":setIamPolicy"):
            return (200, self.policy) if self.policy else error(404, "notFound")
        if self.meanwhile:
            self.meanwhile.pop(0)()
        if self.refuse:
            return t.cast("tuple[int, t.Any]", self.refuse.pop(0))
        assert self.policy
        if json["policy"]["etag"] != self.policy["etag"]:
            return error(409, "aborted", "There were concurrent policy changes")
        self.writes += 1
        self.policy = {**json["policy"], "etag": str(int(self.policy["etag"]) + 1)}
        if self.lose_answers:
            self.lose_answers -= 1
            raise Unreachable("the connection broke")
        return 200, self.policy


def run(google: Policies, wanted: IamMember = WANTED, *, check: bool = False) -> t.Any:
    return converge_member(wanted, Api(google, FakeClock()), check=check)


def rows(google: Policies) -> list[dict[str, t.Any]]:
    assert google.policy
    return list(google.policy["bindings"])


def test_only_this_role_on_this_condition_is_changed() -> None:
    google = Policies(ROWS)
    assert str(run(google, check=True).plan.steps[0]) == str(run(google).plan.steps[0])
    assert rows(google) == [*ROWS[:2], {"role": "roles/viewer", "members": [GROUP, MEMBER]}]
    assert google.policy
    assert google.policy["version"] == VERSION
    assert not run(google).plan.changed
    run(google, IamMember(WANTED.place, "roles/viewer", MEMBER, absent=True))
    assert rows(google) == ROWS
    run(google, IamMember(WANTED.place, "roles/viewer", GROUP, UNTIL, absent=True))
    assert rows(google) == [ROWS[0], ROWS[2]], "a binding without members is none"


def test_the_case_of_an_address_is_no_difference_and_that_of_a_principal_is() -> None:
    google = Policies([{"role": "roles/viewer", "members": [MEMBER, "principal://X/a"]}])
    shouted = MEMBER.upper().replace("SERVICEACCOUNT", "serviceAccount")
    assert not run(google, IamMember(WANTED.place, "roles/viewer", shouted)).plan.changed
    assert run(google, IamMember(WANTED.place, "roles/viewer", "principal://x/a")).plan.changed


def test_what_others_change_meanwhile_is_kept() -> None:
    google = Policies(ROWS)
    theirs = [{"role": f"roles/r{number}", "members": [GROUP]} for number in range(3)]
    google.meanwhile = [lambda row=row: google.change(row) for row in theirs]  # type: ignore[misc]
    assert run(google).plan.changed
    assert (google.writes, all(row in rows(google) for row in theirs)) == (1, True)


@pytest.mark.parametrize("conflict", [error(409, "aborted"), error(412, "conditionNotMet"), error(409, "conflict")])
def test_every_word_for_a_stale_etag_is_known(conflict: t.Any) -> None:
    google = Policies(ROWS)
    google.refuse = [conflict, conflict]
    assert run(google).plan.changed


def test_what_never_ends_is_told() -> None:
    google = Policies(ROWS)
    google.refuse = [error(409, "aborted", "There were concurrent policy changes")] * 999
    with pytest.raises(Refused, match=r"concurrent policy changes\. Another client changed it"):
        run(google)


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("not allowed since public access prevention is enforced.", "name who may read it"),
        ("Conditions need uniform bucket-level access.", "Turn on uniform bucket-level access of the bucket"),
    ],
)
def test_what_a_bucket_does_not_allow_is_not_asked_again(message: str, hint: str) -> None:
    google = Policies(ROWS)
    google.refuse = [error(412, "conditionNotMet", message)]
    with pytest.raises(Refused, match=hint):
        run(google)


def test_a_request_whose_answer_was_lost_is_a_change() -> None:
    google = Policies(ROWS)
    google.lose_answers = 1
    assert run(google).plan.changed
    assert google.writes == 1


def test_a_new_account_is_waited_for_and_a_role_that_is_refused_is_not() -> None:
    google = Policies(ROWS)
    google.refuse = [error(400, "badRequest", f"Service account {MEMBER[15:]} does not exist.")] * 4
    assert run(google).plan.changed
    google = Policies(ROWS)
    google.refuse = [error(400, "badRequest", "Role roles/viewer is not supported for this resource.")] * 2
    with pytest.raises(Refused, match="not supported"):
        run(google)
    assert len(google.refuse) == 1


def test_a_deleted_account_is_told_and_removed_with_its_member_only() -> None:
    mine, theirs = f"deleted:{MEMBER}?uid=1", "deleted:user:x@example.com?uid=2"
    google = Policies([{"role": "roles/viewer", "members": [mine, theirs]}])
    outcome = run(google)
    assert rows(google)[0]["members"] == [mine, theirs, MEMBER]
    assert [mine in text for text in WANTED.told(outcome.live)] == [True]
    run(google, IamMember(WANTED.place, "roles/viewer", MEMBER, absent=True))
    assert rows(google)[0]["members"] == [theirs]


def test_a_resource_that_is_not_there_may_be_planned_for_but_not_written_to() -> None:
    google = Policies()
    google.policy = None
    assert run(google, check=True).plan.changed
    assert not run(google, IamMember(WANTED.place, "roles/viewer", MEMBER, absent=True)).plan.changed
    with pytest.raises(InvalidInput, match=r"project muster-test does not exist\. Create it first"):
        run(google)


def test_a_member_without_a_type_and_a_repository_without_a_location_are_refused() -> None:
    with pytest.raises(InvalidInput, match="Write its type before it"):
        run(Policies(), IamMember(WANTED.place, "roles/viewer", "a@b"))
    with pytest.raises(InvalidInput, match="Write LOCATION/NAME"):
        place(PROJECT, {"repository": "images"})


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

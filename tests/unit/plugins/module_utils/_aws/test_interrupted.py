# SPDX-License-Identifier: GPL-3.0-or-later
"""Every kind, its run killed at every request that changes something: the next run ends where an undisturbed one does."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._aws.api import Api
from ansible_collections.muster.ml.plugins.module_utils._aws.efs import EfsAccessPoint, EfsFileSystem
from ansible_collections.muster.ml.plugins.module_utils._aws.eks_access import EksAccessEntry, EksPodIdentityAssociation
from ansible_collections.muster.ml.plugins.module_utils._aws.eks_addon import EksAddon
from ansible_collections.muster.ml.plugins.module_utils._aws.eks_cluster import EksCluster
from ansible_collections.muster.ml.plugins.module_utils._aws.eks_nodegroup import EksNodegroup
from ansible_collections.muster.ml.plugins.module_utils._aws.iam_oidc_provider import IamOidcProvider
from ansible_collections.muster.ml.plugins.module_utils._aws.resource import Resource
from ansible_collections.muster.ml.plugins.module_utils._aws.s3_bucket import S3Bucket
from ansible_collections.muster.ml.plugins.module_utils._cloud.converge import ConvergeOptions, Outcome, WaitOptions, converge
from ansible_collections.muster.ml.plugins.module_utils._cloud.plan import Body
from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.tests.unit.fakes.aws import ACCOUNT, Account, Killed
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock

OURS, THEIRS = {"muster.ml/owner": "m"}, {"muster.ml/owner": "other"}
SCOPE: Body = {"type": "cluster"}
BUCKET: Body = {"region": "eu-west-1", "account": ACCOUNT, "partition": "aws", "delete_data": True}
NETWORK: Body = {"role_arn": "r", "subnet_ids": ["a"]}
# (class, what names one, what makes one, what changes later)
KINDS: dict[str, tuple[type[Resource], Body, Body, Body]] = {
    "cluster": (
        EksCluster, {"name": "{}"}, NETWORK,
        {**NETWORK, "version": "1.35", "endpoint_private_access": True, "authentication_mode": "API", "deletion_protection": False},
    ),
    "nodegroup": (
        EksNodegroup, {"cluster_name": "c", "name": "{}"}, {"node_role": "r", "subnets": ["a"]},
        {"version": "1.35", "labels": {"x": "1"}},
    ),
    "addon": (EksAddon, {"cluster_name": "c", "name": "{}"}, {}, {"version": "v2"}),
    "access entry": (
        EksAccessEntry, {"cluster_name": "c", "principal_arn": "arn:aws:iam::123456789012:role/{}"},
        {"policies": [{"policyArn": "p/1", "accessScope": SCOPE}]},
        {"kubernetes_groups": ["g"], "policies": [{"policyArn": f"p/{n}", "accessScope": SCOPE} for n in (2, 3)]},
    ),
    "association": (
        EksPodIdentityAssociation, {"cluster_name": "c", "namespace": "ml", "service_account": "{}"}, {"role_arn": "r"},
        {"role_arn": "s"},
    ),
    "file system": (
        EfsFileSystem, {"name": "{}"}, {"mount_targets": [{"subnet_id": "a", "security_groups": ["g"]}], "delete_data": True},
        {"throughput_mode": "elastic", "backup": True, "transition_to_ia": "AFTER_30_DAYS", "delete_data": True,
         "mount_targets": [{"subnet_id": "b", "security_groups": ["g"]}, {"subnet_id": "c", "security_groups": ["g"]}]},
    ),
    "access point": (EfsAccessPoint, {"file_system_id": "fs-1", "name": "{}"}, {}, {}),
    "provider": (
        IamOidcProvider, {"url": "https://oidc/{}"}, {"client_ids": ["sts"]}, {"client_ids": ["a", "b"], "thumbprints": ["t"]},
    ),
    "bucket": (S3Bucket, {"name": "{}"}, BUCKET, {**BUCKET, "versioning": True, "encryption_key_arn": "k"}),
}  # fmt: skip
CHANGED = {**OURS, "team": "ml"}


def desired(kind: str, name: str, *, later: bool = False, tags: dict[str, str] | None = None) -> Resource:
    made, named, first, then = KINDS[kind]
    names = {key: value.format(name) for key, value in named.items()}
    return made(**names, **(then if later else first), tags=tags if tags is not None else CHANGED if later else OURS)


def run(
    account: Account, resource: Resource, *, absent: bool = False, adopt: bool = False, mark: Body | None = None, check: bool = False
) -> Outcome:
    options = ConvergeOptions(absent=absent, check=check, mark=OURS if mark is None else mark, adopt=adopt)
    return converge(resource, Api(account.client, FakeClock()), options, WaitOptions(wait=True, seconds=600))


def account_with_a_neighbour(kind: str) -> Account:
    """Somebody else's thing of the same kind is there all the time."""
    account = Account()
    run(account, desired(kind, "theirs", tags=THEIRS), mark=THEIRS)
    account.writes.clear()
    return account


def started(kind: str, start: str) -> Account:
    account = account_with_a_neighbour(kind)
    if start != "nothing":
        run(account, desired(kind, "x", tags=OURS if start == "older" else {"their": "tag"}), mark=OURS if start == "older" else {})
    account.writes.clear()
    return account


def theirs(account: Account) -> dict[tuple[str, ...], Body]:
    return {key: thing for key, thing in account.snapshot().items() if any("theirs" in part for part in key)}


def endings(kind: str, start: str, go: t.Callable[[Account], t.Any]) -> t.Iterator[tuple[str, Account]]:
    """The account after a run that ended at its n-th request, for every n: that request was not sent, or its answer never came."""
    undisturbed = started(kind, start)
    go(undisturbed)
    assert undisturbed.writes, "a run that changes nothing tells nothing"
    for number, (operation, _request) in enumerate(undisturbed.writes):
        for done in (False, True):
            account = started(kind, start)
            account.kill_at, account.done_before_the_end = number, done
            with pytest.raises(Killed):
                go(account)
            account.kill_at = None
            yield f"killed {'after' if done else 'before'} {operation}, request {number}", account


@pytest.mark.parametrize("start", ["nothing", "older"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_was_killed_is_taken_up_and_what_it_made_is_ours(kind: str, start: str) -> None:
    resource, undisturbed = desired(kind, "x", later=True), started(kind, start)
    if start == "nothing":
        resource = dataclasses.replace(desired(kind, "x"), tags=CHANGED)  # type: ignore[type-var]
    run(undisturbed, resource)
    neighbour = theirs(undisturbed)
    assert neighbour
    for ending, account in endings(kind, start, lambda account: run(account, resource)):
        outcome = run(account, resource)
        assert account.snapshot() == undisturbed.snapshot(), ending
        assert outcome.live, ending
        assert not run(account, resource).plan.changed, ending
        gone = run(account, resource, absent=True)
        assert (gone.kept, gone.live) == ("", None), ending
        assert account.snapshot() == neighbour, ending


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_killed_run_made_can_be_removed_at_once(kind: str) -> None:
    """Without a run that mends it in between: a teardown after a failed run."""
    resource = desired(kind, "x")
    for ending, account in endings(kind, "nothing", lambda account: run(account, resource)):
        neighbour = theirs(account)
        gone = run(account, resource, absent=True)
        assert (gone.kept, gone.live) == ("", None), ending
        assert account.snapshot() == neighbour, ending


@pytest.mark.parametrize("kind", KINDS)
def test_a_removal_that_was_killed_is_taken_up(kind: str) -> None:
    resource = desired(kind, "x")
    for ending, account in endings(kind, "older", lambda account: run(account, resource, absent=True)):
        neighbour = theirs(account)
        assert run(account, resource, absent=True).kept == "", ending
        assert account.snapshot() == neighbour, ending


@pytest.mark.parametrize("kind", KINDS)
def test_taking_over_begins_with_the_mark(kind: str) -> None:
    """However early such a run ends, what it changed is marked: the next one needs no adopt."""
    resource = desired(kind, "x", later=True)
    undisturbed = started(kind, "unowned")
    run(undisturbed, resource, adopt=True)
    for ending, account in endings(kind, "unowned", lambda account: run(account, resource, adopt=True)):
        untouched = account.snapshot() == started(kind, "unowned").snapshot()
        run(account, resource, adopt=untouched)
        assert account.snapshot() == undisturbed.snapshot(), ending


@pytest.mark.parametrize("kind", KINDS)
def test_what_has_no_owner_is_refused_and_kept_and_taken_over_only_when_asked_for(kind: str) -> None:
    account, resource = started(kind, "unowned"), desired(kind, "x")
    before = account.snapshot()
    with pytest.raises(InvalidInput, match=r"exists and does not carry the tag muster.ml/owner=m: another owner created it.*adopt: true"):
        run(account, resource)
    for adopt in (False, True):
        kept = run(account, resource, absent=True, adopt=adopt)
        assert kept.kept.endswith("was kept: it does not have the mark of this owner (muster.ml/owner=m)")
        assert resource.label in kept.kept
        assert not kept.plan.changed
    assert account.snapshot() == before
    run(account, resource, adopt=True)
    assert run(account, resource, absent=True).kept == ""
    assert account.snapshot() == theirs(account)


@pytest.mark.parametrize("kind", KINDS)
def test_what_another_owner_marked_is_never_taken_over(kind: str) -> None:
    account = account_with_a_neighbour(kind)
    before = account.snapshot()
    with pytest.raises(InvalidInput, match=r"it has muster\.ml/owner=other, and it is left as it is"):
        run(account, desired(kind, "theirs"), adopt=True)
    assert "does not have the mark" in run(account, desired(kind, "theirs"), absent=True, adopt=True).kept
    assert account.snapshot() == before

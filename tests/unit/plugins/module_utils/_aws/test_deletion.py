# SPDX-License-Identifier: GPL-3.0-or-later
"""What is not ours, holds data or cannot be judged stays, and is named with the reason."""

import dataclasses
import json
import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._aws.api import Api
from ansible_collections.muster.ml.plugins.module_utils._aws.ec2 import NetworkPart
from ansible_collections.muster.ml.plugins.module_utils._aws.efs import EfsAccessPoint, EfsFileSystem
from ansible_collections.muster.ml.plugins.module_utils._aws.eks_access import EksPodIdentityAssociation
from ansible_collections.muster.ml.plugins.module_utils._aws.eks_cluster import EksCluster
from ansible_collections.muster.ml.plugins.module_utils._aws.eks_nodegroup import EksNodegroup
from ansible_collections.muster.ml.plugins.module_utils._aws.plan import with_owner_tags
from ansible_collections.muster.ml.plugins.module_utils._aws.resource import Resource
from ansible_collections.muster.ml.plugins.module_utils._aws.s3_bucket import S3Bucket
from ansible_collections.muster.ml.plugins.module_utils._cloud.converge import ConvergeOptions, Outcome, WaitOptions, converge
from ansible_collections.muster.ml.plugins.module_utils._core.errors import Failed, InvalidInput, MusterError
from ansible_collections.muster.ml.tests.unit.fakes.aws import ACCOUNT, Account
from ansible_collections.muster.ml.tests.unit.fakes.cluster import FakeClock

OURS = {"muster.ml/owner": "m"}
BUCKET = S3Bucket("x", "eu-west-1", ACCOUNT, "aws", tags=OURS)
WITH_OBJECTS = dataclasses.replace(BUCKET, delete_data=True)
CLUSTER = EksCluster("x", role_arn="r", subnet_ids=["a"], deletion_protection=True, tags=OURS)
UNLOCKED = dataclasses.replace(CLUSTER, deletion_protection=False)
NODEGROUP = EksNodegroup("c", "x", node_role="r", subnets=["a"], tags=OURS)


def run(account: Account, resource: Resource, *, absent: bool = False, adopt: bool = False, check: bool = False) -> Outcome:
    options = ConvergeOptions(absent=absent, check=check, mark=OURS, adopt=adopt)
    return converge(resource, Api(account.client, FakeClock()), options, WaitOptions(wait=True, seconds=600))


def account_with(resource: Resource) -> Account:
    account = Account()
    run(account, resource)
    account.writes.clear()
    return account


def kept(account: Account, resource: Resource) -> str:
    """Why it is kept, by a plan and by a run, which both change nothing."""
    before = account.snapshot()
    planned, done = run(account, resource, absent=True, check=True), run(account, resource, absent=True)
    assert planned.kept == done.kept
    assert not done.plan.changed
    assert account.snapshot() == before
    return done.kept


def test_a_file_system_is_data_even_if_efs_has_not_counted_any_yet() -> None:
    desired = EfsFileSystem("x", tags=OURS, mount_targets=[{"subnet_id": "a", "security_groups": ["g"]}])
    account = account_with(desired)
    assert "holds files, 6144 bytes when EFS last measured; delete_data: true deletes it" in kept(account, desired)
    assert run(account, dataclasses.replace(desired, delete_data=True), absent=True).live is None


@pytest.mark.parametrize("operation", ["get_bucket_tagging", "head_bucket"])
def test_a_bucket_whose_owner_cannot_be_read_cannot_be_judged(operation: str) -> None:
    account = account_with(BUCKET)
    account.denied = {operation}
    assert "cannot be judged: its owner and tags could not be read" in kept(account, WITH_OBJECTS)
    assert operation in kept(account, WITH_OBJECTS)
    for adopt in (False, True):
        with pytest.raises(InvalidInput, match=r"is left as it is: its owner and tags could not be read.*AccessDenied"):
            run(account, BUCKET, adopt=adopt)
    assert account.writes == []


def test_a_bucket_of_another_account_with_our_tags_is_left_alone() -> None:
    account = account_with(BUCKET)
    account.things["bucket", "x"]["owner"] = "999999999999"
    assert "cannot be judged" in kept(account, WITH_OBJECTS)


def test_a_bucket_whose_objects_cannot_be_listed_is_kept() -> None:
    account = account_with(BUCKET)
    account.denied = {"list_object_versions"}
    assert "cannot be judged: S3 bucket x: list_object_versions was refused" in kept(account, BUCKET)


def test_objects_that_s3_did_not_delete_are_counted_and_the_first_is_named() -> None:
    account = account_with(BUCKET)
    account.things["bucket", "x"]["objects"] = [("a", "1"), ("locked", "1"), ("locked too", "1")]
    message = "Access Denied because object protected by object lock."
    account.errors = [{"Key": key, "VersionId": "1", "Code": "AccessDenied", "Message": message} for key in ("locked", "locked too")]
    with pytest.raises(
        Failed, match=r"2 of 3 objects were not deleted, first locked: AccessDenied: .* object lock\. .*locks are never bypassed"
    ) as failed:
        run(account, WITH_OBJECTS, absent=True)
    assert failed.value.details == {"code": "AccessDenied"}
    assert len(account.things["bucket", "x"]["objects"]) == 2
    assert "BypassGovernanceRetention" not in json.dumps(account.writes)


def test_more_versions_than_a_page_and_a_request_can_hold() -> None:
    account = account_with(BUCKET)
    account.things["bucket", "x"]["objects"] = [(f"key-{n % 700}", str(n)) for n in range(2101)]
    outcome = run(account, WITH_OBJECTS, absent=True)
    assert [str(step) for step in outcome.plan.steps] == [
        "s3:delete_objects (delete 1000 objects)",
        "s3:delete_objects (delete 1000 objects)",
        "s3:delete_objects (delete 101 objects)",
        "s3:delete_bucket (delete)",
    ]
    assert account.things == {}


def test_what_arrives_while_a_bucket_is_emptied_stays() -> None:
    account = account_with(BUCKET)
    account.things["bucket", "x"]["objects"] = [("a", "1")]
    account.before["delete_bucket"] = lambda: account.things["bucket", "x"]["objects"].append(("late", "1"))
    with pytest.raises(MusterError, match="Something was put into it a moment ago: run again"):
        run(account, WITH_OBJECTS, absent=True)
    assert account.things["bucket", "x"]["objects"] == [("late", "1")]


def test_a_bucket_that_was_there_already_when_it_was_made_is_not_touched() -> None:
    """In us-east-1 S3 calls it a success to make a bucket that the account has (S3 API, CreateBucket)."""
    account = Account()
    account.ignores_tags = True
    with pytest.raises(InvalidInput, match="exists and does not carry the tag"):
        run(account, BUCKET)
    assert [operation for operation, _request in account.writes] == ["create_bucket"]


def replaced(account: Account, **change: t.Any) -> t.Callable[[], None]:
    """Somebody deletes our cluster and makes another one of the same name, or changes the one that is there."""

    def act() -> None:
        account.things["cluster", "x"].update(change)

    return act


def test_a_cluster_that_somebody_made_anew_while_ours_was_being_deleted_stays() -> None:
    """Lifting the protection takes EKS minutes; after it the name may mean another cluster, even with our tag."""
    account = account_with(CLUSTER)
    account.before["describe_update"] = replaced(account, createdAt="later")
    with pytest.raises(Failed, match="EKS cluster x was created again by another client while it was being deleted"):
        run(account, UNLOCKED, absent=True)
    assert [operation for operation, _request in account.writes] == ["update_cluster_config"]


def test_a_cluster_that_somebody_took_over_while_it_was_being_deleted_stays() -> None:
    account = account_with(CLUSTER)
    account.before["describe_update"] = replaced(account, tags={"muster.ml/owner": "other"})
    with pytest.raises(InvalidInput, match="EKS cluster x was kept: it does not have the mark"):
        run(account, UNLOCKED, absent=True)
    assert [operation for operation, _request in account.writes] == ["update_cluster_config"]


def test_a_cluster_that_is_taken_over_while_it_is_waited_for_stays() -> None:
    account = account_with(CLUSTER)
    account.things["cluster", "x"].update(status="UPDATING", _waits=1, deletionProtection=False)
    reads = iter([None, None, replaced(account, tags={})])

    def somebody() -> None:
        if act := next(reads):
            act()
        else:
            account.before["describe_cluster"] = somebody

    account.before["describe_cluster"] = somebody
    assert "does not have the mark" in run(account, UNLOCKED, absent=True).kept
    assert account.writes == []


def test_the_end_of_a_cluster_is_not_waited_for_in_another_one_of_its_name() -> None:
    account = account_with(UNLOCKED)
    reads = iter([None, None, replaced(account, createdAt="later", status="ACTIVE", tags={})])

    def somebody() -> None:
        if act := next(reads):
            act()
        else:
            account.before["describe_cluster"] = somebody

    account.before["describe_cluster"] = somebody
    assert run(account, UNLOCKED, absent=True).plan.changed
    assert account.things["cluster", "x"]["createdAt"] == "later"


def test_what_an_add_on_owns_goes_only_with_the_add_on() -> None:
    desired = EksPodIdentityAssociation("c", "ml", "sa", role_arn="r", tags=OURS)
    account = account_with(desired)
    account.things["association", "c", "ml/sa"]["ownerArn"] = "arn:addon"
    assert kept(account, desired).endswith("was kept: it belongs to arn:addon")


def test_our_tag_in_another_account_is_a_copy() -> None:
    account = account_with(NODEGROUP)
    account.things["nodegroup", "c", "x"]["nodegroupArn"] = "arn:aws:eks:eu-west-1:999999999999:nodegroup/c/x/1"
    assert "no record says that Muster created it (a copy?)" in kept(account, NODEGROUP)
    assert NetworkPart("igw-1").account_of({"OwnerId": "999999999999"}) == "999999999999", "one that is shared"


def test_taking_over_what_failed_does_not_delete_it() -> None:
    """A node group that never came up is made anew, which deletes it: only ours."""
    account = account_with(NODEGROUP)
    account.things["nodegroup", "c", "x"].update(status="CREATE_FAILED", tags={})
    with pytest.raises(InvalidInput, match="EKS node group x of cluster c was kept: it does not have the mark"):
        run(account, NODEGROUP, adopt=True)
    assert account.writes == []
    account.things["nodegroup", "c", "x"]["tags"] = OURS
    assert [step.operation for step in run(account, NODEGROUP).plan.steps] == ["delete_nodegroup", "create_nodegroup"]


@pytest.mark.parametrize("partition", ["aws", "aws-cn", "aws-us-gov"])
def test_the_policy_of_a_bucket_is_of_the_callers_partition(partition: str) -> None:
    account = Account(partition)
    caller = Api(account.client, FakeClock()).caller()
    run(account, S3Bucket("x", "cn-north-1", caller.account, caller.partition, tags=OURS))
    policy = json.loads(account.things["bucket", "x"]["policy"])
    assert policy["Statement"][0]["Resource"] == [f"arn:{partition}:s3:::x", f"arn:{partition}:s3:::x/*"]


def test_the_mark_is_among_the_tags_and_is_never_purged() -> None:
    assert with_owner_tags({"team": "ml"}, OURS, purge=True) == ({"team": "ml", **OURS}, True)
    assert with_owner_tags(None, OURS, purge=True) == (OURS, False), "tags that nobody spoke of stay"
    assert with_owner_tags(None, {}, purge=True) == (None, True)
    with pytest.raises(InvalidInput, match=r"tags has muster\.ml/owner=n where only_tagged has muster\.ml/owner=m"):
        with_owner_tags({"muster.ml/owner": "n"}, OURS, purge=True)


def test_an_access_point_is_found_again_whatever_tags_it_has() -> None:
    with pytest.raises(InvalidInput, match="the tag Name is other, but an access point is found by it"):
        run(Account(), EfsAccessPoint("fs-1", "x", tags={**OURS, "Name": "other"}))


def test_two_file_systems_may_have_access_points_of_one_name() -> None:
    account = Account()
    for identity in ("fs-1", "fs-2"):
        run(account, EfsAccessPoint(identity, "datasets" * 20, tags=OURS))
    assert len(account.things) == 2
    tokens = [request["ClientToken"] for operation, request in account.writes if operation == "create_access_point"]
    assert max(map(len, tokens)) <= 64

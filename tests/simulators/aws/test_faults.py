# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong: each fault is told once, clearly, and the next run converges."""

import json
from pathlib import Path
from typing import Any

import pytest

from simulators.aws.client import Simulator
from simulators.modules import Run

Body = dict[str, Any]


def cluster(ground: Body, name: str = "f") -> Body:
    return {
        "name": name,
        "role_arn": ground["control"],
        "subnet_ids": ground["subnets"][:2],
        "authentication_mode": "API",
        "bootstrap_self_managed_addons": False,
        "version": "1.35",
    }


def done(result: Body) -> Body:
    """The result of a run that went well."""
    assert not result.get("failed"), result["msg"]
    return result


def nodes(ground: Body, name: str) -> Body:
    return {"cluster_name": "f", "name": name, "node_role": ground["node"], "subnets": ground["subnets"][:2]}


def test_a_role_that_is_not_seen_yet_is_waited_for(aws: Simulator, run: Run, ground: Body) -> None:
    aws.fault("role_not_visible", "CreateCluster", times=6)  # each with another message
    assert done(run("eks_cluster", **cluster(ground)))["cluster"]["status"] == "ACTIVE"
    assert aws.attempts().count("eks:CreateCluster") == 7


def test_a_principal_that_is_not_seen_yet_is_waited_for(aws: Simulator, run: Run, ground: Body) -> None:
    """And one that never appears is told with a way out."""
    aws.clear()
    aws.fault("role_not_visible", "CreateAccessEntry", times=3)
    entry = {"cluster_name": "f", "principal_arn": ground["web"]}
    assert done(run("eks_access_entry", **entry))["access_entry"]["principal_arn"] == ground["web"]
    assert aws.attempts().count("eks:CreateAccessEntry") == 4
    policy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy"
    aws.fault("entry_not_visible", "AssociateAccessPolicy", times=3)
    done(run("eks_access_entry", **entry, policies=[{"policy_arn": policy, "access_scope": {"type": "cluster"}}]))
    assert aws.ask("faults") == []
    lost = run("eks_access_entry", cluster_name="f", principal_arn="arn:aws:iam::123456789012:role/aws-reserved/Lost")
    assert "invalid principal. Give the ARN of one that exists, with its path: `aws iam get-role --role-name Lost`" in lost["msg"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"principal_arn": "arn:aws-cn:sts::123456789012:assumed-role/Admin/me@example.com"},
            "a session of a role, which can have no access entry. Give the ARN of a role or user, with its path if it has one, such as"
            " arn:aws-cn:iam::123456789012:role/Admin; `aws iam get-role",
        ),
        ({"principal_arn": "arn:aws:sts::123456789012:federated-user/me"}, "is no ARN of an IAM role or user"),
        ({"principal_arn": "arn:aws:iam::123456789012:group/ml"}, "is no ARN of an IAM role or user"),
        ({"principal_arn": "ml-team"}, "access entry of ml-team in cluster f: the principal is no ARN of an IAM role or user"),
        ({"principal_arn": "arn:aws:iam::123456789012:role/aws-service-role/x.amazonaws.com/X"}, "linked to a service"),
        ({"username": "system:admin"}, "EKS takes no user or group system:admin, because"),
        ({"kubernetes_groups": ["ml", "system:masters"]}, "EKS takes no user or group system:masters, because"),
    ],
)
def test_an_access_entry_that_cannot_be_is_refused_in_the_plan(aws: Simulator, run: Run, ground: Body, change: Body, words: str) -> None:
    aws.clear()
    entry = {"cluster_name": "f", "principal_arn": ground["other-pod"], **change}
    for more in ({"check": True}, {}):
        assert words in run("eks_access_entry", **more, **entry)["msg"]
    assert aws.attempts() == []


def test_throttling_is_waited_for(aws: Simulator, run: Run, ground: Body) -> None:
    aws.clear()
    aws.fault("throttle", "DescribeCluster", times=2)
    aws.fault("throttle", "TagResource", times=6)
    assert run("eks_cluster", name="f", tags={"a": "b"})["changed"]
    assert aws.client("eks").describe_cluster(name="f")["cluster"]["tags"] == {"a": "b"}
    assert aws.ask("faults") == []


def test_listings_are_as_patient_as_reads(aws: Simulator, run: Run, ground: Body) -> None:
    """botocore alone gives up after a few tries."""
    listings: dict[str, Body] = {
        "ListNodegroups": {"module": "eks_cluster_info", "name": "f"},
        "ListAddons": {"module": "eks_cluster_info", "name": "f"},
        "ListAssociatedAccessPolicies": {"module": "eks_access_entry", "cluster_name": "f", "principal_arn": ground["node"]},
        "ListPodIdentityAssociations": {
            "module": "eks_pod_identity_association", "cluster_name": "f", "namespace": "ml", "service_account": "a", "state": "absent",
        },
        "ListRoles": {"module": "eks_remains_info", "name": "f"},
    }  # fmt: skip
    run("eks_access_entry", cluster_name="f", principal_arn=ground["node"])
    for operation, options in listings.items():
        aws.fault("throttle", operation, times=4)
        module = options.pop("module")
        assert not (told := run(module, **options)).get("failed"), (operation, told["msg"])
        assert aws.ask("faults") == [], operation


def test_nodes_that_cannot_start_tell_why_and_are_made_anew(aws: Simulator, run: Run, ground: Body) -> None:
    issue = {"code": "AsgInstanceLaunchFailures", "message": "no g5.xlarge in us-west-2a", "resourceIds": ["eks-bad"]}
    aws.fault("create_failed", "CreateNodegroup", **issue)
    failed = run("eks_nodegroup", **nodes(ground, "bad"))
    assert failed["msg"].startswith("EKS node group bad of cluster f: create failed: CREATE_FAILED (AsgInstanceLaunchFailures")
    assert "no g5.xlarge in us-west-2a" in failed["msg"]
    assert "eks-bad" in failed["msg"]
    mended = run("eks_nodegroup", **nodes(ground, "bad"))
    assert [action.split(" ")[0] for action in mended["actions"]] == ["eks:delete_nodegroup", "eks:create_nodegroup"]
    assert mended["nodegroup"]["status"] == "ACTIVE"


def test_an_update_that_fails_is_a_failure(aws: Simulator, run: Run) -> None:
    aws.fault("update_fails", "ConfigUpdate", errorCode="PodEvictionFailure", errorMessage="pod ml/x stays", resourceIds=["i-1"])
    change = {"cluster_name": "f", "name": "bad", "labels": {"a": "b"}}
    failed = run("eks_nodegroup", **change)
    assert "labels ended as Failed: PodEvictionFailure: pod ml/x stays (i-1)" in failed["msg"]
    assert run("eks_nodegroup", **change)["nodegroup"]["labels"] == {"a": "b"}


def test_a_run_that_was_cut_off_is_taken_up(aws: Simulator, run: Run, ground: Body) -> None:
    left = run("eks_nodegroup", **nodes(ground, "cut"), wait=False)
    assert left["nodegroup"]["status"] == "CREATING"
    aws.clear()
    taken = run("eks_nodegroup", **nodes(ground, "cut"))
    assert (taken["changed"], taken["nodegroup"]["status"], aws.attempts()) == (False, "ACTIVE", [])


def test_time_is_up(aws: Simulator, run: Run, ground: Body) -> None:
    late = run("eks_nodegroup", **nodes(ground, "late"), wait_timeout=0)
    assert "Last seen: CREATING. AWS continues to work on it: run again" in late["msg"]
    assert run("eks_nodegroup", **nodes(ground, "late"))["changed"] is False


def test_what_the_caller_may_not_do_is_named(aws: Simulator, run: Run, ground: Body) -> None:
    message = "User: arn:aws:iam::123456789012:user/ci is not authorized to perform: eks:CreateCluster"
    aws.fault("refuse", "CreateCluster", code="AccessDeniedException", message=message, status=403)
    refused = run("eks_cluster", **cluster(ground, "denied"))
    assert "EKS cluster denied: create_cluster (create) was refused: AccessDeniedException" in refused["msg"]
    assert "lacks this permission" in refused["msg"]
    assert run("eks_cluster", **cluster(ground, "denied"))["cluster"]["status"] == "ACTIVE"


def test_a_launch_that_the_caller_may_not_make_is_explained(aws: Simulator, run: Run, ground: Body) -> None:
    """EKS says neither the action nor where it is missing (scylladb/scylla-cluster-tests#12172)."""
    message = "You are not authorized to launch instances with this launch template. Encoded authorization failure message: 0"
    aws.fault("refuse", "CreateNodegroup", code="InvalidRequestException", message=message)
    refused = run("eks_nodegroup", **nodes(ground, "denied"))
    assert "the caller lacks ec2:RunInstances or ec2:CreateTags" in refused["msg"]


def test_an_addon_that_fails_tells_why(aws: Simulator, run: Run) -> None:
    aws.fault("create_failed", "CreateAddon", code="ConfigurationConflict", message="Deployment coredns exists")
    named = {"cluster_name": "f", "name": "coredns"}
    assert "ConfigurationConflict: Deployment coredns exists" in run("eks_addon", **named)["msg"]
    assert run("eks_addon", **named, resolve_conflicts="OVERWRITE")["addon"]["status"] == "ACTIVE"


CONFLICTS = "ConfigurationConflict: Conflicts found when trying to apply"


def test_an_addon_that_is_there_by_itself_is_taken_over_only_when_asked_for(aws: Simulator, changes: Run, run: Run, ground: Body) -> None:
    """As in every cluster that was created without saying otherwise (aws/amazon-network-policy-controller-k8s#200).

    A conflict is told once with the way out, is not tried again, and what is in the cluster stays whatever is done with the add-on.
    """
    done(run("eks_cluster", **{**cluster(ground, "own"), "bootstrap_self_managed_addons": True}))
    named = {"cluster_name": "own", "name": "vpc-cni"}
    for more in ({}, {"resolve_conflicts": "PRESERVE"}):
        told = run("eks_addon", **named, **more)["msg"]
        assert "install failed: CREATE_FAILED (" + CONFLICTS in told
        assert "With resolve_conflicts: OVERWRITE EKS takes it over, with its own settings" in told
        aws.clear()
        for again in ({"check": True}, {}, {"resolve_conflicts": "NONE"}, {"resolve_conflicts": "PRESERVE"}):
            refused = run("eks_addon", **named, **again)["msg"]
            assert f"is CREATE_FAILED ({CONFLICTS}" in refused
            assert "and would be again. What is named is in the cluster" in refused
        assert aws.attempts() == []
        gone = done(run("eks_addon", **named, state="absent"))
        assert gone["actions"] == ["eks:delete_addon (remove)"]
    run("eks_addon", **named)
    taken = done(run("eks_addon", **named, resolve_conflicts="OVERWRITE"))
    assert taken["actions"] == ["eks:delete_addon (delete, it is CREATE_FAILED; its objects stay)", "eks:create_addon (install)"]
    assert taken["addon"]["status"] == "ACTIVE"
    changes("eks_addon", **named, state="absent")
    assert done(run("eks_addon", **named))["addon"]["status"] == "ACTIVE"


def test_a_failed_update_of_an_addon_is_tried_again_only_if_it_may_end_otherwise(aws: Simulator, run: Run, ground: Body) -> None:
    named = {"cluster_name": "own", "name": "kube-proxy"}
    done(run("eks_addon", **named, resolve_conflicts="OVERWRITE"))
    change = {"configuration_values": {"replicas": 2}}
    conflict = {"errorCode": "ConfigurationConflict", "errorMessage": "DaemonSet.apps kube-proxy", "resourceIds": []}
    aws.fault("update_fails", "AddonUpdate", **conflict)
    told = run("eks_addon", **named, **change)["msg"]
    assert "ended as Failed: ConfigurationConflict: DaemonSet.apps kube-proxy. What is named is in the cluster" in told
    aws.clear()
    assert "is UPDATE_FAILED (ConfigurationConflict" in run("eks_addon", **named, **change)["msg"]
    assert aws.attempts() == []
    assert done(run("eks_addon", **named, **change, resolve_conflicts="PRESERVE"))["addon"]["status"] == "ACTIVE"
    other = {"errorCode": "AccessDenied", "errorMessage": "no", "resourceIds": []}
    aws.fault("update_fails", "AddonUpdate", **other)
    assert "AccessDenied" in run("eks_addon", **named, configuration_values={})["msg"]
    assert done(run("eks_addon", **named))["actions"] == ["eks:update_addon (again)"]
    assert done(run("eks_addon", **named, configuration_values={}))["addon"]["status"] == "ACTIVE"


def test_a_line_break_in_a_token_is_told_without_the_token(run: Run) -> None:
    """Python's own message about the header has the token in it, spelled otherwise than the option that Ansible hides."""
    refused = run("eks_cluster", name="x", session_token="IQoJb3JpEXAMPLETOKEN\n", state="absent")
    assert "EKS cluster x: describe_cluster: the HTTP client failed with" in refused["msg"]
    assert "IQoJb3JpEXAMPLETOKEN" not in json.dumps(refused)


def test_no_connection_is_one_line(run: Run) -> None:
    failed = run("eks_cluster", name="f", endpoint_url="http://127.0.0.1:9")
    assert "Could not connect to the endpoint URL" in failed["msg"]
    assert "Check region, credentials and network" in failed["msg"]


def test_a_role_of_an_addon_that_is_not_seen_yet_is_waited_for(aws: Simulator, run: Run, ground: Body) -> None:
    aws.fault("role_not_visible", "CreateAddon", times=2)
    named = {"cluster_name": "f", "name": "aws-ebs-csi-driver"}
    made = done(run("eks_addon", **named, service_account_role_arn=ground["web"]))
    assert made["addon"]["status"] == "ACTIVE"
    assert aws.ask("faults") == []


def test_a_subnet_that_does_not_exist_is_told_at_once(aws: Simulator, run: Run, ground: Body) -> None:
    """It is no role that will appear."""
    aws.clear()
    refused = run("eks_cluster", **{**cluster(ground, "lost"), "subnet_ids": ["subnet-0123", "subnet-4567"]})
    assert "The subnet ID 'subnet-0123' does not exist" in refused["msg"]
    assert aws.attempts() == ["eks:CreateCluster"]


def test_what_keeps_a_cluster_from_its_upgrade_is_told(aws: Simulator, run: Run) -> None:
    """InvalidStateException of UpdateClusterVersion in botocore."""
    message = "Amazon EKS detected upgrade readiness issues. Call the ListInsights API to view detected upgrade blocking issues."
    aws.fault("refuse", "UpdateClusterVersion", code="InvalidStateException", message=message)
    older = run("eks_cluster", name="f")["cluster"]["version"]
    refused = run("eks_cluster", name="f", version=f"1.{int(older.split('.')[1]) + 1}")
    assert "detected upgrade readiness issues" in refused["msg"]
    assert "`aws eks list-insights --cluster-name f` and `describe-insight` show them" in refused["msg"]


def test_a_change_that_eks_makes_itself_is_waited_for(aws: Simulator, run: Run, ground: Body) -> None:
    """The status shows nothing of it. Messages: aws/containers-roadmap#1511, elastic/cloudbeat#3093, and the simulator's own."""
    busy = {"code": "ResourceInUseException", "status": 409}
    for message in (
        "Cannot UpdateClusterConfig because cluster f currently has update b7c83fd1-d7b0 in progress",
        "Cannot modify cluster f currently in status UPDATING",
    ):
        aws.fault("refuse", "UpdateClusterConfig", times=3, message=message, **busy)
        late = run("eks_cluster", name="f", support_type="STANDARD", wait_timeout=0)
        assert "EKS cluster f is busy with another change after 0 s." in late["msg"]
        assert done(run("eks_cluster", name="f", support_type="STANDARD"))["changed"] is True
        run("eks_cluster", name="f", support_type="EXTENDED")
        assert aws.ask("faults") == []
    update = "Cannot delete because cluster gone currently has an update in progress"
    aws.fault("refuse", "DeleteCluster", times=3, message=update, **busy)
    done(run("eks_cluster", **cluster(ground, "gone")))
    assert done(run("eks_cluster", name="gone", state="absent"))["cluster"] == {}
    assert aws.ask("faults") == []


BUSY = "A conflicting conditional operation is currently in progress against this resource. Please try again."


def test_a_bucket_that_is_not_everywhere_yet_is_waited_for(aws: Simulator, run: Run) -> None:
    """Messages: ansible/ansible#66778 and #67811."""
    gone = {"code": "NoSuchBucket", "message": "The specified bucket does not exist", "status": 404}
    aws.fault("refuse", "CreateBucket", code="OperationAborted", message=BUSY, status=409)
    aws.fault("refuse", "PutPublicAccessBlock", times=2, **gone)
    for operation in ("PutBucketVersioning", "PutBucketPolicy"):
        aws.fault("refuse", operation, times=2, code="OperationAborted", message=BUSY, status=409)
    assert done(run("s3_bucket", name="late-bucket", versioning=True))["bucket"]["versioning"] is True
    assert aws.ask("faults") == []


def test_what_was_in_use_a_moment_ago_is_deleted_again(aws: Simulator, run: Run, ground: Body) -> None:
    """Until the time is up; then it is told what may still use it."""
    named = {"name": "just-used", "state": "absent", "delete_data": True}
    in_use = {"code": "FileSystemInUse", "message": "it has mount targets", "status": 409}
    done(run("efs_file_system", name="just-used"))
    aws.fault("refuse", "DeleteFileSystem", **in_use)
    late = run("efs_file_system", **named, wait_timeout=0)
    assert "EFS file system just-used is still in use" in late["msg"]
    assert "Remove mount targets that were added meanwhile, and its replication" in late["msg"]
    done(run("efs_file_system", name="just-used", mount_targets=[{"subnet_id": ground["subnets"][0]}]))
    aws.fault("refuse", "DeleteFileSystem", times=2, **in_use)
    assert done(run("efs_file_system", **named))["file_system"] == {}
    assert aws.ask("faults") == []
    group = aws.client("ec2").create_security_group(GroupName="just-used", Description="x", VpcId=ground["vpc"])["GroupId"]
    aws.client("ec2").create_tags(Resources=[group], Tags=[{"Key": "a", "Value": "b"}])
    aws.fault("refuse", "DeleteSecurityGroup", times=2, code="InvalidGroup.InUse", message="in use")
    assert done(run("ec2_removal", id=group, only_tagged={"a": "b"}))["changed"] is True
    made = aws.client("ec2").create_network_interface(SubnetId=ground["subnets"][0])["NetworkInterface"]
    aws.fault("refuse", "DeleteNetworkInterface", times=2, code="InvalidNetworkInterface.InUse", message="in use")
    assert done(run("ec2_removal", id=made["NetworkInterfaceId"]))["changed"] is True
    assert aws.ask("faults") == []


def test_what_was_just_made_is_waited_for_until_it_is_seen(aws: Simulator, run: Run, ground: Body) -> None:
    """Each service answers from an old copy for a while. "Not there" is then no end of a wait, and no reason to make it twice."""
    aws.clear()
    aws.fault("stale", "HeadBucket", times=3, after="PutBucketPolicy")
    aws.fault("stale", "DescribeFileSystems", times=3, after="CreateFileSystem")
    aws.fault("stale", "DescribeCluster", times=3, after="CreateCluster")
    assert done(run("s3_bucket", name="stale-bucket"))["bucket"] != {}
    target = [{"subnet_id": ground["subnets"][0]}]
    system = done(run("efs_file_system", name="stale", mount_targets=target))["file_system"]
    assert system["number_of_mount_targets"] == 1
    assert done(run("eks_cluster", **cluster(ground, "stale")))["cluster"].get("status") == "ACTIVE"
    assert aws.ask("faults") == []
    made = [one for one in aws.writes() if "Create" in one]
    assert made == ["s3:CreateBucket", "efs:CreateFileSystem", "efs:CreateMountTarget", "eks:CreateCluster"]


def test_a_bucket_of_another_account_is_told_as_such(aws: Simulator, run: Run) -> None:
    aws.fault("refuse", "HeadBucket", code="403", message="Forbidden", status=403)
    refused = run("s3_bucket", name="theirs", only_tagged={"muster.ml/owner": "t"})
    assert "another account owns it (names of buckets are unique in all of AWS)" in refused["msg"]
    assert "choose another name" in refused["msg"]


def test_a_bucket_of_another_region_is_told_as_such(aws: Simulator, run: Run) -> None:
    """S3 leads every client to it, so that it looks as if it were here."""
    mark = {"muster.ml/owner": "t"}
    tags = {"Tags": [{"Key": key, "Value": value} for key, value in mark.items()]}
    for region in ("us-east-1", "eu-west-1"):
        place = {} if region == "us-east-1" else {"LocationConstraint": region}
        aws.client("s3", region).create_bucket(Bucket=f"in-{region}", CreateBucketConfiguration={**place, **tags})
        aws.clear()
        for more in ({"check": True}, {}, {"adopt": True}):
            refused = run("s3_bucket", name=f"in-{region}", only_tagged=mark, **more)["msg"]
            assert f"is in the region {region}, not in us-west-2, and is left as it is" in refused
            assert f"Choose another name, or run with region: {region}" in refused
        kept = run("s3_bucket", name=f"in-{region}", only_tagged=mark, state="absent", delete_data=True)
        assert kept["kept"].endswith(f"it is in the region {region}, not in us-west-2")
        assert aws.attempts() == []
        assert run("s3_bucket", name=f"in-{region}", only_tagged=mark, region=region, state="absent")["changed"] is True


@pytest.mark.parametrize(
    ("operation", "code", "module", "options"),
    [
        ("DescribeSubnets", "RequestExpired", "ec2_removal", {"id": "subnet-0123456789abcdef0"}),
        ("DescribeCluster", "ExpiredTokenException", "eks_cluster", {"name": "f"}),
        ("GetCallerIdentity", "ExpiredToken", "s3_bucket", {"name": "expired"}),
        ("HeadBucket", "400", "s3_bucket", {"name": "expired"}),
        ("HeadObject", "400", "s3_object", {"bucket": "expired", "name": "x", "src": __file__}),
    ],
)
def test_credentials_that_have_expired_are_told_as_such(
    aws: Simulator, run: Run, operation: str, code: str, module: str, options: Body
) -> None:
    """EC2: aws/aws-sdk-go-v2#1674. HEAD requests of S3, whose answer has no body: aws/aws-sdk-js#2219."""
    aws.fault("refuse", operation, code=code, message="expired", status=400)
    told = run(module, **options)["msg"]
    assert "enew the" in told or "renew them" in told
    assert "run again" in told
    assert aws.ask("faults") == []


ANOTHER = "Another request updating the entity is in progress. Please try again later."


@pytest.mark.parametrize(
    ("operation", "code", "message", "module", "options"),
    [
        # hashicorp/terraform-provider-aws#34371
        ("CreateOpenIDConnectProvider", "ConcurrentModification", ANOTHER, "iam_oidc_provider", {"url": "https://example.com/changing"}),
        ("TagOpenIDConnectProvider", "EntityTemporarilyUnmodifiable", "Wait a few minutes and submit your request again.",
         "iam_oidc_provider", {"url": "https://example.com/changing", "tags": {"a": "b"}}),
        # eksctl-io/eksctl#8091
        ("UpdateAddon", "ResourceInUseException", "Addon coredns cannot be updated as it is currently in CREATING state",
         "eks_addon", {"cluster_name": "f", "name": "coredns", "configuration_values": {"replicas": 3}}),
    ],
)  # fmt: skip
def test_what_another_change_is_in_the_way_of_is_sent_again(
    aws: Simulator, run: Run, operation: str, code: str, message: str, module: str, options: Body
) -> None:
    aws.fault("refuse", operation, times=3, code=code, message=message, status=409)
    assert done(run(module, **options))["changed"] is True
    assert aws.ask("faults") == []


def test_what_is_there_when_it_is_to_be_created_counts_as_created(aws: Simulator, run: Run, ground: Body) -> None:
    """An answer was lost, or a read was an old one. The next run changes nothing."""
    done(run("s3_bucket", name="there-already"))
    done(run("efs_file_system", name="there"))
    done(run("eks_nodegroup", **nodes(ground, "there")))
    named: dict[str, tuple[str, Body]] = {
        "HeadBucket": ("s3_bucket", {"name": "there-already"}),
        "DescribeFileSystems": ("efs_file_system", {"name": "there"}),
        "DescribeNodegroup": ("eks_nodegroup", nodes(ground, "there")),
        "DescribeCluster": ("eks_cluster", cluster(ground)),
        "DescribeAccessEntry": ("eks_access_entry", {"cluster_name": "f", "principal_arn": ground["web"]}),
    }
    for operation, (module, options) in named.items():
        aws.fault("stale", operation)
        done(run(module, **options))
        assert done(run(module, **options))["changed"] is False, module


@pytest.mark.parametrize(
    ("code", "message", "hint"),
    [
        # aws/karpenter-provider-aws#8190, terraform-aws-modules/terraform-aws-eks#2517; IAM user guide, "Access denied error messages"
        ("AccessDeniedException", "not authorized to perform: eks:CreateNodegroup on resource: r with an explicit deny in a service control"
         " policy", "A policy denies it, whatever the caller is granted"),
        ("AccessDeniedException", "not authorized to perform: eks:CreateNodegroup because no permissions boundary allows the"
         " eks:CreateNodegroup action", "A policy denies it"),
        ("AccessDeniedException", "not authorized to perform: eks:CreateNodegroup because no identity-based policy allows it",
         "The caller lacks this permission"),
        ("ServiceQuotaExceededException", "too many", "Ask for a higher limit"),
    ],
)  # fmt: skip
def test_the_hint_is_about_what_refuses(aws: Simulator, run: Run, ground: Body, code: str, message: str, hint: str) -> None:
    aws.fault("refuse", "CreateNodegroup", code=code, message=message, status=403)
    assert f"{message}. {hint}" in run("eks_nodegroup", **nodes(ground, "no"))["msg"]


def test_what_stays_in_error_is_told_by_every_run(aws: Simulator, run: Run, ground: Body) -> None:
    """Nothing differs there, and nothing works."""
    wanted = {"name": "broken", "mount_targets": [{"subnet_id": ground["subnets"][0]}]}
    aws.fault("create_failed", "CreateMountTarget")
    assert "failed: error. EFS does not mend" in run("efs_file_system", **wanted)["msg"]
    for check in (True, False):
        told = run("efs_file_system", check=check, **wanted)["msg"]
        assert "EFS file system broken is error: mount target in subnet-" in told
        assert "delete the mount target and run again" in told
    assert done(run("efs_file_system", **{**wanted, "mount_targets": []}))["changed"] is True
    assert done(run("efs_file_system", **wanted))["changed"] is True


def every_module(ground: Body) -> dict[str, tuple[Body, Body, Body]]:
    """Module: (options that name what it makes, others to make it, others to remove it)."""
    targets = [{"subnet_id": subnet} for subnet in ground["subnets"][:2]]
    policy = "arn:aws:eks::aws:cluster-access-policy/AmazonEKS{}Policy"
    entries = [{"policy_arn": policy.format(kind), "access_scope": {"type": "cluster"}} for kind in ("View", "Edit")]
    here, data = {"cluster_name": "f"}, {"delete_data": True}
    nodes = {"node_role": ground["node"], "subnets": ground["subnets"][:2], "scaling_config": {"min_size": 0, "max_size": 1}}
    files = {"backup": True, "transition_to_ia": "AFTER_30_DAYS", "mount_targets": targets}
    return {
        "s3_bucket": ({"name": "busy-bucket"}, {"versioning": True}, data),
        "efs_file_system": ({"name": "busy"}, files, data),
        "eks_launch_template": ({"name": "busy"}, {}, {}),
        "eks_access_entry": ({**here, "principal_arn": ground["pod"]}, {"policies": entries}, {}),
        "eks_addon": ({**here, "name": "vpc-cni"}, {}, {}),
        "eks_nodegroup": ({**here, "name": "busy"}, nodes, {}),
        "eks_pod_identity_association": ({**here, "namespace": "ml", "service_account": "busy"}, {"role_arn": ground["pod"]}, {}),
        "iam_oidc_provider": ({"url": "https://example.org/busy"}, {"thumbprints": ["0" * 40]}, {}),
    }


def test_every_request_may_be_refused_for_a_while(
    aws: Simulator, run: Run, ground: Body, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As in a busy account: each operation is throttled for longer than botocore has patience, listings and HEAD requests included."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    aws.clear()
    aws.fault("throttle", "each", times=2)
    done(run("eks_cluster", name="f", tags={"busy": True}))
    for module, (named, more, gone) in every_module(ground).items():
        made = done(run(module, **named, **more))
        if module == "efs_file_system":
            point = {"file_system_id": made["file_system"]["file_system_id"], "name": "busy"}
            done(run("efs_access_point", **point))
            done(run("efs_access_point", **point, state="absent"))
        if module == "s3_bucket":
            (tmp_path / "x").write_text("x", encoding="utf-8")
            done(run("s3_object", bucket="busy-bucket", name="x", src=str(tmp_path / "x")))
        done(run(module, **named, **more, tags={"busy": True}))
        done(run("eks_cluster_info", name="f", roles=["node"]))
        done(run(module, **named, **gone, state="absent"))
    done(run("eks_remains_info", name="f"))
    group = aws.client("ec2").create_security_group(GroupName="busy", Description="x", VpcId=ground["vpc"])
    done(run("ec2_removal", id=group["GroupId"]))
    refused = {row["operation"] for row in aws.ask("requests") if row["status"] in (400, 429, 503)}
    assert refused >= {"HeadBucket", "HeadObject", "ListRoles", "ListAddons", "ListObjectVersions", "GetResources"}

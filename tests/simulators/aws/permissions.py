# SPDX-License-Identifier: GPL-3.0-or-later
"""What a caller has to be allowed for a request, and whether policies allow it.

Which actions an operation needs: the service authorization reference (docs.aws.amazon.com/service-authorization), where an action has
the name of its operation unless a rule below says otherwise. Each rule has its source beside it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from moto.backends import get_backend

from .api import Asked, Refused, description
from .state import ACCOUNT, SETTINGS, ec2

Body = dict[str, Any]
# The access key of the tests' own boto3 may do everything; that of the playbooks what its policies allow.
CALLER_KEY = "AKIAIOSFODNN7CALLER0"
CALLER = f"arn:aws:iam::{ACCOUNT}:user/ops"
PREFIX = {"efs": "elasticfilesystem", "resourcegroupstaggingapi": "tag"}
# No permission is needed to ask who one is (STS API, GetCallerIdentity).
FREE = ("sts",)

# Amazon S3 user guide, "Required permissions for Amazon S3 API operations"; more in each operation's documentation in botocore 1.44.5.
S3 = {
    "CreateBucket": ["CreateBucket"],
    "DeleteBucket": ["DeleteBucket"],
    "DeleteObjects": ["DeleteObject", "DeleteObjectVersion"],
    "GetBucketEncryption": ["GetEncryptionConfiguration"],
    "GetPublicAccessBlock": ["GetBucketPublicAccessBlock"],
    "HeadBucket": ["ListBucket"],
    # Without ListBucket a missing object is a 403 (HeadObject in botocore).
    "HeadObject": ["GetObject", "ListBucket"],
    "ListBuckets": ["ListAllMyBuckets"],
    "ListObjects": ["ListBucket"],
    "ListObjectsV2": ["ListBucket"],
    "ListObjectVersions": ["ListBucketVersions"],
    "PutBucketEncryption": ["PutEncryptionConfiguration"],
    "PutPublicAccessBlock": ["PutBucketPublicAccessBlock"],
}
OF_OBJECTS = ("DeleteObject", "DeleteObjectVersion", "GetObject", "PutObject")


@dataclass(frozen=True)
class Need:
    """An action on a resource, with the keys that conditions may look at."""

    action: str
    resource: str = "*"
    context: tuple[tuple[str, str], ...] = field(default=())


def needs(asked: Asked) -> list[Need]:
    """Everything that a request needs, in the order in which it is judged."""
    if asked.service in FREE:
        return []
    return [*_own(asked), *_tagging(asked), *_more(asked)]


def _own(asked: Asked) -> Iterator[Need]:
    service = PREFIX.get(asked.service, asked.service)
    if asked.service == "s3":
        for action in S3.get(asked.operation, [asked.operation]):
            yield Need(f"s3:{action}", _s3_resource(asked.params, action))
    else:
        yield Need(f"{service}:{asked.operation}", _resource(asked))


def _s3_resource(params: Body, action: str) -> str:
    if "Bucket" not in params:
        return "*"
    return f"arn:aws:s3:::{params['Bucket']}" + (f"/{params.get('Key', '*')}" if action in OF_OBJECTS else "")


def _resource(asked: Asked) -> str:
    params = asked.params
    if asked.service == "iam":
        if "RoleName" in params:
            return role_arn(params["RoleName"])
        if "Url" in params:
            return f"arn:aws:iam::{ACCOUNT}:oidc-provider/{params['Url'].removeprefix('https://')}"
        return str(params.get("OpenIDConnectProviderArn", "*"))
    if asked.service == "eks":
        return str(params.get("resourceArn") or _eks_resource(asked))
    if asked.service == "logs" and "logGroupName" in params:
        return f"arn:aws:logs:{asked.region}:{ACCOUNT}:log-group:{params['logGroupName']}"
    if asked.service == "ssm":
        return f"arn:aws:ssm:{asked.region}::parameter{params['Name']}"
    return "*"


def _eks_resource(asked: Asked) -> str:
    """Service authorization reference of EKS: the kind of resource is that of the operation's last name."""
    params = asked.params
    cluster = params.get("clusterName") or params.get("name")
    if not cluster:
        return "*"
    for kind, key in (("nodegroup", "nodegroupName"), ("addon", "addonName"), ("access-entry", "principalArn"),
                      ("podidentityassociation", "associationId")):  # fmt: skip
        if key in params:
            return f"arn:aws:eks:{asked.region}:{ACCOUNT}:{kind}/{cluster}/{params[key]}"
    return f"arn:aws:eks:{asked.region}:{ACCOUNT}:cluster/{cluster}"


def role_arn(name: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:role/{name}"


def _tagging(asked: Asked) -> Iterator[Need]:
    """A request that creates something with tags needs the permission to tag, too.

    EKS user guide, "Tag your resources"; EC2 user guide, "Grant permission to tag Amazon EC2 resources during creation"; CreateFileSystem
    and CreateBucketConfiguration.Tags in botocore; IAM user guide, "Tags for IAM resources".
    """
    params = asked.params
    if asked.operation in ("TagResource", "TagRole", "CreateTags", "PutBucketTagging") or not asked.writes:
        return
    if asked.service == "eks" and params.get("tags"):
        yield Need("eks:TagResource", _resource(asked))
    if asked.service == "ec2" and (params.get("TagSpecifications") or params.get("TagSpecification")):
        yield Need("ec2:CreateTags")
    if asked.service == "efs" and params.get("Tags"):
        yield Need("elasticfilesystem:TagResource")
    if asked.service == "iam" and params.get("Tags"):
        yield Need("iam:TagRole" if "RoleName" in params else "iam:TagOpenIDConnectProvider", _resource(asked))
    if asked.service == "s3" and params.get("CreateBucketConfiguration", {}).get("Tags"):
        yield Need("s3:TagResource", _s3_resource(params, "TagResource"))


def _passed(*arns: str | None) -> list[Need]:
    """Whoever gives a role to a service has to be allowed to pass it (IAM user guide, "Grant a user permissions to pass a role")."""
    return [Need("iam:PassRole", arn) for arn in arns if arn]


def _service_role(service: str, name: str) -> list[Need]:
    """The first use of a service makes its role (IAM user guide, "Create a service-linked role")."""
    if name in SETTINGS.service_roles:
        return []
    arn = role_arn(f"aws-service-role/{service}/{name}")
    return [Need("iam:CreateServiceLinkedRole", arn, (("iam:AWSServiceName", service),))]


def _create_cluster(asked: Asked) -> list[Need]:
    # EKS user guide, "Using roles for Amazon EKS clusters".
    found = _passed(asked.params["roleArn"]) + _service_role("eks.amazonaws.com", "AWSServiceRoleForAmazonEKS")
    return found + _keys(asked)


def _keys(asked: Asked) -> list[Need]:
    """EKS user guide, "Encrypt Kubernetes secrets with KMS on existing clusters"."""
    keys = [one["provider"]["keyArn"] for one in asked.params.get("encryptionConfig") or []]
    return [Need(action, key) for key in keys for action in ("kms:DescribeKey", "kms:CreateGrant")]


def _launched(asked: Asked) -> list[Need]:
    """EKS tries the template as the caller (refused in scylladb/scylla-cluster-tests#12172)."""
    if "launchTemplate" not in asked.params:
        return []
    desired = asked.params["launchTemplate"]
    known: list[Any] = list(ec2(asked.region).launch_templates.values())
    found = next((t for t in known if desired.get("id") == t.id or desired.get("name") == t.name), None)
    tagged = found is not None and any("TagSpecifications" in version.data for version in found.versions)
    return [Need("ec2:RunInstances"), *([Need("ec2:CreateTags")] if tagged else [])]


def _create_nodegroup(asked: Asked) -> list[Need]:
    # EKS user guide, "Using roles for Amazon EKS node groups".
    own = _service_role("eks-nodegroup.amazonaws.com", "AWSServiceRoleForAmazonEKSNodegroup")
    return [*_passed(asked.params["nodeRole"]), *own, *_launched(asked)]


def _addon(asked: Asked) -> list[Need]:
    identities = asked.params.get("podIdentityAssociations") or []
    return _passed(asked.params.get("serviceAccountRoleArn"), *(one["roleArn"] for one in identities))


def _mount_target(_asked: Asked) -> list[Need]:
    # CreateMountTarget in botocore; EFS user guide, "Using service-linked roles for Amazon EFS".
    parts = ("DescribeSubnets", "DescribeNetworkInterfaces", "CreateNetworkInterface")
    own = _service_role("elasticfilesystem.amazonaws.com", "AWSServiceRoleForAmazonElasticFileSystem")
    return [*(Need(f"ec2:{one}") for one in parts), *own]


def _ec2(action: str) -> Callable[[Asked], list[Need]]:
    return lambda _asked: [Need(f"ec2:{action}")]


def _encrypted(asked: Asked) -> list[Need]:
    """An upload to a bucket with a key of KMS (S3 user guide, "Using server-side encryption with AWS KMS keys"), or a read of it.

    With a bucket key the encryption context is the bucket (S3 user guide, "Reducing the cost of SSE-KMS with Amazon S3 Bucket Keys").
    """
    name = asked.params["Bucket"]
    bucket: Any = get_backend("s3")[ACCOUNT]["aws"].buckets.get(name)
    rule = ((bucket.encryption if bucket else None) or {}).get("Rule", {}).get("ApplyServerSideEncryptionByDefault", {})
    if "KMSMasterKeyID" not in rule:
        return []
    context = (("kms:EncryptionContext:aws:s3:arn", f"arn:aws:s3:::{name}"),)
    action = "kms:GenerateDataKey" if asked.writes else "kms:Decrypt"
    return [Need(action, rule["KMSMasterKeyID"], () if asked.writes else context)]


MORE: dict[tuple[str, str], Callable[[Asked], list[Need]]] = {
    ("eks", "CreateCluster"): _create_cluster,
    ("eks", "AssociateEncryptionConfig"): _keys,
    ("eks", "CreateNodegroup"): _create_nodegroup,
    ("eks", "UpdateNodegroupVersion"): _launched,
    ("eks", "CreateAddon"): _addon,
    ("eks", "UpdateAddon"): _addon,
    ("eks", "CreatePodIdentityAssociation"): lambda asked: _passed(asked.params["roleArn"]),
    ("eks", "UpdatePodIdentityAssociation"): lambda asked: _passed(asked.params.get("roleArn")),
    ("efs", "CreateMountTarget"): _mount_target,
    ("s3", "GetObject"): _encrypted,
    ("s3", "PutObject"): _encrypted,
    # The same operations in botocore.
    ("efs", "DeleteMountTarget"): _ec2("DeleteNetworkInterface"),
    ("efs", "ModifyMountTargetSecurityGroups"): _ec2("ModifyNetworkInterfaceAttribute"),
    ("efs", "DescribeMountTargetSecurityGroups"): _ec2("DescribeNetworkInterfaceAttribute"),
}


def _more(asked: Asked) -> list[Need]:
    rule = MORE.get((asked.service, asked.operation))
    return rule(asked) if rule else []


def allows(policies: Iterable[Body], need: Need) -> bool:
    """Policies here only allow; what none of them allows is denied."""
    return any(_matches(statement, need) for policy in policies for statement in policy["Statement"])


def _matches(statement: Body, need: Need) -> bool:
    actions, resources = (_list(statement[key]) for key in ("Action", "Resource"))
    if statement["Effect"] != "Allow" or not any(fnmatchcase(need.action.lower(), one.lower()) for one in actions):
        return False
    fits = need.resource == "*" and "*" in resources
    return (fits or any(fnmatchcase(need.resource, one) for one in resources)) and _holds(statement, dict(need.context))


def _holds(statement: Body, context: dict[str, str]) -> bool:
    for operator, keys in statement.get("Condition", {}).items():
        assert operator == "StringEquals", f"{operator} is not simulated"
        if any(context.get(key) not in _list(values) for key, values in keys.items()):
            return False
    return True


def _list(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def judge(asked: Asked) -> list[Body]:
    """What the request needs, for the record, or AWS's refusal. Without policies the caller may do everything."""
    needed = needs(asked)
    if SETTINGS.policies is not None:
        for need in needed:
            if not allows(SETTINGS.policies, need):
                raise denied(asked, need)
    SETTINGS.service_roles.update(one.resource.rsplit("/", 1)[-1] for one in needed if "aws-service-role" in one.resource)
    return [asdict(need) for need in needed]


def denied(asked: Asked, need: Need, who: str = CALLER) -> Refused:
    """In the words of each service (IAM user guide, "Troubleshoot access denied error messages").

    The launch of an instance is refused by EKS without the name of the action (scylladb/scylla-cluster-tests#12172), and a HEAD request
    without any words (S3 API, HeadBucket).
    """
    why = f"because no identity-based policy allows the {need.action} action"
    said = f"User: {who} is not authorized to perform: {need.action} on resource: {need.resource} {why}"
    if asked.service == "eks" and need.action in ("ec2:RunInstances", "ec2:CreateTags"):
        text = "You are not authorized to launch instances with this launch template. Encoded authorization failure message: 0"
        return Refused("InvalidRequestException", text)
    if asked.service == "ec2":
        said = f"You are not authorized to perform this operation. {said}. Encoded authorization failure message: 0"
        return Refused("UnauthorizedOperation", said, 403)
    code = "AccessDeniedException" if "json" in description(asked.service).protocol else "AccessDenied"
    return Refused(code, said, 403)

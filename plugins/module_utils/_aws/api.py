# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls to AWS: repeated where AWS asks for it, with errors that name the object.

Gets its boto3 clients from the caller and imports no AWS library, so that the code above can be tested without one.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t
import uuid

from .._cloud.errors import CallRefused, without_secrets
from .._cloud.plan import Body
from .._core.clock import Clock
from .._core.errors import Causes, MusterError
from .._core.pace import Backoff, with_retries
from .plan import Step

# Those of botocore (_retry.json, retries/standard.py), which repeats nothing here (_edge/aws.py), because its few tries are not enough
# in a busy account. Its LimitExceededException is a quota here. The answer to a HEAD request has only the number of SlowDown.
THROTTLED = {
    "429", "BandwidthLimitExceeded", "EC2ThrottledException", "PriorRequestNotComplete", "ProvisionedThroughputExceededException",
    "RequestLimitExceeded", "RequestThrottled", "RequestThrottledException", "SlowDown", "Throttling", "ThrottledException",
    "ThrottlingException", "TooManyRequestsException", "TransactionInProgressException",
}  # fmt: skip
# AWS failed, or did not answer for a while (awslabs/amazon-eks-ami#999); BadDigest and IDPCommunicationError are those of S3 and STS.
FAILED = {
    "BadDigest", "ConnectTimeoutError", "ConnectionClosedError", "IDPCommunicationError", "InternalError", "InternalFailure",
    "InternalServerError", "ReadTimeoutError", "RequestTimeout", "RequestTimeoutException", "ServerException", "ServiceFailure",
    "ServiceUnavailable", "ServiceUnavailableException", "Unavailable",
}  # fmt: skip
# A wrong region, proxy or certificate has these, too, so they are repeated for some seconds only.
UNREACHED = {"EndpointConnectionError", "ProxyConnectionError", "SSLError"}
_FIRST_CONTACT = 8.0
MISSING = {
    "404", "AccessPointNotFound", "FileSystemNotFound", "IncorrectMountTargetState", "InvalidGroup.NotFound",
    "InvalidInternetGatewayID.NotFound", "InvalidLaunchTemplateId.NotFound", "InvalidLaunchTemplateId.VersionNotFound",
    "InvalidLaunchTemplateName.NotFoundException", "InvalidNetworkInterfaceID.NotFound", "InvalidSubnetID.NotFound",
    "InvalidVpcID.NotFound", "MountTargetNotFound", "NoSuchBucket", "NoSuchBucketPolicy", "NoSuchEntity",
    "NoSuchPublicAccessBlockConfiguration", "NoSuchTagSet", "ParameterNotFound", "PolicyNotFound", "ResourceNotFoundException",
    "ServerSideEncryptionConfigurationNotFoundError",
}  # fmt: skip
# IAM is eventually consistent: the service that is to use a new role may not see it yet, or its trust policy, or its permissions. EKS has
# many ways to say so (the texts that terraform-provider-aws waits for in internal/service/eks: cluster.go, node_group.go, addon.go,
# access_entry.go, pod_identity_association.go).
_NOT_SEEN = re.compile(
    "could not be assumed|role.*does not exist|EKS Managed Policies|Error in role params|policy must include|"
    "service principals|trusted entity|CREATE_FAILED",
    re.IGNORECASE | re.DOTALL,
)
# S3 answers this while another change of the bucket is not everywhere yet (ansible/ansible#66778), and IAM the others while it makes
# another one (hashicorp/terraform-provider-aws#34371; errors of TagOpenIDConnectProvider and DeleteRole, IAM API), and EFS the last.
BUCKET_BUSY = "OperationAborted"
CHANGING = {BUCKET_BUSY, "ConcurrentModification", "EntityTemporarilyUnmodifiable", "IncorrectFileSystemLifeCycleState"}
# What is to be created is there: an answer was lost, or a read was an old one.
EXISTS = {
    "AccessPointAlreadyExists", "BucketAlreadyOwnedByYou", "EntityAlreadyExists", "FileSystemAlreadyExists",
    "InvalidLaunchTemplateName.AlreadyExistsException",
}  # fmt: skip
# EC2 answers the first three for minutes, because network interfaces outlive what they belonged to (terraform-provider-aws waits for the
# first two; EC2 API, "Error codes", has the third); EFS the fourth, just after the last mount target has gone.
IN_USE = {"DependencyViolation", "InvalidGroup.InUse", "InvalidNetworkInterface.InUse", "FileSystemInUse"}
# EKS answers so while it makes another change, for minutes; of one that it makes by itself the status of the cluster shows nothing
# (aws/containers-roadmap#1500 and #1511; eksctl-io/eksctl#8091; terraform-provider-aws waits for "in progress" before a deletion).
_BUSY = re.compile("currently in (?:status|[A-Z_]+ state)|not in Active State|in progress")
# What a code of EKS means beyond itself, which only its message tells: "Cluster has nodegroups attached" (gruntwork-io/cloud-nuke#148),
# "The cluster's authentication mode must be set to one of" (cartography, intel/aws/eks.py), "You are not authorized to launch instances
# with this launch template" (scylladb/scylla-cluster-tests#12172), and the sentences above.
NO_PRINCIPAL, ROLE_NOT_SEEN, BUSY, IN_PARTS = "no such principal", "role not seen", "busy", "has parts"
NO_ENTRIES, NO_LAUNCH, THERE = "no access entries", "launch not allowed", "there already"
CAUSES: t.Mapping[str, Causes] = {
    "InvalidParameterException": ((NO_PRINCIPAL, re.compile("(?i)invalid principal")), (ROLE_NOT_SEEN, _NOT_SEEN)),
    "ResourceInUseException": ((BUSY, _BUSY), (IN_PARTS, re.compile("attached")), (THERE, re.compile("already"))),
    "InvalidRequestException": (
        (NO_ENTRIES, re.compile("authentication mode")), (NO_LAUNCH, re.compile("not authorized to launch instances")),
    ),
}  # fmt: skip
# Codes, and what to do. Of expired credentials in turn: EC2, S3, STS and IAM, services with JSON, and botocore for a login by SSO.
_HINTS = (
    ("AccessDenied AccessDeniedException UnauthorizedOperation", "The caller lacks this permission; see playbooks/files/eks-policies"),
    (BUCKET_BUSY, "S3 frees the name of a deleted bucket only after a while, up to an hour: run again later"),
    ("400", "S3 gives no reason to HEAD requests. Most often the credentials have expired: renew them and run again"),
    (
        "RequestExpired TokenRefreshRequired ExpiredToken ExpiredTokenException UnauthorizedSSOTokenError SSOTokenLoadError"
        " TokenRetrievalError CredentialRetrievalError",
        "Renew the credentials and run again; finished steps are not repeated",
    ),
    ("ParamValidationError", "Check the options; an older boto3 than that of requirements-aws.txt may not know a parameter"),
    ("AuthFailure InvalidAccessKeyId InvalidClientTokenId UnrecognizedClientException", "Check the access key and the region"),
    ("InvalidSignatureException RequestTimeTooSkewed SignatureDoesNotMatch", "Check the secret key, and the clock of this machine"),
)
HINTS = {code: hint for codes, hint in _HINTS for code in codes.split()}
# Each service has codes of its own for what an account may have: LimitExceeded, FileSystemLimitExceeded, TooManyBuckets.
_LIMIT = re.compile("LimitExceeded|QuotaExceeded|TooManyBuckets")
_LIMIT_HINT = "Ask for a higher limit in Service Quotas, or remove what is no longer needed"
# IAM user guide, "Troubleshoot access denied error messages": what the caller is granted does not matter there.
DENIES = re.compile(
    "with an explicit deny|because no (?:service control|resource control|VPC endpoint|session) policy allows|boundary allows"
)
_DENIES_HINT = (
    "A policy denies it, whatever the caller is granted: who administers the policies of that kind can allow it, or choose what they allow,"
    " such as another region"
)
READS = ("read", "list")
# The codes with words are about permissions; a HEAD request is answered with only the number.
DENIED = {"403", "AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}


@dataclasses.dataclass(frozen=True)
class Caller:
    """The account of the credentials, and its partition of AWS: ``aws``, ``aws-cn``, ``aws-us-gov``."""

    account: str
    partition: str


class Api:
    """One account and region."""

    def __init__(self, connect: t.Callable[[str], t.Any], clock: Clock, retry_timeout: float = 90.0) -> None:
        self._connect = connect
        self._clients: dict[str, t.Any] = {}
        self.clock = clock
        self.retry_timeout = retry_timeout
        self._caller: Caller | None = None

    def caller(self) -> Caller:
        """The caller, read once; no permission is needed for it."""
        if self._caller is None:
            found = self.write("AWS account", Step("get_caller_identity", {}, "read", "sts"))
            parts = found["Arn"].split(":")
            self._caller = Caller(found["Account"], parts[1])
        return self._caller

    def region(self, service: str) -> str:
        """The region in which a service is asked."""
        return str(self._client(service).meta.region_name)

    def _client(self, service: str) -> t.Any:
        if service not in self._clients:
            self._clients[service] = self._connect(service)
        return self._clients[service]

    def read(self, label: str, service: str, operation: str, **request: t.Any) -> Body | None:
        """The answer to a read; None if the object does not exist."""
        try:
            return self._send(label, Step(operation, request, "read", service))
        except CallRefused as refused:
            if refused.code in MISSING:
                return None
            raise

    def pages(self, label: str, service: str, operation: str, key: str, **request: t.Any) -> list[t.Any]:
        """All items of a listing. Each page is retried like the read of a single object."""
        client = self._client(service)
        if not client.can_paginate(operation):
            return list((self.read(label, service, operation, **request) or {}).get(key, []))

        def ask(**page: t.Any) -> Body:
            return self._send(label, Step(operation, page, "list", service))

        # botocore's paginator calls the operation of the client that made it, here of a copy whose operation is patient.
        pager = object.__new__(type(client))
        vars(pager).update(vars(client), **{operation: ask})
        try:
            return [item for page in pager.get_paginator(operation).paginate(**request) for item in page.get(key, [])]
        except CallRefused as refused:
            if refused.code in MISSING:
                return []
            raise

    def write(self, label: str, step: Step) -> Body:
        """Send a step. The answer is empty if what is to be created is there: ``converge`` checks its owner next."""
        try:
            return self._send(label, step)
        except CallRefused as refused:
            if step.operation.startswith("create_") and (refused.code in EXISTS or refused.cause == THERE):
                return {}
            raise

    def _send(self, label: str, step: Step) -> Body:
        """Send a request, and retry it while AWS refuses it as too early; then raise its last refusal."""
        backoff = Backoff(self.clock, first=1.0, factor=1.5, longest=15.0)
        client = self._client(step.service)
        # By the same token, AWS does once what it is sent again; botocore would make another one for each call.
        tokens = {} if step.says in READS else {name: str(uuid.uuid4()) for name in _token_names(client, step.operation)}

        def call() -> Body:
            try:
                return t.cast(Body, getattr(client, step.operation)(**{**tokens, **step.request}))
            except Exception as error:
                raise _refusal(label, step, error) from error

        def again(refused: MusterError) -> bool:
            limit = min(_FIRST_CONTACT, self.retry_timeout) if getattr(refused, "code", "") in UNREACHED else self.retry_timeout
            return too_early(step, refused) and backoff.wait_for_retry(limit=limit)

        return with_retries(call, again)


def _token_names(client: t.Any, operation: str) -> t.Sequence[str]:
    """The parameters of an operation by which AWS knows a request that it has had."""
    name = client.meta.method_to_api_mapping[operation]
    return t.cast("t.Sequence[str]", client.meta.service_model.operation_model(name).idempotent_members)


def too_early(step: Step, refused: MusterError) -> bool:
    """Whether the same request may be accepted in a while."""
    if not isinstance(refused, CallRefused):
        return False
    if refused.http in (429, 500, 502, 503, 504, 509) or refused.code in THROTTLED | FAILED | UNREACHED:
        return True
    if step.says in READS:
        return False
    if refused.code in CHANGING or (refused.code == "NoSuchBucket" and step.operation.startswith("put_")):
        return True  # a bucket is not everywhere as soon as it is created
    if refused.code == "ResourceNotFoundException" and step.operation == "associate_access_policy":
        return True  # nor is an access entry (terraform-provider-aws, access_policy_association.go)
    return refused.cause in (NO_PRINCIPAL, ROLE_NOT_SEEN)


def _refusal(label: str, step: Step, error: Exception) -> CallRefused:
    """Convert a response of AWS to one of our errors; any other exception is raised unchanged."""
    answer = getattr(error, "response", None)
    if answer is None:
        if type(error).__module__.startswith("botocore"):
            code = type(error).__name__
            hint = HINTS.get(code, "Check region, credentials and network")
            return CallRefused(f"{label}: {step.operation}: {_error_text(error)}", code=code, hint=hint)
        raise error
    code, message = answer["Error"]["Code"], without_secrets(answer["Error"].get("Message", "").rstrip("."))
    what = "" if step.says in READS else f" ({step.says})"
    told = f"{label}: {step.operation}{what} was refused: {code}: {message}"
    hint = HINTS.get(code) or (_LIMIT_HINT if _LIMIT.search(code) else "")
    hint = _DENIES_HINT if DENIES.search(message) else hint
    http = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return CallRefused(told, code=code, hint=hint, http=http).with_cause(message, CAUSES.get(code, ()))


def _error_text(error: Exception) -> str:
    """The message of botocore, or only the type of an unexpected error that it wraps.

    Python's "Invalid header value" quotes the header, and so the session token.
    """
    if type(error).__name__ == "HTTPClientError":
        inner = getattr(error, "kwargs", {}).get("error")
        return f"the HTTP client failed with {type(inner).__name__}; a line break in the credentials does that"
    return without_secrets(str(error))

# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that use AWS as the role of their service account: by Pod Identity or by IRSA, with requests that they have signed.

Sources: EKS user guide, "How EKS Pod Identity works" and "IAM roles for service accounts"; AssumeRoleForPodIdentity in botocore 1.44.5;
STS API, "AssumeRoleWithWebIdentity"; S3 API, "Error responses" and "Authenticating Requests (AWS Signature Version 4)".
"""

import contextlib
import datetime as dt
import hashlib
import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from moto.backends import get_backend

from . import permissions
from .api import Asked, Refused
from .eks.account import REGIONS, Cluster
from .state import ACCOUNT, SETTINGS, Body

PREFIX = "ASIAPODS"
AGENT = "eks-pod-identity-agent"
POD_IDENTITY, WEB_IDENTITY = "pods.eks.amazonaws.com", "sts.amazonaws.com"


@dataclass(frozen=True)
class Session:
    """What a pod signs with, and as whom."""

    role: str
    keys: Credentials


SESSIONS: dict[str, Session] = {}


def _clusters() -> Iterator[Cluster]:
    for account in REGIONS.values():
        yield from account.clusters.values()


def _service_account(token: str, audience: str, code: str, message: str) -> tuple[str, str]:
    """Every cluster of the account is the one behind this API server, which knows its own tokens."""
    with contextlib.suppress(HTTPError):
        if SETTINGS.api_client and (found := SETTINGS.api_client.service_account(token, audience)):
            return found
    raise Refused(code, message)


def _begin(role: str) -> Body:
    keys = Credentials(f"{PREFIX}{secrets.token_hex(6).upper()}", secrets.token_urlsafe(30), secrets.token_urlsafe(60))
    SESSIONS[keys.access_key] = Session(role, keys)
    ends = (dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "AccessKeyId": keys.access_key,
        "SecretAccessKey": keys.secret_key,
        "Token": keys.token,
        "AccountId": ACCOUNT,
        "Expiration": ends,
    }


def of_agent(token: str) -> Body:
    """The answer of the agent on a node, which asks EKS for the role that is associated with the token's service account."""
    namespace, name = _service_account(
        token, POD_IDENTITY, "InvalidTokenException", "The token that was included in the request is not valid"
    )
    for cluster in _clusters():
        agent = cluster.addons.get(AGENT)
        for one in cluster.associations.values():
            if (one["namespace"], one["serviceAccount"]) == (namespace, name) and agent and agent.status == "ACTIVE":
                return _begin(_trusted(one["roleArn"], {"Service": POD_IDENTITY}, "sts:AssumeRole", {}))
    raise Refused("ResourceNotFoundException", f"No association for {namespace}/{name}, or no agent", 404)


def of_web_identity(form: dict[str, str]) -> Body:
    """The answer of STS: a role whose trust policy names the issuer of a cluster, and the service account."""
    namespace, name = _service_account(form.get("WebIdentityToken", ""), WEB_IDENTITY, "InvalidIdentityToken", "The token is not valid")
    providers = get_backend("iam")[ACCOUNT]["aws"].open_id_providers
    for cluster in _clusters():
        issuer = cluster.body["identity"]["oidc"]["issuer"].removeprefix("https://")
        arn = f"arn:aws:iam::{ACCOUNT}:oidc-provider/{issuer}"
        context = {f"{issuer}:aud": WEB_IDENTITY, f"{issuer}:sub": f"system:serviceaccount:{namespace}:{name}"}
        if arn in providers:
            try:
                asked = "sts:AssumeRoleWithWebIdentity"
                return _begin(_trusted(form.get("RoleArn", ""), {"Federated": arn}, asked, context))
            except Refused:
                continue
    raise Refused("AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity", 403)


def _role(arn: str) -> Any:
    return next((role for role in get_backend("iam")[ACCOUNT]["aws"].roles.values() if role.arn == arn), None)


def _trusted(arn: str, principal: dict[str, str], action: str, context: dict[str, str]) -> str:
    role = _role(arn)
    statements = json.loads(role.assume_role_policy_document)["Statement"] if role else []
    for one in statements:
        [(kind, who)] = principal.items()
        policy = {"Statement": [{**one, "Resource": "*"}]}
        if one["Principal"].get(kind) == who and permissions.allows([policy], permissions.Need(action, context=tuple(context.items()))):
            return arn
    raise Refused("AccessDenied", f"Not authorized to perform {action}", 403)


def session_of(method: str, address: str, headers: dict[str, str], body: bytes) -> Session | None:
    """The session that signed a request; none where it is not of a pod. A signature that does not hold is refused."""
    scheme, _space, rest = headers.get("authorization", "").partition(" ")
    given = dict(part.strip().split("=", 1) for part in rest.split(",") if "=" in part)
    scope = given.get("Credential", "").split("/")
    if scheme != "AWS4-HMAC-SHA256" or not scope[0].startswith(PREFIX):
        return None
    session = SESSIONS.get(scope[0])
    if session is None:
        raise Refused("InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.", 403)
    if headers.get("x-amz-security-token") != session.keys.token:
        raise Refused("InvalidToken", "The provided token is malformed or otherwise not valid.", 400)
    if headers.get("x-amz-content-sha256") != hashlib.sha256(body).hexdigest():
        raise Refused("XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match.", 400)
    names = given.get("SignedHeaders", "").split(";")
    request = AWSRequest(method=method, url=address, headers={name: headers.get(name, "") for name in names})
    request.context["timestamp"] = headers.get("x-amz-date", "")
    signer = S3SigV4Auth(session.keys, scope[3], scope[2])
    if signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request) != given.get("Signature"):
        raise Refused("SignatureDoesNotMatch", "The request signature we calculated does not match.", 403)
    return session


def judge(asked: Asked, session: Session) -> None:
    """Refuse what the role's own policies do not allow (no managed ones are looked at: Muster gives these roles none)."""
    role = _role(session.role)
    policies = [json.loads(text) for text in role.policies.values()] if role else []
    for need in permissions.needs(asked):
        if not permissions.allows(policies, need):
            raise permissions.denied(asked, need, session.role)


def xml_of(keys: Body) -> bytes:
    """The answer of STS, by its protocol."""
    names = {"AccessKeyId": "AccessKeyId", "SecretAccessKey": "SecretAccessKey", "SessionToken": "Token"}
    inner = "".join(f"<{name}>{keys[key]}</{name}>" for name, key in {**names, "Expiration": "Expiration"}.items())
    result = f"<AssumeRoleWithWebIdentityResult><Credentials>{inner}</Credentials></AssumeRoleWithWebIdentityResult>"
    return f"<AssumeRoleWithWebIdentityResponse>{result}</AssumeRoleWithWebIdentityResponse>".encode()

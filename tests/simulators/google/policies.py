# SPDX-License-Identifier: GPL-3.0-or-later
"""IAM policies of whatever has one: who may be a member, which roles there are, etags, conditions.

Rules, with what shows them:
- a stale etag is refused with 409 ABORTED; without an etag the policy is overwritten blindly (Policy.etag in the discovery documents);
- what a policy is read with is what it may be written with: a condition needs version 3 in both, and a reader that did not ask for version
  3 sees the binding without its condition, under a role with `_withcond_` in it (Policy.version;
  cloud.google.com/iam/docs/troubleshooting-withcond); a policy with conditions is not written over by one of an older version, unless
  without an etag (Policy.version, Policy.etag; message: hashicorp/vault-plugin-secrets-gcp issue 88);
- a service account must exist, and a new one is not known everywhere for a while: "Service account ... does not exist."
  (GoogleCloudPlatform/generative-ai issue 944; hashicorp/terraform-provider-google issue 18024;
  cloud.google.com/iam/docs/access-change-propagation);
- the workload identity pool of a project comes into being with its first cluster that uses it: before that "Identity Pool does not exist"
  (googleforgames/global-multiplayer-demo issue 39, terraform-google-modules/terraform-google-kubernetes-engine issue 916);
- a member has its type before it (kestra-io/plugin-gcp issue 318, DefangLabs/defang PR 1541; a project words it in another way,
  googleapis/google-api-python-client issue 819), and a project has no public ones (projects.setIamPolicy;
  hashicorp/terraform-provider-google PR 859);
- a service account that was made again and is not known everywhere yet is, in a policy with its deleted namesake, a contradiction
  (GoogleCloudPlatform/k8s-config-connector issue 279, with the message);
- members and bindings come back sorted, bindings of one role and condition as one, without duplicates and without empty ones.
"""

import base64
import re

from .api import Asked, Refused
from .discovery import Body
from .roles import ROLES
from .state import PROJECTS, Project, digest, number, see

MEMBER = re.compile(
    r"^(allUsers|allAuthenticatedUsers|(user|group|serviceAccount|domain):[^:\s]+|principal(Set)?://\S+"
    r"|deleted:(user|group|serviceAccount):[^:\s]+\?uid=\d+|project(Owner|Editor|Viewer):[a-z0-9-]+)$"
)
WORKLOAD = re.compile(r"^serviceAccount:([a-z0-9-]+)\.svc\.id\.goog\[([^/\]]+)/([^/\]]+)\]$")
ACCOUNT = re.compile(r"^serviceAccount:([^@\s]+@([a-z0-9-]+)\.iam\.gserviceaccount\.com)$")
DELETED = re.compile(r"^deleted:serviceAccount:(?P<email>[^?]+)\?uid=\d+$")
CONCURRENT = (
    "There were concurrent policy changes. Please retry the whole read-modify-write with exponential backoff. "
    "The request's ETag '{}' did not match the current policy's ETag '{}'."
)
PUBLIC = ("allUsers", "allAuthenticatedUsers")


def new_etag() -> str:
    return base64.b64encode(f"BwY{number():09d}".encode()).decode()


def read(policy: Body, version: int) -> Body:
    """As a reader sees it who asked for this version."""
    if version < 3 and any("condition" in one for one in policy.get("bindings", [])):
        shown = [
            {"role": f"{one['role']}_withcond_{digest(one['condition'], length=20)}", "members": one["members"]}
            if "condition" in one
            else one
            for one in policy["bindings"]
        ]
        return {**policy, "version": 1, "bindings": shown}
    return policy


def write(asked: Asked, current: Body, new: Body, kind: str) -> Body:
    """The policy after a request to set it; ``kind`` is the resource's, as roles are for some only."""
    given = new.get("etag")
    if given and given != current.get("etag"):
        raise Refused(409, CONCURRENT.format(given, current.get("etag", "")), code="ABORTED", reason="aborted")
    version = int(new.get("version") or 0)
    if given and version < current.get("version", 1) == 3:
        text = f"Specified policy version ({version}) cannot be less than the existing policy version (3)."
        raise Refused(400, f"{text} For more information, please refer to https://cloud.google.com/iam/docs/policies#versions")
    gone = {
        match["email"]: member
        for binding in new.get("bindings") or []
        for member in binding.get("members") or []
        if (match := DELETED.match(member))
    }
    merged: dict[tuple[str, str], Body] = {}
    for binding in new.get("bindings") or []:
        condition = binding.get("condition")
        if condition and version != 3:
            text = "Specified policy version ({}) cannot contain condition in role binding ({})."
            raise Refused(400, text.format(version, binding.get("role")))  # assumed: the wording
        role = str(binding.get("role", ""))
        _role(role, kind)
        for member in binding.get("members") or []:
            _member(member, kind, gone)
        row = merged.setdefault((role, str(condition or "")), {"role": role, "members": []})
        row["members"] = sorted({*row["members"], *(_normal(m) for m in binding.get("members") or [])})
        if condition:
            row["condition"] = condition
    rows = [merged[key] for key in sorted(merged) if merged[key]["members"]]
    answer: Body = {"version": 3 if any("condition" in row for row in rows) else 1, "etag": new_etag()}
    return {**answer, "bindings": rows} if rows else answer


def _role(role: str, kind: str) -> None:
    if re.match(r"^(projects|organizations)/", role):
        raise Refused(400, f"Role ({role}) does not exist in the resource's hierarchy.")
    if role not in ROLES:
        raise Refused(400, f"Role {role} is not supported for this resource.")
    if kind not in ROLES[role]:
        raise Refused(400, f"Role {role} is not supported for this resource.")


def _normal(member: str) -> str:
    """Addresses have no case."""
    return member.lower().replace("serviceaccount:", "serviceAccount:", 1) if ACCOUNT.match(member) else member


def _member(member: str, kind: str, gone: dict[str, str]) -> None:
    if not MEMBER.match(member):
        raise Refused(400, f"The member {member} is of an unknown type. Please set a valid type prefix for the member.")
    if member in PUBLIC and kind == "project":
        raise Refused(400, "Request contains an invalid argument.")
    if match := WORKLOAD.match(member):
        pool = f"{match[1]}.svc.id.goog"
        owner = PROJECTS.get(match[1])
        if owner is None or not owner.shelf("identityPools"):
            text = f"Identity Pool does not exist ({pool}). Please check that you specified a valid resource name as returned in the"
            raise Refused(400, f"{text} `name` attribute in the configuration API.")
    elif not known(member, kind):
        if before := gone.get(member.removeprefix("serviceAccount:").lower()):
            raise Refused(400, f"Inconsistent representation of deleted member: '{before}' and '{member}'.")
        raise Refused(400, f"Service account {member.removeprefix('serviceAccount:')} does not exist.")


def known(member: str, kind: str) -> bool:
    """Whether a service account is there and known to who keeps policies of this kind; others' accounts are believed."""
    match = ACCOUNT.match(member)
    owner = PROJECTS.get(match[2]) if match else None
    return not match or not owner or see(owner.shelf("serviceAccounts").get(match[1].lower()), f"policy of a {kind}")


def forget(found: Project, policies: list[Body], email: str, unique: str) -> None:
    """A deleted service account stays in policies, under another name (cloud.google.com/iam/docs/policies#handle-deleted-members)."""
    for policy in policies:
        for binding in policy.get("bindings", []):
            binding["members"] = [
                f"deleted:serviceAccount:{email}?uid={unique}" if m == f"serviceAccount:{email}" else m for m in binding["members"]
            ]

# SPDX-License-Identifier: GPL-3.0-or-later
"""Refusals of Google, in whichever of its shapes they come, as one error."""

from __future__ import annotations

import contextlib
import re
import typing as t

from .._cloud.errors import CallRefused, without_secrets
from .._cloud.plan import Body
from .._core.errors import Causes, Unauthorized, Unreachable

# Older words for the same.
_SAME = {
    "ACCESS_NOT_CONFIGURED": "SERVICE_DISABLED",
    "USER_RATE_LIMIT_EXCEEDED": "RATE_LIMIT_EXCEEDED",
    "GCE_STOCKOUT": "STOCKOUT",
    "ZONE_RESOURCE_POOL_EXHAUSTED": "STOCKOUT",
    "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": "STOCKOUT",
    "GCE_QUOTA_EXCEEDED": "QUOTA_EXCEEDED",
    "OPERATION_RATE_EXCEEDED": "RATE_LIMIT_EXCEEDED",
    "RESOURCE_OPERATION_RATE_EXCEEDED": "RATE_LIMIT_EXCEEDED",
    "ACCOUNT_DISABLED": "BILLING_DISABLED",
    "UREQ_PROJECT_BILLING_NOT_FOUND": "BILLING_DISABLED",
    "CONSUMER_INVALID": "RESOURCE_PROJECT_INVALID",
}
_RPC = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
    "UNAUTHENTICATED",
)  # fmt: skip
# Say less than what else is known.
_VAGUE = {"BAD_REQUEST", "BADREQUEST", "FORBIDDEN", "INVALID", "INTERNAL_ERROR", "BACKEND_ERROR", "UNKNOWN", "GLOBAL"}
_PERMISSION = re.compile(r"(?<![\w@.-])[a-z][a-zA-Z]+\.[a-zA-Z]+\.[a-zA-Z]+(?![\w.])")
# A policy of the organization forbids it, which Google tells with the word of a condition that another request of the same kind may meet
# (412 conditionNotMet: hashicorp/terraform-provider-google#2904, fortinet/fortigate-terraform-deploy#34; 400 failedPrecondition).
# "Request is prohibited by organization's policy" is said by a perimeter of VPC Service Controls (terraform-example-foundation#974).
_FORBIDDEN = re.compile(
    r"(?P<name>(?:custom)?constraints/[\w.-]+)|org(?:anization)?(?:'s)?[ _-]?polic(?:y|ies)|permitted customer", re.IGNORECASE
)
# A service's own account was refused, and not the caller: it is named, or GKE passes on what Compute Engine said to its account
# (hashicorp/terraform-provider-google#8262, terraform-google-modules/terraform-google-kubernetes-engine#302).
_AGENT = re.compile(r"(?P<name>service-\d+@[\w.-]+\.iam\.gserviceaccount\.com)|Google Compute Engine: Required '")
_PASSING = {"CONDITION_NOT_MET", "ABORTED", "CONFLICT"}
FORBIDDEN = "ORGANIZATION_POLICY"
STOCKOUT = "STOCKOUT"
DISABLED = "SERVICE_DISABLED"
# Sentences that say more than the words beside them.
_SENTENCES = {
    # What Compute Engine says when a zone has no machine left; GKE passes the sentence on.
    STOCKOUT: r"does not have enough resources available|ZONE_RESOURCE_POOL_EXHAUSTED|GCE_STOCKOUT|currently unavailable in the \S+ zone",
    # The same, when the range of a cluster's pods has no piece left for another node.
    "IP_SPACE_EXHAUSTED": r"IP_SPACE_EXHAUSTED",
    "QUOTA_EXCEEDED": r"QUOTA_EXCEEDED|Quota '|[Ii]nsufficient (?:regional |project )?quota|Maximum number of",
    "AUTOPILOT": r"Autopilot node pools cannot be",
    # Often with no word but that of a missing permission, or of an unmet condition.
    DISABLED: r"API has not been used in project|API is not enabled for this project|should enable service:",
    # GKE says of a stale fingerprint only FAILED_PRECONDITION, which is what it says of much else.
    "CONDITION_NOT_MET": r"fingerprint mismatch",
}
REMADE, NO_POOL, NOT_SEEN, BUSY = "account made again", "no identity pool", "account not seen", "busy"
NO_PUBLIC, NOT_UNIFORM, OWNED, NOT_EMPTY, RETAINED = "not public", "access not uniform", "owned", "not empty", "retained"
RANGE_IN_USE, HELD = "range in use", "held"
_BY = r"being used by '?[^' ]*?(?P<holder>\w+/[^/' ]+)'?(?: |$|[.;,])"
# What only sentences tell, beside words that mean much else; recorded answers are in tests/unit/plugins/module_utils/_gcp/test_errors.py.
CAUSES: Causes = (
    # An account of the member's name was deleted, and IAM does not know everywhere yet that there is another one of it: the policy has to
    # be read again (GoogleCloudPlatform/k8s-config-connector#279).
    (REMADE, re.compile(r"(?i)inconsistent representation of deleted member")),
    (NO_POOL, re.compile(r"(?i)identity ?pool")),
    # A service account is not seen everywhere as soon as it is created (IAM documentation, "Eventual consistency").
    (NOT_SEEN, re.compile(r"(?i)service ?account.*(?:does not exist|not found|invalid)")),
    # Another operation on the same resource has not ended: the messages of GKE and of Compute Engine.
    (BUSY, re.compile(r"incompatible operation|(?i:operation \S+ is currently|has (?:an? )?(?:running|pending|ongoing) operation|"
                      "please wait and try again|hits the concurrent operations quota)")),
    # Conditions of a bucket that no retry can meet.
    (NO_PUBLIC, re.compile("public access")),
    (NOT_UNIFORM, re.compile("uniform bucket-level access")),
    # Cloud Storage (googleapis/google-cloud-cpp#10478).
    (OWNED, re.compile("you already own it")),
    (NOT_EMPTY, re.compile("not empty")),
    (RETAINED, re.compile("retention")),
    (RANGE_IN_USE, re.compile(rf"(?i)secondary.*(?:in use|{_BY}|being used)")),
    (HELD, re.compile(_BY)),
)  # fmt: skip
HINTS = {
    "AUTOPILOT": "An Autopilot cluster makes its nodes by itself as pods ask for them: leave the node pools out, or use a Standard one",
    STOCKOUT: "Google has no such machine there now: try another zone, another type, spot or a reservation, or run again later",
    "QUOTA_EXCEEDED": "Ask for more quota (IAM & Admin, Quotas), or for fewer or smaller machines",
    "IP_SPACE_EXHAUSTED": "The range of the pods is used up: make fewer nodes, or a node pool with a smaller max_pods_per_node",
    "SERVICE_CONFIG_NOT_FOUND_OR_PERMISSION_DENIED": "Check the spelling, such as container.googleapis.com",
    "RESOURCE_PROJECT_INVALID": "Check the project: it is named by its ID, as `gcloud projects list` shows it",
    "UNAUTHENTICATED": "Renew the credentials and run again; finished steps are not repeated",
    "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE": "Remove what uses it first",
    "BILLING_DISABLED": "Link the project to a billing account that is open (Billing, My projects)",
    "ACCESS_TOKEN_SCOPE_INSUFFICIENT": "The token is for fewer APIs: get one with the scope https://www.googleapis.com/auth/cloud-platform,"
    " on a machine of Compute Engine by its access scopes",
    "RATE_LIMIT_EXCEEDED": "Too many requests come from this project: run again later",
    "CONDITION_NOT_MET": "Another client changed it at the same time: run again",
    "ABORTED": "Another client changed it at the same time: run again",
}


class Refused(CallRefused):
    """Google refused a request. ``code`` is the most telling word of the answer, ``codes`` all of them, ``http`` its status.

    Words are in the spelling of google.rpc.Code, whichever API they come from: compute's ``alreadyExists`` is ALREADY_EXISTS.
    ``delay``: the seconds until another try that Google asks for, which are a day where a limit is reached (kubeflow/testing#250).
    """

    def __init__(
        self, message: str, hint: str | None = None, *, codes: t.Sequence[str], http: int = 0, said: str = "", delay: float | None = None
    ) -> None:
        super().__init__(message, hint, code=codes[0] if codes else str(http), http=http)
        self.codes = frozenset(codes)
        self.delay = delay
        self.with_cause(said, CAUSES)

    def with_hint(self, hint: str) -> Refused:
        """The same, with a hint that knows more."""
        return Refused(self.message, hint, codes=[self.code, *self.codes], http=self.http, said=self.said, delay=self.delay)


class Problem(t.NamedTuple):
    """One error of Google's: its words, the sentence, and what it is about."""

    codes: list[str]
    message: str
    metadata: Body

    @property
    def code(self) -> str:
        return self.codes[0] if self.codes else ""

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.code else self.message


def word(reason: str) -> str:
    """A reason in the spelling of google.rpc.Code."""
    spelled = reason if reason.isupper() else re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", reason).upper()
    return _SAME.get(spelled, spelled)


def problem(error: t.Any) -> Problem:
    """Parse an error: of a response (google.rpc.Status with the older ``errors``), or of an operation, compute's or a long-running one."""
    if not isinstance(error, dict):
        return Problem([], without_secrets(str(error)), {})
    rows = [row for row in error.get("errors") or () if isinstance(row, dict)]
    message = "; ".join(dict.fromkeys(str(row["message"]).rstrip(".") for row in rows if row.get("message")))
    message = str(error.get("message") or message).strip().rstrip(".")
    infos = [one for one in error.get("details") or () if isinstance(one, dict) and one.get("reason")]
    infos += [one["errorInfo"] for row in rows for one in row.get("errorDetails") or () if one.get("errorInfo")]
    number = error.get("code")
    spoken = [_RPC[number]] if isinstance(number, int) and 0 < number < len(_RPC) else []
    words = [one["reason"] for one in infos if one.get("reason")]
    words += [str(row.get("code") or row.get("reason") or "") for row in rows]
    words += [str(error.get("status") or ""), *spoken]
    words.insert(0, next((said for said, sentence in _SENTENCES.items() if re.search(sentence, message)), ""))
    codes = list(dict.fromkeys(word(one) for one in words if one))
    if _FORBIDDEN.search(message):
        codes = [FORBIDDEN, *(code for code in codes if code not in _PASSING)]
    metadata: Body = next((one["metadata"] for one in infos if one.get("metadata")), {})
    return Problem(sorted(codes, key=lambda code: code in _VAGUE), without_secrets(message), metadata)


def refusal(what: str, service: str, http: int, answer: t.Any) -> Refused:
    """An answer with a status that is no success. ``what`` is the object and the request that it is about."""
    error = answer.get("error", answer) if isinstance(answer, dict) else str(answer)[:300].strip()
    found = problem(error)
    codes = found.codes or [{401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}.get(http, str(http))]
    message = found.message or f"status {http}"
    told = f"{what} was refused: {codes[0]}: {message}"
    details = error.get("details") or () if isinstance(error, dict) else ()
    delays = [float(one["retryDelay"].rstrip("s")) for one in details if isinstance(one, dict) and one.get("retryDelay")]
    return Refused(told, hint_of(found, codes, service, http), codes=codes, http=http, said=message, delay=next(iter(delays), None))


def api_of(message: str, service: str) -> str:
    """The API that a message calls not enabled, which may be one that the service of the request needs."""
    named = re.search(r"(?:apis/api/|enable service:)([\w-]+\.googleapis\.com)", message)
    return named[1] if named else f"{service}.googleapis.com"


def hint_of(found: Problem, codes: list[str], service: str, http: int = 0) -> str:
    """Return the hint for a refusal, or for a failed operation, as far as its codes and message allow one."""
    if DISABLED in codes:
        api = found.metadata.get("service") or api_of(found.message, service)
        return f"Enable {api}, which role gcp_project does; just after that it may take minutes until Google knows"
    if FORBIDDEN in codes:
        # Google leaves out the name of one: that of the domains whose members may be in policies of IAM.
        named = next((one["name"] for one in _FORBIDDEN.finditer(found.message) if one["name"]), "")
        named = named or ("constraints/iam.allowedPolicyMemberDomains" if "customer" in found.message else "")
        named = named or ("a perimeter of VPC Service Controls" if "vpcServiceControls" in found.message else "")
        which = f", {named}," if named else ""
        return f"A policy of the organization{which} forbids it: the administrator of those policies can allow it, or choose other options"
    told = next((HINTS[code] for code in codes if code in HINTS), "")
    if told or not (http == 403 or "PERMISSION_DENIED" in codes):
        return told
    spoken = (name for name in _PERMISSION.findall(found.message) if not name.endswith((".googleapis.com", ".gserviceaccount.com")))
    named = found.metadata.get("permission") or next(spoken, "")
    lacks = f"lacks the permission {named}" if named else "lacks the permission"
    if agent := _AGENT.search(found.message):
        who = agent["name"] or "service-PROJECT_NUMBER@container-engine-robot.iam.gserviceaccount.com"
        return (
            f"Not the caller, but Google's own service account {who} {lacks}: give it back the role of a service agent, for GKE "
            "roles/container.serviceAgent, and in the project of a shared network roles/compute.networkUser"
        )
    return f"The caller {lacks}"


@contextlib.contextmanager
def library_errors() -> t.Iterator[None]:
    """Errors of the HTTP and login libraries as ours; their messages may hold a token."""
    try:
        yield
    except Exception as error:
        source = type(error).__module__
        if not source.startswith(("requests.", "urllib3.", "google.auth.")):
            raise
        said = without_secrets(str(error))
        if source.startswith("google.auth.") and type(error).__name__ != "TransportError":
            hint = "Check auth_kind and its options, or renew the token"
            raise Unauthorized(f"Google does not accept the credentials: {said}", hint) from None
        hint = "Check the network, the proxy and its certificates"
        raise Unreachable(f"Google could not be reached: {said}", hint) from None

# SPDX-License-Identifier: GPL-3.0-or-later
"""Map responses of the API server to errors: a status code and a Status object become one of the collection's error classes.

``CAUSES`` has the causes of a refusal that only its message text tells. This is the one module that decides by texts of the API server:
admission plugins answer a plain Forbidden, and a webhook that cannot be called is a plain InternalError.
"""

from __future__ import annotations

import re
import typing as t

from .._core import errors
from .._core.errors import Conflict, Forbidden, Gone, MissingKind, MusterError, NotFound, Rejected, ServerError, Terminating, Unauthorized
from . import redact
from .objects import BOOKKEEPING, Manifest, Ref

# Statuses that say nothing against the request itself, so it may be sent again.
RETRIED = (408, 429, 500, 502, 503, 504)

_MANAGER = re.compile(r'conflict with "(?P<manager>[^"]*)"')
_FORBIDDEN = re.compile(r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)"')
_INVALID = re.compile(r"Invalid value: (?P<value>.*): (?P<problem>[^:]*)", re.DOTALL)
_LONGEST_VALUE = 60
_LONGEST = 1500

WEBHOOK_DOWN, WEBHOOK_REFUSAL, NO_DRY_RUN = "webhook unavailable", "webhook refusal", "webhook without dry run"
NO_REFERENCE, UNCOUNTED_QUOTA, WHICH_CONTAINER = "missing reference", "uncounted quota", "which container"
ALLOCATED, IMMUTABLE = "allocated", "immutable"
CAUSES: errors.Causes = (
    # 500 InternalError: nothing answers at the webhook's address, or its certificate is not accepted.
    (WEBHOOK_DOWN, re.compile(
        r'failed calling webhook(?: "(?P<webhook>[^"]+)"(?:[^"]*"https://(?P<host>[^/":]+))?)?(?:.*(?P<untrusted>x509))?', re.DOTALL)),
    # 400 BadRequest: the webhook has side effects, so the API server does not ask it in a dry run.
    (NO_DRY_RUN, re.compile(r"does not support dry run")),
    # Of Kubeflow Trainer 2.3.0 (trainingruntime.go), whose cache may lack a new runtime, and of Kueue 0.18.3 (trainjob_controller.go).
    (NO_REFERENCE, re.compile(r"specified (clusterT|t)rainingRuntime must be created before the TrainJob|request: runtime \S+ not found")),
    # The webhook chooses code and reason; only these words in front come from the API server.
    (WEBHOOK_REFUSAL, re.compile(r"admission webhook")),
    # 403 Forbidden, from the plugins ServiceAccount, Priority, RuntimeClass and PodGroupWorkloadExists: what a pod, or a group of pods,
    # names does not exist (yet).
    (NO_REFERENCE, re.compile(
        r"error looking up service account|no PriorityClass with name|RuntimeClass .*not found|PodGroup rejected: .*not found")),
    # 403 Forbidden, from the plugin ResourceQuota: the controller of quotas has not counted yet what is used of a new one (CheckRequest of
    # k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go).
    (UNCOUNTED_QUOTA, re.compile(r"status unknown for quota")),
    # 400 BadRequest: the log of a pod with several containers (validateContainer of pkg/registry/core/pod/strategy.go).
    (WHICH_CONTAINER, re.compile(r"a container name must be specified")),
    # 422 Invalid with reason FieldValueInvalid, as for any other wrong value: another Service has the address or the port.
    (ALLOCATED, re.compile(r"already allocated")),
    # 403 Forbidden, from the plugin ResourceQuota: the one object more than the quota has (its "object count quota"), which may count
    # twice. One that has more than it may will not have room without the object either.
    (ALLOCATED, re.compile(
        r"exceeded quota: \S+, requested: (?:(?:count/[\w.-]+|configmaps|pods|replicationcontrollers|secrets|services[\w.]*)=1,)+ "
        r"used: (?P<full>(?:[\w./-]+=[1-9]\w*,?)+), limited: (?P=full)(?![\w,])")),
    # 422 Invalid with reason FieldValueForbidden: what may be changed is named, and not what was (ValidateStatefulSetUpdate of
    # pkg/apis/apps/validation/validation.go, and its like for Jobs and pods).
    (IMMUTABLE, re.compile(r"for fields other than (?P<mutable>.*)", re.DOTALL)),
)  # fmt: skip

_BUSY, _MODIFIED, _PRECONDITION, _TWICE, _UNREADABLE, _REFUSED = "busy", "modified", "precondition", "twice", "unreadable", "refused"
_BEYOND_STATUS: t.Mapping[int, errors.Causes] = {
    # Of admission, and not of missing rights.
    403: ((_REFUSED, re.compile(r"exceeded quota|admission|denied")),),
    409: (
        (_MODIFIED, re.compile(r"object has been modified")),
        # "the UID in the precondition" or "Precondition failed" (pkg/registry/rest/delete.go and pkg/storage/interfaces.go of
        # k8s.io/apiserver).
        (_PRECONDITION, re.compile(r"recondition")),
    ),
    500: (
        # Of structured-merge-diff, which reads what is applied.
        (_TWICE, re.compile(r"failed to create typed patch object.*duplicate", re.DOTALL)),
        (_UNREADABLE, re.compile(r"failed to create typed patch object")),
        # Of etcd. Other internal errors are bugs or failing webhooks, which the caller has to judge.
        (_BUSY, re.compile(r"etcdserver|leader changed|request timed out")),
    ),
}
"""Status -> what the words of the answer mean beyond it."""


def is_retryable(status: int, payload: Manifest) -> bool:
    """Whether the same request may succeed in a moment."""
    cause = errors.cause_of(payload.get("message"), _BEYOND_STATUS.get(status, ()))
    if status == 500:
        return cause == _BUSY
    if status == 409:
        # Two writers changed or created the object at the same time. Without a field manager conflict our write may be repeated.
        met = payload.get("reason") == "Conflict" and cause == _MODIFIED
        return not _manager_conflicts(payload) and (met or payload.get("reason") == "AlreadyExists")
    return status in RETRIED


def is_startup_answer(status: int, payload: Manifest) -> bool:
    """Whether a restarted server may answer this for a moment, before it has read all roles and definitions."""
    unserved = payload.get("reason") == "NotFound" and not _names_an_object(payload)
    return status == 403 or (status == 404 and unserved)


def _names_an_object(payload: Manifest) -> bool:
    """Whether a 404 is about a missing object, and not about an unknown address (a kind)."""
    return bool((payload.get("details") or {}).get("name"))


def is_overtaken(status: int, payload: Manifest) -> bool:
    """Whether a deletion met another object of the name, or another version of it, else a Conflict as any other."""
    return status == 409 and errors.cause_of(payload.get("message"), _BEYOND_STATUS[409]) == _PRECONDITION


def to_error(status: int, payload: Manifest, *, verb: str, ref: Ref | None, what: str, sent: Manifest | None = None) -> MusterError:
    """The error for an answer that is not a success. ``what`` names the object or list. It shows no secret value of SENT."""
    if sent:  # causes name elements of a list by their keys, any of which may be secret
        causes = [{key: redact.without_secrets(str(text), sent) for key, text in cause.items()} for cause in _causes(payload)]
        whole = redact.without_secrets(str(payload.get("message") or ""), sent)  # before it is cut, perhaps in a secret
        payload = {**payload, "message": whole, "details": {**(payload.get("details") or {}), "causes": causes}}
    message = _readable(payload, secret=bool(sent and redact.has_secret(sent))).rstrip(".") or f"HTTP status {status}"
    return _error_of(status, payload, message, verb, ref, what).with_cause(message, CAUSES)


def _error_of(status: int, payload: Manifest, message: str, verb: str, ref: Ref | None, what: str) -> MusterError:
    if status == 401:
        return Unauthorized(f"The API server does not accept the credentials (401, when asked to {verb} {what}).",
                            hint="The token or certificate may have expired, or belongs to another cluster.", ref=ref)  # fmt: skip
    if status == 403:
        return _forbidden(payload, message, verb, ref, what)
    if status == 404:
        return (NotFound if _names_an_object(payload) else MissingKind)(f"Cannot {verb} {what}: {message}.", ref=ref)
    if status == 409:
        return _conflict(payload, message, verb, ref, what)
    if status == 410:
        return Gone(f"{what}: {message}", ref=ref)
    if status in (400, 413, 422):
        fields = [str(cause.get("field")) for cause in _causes(payload) if cause.get("field")]
        return Rejected(f"The API server refused {what}: {message}.", ref=ref, details={"fields": fields} if fields else {})
    if status == 500 and (cause := errors.cause_of(message, _BEYOND_STATUS[500])) in (_TWICE, _UNREADABLE):
        hint = "An element of a list with keys may be there once: a variable, a port, a volume." if cause == _TWICE else ""
        return Rejected(f"The API server refused {what}: {message}.", hint=hint, ref=ref)
    return ServerError(f"The API server failed to {verb} {what} (status {status}): {message}.", ref=ref)


def _readable(payload: Manifest, *, secret: bool) -> str:
    """The server's message without the values of invalid fields, which may be long or secret."""
    if payload.get("reason") != "Invalid" or not _causes(payload):
        return str(payload.get("message") or "").strip()[:_LONGEST]
    secret = secret or redact.is_like_secret(str((payload.get("details") or {}).get("kind", "")))
    return "; ".join(_cause(cause, secret) for cause in _causes(payload))[:_LONGEST]


def _cause(cause: dict[str, t.Any], secret: bool) -> str:
    message = str(cause.get("message", ""))
    found = _INVALID.fullmatch(message)
    if found and (secret or len(found["value"]) > _LONGEST_VALUE):
        message = found["problem"]
    return f"{cause['field']}: {message}" if cause.get("field") else message


def _forbidden(payload: Manifest, message: str, verb: str, ref: Ref | None, what: str) -> MusterError:
    found = _FORBIDDEN.search(message)
    if found:
        where = f" in namespace {ref.namespace}" if ref and ref.namespace else ""
        return Forbidden(
            f"User {found['user']} may not {found['verb']} {found['resource']}{where} (403, when asked to {verb} {what}).",
            hint="Give the user a Role or ClusterRole with that verb, or use another kubeconfig.", ref=ref,
            details={"user": found["user"], "verb": found["verb"], "resource": found["resource"]},
        )  # fmt: skip
    if any(cause.get("reason") == "NamespaceTerminating" for cause in _causes(payload)):
        return Terminating(f"Cannot {verb} {what}: its namespace is being deleted.",
                           hint="Wait until it is gone, then run again.", ref=ref)  # fmt: skip
    if errors.cause_of(message, _BEYOND_STATUS[403]) == _REFUSED:
        return Rejected(f"{what} was refused: {message}.", ref=ref)
    return Forbidden(f"Not allowed to {verb} {what} (403): {message}.", ref=ref)


def _causes(payload: Manifest) -> list[dict[str, t.Any]]:
    return (payload.get("details") or {}).get("causes") or []


def _manager_conflicts(payload: Manifest) -> list[tuple[str, str]]:
    """(manager, field) of each conflict."""
    found = []
    for cause in _causes(payload):
        manager = _MANAGER.search(str(cause.get("message", "")))
        if cause.get("reason") == "FieldManagerConflict" and manager:
            found.append((manager["manager"], str(cause.get("field", "")).lstrip(".")))
    return found


def _conflict(payload: Manifest, message: str, verb: str, ref: Ref | None, what: str) -> MusterError:
    every = _manager_conflicts(payload)
    conflicts = [found for found in every if found[1] not in BOOKKEEPING] or every
    if not conflicts:
        return Conflict(f"Cannot {verb} {what}: {message}.", ref=ref, hint="Another client changes it at the same time; run again.")
    by_manager: dict[str, list[str]] = {}
    for manager, field in conflicts:
        by_manager.setdefault(manager, []).append(field)
    conflicting = "; ".join(f"{', '.join(fields)} (set by {manager})" for manager, fields in by_manager.items())
    return Conflict(
        f"{what}: other field managers have fields that differ from the desired ones: {conflicting}.",
        managers=list(by_manager), fields=[field for _manager, field in conflicts], ref=ref,
        hint="Leave those fields out, or take them over with force_conflicts.",
    )  # fmt: skip

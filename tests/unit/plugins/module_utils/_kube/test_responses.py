# SPDX-License-Identifier: GPL-3.0-or-later
"""What the API server's answers become. The Status objects are those of a real server (1.36)."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core import errors
from ansible_collections.muster.ml.plugins.module_utils._core.sensitive import Sensitive
from ansible_collections.muster.ml.plugins.module_utils._kube import responses
from ansible_collections.muster.ml.plugins.module_utils._kube.objects import Ref

REF = Ref("apps/v1", "StatefulSet", "w", "ml")


def error(status: int, verb: str = "apply", **payload: t.Any) -> errors.MusterError:
    return responses.to_error(status, payload, verb=verb, ref=REF, what=str(REF))


def causes(*pairs: tuple[str, str], kind: str = "StatefulSet", reason: str = "FieldValueInvalid") -> dict[str, t.Any]:
    return {"kind": kind, "causes": [{"reason": reason, "field": field, "message": text} for field, text in pairs]}


def test_conflicts_name_managers_and_fields() -> None:
    details = causes(
        (".spec.replicas", 'conflict with "kubectl-scale" using apps/v1'),
        (".spec.x", 'conflict with "hpa" using apps/v1'),
        reason="FieldManagerConflict",
    )
    found = error(409, reason="Conflict", message="Apply failed with 2 conflicts", details=details)
    assert isinstance(found, errors.Conflict)
    assert (found.managers, found.fields) == (["kubectl-scale", "hpa"], ["spec.replicas", "spec.x"])
    assert "spec.replicas (set by kubectl-scale); spec.x (set by hpa)" in str(found)


def test_a_conflict_shows_no_secret_that_is_the_key_of_an_element() -> None:
    secret = "canary-1234567890"
    sent = {"spec": {"users": [{"name": Sensitive(secret)}]}}
    details = causes((f'.spec.users[name="{secret}"].age', 'conflict with "kubectl"'), reason="FieldManagerConflict")
    payload = {"reason": "Conflict", "message": "Apply failed with 1 conflict", "details": details}
    found = responses.to_error(409, payload, verb="apply", ref=REF, what=str(REF), sent=sent)
    assert "spec.users" in str(found)
    assert secret not in str(found) + str(found.details)


def test_forbidden_names_user_verb_and_resource() -> None:
    message = (
        'statefulsets.apps "w" is forbidden: User "bob" cannot patch resource "statefulsets" in API group "apps" in the namespace "ml"'
    )
    found = error(403, message=message)
    assert isinstance(found, errors.Forbidden)
    assert str(found).startswith("User bob may not patch statefulsets in namespace ml (403, when asked to apply StatefulSet ml/w)")


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (401, "Unauthorized", errors.Unauthorized),
        (403, 'pods "x" is forbidden: exceeded quota: q', errors.Rejected),
        (403, "something else", errors.Forbidden),
        (404, "the server could not find the requested resource", errors.MissingKind),
        (404, "404 page not found", errors.MissingKind),
        (409, "object has been modified", errors.Conflict),
        (410, "too old resource version", errors.Gone),
        (400, "admission webhook x denied the request", errors.Rejected),
        (422, 'Job "j" is invalid: spec.template: field is immutable', errors.Rejected),
        (422, "spec.clusterIPs[0]: may not change once set", errors.Rejected),
        (422, "spec.replicas: must be >= 0", errors.Rejected),
        (500, "boom", errors.ServerError),
        (
            500,
            "failed to create typed patch object (ml/w; apps/v1, Kind=StatefulSet): .spec.x: field not declared in schema",
            errors.Rejected,
        ),
        (500, 'failed to create typed patch object (ml/w; v1, Kind=Pod): .spec: duplicate entries for key [name="a"]', errors.Rejected),
        (503, "", errors.ServerError),
    ],
)
def test_kinds_of_errors(status: int, message: str, kind: type[errors.MusterError]) -> None:
    found = error(status, message=message)
    assert found.__class__ is kind
    assert found.ref == REF
    assert (message or "HTTP status 503") in str(found) or kind is errors.Unauthorized


def test_a_namespace_that_goes_is_told_by_its_cause() -> None:
    message = 'configmaps "x" is forbidden: unable to create new content in namespace ml because it is being terminated'
    cause = {"reason": "NamespaceTerminating", "message": "namespace ml is being terminated", "field": "metadata.namespace"}
    assert isinstance(error(403, message=message, details={"name": "x", "causes": [cause]}), errors.Terminating)


def test_an_object_that_is_missing_is_told_from_a_kind_that_is() -> None:
    details = {"name": "ml", "kind": "namespaces"}
    found = error(404, reason="NotFound", message='namespaces "ml" not found', details=details)
    assert found.__class__ is errors.NotFound


def test_long_and_secret_values_are_left_out() -> None:
    long = causes(("spec.template", f"Invalid value: {{{'x' * 5000}: [a: b]}}: field is immutable"))
    found = error(422, reason="Invalid", message="x" * 9000, details=long)
    assert str(found).startswith("The API server refused StatefulSet ml/w: spec.template: field is immutable.")
    short = causes(("spec.replicas", "Invalid value: -1: must be greater than or equal to 0"))
    assert "Invalid value: -1: must be" in str(error(422, reason="Invalid", details=short))
    secret = causes(("data[x]", 'Invalid value: "hunter2": bad'), kind="Secret")
    assert "hunter2" not in str(error(422, reason="Invalid", message='"hunter2"', details=secret))


@pytest.mark.parametrize(
    ("status", "payload", "again"),
    [
        (429, {}, True),
        (503, {}, True),
        (504, {}, True),
        (500, {"message": "etcdserver: leader changed"}, True),
        (500, {"message": "failed calling webhook"}, False),
        (409, {"reason": "Conflict", "message": "the object has been modified"}, True),
        (409, {"reason": "Conflict", "message": "the object has been modified",
               "details": causes((".x", 'conflict with "y" using v1'), reason="FieldManagerConflict")}, False),
        (409, {"reason": "AlreadyExists"}, True),
        (403, {}, False),
        (404, {}, False),
        (422, {}, False),
    ],
)  # fmt: skip
def test_what_is_worth_another_try(status: int, payload: dict[str, t.Any], again: bool) -> None:
    assert responses.is_retryable(status, payload) is again


@pytest.mark.parametrize(
    ("status", "message", "cause", "named"),
    [
        (500, 'failed calling webhook "w.x.io": failed to call webhook: Post "https://h.o.svc:443/": tls: failed to verify: x509: unknown',
         "webhook unavailable", {"webhook": "w.x.io", "host": "h.o.svc", "untrusted": "x509"}),
        (403, 'admission webhook "p.x.io" denied the request: no', "webhook refusal", {}),
        (422, "spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden", "immutable",
         {"mutable": "'replicas' are forbidden"}),
        (422, "spec.replicas: Invalid value: -1: must be greater than or equal to 0", "", {}),
        (403, 'podgroups.scheduling.k8s.io "g" is forbidden: PodGroup rejected: Workload "x" not found', "missing reference", {}),
        (403, 'services "x" is forbidden: exceeded quota: q, requested: services=1, used: services=3, limited: services=3', "allocated",
         {"full": "services=3"}),
    ],
)  # fmt: skip
def test_the_message_of_the_server_tells_the_cause(status: int, message: str, cause: str, named: dict[str, str]) -> None:
    """And the names of the object do not."""
    ref = Ref("v1", "ConfigMap", "already allocated", "admission webhook")
    found = responses.to_error(status, {"message": message}, verb="apply", ref=ref, what=str(ref))
    assert (found.cause, found.named, found.said) == (cause, named, message)


def test_a_deletion_that_met_another_object_is_known() -> None:
    told = 'Operation cannot be fulfilled on pods "x": the UID in the precondition (1) does not match the UID in record (2).'
    assert responses.is_overtaken(409, {"message": told})
    assert not responses.is_overtaken(409, {"message": 'Operation cannot be fulfilled on pods "x": the object has been modified'})

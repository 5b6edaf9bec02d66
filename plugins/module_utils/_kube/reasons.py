# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the reason why an object is not ready if its own status has none: from events, and from objects that it depends on.

These functions only add to a known reason, so objects that cannot be read (no right, no response) are left out.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence

from .._core.conditions import condition, conditions, reason_of
from .._core.errors import MusterError
from .cluster import Cluster
from .objects import CLAIM, DEPLOYMENT, NAMESPACE, POD, SERVICE, GroupKind, Manifest, Ref, group_kind, ref_of, selector_of
from .pod_status import waits_for_claim, why_not_running
from .queued import why_queued
from .ready import State, deletion_state, pod

_SHOWN = 3
"""Number of equal obstacles that a message names."""
_LONGEST = 800
"""Letters of one event: what Pod Security refuses takes 500."""
_COMBINED = "(combined from similar events):"
"""The prefix that the event recorder adds to the message when it combines ten similar events."""
_BARE = ("Pending", "Running: not ready")
"""The reason in a pod's status that says nothing specific."""

_SERVICE = "apiregistration.k8s.io/v1"
_VERSIONS = re.compile(r"\b([a-z0-9][a-z0-9.-]*)/(v[0-9][a-z0-9]*)\b")
_MADE: dict[GroupKind, Sequence[tuple[str, str]]] = {
    ("batch", "CronJob"): (("batch/v1", "Job"), ("v1", "Pod")),
    DEPLOYMENT: (("apps/v1", "ReplicaSet"), ("v1", "Pod")),
}
"""The kinds that controllers create for an object of the kind, owners first; for all other kinds pods are assumed."""

_CONFIGURATIONS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


def last_seen(cluster: Cluster, ref: Ref, state: State, manifest: Manifest | None) -> str:
    """Return why an object is not ready (or not deleted): its own status, and what can be found beyond it."""
    # A condition and an event may tell the same, in words that differ after the first colon in a pod's name.
    found = [said for said in _outside_causes(cluster, ref, manifest) if f"{said.partition(':')[0]}:" not in state.reason]
    return "; ".join([f"{ref}: {state.reason}", *found])


def _outside_causes(cluster: Cluster, ref: Ref, manifest: Manifest | None) -> list[str]:
    if manifest is None:
        return []
    if manifest["metadata"].get("deletionTimestamp"):
        return [deletion_state(manifest).reason, *_api_services(cluster, manifest), *_dependents(cluster, ref, manifest)]
    if ref.group_kind == POD:
        return list(filter(None, [event_of_pod(cluster, manifest)]))
    said = event_of(cluster, manifest, normal=ref.group_kind == CLAIM)
    return list(filter(None, [why_queued(cluster, manifest), said, *_pods(cluster, manifest)]))


def newest_event(cluster: Cluster, manifest: Manifest) -> Manifest:
    """Return the newest event of this object, empty if there is none. Of events within one second a warning counts."""
    with contextlib.suppress(MusterError):
        events = cluster.events_of(ref_of(manifest), manifest["metadata"].get("uid"))
        return max(events, key=lambda event: (event_time(event), event.get("type") == "Warning"), default={})
    return {}


def event_time(event: Manifest) -> str:
    """Return the time of an event, truncated to seconds: reporters differ in precision, which would break the order."""
    series = event.get("series") or {}
    moment = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    return str(moment or event["metadata"].get("creationTimestamp") or "")[:19]


def event_of(cluster: Cluster, manifest: Manifest, *, normal: bool = False) -> str:
    """The last event of an object in words, where it is a warning; with NORMAL whatever it is."""
    event = newest_event(cluster, manifest)
    return _in_words(event) if event and (normal or event.get("type") == "Warning") else ""


def _in_words(event: Manifest) -> str:
    message = " ".join(str(event.get("message") or "").removeprefix(_COMBINED).split()).rstrip(".")
    return f"{event.get('reason')}: {message}"[:_LONGEST]


def event_of_pod(cluster: Cluster, manifest: Manifest) -> str:
    """Return what blocks a pod whose own status has no reason (a volume, a probe, a sandbox), or only that a claim is not bound."""
    if waits_for_claim(manifest):
        return _claims(cluster, manifest)
    return why_queued(cluster, manifest) or (event_of(cluster, manifest) if pod(manifest).reason in _BARE else "")


def _claims(cluster: Cluster, manifest: Manifest) -> str:
    """Return why the first unbound claim of a pod is not bound."""
    for volume in (manifest.get("spec") or {}).get("volumes") or []:
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if not name:
            continue
        with contextlib.suppress(MusterError):
            claim = cluster.get(Ref("v1", "PersistentVolumeClaim", name, manifest["metadata"].get("namespace")))
            if claim and (claim.get("status") or {}).get("phase") == "Pending":
                said = event_of(cluster, claim, normal=True)
                return f"{name} {said}" if said else f"{name} is not bound"
    return ""


def why_no_pods(cluster: Cluster, manifest: Manifest, *, or_stuck: bool = False) -> str:
    """Return why a workload's pods cannot be created (quota, Pod Security, a limit); empty if the last ones could.

    With OR_STUCK also why one of them does not start, where that does not pass by itself.
    """
    event = newest_event(cluster, manifest)
    refused = _in_words(event) if event.get("reason") == "FailedCreate" else ""
    return refused or (next(iter(_pods(cluster, manifest, stuck=True)), "") if or_stuck else "")


def _pods(cluster: Cluster, manifest: Manifest, *, stuck: bool = False) -> list[str]:
    """The pods of a workload that are not ready, equal reasons once. STUCK: only those that wait for what a user has to do."""
    desired = _selector(manifest)
    if not desired or group_kind(manifest) == SERVICE:
        return []
    try:
        pods = cluster.list("v1", "Pod", manifest["metadata"].get("namespace"), desired)
    except MusterError:
        return []
    by_reason: dict[str, list[Manifest]] = {}
    for item in pods:
        state = pod(item)
        if not state.ready and (not stuck or why_not_running(item)[1]):
            by_reason.setdefault(state.reason.rstrip("."), []).append(item)
    lines = []
    for reason, items in list(by_reason.items())[:_SHOWN]:
        said = event_of_pod(cluster, items[0])
        name, more = items[0]["metadata"]["name"], f" (and {len(items) - 1} more)" if len(items) > 1 else ""
        lines.append(f"pod {name}{more} {reason}{f' ({said})' if said else ''}")
    return [*lines, f"{len(by_reason) - _SHOWN} more reasons"] if len(by_reason) > _SHOWN else lines


def _selector(manifest: Manifest) -> str:
    spec = manifest.get("spec") or {}
    if "leaderWorkerTemplate" in spec:
        return selector_of({"leaderworkerset.sigs.k8s.io/name": manifest["metadata"]["name"]})
    selector = spec.get("selector")
    labels = selector.get("matchLabels") if isinstance(selector, dict) else None
    return selector_of(labels or {})


def _api_services(cluster: Cluster, manifest: Manifest) -> list[str]:
    """Return the APIServices that block the deletion of a namespace: its content is listed in each API, also in unavailable ones."""
    if group_kind(manifest) != NAMESPACE:
        return []
    said = " ".join(
        str(row.get("message"))
        for row in conditions(manifest)
        if row.get("status") == "True" and str(row.get("type")).startswith("NamespaceDeletion")
    )
    named = dict.fromkeys(f"{version}.{group}" for group, version in _VERSIONS.findall(said))
    return [reason for name in list(named)[:_SHOWN] if (reason := _api_service(cluster, name))]


def _api_service(cluster: Cluster, name: str) -> str:
    advice = "repair what serves it, or delete the APIService where no client needs it"
    try:
        found = cluster.get(Ref(_SERVICE, "APIService", name))
    except MusterError:
        return f"its APIService is {name}: {advice}"
    service = ((found or {}).get("spec") or {}).get("service")
    if found is None or not service:
        return ""  # served by the API server itself
    available = condition(found, "Available")
    if not available or available.get("status") == "True":
        return ""
    return f"APIService {name} (Service {service['namespace']}/{service['name']}) does not answer ({reason_of(available)}): {advice}"


def _dependents(cluster: Cluster, ref: Ref, manifest: Manifest) -> list[str]:
    """Return the dependents that an object deleted in the foreground waits for."""
    metadata = manifest["metadata"]
    if "foregroundDeletion" not in (metadata.get("finalizers") or []):
        return []
    makers, left = {metadata.get("uid")}, list[str]()
    for api_version, kind in _MADE.get(ref.group_kind, (("v1", "Pod"),)):
        with contextlib.suppress(MusterError):
            for item in cluster.list(api_version, kind, ref.namespace, _selector(manifest) or None):
                if any(row.get("uid") in makers for row in item["metadata"].get("ownerReferences") or []):
                    makers.add(item["metadata"].get("uid"))
                    left.insert(0, f"{kind} {item['metadata']['name']} {deletion_state(item).reason}")
    more = [f"{len(left) - _SHOWN} more"] if len(left) > _SHOWN else []
    return [f"still there of what came of it: {', '.join([*left[:_SHOWN], *more])}"] if left else []


def ready_endpoints(cluster: Cluster, service: Ref) -> int:
    """Count the ready endpoints of a Service; by the API's definition one without the condition is ready."""
    slices = cluster.list("discovery.k8s.io/v1", "EndpointSlice", service.namespace, f"kubernetes.io/service-name={service.name}")
    endpoints = (row for piece in slices for row in piece.get("endpoints") or [])
    return sum((row.get("conditions") or {}).get("ready") is not False for row in endpoints)


# Webhooks


def with_webhook_hints(cluster: Cluster, failures: Sequence[MusterError]) -> Sequence[MusterError]:
    """The failures; those of a webhook that does not answer have a hint about who should."""
    known: dict[str, str] = {}
    for failure in failures:
        name = failure.named.get("webhook")
        if name and not failure.hint:
            if name not in known:
                known[name] = _about_webhook(cluster, name, failure.named.get("host", ""), trusted="untrusted" not in failure.named)
            failure.hint = known[name]
    return failures


def _about_webhook(cluster: Cluster, name: str, host: str, *, trusted: bool) -> str:
    configuration = _configuration(cluster, name)
    whose = f" of {configuration}" if configuration else ""
    service, _dot, rest = host.partition(".")
    namespace, _dot, domain = rest.partition(".")
    if domain != "svc":
        return f"Webhook {name}{whose} is served by {host or 'an unknown host'}: that must answer, or the webhook must go."
    state, advice = _served(cluster, Ref("v1", "Service", service, namespace), trusted=trusted)
    left_over = f"delete {configuration or 'its configuration'} where what it belonged to was removed"
    return f"Webhook {name}{whose} is served by Service {namespace}/{service}, {state}: {advice}, or {left_over}."


def _configuration(cluster: Cluster, name: str) -> str:
    """Return the configuration that registers the webhook of that name."""
    for kind in _CONFIGURATIONS:
        with contextlib.suppress(MusterError):
            for item in cluster.list("admissionregistration.k8s.io/v1", kind):
                if any(row.get("name") == name for row in item.get("webhooks") or []):
                    return f"{kind} {item['metadata']['name']}"
    return ""


def _served(cluster: Cluster, ref: Ref, *, trusted: bool) -> tuple[str, str]:
    """Return the state of the Service behind a webhook, and the next step."""
    try:
        if cluster.get(ref) is None:
            return "which does not exist", "install what brings the Service"
        ready = ready_endpoints(cluster, ref)
    except MusterError:
        return "which could not be looked at", "see that its pods are ready"
    if not ready:
        return "which has no ready endpoints", f"get its pods ready (kubectl -n {ref.namespace} get pods)"
    state = f"which has {ready} ready {'endpoint' if ready == 1 else 'endpoints'}"
    if not trusted:
        return state, "its certificate and the caBundle of the configuration must fit"
    return state, "see the log of its pods, and whether the API server can reach them (firewall, NetworkPolicy)"

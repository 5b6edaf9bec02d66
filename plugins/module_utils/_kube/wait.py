# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait for many objects at once, by watching them.

Private to the collection.
"""

from __future__ import annotations

import collections
import concurrent.futures
import threading
import typing as t

from .cluster import Cluster
from .errors import Failed, Gone, MusterError, ServerError, Unreachable, WaitTimeout
from .objects import Manifest, Ref
from .pace import SYSTEM_CLOCK, Clock
from .pool import OnProgress, Progress
from .ready import Predicate, State, pod, state_of

Predicates = t.Mapping[str, Predicate]
"""Readiness by kind, where a caller knows better than ready.py."""

_CHUNK = 10.0
"""Seconds of one watch: the longest time that a finished wait hangs on for a group that stays silent."""
_REASONS_TOLD = 3
_REASONS_WITHIN = 5.0
"""Seconds to ask for the reasons of pods, once time is up."""
_UNSEEN = State(False, "was not seen yet")


class _Tracker:
    """The last known state of every object that is waited for. Shared by the threads that watch."""

    def __init__(self, cluster: Cluster, refs: t.Iterable[Ref], predicates: Predicates) -> None:
        self._cluster = cluster
        self._predicates = predicates
        self._lock = threading.Lock()
        self._binding: dict[str, bool] = {}
        self.states: dict[Ref, State] = dict.fromkeys(refs, _UNSEEN)
        self.objects: dict[Ref, Manifest | None] = {}
        self.trouble: MusterError | None = None
        """What the API server failed with last, None where it answers."""
        self.broken = False
        """Set when one thread cannot go on (no right to watch), so that the others need not."""

    def see(self, ref: Ref, manifest: Manifest | None) -> None:
        """Take note of an object as it is now (None: it is not there)."""
        if ref not in self.states:
            return
        predicate = self._predicates.get(ref.kind)
        state = predicate(manifest) if predicate else state_of(manifest, ref.kind, ref.api_version)
        if not state.ready and manifest and ref.kind == "PersistentVolumeClaim" and self._binds_late(manifest):
            state = State(True, "is bound with its first pod")
        with self._lock:
            self.states[ref], self.objects[ref] = state, manifest

    def pending(self, refs: t.Iterable[Ref] | None = None) -> list[Ref]:
        with self._lock:
            return [ref for ref in (refs or self.states) if not self.states[ref].ready]

    @property
    def failed(self) -> list[Ref]:
        with self._lock:
            return [ref for ref, state in self.states.items() if state.failed]

    @property
    def over(self) -> bool:
        """Whether the outcome is known already."""
        return self.broken or bool(self.failed)

    def _binds_late(self, claim: Manifest) -> bool:
        """Whether the claim's class waits for a first consumer, so that waiting for the volume would be for ever."""
        if (claim.get("status") or {}).get("phase", "Pending") != "Pending":
            return False
        name = (claim.get("spec") or {}).get("storageClassName")
        if not name:
            return False
        if name not in self._binding:
            found = self._cluster.get(Ref("storage.k8s.io/v1", "StorageClass", name)) or {}
            self._binding[name] = found.get("volumeBindingMode") == "WaitForFirstConsumer"
        return self._binding[name]


def wait_until(
    cluster: Cluster,
    refs: t.Sequence[Ref],
    *,
    timeout: float,
    predicates: Predicates | None = None,
    known: t.Mapping[Ref, Manifest | None] | None = None,
    label_selector: str | None = None,
    goal: str = "ready",
    on_progress: OnProgress | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> dict[Ref, Manifest | None]:
    """Return the objects once each is ready; WaitTimeout or Failed otherwise. What ``known`` shows ready costs no request."""
    tracker = _Tracker(cluster, refs, predicates or {})
    for ref, manifest in (known or {}).items():
        tracker.see(ref, manifest)
    progress = Progress(on_progress, clock)
    deadline = clock.monotonic() + timeout

    def follow(group: list[Ref]) -> None:
        try:
            _follow(
                cluster, tracker, group, label_selector, deadline, clock, lambda: progress.tell(_told(tracker, goal))
            )
        except MusterError:
            tracker.broken = True
            raise

    groups = _groups(tracker.pending())
    if groups:
        with concurrent.futures.ThreadPoolExecutor(len(groups)) as pool:
            for finished in [pool.submit(follow, group) for group in groups]:
                finished.result()
    if tracker.failed:
        raise _failed(cluster, tracker)
    if tracker.pending():
        raise _timed_out(cluster, tracker, goal, timeout)
    return tracker.objects


def _groups(refs: t.Iterable[Ref]) -> list[list[Ref]]:
    by_place: dict[tuple[str, str, str | None], list[Ref]] = collections.defaultdict(list)
    for ref in refs:
        by_place[ref.api_version, ref.kind, ref.namespace].append(ref)
    return list(by_place.values())


def _follow(
    cluster: Cluster, tracker: _Tracker, group: list[Ref], selector: str | None, deadline: float, clock: Clock,
    changed: t.Callable[[], None],
) -> None:  # fmt: skip
    """Watch the objects of one kind and namespace until all are ready, one failed, or time is up."""
    first = group[0]
    name, selector = (first.name, None) if len(group) == 1 else (None, selector)
    version: str | None = None
    while tracker.pending(group) and not tracker.over and clock.monotonic() < deadline:
        try:
            left = deadline - clock.monotonic()
            if version is None:
                version = _look(cluster, tracker, group, selector, within=max(1.0, left))
                tracker.trouble = None
                continue
            chunk = max(1.0, min(_CHUNK, left))
            for event in cluster.watch(first.api_version, first.kind, first.namespace, label_selector=selector, name=name,
                                       resource_version=version, timeout=chunk):  # fmt: skip
                metadata = event.object["metadata"]
                version = metadata.get("resourceVersion") or version
                if event.type == "BOOKMARK":
                    continue
                seen = Ref(first.api_version, first.kind, metadata["name"], first.namespace)
                tracker.see(seen, None if event.type == "DELETED" else event.object)
                changed()
                if not tracker.pending(group) or tracker.over:
                    return
        except Gone:
            version = None  # the history before this is gone from the server: read again
        except (Unreachable, ServerError) as exc:
            version, tracker.trouble = None, exc  # it may be restarting, and the deadline bounds our patience
            clock.sleep(1.0)


def _look(cluster: Cluster, tracker: _Tracker, group: list[Ref], selector: str | None, *, within: float) -> str:
    """Read the present state; the version from which to watch."""
    first = group[0]
    if len(group) == 1:
        found = cluster.get(first, within=within)
        tracker.see(first, found)
        return str(found["metadata"]["resourceVersion"]) if found else ""
    listing = cluster.list(first.api_version, first.kind, first.namespace, selector, within=within)
    by_name = {item["metadata"]["name"]: item for item in listing}
    for ref in group:
        tracker.see(ref, by_name.get(ref.name))
    return listing.resource_version


def _told(tracker: _Tracker, goal: str) -> str:
    pending, total = tracker.pending(), len(tracker.states)
    first = f"; {pending[0]} {tracker.states[pending[0]].reason}" if pending else ""
    return f"{total - len(pending)} of {total} {goal}{first}"


def last_seen(cluster: Cluster, ref: Ref, state: State, manifest: Manifest | None) -> str:
    """Why an object is not ready, with the reasons of its pods where it has some."""
    return "; ".join([f"{ref}: {state.reason}", *_pods_of(cluster, manifest)])


def _pods_of(cluster: Cluster, manifest: Manifest | None) -> list[str]:
    selector = ((manifest or {}).get("spec") or {}).get("selector")
    labels = selector.get("matchLabels") if isinstance(selector, dict) else None
    if manifest is None or not labels or manifest["kind"] == "Service":
        return []
    try:
        wanted = ",".join(f"{key}={value}" for key, value in labels.items())
        pods = cluster.list("v1", "Pod", manifest["metadata"].get("namespace"), wanted, within=_REASONS_WITHIN)
    except MusterError:
        return []  # a reason that cannot be read must not hide the one that was
    by_reason: dict[str, list[str]] = {}
    for item in pods:
        state = pod(item)
        if not state.ready:
            by_reason.setdefault(state.reason.rstrip("."), []).append(item["metadata"]["name"])
    told = [f"pod {names[0]}{_and_more(names)} {reason}" for reason, names in by_reason.items()]
    rest = [f"{len(told) - _REASONS_TOLD} more reasons"] if len(told) > _REASONS_TOLD else []
    return [*told[:_REASONS_TOLD], *rest]


def _and_more(names: list[str]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""


def _failed(cluster: Cluster, tracker: _Tracker) -> Failed:
    told = [last_seen(cluster, ref, tracker.states[ref], tracker.objects.get(ref)) for ref in tracker.failed]
    return Failed("Will not get ready: " + ". ".join(told) + ".", ref=tracker.failed[0], details={"last_seen": told})


def _timed_out(cluster: Cluster, tracker: _Tracker, goal: str, timeout: float) -> WaitTimeout:
    pending, trouble = tracker.pending(), tracker.trouble
    if trouble:  # nobody is there to be asked for the reasons
        told = [f"{ref}: {tracker.states[ref].reason}" for ref in pending]
    else:
        told = [last_seen(cluster, ref, tracker.states[ref], tracker.objects.get(ref)) for ref in pending]
    lately = f" {trouble.message}" if trouble else ""
    return WaitTimeout(
        f"{len(pending)} of {len(tracker.states)} objects not {goal} after {timeout:g} s. {'. '.join(told)}.{lately}",
        last_seen=told, ref=pending[0],
    )  # fmt: skip

# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait for many objects at once, by watching them."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import typing as t

from .._core.brief import most_common
from .._core.clock import LEAST_FOR_AN_ANSWER, Deadline
from .._core.errors import Failed, Forbidden, MusterError, ServerError, Unreachable, WaitTimeout
from .._core.pool import PARALLEL, OnProgress, Progress, run_all_or_raise
from .._core.waiting import fixed_interval, wait_for
from .cluster import Cluster
from .objects import CLAIM, GroupKind, Manifest, Ref, grouped
from .ready import Predicate, State, deletion_state, recreated_by, state_of

Predicates = t.Mapping[GroupKind, Predicate]
"""Readiness by kind, where a caller knows better than ready.py."""

_CHUNK = 10.0
"""Seconds of one watch, and so the longest time that a finished wait is held up by a group without changes."""
_UNWATCHED = 2.0
"""Seconds between two readings of what may not be watched."""
_EXPLAINED = 20
"""Number of objects whose reasons are searched at the deadline, so that the message stays readable."""
_REASONS_WITHIN = 2.0
"""Seconds for all requests after the deadline."""
_WITH_PODS: frozenset[GroupKind] = frozenset({
    ("", "ReplicationController"), ("apps", "DaemonSet"), ("apps", "Deployment"), ("apps", "ReplicaSet"), ("apps", "StatefulSet"),
    ("batch", "Job"), ("kubeflow.org", "PyTorchJob"), ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
})  # fmt: skip
"""Kinds whose status counts pods. Only events tell that these are refused, and only the pods why they do not start."""
_UNSEEN = State(False, "was not seen yet")


class _Tracker:
    """The last known state of every object that is waited for, shared by the watching threads."""

    def __init__(self, cluster: Cluster, refs: t.Iterable[Ref], predicates: Predicates) -> None:
        self._cluster = cluster
        self._predicates = predicates
        self._lock = threading.Lock()
        self._binding: dict[str, bool | Forbidden] = {}
        self._uids: dict[Ref, str] = {}
        self.states: dict[Ref, State] = dict.fromkeys(refs, _UNSEEN)
        self.objects: dict[Ref, Manifest | None] = {}
        self.refused: dict[Ref, str] = {}
        """The reasons why pods of an object cannot be created or do not start, as far as they were read."""
        self.trouble: BaseException | None = None
        """The API server's failure at the deadline; None if it answered."""
        self.broken = False
        """Set when one thread cannot continue (no right to watch), so that the others end, too."""

    def see(self, ref: Ref, manifest: Manifest | None) -> None:
        """Record an object as it is now (None: it does not exist)."""
        if ref not in self.states:
            return
        predicate = self._predicates.get(ref.group_kind)
        state = predicate(manifest) if predicate else state_of(manifest, ref.kind, ref.api_version)
        if manifest and not state.ready:
            if predicate is deletion_state:
                state = self._deletion_progress(ref, manifest, state)
            elif ref.group_kind == CLAIM and not predicate:
                state = self._unbound(manifest, state)
        with self._lock:
            self.states[ref], self.objects[ref] = state, manifest

    def inspect(self, group: t.Iterable[Ref]) -> None:
        """Find out what no change of an object shows: that a claim waits for its pod, that the pods of a workload are refused or stuck."""
        asked = False
        for ref in self.pending(group):
            manifest = self.objects.get(ref)
            if manifest is None or manifest["metadata"].get("deletionTimestamp"):
                continue
            if ref.group_kind == CLAIM:
                self.see(ref, manifest)
            elif ref.group_kind in _WITH_PODS and not asked:
                asked = True  # one of them is enough: each costs a request
                from .reasons import why_no_pods

                said = why_no_pods(self._cluster, manifest, or_stuck=True)
                with self._lock:
                    self.refused[ref] = said

    def pending(self, refs: t.Iterable[Ref] | None = None) -> list[Ref]:
        with self._lock:
            return [ref for ref in (refs or self.states) if not self.states[ref].ready]

    @property
    def failed(self) -> list[Ref]:
        with self._lock:
            return [ref for ref, state in self.states.items() if state.failed]

    @property
    def is_decided(self) -> bool:
        """Whether the outcome is known already."""
        return self.broken or bool(self.failed)

    def _deletion_progress(self, ref: Ref, manifest: Manifest, state: State) -> State:
        """The state of an object that is being deleted, or that it is gone and another one has its name."""
        metadata = manifest["metadata"]
        with self._lock:
            first = self._uids.setdefault(ref, metadata.get("uid", ""))
        if metadata.get("uid", "") == first or metadata.get("deletionTimestamp"):
            return state
        return State(False, recreated_by(manifest))

    def _unbound(self, claim: Manifest, state: State) -> State:
        """The state of an unbound claim, with the news that its class waits for a first consumer, or does not exist."""
        name = (claim.get("spec") or {}).get("storageClassName")
        if not name or (claim.get("status") or {}).get("phase", "Pending") != "Pending":
            return state
        if name not in self._binding:
            try:
                found = self._cluster.get(Ref("storage.k8s.io/v1", "StorageClass", name))
            except Forbidden as exc:
                self._binding[name] = exc
            else:
                if found is None:  # it may still be created, and volumes may name a class that does not exist
                    return State(False, f"{state.reason}: there is no StorageClass {name}")
                self._binding[name] = found.get("volumeBindingMode") == "WaitForFirstConsumer"
        from .reasons import newest_event

        late = self._binding[name]
        if late is True or (isinstance(late, Forbidden) and newest_event(self._cluster, claim).get("reason") == "WaitForFirstConsumer"):
            return State(True, "is bound with its first pod")
        if isinstance(late, Forbidden):
            return State(False, f"{state.reason} (when StorageClass {name} binds could not be read: {late.message})")
        return state


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
) -> dict[Ref, Manifest | None]:
    """Return the objects once each is ready; WaitTimeout after TIMEOUT seconds, or Failed. What ``known`` shows ready costs no request."""
    tracker = _Tracker(cluster, refs, predicates or {})
    for ref, manifest in (known or {}).items():
        with contextlib.suppress(Unreachable, ServerError):  # it is read again below
            tracker.see(ref, manifest)
    progress, deadline = Progress(on_progress, cluster.clock), Deadline(timeout, cluster.clock)

    def follow(group: list[Ref]) -> None:
        follower = _Follower(cluster, tracker, group, label_selector, deadline, progress, goal)
        try:
            wait_for(follower.observe, goal="", deadline=deadline, pause=follower.watch, progress=progress)
        except WaitTimeout as exc:
            tracker.trouble = tracker.trouble or exc.__cause__  # raised below, for all groups together
        except MusterError:
            tracker.broken = True
            raise

    groups = list(grouped(tracker.pending()).values())
    run_all_or_raise(follow, groups, parallel=len(groups))
    if tracker.failed:
        seen_last = _reasons(cluster, tracker, tracker.failed)
        raise Failed("Will not get ready: " + ". ".join(seen_last) + ".", ref=tracker.failed[0], details={"last_seen": seen_last})
    if tracker.pending():
        raise _timed_out(cluster, tracker, goal, timeout)
    return tracker.objects


@dataclasses.dataclass
class _Follower:
    """Watches the objects of one kind and namespace until all are ready, or one of any group failed."""

    cluster: Cluster
    tracker: _Tracker
    group: list[Ref]
    selector: str | None
    deadline: Deadline
    progress: Progress
    goal: str
    version: str | None = None
    """The version from which to watch; None if the objects have to be read first."""

    def observe(self) -> tuple[None, str | None]:
        if self.version is None:
            self.version = self._read(self.cluster.within(self.deadline.answer_timeout))
        return None, None if self._is_decided else _progress_line(self.tracker, self.goal)

    @property
    def _is_decided(self) -> bool:
        return not self.tracker.pending(self.group) or self.tracker.is_decided

    def _read(self, cluster: Cluster) -> str:
        """Record the present state; returns the version from which to watch."""
        first = self.group[0]
        if len(self.group) == 1:
            found = cluster.get(first)
            self.tracker.see(first, found)
            return str(found["metadata"]["resourceVersion"]) if found else ""
        try:
            listing = cluster.list(first.api_version, first.kind, first.namespace, self.selector)
        except Forbidden:  # some may only read what they name
            for ref in self.tracker.pending(self.group):
                self.tracker.see(ref, cluster.get(ref))
            return ""
        by_name = {item["metadata"]["name"]: item for item in listing}
        for ref in self.group:
            self.tracker.see(ref, by_name.get(ref.name))
        return listing.resource_version

    def watch(self, left: float) -> None:
        """Record changes for a while. After a broken watch all is read again, because changes may have been missed."""
        try:
            self._watch(left)
        except Forbidden:
            fixed_interval(_UNWATCHED, self.deadline.clock)(left)

    def _watch(self, left: float) -> None:
        version, self.version = self.version or "", None
        first, began = self.group[0], self.deadline.clock.monotonic()
        name, selector = (first.name, None) if len(self.group) == 1 else (None, self.selector)
        events = self.cluster.watch(
            first.api_version, first.kind, first.namespace, label_selector=selector, name=name,
            resource_version=version, timeout=max(LEAST_FOR_AN_ANSWER, min(_CHUNK, left)),
        )  # fmt: skip
        for event in events:
            metadata = event.object["metadata"]
            version = metadata.get("resourceVersion") or version
            if event.type == "BOOKMARK":
                continue
            seen = Ref(first.api_version, first.kind, metadata["name"], first.namespace)
            self.tracker.see(seen, None if event.type == "DELETED" else event.object)
            self.progress.report(_progress_line(self.tracker, self.goal))
            if self._is_decided:
                break
        else:
            self.tracker.inspect(self.group)
            # A proxy in front of the server may end every watch at once; without a pause we would then send requests without end.
            fixed_interval(LEAST_FOR_AN_ANSWER - (self.deadline.clock.monotonic() - began), self.deadline.clock)(left)
        self.version = version


def _progress_line(tracker: _Tracker, goal: str) -> str:
    pending, total = tracker.pending(), len(tracker.states)
    done = f"{total - len(pending)} of {total} {goal}"
    if not pending:
        return done
    refused = [(ref, f"{tracker.states[ref].reason}; {tracker.refused[ref]}") for ref in pending if tracker.refused.get(ref)]
    subject, reason = most_common(refused or [(ref, tracker.states[ref].reason) for ref in pending])
    return f"{done}; {subject} {reason}"


def _reasons(cluster: Cluster, tracker: _Tracker, refs: t.Sequence[Ref], *, ask: bool = True) -> list[str]:
    """A line for each object, with reasons that can be found in a moment if ASK is True."""
    from .reasons import last_seen

    most = _EXPLAINED if ask else 0
    bounded = cluster.within(_REASONS_WITHIN)

    def explain(ref: Ref) -> str:
        return last_seen(bounded, ref, tracker.states[ref], tracker.objects.get(ref))

    return run_all_or_raise(explain, refs[:most], parallel=PARALLEL) + [f"{ref}: {tracker.states[ref].reason}" for ref in refs[most:]]


def _timed_out(cluster: Cluster, tracker: _Tracker, goal: str, timeout: float) -> WaitTimeout:
    pending, trouble = tracker.pending(), tracker.trouble
    seen_last = _reasons(cluster, tracker, pending, ask=trouble is None)
    lately = f" {trouble.message}" if isinstance(trouble, MusterError) else ""
    return WaitTimeout(
        f"{len(pending)} of {len(tracker.states)} objects not {goal} after {round(timeout, 1):g} s. {'. '.join(seen_last)}.{lately}",
        last_seen=seen_last, ref=pending[0],
    )  # fmt: skip

# SPDX-License-Identifier: GPL-3.0-or-later
"""A Lease that serialises runs of one owner while they prune, recreate, or remove the owner.

A Lease (coordination.k8s.io/v1) is held while such a run writes, and is deleted at its end. It is taken by server-side apply under a
field manager of this run alone: of two that come at once the API server refuses the second, because the holder is the first one's field.

A run may be stopped, its machine suspended, or its network away, while another one takes the Lease over. So everything that is written
under a Lease goes through ``Lease.cluster``, which lets nothing out once the last renewal is RENEW_DEADLINE old. It renews then, and ends
the run if another one has taken the Lease. What was already on its way to the API server is stopped by the version that a deletion names:
the run that takes over from one that did not end writes each desired object once (engine.py).
"""

from __future__ import annotations

import getpass
import hashlib
import os
import secrets
import socket
import threading

from .._core.clock import Clock, Deadline, awake_or_not, utc
from .._core.errors import Conflict, Forbidden, LeaseLost, MusterError, NotFound, Rejected, WaitTimeout
from .._core.pool import OnProgress, Progress
from .._core.waiting import wait_for
from .cluster import Cluster
from .objects import FIELD_MANAGER, LABEL_MANAGED_BY, Manifest, Ref, owner_labels, owner_text
from .ready import deletion_state
from .wait import wait_until

DURATION = 15
"""Seconds without a renewal after which a run counts as dead. Measured here, because the clocks of two machines may differ."""
RENEW_DEADLINE = 10.0
"""Seconds since the last renewal for which a run relies on its Lease. Shorter than DURATION, as in client-go's leader election (its
LeaseDuration is 15 s, its RenewDeadline 10 s), because a request takes time, too."""
_RENEW_EVERY = 5.0
_TRIES = 3
"""Renewals in a row that may each take longer than RENEW_DEADLINE, before the Lease counts as lost."""
HOME = "default"
"""One namespace for all runs of an owner, whatever namespaces their objects are in. It cannot be deleted."""


def name_of(prefix: str, owner: str) -> str:
    """Name of an object that is kept for an owner. The digest keeps names unique where owners differ in letters that names cannot have."""
    readable = "".join(letter if letter.isalnum() else "-" for letter in owner.lower())
    return f"{prefix}-{readable}-{hashlib.sha256(owner.encode()).hexdigest()[:8]}"


class Lease:
    """``with Lease(...)``: no other run of the owner meanwhile. ``guarded`` is False if the rights did not suffice for a Lease."""

    def __init__(self, cluster: Cluster, owner: str, namespace: str, *, timeout: float, on_progress: OnProgress | None = None) -> None:
        self._cluster, self._owner, self._namespace = cluster, owner, namespace
        self._timeout, self._on_progress, self._clock = timeout, on_progress, cluster.clock
        self._manager = f"{FIELD_MANAGER}-run-{secrets.token_hex(8)}"
        self._holder = f"{_user()}@{socket.gethostname()} (process {os.getpid()}, {self._manager})"
        self._since = _stamp(cluster.clock)
        self._released = threading.Event()
        self._lost = ""
        self._ref: Ref | None = None
        self.uid = ""
        self._renewed = 0.0
        self._lock = threading.Lock()
        self.cluster = cluster.guarded(self.check)
        """Guard all requests of the run that holds the Lease: no write is sent once another run may hold it."""
        self.took_over = False
        """Whether the run before this one did not end. What it sent last may still be under way."""

    @property
    def guarded(self) -> bool:
        """Whether this run has the Lease, still."""
        return self._ref is not None and not self._lost

    @property
    def lost(self) -> bool:
        """Whether this run had the Lease, and another one has taken it."""
        return bool(self._lost)

    def check(self) -> None:
        """Raise LeaseLost if another run has taken the Lease. A request is sent only if the last renewal is too long ago to know.

        A run that got no Lease, because it has not the right, goes on without one.
        """
        if self._ref is None:
            return
        with self._lock:
            for _try in range(_TRIES):
                if self._lost or self._age < RENEW_DEADLINE:
                    break
                self._renew(self._ref)
            else:
                self._lost = self._lost or f"Lost the Lease: the API server took over {RENEW_DEADLINE:g} s to renew it."
        if self._lost:
            raise LeaseLost(
                self._lost, ref=self._ref,
                hint="This run stopped before its next request. Run again, to see what is to be done now.",
            )  # fmt: skip

    @property
    def _age(self) -> float:
        return awake_or_not(self._clock) - self._renewed

    @property
    def warnings(self) -> list[str]:
        """The warnings for the user: that there is no Lease, because the rights did not suffice."""
        if self._ref:
            return []
        where = " nor in ".join(dict.fromkeys((HOME, self._namespace)))
        return [
            f"This run of {self._owner} held no Lease (coordination.k8s.io), which it may not create in {where}. "
            "See to it that no other run of it is at work at the same time."
        ]

    def __enter__(self) -> Lease:
        for namespace in dict.fromkeys((HOME, self._namespace)):
            ref = _ref(self._owner, namespace)
            try:
                self._acquire(ref)
            except (Forbidden, NotFound, Rejected):
                continue
            self._ref = ref
            threading.Thread(target=self._keep, args=(ref,), daemon=True).start()
            break
        return self

    def __exit__(self, *_exc: object) -> None:
        self._released.set()
        if self._ref and not self._lost:
            try:
                self._cluster.delete(self._ref, dry_run=False, uid=self.uid)
            except MusterError:  # the Lease expires by itself
                return

    def _acquire(self, ref: Ref) -> None:
        deadline = Deadline(self._timeout, self._clock)
        other: Manifest | None = None

        def take() -> tuple[None, str | None]:
            nonlocal other
            try:
                self._write(ref)
            except Conflict:
                other = self._cluster.get(ref)
                return None, f"waiting for {_holder_of(other)}" if other else "the other run ends"
            return None, None

        def until_free(left: float) -> None:
            if other and not self._wait_for_holder(ref, other) and left <= DURATION:
                raise self._refusal(ref, other)

        wait_for(take, goal=f"{ref} is not free", deadline=deadline, pause=until_free,
                 progress=Progress(self._on_progress, self._clock))  # fmt: skip

    def _wait_for_holder(self, ref: Ref, seen: Manifest) -> bool:
        """Wait for the other run to end. One that does not renew its Lease meanwhile is dead, and the Lease is deleted."""
        try:
            wait_until(self._cluster, [ref], timeout=DURATION, predicates={ref.group_kind: deletion_state}, goal="gone")
        except WaitTimeout:
            now = self._cluster.get(ref)
        else:
            return True
        if now is None or now["metadata"]["resourceVersion"] != seen["metadata"]["resourceVersion"]:
            return now is None
        # Only this version of the Lease: another waiting run may have taken it over a moment ago.
        self._cluster.delete(ref, dry_run=False, uid=now["metadata"]["uid"],
                             resource_version=now["metadata"]["resourceVersion"])  # fmt: skip
        self.took_over = True
        return True

    def _refusal(self, ref: Ref, other: Manifest) -> Conflict:
        return Conflict(
            f"Another run works on the objects of {owner_text(self._owner)}: {_holder_of(other)}.", ref=ref,
            hint=f"Nothing was changed. Run again when it has ended. The Lease of a run that was killed expires within {DURATION} s.",
        )  # fmt: skip

    def _write(self, ref: Ref) -> None:
        labels = {LABEL_MANAGED_BY: FIELD_MANAGER, **owner_labels(self._owner)}
        spec = {"holderIdentity": self._holder, "leaseDurationSeconds": DURATION, "acquireTime": self._since,
                "renewTime": _stamp(self._clock)}  # fmt: skip
        metadata = {"name": ref.name, "namespace": ref.namespace, "labels": labels}
        if self.uid:  # a Lease that was deleted meanwhile must not be made again
            metadata["uid"] = self.uid
        manifest = {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": metadata, "spec": spec}
        sent = awake_or_not(self._clock)
        self.uid = self._cluster.apply(manifest, dry_run=False, manager=self._manager)["metadata"]["uid"]
        self._renewed = sent

    def _renew(self, ref: Ref) -> None:
        """Renew the Lease, or note who has it now."""
        age = self._age
        try:
            self._write(ref)
        except (Conflict, NotFound):
            self._lost = f"Lost the Lease to {self._taker(ref)}: this run had not renewed it for {age:.0f} s."

    def _taker(self, ref: Ref) -> str:
        try:
            other = self._cluster.get(ref)
        except MusterError:
            return "another run"
        return _holder_of(other) if other else "another run, which has ended since"

    def _keep(self, ref: Ref) -> None:
        while not self._released.wait(_RENEW_EVERY):
            try:
                with self._lock:
                    self._renew(ref)
            except MusterError:
                continue  # the next try may reach the API server again
            if self._lost:
                return


def holder(cluster: Cluster, owner: str, namespace: str) -> Ref | None:
    """The Lease that a run of the owner holds now, or None."""
    for where in dict.fromkeys((HOME, namespace)):
        ref = _ref(owner, where)
        try:
            if cluster.get(ref):
                return ref
        except Forbidden:
            continue
    return None


def _ref(owner: str, namespace: str) -> Ref:
    return Ref("coordination.k8s.io/v1", "Lease", name_of("muster", owner), namespace)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the user ID of a container may have no name
        return str(os.getuid())


def _stamp(clock: Clock) -> str:
    return utc(clock).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _holder_of(live: Manifest) -> str:
    """The holder, and the time at which it took the Lease by its own clock, which may differ from that of this machine."""
    spec = live.get("spec") or {}
    since = f" since {spec['acquireTime']}" if spec.get("acquireTime") else ""
    return f"{spec.get('holderIdentity') or 'another client'}{since}"

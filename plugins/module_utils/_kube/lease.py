# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One run at a time for what two runs of an owner must not do at once: prune, recreate, and the removal of an owner.

A Lease (coordination.k8s.io/v1) is held while such a run writes, and is deleted at its end. It is taken by server-side apply under a
field manager of this run alone: of two that come at once the API server refuses the second, because the holder is the first one's field.

Private to the collection.
"""

from __future__ import annotations

import datetime as dt
import getpass
import hashlib
import os
import secrets
import socket
import threading

from .._core.clock import SYSTEM_CLOCK, Clock, Deadline
from .._core.errors import Conflict, Forbidden, MusterError, NotFound, Rejected, WaitTimeout
from .._core.pool import OnProgress, Progress
from .._core.waiting import wait_for
from .cluster import Cluster
from .objects import FIELD_MANAGER, LABEL_MANAGED_BY, LABEL_OWNER, Manifest, Ref
from .ready import deletion_state
from .wait import wait_until

DURATION = 15
"""Seconds without a renewal after which a run counts as dead. Measured here, because the clocks of two machines may differ."""
_RENEW_EVERY = 5.0
HOME = "default"
"""One namespace for all runs of an owner, whatever namespaces their objects are in. It cannot be deleted."""


def name_of(prefix: str, owner: str) -> str:
    """A name for one of our objects about an owner. It has a digest, because owners may differ only in letters that names cannot have."""
    readable = "".join(letter if letter.isalnum() else "-" for letter in owner.lower())
    return f"{prefix}-{readable}-{hashlib.sha256(owner.encode()).hexdigest()[:8]}"


class Lease:
    """``with Lease(...)``: no other run of the owner meanwhile. ``guarded`` is False if the rights did not suffice for a Lease."""

    def __init__(
        self, cluster: Cluster, owner: str, namespace: str, *, timeout: float, on_progress: OnProgress | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:  # fmt: skip
        self._cluster, self._owner, self._namespace = cluster, owner, namespace
        self._timeout, self._on_progress, self._clock = timeout, on_progress, clock
        self._manager = f"{FIELD_MANAGER}-run-{secrets.token_hex(8)}"
        self._holder = f"{_user()}@{socket.gethostname()} (process {os.getpid()}, {self._manager})"
        self._since = _now()
        self._released = threading.Event()
        self._lost = False
        self._ref: Ref | None = None
        self._uid = ""

    @property
    def guarded(self) -> bool:
        """Whether this run has the Lease, still."""
        return self._ref is not None and not self._lost

    @property
    def warnings(self) -> list[str]:
        """What the user should know: that there is no Lease, because the rights did not suffice."""
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
                self._cluster.delete(self._ref, dry_run=False, uid=self._uid)
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
            wait_until(
                self._cluster,
                [ref],
                timeout=DURATION,
                predicates={ref.kind: deletion_state},
                goal="gone",
                clock=self._clock,
            )
        except WaitTimeout:
            now = self._cluster.get(ref)
        else:
            return True
        if now is None or now["metadata"]["resourceVersion"] != seen["metadata"]["resourceVersion"]:
            return now is None
        # Only this version of the Lease: another waiting run may have taken it over a moment ago.
        self._cluster.delete(ref, dry_run=False, uid=now["metadata"]["uid"],
                             resource_version=now["metadata"]["resourceVersion"])  # fmt: skip
        return True

    def _refusal(self, ref: Ref, other: Manifest) -> Conflict:
        return Conflict(
            f"Another run works on the objects of {self._owner}: {_holder_of(other)}.", ref=ref,
            hint=f"Nothing was changed. Run again when it has ended. The Lease of a run that was killed expires within {DURATION} s.",
        )  # fmt: skip

    def _write(self, ref: Ref) -> None:
        labels = {LABEL_MANAGED_BY: FIELD_MANAGER, LABEL_OWNER: self._owner}
        spec = {"holderIdentity": self._holder, "leaseDurationSeconds": DURATION, "acquireTime": self._since,
                "renewTime": _now()}  # fmt: skip
        metadata = {"name": ref.name, "namespace": ref.namespace, "labels": labels}
        manifest = {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": metadata, "spec": spec}
        self._uid = self._cluster.apply(manifest, dry_run=False, manager=self._manager)["metadata"]["uid"]

    def _keep(self, ref: Ref) -> None:
        while not self._released.wait(_RENEW_EVERY):
            try:
                self._write(ref)
            except Conflict:  # not renewed for too long (a suspended laptop), so another run took over
                self._lost = True
                return
            except MusterError:
                continue  # the next try may reach the API server again


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


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _holder_of(live: Manifest) -> str:
    spec = live.get("spec") or {}
    begun, now = str(spec.get("acquireTime") or ""), dt.datetime.now(dt.UTC)
    try:
        age = f", for {(now - dt.datetime.fromisoformat(begun)).total_seconds():.0f} s"
    except ValueError:
        age = ""
    return f"{spec.get('holderIdentity') or 'somebody'}{age}"

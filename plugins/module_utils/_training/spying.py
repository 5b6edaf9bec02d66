# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the stacks of a training's ranks: with the py-spy of their image, or else with that of an ephemeral container."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from .._core.clock import Deadline
from .._core.conditions import reason_of
from .._core.errors import Forbidden, MusterError, NotFound, WaitTimeout
from .._core.pool import PARALLEL, run_all_or_raise
from .._core.waiting import fixed_interval, wait_for
from .._kube.cluster import Cluster
from .._kube.objects import Manifest, Ref, ref_of
from .._kube.pod_status import main_container
from .stacks import Seen, command, seen_in, spy
from .status import Rank

_SET_IMAGE = "Set image to one with py-spy and sh, such as that of recipe py-spy of role local_images."
_WITHOUT_CHECK = "Without check mode it is read from an ephemeral container."
_SAME_USER = "Let image run as the user of the training (run_as_user), or its namespace allow SYS_PTRACE (Pod Security level privileged)."
_MORE_TIME = (
    "Raise wait_timeout. With nonblocking: true a process is also read that cannot be stopped, because the kernel waits for a device."
)
_EVERY = 0.2


@dataclasses.dataclass(frozen=True)
class Spying:
    """The way to read ranks. Without an image, or in check mode, no container is added."""

    cluster: Cluster
    namespace: str
    image: str | None
    nonblocking: bool
    check: bool
    deadline: Deadline

    def read(self, ranks: Sequence[tuple[str, Rank]]) -> list[Seen]:
        """Read these ranks, each with its name, all at once."""
        return run_all_or_raise(self._one, ranks, parallel=PARALLEL)

    def _one(self, of: tuple[str, Rank]) -> Seen:
        name, rank = of
        if rank.phase != "Running" or rank.stuck:
            return Seen(troubles=[rank.reason or f"its pod is {rank.phase}"])
        try:
            main, words = main_container(self._live(rank.pod))["name"], command(nonblocking=self.nonblocking)
            printed = self.cluster.execute(self.namespace, rank.pod, main, words, timeout=self.deadline.answer_timeout)
            seen = seen_in(name, *printed, _SET_IMAGE)
        except MusterError as exc:
            seen = Seen(troubles=[str(exc).rstrip(".")], next=_SET_IMAGE)
        if seen.next and self.deadline.passed:
            return dataclasses.replace(seen, next=_MORE_TIME)
        if not seen.next or not self.image:
            return seen
        if self.check:
            return dataclasses.replace(seen, next=_WITHOUT_CHECK, added=True)
        beside = self._beside(name, rank.pod, self.image)
        if beside.threads:
            return beside
        return dataclasses.replace(seen, troubles=seen.troubles + beside.troubles, next=beside.next, added=beside.added)

    def _beside(self, name: str, pod: str, image: str) -> Seen:
        """Read a rank from an ephemeral container."""
        seen, why = Seen(), ""
        try:
            try:
                container = self._add(pod, image, ptrace=True)
            except Forbidden:  # the right to add one at all, or SYS_PTRACE by Pod Security, which the second try tells apart
                container = self._add(pod, image, ptrace=False)
            seen.added = True
            try:
                wait_for(
                    lambda: (None, _not_ended(self._live(pod), container)),
                    goal=f"Ephemeral container {container} has not ended",
                    deadline=self.deadline,
                    pause=fixed_interval(_EVERY, self.deadline.clock),
                )
            except WaitTimeout as exc:  # what it has printed until then counts
                why = exc.message.rstrip(".")
            return dataclasses.replace(
                seen_in(name, self.cluster.logs(self.namespace, pod, container=container), why, _SAME_USER), added=True
            )
        except MusterError as exc:
            return dataclasses.replace(seen, troubles=[why or str(exc).rstrip(".")])

    def _live(self, pod: str) -> Manifest:
        ref = Ref("v1", "Pod", pod, self.namespace)
        live = self.cluster.get(ref)
        if live is None:
            raise NotFound(f"{ref} does not exist", ref=ref)
        return live

    def _add(self, pod: str, image: str, *, ptrace: bool) -> str:
        live = self._live(pod)
        made = spy(live, image, command(nonblocking=self.nonblocking), ptrace=ptrace)
        # A merge patch replaces lists: an ephemeral container that came meanwhile would go, which the API server refuses.
        all_of_them = [*(live["spec"].get("ephemeralContainers") or []), made]
        self.cluster.patch(ref_of(live), {"spec": {"ephemeralContainers": all_of_them}}, subresource="ephemeralcontainers", dry_run=False)
        return str(made["name"])


def _not_ended(pod: Manifest, name: str) -> str | None:
    """The reason why the container has not ended; None if it has."""
    statuses = (pod.get("status") or {}).get("ephemeralContainerStatuses") or []
    state = next((one.get("state") or {} for one in statuses if one["name"] == name), {})
    if state.get("terminated"):
        return None
    return reason_of(state.get("waiting") or {}) or ("it runs" if state else "it has not started")

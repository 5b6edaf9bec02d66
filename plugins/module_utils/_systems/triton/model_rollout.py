# SPDX-License-Identifier: GPL-3.0-or-later
"""Load a model on all replicas of a server, one after the other, and roll back if one refuses it.

Seen with 2.51.0: a load is all or nothing. If one version fails, the served versions stay as they were; otherwise the old
versions are unloaded only when the new ones are ready. The same holds where the server polls, for each new configuration.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Collection, Mapping

from ..._core.clock import Clock, Deadline
from ..._core.errors import Failed, MusterError
from ..._core.pool import Progress
from ..._core.waiting import fixed_interval, wait_for
from ..._kube.cluster import Cluster
from ..._kube.objects import Manifest, Ref
from ..._manifests.meta import DEPLOYMENT
from .client import READY, Client, Version
from .inference import hint_of
from .replicas import pods_ready_now, reached

_PAUSE = 1.0
_LOADS_S = 3600.0
"""Seconds for one load: a model may have many gigabytes."""
_UNLOADED = "unloaded"
Index = dict[int, Version]
T = t.TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Server:
    """The server that a Deployment describes."""

    ref: Ref
    mode: str
    poll_s: int
    replicas: int
    load_models: tuple[str, ...]

    def starts_with(self, model: str) -> bool:
        """Whether a replica that starts would load MODEL if the store has it."""
        return self.mode != "explicit" or bool({model, "*"} & {*self.load_models})


def server_of(found: Manifest | None, ref: Ref) -> Server | None:
    """The server of a Deployment; None if there is none."""
    if found is None:
        return None
    args = [str(one) for one in found["spec"]["template"]["spec"]["containers"][0].get("args") or []]

    def given(flag: str) -> list[str]:
        return [arg.partition("=")[2] for arg in args if arg.startswith(f"--{flag}=")]

    mode, poll = given("model-control-mode"), given("repository-poll-secs")
    return Server(ref, (mode or ["none"])[-1], int((poll or ["15"])[-1]), int(found["spec"].get("replicas", 1)), tuple(given("load-model")))


def served(index: Index) -> list[int]:
    """The versions that are ready."""
    return sorted(version for version, what in index.items() if what.state == READY)


class Rollout:
    """A model at the replicas of a server."""

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        namespace: str,
        model: str,
        *,
        timeout: float,
        progress: t.Callable[[str], None],
        warn: t.Callable[[str], None],
        clock: Clock,
    ) -> None:
        self._cluster, self._name, self._namespace, self._model = cluster, name, namespace, model
        self._clock, self._deadline, self._progress = clock, Deadline(timeout, clock), Progress(progress, clock)
        ref = Ref(*DEPLOYMENT, name, namespace)
        self.server = server_of(self._cluster.get(ref), ref)
        if self.server and self.server.mode == "none":
            warn(f"{ref} has model_control_mode none: it serves what is uploaded from its next start on only.")
            self.server = None

    @property
    def explicit(self) -> bool:
        """Whether the server loads models on request. Otherwise it polls, or there is no server."""
        return bool(self.server and self.server.mode == "explicit")

    def _pods(self) -> tuple[list[Ref], str | None]:
        """Return the replicas that are ready, and a clause if some are missing."""
        if self.server is None:
            return [], None
        # An autoscaler may have changed the number since.
        live = self._cluster.get(self.server.ref)
        wanted = int(live["spec"].get("replicas", 1)) if live else self.server.replicas
        ready = pods_ready_now(self._cluster, self._name, self._namespace)
        missing = f"{len(ready)} of {wanted} replicas are ready" if len(ready) < wanted else None
        return ready, missing

    def _asked(self, pod: Ref, ask: t.Callable[[Client], T]) -> T | None:
        """Query a replica; None if it is being terminated, such as by an autoscaler."""
        try:
            with reached(self._cluster, pod, timeout=_LOADS_S) as client:
                return ask(client)
        except MusterError:
            live = self._cluster.get(pod)
            if live is None or live["metadata"].get("deletionTimestamp"):
                return None
            raise

    def indexes(self) -> dict[str, Index]:
        """Return the index of the model on each replica that is ready."""
        known = {pod.name: self._asked(pod, lambda client: client.index(self._model)) for pod in self._pods()[0]}
        return {name: index for name, index in known.items() if index is not None}

    def load(self, config: str, *, back: bool) -> None:
        """Load the model with CONFIG at all replicas. If one refuses, all roll back: to the store's configuration (BACK), or to none."""
        touched: list[Ref] = []
        # The replicas, once all are ready.
        for pod in self._wait(self._pods, f"Model {self._model} can be loaded only when all replicas are ready, and they are not"):
            touched.append(pod)
            try:
                self._asked(pod, lambda client: client.load(self._model, config))
            except MusterError as error:
                wrong = self._go_back(touched, back=back)
                error.message += f" {wrong}" if wrong else ""
                raise

    def _go_back(self, pods: Collection[Ref], *, back: bool) -> str:
        wrong = ""
        for pod in pods:
            try:
                self._asked(pod, lambda client: client.load(self._model) if back else client.unload(self._model))
            except MusterError as error:
                wrong = f"Going back failed, too: {error.message}"
        return wrong

    def unload(self) -> None:
        """Unload the model at all replicas that have it, and wait until it is gone."""

        def observe() -> tuple[None, str | None]:
            def ask(client: Client) -> bool:
                if not served(client.index(self._model)):
                    return False
                if self.explicit:
                    client.unload(self._model)
                return True

            there = [pod.name for pod in self._pods()[0] if self._asked(pod, ask)]
            return None, f"it is still served by {', '.join(there)}" if there else None

        self._wait(observe, f"Model {self._model} is not unloaded")

    def wait_served(self, versions: Collection[int], known: Mapping[str, Index]) -> dict[str, list[int]]:
        """Wait until every replica serves exactly VERSIONS. One that has started in the meantime gets a request to load them.

        KNOWN: the indexes before the change, so that an earlier failure is not taken for one of this change.
        """
        wanted, began = sorted(versions), self._clock.monotonic()

        def observe() -> tuple[dict[str, list[int]], str | None]:
            pods, missing = self._pods()
            found, lacks = {}, [missing] if missing else []
            for pod in pods:
                passed = self._clock.monotonic() - began

                def ask(client: Client, pod: Ref = pod, passed: float = passed) -> list[int]:
                    index = client.index(self._model)
                    if served(index) != wanted:
                        self._check_failed(pod, index, wanted, known.get(pod.name) or {}, passed)
                        if self.explicit:
                            client.load(self._model)
                    return served(index)

                serves = self._asked(pod, ask)
                if serves is None:
                    continue
                found[pod.name] = serves
                if serves != wanted:
                    lacks.append(f"{pod.name} serves {_words(serves)}")
            return found, "; ".join(lacks) or None

        return self._wait(observe, f"Model {self._model} is not served in {_words(wanted)} by every replica")

    def _check_failed(self, pod: Ref, index: Index, wanted: Collection[int], known: Index, passed: float) -> None:
        if self.explicit or self.server is None:
            return  # the request to load reports failures
        for version in wanted:
            what = index.get(version)
            if what is None or what.state != "UNAVAILABLE" or what.reason == _UNLOADED:
                continue
            # The index has the reason of the last failure until the next try ends.
            if what != known.get(version) or passed > 3 * self.server.poll_s + 10:
                said = what.reason or "no reason given"
                raise Failed(f"Triton in {pod} refuses to load model {self._model}: version {version}: {said}.", hint_of(said))

    def _wait(self, observe: t.Callable[[], tuple[T, str | None]], goal: str) -> T:
        pause = fixed_interval(_PAUSE, self._clock)
        return wait_for(observe, goal=goal, deadline=self._deadline, pause=pause, progress=self._progress)


def _words(versions: Collection[int]) -> str:
    return f"version {', '.join(map(str, versions))}" if versions else "no version"

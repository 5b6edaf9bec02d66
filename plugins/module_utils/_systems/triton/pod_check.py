# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requests to a server that a pod in the cluster sends, where this machine must not forward ports or does not reach the address.

The pod is temporary. Its log has the responses, which a check then reads like those of a server.

Private to the collection.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import typing as t
from collections.abc import Iterator, Mapping, Sequence

from ..._core.errors import Failed, InvalidInput, NotFound, WaitTimeout
from ..._core.pool import OnProgress
from ..._kube import watching
from ..._kube.engine import apply_objects
from ..._kube.objects import Manifest, Ref, ref_of, selector_of
from ..._kube.removal import delete_objects
from ..._manifests.meta import owner_of
from ..._manifests.pods import PodSettings
from ..._manifests.program_pod import program_pod
from ..._pod_programs import http_requests
from ..._training.status import last_lines, rank_of
from .checking import Opened, unready
from .client import Client
from .inference import Inference
from .server import PORTS

if t.TYPE_CHECKING:
    from ..._kube.cluster import Cluster

_FOLDER = "/opt/muster"
_CONTAINER = "check"
_DONE = "done"
_TASK = "task.json"
_TASK_MAX = 900_000
"""Bytes: a ConfigMap may have 1 MiB, the program included."""
_RESOURCES = {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}}
_BESIDE = 3
"""Requests for readiness and metadata."""
_ENDS_S = 30.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class PodCheck:
    """The requests of a pod. ``places``: name -> URL. ``wait``: seconds until it runs and, with ``waits``, until the model is ready."""

    server: str
    namespace: str
    places: Mapping[str, str]
    inference: Inference
    requests: int
    timeout: int
    wait: int
    waits: bool = False
    url: str | None = None
    """The only URL to check, instead of the replicas."""
    hostname: str | None = None
    authorities: str | None = None

    @property
    def name(self) -> str:
        """The name of the objects: the same for each run of a check, so that a run finds the objects of a killed one."""
        text = json.dumps([self.inference.model, self.inference.model_version, self.url, self.hostname])
        return f"{self.server}-check-{hashlib.sha256(text.encode()).hexdigest()[:6]}"

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the pod. They differ from those of the server's pods, or its Service would select this one."""
        return {"app.kubernetes.io/name": "triton-check", "app.kubernetes.io/instance": self.server}

    @property
    def task(self) -> str:
        """The input of the program, as JSON."""
        path, infers = self.inference.path, self.inference.inputs
        body = json.dumps(self.inference.body) if infers else None
        requests = [
            ["GET", "/v2", None, 1],
            ["GET", path, None, 1],
            ["POST", self.inference.asked, body, self.requests],
        ]
        return json.dumps(
            {
                "urls": list(self.places.values()), "hostname": self.hostname, "authorities": self.authorities,
                "timeout": self.timeout, "ready": f"{path}/ready", "wait": self.wait if self.waits else 0,
                "requests": requests if infers else requests[:-1],
            }
        )  # fmt: skip

    @property
    def longest(self) -> int:
        """The seconds after which the program has ended, even if all requests run into their timeouts."""
        asking = len(self.places) * (self.requests + _BESIDE) * self.timeout
        return asking + (self.wait + self.timeout * len(self.places) if self.waits else 0)


def settings_of(deployment: Manifest | None, image: str | None, ref: Ref) -> PodSettings:
    """A pod with the image of the server, on nodes that have it; or with IMAGE."""
    if not deployment and not image:
        raise NotFound(f"{ref} does not exist, whose image the pod would have.", "Correct name, or give image.", ref=ref)
    spec = deployment["spec"]["template"]["spec"] if deployment else {"containers": [{}]}
    container = spec["containers"][0]
    return PodSettings(
        image=image or container["image"],
        image_pull_policy=container.get("imagePullPolicy") or PodSettings.image_pull_policy,
        image_pull_secrets=[secret["name"] for secret in spec.get("imagePullSecrets") or []],
        node_selector=spec.get("nodeSelector"),
        tolerations=spec.get("tolerations") or (),
        resources=_RESOURCES,
    )


def manifests(check: PodCheck, settings: PodSettings) -> list[Manifest]:
    """The pod with its program."""
    task = check.task
    if len(task.encode()) > _TASK_MAX:
        raise InvalidInput(f"inputs: {len(task.encode())} bytes are more than a pod is given.", "Check without from_pod, or with less.")
    metadata = {"name": check.name, "namespace": check.namespace, "labels": check.labels}
    pod = dataclasses.replace(
        settings,
        command=("python3", f"{_FOLDER}/{_CONTAINER}.py", f"{_FOLDER}/{_TASK}"),
        termination_grace_period_seconds=1,
    )
    config, made = program_pod(metadata, pod, container=_CONTAINER, module=http_requests, folder=_FOLDER, files={_TASK: task})
    made["spec"]["activeDeadlineSeconds"] = check.wait + check.longest + int(_ENDS_S)
    return [config, made]


def urls_of_pods(cluster: Cluster, pods: Sequence[Ref]) -> dict[str, str]:
    """Name of a replica -> its address in the cluster."""
    found = {pod.name: str((cluster.get(pod) or {}).get("status", {}).get("podIP")) for pod in pods}
    return {name: f"http://{f'[{ip}]' if ':' in ip else ip}:{PORTS['http']}" for name, ip in found.items()}


class Recorded(Client):
    """A client that returns the responses which a pod has recorded."""

    def __init__(self, who: str, place: Mapping[str, t.Any], texts: Sequence[str]) -> None:
        self.who = who
        self._error = str(place["error"] or "it was not asked")
        self._texts = texts
        self._answers: dict[str, list[t.Any]] = {}
        for path, *answer in place["answers"]:
            self._answers.setdefault(path, []).append(tuple(answer))
        self._took = 0.0

    def close(self) -> None:
        """Do nothing: there is no connection."""

    def _answer(self, _method: str, path: str, _body: str | None) -> tuple[int, str]:
        left = self._answers.get(path)
        if not left:
            raise OSError(self._error)
        status, text, self._took = left.pop(0) if path.endswith(("/infer", "/generate_stream")) else left[0]
        return status, self._texts[text]

    def infer(self, inference: Inference) -> tuple[dict[str, t.Any], float]:
        """The next answer of the model, and the seconds that it took."""
        answer, _here = super().infer(inference)
        return answer, self._took


@contextlib.contextmanager
def _running(cluster: Cluster, objects: Sequence[Manifest], owner: str) -> Iterator[None]:
    refs = [ref_of(one) for one in objects]

    def remove(*, wait: bool = True) -> None:
        delete_objects(cluster, refs, owner, check=False, wait=wait, wait_timeout=_ENDS_S)

    remove()  # objects that a killed run has left
    try:
        apply_objects(cluster, objects, owner=owner, check=False, wait=False)
        yield
    finally:
        remove(wait=False)
        # A pod whose image is still being pulled is deleted later; the timeout must not hide the cause of the failure.
        with contextlib.suppress(WaitTimeout):
            remove()


class _Pod:
    """The pod of a check while it runs."""

    def __init__(self, cluster: Cluster, check: PodCheck, progress: OnProgress) -> None:
        self._cluster, self._check, self._progress = cluster, check, progress
        self._ref = Ref("v1", "Pod", check.name, check.namespace)

    def _phase(self, cluster: Cluster) -> str:
        """Return the pod's phase, with the reason if it is pending; raise Failed if it cannot succeed."""
        ref, found = self._ref, cluster.get(self._ref)
        if found is None:
            raise Failed(
                f"{ref}, which checks the server, is gone.",
                "Somebody deleted it, or its node is gone. Run again.",
                ref=ref,
            )
        rank = rank_of(found)
        # A service mesh may have added a container to the pod, which does not end.
        statuses = found.get("status", {}).get("containerStatuses") or []
        states = [one.get("state") or {} for one in statuses if one["name"] == _CONTAINER]
        ended = next((state["terminated"] for state in states if "terminated" in state), None)
        if ended and not ended.get("exitCode"):
            return _DONE
        if ended or rank.phase == "Failed":
            why = last_lines((ended or {}).get("message") or "") or rank.reason or "its log is empty"
            raise Failed(f"{ref} could not check the server: {why}", ref=ref)
        return rank.phase if rank.phase != "Pending" else f"Pending: {rank.pending_reason}"

    def wait(self, done: t.Callable[[str], bool], goal: str, timeout: float) -> None:
        """Wait until DONE accepts its phase."""

        def observe(cluster: Cluster) -> tuple[None, str | None]:
            seen = self._phase(cluster)
            return None, None if done(seen) else seen

        pods = watching.Changes.of_pods(self._check.namespace, selector_of(self._check.labels))
        goal = f"{self._ref}, which checks the server, {goal}"
        watching.watch_until(self._cluster, pods, observe, goal=goal, timeout=timeout, progress=self._progress)

    def said(self) -> dict[str, t.Any]:
        """Parse the last line of its log."""
        text = self._cluster.logs(self._check.namespace, self._check.name, container=_CONTAINER)
        try:
            found: dict[str, t.Any] = json.loads(text.splitlines()[-1])
        except (IndexError, ValueError) as error:
            raise Failed(
                f"The log of {self._ref} is not whole: {len(text)} bytes.",
                "Outputs may be larger than what a node keeps of a log.",
                ref=self._ref,
            ) from error
        return found


def asked_by_pod(cluster: Cluster, check: PodCheck, settings: PodSettings, progress: OnProgress) -> dict[str, Opened]:
    """Return name of a place -> client with its responses; raise WaitTimeout if the model did not become ready in time."""
    pod = _Pod(cluster, check, progress)
    with _running(cluster, manifests(check, settings), owner_of("inference_check", check.namespace, check.name)):
        pod.wait(lambda phase: not phase.startswith("Pending"), "does not run", check.wait)
        pod.wait(_DONE.__eq__, "does not end", check.longest + _ENDS_S)
        said = pod.said()
    found: dict[str, Opened] = {}
    for name, place in zip(check.places, said["places"], strict=True):
        found[name] = functools.partial(Recorded, f"Triton at {name}", place, said["texts"])
    missing = unready(found, check.inference) if check.waits else None
    if missing:
        raise WaitTimeout(
            f"Model {check.inference.model} is not ready after {check.wait} s. Last seen: {missing}",
            last_seen=[missing],
        )
    return found

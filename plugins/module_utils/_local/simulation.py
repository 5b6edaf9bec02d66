# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated nodes: how kwok changes Node objects with the label type=kwok, and the pods on them. No I/O.

kwok works in stages; each selects objects and gives them a status. The capacity of a Node is in an annotation, because the API
server drops the status of a new Node. So are its taints: the node controller writes that list, too, so we cannot own the field.
"""

from __future__ import annotations

import hashlib
import json
import typing as t

Stage = dict[str, t.Any]
CAPACITY_ANNOTATION = "muster.ml/simulated-capacity"
TAINTS_ANNOTATION = "muster.ml/simulated-taints"
ENDLESS_ANNOTATION = "muster.ml/simulated-endless"

NODE_TAINTS = """
taints: {{ index .metadata.annotations "muster.ml/simulated-taints" }}
"""

NODE_STATUS = """
{{ $now := Now }}
{{ $capacity := index .metadata.annotations "muster.ml/simulated-capacity" }}
phase: Running
conditions:
{{ range NodeConditions }}
- {type: {{ .type }}, status: {{ .status | Quote }}, reason: {{ .reason }}, message: {{ .message | Quote }},
   lastHeartbeatTime: {{ $now | Quote }}, lastTransitionTime: {{ $now | Quote }}}
{{ end }}
addresses:
- {type: InternalIP, address: {{ NodeIP | Quote }}}
- {type: Hostname, address: {{ NodeName | Quote }}}
capacity: {{ $capacity }}
allocatable: {{ $capacity }}
nodeInfo: {architecture: amd64, operatingSystem: linux, kubeletVersion: simulated, kubeProxyVersion: simulated,
           containerRuntimeVersion: simulated, kernelVersion: simulated, osImage: simulated by kwok,
           bootID: "", machineID: "", systemUUID: ""}
"""

POD_RUNNING = """
{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
conditions:
{{ range list "Initialized" "Ready" "ContainersReady" }}
- {type: {{ . }}, status: "True", lastTransitionTime: {{ $now | Quote }}}
{{ end }}
{{ range .spec.readinessGates }}
- {type: {{ .conditionType | Quote }}, status: "True", lastTransitionTime: {{ $now | Quote }}}
{{ end }}
containerStatuses:
{{ range .spec.containers }}
- {name: {{ .name | Quote }}, image: {{ .image | Quote }}, ready: true, started: true, restartCount: 0,
   state: {running: {startedAt: {{ $now | Quote }}}}}
{{ end }}
initContainerStatuses:
{{ range .spec.initContainers }}
- {name: {{ .name | Quote }}, image: {{ .image | Quote }}, ready: true, restartCount: 0,
   state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}}}
{{ end }}
{{ with NodeIPWith .spec.nodeName }}
hostIP: {{ . | Quote }}
{{ end }}
{{ with PodIPWith .spec.nodeName (or .spec.hostNetwork false) (or .metadata.uid "") (or .metadata.name "") (or .metadata.namespace "") }}
podIP: {{ . | Quote }}
podIPs:
- {ip: {{ . | Quote }}}
{{ end }}
"""

POD_COMPLETED = """
{{ $now := Now }}
phase: Succeeded
containerStatuses:
{{ range .spec.containers }}
- {name: {{ .name | Quote }}, image: {{ .image | Quote }}, ready: false, started: false, restartCount: 0,
   state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}}}
{{ end }}
"""


def stages() -> list[Stage]:
    """A node is tainted and Ready at once; a pod runs at once, and one of a Job succeeds unless an annotation prevents it."""
    alive = _match(".metadata.deletionTimestamp", "DoesNotExist")
    taints = {"patches": [{"root": "spec", "type": "merge", "template": NODE_TAINTS}]}
    return [
        # Tainted before it is Ready, so that no pod lands on it by chance in between.
        _stage("node-tainted", "Node", [_tainted("NotIn")], taints),
        _stage("node-ready", "Node", [_tainted("In"), _ready("NotIn")], {"statusTemplate": NODE_STATUS}),
        _stage("pod-running", "Pod", [alive, _match(".status.phase", "In", "Pending")], {"statusTemplate": POD_RUNNING}),
        _stage(
            "pod-completed",
            "Pod",
            [
                alive,
                _match(".status.phase", "In", "Running"),
                _match(".metadata.ownerReferences.[].kind", "In", "Job"),
                _match(f'.metadata.annotations["{ENDLESS_ANNOTATION}"]', "DoesNotExist"),
            ],
            {"statusTemplate": POD_COMPLETED},
        ),
        _stage("pod-deleted", "Pod", [_match(".metadata.deletionTimestamp", "Exists")], {"delete": True}),
    ]


def stages_text() -> str:
    return "\n---\n".join(json.dumps(stage) for stage in stages()) + "\n"


def stages_id() -> str:
    return hashlib.sha256(stages_text().encode()).hexdigest()[:12]


def _stage(name: str, kind: str, conditions: list[dict[str, t.Any]], next_: dict[str, t.Any]) -> Stage:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {"resourceRef": {"apiGroup": "v1", "kind": kind}, "selector": {"matchExpressions": conditions}, "next": next_},
    }


def _match(key: str, operator: str, *values: str) -> dict[str, t.Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def _tainted(operator: str) -> dict[str, t.Any]:
    return _match('.spec.taints.[] | select( .key == "kwok.x-k8s.io/node" ) | .value', operator, "fake")


def _ready(operator: str) -> dict[str, t.Any]:
    return _match('.status.conditions.[] | select( .type == "Ready" ) | .status', operator, "True")

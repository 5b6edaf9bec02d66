# SPDX-License-Identifier: GPL-3.0-or-later

"""Replicas of several hosts each, as a LeaderWorkerSet: the leader of a group answers clients, its workers hold their parts of the model.

All pods of a group are replaced when one of them has ended (LeaderWorkerSet 0.9, RecreateGroupOnPodRestart), because the others would
wait for it. Its controller gives each container LWS_LEADER_ADDRESS, LWS_GROUP_SIZE and LWS_WORKER_INDEX.
"""

from __future__ import annotations

import dataclasses

from ..._manifests import network_policy, replicas
from ..._manifests.meta import LEADER_WORKER_SET, Manifest
from ..._manifests.operators import type_of
from ..._manifests.pods import PodSettings, pod_template

ARGUMENTS = ("--nnodes=$(LWS_GROUP_SIZE)", "--node-rank=$(LWS_WORKER_INDEX)", "--master-addr=$(LWS_LEADER_ADDRESS)")
"""The flags of ``vllm serve`` by which the pods of a group find each other, without Ray (vLLM 0.32.0, ``vllm serve --help``)."""


def leader_worker_set(server: replicas.Replicas, hosts: int, leader: Manifest, pod: PodSettings, env: list[Manifest]) -> Manifest:
    """The groups. LEADER: the template of the first pod, POD: the settings of the others, which clients are not led to.

    A group ends only after another one got ready, as a pod of a Deployment does.
    """
    labels = {**server.labels, "app.kubernetes.io/name": _workers(server)}
    bare = dataclasses.replace(
        pod,
        args=[*pod.args, "--headless"],
        ports=(),
        startup_probe=None,
        readiness_probe=None,
        liveness_probe=None,
        termination_grace_period_seconds=server.spare,
    )
    worker = pod_template(bare, container=server.app, labels=labels, selector=labels, env=env)
    worker["spec"].update({key: leader["spec"][key] for key in ("automountServiceAccountToken", "enableServiceLinks")})
    return {
        "apiVersion": LEADER_WORKER_SET[0],
        "kind": LEADER_WORKER_SET[1],
        "metadata": server.queued_metadata,
        "spec": {
            **({} if server.replicas is None else {"replicas": server.replicas}),
            # Otherwise the controller's headless Service would have the name of ours.
            "networkConfig": {"subdomainPolicy": "UniquePerReplica"},
            "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxSurge": 1, "maxUnavailable": 0}},
            "leaderWorkerTemplate": {
                "size": hosts,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": leader,
                "workerTemplate": worker,
            },
        },
    }


def with_workers(server: replicas.Replicas, objects: list[Manifest]) -> list[Manifest]:
    """OBJECTS, of which NetworkPolicy and disruption budget select the workers, too. Pods of a group reach each other at every port."""
    names = {"key": "app.kubernetes.io/name", "operator": "In", "values": [server.app, _workers(server)]}
    every = {"matchLabels": {"app.kubernetes.io/instance": server.name}, "matchExpressions": [names]}
    for one in objects:
        if type_of(one) == (network_policy.API_VERSION, network_policy.KIND):
            one["spec"]["podSelector"] = every
            one["spec"]["ingress"].append({"from": [{"podSelector": every}]})
        elif type_of(one) == ("policy/v1", "PodDisruptionBudget"):
            one["spec"]["selector"] = every
    return objects


def _workers(server: replicas.Replicas) -> str:
    """Their value of the label by which Service, metrics and checks find the pods that answer."""
    return f"{server.app}-worker"

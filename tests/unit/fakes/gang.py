# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes, pods and templates in a few words."""

import typing as t

Manifest = dict[str, t.Any]
GPU = "nvidia.com/gpu"
NAMESPACE = "ml"


class Things:
    """Makes objects as an API server tells of them."""

    def node(self, name: str, *, ready: bool = True, labels: Manifest | None = None, **more: t.Any) -> Manifest:
        """A node. MORE: cpu, memory, gpu, pods, and other resources; taints, cordoned."""
        taints, cordoned = more.pop("taints", []), more.pop("cordoned", False)
        allocatable = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
        if "gpu" in more:
            allocatable[GPU] = str(more.pop("gpu"))
        allocatable |= {key.replace("__", "/"): str(value) for key, value in more.items()}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
            "spec": {"taints": taints, **({"unschedulable": True} if cordoned else {})},
            "status": {
                "allocatable": allocatable,
                "conditions": [{"type": "Ready", "status": "True" if ready else "False", "reason": "KubeletNotReady"}],
            },
        }

    def nodes(self, number: int, **more: t.Any) -> list[Manifest]:
        return [self.node(f"n{at}", **more) for at in range(number)]

    def container(self, name: str = "main", *, limits: Manifest | None = None, **requests: t.Any) -> Manifest:
        """A container. A request of gpu is one of nvidia.com/gpu."""
        named = {GPU if key == "gpu" else key.replace("__", "/").replace("_", "-"): str(v) for key, v in requests.items()}
        resources = {**({"requests": named} if named else {}), **({"limits": limits} if limits else {})}
        return {"name": name, "image": "x", **({"resources": resources} if resources else {})}

    def template(self, *containers: Manifest, labels: Manifest | None = None, **spec: t.Any) -> Manifest:
        return {"metadata": {"labels": labels or {"app": "a"}}, "spec": {"containers": list(containers or [self.container()]), **spec}}

    def group(self, replicas: int, *containers: Manifest, name: str = "worker", **more: t.Any) -> Manifest:
        return {"name": name, "replicas": replicas, "template": self.template(*containers, **more)}

    def pod(self, name: str, node: str = "", *containers: Manifest, phase: str = "Running", **more: t.Any) -> Manifest:
        """A live pod. MORE: labels, namespace, and fields of its spec."""
        metadata = {"name": name, "namespace": more.pop("namespace", NAMESPACE), "labels": more.pop("labels", {})}
        spec = {"containers": list(containers or [self.container()]), **more, **({"nodeName": node} if node else {})}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}

    def quota(self, hard: Manifest, used: Manifest | None = None, **spec: t.Any) -> Manifest:
        status = {"hard": hard, "used": {**dict.fromkeys(hard, "0"), **(used or {})}}
        return {"metadata": {"name": "q", "namespace": NAMESPACE}, "spec": {"hard": hard, **spec}, "status": status}

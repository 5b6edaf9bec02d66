# SPDX-License-Identifier: GPL-3.0-or-later
"""The manifests of role gpu_drivers: a DaemonSet that installs NVIDIA's driver or a device plugin on the nodes, or NVIDIA's GPU Operator.

DaemonSets are built from documented facts about the installers and the plugin; nothing is copied from their own manifests.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Mapping, Sequence

from .._core.errors import InvalidInput
from .meta import ANNOTATION_SERVES, Manifest, compact, metadata
from .operators import type_of
from .pods import READ_ONLY_CONTAINER, RESTRICTED_CONTAINER, text

NAMESPACE = "kube-system"
DRIVER = "/home/kubernetes/bin/nvidia"
VULKAN = f"{DRIVER}/vulkan/icd.d"
PLUGINS = "/var/lib/kubelet/device-plugins"

# On nodes with the second label GKE installs the driver itself, so our DaemonSet must not run there.
GKE_NODES: Manifest = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {"key": "cloud.google.com/gke-accelerator", "operator": "Exists"},
                        {"key": "cloud.google.com/gke-gpu-driver-version", "operator": "DoesNotExist"},
                    ]
                }
            ]
        }
    }
}

_GPU_TAINT: Manifest = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


_POLICY = ("nvidia.com/v1", "ClusterPolicy")
_PARTS = ("daemonsets", "dcgm", "dcgmExporter", "devicePlugin", "driver", "gfd", "nodeStatusExporter", "operator", "toolkit")
"""Fields of a ClusterPolicy that its definition requires (gpu-operator d73a008 of September 2025, nvidia.com_clusterpolicies.yaml)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GpuDrivers:
    """The installers of the driver and their images, or the operator. Only what the flavour needs has to be there."""

    flavour: str
    manifest: str = ""
    """URL or path of the manifest of the operator; empty: another program installed it."""
    manifest_sha256: str = ""
    cluster_policy: Mapping[str, t.Any] | None = None
    """The spec of the ClusterPolicy; None: another program made it."""
    version: str = "default"
    cos_installer_image: str = ""
    ubuntu_installer_image: str = ""
    pause_image: str = ""
    device_plugin_image: str = ""
    device_plugin_env: Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    device_plugin_node_selector: Mapping[str, str] | None = None
    device_plugin_tolerations: Sequence[Mapping[str, t.Any]] = ()
    simulated_image: str = ""
    simulated_gpus: int = 2
    resource: str = "nvidia.com/gpu"


@dataclasses.dataclass(frozen=True)
class HostFolder:
    """A folder of the node that a container sees."""

    name: str
    path: str
    mount: str


def manifests(drivers: GpuDrivers, released: Sequence[Manifest] = ()) -> list[Manifest]:
    """The DaemonSet of the flavour, or the operator of the RELEASED manifest with its policy; nothing if others install the driver."""
    if drivers.flavour == "gpu_operator":
        return [*(one for one in released if drivers.cluster_policy is None or type_of(one) != _POLICY), *_policy(drivers)]
    if drivers.flavour not in DAEMONSETS:
        return []
    name, app, pod = DAEMONSETS[drivers.flavour]
    return [_daemonset(name, app, pod(drivers))]


def _policy(drivers: GpuDrivers) -> list[Manifest]:
    """The ClusterPolicy; the operator ignores a second one."""
    if drivers.cluster_policy is None:
        return []
    described = {**metadata("cluster-policy"), "annotations": {ANNOTATION_SERVES: "resource:nvidia.com/gpu"}}
    spec = {**{part: {} for part in _PARTS}, **drivers.cluster_policy}
    return [{"apiVersion": _POLICY[0], "kind": _POLICY[1], "metadata": described, "spec": spec}]


def _daemonset(name: str, app: str, pod: Manifest) -> Manifest:
    labels = {"app.kubernetes.io/name": app, "app.kubernetes.io/component": "gpu-drivers"}
    shared = {"priorityClassName": "system-node-critical", "automountServiceAccountToken": False}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {**metadata(name, NAMESPACE, labels), "annotations": {ANNOTATION_SERVES: "resource:nvidia.com/gpu"}},
        "spec": {
            "selector": {"matchLabels": {"app.kubernetes.io/name": app}},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": labels}, "spec": {**shared, **pod}},
        },
    }


def _cos_pod(drivers: GpuDrivers) -> Manifest:
    latest = ["--version=latest"] if drivers.version == "latest" else []
    places = {
        "NVIDIA_INSTALL_DIR": (DRIVER, "/usr/local/nvidia"),
        "VULKAN_ICD_DIR": (VULKAN, "/etc/vulkan/icd.d"),
        "COS_TOOLS_DIR": ("/var/lib/cos-tools", "/build/cos-tools"),
    }
    env = {"ROOT_MOUNT_DIR": "/root"}
    for name, (host, container) in places.items():
        env |= {f"{name}_HOST": host, f"{name}_CONTAINER": container}
    folders = [
        HostFolder("dev", "/dev", "/dev"),
        HostFolder("host", "/", "/root"),
        HostFolder("driver", *places["NVIDIA_INSTALL_DIR"]),
        HostFolder("vulkan", *places["VULKAN_ICD_DIR"]),
        HostFolder("tools", *places["COS_TOOLS_DIR"]),
    ]
    install = {"image": _image(drivers, "cos_installer_image"), "command": ["/cos-gpu-installer", "install", *latest], "env": _env(env)}
    return {**_installing_pod(drivers, install, folders), "hostNetwork": True}


def _ubuntu_pod(drivers: GpuDrivers) -> Manifest:
    folders = [HostFolder("dev", "/dev", "/dev"), HostFolder("boot", "/boot", "/boot"), HostFolder("host", "/", "/root")]
    return _installing_pod(drivers, {"image": _image(drivers, "ubuntu_installer_image")}, folders)


def _installing_pod(drivers: GpuDrivers, install: Manifest, folders: Sequence[HostFolder]) -> Manifest:
    """The work is done once, by an init container, from an image that is on the node already.

    The main container does nothing, so that a changed DaemonSet (a new driver) runs the init container again.
    """
    pause = {
        "name": "pause",
        "image": _image(drivers, "pause_image"),
        "resources": {"requests": {"cpu": "1m", "memory": "4Mi"}},
        "securityContext": READ_ONLY_CONTAINER,
    }
    installer = {
        "name": "install",
        "imagePullPolicy": "Never",
        "resources": {"requests": {"cpu": "150m"}},
        # Only a privileged container can load kernel modules.
        "securityContext": {"privileged": True},
        "volumeMounts": [{"name": folder.name, "mountPath": folder.mount} for folder in folders],
        **install,
    }
    return {
        "hostPID": True,
        "affinity": GKE_NODES,
        "tolerations": [{"operator": "Exists"}],
        "volumes": [{"name": folder.name, "hostPath": {"path": folder.path}} for folder in folders],
        "initContainers": [installer],
        "containers": [pause],
    }


def _plugin_pod(drivers: GpuDrivers) -> Manifest:
    # On a node without a driver the plugin must not crash for ever: the node then reports no GPU, and the role names it.
    env = {"FAIL_ON_INIT_ERROR": "false", **drivers.device_plugin_env}
    plugin = {"name": "nvidia-device-plugin", "image": _image(drivers, "device_plugin_image"), "env": _env(env)}
    return _registering_pod(drivers, plugin)


def _simulated_pod(drivers: GpuDrivers) -> Manifest:
    if drivers.simulated_gpus < 1:
        raise InvalidInput(
            f"flavour simulated: simulated_gpus is {drivers.simulated_gpus}.",
            hint="Set it to 1 or more, or install nothing with flavour none.",
        )
    plugin = {
        "name": "simulated-gpus",
        "image": _image(drivers, "simulated_image"),
        "args": [f"--resource={drivers.resource}", f"--count={drivers.simulated_gpus}"],
        "resources": {"requests": {"cpu": "1m", "memory": "16Mi"}},
    }
    return _registering_pod(drivers, plugin)


def _registering_pod(drivers: GpuDrivers, plugin: Manifest) -> Manifest:
    """A device plugin: it registers at a socket of the kubelet, and serves another one beside it."""
    plugin = {**plugin, "securityContext": RESTRICTED_CONTAINER, "volumeMounts": [{"name": "device-plugins", "mountPath": PLUGINS}]}
    return compact(
        {
            "nodeSelector": drivers.device_plugin_node_selector,
            "tolerations": [_GPU_TAINT, *(dict(one) for one in drivers.device_plugin_tolerations)],
            "volumes": [{"name": "device-plugins", "hostPath": {"path": PLUGINS, "type": "Directory"}}],
            "containers": [plugin],
        }
    )


def _env(variables: Mapping[str, t.Any]) -> list[Manifest]:
    return [{"name": name, "value": text(value, f"env {name}: value")} for name, value in variables.items()]


def _image(drivers: GpuDrivers, option: str) -> str:
    image = str(getattr(drivers, option))
    if not image:
        raise InvalidInput(f"flavour {drivers.flavour}: {option} is missing.", hint="Name the image.")
    return image


# Flavour -> name of its DaemonSet, name in its labels, pod.
DAEMONSETS: dict[str, tuple[str, str, t.Callable[[GpuDrivers], Manifest]]] = {
    "gke_cos": ("nvidia-driver-installer", "nvidia-driver-installer", _cos_pod),
    "gke_ubuntu": ("nvidia-driver-installer", "nvidia-driver-installer", _ubuntu_pod),
    "nvidia_device_plugin": ("nvidia-device-plugin-daemonset", "nvidia-device-plugin", _plugin_pod),
    "simulated": ("simulated-gpus", "simulated-gpus", _simulated_pod),
}

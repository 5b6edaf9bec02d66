# SPDX-License-Identifier: GPL-3.0-or-later
"""The DaemonSets that bring GPU drivers and the device plugin."""

import typing as t

import pytest

from ansible_collections.muster.ml.plugins.module_utils._core.errors import InvalidInput
from ansible_collections.muster.ml.plugins.module_utils._manifests.gpu_drivers import GpuDrivers, manifests

Golden = t.Callable[..., None]
IMAGES = {
    "cos_installer_image": "cos-nvidia-installer:fixed",
    "ubuntu_installer_image": "gke-nvidia-installer:fixed",
    "pause_image": "registry.k8s.io/pause:3.10",
    "device_plugin_image": "nvcr.io/nvidia/k8s-device-plugin:v0.20.0",
    "simulated_image": "muster.local/simulated-gpus:1.36.3",
}


@pytest.mark.parametrize(
    ("flavour", "more"),
    [
        ("gke_cos", {"version": "latest"}),
        (
            "nvidia_device_plugin",
            {
                "device_plugin_env": {"MIG_STRATEGY": "single"},
                "device_plugin_node_selector": {"gpu": "true"},
                "device_plugin_tolerations": [{"key": "team", "operator": "Exists"}],
            },
        ),
        ("simulated", {"simulated_gpus": 4, "device_plugin_node_selector": {"gpu": "simulated"}}),
    ],
)
def test_a_flavour(golden: Golden, flavour: str, more: dict[str, t.Any]) -> None:
    golden(f"gpu_drivers_{flavour}", manifests(GpuDrivers(flavour=flavour, **IMAGES, **more)))


def test_the_installer_of_ubuntu(golden: Golden) -> None:
    cos, ubuntu = (manifests(GpuDrivers(flavour=flavour, **IMAGES)) for flavour in ("gke_cos", "gke_ubuntu"))
    golden("gpu_drivers_gke_ubuntu", ubuntu, cos)


# Shows row 000.2.
@pytest.mark.parametrize("flavour", ["managed", "none"])
def test_somebody_else_brings_the_driver(flavour: str) -> None:
    assert manifests(GpuDrivers(flavour=flavour)) == []


@pytest.mark.parametrize(
    ("flavour", "image"),
    [
        ("gke_cos", "cos_installer_image"),
        ("gke_ubuntu", "pause_image"),
        ("nvidia_device_plugin", "device_plugin_image"),
        ("simulated", "simulated_image"),
    ],
)
def test_a_missing_image_is_named(flavour: str, image: str) -> None:
    with pytest.raises(InvalidInput, match=f"flavour {flavour}: {image} is missing"):
        manifests(GpuDrivers(flavour=flavour, **{**IMAGES, image: ""}))


def test_simulated_gpus_are_at_least_one() -> None:
    with pytest.raises(InvalidInput, match=r"simulated_gpus is 0\..* flavour none"):
        manifests(GpuDrivers(flavour="simulated", **IMAGES, simulated_gpus=0))


@pytest.mark.parametrize("value", [True, 3.1, None])
def test_what_yaml_did_not_read_as_text_is_refused(value: t.Any) -> None:
    with pytest.raises(InvalidInput, match=r"env A: value is not text but .*quotes"):
        manifests(GpuDrivers(flavour="nvidia_device_plugin", **IMAGES, device_plugin_env={"A": value}))


def test_the_operator_is_installed_whole_with_one_policy() -> None:
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "gpu-operator"}}
    theirs = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "cluster-policy"}, "spec": {"mig": {}}}
    given: dict[str, t.Any] = {"flavour": "gpu_operator", "manifest": "m", "manifest_sha256": "s"}
    assert manifests(GpuDrivers(flavour="gpu_operator")) == []
    assert manifests(GpuDrivers(**given), [deployment, theirs]) == [deployment, theirs]
    made = manifests(GpuDrivers(**given, cluster_policy={"driver": {"enabled": False}}), [deployment, theirs])
    assert [one["kind"] for one in made] == ["Deployment", "ClusterPolicy"]
    assert made[1]["metadata"] == {"name": "cluster-policy", "annotations": {"muster.ml/serves": "resource:nvidia.com/gpu"}}
    parts = ("daemonsets", "dcgm", "dcgmExporter", "devicePlugin", "gfd", "nodeStatusExporter", "operator", "toolkit")
    assert made[1]["spec"] == {"driver": {"enabled": False}, **{part: {} for part in parts}}

# SPDX-License-Identifier: GPL-3.0-or-later
"""What Google has where: regions, zones, machine types, accelerators, TPU topologies. A real subset, as documented in 2025 and 2026.

cloud.google.com/compute/docs/regions-zones, .../gpus/gpu-regions-zones, .../machine-resource;
cloud.google.com/kubernetes-engine/docs/concepts/tpus and .../how-to/gpus. Which zone has which accelerator changes; the table is a
snapshot (assumed where the documents name a machine type and not the zone).
"""

import re
from dataclasses import dataclass

ZONES = {
    "us-central1": "abcf",
    "us-central2": "b",
    "us-east1": "bcd",
    "us-east4": "abc",
    "us-east5": "abc",
    "us-west1": "abc",
    "us-west4": "abc",
    "europe-west1": "bcd",
    "europe-west4": "abc",
    "asia-east1": "abc",
    "asia-southeast1": "abc",
}
GPUS = {
    "nvidia-tesla-t4": {
        "us-central1": "abcf", "us-east1": "cd", "us-east4": "abc", "us-west1": "ab", "us-west4": "ab", "europe-west1": "bcd",
        "europe-west4": "abc", "asia-east1": "ac", "asia-southeast1": "abc",
    },
    "nvidia-l4": {
        "us-central1": "abc", "us-east1": "bcd", "us-east4": "ac", "us-west1": "abc", "us-west4": "ac", "europe-west1": "bc",
        "europe-west4": "abc", "asia-east1": "abc", "asia-southeast1": "abc",
    },
}  # fmt: skip
# How many of an accelerator a machine of the N1 family may be given, and which are built into others.
CHOICE = {"nvidia-tesla-t4": (1, 2, 4)}
BUILT_IN = {"g2-standard-8": ("nvidia-l4", 1), "g2-standard-24": ("nvidia-l4", 2)}
QUOTA_OF_GPU = {"nvidia-tesla-t4": "NVIDIA_T4_GPUS", "nvidia-l4": "NVIDIA_L4_GPUS"}
# (family: GB of memory for each processor, processors to choose from)
FAMILIES = {
    "e2-standard": (4, (2, 4, 8, 16, 32)),
    "n1-standard": (3.75, (1, 2, 4, 8, 16, 32, 64, 96)),
    "g2-standard": (4, (8, 24)),
}
SHARED = {"e2-small": (2, 2), "e2-medium": (2, 4)}
# TPU machine type: (accelerator, processors, chips, zones, topologies of one host, of several).
TWO = ("2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
THREE = ("2x2x2", "2x2x4", "2x4x4", "4x4x4", "4x4x8", "4x8x8", "8x8x8", "8x8x12", "8x8x16", "8x16x16")
# Cloud TPU, "TPU v5p": the largest shapes that its table has; of TPU7x those of xpk.
LARGER = (*THREE, "16x16x16", "16x16x24")
LARGEST = (*LARGER, "16x16x32", "16x24x24")


@dataclass(frozen=True)
class Tpu:
    accelerator: str
    cpus: int
    chips: int
    zones: tuple[str, ...]
    one_host: tuple[str, ...]
    hosts: tuple[str, ...] = ()
    workload_policy: bool = False


V5E = ("us-central1-a", "us-west1-c", "us-west4-a", "us-west4-b", "us-east1-c", "europe-west4-b", "asia-southeast1-b")
V6E = ("us-central1-b", "us-east1-d", "us-east5-a", "us-east5-b", "us-east5-c", "europe-west4-a")
TPUS = {
    "ct4p-hightpu-4t": Tpu("tpu-v4-podslice", 240, 4, ("us-central2-b",), ("2x2x1",), THREE),
    "ct5lp-hightpu-1t": Tpu("tpu-v5-lite-podslice", 24, 1, V5E, ("1x1",)),
    "ct5lp-hightpu-4t": Tpu("tpu-v5-lite-podslice", 112, 4, V5E, ("2x2",), TWO),
    "ct5lp-hightpu-8t": Tpu("tpu-v5-lite-podslice", 224, 8, V5E, ("2x4",)),
    "ct5p-hightpu-4t": Tpu("tpu-v5p-slice", 208, 4, ("us-east5-a", "us-central1-a", "europe-west4-b"), ("2x2x1",), LARGER),
    "ct6e-standard-1t": Tpu("tpu-v6e-slice", 44, 1, V6E, ("1x1",)),
    "ct6e-standard-4t": Tpu("tpu-v6e-slice", 180, 4, V6E, ("2x2",), TWO),
    "ct6e-standard-8t": Tpu("tpu-v6e-slice", 180, 8, V6E, ("2x4",)),
    "tpu7x-standard-4t": Tpu("tpu7x", 224, 4, ("us-central1-c",), ("2x2x1",), LARGEST, workload_policy=True),
}  # fmt: skip
DISK_TYPES = {"pd-standard": 10, "pd-balanced": 10, "pd-ssd": 10}
# Public images: family: (project, an image of it, GB).
IMAGES = {"debian-12": ("debian-cloud", "debian-12-bookworm-v20261104", 10)}


def regions() -> list[str]:
    return list(ZONES)


def zones(region: str = "") -> list[str]:
    return [f"{name}-{letter}" for name, letters in ZONES.items() if region in ("", name) for letter in letters]


def region_of(place: str) -> str:
    """Of a zone, or a region itself."""
    return place.rsplit("-", 1)[0] if re.fullmatch(r"[a-z]+-[a-z]+\d+-[a-z]", place) else place


def is_zone(place: str) -> bool:
    return place in zones()


def has_gpu(zone: str, gpu: str) -> bool:
    region, letter = region_of(zone), zone[-1]
    return letter in GPUS.get(gpu, {}).get(region, "")


@dataclass(frozen=True)
class Machine:
    name: str
    cpus: int
    memory_mb: int
    gpu: tuple[str, int] | None = None
    tpu: Tpu | None = None
    shared: bool = False

    @property
    def family(self) -> str:
        return self.name.split("-")[0]


def machine(zone: str, name: str) -> Machine | None:
    """A machine type, where a zone has it."""
    found = _machine(name)
    if found is None or (found.gpu and not has_gpu(zone, found.gpu[0])) or (found.tpu and zone not in found.tpu.zones):
        return None
    # us-central2 has nothing but TPUs.
    return None if region_of(zone) == "us-central2" and not found.tpu and found.family not in ("n1", "e2") else found


def _machine(name: str) -> Machine | None:
    if name in SHARED:
        cpus, memory = SHARED[name]
        return Machine(name, cpus, memory * 1024, shared=True)
    if name in TPUS:
        return Machine(name, TPUS[name].cpus, TPUS[name].cpus * 2048, tpu=TPUS[name])
    family, _dash, cpus_text = name.rpartition("-")
    if family not in FAMILIES or not cpus_text.isdigit() or int(cpus_text) not in FAMILIES[family][1]:
        return None
    return Machine(name, int(cpus_text), int(FAMILIES[family][0] * int(cpus_text) * 1024), gpu=BUILT_IN.get(name))

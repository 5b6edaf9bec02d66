# SPDX-License-Identifier: GPL-3.0-or-later
"""The config of a node pool: options in snake case as Google's NodeConfig."""

from __future__ import annotations

import typing as t

from .._cloud.plan import Body, camelled
from .compare import is_map
from .labels import texts

_PLAIN = (
    "machine_type", "disk_size_gb", "disk_type", "image_type", "labels", "taints", "tags", "metadata", "resource_labels", "spot",
    "service_account", "oauth_scopes",
)  # fmt: skip
_WORDS = ("labels", "metadata", "resource_labels")


def node_config(options: Body) -> Body:
    """Build the desired NodeConfig. ``other`` has fields that have no option; an option wins."""
    given = {name: value for name, value in options.items() if value is not None}
    for name in _WORDS:
        if name in given:
            given[name] = texts(given[name])
    config = camelled(given, _PLAIN)
    if "image_type" in given:
        config["imageType"] = given["image_type"].upper()  # as Google keeps it
    if "accelerators" in given:
        config["accelerators"] = [_accelerator(row) for row in given["accelerators"]]
    if "gvnic" in given:
        config["gvnic"] = {"enabled": given["gvnic"]}
    if "workload_metadata" in given:
        config["workloadMetadataConfig"] = {"mode": given["workload_metadata"]}
    if "reservation_affinity" in given:
        config["reservationAffinity"] = camelled(given["reservation_affinity"], given["reservation_affinity"])
    return {**_with_text(given.get("other", {})), **config}


def _with_text(value: t.Any, field: str = "") -> t.Any:
    """Convert the values of maps to text, as in all maps of NodeConfig (discovery document of container v1)."""
    if not isinstance(value, dict):
        return value
    if is_map(field, value):
        return texts(value)
    return {key: _with_text(one, key) for key, one in value.items()}


def _accelerator(row: Body) -> Body:
    driver, sharing = row.get("gpu_driver_version"), row.get("gpu_sharing_config")
    return {
        "acceleratorType": row["type"],
        "acceleratorCount": row["count"],
        **({"gpuDriverInstallationConfig": {"gpuDriverVersion": driver}} if driver else {}),
        **({"gpuSharingConfig": camelled(sharing, sharing)} if sharing else {}),
        **camelled(row, ["gpu_partition_size"]),
    }

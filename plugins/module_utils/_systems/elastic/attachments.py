# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects that this collection creates for an elastic job, as options of the job: an etcd for the rendezvous, and a data set."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from ..._core.errors import InvalidInput
from ..._manifests.meta import Manifest

Params = Mapping[str, t.Any]

CLIENT_PORT = 2379
TLS_PATH = "/etc/etcd-tls"
# Variables of torchrun's etcd-v2 client; the files are those of the Secret that etcd_cluster creates for clients.
TLS_CONF = {"protocol": "https", "ca_cert": f"{TLS_PATH}/ca.crt", "ssl_cert": f"{TLS_PATH}/tls.crt", "ssl_cert_key": f"{TLS_PATH}/tls.key"}
DATA_DIR = "MUSTER_DATA_DIR"


def with_etcd(given: Params, etcd: Mapping[str, t.Any]) -> Params:
    """The options with the etcd as endpoint, certificate and rendezvous settings. Options of the user win."""
    if given["rdzv_backend"] == "c10d":
        raise InvalidInput("etcd: with c10d pod 0 hosts the rendezvous.", "Leave it out, or set rdzv_backend to etcd-v2.")
    met: Params = {**given, "rdzv_endpoint": f"{etcd['name']}:{CLIENT_PORT}"}
    if not etcd["tls"]:
        return met
    volume = {"name": "etcd-tls", "secret": {"secretName": f"{etcd['name']}-client-tls"}}
    return {**_mounted(met, volume, TLS_PATH), "rdzv_conf": {**TLS_CONF, **(given["rdzv_conf"] or {})}}


def with_dataset(given: Params, dataset: Mapping[str, t.Any]) -> Params:
    """The options with the data set as volume and environment. A data set in a folder of the claim for checkpoints is mounted already."""
    storage = given.get("storage")
    shared = storage and storage["claim_name"] == dataset["claim_name"]
    root = storage["mount_path"] if storage and shared else dataset["mount_path"]
    if not shared:
        volume = {"name": "dataset", "persistentVolumeClaim": {"claimName": dataset["claim_name"]}}
        given = _mounted(given, volume, root)
    env = given.get("env") or []
    if any(variable["name"] == DATA_DIR for variable in env):
        return given
    return {**given, "env": [{"name": DATA_DIR, "value": f"{root}/{dataset['path']}"}, *env]}


def _mounted(given: Params, volume: Manifest, path: str) -> Params:
    mount = {"name": volume["name"], "mountPath": path, "readOnly": True}
    return {**given, "volumes": [*(given.get("volumes") or []), volume], "volume_mounts": [*(given.get("volume_mounts") or []), mount]}

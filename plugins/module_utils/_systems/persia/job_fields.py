# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fields that a PersiaJob and a NatsCluster may have, old and new, and the option for each."""

from __future__ import annotations

import typing as t
from collections.abc import Mapping

from .spec import Role


class Field(t.NamedTuple):
    """NAME is our option, none where the field is ignored. WHY explains the difference. INSIDE are the fields of a mapping."""

    name: str = ""
    why: str = ""
    inside: Mapping[str, Field] | None = None


_OLD = "renamed to persiaEnv.{}, as PERSIA calls it since December 2021"

JOB: Mapping[str, Field] = {
    "persiaEnv": Field(
        inside={
            "PERSIA_GLOBAL_CONFIG": Field("global_config_path"),
            "PERSIA_EMBEDDING_CONFIG": Field("embedding_config_path"),
            "PERSIA_NN_WORKER_ENTRY": Field("nn_worker.entry"),
            "PERSIA_DATALOADER_ENTRY": Field("dataloader.entry"),
        }
    ),
    "globalConfigPath": Field("global_config_path", _OLD.format("PERSIA_GLOBAL_CONFIG")),
    "embeddingConfigPath": Field("embedding_config_path", _OLD.format("PERSIA_EMBEDDING_CONFIG")),
    "nnWorkerPyEntryPath": Field("nn_worker.entry", _OLD.format("PERSIA_NN_WORKER_ENTRY")),
    "dataLoaderPyEntryPath": Field("dataloader.entry", _OLD.format("PERSIA_DATALOADER_ENTRY")),
    "enableMetrics": Field("metrics_enabled"),
    "volumes": Field("volumes"),
    "env": Field("env"),
    "logLevel": Field("log_level"),
    "imagePullPolicy": Field("image_pull_policy"),
    "restartPolicy": Field(why="ignored; Jobs start failed pods again (persia_options.backoff_limit), and never those that are done"),
}

VARIABLE: Mapping[str, Field] = {"name": Field("name"), "value": Field("value"), "valueFrom": Field("value_from")}

MOUNT: Mapping[str, Field] = {
    **{key: Field(key) for key in ("name", "mountPath", "mountPropagation", "readOnly", "subPath", "subPathExpr")},
    "read_only": Field("readOnly", "renamed to readOnly; a PersiaJob has no read_only, and its operator mounts to write"),
}

NATS: Mapping[str, Field] = {
    "size": Field("size"),
    "natsConfig": Field(inside={"maxPayload": Field("max_payload")}),
    "pod": Field(inside={"resources": Field("resources")}),
    "resources": Field("resources", "renamed to pod.resources; nats-operator ignores it where it stands"),
    "version": Field(why="ignored; persia_nats_image names image and version"),
    "serverImage": Field(why="ignored; persia_nats_image names image and version"),
}

_SECTION: Mapping[str, Field] = {
    "replicas": Field("replicas"),
    "resources": Field("resources"),
    "env": Field("env"),
    "image": Field("image"),
    "volumeMounts": Field("volume_mounts"),
}


def section_fields(role: Role) -> Mapping[str, Field]:
    """The fields of one group."""
    return {**_SECTION, "nprocPerNode": Field("nproc_per_node")} if role == "nn_worker" else _SECTION

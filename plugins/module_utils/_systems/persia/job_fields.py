# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields and variables that job files of PERSIA may have, and the option for each.

The fields are those of the custom resource at commits e1be7c2 (11 November 2021), 48e1518 (24 November 2021), 831f1f5 and bcbaf99
(1 December 2021, today's) of PersiaML/PERSIA; the StatefulSets and their variables those of its document about Google Cloud at 05d59c2.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..._manifests.job_file import Field
from .spec import WORDS, Role

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
    "trainerPyEntryPath": Field("nn_worker.entry", _OLD.format("PERSIA_NN_WORKER_ENTRY")),
    "dataLoaderPyEntryPath": Field("dataloader.entry", _OLD.format("PERSIA_DATALOADER_ENTRY")),
    "enableMetrics": Field("metrics_enabled"),
    "volumes": Field("volumes"),
    "env": Field("env"),
    "logLevel": Field("log_level"),
    "imagePullPolicy": Field("image_pull_policy"),
    "restartPolicy": Field(why="ignored; Jobs start failed pods again (persia_options.backoff_limit), and never those that are done"),
}

NATS: Mapping[str, Field] = {
    "size": Field("replicas"),
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
    """The fields of one group of a PersiaJob."""
    return {**_SECTION, "nprocPerNode": Field("nproc_per_node")} if role == "nn_worker" else _SECTION


STATEFUL_SET: Mapping[str, Field] = {
    "replicas": Field("replicas"),
    "template": Field("template"),
    "serviceName": Field(why="ignored; each group has a headless Service of its own, and the file's may not exist"),
    "selector": Field(why="ignored; the job's own labels select its pods"),
    "podManagementPolicy": Field(why="ignored; all pods of a group start at once"),
    "updateStrategy": Field(why="ignored; a training is not updated while it runs"),
    "revisionHistoryLimit": Field(why="ignored; a training is not updated while it runs"),
}

_RANKED = Field(why="ignored; each pod gets its own from the size of its group")

ENV: Mapping[str, Field] = {
    "PERSIA_NATS_URL": Field("nats_url"),
    "PERSIA_NATS_IP": Field("nats_url", "renamed to PERSIA_NATS_URL, as PERSIA calls it since December 2021"),
    "PERSIA_GLOBAL_CONFIG": Field("global_config_path"),
    "PERSIA_EMBEDDING_CONFIG": Field("embedding_config_path"),
    "GLOBAL_CONFIG_PATH": Field("global_config_path", "renamed to PERSIA_GLOBAL_CONFIG, as PERSIA calls it since December 2021"),
    "EMBEDDING_CONFIG_PATH": Field("embedding_config_path", "renamed to PERSIA_EMBEDDING_CONFIG, as PERSIA calls it since December 2021"),
    "PERSIA_NN_WORKER_ENTRY": Field("nn_worker.entry"),
    "PERSIA_DATALOADER_ENTRY": Field("dataloader.entry"),
    "PERSIA_METRICS_GATEWAY_ADDR": Field("metrics_address", "that gateway is used, and none is made (persia_metrics_address)"),
    "LOG_LEVEL": Field("log_level"),
    "NPROC_PER_NODE": Field("nproc_per_node", "is the group's number of processes in each pod (nproc_per_node)"),
    "REPLICA_SIZE": Field("replica_size", "ignored; each pod gets it from the size of its group"),
    **dict.fromkeys(("REPLICA_INDEX", "NODE_RANK", "RANK", "LOCAL_RANK", "WORLD_SIZE"), _RANKED),
    "PERSIA_PORT": Field(why="ignored; servers have the ports of persia-launcher, 8887 and 8888"),
}

FLAGS: Mapping[str, Field] = {
    "--nproc-per-node": Field("nproc_per_node"),
    "--global-config": Field("global_config_path"),
    "--embedding-config": Field("embedding_config_path"),
    **dict.fromkeys(("--nnodes", "--node-rank", "--replica-index", "--replica-size"), _RANKED),
}
"""Flags of persia-launcher."""

# The words of every document of PERSIA for each group, without dashes and in small letters.
_WORDS = {role: {word.replace("-", "").lower() for word in words} for role, words in WORDS.items()}


def role_of(words: list[str]) -> Role | None:
    """The group that the first of WORDS names which names one: ``trainer``, and with a prefix ``clicks-trainer``."""
    for word in words:
        plain = word.lower().replace("_", "-")
        for role in WORDS:
            # The longest part after a dash that is a name: data-compose, and not compose.
            parts = plain.split("-")
            if any("".join(parts[at:]) in _WORDS[role] for at in range(len(parts))):
                return role
    return None

# Copyright: (c) 2026, Muster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection.

"""A pod that runs a program of _pod_programs, and is there for as long as that takes."""

from __future__ import annotations

import dataclasses
import types

from .meta import Manifest
from .pods import READ_ONLY_CONTAINER, PodSettings, pod_template
from .programs import program


def program_pod(metadata: Manifest, pod: PodSettings, *, container: str, module: types.ModuleType, folder: str) -> list[Manifest]:
    """A pod that is there for as long as its program runs, and the ConfigMap with the program, mounted at FOLDER.

    Its command, ``python3 FOLDER/CONTAINER.py ...``, is the caller's.
    """
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {f"{container}.py": program(module)}}
    settings = dataclasses.replace(
        pod,
        volumes=(*pod.volumes, {"name": "program", "configMap": {"name": metadata["name"]}}),
        volume_mounts=(*pod.volume_mounts, {"name": "program", "mountPath": folder, "readOnly": True}),
        env=({"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}, *pod.env),
        security_context=pod.security_context or READ_ONLY_CONTAINER,
    )
    template = pod_template(settings, container=container, labels=metadata["labels"], selector=metadata["labels"])
    spec = {**template["spec"], "restartPolicy": "Never"}
    return [config, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}]

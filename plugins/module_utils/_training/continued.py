# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep the programs in the ConfigMap of a running training, even if a new version of Muster has others.

Their hash is in the pod template, which is immutable in a Job, and whose change would restart the pods of a StatefulSet.
"""

from __future__ import annotations

import copy
import typing as t
from collections.abc import Iterator, Sequence

from .._kube.objects import CONFIG_MAP, Manifest, group_kind
from .._manifests.meta import ANNOTATION_CONFIG_HASH


def with_live_programs(objects: Sequence[Manifest], config: Manifest | None, workloads: Sequence[Manifest]) -> list[Manifest]:
    """Return OBJECTS with the data of CONFIG, the live ConfigMap, if the live WORKLOADS were made with other programs.

    The options are the same, so another hash means other programs. With the same hash, the data was changed by another client.
    """
    live = {notes[ANNOTATION_CONFIG_HASH] for notes in _annotations(workloads)}
    desired = {notes[ANNOTATION_CONFIG_HASH] for notes in _annotations(objects)}
    if config is None or len(live) != 1 or live == desired:
        return list(objects)
    found = copy.deepcopy(list(objects))
    for notes in _annotations(found):
        notes[ANNOTATION_CONFIG_HASH] = next(iter(live))
    for item in found:
        if group_kind(item) == CONFIG_MAP and item["metadata"]["name"] == config["metadata"]["name"]:
            item["data"] = config["data"]
    return found


def _annotations(value: t.Any) -> Iterator[dict[str, str]]:
    """All annotations with the hash, at any depth: the pod template of a PyTorchJob is not where that of a Job is."""
    if isinstance(value, dict):
        if ANNOTATION_CONFIG_HASH in value:
            yield value
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _annotations(item)

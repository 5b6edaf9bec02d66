# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep what a running training has, even if a new version of Muster makes it otherwise: programs, pods, and where a queue placed them.

The hash of the programs is in the pod template, which is immutable in a Job, and whose change would restart the pods of a StatefulSet.
"""

from __future__ import annotations

import copy
import typing as t
from collections.abc import Iterator, Sequence

from .._kube.objects import CONFIG_MAP, Manifest, annotations_of, group_kind, labels_of, ref_of
from .._manifests.meta import ANNOTATION_CONFIG_HASH, ANNOTATION_RENDERED, LABEL_QUEUE, spec_hash
from .kind import Backend


def with_live_programs(objects: Sequence[Manifest], config: Manifest | None, workloads: Sequence[Manifest]) -> list[Manifest]:
    """Return OBJECTS with the data of CONFIG, the live ConfigMap, if the live WORKLOADS were made with other programs.

    The options are the same, so another hash means other programs. With the same hash, the data was changed by another client.
    """
    live = {notes[ANNOTATION_CONFIG_HASH] for notes in _having(ANNOTATION_CONFIG_HASH, workloads)}
    desired = {notes[ANNOTATION_CONFIG_HASH] for notes in _having(ANNOTATION_CONFIG_HASH, objects)}
    if config is None or len(live) != 1 or live == desired:
        return list(objects)
    found = copy.deepcopy(list(objects))
    for notes in _having(ANNOTATION_CONFIG_HASH, found):
        notes[ANNOTATION_CONFIG_HASH] = next(iter(live))
    for item in found:
        if group_kind(item) == CONFIG_MAP and item["metadata"]["name"] == config["metadata"]["name"]:
            item["data"] = config["data"]
    return found


def with_live_specs(backend: Backend, objects: Sequence[Manifest], workloads: Sequence[Manifest], size: int | None) -> list[Manifest]:
    """Return OBJECTS with the specs of live WORKLOADS that another version of Muster rendered from the same options.

    Its own spec would be refused (Job), or replace the pods (StatefulSet). Whether it is suspended is for its queue to say.
    """
    live, found = {ref_of(item): item for item in workloads}, []
    forms = {one.group_kind: one for one in backend.workloads}
    for item in objects:
        theirs = live.get(ref_of(item), {})
        was, form = annotations_of(theirs).get(ANNOTATION_RENDERED), forms.get(group_kind(item))
        if was is None or form is None:
            found.append(item)
            continue
        as_it_is = form.sized(item, form.desired_replicas(theirs)) if form.size else item
        rendered, spec = spec_hash(item["spec"]), item["spec"]
        if was not in (rendered, spec_hash(as_it_is["spec"])):
            suspend = {key: value for key, value in spec.items() if key == "suspend"}
            rendered, spec = was, {**{key: value for key, value in theirs["spec"].items() if key != "suspend"}, **suspend}
        notes = {**annotations_of(item), ANNOTATION_RENDERED: rendered}
        kept = {**item, "metadata": {**item["metadata"], "annotations": notes}, "spec": spec}
        found.append(kept if size is None else form.sized(kept, size))
    return found


def with_live_placement(objects: Sequence[Manifest], workloads: Sequence[Manifest]) -> list[Manifest]:
    """Return OBJECTS in a queue with the node selectors and tolerations of the live WORKLOADS, to which Kueue adds those of a flavor.

    Both fields are atomic: a value without these would be another one, which conflicts with Kueue's.
    """
    live, found = {ref_of(item): item for item in workloads}, copy.deepcopy(list(objects))
    for item in found:
        theirs = live.get(ref_of(item)) if LABEL_QUEUE in labels_of(item) else None
        for spec, placed in zip(_having("containers", item), _having("containers", theirs), strict=False):
            spec |= {key: placed[key] for key in ("nodeSelector", "tolerations") if key in spec and key in placed}
    return found


def _having(key: str, value: t.Any) -> Iterator[dict[str, t.Any]]:
    """All mappings with this key, at any depth: the pod template of a PyTorchJob is not where that of a Job is."""
    if isinstance(value, dict):
        if key in value:
            yield value
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _having(key, item)

# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects that role kueue installs: the manifest of a release of Kueue, for the integrations that an option lists, and the queues."""

from __future__ import annotations

import dataclasses
import json
import typing as t
from collections.abc import Mapping, Sequence

from ..._core.errors import InvalidInput
from ..._kube.yaml_reader import read
from ..._manifests.meta import ANNOTATION_CONFIG_HASH, DEPLOYMENT, LABEL_QUEUE, Manifest, spec_hash
from ..._manifests.operators import ReleasedOperator, overlaid, type_of
from .queues import API_GROUP, queue_objects

NAME = "kueue-controller-manager"
CONFIG = "kueue-manager-config"
CONFIG_FILE = "controller_manager_config.yaml"
INTEGRATIONS = ("batch/job", "jobset.x-k8s.io/jobset", "kubeflow.org/pytorchjob", "trainer.kubeflow.org/trainjob",
                "pod", "deployment", "statefulset")  # fmt: skip
"""The kinds of all trainings and servers of this collection. Kueue waits for those that the cluster does not serve yet."""
# Jobs without a queue can be created while the controller does not run. Kueue puts no job without the label into a default queue.
IN_A_QUEUE = {"matchExpressions": [{"key": LABEL_QUEUE, "operator": "Exists"}]}


@dataclasses.dataclass(frozen=True, kw_only=True)
class KueueController(ReleasedOperator):
    """The controller of Kueue, and the queues of the cluster. ``integrations``: kinds of jobs that it queues, by Kueue's names."""

    integrations: Sequence[str] = INTEGRATIONS
    resource_flavors: Sequence[Mapping[str, t.Any]] = ()
    cluster_queues: Sequence[Mapping[str, t.Any]] = ()
    local_queues: Sequence[Mapping[str, t.Any]] = ()
    priority_classes: Sequence[Mapping[str, t.Any]] = ()
    provisioning_requests: Sequence[Mapping[str, t.Any]] = ()


def manifests(controller: KueueController, released: Sequence[Manifest]) -> list[Manifest]:
    """The controller, its permissions and its webhooks, beside the CustomResourceDefinitions."""
    kinds = {integration: integration.rpartition("/")[2] for integration in controller.integrations}
    known = {_kind_of(hook) for one in released for hook in one.get("webhooks") or () if not _is_own(hook)}
    if unknown := [integration for integration, kind in kinds.items() if kind not in known]:
        raise InvalidInput(f"integrations: {', '.join(unknown)} is none of Kueue's.", f"It has some for {', '.join(sorted(known))}.")
    configured = [_configured(one, kinds) for one in released]
    data: Manifest = next((one["data"] for one in configured if _is_config(one)), {})
    annotations = {ANNOTATION_CONFIG_HASH: spec_hash(data)}
    return [_annotated(one, annotations) for one in overlaid(configured, controller, NAME)]


def queues(controller: KueueController) -> list[Manifest]:
    """The queues with the objects that they refer to."""
    return queue_objects(
        controller.resource_flavors,
        controller.cluster_queues,
        controller.local_queues,
        controller.priority_classes,
        controller.provisioning_requests,
    )


def _is_config(one: Manifest) -> bool:
    return (type_of(one), one["metadata"]["name"]) == (("v1", "ConfigMap"), CONFIG)


def _is_own(webhook: Manifest) -> bool:
    """Whether the webhook is for Kueue's own kinds."""
    return bool(webhook["rules"][0]["apiGroups"] == [API_GROUP])


def _kind_of(webhook: Manifest) -> str:
    """Return the kind of a webhook, whose name has verb and kind: ``mjobset.kb.io`` mutates JobSets."""
    return str(webhook["name"].partition(".")[0][1:])


def _configured(one: Manifest, kinds: Mapping[str, str]) -> Manifest:
    """Return object ONE configured for these integrations."""
    if _is_config(one):
        (config,) = read(one["data"][CONFIG_FILE])
        config["integrations"]["frameworks"] = list(kinds)
        # JSON is YAML.
        return {**one, "data": {CONFIG_FILE: json.dumps(config, indent=2) + "\n"}}
    if "webhooks" not in one:
        return one
    own = [hook for hook in one["webhooks"] if _is_own(hook)]
    others = [hook for hook in one["webhooks"] if not _is_own(hook) and _kind_of(hook) in kinds.values()]
    return {**one, "webhooks": own + [{**hook, "objectSelector": IN_A_QUEUE} for hook in others]}


def _annotated(one: Manifest, annotations: Mapping[str, str]) -> Manifest:
    """The Deployment with a hash of its configuration, so that a change starts it again."""
    if type_of(one) != DEPLOYMENT:
        return one
    template = one["spec"]["template"]
    described = {**template["metadata"], "annotations": {**template["metadata"].get("annotations", {}), **annotations}}
    return {**one, "spec": {**one["spec"], "template": {**template, "metadata": described}}}

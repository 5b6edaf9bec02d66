# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects that role trainer installs: those of the kustomization of Kubeflow Trainer 2."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..._core.errors import InvalidInput
from ..._manifests.merge import apply_overrides
from ..._manifests.meta import DEPLOYMENT, Manifest
from ..._manifests.operators import ReleasedOperator, overlaid, type_of

NAME = "kubeflow-trainer-controller-manager"
_GATE = "--feature-gates=TrainJobStatus=true"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trainer(ReleasedOperator):
    """The controller of Kubeflow Trainer 2. ``progress``: it takes the progress that pods report (alpha feature TrainJobStatus)."""

    progress: bool = False

    def __post_init__(self) -> None:
        """Refuse an empty manifest, the default of the role."""
        if not self.manifest:
            hint = "Give the path of what kustomize builds of the project's sources; the README of role trainer has the kustomization."
            raise InvalidInput("manifest: missing, and the project releases no manifest of Trainer 2.", hint)


def manifests(controller: Trainer, released: Sequence[Manifest]) -> list[Manifest]:
    """The controller, its permissions and its webhooks, beside the CustomResourceDefinitions."""
    # The Secret of the certificate has an empty map of data, which the controller fills.
    objects = overlaid([{key: value for key, value in one.items() if value != {}} for one in released], controller, NAME)
    return [_with_progress(one) if controller.progress and type_of(one) == DEPLOYMENT else one for one in objects]


def _with_progress(deployment: Manifest) -> Manifest:
    (container, *_others) = deployment["spec"]["template"]["spec"]["containers"]
    main = {"name": container["name"], "args": [*container["args"], _GATE]}
    return apply_overrides(deployment, {"spec": {"template": {"spec": {"containers": [main]}}}})

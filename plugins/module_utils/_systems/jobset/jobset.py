# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects that role jobset installs: the manifest of a release of JobSet."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..._manifests.meta import Manifest
from ..._manifests.operators import ReleasedOperator, overlaid


@dataclasses.dataclass(frozen=True, kw_only=True)
class JobSetController(ReleasedOperator):
    """The controller of JobSet."""


def manifests(controller: JobSetController, released: Sequence[Manifest]) -> list[Manifest]:
    """The controller, its permissions and its webhooks, beside the CustomResourceDefinition."""
    return overlaid(released, controller, "jobset-controller-manager")

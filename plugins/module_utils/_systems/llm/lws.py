# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects that role lws installs: the manifest of a release of LeaderWorkerSet."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..._manifests.meta import Manifest
from ..._manifests.operators import ReleasedOperator, overlaid


@dataclasses.dataclass(frozen=True, kw_only=True)
class LeaderWorkerSetController(ReleasedOperator):
    """The controller of LeaderWorkerSet."""


def manifests(controller: LeaderWorkerSetController, released: Sequence[Manifest]) -> list[Manifest]:
    """The controller, its permissions and its webhooks, beside the CustomResourceDefinitions."""
    return overlaid(released, controller, "lws-controller-manager")

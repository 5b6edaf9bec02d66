# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects that role lws installs: the manifest of a release of LeaderWorkerSet."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..._manifests.merge import apply_overrides
from ..._manifests.meta import DEPLOYMENT, Manifest
from ..._manifests.operators import ReleasedOperator, overlaid, type_of

# The profile "restricted" of its namespace admits no pod without one, and upstream's has none.
_SECCOMP = {"spec": {"template": {"spec": {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}}}}


@dataclasses.dataclass(frozen=True, kw_only=True)
class LeaderWorkerSetController(ReleasedOperator):
    """The controller of LeaderWorkerSet."""


def manifests(controller: LeaderWorkerSetController, released: Sequence[Manifest]) -> list[Manifest]:
    """The controller, its permissions and its webhooks, beside the CustomResourceDefinitions."""
    objects = overlaid(released, controller, "lws-controller-manager")
    return [apply_overrides(one, _SECCOMP) if type_of(one) == DEPLOYMENT else one for one in objects]

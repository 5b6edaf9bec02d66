# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The amounts that the ResourceQuotas of a namespace leave for pods. No I/O.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from .._kube.objects import Manifest
from .groups import Group
from .resources import Amounts, Spec, added, amounts, limits_of, requests_of, shown

_WITHOUT_PREFIX = ("cpu", "memory", "ephemeral-storage")
"""Resources that a quota may name without ``requests.``."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Quota:
    """A ResourceQuota, with what is left of it by its own status, and what is left at most once that counts only what is there."""

    name: str
    hard: Amounts
    left: Amounts
    most: Amounts

    def lacking(self, groups: Iterable[Group], left: Amounts) -> list[str]:
        """The resources of which the groups need more than is left."""
        need: Amounts = {}
        for group in groups:
            need = added(need, used_by(group.spec), group.replicas)
        return [
            f"ResourceQuota {self.name} leaves {shown(name, max(left[name], 0))} of {shown(name, hard)} {name}, and "
            f"{shown(name, need[name])} are needed"
            for name, hard in self.hard.items()
            if need.get(name, 0) > max(left[name], 0)
        ]


def quotas(items: Iterable[Manifest], leaving: Sequence[Manifest], staying: Sequence[Manifest]) -> list[Quota]:
    """The quotas without scopes. LEAVING: pods that will have gone; STAYING: those that the quotas count for long."""
    found = []
    for item in items:
        status = item.get("status") or {}
        hard = amounts(status.get("hard") or (item.get("spec") or {}).get("hard"))
        left, most = added(hard, amounts(status.get("used")), -1), hard
        for pod in leaving:
            left = added(left, used_by(pod["spec"]))
        for pod in staying:
            most = added(most, used_by(pod["spec"]), -1)
        if not has_scopes(item):
            found.append(Quota(name=item["metadata"]["name"], hard=hard, left=left, most=most))
    return found


def has_scopes(item: Manifest) -> bool:
    """Whether a ResourceQuota counts only some of the pods."""
    spec = item.get("spec") or {}
    return bool(spec.get("scopes") or spec.get("scopeSelector"))


def used_by(spec: Spec) -> Amounts:
    """The amounts that one pod uses of a quota, under every name that a quota may have for them."""
    requests = requests_of(spec)
    named = {f"requests.{name}": value for name, value in requests.items()}
    named |= {f"limits.{name}": value for name, value in limits_of(spec).items()}
    named |= {name: requests[name] for name in requests if name in _WITHOUT_PREFIX or name.startswith("hugepages-")}
    return {"pods": 1, "count/pods": 1, **named}

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Claims of a StatefulSet, which outlive it.

Their labels are common to every installation of a program, also that of a Helm chart, and do not show whose data they hold. So they are
marked as long as the StatefulSet exists.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .deletion import Ownership
from .objects import LABEL_OWNER, Ref, is_made_for, labels_of, ref_of, selector_of
from .removal import delete_objects

if t.TYPE_CHECKING:
    from .cluster import Cluster
    from .report import Report

_KIND = "PersistentVolumeClaim"


@dataclasses.dataclass(frozen=True)
class Claims:
    """The claims ``data-<name>-<number>`` of a StatefulSet. ``mark``: the label that gets its name."""

    stateful_set: Ref
    labels: t.Mapping[str, str]
    mark: str

    def of_pod(self, pod: str) -> Ref:
        """The claim of a pod."""
        return Ref("v1", _KIND, f"data-{pod}", self._namespace)

    @property
    def _namespace(self) -> str | None:
        return self.stateful_set.namespace

    def marked(self, cluster: Cluster, owner: str, *, check: bool) -> list[Ref]:
        """Mark the claims if their StatefulSet is the owner's; else those that an earlier run has marked."""
        live, name = cluster.get(self.stateful_set), self.stateful_set.name
        if live and labels_of(live).get(LABEL_OWNER) == owner and is_made_for(live, owner):
            found = cluster.list("v1", _KIND, self._namespace, selector_of(self.labels))
            refs = [ref_of(claim) for claim in found if claim["metadata"]["name"].startswith(f"data-{name}-")]
            for ref in refs:
                cluster.patch(ref, {"metadata": {"labels": {self.mark: name}}}, dry_run=check)
            return refs
        return [ref_of(claim) for claim in cluster.list("v1", _KIND, self._namespace, selector_of({self.mark: name}))]

    def delete(self, cluster: Cluster, refs: t.Sequence[Ref], owner: str, *, check: bool, delete_data: bool) -> Report:
        """Delete the claims that were marked (in check mode, that would have been), or name them as kept. The owner's pods go, too."""
        ownership = Ownership(self.stateful_set.name, self.mark, applied=False, unowned=check)
        return delete_objects(cluster, refs, ownership, check=check, delete_data=delete_data, ignore_users_of=[owner])

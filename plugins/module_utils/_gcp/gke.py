# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions and the class that clusters and node pools of GKE share."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .._cloud.plan import GONE, Body, Plan, State
from .._cloud.texts import version_numbers
from .._core.errors import InvalidInput
from .compare import MARK
from .resource import Rest

CLUSTERS = "projects.locations.clusters"
_UNSTABLE = ("PROVISIONING", "RECONCILING", "STOPPING")
_BEHIND = 2
_VERSION = re.compile(r"1\.(\d+)(?:\.(\d+)(?:-gke\.(\d+))?)?")


def gke_state(live: Body | None) -> State:
    """PROVISIONING, RECONCILING and STOPPING pass; ERROR does not. It is RECONCILING also when Google upgrades nodes by itself."""
    if live is None:
        return GONE
    status = live.get("status", "")
    why = why_so(live)
    seen = f"{status} ({why})" if why else status
    failure = seen if status == "ERROR" else ""
    return State(stable=status not in _UNSTABLE, seen=seen, failure=failure, usable=status == "RECONCILING")


def why_so(live: Body) -> str:
    """Google's reasons for a status."""
    told = [str(one.get("message") or one.get("code") or "") for one in live.get("conditions") or ()]
    return "; ".join(dict.fromkeys(text.rstrip(".") for text in [*told, str(live.get("statusMessage") or "")] if text))


def version_key(version: str) -> tuple[int, ...]:
    """The numbers of a version such as 1.34, 1.34.6 or 1.34.6-gke.1154000; another form is refused."""
    return (1, *version_numbers(version, _VERSION, "GKE", "1.MINOR, 1.MINOR.PATCH or 1.MINOR.PATCH-gke.N"))


def is_whole(version: str) -> bool:
    """Whether it is one version, and not a short form for several."""
    return len(version_key(version)) == 4


def reached(live: str, asked: str) -> bool:
    """Whether a version is the one that was asked for, or a later one: Google upgrades by itself as well."""
    return version_key(live) >= version_key(asked)


def refuse_skipping(label: str, live: str, asked: str) -> None:
    """Control planes go up one minor version at a time."""
    now, then = version_key(live)[1], version_key(asked)[1]
    if then > now + 1:
        raise InvalidInput(
            f"{label} runs {live}; GKE upgrades one minor version at a time, not to {asked} at once",
            hint=f"Set version to 1.{now + 1}, run, upgrade the node pools, and go on from there",
        )


def refuse_leaving_behind(label: str, pools: t.Iterable[Body], asked: str) -> None:
    """GKE wants nodes at most two minor versions behind their control plane."""
    late = sorted(
        f"{pool['name']} ({pool['version']})"
        for pool in pools
        if pool.get("version") and version_key(asked)[1] - version_key(pool["version"])[1] > _BEHIND
    )
    if late:
        raise InvalidInput(
            f"{label} cannot be upgraded to {asked}: its nodes may be {_BEHIND} minor versions older, and node pools are older than that: "
            f"{', '.join(late)}",
            hint="Upgrade these node pools first",
        )


def pool_owner(pool: Body) -> str:
    """The owner of a node pool; empty without one."""
    labels: dict[str, t.Any] = pool.get("config", {}).get("resourceLabels") or {}
    return str(labels.get(MARK, ""))


@dataclasses.dataclass(frozen=True, kw_only=True)
class GkeResource(Rest):
    """A cluster or a node pool. Google upgrades both by itself, so that a later version than the desired one will do."""

    MARK = "label"
    SERVICE, CREATE = "container", "create"
    REPAIRED: t.ClassVar[str]
    """The hint for one in ERROR that is not made again."""

    location: str
    version: str | None = None

    def state(self, live: Body | None) -> State:
        return gke_state(live)

    def going(self, live: Body) -> bool:
        return live.get("status") == "STOPPING"

    def validate(self) -> None:
        if self.version is not None:
            version_key(self.version)

    def version_seen(self, version: str) -> str:
        """The live version, or the desired one if that is reached."""
        return self.version if self.version and reached(version, self.version) else version

    def again(self, live: Body, *, empty: bool) -> Plan:
        """Recreate what is in ERROR, which GKE can neither repair nor update, if it is ours and was never in use."""
        if not empty or not self.owner:
            raise InvalidInput(
                f"{self.label} is in ERROR and cannot be repaired: {why_so(live) or 'Google gave no reason'}", hint=self.REPAIRED
            )
        made = self.plan(None)
        remove = dataclasses.replace(self.deletion(), says="delete, it is in ERROR")
        return Plan((remove, *made.steps), {"status": "ERROR"}, made.after)

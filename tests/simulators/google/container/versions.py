# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions on offer, and how a cluster may move from one to another.

As of 2026-11 (assumed: Kubernetes minors at their usual pace; cloud.google.com/kubernetes-engine/docs/release-schedule). Which patch
versions there are makes no difference to the rules. Rules: cloud.google.com/kubernetes-engine/versioning: the control plane goes up one
minor version at a time and never down a minor, nodes are not newer than it and at most two minors older; with auto-upgrade, which every
channel brings, at most one (rancher/gke-operator issue 492, message included). Messages:
hashicorp/terraform-provider-google issues 6405 ("must not have a greater minor version than master version"), 22167 ("No valid versions
with the prefix"), 2149 ("Master version ... is unsupported") and 15084 ("Master version must be one of ... channel supported versions");
kubeflow/code-intelligence issue 153 ("cannot upgrade the master more than a minor version at a time").
"""

import re

from .. import catalogue
from ..api import Refused

# Channel: (the default one, all that are valid, newest first).
CHANNELS = {
    "RAPID": ("1.36.0-gke.2010000", ["1.36.3-gke.1480000", "1.36.0-gke.2010000", "1.35.4-gke.1088000", "1.34.7-gke.1122000"]),
    "REGULAR": ("1.35.3-gke.1234000", ["1.35.3-gke.1234000", "1.35.1-gke.1001000", "1.34.6-gke.1154000", "1.33.9-gke.1200000"]),
    "STABLE": ("1.34.5-gke.1090000", ["1.35.1-gke.1001000", "1.34.5-gke.1090000", "1.33.8-gke.1112000"]),
    "EXTENDED": ("1.35.3-gke.1234000", ["1.35.3-gke.1234000", "1.34.6-gke.1154000", "1.33.9-gke.1200000", "1.32.13-gke.1067000"]),
}  # fmt: skip
NODES_BEHIND, NODES_BEHIND_UPGRADED = 2, 1
IMAGE_TYPES = ["COS_CONTAINERD", "UBUNTU_CONTAINERD", "WINDOWS_LTSC_CONTAINERD"]


def key(version: str) -> tuple[int, ...]:
    return tuple(int(word) for word in re.findall(r"\d+", version))


def minor(version: str) -> tuple[int, ...]:
    return key(version)[:2]


ALL = sorted({one for _default, valid in CHANNELS.values() for one in valid}, key=key, reverse=True)


def valid(channel: str) -> list[str]:
    return CHANNELS[channel][1] if channel in CHANNELS else ALL


def default(channel: str) -> str:
    return CHANNELS.get(channel, CHANNELS["REGULAR"])[0]


def chosen(wanted: str, channel: str, what: str = "Master") -> str:
    """What an alias stands for: "", "-" (the default), latest, 1.34, 1.34.5, or a whole version."""
    if wanted in ("", "-"):
        return default(channel)
    if wanted == "latest":
        return valid(channel)[0]
    if re.fullmatch(r"1\.\d+(\.\d+)?", wanted):
        for one in valid(channel):
            if one.startswith((f"{wanted}.", f"{wanted}-")):
                return one
        raise Refused(400, f'No valid versions with the prefix "{wanted}" found.')
    if wanted not in valid(channel):
        if channel in CHANNELS:
            text = f'{what} version must be one of "{channel}" channel supported versions [{", ".join(valid(channel)[::-1])}].'
            raise Refused(400, text)
        raise Refused(400, f'{what} version "{wanted}" is unsupported.')
    return wanted


def upgrade(current: str, wanted: str) -> None:
    """Of a control plane."""
    if minor(wanted) < minor(current):
        raise Refused(
            400, f'Master cannot be downgraded to "{wanted}": minor version downgrades are not supported.'
        )  # assumed: the wording
    if minor(wanted)[1] > minor(current)[1] + 1:
        text = f'Master cannot be upgraded to "{wanted}": cannot upgrade the master more than a minor version at a time.'
        raise Refused(400, text)


def behind(nodes: str, master: str) -> int:
    """By how many minor versions nodes are older."""
    return minor(master)[1] - minor(nodes)[1]


def leave_behind(pools: dict[str, str], wanted: str) -> None:
    """An upgrade of a control plane, with the versions of its pools."""
    late = sorted(name for name, version in pools.items() if behind(version, wanted) > NODES_BEHIND)
    if late:
        # The rule of cloud.google.com/kubernetes-engine/versioning; assumed: that an upgrade is refused for it, and how.
        text = f'Master cannot be upgraded to "{wanted}": node pools {", ".join(late)} would be more than {NODES_BEHIND} minor versions'
        raise Refused(400, f"{text} behind it.", code="FAILED_PRECONDITION", reason="failedPrecondition")


def of_nodes(wanted: str, master: str, *, upgraded: bool) -> None:
    """``upgraded``: Google does it by itself (management.autoUpgrade)."""
    if key(wanted) > key(master):
        more = "greater minor" if minor(wanted) > minor(master) else "newer"  # assumed: the second
        raise Refused(400, f'Node version "{wanted}" must not have a {more} version than master version "{master}".')
    if upgraded and behind(wanted, master) > NODES_BEHIND_UPGRADED:
        text = f'Auto-upgrade is enabled, node version "{wanted}" must be within one minor version of master version "{master}".'
        raise Refused(400, text)
    if behind(wanted, master) > NODES_BEHIND:
        raise Refused(
            400, f'Node version "{wanted}" must be within two minor versions of master version "{master}".'
        )  # assumed: worded like that of auto-upgrade


def place(location: str) -> str:
    """A region or a zone that there is."""
    if location not in catalogue.regions() and not catalogue.is_zone(location):
        raise Refused(400, f'Location "{location}" does not exist.')
    return location

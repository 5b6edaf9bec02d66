# SPDX-License-Identifier: GPL-3.0-or-later
"""The specification of a local cluster: its names, addresses and folders, all computed from a few options. No I/O."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
import typing as t
import zlib
from pathlib import Path

from .._core.errors import InvalidInput

STATE_ROOT = "/var/lib/muster"
VOLUMES = "volumes"
RUN_ROOT = "/run/muster"
# Folders that the role creates. A folder for logs that the user names is not removed.
DEFAULT_LOG_FOLDER = Path("/var/log/muster")
# Linux allows 15 characters in the name of an interface; we need "mu-", "-" and two digits.
# A name with the ending of a node's name would be mistaken for one.
_NAME = re.compile(r"(?!.*-[0-9]+$)[a-z](?:[a-z0-9-]{0,7}[a-z0-9])?")
MAX_NODES = 50
# Pods of one node. 110 pods is the kubelet's default; a /24 has room for twice that many.
POD_PREFIX = 24


@dataclasses.dataclass(frozen=True, kw_only=True)
class NodeSpec:
    """One node: a set of namespaces with an address, a range of pod addresses and folders of its own."""

    cluster: str
    index: int
    address: str
    prefix_length: int
    pod_cidr: str

    @property
    def name(self) -> str:
        return f"{self.cluster}-{self.index}"

    @property
    def interface(self) -> str:
        """The host's end of the node's veth pair."""
        return f"mu-{self.name}"

    @property
    def netns(self) -> str:
        return f"muster-{self.name}"

    @property
    def state_dir(self) -> str:
        return f"{STATE_ROOT}/{self.cluster}/nodes/{self.name}"

    @property
    def run_dir(self) -> str:
        return f"{RUN_ROOT}/{self.cluster}/{self.name}"

    @property
    def containerd_socket(self) -> str:
        return f"{self.run_dir}/containerd.sock"

    @property
    def cgroup(self) -> str:
        """Path below every cgroup hierarchy, without the leading slash."""
        return f"muster-{self.cluster}/{self.name}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClusterSpec:
    """One local cluster. Two can exist side by side if names and subnets differ."""

    name: str
    nodes: int = 1
    node_subnet: str
    pod_subnet: str
    service_subnet: str

    @classmethod
    def make(cls, *, name: str, nodes: int = 1, **subnets: str | None) -> ClusterSpec:
        """Fill in missing ranges, derived from the name, so that two names rarely clash."""
        first = 96 + 4 * (zlib.crc32(name.encode()) % 32)
        chosen = {
            "node_subnet": f"10.{first}.0.0/24",
            "pod_subnet": f"10.{first + 1}.0.0/16",
            "service_subnet": f"10.{first + 2}.0.0/16",
            **{key: value for key, value in subnets.items() if value},
        }
        return cls(name=name, nodes=nodes, **chosen)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InvalidInput(
                f"local_cluster_name {self.name!r} cannot name network interfaces.",
                hint="Use at most 9 of a-z, 0-9 and '-', beginning with a letter and not ending in '-' and a number.",
            )
        if not 1 <= self.nodes <= MAX_NODES:
            raise InvalidInput(f"local_cluster_nodes is {self.nodes}.", hint=f"Ask for 1 to {MAX_NODES} nodes.")
        self._check_subnets()

    def _check_subnets(self) -> None:
        ranges = {key: _subnet(f"local_cluster_{key}", getattr(self, key)) for key in SUBNETS}
        if ranges["node_subnet"].num_addresses < self.nodes + 3:
            raise InvalidInput(
                f"local_cluster_node_subnet {self.node_subnet} has too few addresses for {self.nodes} nodes.",
                hint="Give a larger range, such as a /24.",
            )
        if ranges["pod_subnet"].prefixlen > POD_PREFIX or 2 ** (POD_PREFIX - ranges["pod_subnet"].prefixlen) < self.nodes:
            raise InvalidInput(
                f"local_cluster_pod_subnet {self.pod_subnet} cannot give each of {self.nodes} nodes a /{POD_PREFIX}.",
                hint="Give a larger range, such as a /16.",
            )
        for one, other in overlaps(ranges, ranges):
            if one < other:
                raise InvalidInput(
                    f"local_cluster_{one} {ranges[one]} and local_cluster_{other} {ranges[other]} overlap.",
                    hint="Give each a range of its own.",
                )

    @property
    def subnets(self) -> dict[str, ipaddress.IPv4Network]:
        return {key: ipaddress.IPv4Network(getattr(self, key)) for key in SUBNETS}

    @property
    def bridge(self) -> str:
        return f"mu-{self.name}"

    @property
    def gateway(self) -> str:
        """The host's own address on the bridge."""
        return str(self.subnets["node_subnet"][1])

    @property
    def prefix_length(self) -> int:
        return self.subnets["node_subnet"].prefixlen

    @property
    def endpoint(self) -> str:
        return f"{self.control_plane.address}:6443"

    @property
    def state_dir(self) -> str:
        return f"{STATE_ROOT}/{self.name}"

    @property
    def run_dir(self) -> str:
        return f"{RUN_ROOT}/{self.name}"

    @property
    def control_plane(self) -> NodeSpec:
        return self.node(1)

    def node(self, index: int) -> NodeSpec:
        most = min(self.subnets["node_subnet"].num_addresses - 3, self.subnets["pod_subnet"].num_addresses >> 32 - POD_PREFIX)
        if not 1 <= index <= most:
            raise InvalidInput(f"index: {index} is no node of {self.name}.", hint=f"Its subnets have 1 to {most}.")
        pods = ipaddress.IPv4Network(self.pod_subnet)
        start = int(pods.network_address) + (index - 1) * 2 ** (32 - POD_PREFIX)
        return NodeSpec(
            cluster=self.name,
            index=index,
            address=str(self.subnets["node_subnet"][index + 1]),
            prefix_length=self.prefix_length,
            pod_cidr=f"{ipaddress.IPv4Address(start)}/{POD_PREFIX}",
        )

    @property
    def all_nodes(self) -> list[NodeSpec]:
        return [self.node(index) for index in range(1, self.nodes + 1)]


def record_file(name: str) -> Path:
    """The file with the cluster's options at creation (record.py)."""
    return Path(STATE_ROOT) / name / "cluster.json"


SUBNETS = ("node_subnet", "pod_subnet", "service_subnet")


def _subnet(option: str, value: str) -> ipaddress.IPv4Network:
    try:
        return ipaddress.IPv4Network(value)
    except ValueError as exc:
        raise InvalidInput(f"{option} {value!r} is no IPv4 range: {exc}.", hint="Write it like 10.89.0.0/24.") from exc


def overlaps(ours: t.Mapping[str, ipaddress.IPv4Network], others: t.Mapping[str, ipaddress.IPv4Network]) -> list[tuple[str, str]]:
    """The keys of ranges that share addresses, apart from a range with itself."""
    return [
        (one, other)
        for one, mine in ours.items()
        for other, theirs in others.items()
        if (ours is not others or one != other) and mine.overlaps(theirs)
    ]

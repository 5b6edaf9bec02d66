# SPDX-License-Identifier: GPL-3.0-or-later
"""Slices of TPUs: the shapes that Google has, and what machines, nodes and pods each of them needs. No I/O.

Every figure is of Google's documentation; the page stands beside it. Pages of Cloud TPU ("TPU v5p") have shapes, chips and machines,
pages of GKE ("Plan TPUs in GKE", "About TPUs in GKE") the labels of nodes and what a pod requests.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import typing as t

from .._core.brief import plural
from .._core.errors import InvalidInput

LABEL_ACCELERATOR = "cloud.google.com/gke-tpu-accelerator"
LABEL_TOPOLOGY = "cloud.google.com/gke-tpu-topology"
RESOURCE = "google.com/tpu"

Row = t.Mapping[str, t.Any]

# "TPU v5e" and "TPU v6e": the shapes, and the chips of one machine. 2x4 is one machine with 8 chips, which Google made for serving, or
# two with 4 ("TPU v6e", the note on slices with 8 chips; for v5e the table "Cloud TPU v5e types for training"). The first one is taken
# where no topology is given.
_FLAT = {"1x1": (1,), "2x2": (4,), "2x4": (4, 8), **dict.fromkeys(("4x4", "4x8", "8x8", "8x16", "16x16"), (4,))}
# "TPU v4" and "TPU v5p", and those of TPU7x: the shapes of less than a cube of 4x4x4. Above, every side is a multiple of 4, and
# A <= B <= C ("TPU types and topologies"; Google's cluster-toolkit and xpk generate the same list).
_SMALL = ("2x2x1", "2x2x2", "2x2x4", "2x4x4")
_CUBE = 4


@dataclasses.dataclass(frozen=True)
class Generation:
    """One generation of TPUs."""

    name: str
    accelerator: str
    """The value of the nodes' label gke-tpu-accelerator."""
    machine: str
    """The machine type, without the number of chips."""
    prefix: str
    """The prefix of the names of slices, such as v5litepod-16."""
    counted: int = 1
    """The units that such a name counts for each chip: TensorCores of v4, v5p and TPU7x, chips of the others."""
    largest: int = 0
    """Chips of the largest slice, where shapes have three sides."""
    workload_policy: bool = False
    """Whether Compute Engine places its machines by a workload policy of the user's, instead of the compact one that GKE creates."""

    @functools.cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every topology, with the numbers of chips that its machines may have; fewest chips first, then most like a cube."""
        if not self.largest:
            return _FLAT
        most = self.largest // _CUBE**2
        sides = range(_CUBE, most + 1, _CUBE)
        cubes = (
            (a, b, c)
            for a in sides
            for b in range(a, most + 1, _CUBE)
            if a * b * b <= self.largest
            for c in range(b, self.largest // (a * b) + 1, _CUBE)
        )
        large = sorted(cubes, key=lambda shape: (math.prod(shape), sum(shape)))
        return dict.fromkeys((*_SMALL, *("x".join(map(str, shape)) for shape in large)), (4,))


_ALL = (
    # "TPU v4": 4 chips a machine, a Pod of 4096 chips.
    Generation("v4", "tpu-v4-podslice", "ct4p-hightpu", "v4", counted=2, largest=4096),
    # "TPU v5e": machines with 1, 4 and 8 chips, 256 chips at most.
    Generation("v5e", "tpu-v5-lite-podslice", "ct5lp-hightpu", "v5litepod"),
    # "TPU v5p": 4 chips a machine; the largest slice is 16x16x24, 6144 chips.
    Generation("v5p", "tpu-v5p-slice", "ct5p-hightpu", "v5p", counted=2, largest=6144),
    # "TPU v6e": machines with 1, 4 and 8 chips, 256 chips at most.
    Generation("v6e", "tpu-v6e-slice", "ct6e-standard", "v6e"),
    # "About Ironwood (TPU7x) in GKE": 4 chips a machine, workload policies. Shapes, labels and names are those of xpk
    # (system_characteristics.py), whose largest is 16x24x24, 9216 chips.
    Generation("tpu7x", "tpu7x", "tpu7x-standard", "tpu7x", counted=2, largest=9216, workload_policy=True),
)
GENERATIONS = {generation.name: generation for generation in _ALL}
_NAMES = {name: one for one in _ALL for name in (one.name, one.prefix, one.accelerator)}


@dataclasses.dataclass(frozen=True)
class Slice:
    """One slice: chips in a grid, on the machines of one node pool."""

    generation: Generation
    topology: str
    chips_per_host: int

    @property
    def chips(self) -> int:
        return _chips(self.topology)

    @property
    def hosts(self) -> int:
        """Machines, each with one pod that has all of its chips."""
        return self.chips // self.chips_per_host

    @property
    def machine_type(self) -> str:
        return f"{self.generation.machine}-{self.chips_per_host}t"

    @property
    def accelerator_type(self) -> str:
        """The name of the slice outside GKE, such as v4-16."""
        return f"{self.generation.prefix}-{self.chips * self.generation.counted}"

    @property
    def labels(self) -> dict[str, str]:
        """Labels that GKE gives the nodes, and by which pods find them ("About TPUs in GKE")."""
        return {LABEL_ACCELERATOR: self.generation.accelerator, LABEL_TOPOLOGY: self.topology}

    @property
    def placement_policy(self) -> dict[str, str]:
        """Machines of one slice lie beside each other; a single one needs no policy ("Deploy TPU workloads in GKE Standard")."""
        if self.hosts == 1:
            return {}
        kind = {} if self.generation.workload_policy else {"type": "COMPACT"}
        return {**kind, "tpu_topology": self.topology}

    @property
    def autoscaling(self) -> dict[str, t.Any]:
        """The range from no machine to the whole slice. GKE scales the machines of a slice together, and requires their number per zone."""
        return {"enabled": True, "min_node_count": 0, "max_node_count": self.hosts, "location_policy": "ANY"}

    def described(self) -> dict[str, t.Any]:
        """The slice as the filter returns it."""
        return {
            "type": self.generation.name,
            **{name: getattr(self, name) for name in _DESCRIBED},
            "multi_host": self.hosts > 1,
            "node_selector": self.labels,
            "resources": {RESOURCE: self.chips_per_host},
        }


_DESCRIBED = ("accelerator_type", "topology", "chips", "chips_per_host", "hosts", "machine_type", "placement_policy", "autoscaling")


def tpu_slice(kind: str, topology: str | None = None, machine_type: str | None = None) -> Slice:
    """The slice of that type (v5e, or v5litepod-16 with its number) and topology; InvalidInput names the nearest right ones."""
    generation, chips = _named(kind)
    if topology is None:
        if chips is None:
            raise InvalidInput(
                f"TPU type {kind} does not say how large the slice is",
                hint=f"Give topology, such as {_shown(generation, ['2x4', '4x4', '2x2x2', '2x2x4'])}.",
            )
        topology = _default(generation, kind, chips)
    if topology not in generation.shapes:
        raise _no_shape(generation, topology)
    if chips is not None and chips != _chips(topology):
        raise InvalidInput(
            f"{kind} has {plural(chips, 'chip')}, and topology {topology} has {_chips(topology)}",
            hint=f"Leave out one of them: {kind} is {_default(generation, kind, chips)}, and "
            f"{topology} is {Slice(generation, topology, 1).accelerator_type}.",
        )
    return Slice(generation, topology, _per_host(generation, topology, machine_type))


def _named(kind: str) -> tuple[Generation, int | None]:
    """The generation, and the chips if the name has a number."""
    if kind in _NAMES:
        return _NAMES[kind], None
    name, _dash, number = kind.rpartition("-")
    generation = _NAMES.get(name)
    if generation is None or not number.isdecimal():
        raise InvalidInput(
            f"TPU type {kind!r} is not known",
            hint=f"Types are {', '.join(GENERATIONS)}, and names of slices such as v4-16, v5litepod-16, v5p-128, v6e-8, tpu7x-8.",
        )
    if not int(number) or int(number) % generation.counted:
        raise InvalidInput(f"{kind} cannot be: a chip of {generation.name} has {generation.counted} TensorCores")
    return generation, int(number) // generation.counted


def _default(generation: Generation, kind: str, chips: int) -> str:
    """The shape of so many chips that is most like a cube, which is Google's default ("TPU types and topologies")."""
    found = next((shape for shape in generation.shapes if _chips(shape) == chips), None)
    if found is None:
        near = (Slice(generation, shape, 1) for shape in _nearest(generation, chips))
        names = " or ".join(f"{one.accelerator_type} ({one.topology})" for one in near)
        raise InvalidInput(f"There is no {kind}", hint=f"The nearest are {names}.")
    return found


def _per_host(generation: Generation, topology: str, machine_type: str | None) -> int:
    allowed = generation.shapes[topology]
    if machine_type is None:
        return allowed[0]
    machines = {f"{generation.machine}-{chips}t": chips for chips in allowed}
    if machine_type not in machines:
        raise InvalidInput(
            f"Machine type {machine_type} does not fit a slice of {generation.name} with topology {topology}",
            hint=f"It has {' or '.join(_counted(name, _chips(topology) // chips) for name, chips in machines.items())}.",
        )
    return machines[machine_type]


def _no_shape(generation: Generation, topology: str) -> InvalidInput:
    sides = topology.split("x")
    if not all(side.isdecimal() and int(side) for side in sides):
        return InvalidInput(
            f"{topology!r} is no topology", hint=f"Write the sides of the grid, such as {_shown(generation, ['2x4', '2x2x2'])}."
        )
    near = _nearest(generation, _chips(topology))
    rule = "A and B are of a fixed list" if not generation.largest else "sides above 4 are multiples of 4, A <= B <= C"
    form = "AxBxC" if generation.largest else "AxB"
    return InvalidInput(
        f"{generation.name} has no slice with topology {topology} ({plural(_chips(topology), 'chip')})",
        hint=f"The nearest {'is' if len(near) == 1 else 'are'} {' or '.join(near)} (topologies are {form}; {rule}).",
    )


def _nearest(generation: Generation, chips: int) -> list[str]:
    """The most cube-like shape of so many chips, or of the next lower and the next higher number."""
    shapes = list(generation.shapes)
    same = [shape for shape in shapes if _chips(shape) == chips][:1]
    lower = [shape for shape in shapes if _chips(shape) < chips]
    if lower:
        lower = [next(shape for shape in lower if _chips(shape) == _chips(lower[-1]))]
    higher = [shape for shape in shapes if _chips(shape) > chips][:1]
    return same or [*lower, *higher]


def _chips(topology: str) -> int:
    return math.prod(int(side) for side in topology.split("x"))


def hosts_of(machine_type: str, topology: str) -> int:
    """Machines of a slice by the names of Google, whose machine types end in the number of their chips; 0 for what is no slice."""
    chips, sides = re.search(r"-(\d+)t$", machine_type), re.fullmatch(r"\d+(x\d+){1,2}", topology)
    return _chips(topology) // int(chips[1]) if chips and sides else 0


def _shown(generation: Generation, examples: t.Sequence[str]) -> str:
    return " or ".join(shape for shape in examples if shape in generation.shapes)


def _counted(name: str, number: int) -> str:
    return f"{number} x {name}"


def node_pools(rows: t.Iterable[Row], zones: int) -> list[dict[str, t.Any]]:
    """Rows of node pools, each with the key ``tpu`` replaced by what it means; with several slices it means several pools."""
    return [node_pool(one, zones) for row in rows for one in _each_slice(row)]


def _each_slice(row: Row) -> list[Row]:
    """A pool is one slice, so that several slices are pools with a number, be it one: later ones do not give it another name."""
    asked = row.get("tpu")
    if not isinstance(asked, t.Mapping) or asked.get("slices") is None:
        return [row]
    slices = str(asked["slices"])
    if not slices.isdecimal() or not int(slices):
        raise InvalidInput(f"Node pool {row.get('name')}: tpu.slices is {slices}, and has to be a number from 1 on")
    one = {key: value for key, value in asked.items() if key != "slices"}
    return [{**row, "name": f"{row.get('name')}-{number}", "tpu": one} for number in range(int(slices))]


def node_pool(row: Row, zones: int) -> dict[str, t.Any]:
    """A row of node pools, with the key ``tpu`` replaced by what it means for machines, placement and size."""
    if "tpu" not in row:
        return dict(row)
    label = f"Node pool {row.get('name')}"
    asked, config = row["tpu"], row.get("config") or {}
    if not isinstance(asked, t.Mapping) or set(asked) - {"type", "topology"} or not asked.get("type"):
        raise InvalidInput(f"{label}: tpu needs type, and topology unless the type has a number", hint=_EXAMPLE)
    try:
        found = tpu_slice(str(asked["type"]), asked.get("topology") or None, config.get("machine_type"))
    except InvalidInput as error:
        raise InvalidInput(f"{label}: {error.message}", hint=error.hint) from error
    made = {key: value for key, value in row.items() if key != "tpu"}
    made["config"] = {**config, "machine_type": found.machine_type}
    if found.hosts > 1:
        made["placement_policy"] = _placement(label, found, row.get("placement_policy") or {})
        _check_slice(label, found, row, zones)
    if "node_count" not in row:
        made["autoscaling"] = {**found.autoscaling, **(row.get("autoscaling") or {})}
    return made


_EXAMPLE = "Write {type: v5e, topology: 2x4}."


def _placement(label: str, found: Slice, given: Row) -> dict[str, t.Any]:
    if given.get("tpu_topology", found.topology) != found.topology:
        raise InvalidInput(
            f"{label}: tpu has topology {found.topology}, and placement_policy {given['tpu_topology']}",
            hint="Leave out the one in placement_policy.",
        )
    named, kind = given.get("policy_name"), given.get("type")
    if found.generation.workload_policy and (kind or not named):
        raise InvalidInput(
            f"{label}: slices of {found.generation.name} with several machines are placed by a workload policy"
            + (f", and placement_policy has type {kind}" if kind else ", and placement_policy.policy_name has none"),
            hint="Make one (gcloud compute resource-policies create workload-policy NAME --type=HIGH_THROUGHPUT "
            f"--accelerator-topology={found.topology} --region=REGION), and write placement_policy: {{policy_name: NAME}}.",
        )
    return {**found.placement_policy, **given}


def _check_slice(label: str, found: Slice, row: Row, zones: int) -> None:
    """A node pool of several machines is one slice: all of them, in one zone, or none."""
    places = len(row.get("node_locations") or ()) or zones
    if places != 1:
        raise InvalidInput(f"{label}: a slice is in one zone, and the pool has {places}", hint="Name one zone in node_locations.")
    scaling = row.get("autoscaling") or {}
    totals = sorted(key for key in ("total_min_node_count", "total_max_node_count") if scaling.get(key) is not None)
    if totals:
        raise InvalidInput(
            f"{label}: GKE judges a slice by the number of each zone, and autoscaling has {' and '.join(totals)}",
            hint=f"Use min_node_count: 0 and max_node_count: {found.hosts}, or leave out autoscaling.",
        )
    sizes = {"node_count": row.get("node_count"), "initial_node_count": row.get("initial_node_count")}
    sizes |= {f"autoscaling.{key}": scaling.get(key) for key in ("min_node_count", "max_node_count")}
    partial = {"initial_node_count", "autoscaling.min_node_count"}
    for name, size in sizes.items():
        right = (0, found.hosts) if name in partial else (found.hosts,)
        if size is not None and int(size) not in right:
            raise InvalidInput(
                f"{label}: {name} is {size}, and a slice of {found.generation.name} with topology {found.topology} has "
                f"{_counted(found.machine_type, found.hosts)}",
                hint=f"It is {' or '.join(map(str, right))}.",
            )

# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The search: do so many pods of a few shapes fit on these nodes at once? Numbers only, no Kubernetes, no I/O.

Three answers, because the scheduler places one pod after the other and never moves one. ``packs`` is whether there is any placement of
all pods. ``certain`` is whether every sequence of allowed placements ends with all pods placed: then no order of the pods and no
preference of the scheduler can leave one over. What is neither certain nor impossible is not judged.

Both searches are exact. They count steps, and give up with None where there were too many.

Private to the collection.
"""

from __future__ import annotations

import dataclasses
import typing as t
from collections.abc import Iterator, Mapping, Sequence

Amounts = Mapping[str, int]
Counts = tuple[int, ...]

_NO_LIMIT = 1_000_000
STEPS = 20_000
"""Nodes that one search fills, or fillings that it writes down, before it gives up."""


@dataclasses.dataclass(frozen=True)
class Spread:
    """At most ``skew`` more pods in a domain than in the emptiest one."""

    skew: int
    domains: Mapping[str, int]
    """Of each domain the matching pods that are there."""
    of: Sequence[str | None]
    """Of each room its domain."""
    fewest: int = 1
    """With fewer domains than that, the emptiest one counts as empty."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shape:
    """Pods that are alike."""

    takes: Amounts
    count: int
    rooms: frozenset[int]
    """The rooms that it may be in."""
    spread: Spread | None = None
    together: str = ""
    """All must be in one room: ``scheduler`` where the scheduler sees to that, ``luck`` where nobody does."""


@dataclasses.dataclass(frozen=True)
class Problem:
    """Shapes, the room that each node has left, and the pairs of shapes that cannot be in one room."""

    shapes: Sequence[Shape]
    rooms: Sequence[Amounts]
    apart: frozenset[tuple[int, int]] = frozenset()

    def with_counts(self, counts: Sequence[int]) -> Problem:
        """The same with other numbers of pods."""
        shapes = [dataclasses.replace(shape, count=count) for shape, count in zip(self.shapes, counts, strict=True)]
        return dataclasses.replace(self, shapes=shapes)


class _TooLong(Exception):
    """The search has taken too many steps."""


def holds(room: Amounts, takes: Amounts) -> int:
    """How many pods of a shape alone a room holds. What a pod does not ask for may be overdrawn."""
    return max(min((room.get(name, 0) // value for name, value in takes.items() if value > 0), default=_NO_LIMIT), 0)


def most(problem: Problem, index: int, others: bool = False) -> int:
    """How many pods of one shape fit without the others. With OTHERS: for sure, wherever those are."""
    shape = problem.shapes[index]
    worst = {room: _least(problem, index, room) if others else _best(problem, index, room) for room in shape.rooms}
    if shape.together:
        return _most_together(problem, index, worst, others)
    return _spread(shape.spread, worst) if shape.spread else sum(worst.values())


def _best(problem: Problem, index: int, room: int) -> int:
    held = holds(problem.rooms[room], problem.shapes[index].takes)
    return min(held, 1) if (index, index) in problem.apart else held


def _least(problem: Problem, index: int, room: int) -> int:
    """What a room holds of a shape when all others that may be there are there."""
    free = dict(problem.rooms[room])
    for other, shape in enumerate(problem.shapes):
        if other == index or room not in shape.rooms or not shape.count:
            continue
        if {(index, other), (other, index)} & problem.apart:
            return 0
        there = min(shape.count, _best(problem, other, room))
        free = {name: value - shape.takes.get(name, 0) * there for name, value in free.items()}
    held = holds(free, problem.shapes[index].takes)
    return min(held, 1) if (index, index) in problem.apart else held


def _most_together(problem: Problem, index: int, worst: Mapping[int, int], others: bool) -> int:
    if not others:
        return max(worst.values(), default=0)
    # The first pod chooses the room for all; where the scheduler does not know that, there must be one room only.
    chosen = [room for room in worst if _best(problem, index, room)]
    shape = problem.shapes[index]
    if shape.count > 1 and shape.together == "luck" and len(chosen) > 1:
        return min(1, min((worst[room] for room in chosen), default=0))
    return min((worst[room] for room in chosen), default=0)


def _spread(spread: Spread, held: Mapping[int, int]) -> int:
    """The same number whatever the order: a pod may always go to the emptiest domain until that is full."""
    full = dict.fromkeys(spread.domains, 0)
    for room, number in held.items():
        domain = spread.of[room]
        if domain is not None:
            full[domain] = full.get(domain, 0) + number
    there = {domain: spread.domains.get(domain, 0) for domain in full}
    least = min((there[domain] + number for domain, number in full.items()), default=0)
    top = (0 if len(full) < spread.fewest else least) + spread.skew
    return sum(min(number, max(top - there[domain], 0)) for domain, number in full.items())


def _merged(problem: Problem) -> Problem:
    """Shapes that differ in nothing but their names as one, so that the searches have fewer."""
    bound = {index for pair in problem.apart for index in pair}
    kept: list[Shape] = []
    places: dict[tuple[t.Any, ...], int] = {}
    moved: dict[int, int] = {}
    for index, shape in enumerate(problem.shapes):
        key = (
            (index,)
            if index in bound or shape.spread or shape.together
            else (shape.rooms, *sorted(shape.takes.items()))
        )
        if key in places:
            twin = kept[places[key]]
            kept[places[key]] = dataclasses.replace(twin, count=twin.count + shape.count)
        else:
            places[key] = len(kept)
            kept.append(shape)
        moved[index] = places[key]
    return Problem(kept, problem.rooms, frozenset((moved[a], moved[b]) for a, b in problem.apart))


def certain(problem: Problem, steps: int = STEPS) -> bool | None:
    """Whether the scheduler places all pods whatever it prefers; None where that is not known."""
    problem = _merged(problem)
    wanted = [index for index, shape in enumerate(problem.shapes) if shape.count]
    if all(most(problem, index, others=True) >= problem.shapes[index].count for index in wanted):
        return True
    if len(wanted) == 1 and not problem.shapes[wanted[0]].together:
        return False
    if any(problem.shapes[index].spread or problem.shapes[index].together for index in wanted):
        return None
    try:
        return not any(_Blocking(problem, index, steps).found() for index in wanted)
    except (_TooLong, RecursionError):
        return None


def packs(problem: Problem, steps: int = STEPS) -> bool | None:
    """Whether there is a placement of all pods; None where that is not known."""
    problem = _merged(problem)
    wanted = [index for index, shape in enumerate(problem.shapes) if shape.count]
    if any(most(problem, index) < problem.shapes[index].count for index in wanted):
        return False
    if len(wanted) <= 1:
        return True
    bound = any(problem.shapes[index].spread or problem.shapes[index].together for index in wanted)
    try:
        found = _Packing(problem, steps).found()
    except (_TooLong, RecursionError):
        return None
    # Without the bonds among pods it is easier: what does not pack so does not at all.
    return None if found and bound else found


@dataclasses.dataclass(frozen=True)
class _Class:
    """Rooms that are alike."""

    free: Amounts
    shapes: tuple[int, ...]
    number: int


def _classes(problem: Problem, shapes: Sequence[int]) -> list[_Class]:
    asked = {name for index in shapes for name, value in problem.shapes[index].takes.items() if value > 0}
    alike: dict[tuple[t.Any, ...], int] = {}
    for room, free in enumerate(problem.rooms):
        fitting = tuple(
            index
            for index in shapes
            if room in problem.shapes[index].rooms and holds(free, problem.shapes[index].takes)
        )
        if fitting:
            key = (tuple(sorted((name, value) for name, value in free.items() if name in asked)), fitting)
            alike[key] = alike.get(key, 0) + 1
    return [_Class(dict(free), fitting, number) for (free, fitting), number in alike.items()]


class _Search:
    """What both searches share: the shapes, the classes of rooms, and the fillings of one room."""

    def __init__(self, problem: Problem, available: Counts, classes: Sequence[_Class], steps: int) -> None:
        self.problem = problem
        self.available = available
        self.classes = classes
        self.left = steps
        self.failed: set[tuple[int, int, Counts]] = set()

    def step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _TooLong

    def room_for(self, where: _Class, index: int, filling: Counts) -> int:
        """How many more pods of a shape a room of the class holds beside FILLING."""
        if index not in where.shapes:
            return 0
        for other, number in enumerate(filling):
            if number and {(index, other), (other, index)} & self.problem.apart:
                return 0
        free = dict(where.free)
        for other, number in enumerate(filling):
            if number:
                for name, value in self.problem.shapes[other].takes.items():
                    free[name] = free.get(name, 0) - value * number
        held = holds(free, self.problem.shapes[index].takes)
        return min(held, 1) if (index, index) in self.problem.apart else held

    def begin(self) -> tuple[int, int, Counts]:
        """The class, the number of its rooms that are left, and the pods that are left."""
        return 0, self.classes[0].number if self.classes else 0, self.available

    def after(self, place: int, rooms: int, counts: Counts, filling: Counts) -> Iterator[tuple[int, int, Counts]]:
        """Where the search goes on when several rooms of a class, or one, have been filled alike; as many as can be first."""
        number = min([rooms, *(count // one for count, one in zip(counts, filling, strict=True) if one)])
        for times in range(number, 0, -1) if any(filling) else [rooms] if number else []:
            self.step()
            rest = tuple(count - one * times for count, one in zip(counts, filling, strict=True))
            if times < rooms:
                yield place, rooms - times, rest
            else:
                yield place + 1, self.classes[place + 1].number if place + 1 < len(self.classes) else 0, rest

    def fillings(self, where: _Class, counts: Counts) -> Iterator[Counts]:
        """Every filling of a room with at most so many pods of each shape, fullest first."""
        order = [index for index in where.shapes if counts[index]]
        yield from self._fillings(where, counts, order, (0,) * len(counts))

    def _fillings(self, where: _Class, counts: Counts, order: Sequence[int], filling: Counts) -> Iterator[Counts]:
        if not order:
            self.step()
            yield filling
            return
        index = order[0]
        for number in range(min(counts[index], self.room_for(where, index, filling)), -1, -1):
            now = (*filling[:index], number, *filling[index + 1 :])
            yield from self._fillings(where, counts, order[1:], now)


class _Packing(_Search):
    """Is there a placement of all pods?"""

    def __init__(self, problem: Problem, steps: int) -> None:
        wanted = [index for index, shape in enumerate(problem.shapes) if shape.count]
        counts = tuple(shape.count for shape in problem.shapes)
        # The rooms that the fewest shapes may be in first: there is the least to decide.
        classes = sorted(_classes(problem, wanted), key=lambda one: (len(one.shapes), sorted(one.free.items())))
        super().__init__(problem, counts, classes, steps)

    def found(self) -> bool:
        return self._from(*self.begin())

    def _from(self, place: int, rooms: int, counts: Counts) -> bool:
        if not any(counts):
            return True
        if place == len(self.classes) or (place, rooms, counts) in self.failed or self._hopeless(place, rooms, counts):
            return False
        where = self.classes[place]
        full = (one for one in self.fillings(where, counts) if self._is_full(where, one, counts))
        if any(self._from(*state) for filling in full for state in self.after(place, rooms, counts, filling)):
            return True
        self.failed.add((place, rooms, counts))
        return False

    def _is_full(self, where: _Class, filling: Counts, counts: Counts) -> bool:
        return not any(
            filling[index] < counts[index] and self.room_for(where, index, filling) for index in where.shapes
        )

    def _hopeless(self, place: int, rooms: int, counts: Counts) -> bool:
        """Whether the rooms that are left lack something in sum, or for one shape alone."""
        places = [(one, one.number if at else rooms) for at, one in enumerate(self.classes[place:])]
        empty = (0,) * len(counts)
        for index, count in enumerate(counts):
            if count and sum(self.room_for(one, index, empty) * number for one, number in places) < count:
                return True
        need: dict[str, int] = {}
        for index, count in enumerate(counts):
            for name, value in self.problem.shapes[index].takes.items() if count else ():
                need[name] = need.get(name, 0) + value * count
        return any(
            value > sum(max(one.free.get(name, 0), 0) * number for one, number in places)
            for name, value in need.items()
        )


class _Blocking(_Search):
    """Can the other pods, and all but one of this shape, be placed so that no room is left for it?"""

    def __init__(self, problem: Problem, index: int, steps: int) -> None:
        self.index = index
        available = [shape.count for shape in problem.shapes]
        available[index] -= 1
        wanted = [other for other, shape in enumerate(problem.shapes) if shape.count]
        classes = [one for one in _classes(problem, wanted) if index in one.shapes]
        super().__init__(problem, tuple(available), classes, steps)
        self.blocking = [self._minimal(one) for one in classes]
        self.weights = self._weights()

    def _minimal(self, where: _Class) -> list[Counts]:
        """The fillings that leave no room for the shape, and none of which has more than another."""
        order = [index for index in where.shapes if self.available[index]]
        kept: list[Counts] = []
        for one in sorted(self._blocked(where, order, (0,) * len(self.available)), key=sum):
            if not any(all(a <= b for a, b in zip(less, one, strict=True)) for less in kept):
                kept.append(one)
        return kept

    def _blocked(self, where: _Class, order: Sequence[int], filling: Counts) -> Iterator[Counts]:
        self.step()
        if not self.room_for(where, self.index, filling):
            yield filling
        elif order:
            index = order[0]
            for number in range(min(self.available[index], self.room_for(where, index, filling)) + 1):
                now = (*filling[:index], number, *filling[index + 1 :])
                yield from self._blocked(where, order[1:], now)

    def _weights(self) -> list[Counts]:
        """Measures by which a placement cannot have more than there is: each shape, all pods, and each resource."""
        size = len(self.available)
        names = {name for shape in self.problem.shapes for name in shape.takes}
        return [
            (1,) * size,
            *(tuple(int(a == b) for b in range(size)) for a in range(size)),
            *(tuple(shape.takes.get(name, 0) for shape in self.problem.shapes) for name in sorted(names)),
        ]

    def found(self) -> bool:
        return self._from(*self.begin())

    def _from(self, place: int, rooms: int, counts: Counts) -> bool:
        if place == len(self.classes):
            return True
        if (place, rooms, counts) in self.failed or self._cannot(place, rooms, counts):
            return False
        if any(
            self._from(*state)
            for filling in self.blocking[place]
            for state in self.after(place, rooms, counts, filling)
        ):
            return True
        self.failed.add((place, rooms, counts))
        return False

    def _cannot(self, place: int, rooms: int, counts: Counts) -> bool:
        numbers = [rooms, *(one.number for one in self.classes[place + 1 :])]
        for weight in self.weights:
            have, need = _by(weight, counts), 0
            for number, fillings in zip(numbers, self.blocking[place:], strict=True):
                if not fillings:
                    return True
                need += number * min(_by(weight, one) for one in fillings)
            if need > have:
                return True
        return False


def _by(weight: Counts, counts: Counts) -> int:
    return sum(a * b for a, b in zip(weight, counts, strict=True))

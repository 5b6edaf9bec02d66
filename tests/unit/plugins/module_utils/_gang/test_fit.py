# Copyright: (c) 2026, Muster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The search beside a placer that tries everything: every placement there is, and every way in which a scheduler could go wrong."""

from __future__ import annotations

import functools
import itertools
import typing as t
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ansible_collections.muster.ml.plugins.module_utils._gang import fit
from ansible_collections.muster.ml.plugins.module_utils._gang.fit import Problem, Shape, Spread

State = tuple[tuple[int, ...], ...]
"""Of each room, how many pods of each shape are in it."""


def may_add(problem: Problem, state: State, index: int, room: int) -> bool:
    """What the scheduler checks before it places one more pod, rule by rule."""
    shape = problem.shapes[index]
    if room not in shape.rooms:
        return False
    for name, value in shape.takes.items():
        used = sum(problem.shapes[other].takes.get(name, 0) * n for other, n in enumerate(state[room]))
        if value and used + value > problem.rooms[room].get(name, 0):
            return False
    for other, number in enumerate(state[room]):
        if number and ((index, other) in problem.apart or (other, index) in problem.apart):
            return False
    if shape.together == "scheduler" and any(row[index] for at, row in enumerate(state) if at != room):
        return False
    return shape.spread is None or spread_allows(shape.spread, state, index, room)


def spread_allows(spread: Spread, state: State, index: int, room: int) -> bool:
    there = dict(spread.domains)
    for at, row in enumerate(state):
        domain = spread.of[at]
        if domain is not None and row[index]:
            there[domain] = there.get(domain, 0) + row[index]
    least = min(there.values(), default=0) if len(there) >= spread.fewest else 0
    domain = spread.of[room]
    return domain is not None and there.get(domain, 0) + 1 - least <= spread.skew


def add(state: State, index: int, room: int) -> State:
    row = tuple(n + (at == index) for at, n in enumerate(state[room]))
    return (*state[:room], row, *state[room + 1 :])


def rooms_of(state: State, index: int) -> int:
    return sum(1 for row in state if row[index])


def placements(problem: Problem) -> tuple[bool, bool]:
    """Whether some order of placing one pod after the other places all, and whether every one does."""

    @functools.cache
    def ends(state: State) -> tuple[bool, bool]:
        left = [i for i, shape in enumerate(problem.shapes) if sum(row[i] for row in state) < shape.count]
        if not left:
            run = all(shape.together != "luck" or rooms_of(state, i) <= 1 for i, shape in enumerate(problem.shapes))
            return run, run
        steps = [(i, room) for i in left for room in range(len(problem.rooms)) if may_add(problem, state, i, room)]
        found = [ends(add(state, i, room)) for i, room in steps]
        return any(some for some, _all in found), bool(found) and all(every for _some, every in found)

    return ends(((0,) * len(problem.shapes),) * len(problem.rooms))


def shape(count: int, rooms: t.Iterable[int], **takes: int) -> Shape:
    return Shape(takes=takes, count=count, rooms=frozenset(rooms))


@st.composite
def problems(draw: st.DrawFn, spreads: bool = False) -> Problem:
    rooms = draw(
        st.lists(st.fixed_dictionaries({"cpu": st.integers(-1, 5), "gpu": st.integers(0, 2)}), min_size=1, max_size=3)
    )
    shapes = []
    for _number in range(draw(st.integers(1, 1 if spreads else 3))):
        takes = {"cpu": draw(st.integers(0, 3)), "gpu": draw(st.integers(0, 1))}
        takes = takes if any(takes.values()) else {"cpu": 1}
        inside = draw(st.sets(st.sampled_from(range(len(rooms)))))
        shapes.append(
            Shape(
                takes=takes,
                count=draw(st.integers(0, 3)),
                rooms=frozenset(inside),
                spread=draw(spread(len(rooms))) if spreads else None,
            )
        )
    pairs = [(a, b) for a in range(len(shapes)) for b in range(len(shapes))]
    apart = draw(st.sets(st.sampled_from(pairs), max_size=2))
    return Problem(shapes, rooms, frozenset(apart))


@st.composite
def spread(draw: st.DrawFn, rooms: int) -> Spread:
    of = draw(st.lists(st.sampled_from("ab"), min_size=rooms, max_size=rooms))
    domains = {name: draw(st.integers(0, 2)) for name in {*of, *draw(st.sets(st.sampled_from("c")))}}
    return Spread(skew=draw(st.integers(1, 2)), domains=domains, of=of, fewest=draw(st.integers(1, 3)))


@settings(max_examples=max(60, settings().max_examples))
@given(problems())
def test_both_answers_are_those_of_a_placer_that_tries_everything(problem: Problem) -> None:
    some, every = placements(problem)
    assert fit.packs(problem) is some
    assert fit.certain(problem) is every


@given(problems(spreads=True))
def test_a_spread_is_counted_as_the_scheduler_does(problem: Problem) -> None:
    some, every = placements(problem)
    assert some == every  # with one shape, no order leaves one over
    assert fit.packs(problem) is some
    assert fit.certain(problem) is every


@given(problems(spreads=True), problems())
def test_with_a_spread_among_other_shapes_nothing_wrong_is_said(bound: Problem, other: Problem) -> None:
    """Here the answer may be unknown, and never false."""
    number = len(bound.rooms)
    more = [
        Shape(takes=one.takes, count=min(one.count, 2), rooms=frozenset(room for room in one.rooms if room < number))
        for one in other.shapes[:2]
    ]
    never_wrong(Problem([*bound.shapes, *more], bound.rooms))


@given(problems(), st.sampled_from(["scheduler", "luck"]))
def test_with_shapes_that_must_be_together_nothing_wrong_is_said(problem: Problem, who: str) -> None:
    first = problem.shapes[0]
    bound = Shape(takes=first.takes, count=first.count, rooms=first.rooms, together=who)
    changed = Problem([bound, *problem.shapes[1:]], problem.rooms)
    never_wrong(changed)


def never_wrong(problem: Problem) -> None:
    some, every = placements(problem)
    if fit.certain(problem):
        assert every
    if (packs := fit.packs(problem)) is not None:
        assert packs is some


@given(problems(), st.integers(0, 6))
def test_a_search_that_is_cut_short_says_nothing_wrong(problem: Problem, steps: int) -> None:
    some, every = placements(problem)
    assert fit.packs(problem, steps) in (some, None)
    assert fit.certain(problem, steps) in (every, None)


@given(problems())
def test_fewer_pods_fit_where_more_do(problem: Problem) -> None:
    """On this stands the search for the nearest size."""
    counts = [one.count for one in problem.shapes]
    if fit.certain(problem):
        for index, count in enumerate(counts):
            fewer = [*counts[:index], max(count - 1, 0), *counts[index + 1 :]]
            assert fit.certain(problem.with_counts(fewer))


def test_there_is_room_and_the_scheduler_may_miss_it() -> None:
    """A large pod fits one room only, which a small one may take."""
    problem = Problem([shape(1, (0,), cpu=4), shape(1, (0, 1), cpu=1)], [{"cpu": 4}, {"cpu": 1}])
    assert fit.packs(problem) is True
    assert fit.certain(problem) is False
    # Where the small one cannot be in that room, it is certain.
    assert fit.certain(Problem([shape(1, (0,), cpu=4), shape(1, (1,), cpu=1)], problem.rooms)) is True


def test_a_shape_takes_only_the_room_of_its_other_pods() -> None:
    """The last pod of a shape finds room, because only the other three can have taken some."""
    problem = Problem([shape(2, (0, 1), cpu=1), shape(2, (0, 1), cpu=1, x=1)], [{"cpu": 2, "x": 9}] * 2)
    assert placements(problem) == (True, True)
    assert fit.certain(problem) is True


def test_a_placement_that_breaks_a_spread_is_none() -> None:
    """All fit by their sizes, if both pods of the first shape are in one room; their spread forbids that."""
    ties = Spread(skew=1, domains={"a": 0, "b": 0}, of=["a", "b"])
    one = Shape(takes={"cpu": 1}, count=2, rooms=frozenset({0, 1}), spread=ties)
    problem = Problem([one, shape(1, (1,), cpu=1, x=1)], [{"cpu": 2, "x": 9}, {"cpu": 1, "x": 9}])
    assert placements(problem) == (False, False)
    assert fit.packs(problem) is None
    assert fit.certain(problem) is None


@pytest.mark.parametrize("number", [50, 1000])
def test_large_clusters_are_judged(number: int) -> None:
    rooms = [{"cpu": 96_000, "gpu": 8, "pods": 110}] * number
    workers = shape(number * 8, range(number), cpu=8_000, gpu=1, pods=1)
    servers = shape(8, range(number), cpu=4_000, pods=1)
    assert fit.certain(Problem([workers, servers], rooms)) is True
    # Nine of them on one node leave room for seven workers there.
    many = shape(9, range(number), cpu=4_000, pods=1)
    assert fit.certain(Problem([workers, many], rooms)) is False
    assert fit.packs(Problem([workers, many], rooms)) is True
    more = shape(number * 8 + 1, range(number), cpu=8_000, gpu=1, pods=1)
    assert fit.packs(Problem([more, servers], rooms)) is False
    full = shape(number * 9, range(number), cpu=4_000, pods=1)
    assert fit.certain(Problem([workers, full], rooms)) is False
    assert fit.packs(Problem([workers, full], rooms)) is False


def test_equal_shapes_are_one() -> None:
    """Twelve groups that differ in their names only are no twelve dimensions."""
    groups = [shape(2, range(12), cpu=3) for _number in range(12)]
    assert fit.certain(Problem(groups, [{"cpu": 7}] * 12)) is True
    assert fit.packs(Problem(groups, [{"cpu": 5}] * 12)) is False


def test_too_many_ways_are_not_judged() -> None:
    shapes = [shape(12, range(20), **{"cpu": 7 + number, f"r{number}": 1}) for number in range(8)]
    problem = Problem(shapes, [{"cpu": 53, **{f"r{number}": 9 for number in range(8)}}] * 20)
    assert fit.packs(problem) is None
    assert fit.certain(problem) in (None, False)


def numbers() -> Iterator[tuple[int, int]]:
    yield from itertools.product(range(1, 5), range(1, 5))


@pytest.mark.parametrize(("rooms", "count"), list(numbers()))
def test_one_pod_a_room(rooms: int, count: int) -> None:
    problem = Problem([shape(count, range(rooms), cpu=1)], [{"cpu": 9}] * rooms, frozenset({(0, 0)}))
    assert fit.certain(problem) is (count <= rooms)
    assert fit.most(problem, 0) == rooms


@example(skew=1, first=5, second=0)
@given(skew=st.integers(1, 3), first=st.integers(0, 5), second=st.integers(0, 5))
def test_a_domain_without_room_holds_back_the_others(skew: int, first: int, second: int) -> None:
    """A zone whose nodes are full or cordoned still counts as empty: the trap of required topology spread."""
    ties = Spread(skew=skew, domains={"a": 0, "b": 0}, of=["a", "b"])
    one = Shape(takes={"cpu": 1}, count=9, rooms=frozenset({0, 1}), spread=ties)
    held = fit.most(Problem([one], [{"cpu": first}, {"cpu": second}]), 0)
    assert held == min(first, min(first, second) + skew) + min(second, min(first, second) + skew)

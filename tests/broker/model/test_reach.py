"""What tasks could use if nothing else ran, against an oracle that looks at every half hour."""

import copy
import math
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from broker.model.reach import Reach
from broker.model.resources import WEEK, Calendar, Resource, WeeklyWindow
from broker.model.workflow import Alternative, Demand
from tests.broker.random_problems import HOUR, NOW, random_alternative, random_pool
from tests.examples import FEW

STEP = HOUR / 2
FAR = 48 * HOUR
"""After which every closure drawn has ended, or never ends."""


def open_at(resource: Resource, moment: float) -> bool:
    """Returns whether a resource's weekly hours have it open just after a moment."""
    if not resource.calendar.opening:
        return True
    local = (moment - NOW + resource.utc_offset + STEP / 2) % WEEK
    spans = [span for window in resource.calendar.opening for span in window.spans()]
    return any(begin <= local < end for begin, end in spans)


def could_run(pool: dict[str, Resource], alternative: Alternative, duration: float) -> bool:
    """Returns whether some week has so much time, and no end of all time is in the way."""
    if any(demand.units > pool[demand.resource].capacity for demand in alternative.demands):
        return False
    resources = [pool[name] for name in alternative.resources]
    closures = [span for each in resources for span in each.calendar.closures]
    for step in range(int(FAR / STEP)):
        moments = (NOW + late * STEP for late in range(step, int(FAR / STEP)))
        if all(any(begin <= moment < end for begin, end in closures) for moment in moments):
            if duration > step * STEP:
                return False
            break
    longest = run = 0
    for step in range(2 * int(2 * WEEK / HOUR)):
        run = run + 1 if all(open_at(each, NOW + step * STEP) for each in resources) else 0
        longest = max(longest, run)
    return longest * STEP >= duration


@FEW
@given(st.integers(0, 2**32), st.floats(0, 1))
def test_it_is_possible_where_some_week_has_the_time(seed: int, closing: float) -> None:
    """Capacities, opening hours of several resources together, and closures for good decide."""
    rng = np.random.default_rng(seed)
    pool = {each.name: each for each in random_pool(rng, plain=False)}
    for name, resource in pool.items():
        if rng.random() < closing / 2:
            begin = NOW + float(rng.integers(-3, 12)) * HOUR
            closures = (*resource.calendar.closures, (begin, math.inf))
            calendar = replace(resource.calendar, closures=closures)
            pool[name] = replace(resource, calendar=calendar)
    alternatives = tuple(random_alternative(rng, tuple(pool.values())) for _ in range(4))
    smaller = {name: replace(each, capacity=1) for name, each in pool.items()}
    work = float(rng.integers(1, 60)) * STEP
    for there in (pool, smaller):
        reach = Reach(there, NOW)
        mask = reach.mask(alternatives, work)
        expected = [could_run(there, each, work / there[each.primary].performance)
                    for each in alternatives]  # fmt: skip
        assert ([True] * 4 if mask is None else mask.tolist()) == expected
        kept = reach.kept(alternatives, work)
        assert kept == tuple(a for a, able in zip(alternatives, expected, strict=True) if able)


def test_what_tasks_share_they_go_on_sharing() -> None:
    """Equal tasks get one and the same tuple, and nothing new where all can be used."""
    night = Calendar((WeeklyWindow(0, 4 * HOUR),))
    reach = Reach({"a": Resource("a"), "b": Resource("b", calendar=night)}, 0.0)
    both = (Alternative.of("a"), Alternative.of("b"))
    assert reach.kept(both, 4 * HOUR) is both
    assert reach.kept(both, 5 * HOUR) == both[:1]
    assert reach.kept(both, 5 * HOUR) is reach.kept(both, 6 * HOUR)


def test_what_is_not_there_or_too_small_counts_for_nothing() -> None:
    """Neither as a place to run nor as the fastest of all."""
    reach = Reach({"a": Resource("a"), "small": Resource("small", performance=8)}, 0.0)
    gone, small = Alternative.of("gone"), Alternative((Demand("small", 2),))
    some = (gone, small, Alternative.of("a"))
    assert reach.longest(gone) < 0
    assert reach.kept(some, 1.0) == some[2:]
    assert reach.fastest(some) == 1
    assert reach.fastest((gone,)) == 0


def test_a_copy_begins_anew() -> None:
    """What is kept by identity is not carried over to other objects."""
    reach = Reach({"a": Resource("a", capacity=1)}, 5.0)
    large = (Alternative((Demand("a", 2),)), Alternative.of("a"))
    assert reach.kept(large, 1.0) == large[1:]
    assert copy.deepcopy(reach).kept((Alternative.of("a"),), 1.0) == (Alternative.of("a"),)


def test_hours_are_those_of_each_resource() -> None:
    """Open from 8 to 12 six hours ahead is 2 to 6 in UTC: of the hours from 5 on it shares one."""
    morning = Calendar((WeeklyWindow(8 * HOUR, 12 * HOUR),))
    ahead = Resource("ahead", calendar=morning, utc_offset=6 * HOUR)
    here = Resource("here", calendar=Calendar((WeeklyWindow(5 * HOUR, 20 * HOUR),)))
    reach = Reach({"ahead": ahead, "here": here}, 0.0)
    assert reach.longest(Alternative.of("ahead", "here")) == HOUR
    assert reach.longest(Alternative.of("ahead")) == 4 * HOUR


def test_what_closes_for_good_right_now_has_room_for_an_instant() -> None:
    """So it counts among the fastest; what has closed before does not."""
    closing = Resource("a", performance=2, calendar=Calendar(closures=((5, math.inf),)))
    on_a = (Alternative.of("a"),)
    now, late = (Reach({"a": closing}, moment) for moment in (5.0, 6.0))
    assert now.longest(on_a[0]) == 0
    assert now.kept(on_a, 0.0) == on_a
    assert now.fastest(on_a) == 2
    assert late.longest(on_a[0]) == -1
    assert late.kept(on_a, 0.0) == ()
    assert late.fastest(on_a) == 0

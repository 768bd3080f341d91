import math
from typing import Any

import pytest

from grms.policy.rebalancing import (
    PERIOD_MIN,
    QUESTIONS_MAX,
    REFUSALS_MAX,
    Rebalancing,
    RebalancingNotes,
    Waiting,
    period_of,
)


def test_bounds_are_what_the_kernel_takes() -> None:
    """No bound is a large one, no pause none at all."""
    assert Rebalancing(900.0).bounds == (QUESTIONS_MAX, 0.0, False)
    assert Rebalancing(900.0, "widest", 20, 3600.0).bounds == (20, 3600.0, True)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"period": 0.5}, "at least 1 s is needed"),
        ({"period": math.inf}, "at least 1 s is needed"),
        ({"period": math.nan}, "at least 1 s is needed"),
        ({"order": "narrowest"}, r"^order is 'narrowest'; there are: queue, widest$"),
        ({"questions": 0}, r"^questions is 0; it must be at least 1$"),
        ({"pause": 899.0}, "it must be at least the period, 900 s"),
        ({"pause": math.inf}, "it must be at least the period, 900 s"),
    ],
)
def test_what_makes_no_sense_is_refused(values: dict[str, Any], text: str) -> None:
    """The error says what is possible."""
    with pytest.raises(ValueError, match=text):
        Rebalancing(**{"period": 900.0, **values})


def test_values_may_be_at_their_bounds() -> None:
    """The shortest period, a pause of one period, and a bound on questions that is none."""
    least = Rebalancing(PERIOD_MIN, questions=QUESTIONS_MAX, pause=PERIOD_MIN)
    assert least.bounds == (QUESTIONS_MAX, PERIOD_MIN, False)
    assert Rebalancing(PERIOD_MIN, questions=1).bounds[0] == 1


def test_the_period_is_the_same_however_it_is_said() -> None:
    """A number of seconds, or with what spares questions; no rounds never come."""
    assert period_of(60.0) == period_of(Rebalancing(60.0, "widest")) == 60.0
    assert period_of(None) == math.inf


NARROW, WIDE, LONG = Waiting(1, 1, 50.0), Waiting(2, 4, 10.0), Waiting(3, 4, 90.0)


def test_without_bounds_everybody_is_asked() -> None:
    """A period alone spares nothing."""
    notes = RebalancingNotes(900.0)
    assert notes.begin([WIDE, NARROW]) == [WIDE, NARROW]
    notes.declined(WIDE, "b", 0.0)
    assert not notes.spares(WIDE, "b", 0.0)
    assert notes.left == math.inf


def test_who_declines_a_job_declines_wider_and_longer_ones() -> None:
    """In this round, and of this partner."""
    notes = RebalancingNotes(Rebalancing(900.0))
    notes.begin([NARROW, WIDE, LONG])
    notes.declined(WIDE, "b", 0.0)
    assert [notes.spares(one, "b", 0.0) for one in (NARROW, WIDE, LONG)] == [False, True, True]
    assert not notes.spares(LONG, "c", 0.0)
    notes.begin([NARROW, WIDE, LONG])
    assert not notes.spares(LONG, "b", 900.0)


def test_the_widest_come_first_behind_the_easiest() -> None:
    """Equals stay in the order of the queue; of the narrowest the shortest is first."""
    short = Waiting(4, 1, 5.0)
    notes = RebalancingNotes(Rebalancing(900.0, "widest"))
    assert notes.begin([NARROW, WIDE, short, LONG]) == [short, WIDE, LONG, NARROW]
    assert notes.begin([NARROW]) == [NARROW]
    assert notes.begin([WIDE, NARROW]) == [NARROW, WIDE]
    assert RebalancingNotes(Rebalancing(900.0)).begin([WIDE, NARROW]) == [WIDE, NARROW]


def test_pauses_double_while_a_job_waits() -> None:
    """Up to the longest; a job that has left the queue begins anew."""
    notes = RebalancingNotes(Rebalancing(10.0, pause=30.0))
    pauses = []
    for _ in range(4):
        notes.begin([NARROW])
        notes.declined(NARROW, "b", 0.0)
        notes.begin([NARROW])
        pauses.append(next(t for t in range(50) if not notes.spares(NARROW, "b", float(t))))
    assert pauses == [10, 20, 30, 30]
    notes.begin([])
    notes.begin([NARROW])
    assert not notes.spares(NARROW, "b", 0.0)


def test_pauses_double_from_the_shortest_period_on() -> None:
    """Also from one of a second."""
    notes = RebalancingNotes(Rebalancing(1.0, pause=8.0))
    pauses = []
    for _ in range(3):
        notes.declined(NARROW, "b", 0.0)
        notes.begin([NARROW])
        pauses.append(next(t for t in range(50) if not notes.spares(NARROW, "b", float(t))))
    assert pauses == [1, 2, 4]


def test_a_round_goes_on_where_it_was() -> None:
    """What was put and declined elsewhere before counts as if it had been here."""
    notes = RebalancingNotes(Rebalancing(10.0, questions=5))
    notes.begin([NARROW, WIDE, LONG])
    notes.go_on(2, [(WIDE, "b")])
    assert notes.left == 3
    assert notes.spares(LONG, "b", 0.0)
    assert not notes.spares(NARROW, "b", 0.0)


def test_a_round_has_its_questions() -> None:
    """When they have been put nobody is asked."""
    notes = RebalancingNotes(Rebalancing(10.0, questions=2))
    notes.begin([NARROW])
    assert notes.left == 2
    notes.left = 0
    assert notes.spares(NARROW, "b", 0.0)


def test_so_many_refusals_are_remembered() -> None:
    """Of jobs that say nothing of each other."""
    notes = RebalancingNotes(Rebalancing(10.0))
    jobs = [Waiting(n, n, 100.0 - n) for n in range(1, REFUSALS_MAX + 2)]
    notes.begin(jobs)
    for one in jobs:
        assert not notes.spares(one, "b", 0.0)
        notes.declined(one, "b", 0.0)
    assert [notes.spares(one, "b", 0.0) for one in jobs] == [True] * REFUSALS_MAX + [False]


@pytest.mark.parametrize(
    "jobs",
    [
        [Waiting(n, 4, 100.0 - n) for n in range(REFUSALS_MAX + 1)],
        [Waiting(n, 40 - n, 10.0) for n in range(REFUSALS_MAX + 1)],
    ],
    ids=["shorter and shorter", "narrower and narrower"],
)
def test_a_refusal_replaces_those_that_follow_from_it(jobs: list[Waiting]) -> None:
    """They take no place of others: what says something else is still remembered."""
    notes = RebalancingNotes(Rebalancing(10.0))
    notes.begin(jobs)
    for one in jobs:
        notes.declined(one, "b", 0.0)
    other = Waiting(99, 1, 500.0)
    assert not notes.spares(other, "b", 0.0)
    notes.declined(other, "b", 0.0)
    assert notes.spares(other, "b", 0.0)

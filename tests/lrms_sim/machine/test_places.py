"""Processors that are held: each by one job at a time, the lowest first."""

import itertools
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lrms_sim import Fcfs, JobTable, simulate
from lrms_sim.machine.places import held, places
from lrms_sim.scheduling.disciplines import discipline_by_name
from tests.strategies import OneMachine, disciplines, one_machine


@given(case=one_machine(), name=disciplines)
def test_no_processor_is_held_twice(case: OneMachine, name: str) -> None:
    """The processors of a Gantt chart are those a job needs, and nobody else's meanwhile."""
    schedule = simulate(case.jobs, case.processors, discipline_by_name(name))
    mine = [
        {p for first, count in ranges for p in range(first, first + count)}
        for ranges in places(schedule)
    ]
    assert [len(each) for each in mine] == case.jobs.processors.tolist()
    for row in range(len(mine)):
        assert mine[row] <= set(range(case.processors))
        for other in range(row):
            begin = max(schedule.start_time[row], schedule.start_time[other])
            if begin < min(schedule.end_time[row], schedule.end_time[other]):
                assert not mine[row] & mine[other]


@given(case=one_machine(), name=disciplines)
def test_jobs_hold_the_lowest_processors_that_are_free(case: OneMachine, name: str) -> None:
    """As whoever looks at each processor would find."""
    schedule = simulate(case.jobs, case.processors, discipline_by_name(name))
    ends = [(float(end), 0, row) for row, end in enumerate(schedule.end_time)]
    starts = [(float(start), 1, row) for row, start in enumerate(schedule.start_time)]
    free = set(range(case.processors))
    expected: dict[int, list[int]] = {}
    for _, kind, row in sorted([*ends, *starts]):
        if kind == 1:
            expected[row] = sorted(free)[: schedule.jobs.processors[row]]
            free -= set(expected[row])
        else:
            free |= set(expected.get(row, ()))
    for row, ranges in enumerate(places(schedule)):
        spans = [list(range(first, first + count)) for first, count in ranges]
        assert [p for span in spans for p in span] == expected[row]
        # Each is as long as it can be.
        assert all(one[-1] + 1 < after[0] for one, after in itertools.pairwise(spans))


def test_a_machine_may_have_millions_of_processors() -> None:
    """A chart takes no memory for each."""
    jobs = JobTable.from_columns(
        submit_time=[0, 0, 5], processors=[2**31 - 4, 2, 3], run_time=[10, 20, 10]
    )
    schedule = simulate(jobs, 2**31 - 1, Fcfs())
    size = 2**31 - 4
    assert places(schedule) == [[(0, size)], [(size, 2)], [(0, 3)]]


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=40).map(
        lambda spans: [(float(a), float(a + d)) for a, d in spans]
    )
)
def test_lanes_are_as_few_as_can_be(spans: list[tuple[float, float]]) -> None:
    """Of what needs one at a time: there are no more than overlap at some moment."""
    lanes = [lane for ((lane, _),) in held(spans, [1] * len(spans), len(spans))]
    for lane in set(lanes):
        mine = sorted(span for span, number in zip(spans, lanes, strict=True) if number == lane)
        assert all(a[1] <= b[0] for a, b in pairwise(mine))
    most = max((sum(a <= at < b for a, b in spans) for at, _ in spans), default=0)
    assert len(set(lanes)) == max([-1, *lanes]) + 1 == most


def test_a_job_that_goes_on_keeps_what_it_has() -> None:
    """As far as that is free; the rest are the lowest, and neighbours are one range."""
    spans = [(0.0, 5.0), (0.0, 5.0), (5.0, 9.0), (5.0, 9.0)]
    assert held(spans, [2, 3, 2, 5], 8, [0, 1, 2, 1]) == [[(0, 2)], [(2, 3)], [(0, 2)], [(2, 5)]]
    assert held(spans, [2, 3, 2, 5], 8) == [[(0, 2)], [(2, 3)], [(0, 2)], [(2, 5)]]
    assert held([(0.0, 5.0), (0.0, 9.0), (5.0, 9.0)], [4, 2, 3], 8, [0, 1, 1]) == [
        [(0, 4)],
        [(4, 2)],
        [(0, 3)],
    ]


def test_rounding_ends_before_it_begins() -> None:
    """What is too little to be a time does not keep a job from its processors."""
    assert held([(0.0, 5.0000001), (5.0, 9.0)], [4, 4], 4, rounding=1e-6) == [[(0, 4)], [(0, 4)]]


def test_where_too_few_are_free_those_are_held() -> None:
    """Whoever asks sees that there are fewer."""
    assert held([(0.0, 5.0), (1.0, 2.0)], [3, 3], 4) == [[(0, 3)], [(3, 1)]]

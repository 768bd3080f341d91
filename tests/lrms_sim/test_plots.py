"""Pictures of schedules show what is in them."""

import itertools

import numpy as np
import pytest
from hypothesis import given

from lrms_sim import Fcfs, JobTable, plots, simulate
from lrms_sim.disciplines import discipline_by_name
from tests.strategies import OneMachine, disciplines, one_machine

JOBS = JobTable.from_columns(
    submit_time=[0, 0, 0], processors=[2, 1, 3], run_time=[86400, 43200, 86400]
)


@given(case=one_machine(), name=disciplines)
def test_no_processor_is_held_twice(case: OneMachine, name: str) -> None:
    """The processors of a Gantt chart are those a job needs, and nobody else's meanwhile."""
    schedule = simulate(case.jobs, case.processors, discipline_by_name(name))
    held = [
        {p for first, count in ranges for p in range(first, first + count)}
        for ranges in plots.places(schedule)
    ]
    assert [len(mine) for mine in held] == case.jobs.processors.tolist()
    for row in range(len(held)):
        assert held[row] <= set(range(case.processors))
        for other in range(row):
            begin = max(schedule.start_time[row], schedule.start_time[other])
            if begin < min(schedule.end_time[row], schedule.end_time[other]):
                assert not held[row] & held[other]


@given(case=one_machine(), name=disciplines)
def test_jobs_hold_the_lowest_processors_that_are_free(case: OneMachine, name: str) -> None:
    """As whoever looks at each processor would find."""
    schedule = simulate(case.jobs, case.processors, discipline_by_name(name))
    ends = [(float(end), 0, row) for row, end in enumerate(schedule.end_time)]
    starts = [(float(start), 1, row) for row, start in enumerate(schedule.start_time)]
    free = set(range(case.processors))
    held: dict[int, list[int]] = {}
    for _, kind, row in sorted([*ends, *starts]):
        if kind == 1:
            held[row] = sorted(free)[: schedule.jobs.processors[row]]
            free -= set(held[row])
        else:
            free |= set(held.get(row, ()))
    for row, ranges in enumerate(plots.places(schedule)):
        spans = [list(range(first, first + count)) for first, count in ranges]
        assert [p for span in spans for p in span] == held[row]
        # Each is as long as it can be.
        assert all(one[-1] + 1 < after[0] for one, after in itertools.pairwise(spans))


def test_a_machine_may_have_millions_of_processors() -> None:
    """A chart takes no memory for each."""
    jobs = JobTable.from_columns(
        submit_time=[0, 0, 5], processors=[2**31 - 4, 2, 3], run_time=[10, 20, 10]
    )
    schedule = simulate(jobs, 2**31 - 1, Fcfs())
    size = 2**31 - 4
    assert plots.places(schedule) == [[(0, size)], [(size, 2)], [(0, 3)]]


def test_drawings() -> None:
    """Axes are those that are given or new ones; values are those of the schedule."""
    schedule = simulate(JOBS, 4, Fcfs(), name="kth")
    axes = plots.gantt(schedule)
    assert axes.get_title() == "Gantt chart of kth"
    (boxes,) = axes.collections
    assert len(boxes.get_paths()) == 3
    assert plots.utilization(schedule, axes=axes) is axes
    assert plots.queue(schedule).get_ylabel() == "processors waited for"
    lines = plots.wait_distribution({"one": schedule, "two": schedule}).get_lines()
    assert [line.get_label() for line in lines] == ["one", "two"]
    hours, percent = np.asarray(lines[0].get_xdata()), np.asarray(lines[0].get_ydata())
    assert hours.tolist() == [0, 0, 24]
    assert percent.tolist() == pytest.approx([100 / 3, 200 / 3, 100])
    assert len(plots.wait_distribution(schedule).get_lines()) == 1


def test_too_many_jobs_for_a_gantt_chart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says to take a slice."""
    monkeypatch.setattr(plots, "GANTT_JOBS_MAX", 2)
    with pytest.raises(ValueError, match="3 jobs; a Gantt chart shows at most 2: take a slice"):
        plots.gantt(simulate(JOBS, 4))

"""Whether one more job would start now, by what a batch system has planned."""

import math

from hypothesis import example, given
from hypothesis import strategies as st

from grms.lrms.immediate_start import MARGIN_S, QueuePlan, Taken

SIZE = 8
MINUTE = 60.0


def test_a_short_job_goes_before_a_wide_one_that_waits() -> None:
    """As long as it is over in time, with a minute to spare; limits are whole minutes."""
    plan = QueuePlan(0.0, 28, [Taken(100, -9.0, 1200.0)], [Taken(128, 1200.0, 3000.0)], step_s=60.0)
    assert plan.starts_now(28, 19 * MINUTE, 0.0)
    assert not plan.starts_now(28, 19 * MINUTE + 1.0, 0.0)
    assert not plan.starts_now(29, MINUTE, 0.0)
    assert not plan.starts_now(28, 19 * MINUTE, 1.0)  # asked a second after the look
    assert not plan.less(1).starts_now(28, MINUTE, 0.0)
    assert plan.less(1).starts_now(27, MINUTE, 0.0)


def test_what_can_start_by_now_is_about_to() -> None:
    """A job has ended before its limit, and the plan is older than that."""
    plan = QueuePlan(0.0, 6, [Taken(2, -9.0, 900.0)], [Taken(5, 600.0, 1200.0)])
    assert plan.starts_now(1, 60.0, 0.0)
    assert not plan.starts_now(2, 60.0, 0.0)


def test_what_nobody_knows_is_held_for_ever() -> None:
    """Jobs without a limit, and those that are over their limit and still run."""
    plan = QueuePlan(100.0, 2, [Taken(3, 0.0, math.inf), Taken(3, 0.0, 90.0)], [])
    assert plan.starts_now(2, 1e9, 100.0)
    assert not plan.starts_now(3, 60.0, 100.0)
    waits = QueuePlan(100.0, 2, [Taken(6, 0.0, 400.0)], [Taken(8, 400.0, math.inf)])
    assert waits.starts_now(2, 240.0, 100.0)
    assert not waits.starts_now(2, 241.0, 100.0)


def plain(free: int, running: list[Taken], waiting: list[Taken], wanted: tuple[int, int]) -> bool:
    """The same second by second: who waits, starts as planned, or at once where there is room."""
    horizon = 120

    def level(placed: list[Taken], second: int) -> int:
        back = sum(job.processors for job in running if 0 < job.end <= second)
        gone = sum(job.processors for job in placed if max(0, job.begin) <= second < job.end)
        return free + back - gone

    def fits(placed: list[Taken], processors: int, seconds: float) -> bool:
        until = min(horizon, math.ceil(seconds + MARGIN_S))
        return all(level(placed, second) >= processors for second in range(until))

    placed = sorted(waiting, key=lambda job: job.begin)
    for index, job in enumerate(placed):
        others = placed[:index] + placed[index + 1 :]
        if job.begin > 0 and fits(others, job.processors, job.end - job.begin):
            placed[index] = Taken(job.processors, 0, job.end - job.begin)
    return fits(placed, *wanted)


JOBS = st.tuples(st.integers(1, SIZE), st.integers(-5, 30), st.integers(1, 20)).map(
    lambda job: Taken(job[0], job[1], job[1] + job[2])
)


@given(
    st.integers(0, SIZE),
    st.lists(JOBS.filter(lambda job: job.begin <= 0), max_size=3),
    st.lists(JOBS, max_size=4),
    st.tuples(st.integers(1, SIZE), st.integers(1, 40)),
)
@example(3, [Taken(2, -1, 9)], [Taken(3, 4, 8), Taken(2, 4, 9)], (1, 3))
def test_it_is_what_a_plain_program_finds(
    free: int, running: list[Taken], waiting: list[Taken], wanted: tuple[int, int]
) -> None:
    """Whatever runs and waits."""
    found = QueuePlan(0.0, free, running, waiting).starts_now(*wanted, now=0.0)
    assert found == plain(free, running, waiting, wanted)

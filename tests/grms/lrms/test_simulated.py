"""The simulated batch system behind the port."""

import asyncio
import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.lrms.port import LrmsEnded, LrmsError, LrmsEvent, LrmsJob, LrmsPhase, LrmsStarted
from grms.lrms.simulated import Cancellation, Operation, SimulatedLrms, Submission
from lrms_sim.disciplines import discipline_by_name
from lrms_sim.machine import simulate
from tests.strategies import OneMachine, disciplines, one_machine


def lrms_of(processors: int, discipline: str = "fcfs") -> SimulatedLrms:
    """Returns an empty machine."""
    return SimulatedLrms(processors, discipline_by_name(discipline))


def job(name: str, processors: int = 1, run_time: float | None = 10.0) -> LrmsJob:
    """Returns a job that requests twenty seconds."""
    return LrmsJob(name, processors, 20.0, run_time)


def starts(events: list[LrmsEvent]) -> dict[str, float]:
    """Returns when each job started."""
    return {event.job_id: event.time for event in events if isinstance(event, LrmsStarted)}


def submissions(case: OneMachine) -> list[Submission]:
    """Returns a workload as operations."""
    jobs = case.jobs
    return [
        Submission(
            LrmsJob(
                f"j{row}",
                int(jobs.processors[row]),
                float(jobs.requested_time[row]),
                float(jobs.run_time[row]),
            ),
            float(jobs.submit_time[row]),
        )
        for row in range(len(jobs))
    ]


@given(case=one_machine(), name=disciplines)
def test_it_makes_the_schedule_of_the_simulator(case: OneMachine, name: str) -> None:
    """Jobs submitted one at a time, each with its own pass, start as a federation has them.

    Submitting at once differs from it where several jobs of an instant fit only one by one; so
    the comparison is with the simulator for workloads whose submissions are at different moments.
    """
    operations = submissions(case)
    if len({operation.time for operation in operations}) < len(operations):
        return
    lrms = SimulatedLrms.rebuilt(case.processors, discipline_by_name(name), operations)
    expected = simulate(case.jobs, case.processors, discipline_by_name(name))
    found = starts(list(lrms.poll_now(math.inf)))
    assert [found[f"j{row}"] for row in range(len(case.jobs))] == expected.start_time.tolist()


@dataclass(frozen=True)
class Driven:
    """Operations on a machine that were drawn at random."""

    case: OneMachine
    cancels: list[tuple[int, float]]


@st.composite
def driven(draw: st.DrawFn) -> Driven:
    """Draws a workload, some of whose jobs are cancelled at some moment after their submission."""
    case = draw(one_machine())
    rows = st.integers(0, max(0, len(case.jobs) - 1))
    cancels = st.lists(st.tuples(rows, st.sampled_from([0.0, 1.0, 3.0, 7.0])), max_size=4)
    return Driven(case, draw(cancels) if len(case.jobs) else [])


def operations_of(drawn: Driven) -> list[Operation]:
    """Returns the operations in order of time."""
    operations: list[tuple[float, int, Operation]] = []
    for row, submission in enumerate(submissions(drawn.case)):
        operations.append((submission.time, row, submission))
    for number, (row, later) in enumerate(drawn.cancels):
        moment = float(drawn.case.jobs.submit_time[row]) + later
        operations.append((moment, 1000 + number, Cancellation(f"j{row}", moment)))
    return [operation for _, _, operation in sorted(operations, key=lambda entry: entry[:2])]


@given(drawn=driven(), name=disciplines)
def test_rebuilding_gives_the_same_machine(drawn: Driven, name: str) -> None:
    """A machine rebuilt from its operations at any point goes on as if nothing had happened."""
    operations = operations_of(drawn)
    discipline = discipline_by_name(name)
    whole = SimulatedLrms.rebuilt(drawn.case.processors, discipline, operations)
    expected = list(whole.poll_now(math.inf))
    for cut in range(len(operations) + 1):
        lrms = SimulatedLrms.rebuilt(drawn.case.processors, discipline, operations[:cut])
        for operation in operations[cut:]:
            if isinstance(operation, Submission):
                lrms.submit_now(operation.job, operation.time)
            else:
                lrms.cancel_now(operation.job_id, operation.time)
        assert list(lrms.poll_now(math.inf)) == expected


@given(drawn=driven(), name=disciplines)
def test_no_processor_is_used_twice_and_none_is_lost(drawn: Driven, name: str) -> None:
    """Whatever is cancelled, running jobs fit, every other job runs once and for its time."""
    lrms = SimulatedLrms.rebuilt(
        drawn.case.processors, discipline_by_name(name), operations_of(drawn)
    )
    events = list(lrms.poll_now(math.inf))
    ends = {event.job_id: event.time for event in events if isinstance(event, LrmsEnded)}
    for row in range(len(drawn.case.jobs)):
        record = asyncio.run(lrms.lookup(f"j{row}"))
        assert record is not None
        if record.phase is LrmsPhase.CANCELLED:
            assert f"j{row}" not in ends
        else:
            assert record.phase is LrmsPhase.ENDED
            assert record.start_time is not None
            assert ends[f"j{row}"] == record.end_time
            assert record.end_time == record.start_time + float(drawn.case.jobs.run_time[row])
    assert lrms.state_now(math.inf).processors_free == drawn.case.processors
    assert lrms.state_now(math.inf).processors_waiting == 0


def test_what_happened_is_told_once() -> None:
    """Each poll returns what is new, ends of a moment before its starts."""
    lrms = lrms_of(4)
    lrms.submit_now(job("a", 4), 0.0)
    lrms.submit_now(job("b", 4), 1.0)
    assert lrms.poll_now(1.0) == [LrmsStarted("a", 0.0)]
    assert lrms.next_event_time == 10.0
    assert lrms.poll_now(9.0) == []
    assert lrms.poll_now(10.0) == [LrmsEnded("a", 10.0), LrmsStarted("b", 10.0)]
    assert lrms.poll_now(100.0) == [LrmsEnded("b", 20.0)]
    assert lrms.next_event_time == math.inf


def test_a_job_too_short_for_the_clock_starts_before_it_ends() -> None:
    """A run time lost to rounding does not turn start and end around."""
    lrms = lrms_of(1)
    lrms.submit_now(job("a", 1, 1e-9), 2.0e9)
    assert lrms.poll_now(2.0e9) == [LrmsStarted("a", 2.0e9), LrmsEnded("a", 2.0e9)]


def test_a_known_job_is_not_submitted_again() -> None:
    """The second submission of an id changes nothing, whether it waits, runs or has ended."""
    lrms = lrms_of(4)
    lrms.submit_now(job("a", 4), 0.0)
    lrms.submit_now(job("a", 4), 0.0)
    assert lrms.state_now(0.0).processors_waiting == 0
    lrms.advance(50.0)
    lrms.submit_now(job("a", 4), 50.0)
    assert lrms.state_now(50.0).processors_free == 4


def test_a_cancelled_job_gives_its_place_to_the_next() -> None:
    """A running job that is killed frees its processors at that moment."""
    lrms = lrms_of(4)
    for name in "abc":
        lrms.submit_now(job(name, 4), 0.0)
    assert lrms.cancel_now("b", 2.0)
    assert lrms.cancel_now("a", 3.0)
    assert not lrms.cancel_now("a", 3.0)
    assert not lrms.cancel_now("nobody", 3.0)
    assert starts(list(lrms.poll_now(3.0))) == {"a": 0.0, "c": 3.0}
    assert asyncio.run(lrms.lookup("a")).end_time == 3.0  # type: ignore[union-attr]  # it is there
    assert asyncio.run(lrms.lookup("nobody")) is None


def test_a_job_without_run_time_runs_as_long_as_requested() -> None:
    """A program that says nothing of its length is taken at its request, and never beyond it."""
    lrms = lrms_of(2)
    lrms.submit_now(job("a", 1, None), 0.0)
    lrms.submit_now(job("b", 1, 99.0), 0.0)
    events = lrms.poll_now(100.0)
    assert [event for event in events if isinstance(event, LrmsEnded)] == [
        LrmsEnded("a", 20.0),
        LrmsEnded("b", 20.0),
    ]


def test_what_cannot_run_is_refused() -> None:
    """A job wider than the machine, or at a moment that is past, is an error of the LRMS."""
    lrms = lrms_of(4)
    with pytest.raises(LrmsError, match="job a: processors is 5; this machine has 4"):
        lrms.submit_now(job("a", 5), 0.0)
    lrms.advance(10.0)
    with pytest.raises(LrmsError, match="the clock already shows 10"):
        lrms.submit_now(job("a"), 9.0)
    assert asyncio.run(lrms.lookup("a")) is None

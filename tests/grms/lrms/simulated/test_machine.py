"""The machine that is moved step by step."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grms.lrms.base import (
    Ended,
    LrmsEnd,
    LrmsError,
    LrmsJob,
    LrmsPhase,
    LrmsRecord,
    LrmsRefusedError,
    Program,
    SimulatedRun,
    Started,
)
from grms.lrms.simulated.machine import (
    CUT_OFF,
    EVICTED,
    NOT_RUN,
    Kind,
    MachineEvent,
    SteppedMachine,
    moments,
)
from grms.util.outcomes import Outcome
from lrms_sim.machine.machine import simulate
from lrms_sim.machine.stepped import Machine
from lrms_sim.scheduling.criteria import Criterion, CriterionOrder
from lrms_sim.scheduling.disciplines import Fcfs, discipline_by_name
from lrms_sim.scheduling.selection import StrategyTable
from lrms_sim.scheduling.strategies import Strategy
from lrms_sim.workload.requests import Gpus, Memory, Request
from tests.strategies import OneMachine, disciplines, one_machine


def lrms_of(processors: int, discipline: str = "fcfs") -> SteppedMachine:
    """Returns an empty machine."""
    return SteppedMachine(processors, discipline_by_name(discipline))


def job(name: str, processors: int = 1, run_time: float | None = 10.0) -> LrmsJob:
    """Returns a job that requests twenty seconds."""
    run = None if run_time is None else SimulatedRun(run_time)
    return LrmsJob(name, processors, 20.0, simulated=run)


def run_of(name: str, width: int, run_time: float, group: int | None = None) -> LrmsJob:
    """Returns a job that runs as long as it requests."""
    return LrmsJob(name, width, run_time, simulated=SimulatedRun(run_time, group))


def completed(name: str, end_time: float, run_time: float) -> Ended:
    """Returns the end of a job that has run to it."""
    return Ended(name, LrmsEnd(Outcome.COMPLETED, end_time, run_time))


def test_what_waits_can_be_taken_out() -> None:
    """What runs stays; those behind it have their pass at once."""
    lrms = lrms_of(4)
    for name, width in (("a", 3), ("b", 4), ("c", 1)):
        lrms.submit(job(name, width), 0.0)
    assert not lrms.withdraw("a", 1.0)
    assert not lrms.withdraw("nobody's", 1.0)
    assert lrms.withdraw("b", 1.0)
    assert not lrms.withdraw("b", 1.0)
    gone = Ended("b", LrmsEnd(Outcome.CANCELLED, 1.0, 0.0))
    assert lrms.poll(1.0) == [Started("a", 0.0), gone, Started("c", 1.0)]
    assert lrms.look_up("b") == LrmsRecord(LrmsPhase.ENDED, None, gone.end)
    assert lrms.load_at(1.0).free == 0
    assert lrms.next_event_time == 10.0


@pytest.mark.parametrize("discipline", ["fcfs", "easy", "easy-per-event", "conservative", "list"])
def test_a_pass_can_wait_until_all_have_been_taken_out(discipline: str) -> None:
    """However often the load is looked at meanwhile."""
    lrms = lrms_of(4, discipline)
    for name, width in (("runs", 2), ("first", 4), ("second", 3), ("last", 2)):
        # The last would delay the first.
        lrms.submit(run_of(name, width, 20.0 if name != "last" else 50.0), 0.0)
    waits = 2 if discipline == "list" else 4
    assert len(lrms.poll(0.0)) == 1 + (discipline == "list")
    lrms.hold_passes(9.0)
    for name, left in (("first", 5), ("second", 2)):
        assert lrms.withdraw(name, 9.0)
        assert lrms.load_at(9.0).waiting == left - (4 - waits)
        assert [event.key for event in lrms.poll(9.0)] == [name]
    lrms.make_pass(9.0)
    assert lrms.poll(9.0) == ([] if discipline == "list" else [Started("last", 9.0)])


def by_itself(lrms: SteppedMachine, now: float) -> list[tuple[MachineEvent, float]]:
    """Returns what has happened that nobody has commanded, with its moments."""
    return [
        (event, moment_of(event))
        for event in lrms.poll(now)
        if isinstance(event, Started) or event.end.outcome is not Outcome.CANCELLED
    ]


def moment_of(event: MachineEvent) -> float:
    """Returns when something has happened."""
    return event.start_time if isinstance(event, Started) else event.end.end_time


def starts(events: list[MachineEvent]) -> dict[str, float]:
    """Returns when each job started."""
    return {event.key: event.start_time for event in events if isinstance(event, Started)}


Operation = tuple[float, int, LrmsJob | str]
"""Moment, place in order, and the job to submit or the id of the one to cancel."""


def submissions(case: OneMachine) -> list[Operation]:
    """Returns a workload as operations."""
    jobs = case.jobs
    return [
        (
            float(jobs.submit_time[row]),
            row,
            LrmsJob(
                f"j{row}",
                int(jobs.processors[row]),
                float(jobs.requested_time[row]),
                simulated=SimulatedRun(float(jobs.run_time[row])),
            ),
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
    if len({operation[0] for operation in operations}) < len(operations):
        return
    lrms = lrms_of(case.processors, name)
    carry_out(lrms, operations)
    expected = simulate(case.jobs, case.processors, discipline_by_name(name))
    found = starts(list(lrms.poll(math.inf)))
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
    operations = submissions(drawn.case)
    for number, (row, later) in enumerate(drawn.cancels):
        moment = float(drawn.case.jobs.submit_time[row]) + later
        operations.append((moment, 1000 + number, f"j{row}"))
    return sorted(operations, key=lambda operation: operation[:2])


def carry_out(lrms: SteppedMachine, operations: Iterable[Operation]) -> None:
    """Does the operations to a machine."""
    for moment, _, what in operations:
        if isinstance(what, str):
            lrms.cancel(what, moment)
        else:
            lrms.submit(what, moment)


@given(
    drawn=driven(), name=st.sampled_from(["fcfs", "list", "easy", "easy-per-event"]), data=st.data()
)
def test_a_restored_machine_goes_on_as_the_old_one(
    drawn: Driven, name: str, data: st.DataObject
) -> None:
    """Wherever the old machine's story breaks off, what was not told yet is told by the new one.

    What is known of the old machine is a beginning of the list of things that happened, as a
    journal has it, cut anywhere: also between two things of one moment.
    """
    operations = operations_of(drawn)
    lrms = lrms_of(drawn.case.processors, name)
    story: list[tuple[Operation | MachineEvent, float]] = []
    for operation in operations:
        story += by_itself(lrms, operation[0])
        carry_out(lrms, [operation])
        story.append((operation, operation[0]))
    story += by_itself(lrms, math.inf)
    cut = data.draw(st.integers(0, len(story)))
    known, rest = story[:cut], story[cut:]

    restored = restored_from(known, drawn.case.processors, name)
    retold: list[tuple[Operation | MachineEvent, float]] = []
    for entry, moment in rest:
        if isinstance(entry, tuple):
            retold += by_itself(restored, moment)
            carry_out(restored, [entry])
            retold.append((entry, moment))
    retold += by_itself(restored, math.inf)
    told = {event for event, _ in known if isinstance(event, Started)}
    new = [entry for entry, _ in retold if entry not in told]
    # Ends of one moment have no order among themselves that anybody could rely on.
    assert sorted(new, key=repr) == sorted((entry for entry, _ in rest), key=repr)


def restored_from(
    known: list[tuple[Operation | MachineEvent, float]], processors: int, name: str
) -> SteppedMachine:
    """Returns the machine that a beginning of a story leads to."""
    waiting: dict[str, LrmsJob] = {}
    running: dict[str, tuple[LrmsJob, float]] = {}
    for entry, moment in known:
        if isinstance(entry, Started):
            running[entry.key] = (waiting.pop(entry.key), moment)
        elif isinstance(entry, Ended):
            del running[entry.key]
        elif isinstance(entry[2], LrmsJob):
            waiting[entry[2].key] = entry[2]
        else:
            waiting.pop(entry[2], None)
            running.pop(entry[2], None)
    return SteppedMachine.restored(
        processors,
        discipline_by_name(name),
        running=running.values(),
        waiting=list(waiting.values()),
        moment=known[-1][1] if known else -math.inf,
    )


@given(drawn=driven(), name=disciplines)
def test_no_processor_is_used_twice_and_none_is_lost(drawn: Driven, name: str) -> None:
    """Whatever is cancelled, running jobs fit, every other job runs once and for its time."""
    lrms = lrms_of(drawn.case.processors, name)
    carry_out(lrms, operations_of(drawn))
    events = list(lrms.poll(math.inf))
    ends = {event.key: event.end for event in events if isinstance(event, Ended)}
    for row in range(len(drawn.case.jobs)):
        record = lrms.look_up(f"j{row}")
        assert record is not None
        assert record.phase is LrmsPhase.ENDED
        assert record.end is not None
        assert ends[f"j{row}"] == record.end
        if record.end.outcome is Outcome.COMPLETED:
            run_time = float(drawn.case.jobs.run_time[row])
            assert record.start_time is not None
            assert record.end.end_time == record.start_time + run_time
        else:
            assert record.end.outcome is Outcome.CANCELLED
    assert lrms.load_at(math.inf).free == drawn.case.processors
    assert lrms.load_at(math.inf).waiting == 0


def test_what_happened_is_told_once() -> None:
    """Each poll returns what is new, ends of a moment before its starts."""
    lrms = lrms_of(4)
    lrms.submit(job("a", 4), 0.0)
    lrms.submit(job("b", 4), 1.0)
    assert lrms.poll(1.0) == [Started("a", 0.0)]
    assert lrms.next_event_time == 10.0
    assert lrms.poll(9.0) == []
    assert lrms.poll(10.0) == [completed("a", 10.0, 10.0), Started("b", 10.0)]
    assert lrms.poll(100.0) == [completed("b", 20.0, 10.0)]
    assert lrms.next_event_time == math.inf


def test_a_job_too_short_for_the_clock_starts_before_it_ends() -> None:
    """A run time lost to rounding does not turn start and end around."""
    lrms = lrms_of(1)
    lrms.submit(job("a", 1, 1e-9), 2.0e9)
    assert lrms.poll(2.0e9) == [Started("a", 2.0e9), completed("a", 2.0e9, 1e-9)]


def test_a_known_job_is_not_submitted_again() -> None:
    """The second submission of an id changes nothing, whether it waits, runs or has ended."""
    lrms = lrms_of(4)
    lrms.submit(job("a", 4), 0.0)
    lrms.submit(job("a", 4), 0.0)
    assert lrms.load_at(0.0).waiting == 0
    lrms.advance(50.0)
    lrms.submit(job("a", 4), 50.0)
    assert lrms.load_at(50.0).free == 4


@given(
    drawn=driven(), name=disciplines, at_last=st.lists(st.integers(0, 30), min_size=3, max_size=9)
)
def test_cancels_in_a_row_end_as_each_by_itself(
    drawn: Driven, name: str, at_last: list[int]
) -> None:
    """Whether the machine is asked between two of them, which then is rid of the first, makes no difference."""
    asked, unasked = (lrms_of(drawn.case.processors, name) for _ in range(2))
    operations = operations_of(drawn)
    moment, jobs = operations[-1][0] if operations else 0.0, max(1, len(drawn.case.jobs))
    operations += [(moment + at / 8, 0, f"j{row % jobs}") for at, row in enumerate(at_last)]
    told: list[list[MachineEvent]] = [[], []]
    for operation in operations:
        for lrms, events in zip((asked, unasked), told, strict=True):
            carry_out(lrms, [operation])
            if lrms is asked:
                assert lrms.load_at(operation[0]).free >= 0
            events.extend(lrms.poll(operation[0]))
    assert told[0] == told[1]
    assert asked.next_event_time == unasked.next_event_time
    assert asked.poll(math.inf) == unasked.poll(math.inf)
    assert asked.jobs() == unasked.jobs()


def test_a_cancelled_job_gives_its_place_to_the_next() -> None:
    """A running job that is killed frees its processors at that moment."""
    lrms = lrms_of(4)
    for name in "abc":
        lrms.submit(job(name, 4), 0.0)
    assert lrms.cancel("b", 2.0)
    assert lrms.cancel("a", 3.0)
    assert not lrms.cancel("a", 3.0)
    assert not lrms.cancel("nobody", 3.0)
    assert starts(list(lrms.poll(3.0))) == {"a": 0.0, "c": 3.0}
    end = LrmsEnd(Outcome.CANCELLED, 3.0, 3.0)
    assert lrms.look_up("a") == LrmsRecord(LrmsPhase.ENDED, 0.0, end)
    assert lrms.jobs()["a"].end == end
    assert lrms.look_up("nobody") is None


def test_a_job_without_run_time_runs_as_long_as_requested() -> None:
    """A program that says nothing of its length is taken at its request, and never beyond it."""
    lrms = lrms_of(2)
    lrms.submit(job("a", 1, None), 0.0)
    lrms.submit(job("b", 1, 99.0), 0.0)
    events = lrms.poll(100.0)
    assert [event for event in events if isinstance(event, Ended)] == [
        completed("a", 20.0, 20.0),
        Ended("b", LrmsEnd(Outcome.TIMEOUT, 20.0, 20.0, reason=CUT_OFF)),
    ]


def test_what_cannot_run_is_refused() -> None:
    """A job wider than the machine, or at a moment that is past, is an error of the LRMS."""
    lrms = lrms_of(4)
    with pytest.raises(LrmsError, match="job a: processors is 5; this machine has 4"):
        lrms.submit(job("a", 5), 0.0)
    lrms.advance(10.0)
    with pytest.raises(LrmsError, match="the clock already shows 10"):
        lrms.submit(job("a"), 9.0)
    assert lrms.look_up("a") is None


def test_running_jobs_that_do_not_fit_are_an_error() -> None:
    """A machine that has become smaller cannot be what it was."""
    with pytest.raises(LrmsError, match="job b runs, but there is no room for it on 4 processors"):
        SteppedMachine.restored(
            4,
            discipline_by_name("fcfs"),
            running=[(job("a", 3), 0.0), (job("b", 3), 1.0)],
            waiting=[],
            moment=2.0,
        )


def test_the_past_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has had many jobs keeps few of them, and serves those it has."""
    monkeypatch.setattr("grms.lrms.simulated.machine.FORGOTTEN_AFTER", 3)
    monkeypatch.setattr("grms.lrms.simulated.machine.REBUILT_AFTER", 5)
    lrms = lrms_of(1)
    for number in range(20):
        lrms.submit(job(f"j{number}"), float(number))
    ends = [event.end.end_time for event in lrms.poll(math.inf) if isinstance(event, Ended)]
    assert ends == [10.0 * number for number in range(1, 21)]
    assert lrms.look_up("j0") is None
    assert lrms.look_up("j19") is not None


def test_a_machine_that_was_losing_jobs_goes_on_losing_them() -> None:
    """What is left in the queue starts with the pass that follows, and not before."""
    running, waiting = [(job("a", 3), 0.0)], [job("c", 1), job("d", 1)]
    for held in (False, True):
        lrms = SteppedMachine.restored(
            4,
            discipline_by_name("fcfs"),
            running=running,
            waiting=waiting,
            moment=1.0,
            passes_held=held,
        )
        lrms.hold_passes(1.0)
        load = lrms.load_at(1.0)
        assert (load.free, load.waiting) == ((1, 2) if held else (0, 1))
        assert lrms.withdraw("c", 1.0) is held
        lrms.make_pass(1.0)
        started = [one.key for one in lrms.poll(1.0) if isinstance(one, Started)]
        assert started == (["a", "d"] if held else ["a", "c"])


@pytest.mark.parametrize("runs", [True, False])
def test_a_machine_that_has_become_too_small_is_an_error(*, runs: bool) -> None:
    """An open job that is wider than the machine is named, whether it runs or waits."""
    job = LrmsJob("kth/1/1", 2, 100.0)
    with pytest.raises(LrmsError, match=r"job kth/1/1 is open and does not fit: .* machine has 1"):
        SteppedMachine.restored(
            1,
            discipline_by_name("fcfs"),
            running=[(job, 5.0)] if runs else [],
            waiting=[] if runs else [job],
            moment=6.0,
        )


def test_a_queue_by_group_is_served_by_group_through_cancels() -> None:
    """A cancel builds the machine anew; groups, and how long jobs have waited, outlive that."""
    aging = Strategy(
        "fcfs", CriterionOrder((Criterion("f2", (1.0, 0.1, 0.1, 0.1, 0.1), (0.0,) * 5, 1.0),))
    )
    lrms = SteppedMachine(4, aging)
    lrms.submit(run_of("run", 4, 100.0), 0.0)
    # At 100 the first has waited 0.1 · 99, the second 5, the third, of no group at all, 0.1 · 90.
    lrms.submit(run_of("old", 4, 10.0, 2), 1.0)
    lrms.submit(run_of("gone", 4, 10.0, 1), 2.0)
    lrms.submit(run_of("nobody", 4, 10.0), 10.0)
    lrms.submit(run_of("heavy", 4, 10.0, 1), 95.0)
    assert lrms.cancel("gone", 96.0)
    events = [e for e in lrms.poll(500.0) if isinstance(e, Started)]
    assert [(e.key, e.start_time) for e in events[-3:]] == [
        ("old", 100.0),
        ("heavy", 110.0),
        ("nobody", 120.0),
    ]


def test_rules_remember_what_ended_through_cancels() -> None:
    """The features of the state are those of the machine before the cancel."""
    table = StrategyTable((0,) * 192)
    lrms = SteppedMachine(4, table)
    lrms.submit(run_of("first", 4, 10.0, 1), 0.0)
    lrms.submit(run_of("second", 4, 10.0, 1), 0.0)
    lrms.advance(20.0)
    before = lrms._machine.history  # what is not to be forgotten
    assert before == (4 * 10 * 10 + 4 * 10 * 20, 4 * 10 * 10 * 2)
    lrms.submit(run_of("third", 4, 10.0), 21.0)
    assert lrms.cancel("third", 22.0)
    assert lrms._machine.history == before  # same


def test_a_program_is_not_run() -> None:
    """Its processors are held, and its end says so."""
    lrms = lrms_of(2)
    lrms.submit(LrmsJob("a", 1, 7.0, program=Program("#!/bin/sh")), 0.0)
    *_, ended = lrms.poll(20.0)
    assert ended == Ended("a", LrmsEnd(Outcome.NOT_RUN, 7.0, 7.0, reason=NOT_RUN))


def test_no_job_that_is_followed_ends_before_the_first_end() -> None:
    """Others do not count; what nobody knows changes nothing."""
    lrms = lrms_of(4)
    assert lrms.first_end() == math.inf
    lrms.submit(job("a", 4, 5.0), 0.0)
    lrms.submit(job("b", 4, 3.0), 0.0)
    lrms.follow("b")
    assert lrms.first_end() == 8.0
    lrms.follow("a")
    lrms.follow("nobody's")
    assert lrms.first_end() == 5.0
    lrms.cancel("a", 2.0)
    assert lrms.first_end() == 5.0  # b's: it has started at 2
    lrms.advance(5.0)
    assert lrms.first_end() == math.inf


def test_it_says_what_would_start_now() -> None:
    """Behind a job that waits EASY starts what does not delay it, and the answer changes nothing."""
    lrms = SteppedMachine(4, discipline_by_name("easy"))
    lrms.submit(run_of("a", 3, 10.0), 0.0)
    lrms.submit(run_of("b", 4, 10.0), 0.0)
    assert lrms.starts_now_at(0.0, 1, 10.0)
    assert lrms.starts_now_at(4.0, 1, 6.0)
    assert not lrms.starts_now_at(4.0, 1, 6.5)
    assert not lrms.starts_now_at(4.0, 2, 1.0)
    assert [event.key for event in lrms.poll(4.0)] == ["a"]
    assert not lrms.starts_now_at(10.0, 1, 1.0)  # b runs
    assert lrms.starts_now_at(20.0, 4, 99.0)


def submit(machine: Machine, moment: float, processors: int, run_time: float) -> None:
    """Submits a job that runs as long as it has asked for."""
    machine.submit(
        submit_time=moment, processors=processors, requested_time=run_time, run_time=run_time
    )


def test_an_end_makes_room_for_a_start_of_the_same_moment() -> None:
    """The end of the first comes before the start of the second, and nothing is told twice."""
    machine = Machine(2, Fcfs())
    submit(machine, 1.0, 2, 4.0)
    submit(machine, 1.0, 2, 3.0)
    assert moments(machine) == []
    machine.advance(6.0)
    assert moments(machine) == [(1.0, Kind.START, 0), (5.0, Kind.END, 0), (5.0, Kind.START, 1)]
    assert moments(machine) == []
    machine.advance(8.0)
    assert moments(machine) == [(8.0, Kind.END, 1)]


def test_moments_of_a_job_too_short_for_the_clock_are_in_order() -> None:
    """At 2**53 seconds a tenth of one is nothing."""
    moment = 2.0**53
    machine = Machine(1, Fcfs())
    submit(machine, moment, 1, 0.1)
    machine.advance(moment + 2.0)
    assert moments(machine) == [(moment, Kind.START, 0), (moment, Kind.END_AT_ONCE, 0)]


@pytest.mark.parametrize(
    ("request_", "lacks"),
    [
        (Request(2, memory=Memory(4096)), "it asks for 2 tasks, 4 GiB a core"),
        (Request(gpus=Gpus(1)), "it asks for 1 task, 1 GPU"),
        (Request(2, 2), "it asks for 2 tasks of 2 cores"),
        (Request(2, features=("fast",)), "it asks for 2 tasks, fast"),
    ],
)
def test_a_machine_of_processors_runs_nothing_that_asks_for_more(
    request_: Request, lacks: str
) -> None:
    """Nor as if it had asked for processors: that would be another job."""
    nodes = lrms_of(4).load_at(0.0).nodes
    assert nodes is not None
    assert lacks in nodes.lacks(request_)
    assert nodes.why_not(request_) == nodes.lacks(request_)
    assert not nodes.starts_now(replace(request_, wall_time=1.0), 0.0)
    assert nodes.guarded_features == frozenset()


def test_what_a_job_names_is_no_matter_of_a_machine_of_processors() -> None:
    """At home it runs all the same; a partner's names mean something, and are not here. Of accounts every one is good."""
    lrms = lrms_of(4)
    nodes = lrms.load_at(0.0).nodes
    assert nodes is not None
    named = Request(2, partition="gpu", wall_time=1.0)
    assert nodes.lacks(named) == ""
    assert "no partitions, QOS or signals; it asks for 2 proc" in nodes.why_not(named)
    assert not nodes.starts_now(named, 0.0)
    of_account = Request(2, account="proj", wall_time=1.0)
    assert nodes.why_not(of_account) == ""
    assert nodes.starts_now(of_account, 0.0)
    lrms.submit(job("a", 3), 0.0)
    assert not nodes.starts_now(of_account, 0.0)


@pytest.mark.parametrize("discipline", ["fcfs", "easy", "easy-per-event", "conservative", "list"])
def test_a_job_that_was_away_stands_where_it_would_have_stood(discipline: str) -> None:
    """Before those that came later, whatever comes first into the queue; a width that does not fit is refused."""
    lrms = lrms_of(4, discipline)
    lrms.submit(run_of("runs", 4, 100.0), 0.0)
    for name, came in (("first", 1.0), ("third", 5.0), ("fourth", 6.0)):
        lrms.submit(run_of(name, 4, 10.0), came)
    away = replace(run_of("second", 4, 10.0), place=3.0)
    lrms.submit(away, 20.0)
    lrms.submit(replace(away, key="last", place=7.0), 21.0)
    assert lrms.load_at(21.0).waiting == 20
    with pytest.raises(LrmsRefusedError):
        lrms.submit(replace(away, key="wide", processors=5), 22.0)
    started = [event.key for event in lrms.poll(1000.0) if isinstance(event, Started)]
    assert started == ["runs", "first", "second", "third", "fourth", "last"]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.booleans()), min_size=1, max_size=12),
    st.integers(0, 60),
)
def test_a_queue_that_jobs_return_to_is_served_by_their_submissions(
    jobs: list[tuple[int, bool]], away_s: int
) -> None:
    """First come, first served goes by when they first came."""
    lrms = lrms_of(4)
    lrms.submit(run_of("runs", 4, 200.0), 0.0)
    events = sorted(
        (float(came + away_s * returned), number, float(came), returned)
        for number, (came, returned) in enumerate(jobs)
    )
    expected: list[tuple[float, str]] = []
    for now, number, came, returned in events:
        job = replace(run_of(f"{number}", 4, 1.0), place=came if returned else None)
        lrms.submit(job, now)
        place = len(expected)
        if returned:
            place = next((at for at, each in enumerate(expected) if each[0] > came), place)
        expected.insert(place, (came, f"{number}"))
    started = [event.key for event in lrms.poll(1e6) if isinstance(event, Started)]
    assert started[1:] == [key for _, key in expected]


# --- guests that may be sent home ----------------------------------------------------------------


def guest(name: str, width: int, *, protected: bool = False) -> LrmsJob:
    """Returns a partner's job that starts at once, for a hundred seconds."""
    return LrmsJob(
        name,
        width,
        100.0,
        partner="b",
        simulated=SimulatedRun(100.0),
        preemptible=True,
        protected=protected,
        at_once=True,
    )


def sent_home(name: str, at: float, ran: float) -> Ended:
    """Returns the end of a guest that has lost its processors."""
    return Ended(name, LrmsEnd(Outcome.PREEMPTED, at, ran, reason=EVICTED))


def test_an_own_job_takes_the_processors_of_a_guest() -> None:
    machine = lrms_of(4)
    machine.submit(guest("b/1/1", 3), 0.0)
    load = machine.load_at(0.0)
    assert (load.free, load.idle) == (4, 1)
    machine.submit(run_of("a/1/1", 2, 50.0), 10.0)
    assert machine.poll(10.0) == [
        Started("b/1/1", 0.0),
        sent_home("b/1/1", 10.0, 10.0),
        Started("a/1/1", 10.0),
    ]


@pytest.mark.parametrize("anew", [False, True], ids=["goes on", "begins anew"])
def test_a_protected_guest_keeps_them_until_it_is_so_no_more(anew: bool) -> None:
    """Also on a machine that is rebuilt from a journal."""
    machine = lrms_of(4)
    machine.protect(0.0, on=True)
    theirs, mine = guest("b/1/1", 3, protected=True), run_of("a/1/1", 2, 50.0)
    machine.submit(theirs, 0.0)
    machine.submit(mine, 10.0)
    assert machine.poll(10.0) == [Started("b/1/1", 0.0)]
    if anew:
        machine = SteppedMachine.restored(
            4,
            discipline_by_name("fcfs"),
            running=[(theirs, 0.0)],
            waiting=[mine],
            moment=10.0,
            protects=True,
        )
        assert machine.poll(10.0) == [Started("b/1/1", 0.0)]
    assert (machine.load_at(10.0).free, machine.load_at(10.0).idle) == (1, 1)
    machine.protect(20.0, on=False)
    machine.protect(20.0, on=False)
    assert machine.poll(20.0) == [sent_home("b/1/1", 20.0, 20.0), Started("a/1/1", 20.0)]


def test_a_guest_is_refused_where_too_few_processors_are_idle() -> None:
    machine = lrms_of(4)
    machine.submit(guest("b/1/1", 3), 0.0)
    with pytest.raises(LrmsError, match="1 are idle"):
        machine.submit(guest("b/1/2", 2), 0.0)


def test_a_job_that_comes_back_stands_where_it_stood() -> None:
    machine = lrms_of(2)
    machine.submit(run_of("a/1/1", 2, 100.0), 0.0)
    machine.submit(run_of("a/1/3", 1, 10.0), 5.0)
    machine.submit(run_of("a/1/4", 2, 10.0), 5.0)
    for number, place in ((2, 5.0), (5, 7.0)):
        job = run_of(f"a/1/{number}", 2, 10.0)
        machine.submit(replace(job, place=place), 50.0)
    started = [each.key for each in machine.poll(1000.0) if isinstance(each, Started)]
    assert started == ["a/1/1", "a/1/2", "a/1/3", "a/1/4", "a/1/5"]

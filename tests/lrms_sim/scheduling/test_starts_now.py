"""The question whether a job would start at once, and jobs that leave the queue unstarted."""

from dataclasses import replace

import numpy as np
import pytest

from lrms_sim.machine.stepped import Machine
from lrms_sim.scheduling.disciplines import Discipline, discipline_by_name
from tests.long_queues import LongFrom
from tests.oracles.disciplines import PASSES, PER_EVENT
from tests.oracles.machine import PlainJob, PlainMachine, plain_jobs
from tests.oracles.questions import question
from tests.random_workloads import random_jobs
from tests.strategies import DISCIPLINES

GROUPED = ("fcfs-group", "easy-group", "conservative-group")


class BothMachines:
    """A compiled machine and a plain one that are told the same."""

    def __init__(self, processors: int, name: str, discipline: Discipline) -> None:
        self.name = name
        self.machine = Machine(processors, discipline)
        self.plain = PlainMachine(processors, per_event=name in PER_EVENT)

    def advance_plainly(self, to: float) -> None:
        """Does what is due before a moment, and at it where a pass is not made per event."""
        plain, make_pass = self.plain, PASSES[self.name]
        while (now := plain.next_event_time) < to or (now == to < np.inf and not plain.per_event):
            if plain.per_event:
                plain.end(plain.due(now)[0])
            else:
                for running in plain.due(now):
                    plain.end(running)
            make_pass(plain, now)

    def submit(self, job: PlainJob) -> None:
        """Hands both a job, in a batch of its own."""
        self.advance_plainly(job.submit_time)
        self.machine.submit(
            submit_time=job.submit_time,
            processors=job.processors,
            requested_time=job.requested_time,
            run_time=job.run_time,
            group=job.group,
        )
        self.plain.waiting.append(job)
        PASSES[self.name](self.plain, job.submit_time)

    def ask(self, job: PlainJob) -> bool:
        """Returns the answer that both give, at the moment of the job's submission."""
        self.advance_plainly(job.submit_time)
        self.machine.advance(job.submit_time, inclusive=not self.plain.per_event)
        answer = self.machine.starts_now(
            processors=job.processors, requested_time=job.requested_time
        )
        assert answer == question(self.name)(self.plain, job, job.submit_time)
        return answer

    def withdraw(self, row: int, now: float) -> None:
        """Takes a job out of both queues; a reservation that is given up is an early end."""
        plain = self.plain
        waits = [job for job in plain.waiting if job.row == row]
        assert self.machine.withdraw(row) == bool(waits)
        for job in waits:
            plain.waiting.remove(job)
            plain.ended_early |= plain.reservation.pop(row, None) is not None
            PASSES[self.name](plain, now)

    def check(self) -> None:
        """Runs both until they are empty and compares every start."""
        self.machine.advance(np.inf)
        self.advance_plainly(np.inf)
        starts = self.machine.start_time
        assert {row: starts[row] for row in np.flatnonzero(np.isfinite(starts))} == (
            self.plain.start_time
        )


def drive(seed: int, name: str, discipline: Discipline, jobs_max: int = 40) -> tuple[int, int]:
    """Returns how many questions were answered with yes and with no."""
    rng = np.random.default_rng(seed)
    processors = int(rng.integers(1, 33))
    jobs = plain_jobs(random_jobs(rng, jobs_max, processors))
    both = BothMachines(processors, name, discipline)
    answers = [0, 0]
    for plain_job in jobs:
        job = replace(plain_job, group=int(rng.integers(1, 6)))
        for _ in range(2):
            other = replace(
                job,
                processors=int(rng.integers(1, processors + 1)),
                requested_time=job.requested_time * float(rng.choice((0.1, 1, 10))),
            )
            answers[both.ask(other)] += 1
        if both.plain.waiting and rng.random() < 0.3:
            both.withdraw(int(rng.integers(0, job.row)), job.submit_time)
        started = both.ask(job)
        both.submit(job)
        assert (both.plain.start_time.get(job.row) == job.submit_time) or not started
        if name in DISCIPLINES and name not in PER_EVENT:
            assert (both.plain.start_time.get(job.row) == job.submit_time) == started
    both.check()
    return answers[1], answers[0]


@pytest.mark.parametrize("name", [*DISCIPLINES, *GROUPED])
def test_a_machine_foretells_what_its_pass_does(name: str) -> None:
    """The answer is the oracle's; who is told yes starts at once, and nothing else changes."""
    answers = np.zeros(2, int)
    for seed in range(30):
        answers += drive(seed, name, discipline_by_name(name))
    assert answers.min() > 150


def test_the_plan_of_a_long_queue_gives_the_same_answers() -> None:
    """Conservative backfilling keeps its plan in another way where many wait."""
    for seed in range(30):
        drive(seed, "conservative", LongFrom(1 + seed % 4), jobs_max=60)


def test_a_question_has_bounds() -> None:
    """A job that no machine could have is refused; so is one that is not there."""
    machine = Machine(4)
    with pytest.raises(ValueError, match="processors is 5; this machine has 4"):
        machine.starts_now(processors=5, requested_time=1)
    with pytest.raises(ValueError, match="requested_time is 0"):
        machine.starts_now(processors=4, requested_time=0)
    with pytest.raises(ValueError, match="job is 0; this machine has taken 0 jobs"):
        machine.withdraw(0)


def test_a_job_that_has_started_cannot_be_withdrawn() -> None:
    """It stays, and its end is what it was; one that waits is gone and never starts."""
    machine = Machine(4)
    for _ in range(2):
        machine.submit(submit_time=0, processors=3, requested_time=10, run_time=10)
    machine.advance(0)
    assert not machine.withdraw(0)
    assert machine.withdraw(1)
    assert not machine.withdraw(1)
    assert machine.state.processors_waiting == machine.state.jobs_waiting == 0
    machine.advance(np.inf)
    assert machine.collect() == ([0], [0])


def test_several_jobs_leave_before_a_pass_is_made() -> None:
    """With a pass per event too: what stands behind the first does not start before the last has left."""
    for pass_later in (False, True):
        machine = Machine(4, discipline_by_name("easy-per-event"))
        for processors in (3, 3, 1):
            machine.submit(
                submit_time=0, processors=processors, requested_time=10 + processors, run_time=10
            )
        machine.submit(submit_time=0, processors=4, requested_time=99, run_time=10)
        started = machine.collect()[0]
        assert 0 in started
        waiting = [job for job in (1, 2, 3) if job not in started]
        assert machine.withdraw(waiting[0], pass_later=pass_later)
        assert machine.withdraw(waiting[-1], pass_later=pass_later)
        machine.make_pass()
        machine.make_pass()
        machine.advance(np.inf)
        rest = [job for job in (0, 1, 2, 3) if job not in {waiting[0], waiting[-1]}]
        assert sorted(started + machine.collect()[0]) == rest


def test_a_pass_that_is_made_later_sees_what_is_left() -> None:
    """A job that would have started behind the first that left is gone as well."""
    found = []
    for pass_later in (False, True):
        machine = Machine(4, discipline_by_name("easy-per-event"))
        machine.submit(submit_time=0, processors=3, requested_time=10, run_time=10)
        machine.submit(submit_time=0, processors=4, requested_time=10, run_time=10)
        machine.submit(submit_time=0, processors=1, requested_time=50, run_time=50)
        machine.collect()
        machine.withdraw(1, pass_later=pass_later)
        found.append(machine.withdraw(2, pass_later=pass_later))
        machine.make_pass()
    # The narrow job would hold up the wide one, and starts as that is gone.
    assert found == [False, True]

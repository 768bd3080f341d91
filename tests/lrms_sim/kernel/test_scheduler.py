"""Every discipline against its oracle; what a machine refuses to run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrms_sim.kernel._easy import EasyScheduler
from lrms_sim.kernel._kernel import MachineKernel
from lrms_sim.kernel._scheduler import Scheduler
from lrms_sim.machine.machine import simulate
from lrms_sim.machine.stepped import Machine
from lrms_sim.scheduling.disciplines import discipline_by_name
from lrms_sim.workload.jobs import JobTable
from tests.examples import runs
from tests.oracles.disciplines import simulate_plainly
from tests.random_workloads import backlog, random_jobs
from tests.strategies import DISCIPLINES, OneMachine, one_machine


@pytest.mark.parametrize("name", DISCIPLINES)
@given(case=one_machine())
def test_kernel_equals_oracle(name: str, case: OneMachine) -> None:
    """A small workload full of ties gets the oracle's start times to the last bit."""
    schedule = simulate(case.jobs, case.processors, discipline_by_name(name))
    oracle = simulate_plainly(case.jobs, case.processors, name)
    assert schedule.start_time.tolist() == [oracle.start_time[row] for row in range(len(case.jobs))]
    assert schedule.end_time.tolist() == [oracle.end_time[row] for row in range(len(case.jobs))]


@pytest.mark.parametrize("name", DISCIPLINES)
def test_hundreds_of_random_workloads_equal_oracle(name: str) -> None:
    """Somewhat larger workloads, from light to hopeless load."""
    for seed in range(runs(120, 300)):
        rng = np.random.default_rng(seed)
        processors = int(rng.integers(1, 40))
        jobs = random_jobs(rng, 60, processors)
        schedule = simulate(jobs, processors, discipline_by_name(name))
        oracle = simulate_plainly(jobs, processors, name)
        expected = [oracle.start_time[row] for row in range(len(jobs))]
        assert schedule.start_time.tolist() == expected, f"seed {seed}"


@pytest.mark.parametrize("name", DISCIPLINES)
@pytest.mark.parametrize("seed", range(2))
def test_a_long_queue_equals_oracle(name: str, seed: int) -> None:
    """Hundreds of jobs wait, and over long stretches of the queue nobody fits."""
    rng = np.random.default_rng(seed)
    # A plan of hundreds of reservations is more than the oracle can rebuild at every early end.
    jobs = backlog(rng, 110 if name == "conservative" else 1200, 30)
    schedule = simulate(jobs, 30, discipline_by_name(name))
    oracle = simulate_plainly(jobs, 30, name)
    assert schedule.start_time.tolist() == [oracle.start_time[row] for row in range(len(jobs))]


@pytest.mark.parametrize("name", ["fcfs", "list", "easy", "easy-per-event"])
@given(
    draws=st.lists(
        st.tuples(
            st.sampled_from((0.0, 4.0, 8.0)),
            st.integers(1, 3),
            st.sampled_from((0.5, 1.0, 4.0, 8.0)),
            st.sampled_from((0.0, 4.0)),
        ),
        max_size=10,
    )
)
def test_a_job_too_short_for_the_clock(
    name: str, draws: list[tuple[float, int, float, float]]
) -> None:
    """Where start + run time rounds to start, the job ends in a further batch of that instant."""
    late = 2.0**54  # from here on doubles are 4 seconds apart
    jobs = JobTable.from_columns(
        submit_time=[late + submit for submit, _, _, _ in draws],
        processors=[width for _, width, _, _ in draws],
        run_time=[run for _, _, run, _ in draws],
        requested_time=[run + surplus for _, _, run, surplus in draws],
    )
    schedule = simulate(jobs, 3, discipline_by_name(name))
    oracle = simulate_plainly(jobs, 3, name)
    assert schedule.start_time.tolist() == [oracle.start_time[row] for row in range(len(jobs))]


@given(case=one_machine())
def test_disciplines_agree_when_nobody_can_pass(case: OneMachine) -> None:
    """With jobs as wide as the machine all disciplines are one."""
    wide = JobTable.from_columns(
        submit_time=case.jobs.submit_time,
        processors=np.full(len(case.jobs), case.processors),
        requested_time=case.jobs.requested_time,
        run_time=case.jobs.run_time,
    )
    starts = [
        simulate(wide, case.processors, discipline_by_name(name)).start_time.tolist()
        for name in DISCIPLINES
    ]
    assert all(start == starts[0] for start in starts)


class Empty(Scheduler):
    """Derived in Python from the base: no operation is set."""


class Overriding(EasyScheduler):
    """Derived in Python from a kernel: what it overrides would never be called."""

    def decide(self) -> None:
        """Is never called."""
        raise AssertionError


@pytest.mark.parametrize("scheduler", [Scheduler, Empty, Overriding])
def test_a_scheduler_written_in_python_is_refused(scheduler: type[Scheduler]) -> None:
    """It must not become a call of nothing, which ends the interpreter, nor another queue."""
    with pytest.raises(
        TypeError, match="is no compiled scheduler, and one written in Python cannot"
    ):
        MachineKernel(4, scheduler())


@dataclass(frozen=True)
class MyDiscipline:
    """A discipline as somebody might write it."""

    made: Callable[[], object]
    name: str = "mine"
    per_event: bool = False

    def scheduler(self) -> object:
        """Returns what a machine is to run."""
        return self.made()


@pytest.mark.parametrize(
    "discipline",
    [
        MyDiscipline(Empty),
        MyDiscipline(Overriding),
        MyDiscipline(dict),
        MyDiscipline(lambda: None),
        "easy",
        MyDiscipline,
    ],
)
def test_what_is_no_discipline_is_refused(discipline: Any) -> None:
    """Replays and machines driven step by step say what is possible."""
    jobs = JobTable.from_columns(submit_time=[0], processors=[1], run_time=[5])
    with pytest.raises(TypeError, match="a queue discipline is one of those in lrms_sim"):
        simulate(jobs, 4, discipline)
    with pytest.raises(TypeError, match="a queue discipline is one of those in lrms_sim"):
        Machine(4, discipline)


def test_a_scheduler_belongs_to_one_machine() -> None:
    """Notes are never shared."""
    scheduler = discipline_by_name("easy").scheduler()
    MachineKernel(4, scheduler)
    with pytest.raises(ValueError, match="belongs to another machine"):
        MachineKernel(4, scheduler)

"""The kernel's schedules of drawn workloads, for checks that look at every moment."""

from lrms_sim.machine.machine import simulate
from lrms_sim.scheduling.disciplines import discipline_by_name
from tests.oracles.checks import Replay
from tests.strategies import OneMachine


def replayed(case: OneMachine, discipline: str) -> Replay:
    """Returns the kernel's schedule of a drawn workload."""
    schedule = simulate(case.jobs, case.processors, discipline_by_name(discipline))
    return Replay(case.jobs, schedule.start_time.tolist(), case.processors)

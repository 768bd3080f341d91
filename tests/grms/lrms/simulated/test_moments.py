"""What has happened on a simulated machine: each thing once, in order of time."""

from grms.lrms.simulated.moments import Kind, moments
from lrms_sim.machine.stepped import Machine
from lrms_sim.scheduling.disciplines import Fcfs


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


def test_a_job_too_short_for_the_clock_starts_before_it_ends() -> None:
    """At 2**53 seconds a tenth of one is nothing."""
    moment = 2.0**53
    machine = Machine(1, Fcfs())
    submit(machine, moment, 1, 0.1)
    machine.advance(moment + 2.0)
    assert moments(machine) == [(moment, Kind.START, 0), (moment, Kind.END_AT_ONCE, 0)]

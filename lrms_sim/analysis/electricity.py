"""What the machines of a schedule use, pay and emit."""

from lrms_sim.analysis.occupancy import busy_processors
from lrms_sim.electricity.power import Consumption, Supply, consumption
from lrms_sim.workload.schedule import Schedule


def span_of(*schedules: Schedule) -> tuple[float, float]:
    """Returns the first submission and the last end of all of these, seconds; of no job 0 and 0.

    Schedules of the same jobs are compared over the same time: a machine that idles longer pays for that.
    """
    several = [schedule for schedule in schedules if len(schedule)]
    if not several:
        return 0.0, 0.0
    begin = min(float(schedule.jobs.submit_time.min()) for schedule in several)
    return begin, max(float(schedule.end_time.max()) for schedule in several)


def machine_consumption(
    schedule: Schedule,
    supply: Supply,
    machine: int = 0,
    span: tuple[float, float] | None = None,
) -> Consumption:
    """Returns what a machine of a schedule uses, busy or not.

    Args:
        schedule: of one machine or several.
        supply: of that machine.
        machine: its number.
        span: from when to when, seconds; by default as `span_of` says.
    """
    return consumption(
        supply,
        schedule.machines[machine].processors,
        busy_processors(schedule, machine),
        span_of(schedule) if span is None else span,
    )

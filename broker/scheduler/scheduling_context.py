"""What all parts that decide about tasks work with."""

from dataclasses import dataclass

from broker.scheduler.file_arrivals import FileArrivals
from broker.scheduler.free_time import FreeTime
from broker.scheduler.planning_cycle import PlanningCycle
from broker.scheduler.run_times import RunTimes
from broker.scheduler.settings import BrokerSettings
from broker.scheduler.state_tables import StateTables


@dataclass(frozen=True, slots=True)
class SchedulingContext:
    """The broker's state and settings, its planning, and what it knows of time."""

    memory: StateTables
    settings: BrokerSettings
    cycle: PlanningCycle
    free_time: FreeTime
    files: FileArrivals
    run_times: RunTimes

    @classmethod
    def of(
        cls, memory: StateTables, settings: BrokerSettings, cycle: PlanningCycle
    ) -> "SchedulingContext":
        """Returns the context of a state and its planning."""
        free_time = FreeTime(memory, cycle, settings.margin)
        return cls(memory, settings, cycle, free_time, cycle.files, cycle.run_times)

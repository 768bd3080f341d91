"""What is said of jobs to a simulated machine that is moved step by step, and by it."""

import enum
from dataclasses import dataclass


class SteppedPhase(enum.Enum):
    """Where a job stands in the LRMS."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class SteppedJob:
    """A job as it is handed to the LRMS.

    Attributes:
        job_id: the id under which it is looked up, unique for good.
        processors: how many it needs.
        requested_time: seconds after which it may be killed.
        run_time: seconds it really runs; only a simulated LRMS reads it. None lets it run as
            long as requested.
        command: what a real LRMS executes; a simulated one ignores it.
        group: user group, 1 to 5; only a simulated LRMS reads it, and only under a discipline by
            group. None where nobody has said, which counts as 5.
    """

    job_id: str
    processors: int
    requested_time: float
    run_time: float | None = None
    command: str = ""
    group: int | None = None


@dataclass(frozen=True, slots=True)
class SteppedRecord:
    """What the LRMS knows of a job.

    Attributes:
        phase: where it stands.
        start_time: seconds; None where it has not started.
        end_time: seconds; None where it has not ended.
        run_time: seconds it held its processors; None where it has not ended.
    """

    phase: SteppedPhase
    start_time: float | None = None
    end_time: float | None = None
    run_time: float | None = None


@dataclass(frozen=True, slots=True)
class SteppedLoad:
    """The three numbers a decision rests on.

    Attributes:
        processors: size of the machine.
        processors_free: processors no job holds now.
        processors_waiting: waiting parallelism, the sum of the waiting jobs' processors.
    """

    processors: int
    processors_free: int
    processors_waiting: int


@dataclass(frozen=True, slots=True)
class LrmsStarted:
    """A job has started.

    Attributes:
        job_id: which.
        time: when, seconds.
    """

    job_id: str
    time: float


@dataclass(frozen=True, slots=True)
class LrmsEnded:
    """A job has ended by itself; of one that was cancelled nothing more is heard.

    Attributes:
        job_id: which.
        time: when, seconds.
        run_time: how long it held its processors, seconds.
        timed_out: it was ended because its requested time was over.
    """

    job_id: str
    time: float
    run_time: float
    timed_out: bool = False


SteppedEvent = LrmsStarted | LrmsEnded

"""What the grid layer needs of a site's local batch system (LRMS), and nothing more.

The LRMS is left untouched: it is handed jobs, asked for three numbers, and says which jobs have
started and ended. Nothing is ever taken out of its queue except on the job's user's cancel. Every
submission carries the job's id, so that one whose outcome is unknown is looked up before it is
repeated.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class LrmsPhase(enum.Enum):
    """Where a job stands in the LRMS."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class LrmsJob:
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
class LrmsRecord:
    """What the LRMS knows of a job.

    Attributes:
        phase: where it stands.
        start_time: seconds; None where it has not started.
        end_time: seconds; None where it has not ended.
        run_time: seconds it held its processors; None where it has not ended.
    """

    phase: LrmsPhase
    start_time: float | None = None
    end_time: float | None = None
    run_time: float | None = None


@dataclass(frozen=True, slots=True)
class LrmsState:
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


LrmsEvent = LrmsStarted | LrmsEnded


class LrmsError(Exception):
    """The LRMS has refused, or does not answer; the text says what and why."""


class Lrms(Protocol):
    """A local batch system.

    Calls that reach outside the process may raise `LrmsError`; the caller looks the job up before
    it tries again.
    """

    async def submit(self, job: LrmsJob, now: float) -> None:
        """Puts a job into the queue; a job id that is already known changes nothing.

        Args:
            job: what to run.
            now: seconds.

        Raises:
            LrmsError: it was not taken.
        """

    async def cancel(self, job_id: str, now: float) -> bool:
        """Removes a waiting job or kills a running one.

        Args:
            job_id: which.
            now: seconds.

        Returns:
            Whether it was there to be cancelled.

        Raises:
            LrmsError: the outcome is unknown.
        """

    async def lookup(self, job_id: str) -> LrmsRecord | None:
        """Returns what is known of a job; None for an id that was never submitted.

        Raises:
            LrmsError: nobody answered.
        """

    async def state(self, now: float) -> LrmsState:
        """Returns the three numbers as they are now.

        Args:
            now: seconds.

        Raises:
            LrmsError: nobody answered.
        """

    async def poll(self, now: float) -> Sequence[LrmsEvent]:
        """Returns what has happened since the last call, each event once, in order of time.

        Args:
            now: seconds; events up to and including this moment are due.

        Raises:
            LrmsError: nobody answered; events are not lost, the next call returns them.
        """

    @property
    def next_event_time(self) -> float:
        """When it is worth polling again, seconds; infinity for not before a submission."""

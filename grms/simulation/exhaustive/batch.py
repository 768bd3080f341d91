"""A batch system as a value: what it has of each job, and what the site above has heard of that.

It outlives the site. Any job that waits may start next, and any that runs may end next. The site hears of it when it
looks, which it does once it has submitted the job or looked it up in this life.
"""

from typing import Final, NamedTuple

from grms.lrms import base
from grms.simulation.batch_system import GOES_ON
from grms.site.model.commands import LrmsCancel, LrmsSubmit
from grms.site.model.events import LrmsNews
from grms.site.runtime.executor_queue import cancelled
from grms.util.outcomes import Outcome

WAITS: Final = "waits"
RUNS: Final = "runs"
COMPLETED: Final = "completed"
CANCELLED: Final = "cancelled"
PREEMPTED: Final = "preempted"
GONE: Final = "lost"
UNWATCHED: Final = ""
WATCHED: Final = "watched"
NEW: Final = "new"
"""The site has heard nothing of it: it has looked it up, or handed it in."""

FORGOTTEN: Final = "forgotten "
OVER: Final = (COMPLETED, CANCELLED, PREEMPTED, GONE)


class BatchJob(NamedTuple):
    """A job in a batch system.

    Attributes:
        payload: what it runs.
        phase: where it stands.
        runs: how often it has started.
        heard: the phase that the site has heard of; or that it looks, or does not.
        requeued: how often it waits again.
        preemptible: it may be ended for another job.
    """

    key: str
    payload: bytes
    phase: str = WAITS
    runs: int = 0
    heard: str = NEW
    requeued: int = 0
    preemptible: bool = False

    @property
    def waits_again(self) -> bool:
        """Whether it waits after a start, or did so when it was cancelled."""
        return self.phase in {WAITS, CANCELLED} and 0 < self.runs == self.requeued


KEPT: Final = 0.5
"""How long a job that is ended for another one had run when it last wrote its state, of the second that it runs."""


class TwiceError(Exception):
    """A key was submitted a second time."""


class Batch:
    """The jobs of a batch system, while something happens to them."""

    def __init__(self, jobs: tuple[BatchJob, ...]) -> None:
        self._jobs = {job.key: job for job in jobs}

    @property
    def jobs(self) -> tuple[BatchJob, ...]:
        """All that it remembers, by key."""
        return tuple(self._jobs[key] for key in sorted(self._jobs))

    def submit(self, command: LrmsSubmit, now: float) -> list[LrmsNews]:
        """Takes a job, after a look where that is asked for; returns what the site hears at once."""
        key = command.lrms_key
        job = self._jobs.get(key)
        if job is not None and job.phase == GONE:
            job = None
        if not command.lookup and job is not None:
            raise TwiceError(f"{key} was submitted before")
        if job is not None:
            self._jobs[key] = job._replace(heard=WATCHED)
            return []
        if command.started:
            end = base.LrmsEnd(Outcome.UNKNOWN, now, 0.0, reason="it is not there")
            return [base.Ended(key, end)]
        payload, _, _ = command.payload.partition(GOES_ON)
        self._jobs[key] = BatchJob(key, payload, preemptible=command.preemptible)
        return []

    def cancel(self, command: LrmsCancel) -> list[LrmsNews]:
        """Ends a job where it stands; returns what the site hears for an answer."""
        job = self._jobs.get(command.lrms_key)
        done = job is not None and job.phase not in OVER
        if job is not None and command.only_waiting and job.runs:
            done = False
        if done and job is not None:
            self._jobs[job.key] = job._replace(phase=CANCELLED)
        return cancelled(command, done=done)

    def look(self, key: str, now: float) -> list[LrmsNews]:
        """Returns what the site hears of a job when it looks; it has heard all of it then."""
        job = self._jobs[key]
        self._jobs[key] = job._replace(heard=job.phase)
        news: list[LrmsNews] = []
        if job.phase == GONE:
            return [base.Lost(key, "it was restored")]
        if job.heard in {NEW, WATCHED}:
            news.append(base.Accepted(key))
        waited = job.waits_again
        if job.runs and job.heard != RUNS and not (waited and job.phase == CANCELLED):
            news.append(base.Started(key, now))
        if waited:
            news.append(base.Requeued(key, "a node went down"))
        if job.phase == COMPLETED:
            news.append(base.Ended(key, base.LrmsEnd(Outcome.COMPLETED, now, 1.0)))
        elif job.phase == PREEMPTED:
            news.append(base.Ended(key, base.LrmsEnd(Outcome.PREEMPTED, now, 1.0, kept=KEPT)))
        elif job.phase == CANCELLED:
            ran = 1.0 if job.runs and not waited else 0.0
            news.append(base.Ended(key, base.LrmsEnd(Outcome.CANCELLED, now, ran)))
        return news

    def unheard(self) -> list[str]:
        """Returns the keys of jobs of which a look would show something new."""
        return [
            key
            for key, job in sorted(self._jobs.items())
            if job.heard not in {UNWATCHED, job.phase}
        ]


def forgotten_by_site(jobs: tuple[BatchJob, ...]) -> tuple[BatchJob, ...]:
    """Returns the jobs as the next life of the site finds them: it looks at none yet."""
    # One that is over and of which the site has not heard stays; so does one that it may look up again.
    return tuple(job._replace(heard=UNWATCHED) for job in jobs)


def forgotten(job: BatchJob, jobs: tuple[BatchJob, ...]) -> tuple[BatchJob, ...]:
    """Returns the jobs after the batch system has forgotten one; what is true of it stays, under another name."""
    old = job._replace(key=f"{FORGOTTEN}{job.key}", heard=UNWATCHED)
    return tuple(sorted(old if one.key == job.key else one for one in jobs))


def moved(job: BatchJob, jobs: tuple[BatchJob, ...], phase: str) -> tuple[BatchJob, ...]:
    """Returns the jobs after one of them has come to another phase."""
    starts = phase == RUNS
    again = phase == WAITS
    changed = job._replace(phase=phase, runs=job.runs + starts, requeued=job.requeued + again)
    return tuple(changed if one.key == job.key else one for one in jobs)

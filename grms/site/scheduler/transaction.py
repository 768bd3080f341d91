"""One turn of a site's state: the handling of one event."""

import math
from collections.abc import Sequence
from dataclasses import replace

from grms.site.model.commands import Append, Command, LrmsCancel, LrmsSubmit, Publish
from grms.site.model.jobs import GuestJob, HomeJob
from grms.site.model.lifecycle import Outcome
from grms.site.model.records import JobEnded, Record
from grms.site.model.state_tables import StateTables


class Transaction:
    """The records and commands of one event's handling.

    `cause` is the id of the event, `now` the time on the site's clock, seconds.
    """

    __slots__ = ("_commands", "_records", "cause", "memory", "now")

    def __init__(self, memory: StateTables, cause: int, now: float) -> None:
        self.memory = memory
        self.cause = cause
        self.now = now
        self._records: list[Record] = []
        self._commands: list[Command] = []

    def note(self, record: Record) -> None:
        """Applies a record to the memory; it is journaled before any command of this turn."""
        self.memory.apply(record)
        self._records.append(record)

    def do(self, command: Command) -> None:
        """Adds a command."""
        self._commands.append(command)

    def publish(self, job: HomeJob) -> None:
        """Tells watchers that a job has changed."""
        self._commands.append(Publish(self.cause, job.job))

    def publish_all(self, jobs: Sequence[int]) -> None:
        """Tells watchers that jobs have changed, by number."""
        if jobs:
            self._commands.append(Publish(self.cause, jobs[0], tuple(jobs[1:])))

    def submit(self, job: HomeJob | GuestJob, *, lookup: bool, started: bool = False) -> None:
        """Submits a job to the batch system's queue.

        `lookup`: the batch system may have it; `started`: it is known to have started.
        """
        self._commands.append(self._submission(job, lookup=lookup, started=started))

    def keep_place(self, job: HomeJob) -> None:
        """Has the batch system keep the place of a job that is at a partner, which may send it home."""
        if self.memory.settings.keeps_places and job.rerun:
            submission = self._submission(job, lookup=False, started=False)
            self._commands.append(replace(submission, aside=True))

    def leave(self, job: HomeJob) -> None:
        """Has the batch system release a job if it waits, and keep its place if its partner may send it home."""
        kept = self.memory.settings.keeps_places and job.rerun
        key = job.lrms_key
        self._commands.append(LrmsCancel(self.cause, key, only_waiting=True, keep_place=kept))

    def _submission(self, job: HomeJob | GuestJob, *, lookup: bool, started: bool) -> LrmsSubmit:
        user, partner = job.owner
        return LrmsSubmit(
            self.cause,
            job.lrms_key,
            job.asked_here,
            job.program,
            lookup=lookup,
            started=started,
            user=user,
            partner=partner,
            since=job.kept_time,
            preemptible=job.preemptible,
            protected=job.protected,
            at_once=job.preemptible and self.memory.settings.sends_guests_home,
            place=job.place,
        )

    def commands(self) -> list[Command]:
        """Returns the commands; the records come first, so that they are durable first."""
        if not self._records:
            return self._commands
        return [Append(self.cause, tuple(self._records)), *self._commands]

    def end(
        self,
        job: HomeJob,
        *,
        outcome: Outcome,
        end_time: float,
        run_time: float,
        reason: str,
    ) -> None:
        """Records the end of a local user's job."""
        # Batch systems and partners have clocks of their own, and many say whole seconds alone: nothing
        # that is noted begins before it could, nor ends before it began.
        begun = job.submit_time if math.isnan(job.start_time) else job.start_time
        end_time = max(end_time, begun)
        elsewhere = (job.asked or job.sent_home) and job.lrms_key not in self.memory.at_lrms
        self.note(JobEnded(self.now, job.job, outcome, end_time, run_time, reason))
        if elsewhere and self.memory.settings.keeps_places:
            self.do(LrmsCancel(self.cause, job.lrms_key))  # what is kept there is its place
        job.remaining = None
        self.publish(job)

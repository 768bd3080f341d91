"""What can be seen in a schedule alone, counted anew from the start times."""

from collections.abc import Sequence

from lrms_sim.workload.jobs import JobTable
from tests.oracles.machine import PlainJob, plain_jobs


class Replay:
    """The jobs of one machine and when each of them started."""

    def __init__(self, jobs: JobTable, start_time: Sequence[float], processors: int) -> None:
        self.processors = processors
        self.jobs = plain_jobs(jobs)
        self.start_time = list(start_time)

    def end_time(self, job: PlainJob) -> float:
        """Returns when a job ended."""
        return self.start_time[job.row] + job.run_time

    def running(self, moment: float) -> list[PlainJob]:
        """Returns the jobs that hold processors just after everything of a moment is done."""
        return [job for job in self.jobs if self.start_time[job.row] <= moment < self.end_time(job)]

    def waiting(self, moment: float) -> list[PlainJob]:
        """Returns the queue just after everything of a moment is done."""
        return [job for job in self.jobs if job.submit_time <= moment < self.start_time[job.row]]

    def processors_free(self, moment: float) -> int:
        """Returns the processors nobody holds; negative where too many are in use."""
        return self.processors - sum(job.processors for job in self.running(moment))

    def moments(self) -> list[float]:
        """Returns every instant at which something happens."""
        times = {job.submit_time for job in self.jobs} | set(self.start_time)
        return sorted(times | {self.end_time(job) for job in self.jobs})

    def shadow_time(self, head: PlainJob, moment: float) -> float:
        """Returns when the estimates of the running jobs leave room for a job."""
        releases = sorted(
            (self.start_time[job.row] + job.requested_time, job.processors)
            for job in self.running(moment)
        )
        free = self.processors_free(moment)
        for time, width in releases:
            if head.processors <= free:
                break
            free += width
            moment = time
        return moment

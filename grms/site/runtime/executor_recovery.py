"""What a site knows of the batch system: running and waiting jobs."""

from grms.lrms.base import LrmsJob, LrmsRefusedError
from grms.site.model.jobs import GuestJob, HomeJob
from grms.site.model.lifecycle import JobState
from grms.site.model.state_tables import StateTables
from grms.site.wire.convert import lrms_job


def running(memory: StateTables) -> list[tuple[LrmsJob, float]]:
    """Returns the running jobs with their start times, seconds, in order of start.

    A guest that is to start at once has done so when it was handed over.
    """
    here = [
        (job, job.start_time if job.state is JobState.RUNNING else job.kept_time)
        for job in memory.at_lrms.values()
        if _runs(job, memory)
    ]
    return [(job, start) for each, start in here if (job := _job_of(each, memory)) is not None]


def waiting(memory: StateTables) -> list[LrmsJob]:
    """Returns the submitted jobs that have not started, oldest first."""
    here = [
        job
        for key, job in memory.at_lrms.items()
        if not _runs(job, memory) and key not in memory.reserved
    ]
    return [job for each in here if (job := _job_of(each, memory)) is not None]


def protects(memory: StateTables) -> bool:
    """Returns whether protected guests keep their processors, as the site is in credit."""
    account = memory.account
    return memory.settings.sends_guests_home and account is not None and account.in_credit


def _runs(job: HomeJob | GuestJob, memory: StateTables) -> bool:
    if job.state is JobState.RUNNING:
        return True
    return _at_once(job, memory) and job.lrms_key not in memory.reserved


def _at_once(job: HomeJob | GuestJob, memory: StateTables) -> bool:
    return job.preemptible and memory.settings.sends_guests_home


def _job_of(job: HomeJob | GuestJob, memory: StateTables) -> LrmsJob | None:
    user, partner = job.owner
    try:
        return lrms_job(
            job.lrms_key,
            job.asked_here,
            job.program,
            user=user,
            partner=partner,
            preemptible=job.preemptible,
            protected=job.protected,
            at_once=_at_once(job, memory),
            place=job.came,
        )
    except LrmsRefusedError:
        return None  # it was refused then, and will be again

"""What jobs use, and what that costs."""

import math

from grms.site.model.jobs import GuestJob, HomeJob
from grms.site.model.lifecycle import JobState


def held_time(job: HomeJob | GuestJob, now: float) -> float:
    """Returns how long a job has held its processors, so far if it runs, seconds; nan if it has not started.

    `now` is in seconds, or nan if what runs does not count. A suspended job holds them.
    """
    begun = job.begun_time
    if math.isnan(begun):
        return math.nan
    return job.run_time if job.state is JobState.ENDED else max(0.0, now - begun)


def cost(job: HomeJob | GuestJob, now: float) -> float:
    """Returns what a job has used, processor seconds; nan as with `held_time`."""
    return held_time(job, now) * job.request.processors

"""Two schedules are the same, or the first difference is named."""

from dataclasses import replace

import numpy as np
import pytest

from scenarios.run.comparison import first_difference
from tests.scenarios.towns import two_towns_schedules


def test_the_same_schedule_is_identical() -> None:
    """To the last bit, jobs that never started included."""
    schedule, _ = two_towns_schedules()
    assert first_difference(schedule, schedule) == ""
    never = replace(schedule, start_time=np.full(4, np.nan))
    assert first_difference(never, never) == ""


def test_the_first_difference_is_named() -> None:
    """With the job, each column that differs and both values, and how many jobs differ."""
    schedule, other = two_towns_schedules()
    words = first_difference(other, schedule)
    assert words.startswith("arrival 1 (job 2 of Lübeck, submitted at 0): ")
    assert "executed_on is Lübeck and should be Wismar" in words
    assert "start_time is 100 and should be 0" in words
    assert words.endswith("3 of 4 jobs differ")


def test_the_last_bit_counts() -> None:
    """A time that differs by rounding is another time."""
    schedule, _ = two_towns_schedules()
    late = schedule.end_time.copy()
    late[3] = np.nextafter(late[3], np.inf)
    assert "arrival 3" in first_difference(replace(schedule, end_time=late), schedule)


def test_schedules_of_other_jobs_cannot_be_compared() -> None:
    """That would be a mistake of the caller."""
    schedule, _ = two_towns_schedules()
    shorter = replace(
        schedule,
        jobs=schedule.jobs.select(np.arange(3)),
        **{
            name: getattr(schedule, name)[:3]
            for name in ("start_time", "end_time", "submitted_to", "executed_on", "log_job_id")
        },
    )
    with pytest.raises(ValueError, match="3 and 4 jobs"):
        first_difference(shorter, schedule)
